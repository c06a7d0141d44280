//! The clocks of the driver. It measures real work, so it asks the system.

use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "a fuzzer measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Time that the processor spent on this thread: whatever else the machine does is not in it.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Where there is no such clock, real time has to do.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(now);
    START.elapsed()
}
