//! Describes the machine and the version of the code that were measured, as far as the system reports them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
    /// The file system of the durable server's data.
    pub file_system: String,
    /// Azurite's version; `None` if it was not measured.
    pub azurite: Option<String>,
}

impl Machine {
    pub fn describe(data: &Path, azurite_script: Option<&Path>) -> Machine {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        Machine {
            processor: field(&file("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: field(&file("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
                .map_or(0.0, |kibibytes| kibibytes / (1024.0 * 1024.0)),
            kernel: match file("/proc/sys/kernel/osrelease").trim() {
                "" => std::env::consts::OS.to_owned(),
                release => format!("Linux {release}"),
            },
            file_system: std::fs::canonicalize(data)
                .ok()
                .and_then(|path| file_system(&file("/proc/mounts"), &path))
                .unwrap_or_else(unknown),
            azurite: azurite_script.map(azurite_version),
        }
    }
}

/// Bytes that can still be written to the file system of a directory. `None` where `df` does not tell.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(directory).stderr(Stdio::null()).output().ok()?;
    free_bytes_in(&String::from_utf8_lossy(&output.stdout))
}

/// The fourth column of the second line, in KiB.
fn free_bytes_in(text: &str) -> Option<u64> {
    let kibibytes: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The measured commit, and whether the working tree differs from it.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no", "--", "crates", "Cargo.lock"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}, with changes"),
    }
}

/// Reads the version from the package beside the script: `node_modules/azurite/package.json`.
fn azurite_version(script: &Path) -> String {
    let package = script.ancestors().map(|folder| folder.join("package.json")).find(|path| path.exists());
    let text = package.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let version = serde_json::from_str::<serde_json::Value>(&text).ok();
    let version = version.and_then(|package| package["version"].as_str().map(str::to_owned));
    version.unwrap_or_else(|| "of unknown version".to_owned())
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The type of the file system that holds a path: that of the longest mount point that is a prefix of the path.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let holding = mounts.filter(|(point, _)| path.starts_with(point));
    holding.max_by_key(|(point, _)| point.as_os_str().len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_point_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/data xfs rw 0 0\n";
        let check = |path: &str, expected: &str| {
            assert_eq!(file_system(mounts, Path::new(path)).as_deref(), Some(expected), "{path}");
        };
        check("/home/x", "ext4");
        check("/tmp/x", "tmpfs");
        check("/tmp/data/x", "xfs");
        check("/tmp/database", "tmpfs");
    }

    #[test]
    fn free_space_is_what_is_left() {
        let text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a 1000 300 600 34% /\n";
        assert_eq!(free_bytes_in(text), Some(600 * 1024));
        assert_eq!(free_bytes_in("df: no such file\n"), None);
    }

    #[test]
    fn fields_have_their_whole_name() {
        let text = "model\t: 85\nmodel name\t: A processor @ 2 GHz\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A processor @ 2 GHz"));
        assert_eq!(field(text, "stepping"), None);
    }
}
