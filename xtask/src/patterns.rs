//! `cargo xtask patterns [--write]`: runs every example of `crates/patterns` and compares its output with its page.
//!
//! Every example has a page in `docs/patterns`, with its name. The output stands there between two comments. `--write` puts
//! it there; without it, a page that shows anything else is an error. The examples print counts and no times, so the same code
//! gives the same pages on every machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{self, cargo};

const EXAMPLES: &str = "crates/patterns/examples";
const PAGES: &str = "docs/patterns";
/// The page that lists the others. It belongs to no example.
const OVERVIEW: &str = "README";
const BEGIN: &str = "<!-- written by `cargo xtask patterns --write` -->";
const END: &str = "<!-- end -->";
/// Names a server to run instead of building one; the examples read it too.
const BINARY_VARIABLE: &str = "LAZULITE_BINARY";
/// An account given here would be measured instead of the server.
const CONNECTION_VARIABLE: &str = "LAZULITE_CONNECTION_STRING";

/// Runs all examples. `true` when every page shows what its example prints.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let writes = match arguments {
        [] => false,
        [word] if word == "--write" => true,
        _ => return Err("usage: cargo xtask patterns [--write]".to_owned()),
    };
    println!("==> building the server and the examples");
    let server = match std::env::var_os(BINARY_VARIABLE) {
        Some(binary) => PathBuf::from(binary),
        None => {
            if !process::build_release_programs()? {
                return Ok(false);
            }
            process::release_program("lazulite")?
        }
    };
    // Not `cargo build`: it would ask for other features of what the examples use, and build all of that anew.
    let built = process::run(cargo().args(["test", "--no-run"]).args(process::TESTED_PACKAGES))?;
    if !built.succeeded {
        return Ok(false);
    }
    let names = names_in(EXAMPLES, "rs")?;
    let mut complaints = pages_without_example(&names)?;
    for name in &names {
        println!("==> {name}");
        match compare(name, &server, writes) {
            Ok(()) => {}
            Err(complaint) => complaints.push(format!("{name}: {complaint}")),
        }
    }
    for complaint in &complaints {
        eprintln!("error: {complaint}");
    }
    Ok(complaints.is_empty())
}

fn compare(name: &str, server: &Path, writes: bool) -> Result<(), String> {
    let output = output_of(name, server)?;
    let path = process::root().join(PAGES).join(format!("{name}.md"));
    let page =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let wanted = with_output(&page, &output)
        .ok_or_else(|| format!("{} has no place for the output: `{BEGIN}` and `{END}`", path.display()))?;
    if wanted == page {
        return Ok(());
    }
    if writes {
        return std::fs::write(&path, wanted)
            .map_err(|error| format!("cannot write {}: {error}", path.display()));
    }
    let difference = first_difference(&page, &wanted);
    Err(format!("its page shows something else; run `cargo xtask patterns --write`\n{difference}"))
}

/// What an example prints, against a server of its own.
fn output_of(name: &str, server: &Path) -> Result<String, String> {
    let program = process::target_directory()?.join("debug/examples").join(process::program_name(name));
    let mut command = Command::new(&program);
    let output = command
        .env_remove(CONNECTION_VARIABLE)
        .env(BINARY_VARIABLE, server)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "prints something that is not UTF-8".to_owned())
}

/// The page with this output between its two comments; `None` if they are missing.
fn with_output(page: &str, output: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", output.trim()))
}

fn first_difference(page: &str, wanted: &str) -> String {
    let mut pairs = page.lines().zip(wanted.lines());
    match pairs.find(|(shown, printed)| shown != printed) {
        Some((shown, printed)) => format!("  page:    {shown}\n  example: {printed}"),
        None => "  one of them is longer".to_owned(),
    }
}

fn pages_without_example(names: &[String]) -> Result<Vec<String>, String> {
    let pages = names_in(PAGES, "md")?;
    let lonely = pages.into_iter().filter(|page| page != OVERVIEW && !names.contains(page));
    Ok(lonely.map(|page| format!("{PAGES}/{page}.md belongs to no example")).collect())
}

/// The names of the files with this extension, in order.
fn names_in(folder: &str, extension: &str) -> Result<Vec<String>, String> {
    let folder: PathBuf = process::root().join(folder);
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter_map(|path| Some(Path::new(path.file_stem()?).to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_replaces_what_stood_between_the_comments() {
        let page = format!("# A\n\n{BEGIN}\nold\n{END}\n\nMore.\n");
        let wanted = format!("# A\n\n{BEGIN}\n\n| new |\n\n{END}\n\nMore.\n");
        assert_eq!(with_output(&page, "| new |\n").as_deref(), Some(wanted.as_str()));
        assert_eq!(with_output(&wanted, "| new |").as_deref(), Some(wanted.as_str()));
        assert_eq!(with_output("# A\n", ""), None);
        assert!(first_difference(&page, &wanted).contains("old"));
    }
}
