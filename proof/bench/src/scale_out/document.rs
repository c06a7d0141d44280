//! Writes the figures into `docs/scale-out.md`, between two marks, from the stored results and from nothing else.

use std::fmt::Write;
use std::path::Path;

use loadgen::Error;

use super::report;
use super::results::{ScaleOutResults, ScaleOutRun};
use super::verdicts;
use crate::results::write_file;

const BEGIN: &str = "<!-- cargo xtask bench --scale-out --write: begin -->";
const END: &str = "<!-- cargo xtask bench --scale-out --write: end -->";

/// Replaces the earlier run of the same kind.
pub fn write(run: ScaleOutRun, is_large: bool, directory: &Path) -> Result<ScaleOutResults, Error> {
    let folder = directory.join("performance");
    let mut results = ScaleOutResults::read(&folder)?;
    let place = if is_large { &mut results.large } else { &mut results.compared };
    *place = Some(run);
    // The page first: if it has no place for the figures, nothing is half written.
    let page = directory.join("scale-out.md");
    let text = std::fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let text = replaced(&text, &figures(&results)).ok_or_else(|| {
        format!("{} has no lines '{BEGIN}' and '{END}' to put the figures between", page.display())
    })?;
    results.write(&folder)?;
    write_file(&page, &text)?;
    Ok(results)
}

fn replaced(page: &str, figures: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", figures.trim()))
}

fn figures(results: &ScaleOutResults) -> String {
    let mut text = verdicts::table(results);
    for (title, run) in [("Compared", &results.compared), ("A large table", &results.large)] {
        let Some(run) = run else { continue };
        let machine = &run.machine;
        let _ = write!(
            text,
            "\n### {title}\n\n```console\n$ {}\n```\n\nCommit {}, on {} ({} cores, {:.0} GiB of memory), {}, file system {}{}.\n\n",
            run.command,
            run.commit,
            machine.processor,
            machine.cores,
            machine.memory_gib,
            machine.kernel,
            machine.file_system,
            machine.azurite.as_ref().map_or(String::new(), |version| format!(", Azurite {version}")),
        );
        text.push_str(&report::tables(run));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale_out::report::tests::example;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n");
        let once = replaced(&page, &figures(&example())).unwrap();
        assert!(once.starts_with("before\n\n<!--") && once.ends_with("-->\n\nafter\n"), "{once}");
        assert!(
            once.contains("### Compared") && !once.contains("old") && !once.contains("### A large table")
        );
        assert_eq!(replaced(&once, &figures(&example())).unwrap(), once);
        assert_eq!(replaced("no marks", "x"), None);
    }
}
