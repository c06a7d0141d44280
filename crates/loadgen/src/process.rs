//! What a process costs, read from outside: processor time and memory. Where there is no `/proc`, nothing is known.

use std::time::Duration;

/// Linux counts process time in these for user space, whatever the kernel's own tick is.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time used so far, by all threads.
pub fn cpu(process: u32) -> Option<Duration> {
    cpu_of(&process.to_string())
}

/// Processor time of this process, the generator.
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

/// How many processes wanted a core during the last minute: a busy machine measures its other tenants too.
pub fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn cpu_of(process: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain blanks; utime and stime are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
}
