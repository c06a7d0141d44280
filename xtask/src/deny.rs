//! `cargo xtask deny`: the rules for dependencies, checked without a network.
//!
//! `deny.toml` holds the rules, in the format of cargo-deny: allowed licences, banned crates, and the reason for each crate
//! that is there in two versions. Versions and sources come from `Cargo.lock`, so they cover every platform; licences come
//! from `cargo tree`, so they cover the crates that are built on this one. Leaves to cargo-deny: security advisories, whose
//! database lies on the network.

mod licence;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::process::{self, cargo};
use policy::Policy;

const POLICY_FILE: &str = "deny.toml";
const LOCK_FILE: &str = "Cargo.lock";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// `true` when every dependency follows the rules.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("'deny' takes no arguments, but got '{argument}'"));
    }
    let policy = Policy::parse(&read(POLICY_FILE)?).map_err(|error| format!("{POLICY_FILE}: {error}"))?;
    let packages = packages(&read(LOCK_FILE)?);
    let licences = licences(&tree()?)?;
    let mut problems = check_packages(&packages, &policy);
    problems.extend(check_licences(&licences, &policy));
    for problem in &problems {
        println!("{problem}");
    }
    println!(
        "{} packages, {} of them built here; {} problems",
        packages.len(),
        licences.len(),
        problems.len()
    );
    Ok(problems.is_empty())
}

fn read(file: &str) -> Result<String, String> {
    let path = process::root().join(file);
    std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// One line per crate: its licence, `|`, its name and its version. Reads the network only if a crate of `Cargo.lock` has
/// never been downloaded, and then `cargo clippy` would have needed it too.
fn tree() -> Result<String, String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--workspace", "--edges", "normal,build,dev", "--prefix", "none"]);
    command.args(["--format", "{l}|{p}"]);
    process::answer(&mut command).ok_or_else(|| "'cargo tree --locked --workspace' fails".to_owned())
}

/// A package of `Cargo.lock`.
#[derive(PartialEq, Eq, Debug, Default)]
struct Package {
    name: String,
    version: String,
    /// `None` for our own crates.
    source: Option<String>,
}

fn packages(lock: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    for line in lock.lines() {
        if line == "[[package]]" {
            packages.push(Package::default());
        }
        let Some(package) = packages.last_mut() else { continue };
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let value = value.trim_matches('"').to_owned();
        match key {
            "name" => package.name = value,
            "version" => package.version = value,
            "source" => package.source = Some(value),
            _ => {}
        }
    }
    packages
}

/// Sources, banned crates, and crates in several versions.
fn check_packages(packages: &[Package], policy: &Policy) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut used_skips = BTreeSet::new();
    for Package { name, version, source } in packages {
        if source.as_ref().is_some_and(|source| source != CRATES_IO) {
            problems.push(format!("{name} {version} does not come from crates.io"));
        }
        if let Some(ban) = policy.bans.iter().find(|ban| ban.crates.matches(name, version)) {
            problems.push(format!("{name} {version} is banned: {}", ban.reason));
        }
        match policy.skips.iter().position(|skip| skip.crates.matches(name, version)) {
            Some(skip) => {
                used_skips.insert(skip);
            }
            None => versions.entry(name).or_default().push(version),
        }
    }
    for (name, versions) in versions {
        if versions.len() > 1 {
            let mut problem = format!("{name} is there in versions {}", versions.join(" and "));
            let _ =
                write!(problem, ": update one of them, or explain it under [[bans.skip]] in {POLICY_FILE}");
            problems.push(problem);
        }
    }
    for (at, skip) in policy.skips.iter().enumerate() {
        let is_alone = packages.iter().filter(|package| package.name == skip.crates.name).count() < 2;
        if is_alone || !used_skips.contains(&at) {
            problems.push(format!("{POLICY_FILE} explains a duplicate that is gone: {}", skip.crates));
        }
    }
    problems
}

/// Crate and licence, each crate once.
fn licences(tree: &str) -> Result<BTreeSet<(String, String)>, String> {
    let mut licences = BTreeSet::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (licence, package) = line.split_once('|').ok_or_else(|| format!("cannot read '{line}'"))?;
        let name = package.split(' ').next().unwrap_or(package);
        licences.insert((name.to_owned(), licence.to_owned()));
    }
    Ok(licences)
}

