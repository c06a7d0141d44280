//! `docs/conformance.md` as text. Pure: the same results give the same bytes, and no date is in them.

use std::fmt::Write;

use crate::areas;
use crate::cases::{self, Case, Outcome};
use crate::counts::Counts;
use crate::differences::{Comparison, Difference, Found, Verdict};

/// One suite's results.
pub struct Row {
    /// The name of the column by area: one word or two.
    pub name: &'static str,
    pub client: &'static str,
    pub version: String,
    /// What runs the client, with its version.
    pub runtime: String,
    pub cases: Vec<Case>,
    /// What failed besides cases: a runner that ended without saying why, a server that did not end well.
    pub failed_besides: u64,
}

impl Row {
    pub fn counts(&self) -> Counts {
        let mut counts = cases::counts(&self.cases);
        counts.failed += self.failed_besides;
        counts
    }
}

const HEAD: &str = "\
# Conformance

`cargo xtask conformance` writes this page; do not edit it. Each suite runs the unmodified client from its package
registry, at the version pinned in `tests/sdk`, against the release binary on a free port. The raw HTTP suites are
`crates/server/tests/it` for tables, `crates/server/tests/queue` for queues and `crates/server/tests/blob` for blobs, over real
sockets. A *behaviour* is a test that passed. A test that runs with several values, or with both Python clients (synchronous and asynchronous), is one
behaviour and several cases. An *older* client is one that its maker no longer develops.

## By client
";

const BY_AREA: &str = "
## By area

The number of cases that passed. If some did not, the cell also says how many failed or were skipped. An empty cell
means that the client has no such tests.

";

const AZURITE: &str = "
`cargo xtask conformance --against azurite` sends the same tests to Azurite from npm, one at a time, in its strict mode.
Some tests are not comparable: those that need a server set up for them (a stopped clock, other accounts, smaller limits,
a restart), those that test the test data itself, and the golden exchanges, which `cargo xtask golden --endpoint URL`
sends to any server.
";

const DIFFERENCES: &str = "
### Each difference

One line for each test that Azurite does not pass: which server is right, according to which section of the protocol
reference, and why. A test checks several things; the line names the first one that Azurite fails, or the whole group if
they are of one kind.

";

pub fn write(rows: &[Row], raw: &[Case], comparison: &Comparison, differences: &[Difference]) -> String {
    let mut text = format!("{HEAD}\n{}{BY_AREA}{}", summary(rows), by_area(rows));
    let _ = write!(text, "\n## The raw HTTP suites against Azurite {}\n{AZURITE}\n", comparison.version);
    text.push_str(&beside_azurite(raw, comparison));
    let known = |case: &&Case| comparison.tests.contains_key(&full_name(case));
    let newer = raw.len() - raw.iter().filter(known).count();
    if newer > 0 {
        let _ = writeln!(text, "\nTests newer than the comparison: {newer}.");
    }
    text.push_str(DIFFERENCES);
    let mut shown = differences.to_vec();
    shown.retain(|line| comparison.tests.get(&line.test) == Some(&Found::Different));
    let count = |verdict| shown.iter().filter(|line| line.verdict == verdict).count();
    let _ = writeln!(
        text,
        "The reference agrees with Lazulite in {} of them, with Azurite in {}, and leaves {} open.\n",
        count(Verdict::Lazulite),
        count(Verdict::Azurite),
        count(Verdict::Either)
    );
    text.push_str(&explanations(&shown));
    text
}

/// The table by client, also for the terminal.
pub fn summary(rows: &[Row]) -> String {
    let head = ["Client", "Version", "Run by", "Behaviours", "Cases", "Passed", "Failed", "Skipped"];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        let Counts { passed, failed, skipped } = row.counts();
        lines.push([
            row.client.to_owned(),
            row.version.clone(),
            row.runtime.clone(),
            cases::behaviours(&row.cases).to_string(),
            row.cases.len().to_string(),
            passed.to_string(),
            failed.to_string(),
            skipped.to_string(),
        ]);
    }
    table(&lines, 3)
}

/// The table by area, also for the terminal.
pub fn by_area(rows: &[Row]) -> String {
    let titles = rows.iter().flat_map(|row| row.cases.iter().map(|case| areas::title(&case.area)));
    let mut lines = vec![vec!["Area".to_owned()]];
    lines[0].extend(rows.iter().map(|row| row.name.to_owned()));
    for title in areas::in_order(titles) {
        let mut line = vec![title.clone()];
        line.extend(rows.iter().map(|row| cell(&row.cases, &title)));
        lines.push(line);
    }
    let mut all = vec!["All".to_owned()];
    all.extend(rows.iter().map(|row| in_words(row.counts())));
    lines.push(all);
    table(&lines, 1)
}

fn cell(all: &[Case], title: &str) -> String {
    let own: Vec<Case> = all.iter().filter(|case| areas::title(&case.area) == title).cloned().collect();
    if own.is_empty() { String::new() } else { in_words(cases::counts(&own)) }
}

fn in_words(Counts { passed, failed, skipped }: Counts) -> String {
    let mut text = passed.to_string();
    for (count, word) in [(failed, "failed"), (skipped, "skipped")] {
        if count > 0 {
            let _ = write!(text, ", {count} {word}");
        }
    }
    text
}

