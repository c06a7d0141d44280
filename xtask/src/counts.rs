//! Counts of test cases that passed, failed or were skipped.
//!
//! Promises: a run that failed or ran nothing never counts as a success, even when its output names no failed case.

use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Counts {
    pub const ONE_PASSED: Counts = Counts { passed: 1, failed: 0, skipped: 0 };
    pub const ONE_FAILED: Counts = Counts { passed: 0, failed: 1, skipped: 0 };
    pub const ONE_SKIPPED: Counts = Counts { passed: 0, failed: 0, skipped: 1 };

    /// The counts of a finished runner. A runner that failed without naming a failed case, or that ran no case at all,
    /// counts as one failure.
    pub fn of_run(self, succeeded: bool) -> Counts {
        let total = self.passed + self.failed + self.skipped;
        let unexplained = (!succeeded && self.failed == 0) || total == 0;
        Counts { failed: self.failed + u64::from(unexplained), ..self }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Adds up the `test result: ok. 3 passed; 0 failed; 1 ignored; …` lines of `cargo test`.
pub fn from_cargo_test(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines().filter(|line| line.starts_with("test result:")) {
        counts.passed += number_before(line, "passed");
        counts.failed += number_before(line, "failed");
        counts.skipped += number_before(line, "ignored");
    }
    counts
}

/// The number in front of `word`, as in `12 passed`; 0 when the word is not there.
fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    words.windows(2).filter(|pair| pair[1] == word).find_map(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts { passed, failed, skipped }
    }

    #[test]
    fn cargo_test_results_are_added_up() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        assert_eq!(from_cargo_test(output), counts(7, 2, 1));
    }

    #[test]
    fn a_runner_that_says_nothing_has_failed() {
        assert_eq!(Counts::default().of_run(true), Counts::ONE_FAILED);
        assert_eq!(counts(3, 0, 0).of_run(false), counts(3, 1, 0));
        assert_eq!(counts(3, 2, 0).of_run(false), counts(3, 2, 0));
        assert_eq!(counts(3, 0, 1).of_run(true), counts(3, 0, 1));
    }
}
