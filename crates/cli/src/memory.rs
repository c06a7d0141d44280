//! The memory of the process, where the system tells it.

/// Bytes that are resident; `None` where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_system_tells_how_much_memory_is_used() {
        assert!(super::resident_bytes().is_some_and(|bytes| bytes > 100 * 1024));
    }
}