fn check_licences(licences: &BTreeSet<(String, String)>, policy: &Policy) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, licence) in licences {
        let exceptions = policy.exceptions.iter().filter(|exception| exception.name == *name);
        let allowed: Vec<&str> = exceptions
            .flat_map(|exception| &exception.allow)
            .chain(&policy.licences)
            .map(String::as_str)
            .collect();
        match licence::is_allowed(licence, &allowed) {
            Some(true) => {}
            Some(false) => problems.push(format!("{name} has a licence that is not allowed: {licence}")),
            None => problems.push(format!("{name} has a licence that cannot be read: '{licence}'")),
        }
    }
    for exception in &policy.exceptions {
        if !licences.iter().any(|(name, _)| *name == exception.name) {
            problems
                .push(format!("{POLICY_FILE} has an exception for a crate that is gone: {}", exception.name));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        [[licenses.exceptions]]
        crate = "copyleft"
        allow = ["MPL-2.0"]
        [[bans.deny]]
        crate = "openssl-sys"
        reason = "we have rustls"
        [[bans.skip]]
        crate = "twice@0.1"
        reason = "an old friend needs it"
    "#;

    fn lock(packages: &[(&str, &str)]) -> Vec<Package> {
        let text: String = packages
            .iter()
            .map(|(name, version)| {
                format!(
                    "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"{CRATES_IO}\"\n\n"
                )
            })
            .collect();
        super::packages(&format!("# Made by cargo.\nversion = 4\n\n{text}"))
    }

    fn check_lock(packages: &[(&str, &str)], parts: &[&str]) {
        let problems = check_packages(&lock(packages), &Policy::parse(POLICY).unwrap());
        assert_eq!(problems.len(), parts.len(), "{problems:?}");
        for (problem, part) in problems.iter().zip(parts) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn duplicates_are_explained_or_reported() {
        check_lock(&[("twice", "0.1.7"), ("twice", "0.2.0"), ("once", "1.0.0")], &[]);
        check_lock(
            &[("twice", "0.1.7"), ("twice", "0.2.0"), ("twice", "0.3.0")],
            &["twice is there in versions 0.2.0 and 0.3.0"],
        );
        check_lock(
            &[("twice", "0.1.7"), ("twice", "0.2.0"), ("other", "1.0.0"), ("other", "2.0.0")],
            &["other is there in versions 1.0.0 and 2.0.0"],
        );
    }

    #[test]
    fn an_explanation_must_go_with_its_duplicate() {
        check_lock(&[("twice", "0.2.0")], &["a duplicate that is gone: twice@0.1"]);
        check_lock(&[("twice", "0.1.0")], &["a duplicate that is gone: twice@0.1"]);
        check_lock(&[], &["a duplicate that is gone: twice@0.1"]);
    }

    #[test]
    fn banned_crates_and_foreign_sources_are_reported() {
        let duplicate = [("twice", "0.1.7"), ("twice", "0.2.0")];
        check_lock(&[&duplicate[..], &[("openssl-sys", "0.9.0")]].concat(), &["banned: we have rustls"]);
        let mut packages = lock(&duplicate);
        packages.push(Package { name: "ours".to_owned(), version: "0.1.0".to_owned(), source: None });
        packages.push(Package {
            name: "theirs".to_owned(),
            version: "0.1.0".to_owned(),
            source: Some("git+https://example.org/theirs".to_owned()),
        });
        let problems = check_packages(&packages, &Policy::parse(POLICY).unwrap());
        assert_eq!(problems, ["theirs 0.1.0 does not come from crates.io"]);
    }

    #[test]
    fn licences_are_allowed_for_all_or_for_one_crate() {
        let check = |tree: &str, expected: &[&str]| {
            let problems = check_licences(&licences(tree).unwrap(), &Policy::parse(POLICY).unwrap());
            assert_eq!(problems, expected, "{tree}");
        };
        let copyleft = "MPL-2.0+|copyleft v1.0.0\n";
        check(
            &format!("{copyleft}MIT|a v1.0.0\n\nMIT|a v1.0.0 (*)\nApache-2.0|b v1.0.0 (/some where)\n"),
            &[],
        );
        check(
            &format!("{copyleft}MPL-2.0|other v1.0.0\n|none v1.0.0\n"),
            &[
                "none has a licence that cannot be read: ''",
                "other has a licence that is not allowed: MPL-2.0",
            ],
        );
        check("MIT|a v1.0.0", &["deny.toml has an exception for a crate that is gone: copyleft"]);
        assert!(licences("a v1.0.0").is_err());
    }

    /// So that a mistake in the file is found by the tests of this crate, before the gate gets there.
    #[test]
    fn our_own_rules_can_be_read() {
        let policy = Policy::parse(&read(POLICY_FILE).unwrap()).unwrap();
        assert!(policy.licences.iter().any(|licence| licence == "MIT"));
        assert!(!policy.bans.is_empty());
    }
}
