//! The doors to the outside world: the clock, randomness, the directory and its files.
//!
//! Promises: nothing else in the workspace asks the operating system for the time, so every test can hold the
//! clock in its hand.

mod clock;
pub(crate) mod directory;
mod files;
pub(crate) mod random;

pub use clock::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
pub use files::{Access, AnyFile, DirectoryFiles, Files};
