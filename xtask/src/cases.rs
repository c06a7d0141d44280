//! Test cases read from the output of test runners: an area, a name and an outcome each.
//!
//! The area is the subject that a test file or module is named after (`entities`, `paging`); it is the same word in
//! every suite. Output that cannot be read gives no cases; then the caller judges by the exit status.

use std::collections::{BTreeMap, BTreeSet};

use crate::counts::Counts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub area: String,
    pub name: String,
    pub outcome: Outcome,
}

impl Case {
    pub fn new(area: &str, name: &str, outcome: Outcome) -> Case {
        Case { area: area.to_owned(), name: name.to_owned(), outcome }
    }

    /// The test behind this case: its name without the values that the runner added.
    fn behaviour(&self) -> &str {
        // pytest writes `name[values]`, surefire `name(Type)[1]`, Go `TestName/part`; a name in words has no values.
        let is_word = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
        let end = self.name.find(['[', '(', '{', '/']).unwrap_or(self.name.len());
        if is_word(&self.name[..end]) { &self.name[..end] } else { &self.name }
    }
}

pub fn counts(cases: &[Case]) -> Counts {
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count() as u64;
    Counts {
        passed: count(Outcome::Passed),
        failed: count(Outcome::Failed),
        skipped: count(Outcome::Skipped),
    }
}

/// The number of tests that passed, each counted once, however many values or client flavours it ran with.
pub fn behaviours(cases: &[Case]) -> usize {
    let passed = cases.iter().filter(|case| case.outcome == Outcome::Passed);
    passed.map(|case| (case.area.as_str(), case.behaviour())).collect::<BTreeSet<_>>().len()
}

