//! Traces: the tree speaks of the product alone, never of the machine on which somebody wrote it.

use super::rust_source::{RustSource, TokenKind};
use super::{Finding, House};

/// Folders of one machine. The parts are put together here so that this file does not find itself.
const MACHINE_FOLDERS: [&str; 5] = ["home", "root", "work", "tmp", "Users"];

/// Settings that say where packages come from: the business of whoever builds, not of the tree.
const SOURCE_SETTINGS: [&str; 8] = [
    "replace-with",
    "index-url",
    "extra-index-url",
    "registry",
    "proxy",
    "http-proxy",
    "https-proxy",
    "GOPROXY",
];
/// Hosts that lock files may name.
const PUBLIC_SOURCES: [&str; 1] = ["registry+https://github.com/rust-lang/crates.io-index"];

/// Files that are written by people or tools of ours; recorded data and lock files of others are not.
const TEXT_ENDINGS: [&str; 16] = [
    ".md", ".rs", ".toml", ".txt", ".json", ".npmrc", ".ini", ".xml", ".mjs", ".py", ".go", ".java", ".sh",
    ".yml", ".mod", ".ci/run",
];

pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in house.tree.files() {
        if path.ends_with(".rs") || !TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            if let Some(folder) = machine_path(line) {
                findings.push(Finding::new(path, n + 1, on_machine(&folder)));
            }
        }
    }
    for (path, source) in house.tree.rust_files().filter(|(path, _)| !house.tree.is_test(path)) {
        findings
            .extend(in_source(source).map(|(line, folder)| Finding::new(path, line, on_machine(&folder))));
    }
    findings.extend(package_sources(house));
    findings
}

fn on_machine(folder: &str) -> String {
    format!("{folder} is a folder of one machine: use a path from the root, or a placeholder")
}

/// In comments and strings of product code and proof; tests may invent paths.
fn in_source(source: &RustSource) -> impl Iterator<Item = (usize, String)> {
    let tokens = source.tokens.iter().filter(|token| !token.is_test);
    let texts = tokens.filter(|token| matches!(token.kind, TokenKind::Comment | TokenKind::Text));
    texts.flat_map(|token| {
        let lines = source.text_of(token).lines().enumerate();
        lines.filter_map(|(n, line)| Some((token.line + n, machine_path(line)?)))
    })
}

/// The folder of a machine that a line names from the root of the file system, if it does.
fn machine_path(line: &str) -> Option<String> {
    for folder in MACHINE_FOLDERS {
        let wanted = format!("/{folder}/");
        for (at, _) in line.match_indices(&wanted) {
            // `a/home/`, `example.com/home/` and `$X/home/` do not start at the root.
            let before = line[..at].chars().next_back();
            if before.is_none_or(|c| {
                !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '}' | ')' | '*' | '>'))
            }) {
                return Some(wanted);
            }
        }
    }
    None
}

fn package_sources(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in house.tree.files() {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_lock = matches!(name, "Cargo.lock" | "package-lock.json");
        let is_settings =
            matches!(name, "config.toml" | ".npmrc" | "pip.conf" | "requirements.txt" | "go.env");
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            let is_named = if is_lock {
                let is_source = line.starts_with("source = ") || line.starts_with("\"resolved\": ");
                is_source
                    && line.contains("://")
                    && !PUBLIC_SOURCES.iter().any(|source| line.contains(source))
            } else {
                // `registry = …`, `--index-url …`, `@scope:registry=…`
                let key = line.trim_start_matches('-').split(['=', ' ']).next().unwrap_or_default();
                is_settings && SOURCE_SETTINGS.contains(&key.rsplit(':').next().unwrap_or(key))
            };
            if is_named {
                let message = "names a source of packages: where they come from is the builder's business";
                findings.push(Finding::new(path, n + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    fn check_file(path: &str, text: &str, expected: &[usize]) {
        let lines: Vec<usize> =
            check(&House::new(Tree::of(&[(path, text)]))).iter().map(|found| found.line).collect();
        assert_eq!(lines, expected, "{path}: {text}");
    }

    #[test]
    fn folders_of_a_machine_are_found() {
        check_file("README.md", "a\nrun /home/me/x\n", &[2]);
        check_file("README.md", "see docs/work/x and https://example.com/home/x\n", &[]);
        check_file(".ci/run", "cd /work/x\n", &[1]);
        check_file("crates/a/src/lib.rs", "// in /tmp/x\nlet a = \"/root/x\";\nlet b = c /work/ d;", &[1, 2]);
        check_file("crates/a/src/lib.rs", "#[cfg(test)]\nmod tests { const A: &str = \"/tmp/x\"; }", &[]);
        check_file("crates/a/tests/it.rs", "// /tmp/x", &[]);
    }

    #[test]
    fn sources_of_packages_are_found() {
        check_file("tests/requirements.txt", "containerregistry==1\n--index-url https://x\n", &[2]);
        check_file(".cargo/config.toml", "[source.crates-io]\nreplace-with = \"x\"\n", &[2]);
        check_file(
            "tests/.npmrc",
            "# registry = x\nomit-lockfile-registry-resolved=true\nregistry=https://x\n",
            &[3],
        );
        check_file("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n", &[]);
        check_file("Cargo.lock", "source = \"registry+https://mirror.example/index\"\n", &[1]);
        check_file("package-lock.json", "\"resolved\": \"https://mirror.example/a.tgz\"\n", &[1]);
    }
}
