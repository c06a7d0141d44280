//! The doors to the outside world that every engine needs: the clock and randomness.
//!
//! Promises: nothing else in the workspace asks the operating system for the time, so every test can hold the
//! clock in its hand.

mod clock;
pub mod random;

pub use clock::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS};
