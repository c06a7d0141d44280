//! Reads what a process costs: memory, processor time, open files, threads, bytes on disk.
//!
//! Owns: the readings of `/proc` and of a directory, and a thread that watches memory for its peak. It never writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use loadgen::process;

use crate::Error;

const WATCH_INTERVAL: Duration = Duration::from_millis(50);
pub const MIB: u64 = 1024 * 1024;

/// Processor time that all programs together have used since the machine booted.
pub fn machine_cpu() -> Result<Duration, Error> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    match ticks[..] {
        // Idle time and waiting for the disk are free for others; time stolen by the host is not.
        [user, nice, system, _idle, _waiting, interrupt, soft, stolen, ..] => {
            let busy = user + nice + system + interrupt + soft + stolen;
            Ok(Duration::from_secs_f64(busy / process::TICKS_PER_SECOND))
        }
        _ => Err("no times in /proc/stat".into()),
    }
}

/// A process, by its number; `self` is the trial's own.
#[derive(Clone)]
pub struct Gauge {
    process: String,
}

impl Gauge {
    pub fn of(id: u32) -> Gauge {
        Gauge { process: id.to_string() }
    }

    pub fn own() -> Gauge {
        Gauge { process: "self".to_owned() }
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        let path = format!("/proc/{}/{file}", self.process);
        std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}").into())
    }

    fn status(&self, line: &str) -> Result<u64, Error> {
        let status = self.read("status")?;
        let value = status.lines().find_map(|text| text.strip_prefix(line));
        let number = value.and_then(|rest| rest.split_whitespace().next()).and_then(|text| text.parse().ok());
        number.ok_or_else(|| format!("no {line} in the status of process {}", self.process).into())
    }

    /// Resident memory now.
    pub fn memory_bytes(&self) -> Result<u64, Error> {
        Ok(self.status("VmRSS:")? * 1024)
    }

    /// The highest resident memory since the process started.
    pub fn memory_peak_bytes(&self) -> Result<u64, Error> {
        Ok(self.status("VmHWM:")? * 1024)
    }

    pub fn thread_count(&self) -> Result<u64, Error> {
        self.status("Threads:")
    }

    pub fn open_file_count(&self) -> Result<u64, Error> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.process))?.count() as u64)
    }

    /// Processor time used so far, by all threads.
    pub fn cpu(&self) -> Result<Duration, Error> {
        let cpu = process::cpu_of(&self.process);
        cpu.ok_or_else(|| format!("no times in the stat of process {}", self.process).into())
    }

    /// Starts watching memory.
    pub fn watch(&self) -> MemoryWatch {
        let (peak_bytes, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (gauge, peak_bytes, over) = (self.clone(), peak_bytes.clone(), over.clone());
            move || {
                while !over.load(Ordering::Relaxed) {
                    if let Ok(bytes) = gauge.memory_bytes() {
                        peak_bytes.fetch_max(bytes, Ordering::Relaxed);
                    }
                    std::thread::sleep(WATCH_INTERVAL);
                }
            }
        });
        MemoryWatch { peak_bytes, over, thread: Some(thread) }
    }
}

/// Watches memory until it is dropped.
pub struct MemoryWatch {
    peak_bytes: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWatch {
    /// The highest reading so far. It may miss a peak shorter than the interval.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Bytes of all files below a directory. A file that vanishes meanwhile does not count.
pub fn directory_bytes(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// How many files this process and its children may have open.
fn open_files_max() -> Result<usize, Error> {
    let limits = Gauge::own().read("limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    if soft == "unlimited" {
        return Ok(usize::MAX);
    }
    soft.parse().map_err(|_| "no limit of open files in /proc/self/limits".into())
}

/// How many connections to the server this process may open, if both may have as many files open, and others need some.
/// The server lets one address have nine tenths of its connections.
pub fn connection_count_max(other_file_count: usize) -> Result<usize, Error> {
    Ok(open_files_max()?.saturating_sub(other_file_count) / 10 * 8)
}

/// The load average of the last minute. On a busy machine, other programs distort a measurement.
pub fn load_average() -> String {
    process::load_average().map_or("unknown".to_owned(), |load| format!("{load:.2}"))
}
