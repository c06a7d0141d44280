//! The driver's clocks. They read the system's clocks, because the driver measures real work.

use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "a fuzzer measures real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Processor time of this thread. Other work on the machine does not count.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Real time, on systems without such a clock.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(now);
    START.elapsed()
}
