//! Where Azurite differs: the results of the last comparison, and an explanation for each difference.
//!
//! Both are files in `tests/sdk/azurite`. `cargo xtask conformance --against azurite` writes `results.txt`: Azurite's
//! version, then each test of the raw HTTP suite with its result. People write `differences.txt`: for each test that
//! differs one line, with who is right, by which section of the protocol reference, and why. [`Comparison::check`]
//! makes sure that every difference has its line.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::suites;

/// The result of one test against Azurite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Same,
    Different,
    /// It needs a server with a clock, accounts or limits of its own, or asks no server at all.
    NotComparable,
}

const WORDS: [(Found, &str); 3] =
    [(Found::Same, "same"), (Found::Different, "different"), (Found::NotComparable, "not comparable")];

/// The results of one run, by test, as `module::name`.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparison {
    pub version: String,
    pub tests: BTreeMap<String, Found>,
}

const HEAD: &str = "\
# The raw HTTP suites against Azurite. Written by `cargo xtask conformance --against azurite`; not edited by hand.
";

impl Comparison {
    pub fn read() -> Result<Comparison, String> {
        Comparison::parse(&suites::read(&results_path())?)
    }

    fn parse(text: &str) -> Result<Comparison, String> {
        let mut lines = lines(text);
        let version = lines.next().and_then(|line| line.strip_prefix("Azurite "));
        let version = version.ok_or("the results do not begin with Azurite's version")?.to_owned();
        let mut tests = BTreeMap::new();
        for line in lines {
            let (test, word) = line.split_once(" | ").ok_or_else(|| format!("not a result: '{line}'"))?;
            let found = WORDS.iter().find(|(_, known)| *known == word);
            let (found, _) = found.ok_or_else(|| format!("not a result: '{line}'"))?;
            tests.insert(test.to_owned(), *found);
        }
        Ok(Comparison { version, tests })
    }

    pub fn write(&self) -> Result<(), String> {
        let path = results_path();
        std::fs::write(&path, self.to_text())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn to_text(&self) -> String {
        let mut text = format!("{HEAD}Azurite {}\n", self.version);
        for (test, found) in &self.tests {
            let word = WORDS.iter().find(|(known, _)| known == found).map_or("", |(_, word)| word);
            let _ = writeln!(text, "{test} | {word}");
        }
        text
    }

    /// The number of counted tests with this result.
    pub fn count(&self, is_counted: impl Fn(&str) -> bool, found: Found) -> usize {
        self.tests.iter().filter(|(test, what)| **what == found && is_counted(test)).count()
    }

    /// Prints differences without an explanation, and explanations without a difference. `true` when every difference
    /// is explained.
    pub fn check(&self, explained: &[Difference]) -> bool {
        let is_different = |test: &str| self.tests.get(test) == Some(&Found::Different);
        for Difference { test, .. } in explained.iter().filter(|line| !is_different(&line.test)) {
            println!("differences.txt explains {test}, which does not differ (any more)");
        }
        let is_explained = |test: &str| explained.iter().any(|line| line.test == test);
        let mut is_good = true;
        for (test, _) in self.tests.iter().filter(|(test, _)| is_different(test) && !is_explained(test)) {
            println!("differences.txt does not explain {test}");
            is_good = false;
        }
        is_good
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Lazulite,
    Azurite,
    /// The reference leaves it open.
    Either,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub test: String,
    pub verdict: Verdict,
    pub section: String,
    pub why: String,
}

impl Difference {
    /// All of the raw HTTP suites, in the order of their tests.
    pub fn read_all() -> Result<Vec<Difference>, String> {
        Difference::read_file(&suites::tests("azurite").join("differences.txt"))
    }

    /// All of a file, in the order of their tests.
    pub fn read_file(path: &Path) -> Result<Vec<Difference>, String> {
        let text = suites::read(path)?;
        let mut found = lines(&text).map(Difference::parse).collect::<Result<Vec<_>, _>>()?;
        found.sort_by(|a, b| a.test.cmp(&b.test));
        Ok(found)
    }

    /// `test | who is right | section | why`.
    fn parse(line: &str) -> Result<Difference, String> {
        let fields: Vec<&str> = line.splitn(4, '|').map(str::trim).collect();
        let (test, verdict, section, why) = match fields[..] {
            [test, "Lazulite", section, why] => (test, Verdict::Lazulite, section, why),
            [test, "Azurite", section, why] => (test, Verdict::Azurite, section, why),
            [test, "either", section, why] => (test, Verdict::Either, section, why),
            _ => return Err(format!("not an explanation: '{line}'")),
        };
        if !section.starts_with('§') || why.is_empty() {
            return Err(format!("an explanation without section or reason: '{line}'"));
        }
        Ok(Difference { test: test.to_owned(), verdict, section: section.to_owned(), why: why.to_owned() })
    }
}

fn results_path() -> PathBuf {
    suites::tests("azurite").join("results.txt")
}

/// The lines that are neither blank nor comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULTS: &str = "\
# comment
Azurite 3.0.1
keys::a | same
keys::b | different
sas::c | not comparable
";

    fn explained(lines: &[&str]) -> Vec<Difference> {
        lines.iter().map(|line| Difference::parse(line).unwrap()).collect()
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let read = Comparison::parse(RESULTS).unwrap();
        assert_eq!((read.version.as_str(), read.tests.len()), ("3.0.1", 3));
        assert_eq!(read.tests["sas::c"], Found::NotComparable);
        assert_eq!(read.count(|test| test.starts_with("keys::"), Found::Different), 1);
        assert_eq!(Comparison::parse(&read.to_text()), Ok(read));
    }

    #[test]
    fn results_that_make_no_sense_are_refused() {
        assert!(Comparison::parse("keys::a | same\n").is_err());
        assert!(Comparison::parse("Azurite 3\nkeys::a | perhaps\n").is_err());
        assert!(Comparison::parse("Azurite 3\nkeys::a\n").is_err());
    }

    #[test]
    fn every_difference_must_be_explained() {
        let comparison = Comparison::parse(RESULTS).unwrap();
        let line = "keys::b | Lazulite | §1.3 | because | of this";
        assert!(comparison.check(&explained(&[line])));
        assert!(!comparison.check(&[]));
        // An explanation without a difference is printed but is no failure: the next run may find the difference again.
        assert!(comparison.check(&explained(&[line, "keys::a | either | §2 | no longer"])));
    }

    #[test]
    fn an_explanation_has_its_four_fields() {
        let read = &explained(&["keys::b | either | §1.3, §2 | because | of this"])[0];
        assert_eq!((read.verdict, read.section.as_str()), (Verdict::Either, "§1.3, §2"));
        assert_eq!(read.why, "because | of this");
        for line in
            ["a::b | perhaps | §1 | x", "a::b | either | §1", "a::b | either | x | y", "a::b | either | §1 |"]
        {
            assert!(Difference::parse(line).is_err(), "{line}");
        }
    }
}