/// The lines of `cargo test`: `test paging::pages_of_1000 ... ok`. The area is the first module.
pub fn from_cargo_test(output: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in output.lines() {
        let Some((path, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            continue;
        };
        let path = path.strip_suffix(" - should panic").unwrap_or(path);
        let outcome = match result {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed,
            ignored if ignored.starts_with("ignored") => Outcome::Skipped,
            _ => continue,
        };
        let (area, name) = path.split_once("::").unwrap_or(("tests", path));
        cases.push(Case::new(area, name, outcome));
    }
    cases
}

/// The `--- PASS: TestName/part (0.00s)` lines of `go test -v`. `areas` gives the area of each test function. Of a test
/// with parts, only the parts count.
pub fn from_go_test(output: &str, areas: &BTreeMap<String, String>) -> Vec<Case> {
    let mut found: BTreeMap<&str, Outcome> = BTreeMap::new();
    for line in output.lines() {
        let line = line.trim_start();
        for (start, outcome) in [
            ("--- PASS: ", Outcome::Passed),
            ("--- FAIL: ", Outcome::Failed),
            ("--- SKIP: ", Outcome::Skipped),
        ] {
            if let Some((name, _)) = line.strip_prefix(start).and_then(|rest| rest.rsplit_once(" (")) {
                found.insert(name, outcome);
            }
        }
    }
    let parents: BTreeSet<&str> =
        found.keys().filter_map(|name| name.split_once('/').map(|(parent, _)| parent)).collect();
    let leaves = found.iter().filter(|(name, _)| !parents.contains(*name));
    let area = |name: &str| areas.get(name.split('/').next().unwrap_or(name)).map_or("tests", String::as_str);
    leaves.map(|(name, outcome)| Case::new(area(name), name, *outcome)).collect()
}

/// The area of each test function of a Go file called `AREA_test.go`.
pub fn go_areas(file: &str, source: &str) -> Vec<(String, String)> {
    let area = file.strip_suffix("_test.go").unwrap_or(file);
    let functions = source.lines().filter_map(|line| line.strip_prefix("func Test")?.split_once('('));
    functions.map(|(name, _)| (format!("Test{name}"), area.to_owned())).collect()
}

/// A JUnit report, as pytest and surefire write it. The area is in the class: `test_paging` or `sdk.PagingTest`.
pub fn from_junit(report: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for piece in report.split("<testcase ").skip(1) {
        // Everything up to the next case, or the end of the report, belongs to this case.
        let Some((attributes, rest)) = piece.split_once('>') else { continue };
        let (Some(class), Some(name)) = (attribute(attributes, "classname"), attribute(attributes, "name"))
        else {
            continue;
        };
        let inside = if attributes.ends_with('/') { "" } else { rest };
        let outcome = if inside.contains("<failure") || inside.contains("<error") {
            Outcome::Failed
        } else if inside.contains("<skipped") {
            Outcome::Skipped
        } else {
            Outcome::Passed
        };
        cases.push(Case::new(&area_of_class(&class), &name, outcome));
    }
    cases
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    // Runners escape `>` and quotes in attributes, so the first quote ends the value.
    let start = format!("{name}=\"");
    let at = attributes.match_indices(&start).find(|(at, _)| {
        *at == 0 || attributes[..*at].ends_with(|before: char| before.is_ascii_whitespace())
    })?;
    let value = &attributes[at.0 + start.len()..];
    Some(value[..value.find('"')?].to_owned())
}

fn area_of_class(class: &str) -> String {
    let last = class.rsplit('.').next().unwrap_or(class);
    let area = last.strip_prefix("test_").or_else(|| last.strip_suffix("Test")).unwrap_or(last);
    // Java's `QueueSas` is the same area as `queue_sas` of the other suites.
    let mut words = String::new();
    for letter in area.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// The lines of our reporter for `node --test`: outcome, area and name, separated by tabs.
pub fn from_node_reporter(report: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in report.lines() {
        let mut fields = line.splitn(3, '\t');
        let (Some(outcome), Some(area), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let outcome = match outcome {
            "passed" => Outcome::Passed,
            "skipped" => Outcome::Skipped,
            _ => Outcome::Failed,
        };
        cases.push(Case::new(area, name, outcome));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(area: &str, name: &str, outcome: Outcome) -> Case {
        Case::new(area, name, outcome)
    }

    #[test]
    fn a_behaviour_seen_with_many_values_is_one() {
        let names = [
            "a[sync]",
            "a[aio-1]",
            "b(String)[2]",
            "TestC/one",
            "TestC/two",
            "a key with '/' in it",
            "a key",
        ];
        let mut cases: Vec<Case> = names.iter().map(|name| case("keys", name, Outcome::Passed)).collect();
        assert_eq!(behaviours(&cases), 5);
        cases.push(case("paging", "a[sync]", Outcome::Passed));
        cases.push(case("paging", "b", Outcome::Failed));
        assert_eq!(behaviours(&cases), 6);
    }

    #[test]
    fn cargo_test_lines_are_read() {
        let output = "running 3 tests\ntest paging::a ... ok\ntest keys::b::c ... FAILED\n\
            test keys::d ... ignored, slow\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let expected = [
            case("paging", "a", Outcome::Passed),
            case("keys", "b::c", Outcome::Failed),
            case("keys", "d", Outcome::Skipped),
        ];
        assert_eq!(from_cargo_test(output), expected);
    }

    #[test]
    fn go_tests_with_parts_are_counted_by_their_parts() {
        let areas = go_areas("keys_test.go", "package sdk\nfunc TestA(t *testing.T) {\nfunc helper() {\n");
        let areas: BTreeMap<_, _> = areas.into_iter().collect();
        let output = "=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/one_(x) (0.00s)\n    \
            --- FAIL: TestA/two (0.01s)\n--- PASS: TestB (0.00s)\nok\n";
        let expected = [
            case("keys", "TestA/one_(x)", Outcome::Passed),
            case("keys", "TestA/two", Outcome::Failed),
            case("tests", "TestB", Outcome::Passed),
        ];
        assert_eq!(from_go_test(output, &areas), expected);
    }

    #[test]
    fn junit_reports_are_read() {
        let report = "<testsuite name=\"x\"><testcase classname=\"test_keys\" name=\"a[sync]\" time=\"0\" />\
            <testcase name=\"b\" classname=\"sdk.PagingTest\"><failure message=\"&lt;\">text</failure></testcase>\
            <testcase classname=\"test_keys\" name=\"c\"><skipped/></testcase>\
            <testcase classname=\"sdk.QueueSasTest\" name=\"d\"/></testsuite>";
        let expected = [
            case("keys", "a[sync]", Outcome::Passed),
            case("paging", "b", Outcome::Failed),
            case("keys", "c", Outcome::Skipped),
            case("queue_sas", "d", Outcome::Passed),
        ];
        assert_eq!(from_junit(report), expected);
    }

    #[test]
    fn the_node_reporter_is_read() {
        let report = "passed\tkeys\tthe key \"a\tb\"\nfailed\tpaging\tx\n";
        let expected =
            [case("keys", "the key \"a\tb\"", Outcome::Passed), case("paging", "x", Outcome::Failed)];
        assert_eq!(from_node_reporter(report), expected);
    }
}
