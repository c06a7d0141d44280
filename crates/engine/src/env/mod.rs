//! The doors to the outside world: the clock and the directory.
//!
//! Promises: nothing else in the workspace asks the operating system for the time, so every test can hold the
//! clock in its hand.

mod clock;
pub(crate) mod directory;

pub use clock::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
