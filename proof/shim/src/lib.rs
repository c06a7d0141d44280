//! A library to preload (`LD_PRELOAD`) into the server. It writes one totally ordered log of what the process does to
//! the files below one directory, including the data, so that a trial can rebuild the disk as a power cut would leave
//! it.
//!
//! `LAZULITE_SHIM_ROOT` names the directory and `LAZULITE_SHIM_LOG` the log; without them every call passes through.
//! Promises: a change is in the log before its call returns, and the log has the changes in the order in which the
//! operating system made them. A sync has two records, because only its end promises anything. On systems other than
//! 64-bit Linux this library is empty.
//!
//! Each function makes the system call itself, so nothing here depends on the C library that is loaded after it.
//! `log.rs` describes the format of the log. Leaves to others: reading the log.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod calls;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod log;
