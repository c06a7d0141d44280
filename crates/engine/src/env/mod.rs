//! What every engine needs from the operating system: the clock and randomness.
//!
//! Promises: nothing else in the workspace asks the operating system for the time, so every test can control the
//! clock.

mod clock;
pub mod random;

pub use clock::{Clock, FakeClock, SystemClock, UNIX_EPOCH_TICKS, ticks};
