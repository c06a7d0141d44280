//! Reads a process's processor time and memory from `/proc`, and the machine's load. `None` where there is no `/proc`.

use std::time::Duration;

/// Linux reports process times to user space in these ticks, whatever the kernel's own tick is.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time that a process has used so far, in all threads.
pub fn cpu(process: u32) -> Option<Duration> {
    cpu_of(&process.to_string())
}

/// Processor time that this process, the generator, has used so far.
pub fn own_cpu() -> Option<Duration> {
    cpu_of("self")
}

/// A line of the process's memory status, such as `VmRSS:` or `VmHWM:` (the peak).
pub fn memory_bytes(process: u32, line: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let rest = status.lines().find_map(|text| text.strip_prefix(line))?;
    let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The load average of the last minute. On a busy machine, other programs distort a measurement.
pub fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Processor time of a process by its number, or of this one as `self`.
pub fn cpu_of(process: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain blanks; utime and stime are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
}