fn beside_azurite(raw: &[Case], comparison: &Comparison) -> String {
    let head = ["Area", "Lazulite", "Azurite", "Different", "Not comparable"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let mut totals = [0; 4];
    for title in areas::in_order(raw.iter().map(|case| areas::title(&case.area))) {
        let is_here = |area: &str| areas::title(area) == title;
        let passed = raw.iter().filter(|case| case.outcome == Outcome::Passed && is_here(&case.area)).count();
        let of_test = |test: &str| is_here(test.split("::").next().unwrap_or_default());
        let count = |found| comparison.count(of_test, found);
        let numbers = [passed, count(Found::Same), count(Found::Different), count(Found::NotComparable)];
        for (total, number) in totals.iter_mut().zip(numbers) {
            *total += number;
        }
        let mut line = vec![title.clone()];
        line.extend(numbers.map(|number| number.to_string()));
        lines.push(line);
    }
    let mut last = vec!["All".to_owned()];
    last.extend(totals.map(|number| number.to_string()));
    lines.push(last);
    table(&lines, 1)
}

fn full_name(case: &Case) -> String {
    format!("{}::{}", case.area, case.name)
}

fn explanations(differences: &[Difference]) -> String {
    let mut lines = vec![["Test", "Who is right", "Section", "Why"].map(str::to_owned)];
    for Difference { test, verdict, section, why } in differences {
        let who = match verdict {
            Verdict::Lazulite => "Lazulite",
            Verdict::Azurite => "Azurite",
            Verdict::Either => "open",
        };
        lines.push([format!("`{test}`"), who.to_owned(), section.clone(), why.clone()]);
    }
    table(&lines, 4)
}

/// A table in Markdown; columns from `numbers_from` on are numbers.
fn table(lines: &[impl AsRef<[String]>], numbers_from: usize) -> String {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.as_ref().iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if n == 0 {
            let rule = |column| if column < numbers_from { "---" } else { "---:" };
            let rules: Vec<&str> = (0..cells.len()).map(rule).collect();
            let _ = writeln!(text, "| {} |", rules.join(" | "));
        }
    }
    text
}

/// The first thing that looks like a version: digits, dots, digits.
pub fn first_version(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches('.'));
    words.filter(|word| word.contains('.')).map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(name: &'static str, client: &'static str, cases: &[(&str, &str, Outcome)]) -> Row {
        let cases = cases.iter().map(|(area, name, outcome)| Case::new(area, name, *outcome)).collect();
        Row { name, client, version: "1.2".to_owned(), runtime: "x 3".to_owned(), cases, failed_besides: 0 }
    }

    fn rows() -> Vec<Row> {
        use Outcome::{Failed, Passed, Skipped};
        let raw = [("traps_keys", "a", Passed), ("keys", "b", Passed), ("sas", "c", Passed)];
        let python = [("keys", "a[sync]", Passed), ("keys", "a[aio]", Failed), ("keys", "d", Skipped)];
        vec![row("Raw HTTP", "raw HTTP", &raw), row("Python", "Python `y`", &python)]
    }

    #[test]
    fn the_summary_counts_behaviours_and_cases() {
        let mut rows = rows();
        rows[1].failed_besides = 1;
        let expected = "\
| Client | Version | Run by | Behaviours | Cases | Passed | Failed | Skipped |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
| raw HTTP | 1.2 | x 3 | 3 | 3 | 3 | 0 | 0 |
| Python `y` | 1.2 | x 3 | 1 | 3 | 1 | 2 | 1 |
";
        assert_eq!(summary(&rows), expected);
    }

    #[test]
    fn modules_of_one_area_are_added_up() {
        let expected = "\
| Area | Raw HTTP | Python |
| --- | ---: | ---: |
| Keys | 2 | 1, 1 failed, 1 skipped |
| Shared access signatures | 1 |  |
| All | 3 | 1, 1 failed, 1 skipped |
";
        assert_eq!(by_area(&rows()), expected);
    }

    #[test]
    fn the_document_has_azurite_beside_ours_and_explains() {
        let tests = [("traps_keys::a", Found::Same), ("keys::b", Found::Different)];
        let tests = BTreeMap::from(tests.map(|(test, found)| (test.to_owned(), found)));
        let comparison = Comparison { version: "3.0".to_owned(), tests };
        let line = |test: &str| Difference {
            test: test.to_owned(),
            verdict: Verdict::Lazulite,
            section: "§4.5".to_owned(),
            why: "a | b".to_owned(),
        };
        let rows = rows();
        let text = write(&rows, &rows[0].cases, &comparison, &[line("keys::b"), line("keys::gone")]);
        assert!(text.contains("against Azurite 3.0\n"), "{text}");
        assert!(text.contains("| Keys | 2 | 1 | 1 | 0 |\n| Shared access signatures | 1 | 0 | 0 | 0 |\n"));
        assert!(text.contains("| All | 3 | 1 | 1 | 0 |\n\nTests newer than the comparison: 1.\n"), "{text}");
        assert!(text.contains("with Lazulite in 1 of them, with Azurite in 0, and leaves 0 open"), "{text}");
        assert!(text.contains("| `keys::b` | Lazulite | §4.5 | a \\| b |\n"), "{text}");
        assert!(!text.contains("keys::gone"));
    }

    #[test]
    fn versions_are_found() {
        assert_eq!(first_version("\": \"13.3.2\","), Some("13.3.2".to_owned()));
        assert_eq!(first_version("\n <version>12.5.9</version>"), Some("12.5.9".to_owned()));
        assert_eq!(first_version("none"), None);
    }
}
