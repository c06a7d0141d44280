//! The budgets: what each path may cost, one line per path in `budgets.txt`.
//!
//! Promises: written budgets read back the same. Leaves to others: the measuring.

use std::path::PathBuf;

use crate::paths;

/// How far a count may be above its budget before it fails, or below before it is reported.
const SLACK_PERCENT: u64 = 10;

/// What the advisor may add to a point read.
const ADVISOR_PERCENT_MAX: f64 = 2.0;

const HEAD: &str = "\
# What one request may cost: path, instructions (x86-64, release build), allocations.
# Written by `cargo xtask cost --write`; the instructions hold for the toolchain that counted them.
";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// `None` where instructions cannot be counted.
    pub instructions: Option<u64>,
    pub allocations: u64,
}

#[derive(Default, PartialEq, Debug)]
pub struct Budgets(Vec<(String, Cost)>);

#[derive(PartialEq, Debug)]
pub enum Verdict {
    Within,
    Above(String),
    Below(String),
    Skipped,
}

impl Budgets {
    pub fn read() -> Result<Budgets, String> {
        let file = file();
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Budgets::parse(&text)
    }

    fn parse(text: &str) -> Result<Budgets, String> {
        let mut budgets = Budgets::default();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let cost = match words[..] {
                [name, instructions, allocations] => {
                    let instructions = match instructions {
                        "-" => Some(None),
                        number => number.parse().ok().map(Some),
                    };
                    instructions.zip(allocations.parse().ok()).map(|(instructions, allocations)| {
                        (name.to_owned(), Cost { instructions, allocations })
                    })
                }
                _ => None,
            };
            budgets.0.push(cost.ok_or_else(|| format!("not a budget: '{line}'"))?);
        }
        Ok(budgets)
    }

    pub fn of(&self, path: &str) -> Option<Cost> {
        self.0.iter().find(|(name, _)| name == path).map(|(_, cost)| *cost)
    }

    pub fn put(&mut self, path: &str, cost: Cost) {
        self.0.push((path.to_owned(), cost));
    }

    pub fn write(&self) -> Result<(), String> {
        let file = file();
        std::fs::write(&file, self.text())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, cost) in &self.0 {
            let instructions = cost.instructions.map_or_else(|| "-".to_owned(), |count| count.to_string());
            text.push_str(&format!("{name:<22} {instructions:>10} {:>6}\n", cost.allocations));
        }
        text
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("budgets.txt")
}

/// Two verdicts: on the instructions and on the allocations.
pub fn judge(cost: Cost, budget: Option<Cost>) -> [(&'static str, Verdict); 2] {
    let Some(budget) = budget else {
        let none = || Verdict::Above("no budget for".to_owned());
        return [("instructions", none()), ("allocations", none())];
    };
    let instructions = match (cost.instructions, budget.instructions) {
        (Some(count), Some(budget)) => judge_count(count, budget, budget * SLACK_PERCENT / 100),
        _ => Verdict::Skipped,
    };
    let allocations =
        judge_count(cost.allocations, budget.allocations, budget.allocations * SLACK_PERCENT / 100);
    [("instructions", instructions), ("allocations", allocations)]
}

/// What the advisor adds to a point read, and whether it may. `None` when not both were measured.
pub fn judge_advisor(measured: &Budgets) -> Option<(String, bool)> {
    let instructions = |path| measured.of(path).and_then(|cost| cost.instructions);
    let (with, without) = (instructions(paths::ADVISED)?, instructions(paths::UNADVISED)?);
    let percent = (with as f64 / without.max(1) as f64 - 1.0) * 100.0;
    let is_within = percent < ADVISOR_PERCENT_MAX;
    let word = if is_within { "" } else { "TOO EXPENSIVE: " };
    let note =
        format!("{word}the advisor adds {percent:.1} % to a point read (less than {ADVISOR_PERCENT_MAX} %)");
    Some((note, is_within))
}

fn judge_count(count: u64, budget: u64, slack: u64) -> Verdict {
    let note = || {
        let percent = (count as f64 / budget.max(1) as f64 - 1.0) * 100.0;
        format!("{count} instead of {budget} ({percent:+.1} %)")
    };
    if count > budget + slack {
        Verdict::Above(note())
    } else if count + slack < budget {
        Verdict::Below(note())
    } else {
        Verdict::Within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(instructions: u64, allocations: u64) -> Cost {
        Cost { instructions: Some(instructions), allocations }
    }

    #[test]
    fn what_is_a_tenth_above_its_budget_still_passes() {
        let verdicts = |found: Cost, budget: Cost| judge(found, Some(budget)).map(|(_, verdict)| verdict);
        assert_eq!(verdicts(cost(1100, 22), cost(1000, 20)), [Verdict::Within, Verdict::Within]);
        let [dear, many] = verdicts(cost(1101, 23), cost(1000, 20));
        assert_eq!(dear, Verdict::Above("1101 instead of 1000 (+10.1 %)".to_owned()));
        assert!(matches!(many, Verdict::Above(_)));
        let [cheap, few] = verdicts(cost(899, 17), cost(1000, 20));
        assert!(matches!((cheap, few), (Verdict::Below(_), Verdict::Below(_))));
        let uncounted = Cost { instructions: None, allocations: 20 };
        assert_eq!(verdicts(uncounted, cost(1000, 20)), [Verdict::Skipped, Verdict::Within]);
        assert!(judge(cost(1, 1), None).iter().all(|(_, verdict)| matches!(verdict, Verdict::Above(_))));
    }

    #[test]
    fn budgets_are_read_as_they_are_written() {
        let budgets = Budgets(vec![
            ("a-path".to_owned(), cost(12_345, 6)),
            ("b".to_owned(), Cost { instructions: None, allocations: 0 }),
        ]);
        assert_eq!(Budgets::parse(&budgets.text()), Ok(budgets));
        assert!(Budgets::parse("a-path 5").is_err());
    }

    #[test]
    fn every_path_has_a_budget_and_every_budget_a_path() {
        let budgets = Budgets::read().unwrap();
        let names: Vec<&str> = budgets.0.iter().map(|(name, _)| name.as_str()).collect();
        let paths: Vec<&str> = crate::paths::ALL.iter().map(|path| path.name).collect();
        assert_eq!(names, paths);
    }

    #[test]
    fn the_advisor_is_judged_by_what_it_adds() {
        let judged = |with: u64| {
            let mut measured = Budgets::default();
            measured.put(paths::ADVISED, cost(with, 1));
            measured.put(paths::UNADVISED, cost(10_000, 1));
            judge_advisor(&measured).map(|(_, is_within)| is_within)
        };
        assert_eq!(judged(10_199), Some(true));
        assert_eq!(judged(10_201), Some(false));
        assert_eq!(judge_advisor(&Budgets::default()), None);
    }
}
