//! `cargo xtask client --against azurite`: the client's suites must pass against Azurite too, where Azurite is right.
//!
//! `crates/client/tests/azurite.txt` lists the tests that Azurite fails: for each one line, with who is right, by which
//! section of the protocol reference, and why. Promises: a test that fails and is not listed is an error, and so is one
//! that is listed and passes, so the list cannot hide what the client gets wrong.

use crate::azurite;
use crate::counts::Counts;
use crate::differences::{Comparison, Difference, Found};
use crate::process;
use crate::toolchains::Missing;

const HELP: &str = "\
Usage: cargo xtask client --against azurite

Runs the client's suites against Azurite, test by test. Tests that need a server of their own are not compared. The
tests that fail must be those of crates/client/tests/azurite.txt.
";

pub fn run(arguments: &[String]) -> Result<bool, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--help" | "-h"] => {
            print!("{HELP}");
            Ok(true)
        }
        ["--against", "azurite"] | ["--against=azurite"] => match check()? {
            Ok(counts) => Ok(counts.failed == 0),
            Err(missing) => {
                println!("SKIPPED: {missing}");
                Ok(true)
            }
        },
        _ => Err(format!("unknown arguments\n\n{HELP}")),
    }
}

/// Runs the suites and prints what is not as the list says. A test passes when its result is as expected; one that
/// cannot be compared counts as neither.
pub fn check() -> Result<Result<Counts, Missing>, String> {
    let path = process::root().join("crates").join("client").join("tests").join("azurite.txt");
    let listed = Difference::read_file(&path)?;
    let comparison = match azurite::compare(&azurite::CLIENT)? {
        Ok(comparison) => comparison,
        Err(missing) => return Ok(Err(missing)),
    };
    for problem in problems(&comparison, &listed) {
        println!("{problem}");
    }
    let count = |found| comparison.count(|_| true, found);
    println!(
        "Azurite {}: {} tests pass, {} differ, {} are not comparable",
        comparison.version,
        count(Found::Same),
        count(Found::Different),
        count(Found::NotComparable)
    );
    let compared = (count(Found::Same) + count(Found::Different)) as u64;
    let failed = problems(&comparison, &listed).len() as u64;
    Ok(Ok(Counts { passed: compared.saturating_sub(failed), failed, skipped: 0 }.of_run(failed == 0)))
}

/// Where the results and the list disagree.
fn problems(comparison: &Comparison, listed: &[Difference]) -> Vec<String> {
    let is_different = |test: &str| comparison.tests.get(test) == Some(&Found::Different);
    let is_listed = |test: &str| listed.iter().any(|line| line.test == test);
    let stale = listed.iter().filter(|line| !is_different(&line.test));
    let stale = stale.map(|line| format!("azurite.txt lists {}, which does not fail (any more)", line.test));
    let new = comparison.tests.keys().filter(|test| is_different(test) && !is_listed(test));
    let new = new.map(|test| format!("{test} fails against Azurite, and azurite.txt does not list it"));
    stale.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differences::Verdict;

    fn comparison(tests: &[(&str, Found)]) -> Comparison {
        let tests = tests.iter().map(|(test, found)| ((*test).to_owned(), *found)).collect();
        Comparison { version: "3.0.1".to_owned(), tests }
    }

    fn listed(test: &str) -> Difference {
        let (section, why) = ("§1".to_owned(), "Because.".to_owned());
        Difference { test: test.to_owned(), verdict: Verdict::Lazulite, section, why }
    }

    #[test]
    fn the_list_says_exactly_what_differs() {
        let found = comparison(&[("a", Found::Same), ("b", Found::Different), ("c", Found::NotComparable)]);
        assert!(problems(&found, &[listed("b")]).is_empty());
        assert_eq!(problems(&found, &[]).len(), 1);
        // A test that passes, one that is not comparable, and one that does not exist.
        assert_eq!(problems(&found, &["a", "b", "c", "d"].map(listed)).len(), 3);
    }
}
