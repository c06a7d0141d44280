//! A library to be preloaded (`LD_PRELOAD`) into the server: it writes one totally ordered log of what the process does
//! to the files below one directory, with the data, so that a trial can rebuild the disk as a power cut would leave it.
//!
//! `LAZULITE_SHIM_ROOT` names the directory and `LAZULITE_SHIM_LOG` the log; without them everything passes through.
//! Promises: a change is in the log before its caller goes on; changes are in the log in the order in which the
//! operating system made them; a sync has two records, because only its end promises anything. On systems other than
//! 64-bit Linux this library is empty.
//!
//! Each function does its work by the system call itself, so that nothing here depends on which C library is loaded
//! behind it. What the log's bytes mean is said in `log.rs`.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod log;
