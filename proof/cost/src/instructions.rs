//! Counts instructions with valgrind, which runs this program again.

use std::process::Command;

use crate::paths::Path;

/// The argument that makes this program run one path and nothing else.
pub const RUN: &str = "run";

/// Why instructions cannot be judged on this machine, if they cannot.
pub fn missing() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the budgets hold only for x86-64".to_owned());
    }
    if cfg!(debug_assertions) {
        return Some("this is not a release build".to_owned());
    }
    let answer = Command::new("valgrind").arg("--version").output();
    match answer {
        Ok(answer) if answer.status.success() => None,
        _ => Some("valgrind is not installed".to_owned()),
    }
}

/// The instructions of one repetition.
pub fn count(path: &Path) -> Result<u64, String> {
    let few = run(path, path.repetitions)?;
    let many = run(path, 2 * path.repetitions)?;
    Ok(many.saturating_sub(few) / path.repetitions)
}

fn run(path: &Path, repetitions: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    // Cachegrind without cache simulation only counts instructions; callgrind takes three times as long.
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args([RUN, path.name, &repetitions.to_string()])
        .output()
        .map_err(|error| format!("cannot start valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{} fails under valgrind:\n{text}", path.name));
    }
    read_count(&text).ok_or_else(|| format!("valgrind does not say how many instructions it saw:\n{text}"))
}

/// Reads `==42== I   refs:      1,234,567`.
fn read_count(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(" I ") && line.contains("refs:"))?;
    let (_, number) = line.rsplit_once("refs:")?;
    number.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_valgrind_prints() {
        let text = "==42== Cachegrind\n==42== \n==42== I   refs:      1,234,567\n";
        assert_eq!(read_count(text), Some(1_234_567));
        assert_eq!(read_count("==42== Cachegrind\n"), None);
    }
}
