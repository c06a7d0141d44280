//! The processes of a node: found by their parents, stopped, continued and killed together.
//!
//! PostgreSQL puts itself and each of its children into process groups of their own, so a signal to one group does not
//! reach a node. Linux tells the children of each process.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends everything when its input ends. Stopped processes can be killed, too. A postmaster is killed before its
/// children, so that it starts no others.
const KEEPER: &str = r#"
read -r _
end() {
  kill -9 "$1" 2>/dev/null || return
}
children() {
  cat /proc/"$1"/task/*/children 2>/dev/null
}
cd "$1" || exit
for node in n*; do
  agent=$(cat "$node/pid" 2>/dev/null)
  master=$(head -n 1 "$node/data/postmaster.pid" 2>/dev/null)
  case $(cat "/proc/$master/comm" 2>/dev/null) in postgres) ;; *) master= ;; esac
  for root in $agent $master; do
    kill -STOP "$root" 2>/dev/null
    below=$(children "$root")
    end "$root"
    for child in $below; do end "$child"; done
  done
done
end "$(cat etcd/pid 2>/dev/null)"
"#;

/// A shell that ends all processes whose numbers are below this directory.
pub(super) fn keeper(directory: &Path, node_count: usize) -> Result<Child, String> {
    debug_assert!(node_count > 0);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", KEEPER, "sh"]).arg(directory).stdin(Stdio::piped());
    // A group of its own, so that an interrupt from the keyboard does not end it first.
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.spawn().map_err(|error| format!("the shell does not start: {error}"))
}

/// The first process of the PostgreSQL with this directory, if it runs.
pub(super) fn postmaster(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let id: u32 = text.lines().next()?.trim().parse().ok()?;
    // The file outlives a kill, and its number may belong to another process by now.
    let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    (name.trim() == "postgres").then_some(id)
}

/// A process and all below it, parents first.
pub(super) fn with_descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(process) = found.get(at).copied() {
        at += 1;
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let numbers = children.split_ascii_whitespace().filter_map(|number| number.parse().ok());
            found.extend(numbers.filter(|number: &u32| *number != root));
        }
    }
    found.dedup();
    found
}

/// Stops all of them first, so that none of them notices the end of another.
pub(super) fn kill(processes: &[u32]) {
    signal("STOP", processes);
    let all: Vec<u32> = processes.iter().flat_map(|process| with_descendants(*process)).collect();
    signal("KILL", &all);
}

/// A process that has ended meanwhile is no error.
pub(super) fn signal(name: &str, processes: &[u32]) {
    if processes.is_empty() {
        return;
    }
    let mut command = Command::new("kill");
    command.args(["-s", name]).args(processes.iter().map(u32::to_string));
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}
