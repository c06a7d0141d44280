//! Documents: every link leads somewhere, and every file is there that a page or a comment names.

use super::architecture;
use super::rust_source::TokenKind;
use super::tree::Tree;
use super::{Finding, House};

/// Names with these endings are files.
const FILE_ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".txt"];

/// Folders of the root, as pages and comments name them.
const ROOT_FOLDERS: [&str; 4] = ["crates/", "docs/", "proof/", "xtask/"];

pub fn links(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in house.tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in relative_links(text) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let Some(resolved) = resolve(path, file) else {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("the link {target} leads out of the repository"),
                ));
                continue;
            };
            if !house.tree.holds(&resolved) {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("the link {target} leads nowhere: correct it"),
                ));
            } else if !heading.is_empty() && !has_heading(&house.tree, &resolved, heading) {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("{resolved} has no heading #{heading}: correct it"),
                ));
            }
        }
    }
    findings
}

/// Files in code spans, and in the drawing of the road.
pub fn mapped_files(house: &House) -> Vec<Finding> {
    let text = house.tree.text(architecture::PATH).unwrap_or_default();
    let mut findings = Vec::new();
    for (line, is_fenced, text) in lines(text) {
        let names: Vec<&str> = match is_fenced {
            true => text.split_whitespace().collect(),
            false => text.split('`').skip(1).step_by(2).collect(),
        };
        for name in names.into_iter().map(|name| name.trim_end_matches([',', ':', ')'])) {
            let is_file = FILE_ENDINGS.iter().any(|ending| name.ends_with(ending)) || name.ends_with('/');
            let is_one_name = !name.contains([' ', '*', '…', '<']);
            if is_file && is_one_name && architecture::place(&house.tree, name).is_none() {
                let message = format!("there is no `{name}`: correct the map, with the crate's name first");
                findings.push(Finding::new(architecture::PATH, line, message));
            }
        }
    }
    findings
}

/// Files that pages and comments name from the root.
pub fn named_files(house: &House) -> Vec<Finding> {
    // The changelog may tell of files that are gone; the map has a rule of its own.
    let is_checked =
        |path: &str| path.ends_with(".md") && !["CHANGELOG.md", architecture::PATH].contains(&path);
    let mut findings = Vec::new();
    let mut check = |path: &str, line: usize, text: &str| {
        for name in text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'))) {
            let name = name.trim_end_matches('.');
            let is_file = ROOT_FOLDERS.iter().any(|folder| name.starts_with(folder))
                && (name.ends_with('/') || FILE_ENDINGS.iter().any(|ending| name.ends_with(ending)));
            if is_file && !house.tree.holds(name) {
                findings.push(Finding::new(
                    path,
                    line,
                    format!("there is no {name}: name the file that is meant"),
                ));
            }
        }
    };
    for (path, text) in house.tree.files().filter(|(path, _)| is_checked(path)) {
        text.lines().enumerate().for_each(|(n, line)| check(path, n + 1, line));
    }
    for (path, source) in house.tree.rust_files() {
        for token in source.tokens.iter().filter(|token| token.kind == TokenKind::Comment) {
            let lines = source.text_of(token).lines().enumerate();
            lines.for_each(|(n, line)| check(path, token.line + n, line));
        }
    }
    findings
}

/// The lines of a page, each with its number, and whether it is in a fenced block. Fences themselves are left out.
fn lines(text: &str) -> impl Iterator<Item = (usize, bool, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return None;
        }
        Some((n + 1, is_fenced, line))
    })
}

/// Targets of `[text](target)` and `[name]: target` that are not addresses on the web.
fn relative_links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, is_fenced, line) in lines(text) {
        if is_fenced {
            continue;
        }
        let prose = without_code_spans(line);
        let mut targets: Vec<&str> = Vec::new();
        for (at, _) in prose.match_indices("](") {
            targets.extend(prose[at + 2..].split([')', ' ']).next());
        }
        if prose.starts_with('[')
            && let Some((_, target)) = prose.split_once("]: ")
        {
            targets.extend(target.split_whitespace().next());
        }
        let is_ours =
            |target: &&str| !target.contains("://") && !target.starts_with("mailto:") && !target.is_empty();
        found.extend(targets.into_iter().filter(is_ours).map(|target| (n, target.to_owned())));
    }
    found
}

fn without_code_spans(line: &str) -> String {
    line.split('`').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "code" }).collect()
}

/// Where a link of the page at `path` leads; `None` when that is above the root.
fn resolve(path: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(path.to_owned());
    }
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(folders.pop()?),
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

fn has_heading(tree: &Tree, path: &str, wanted: &str) -> bool {
    let Some(text) = tree.text(path) else { return true };
    let mut headings = lines(text).filter(|(_, is_fenced, line)| !is_fenced && line.starts_with('#'));
    // A heading that comes twice gets a number the second time; which one is not worth counting.
    let is_numbered = |slug: &str| {
        wanted
            .strip_prefix(slug)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    !path.ends_with(".md")
        || headings.any(|(_, _, line)| {
            let slug = slug(line.trim_start_matches('#').trim());
            slug == wanted || is_numbered(&slug)
        })
}

/// The anchor that a heading gets where the page is shown: lower case, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&House) -> Vec<Finding>, path: &str, text: &str, expected: &[&str]) {
        let files = [
            (path, text),
            ("docs/log.md", "# The log\n## Its bytes: all\n## Its bytes: all\n"),
            ("crates/engine/src/keys.rs", ""),
        ];
        let found: Vec<String> = rule(&House::new(Tree::of(&files))).iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} does not contain {expected}");
        }
    }

    #[test]
    fn links_lead_somewhere() {
        check(
            links,
            "README.md",
            "[a](docs/log.md) and [b](docs) and [c](https://x/y) [d](#top)\n# Top",
            &[],
        );
        check(
            links,
            "docs/a.md",
            "[a](log.md#its-bytes-all) [b](../crates/engine/src/keys.rs) [c](log.md#its-bytes-all-1)",
            &[],
        );
        check(
            links,
            "README.md",
            "x\n[a](docs/gone.md)",
            &["README.md:2: the link docs/gone.md leads nowhere"],
        );
        check(links, "README.md", "[a]: gone.md", &["README.md:1: the link gone.md"]);
        check(links, "README.md", "[a](docs/log.md#gone)", &["docs/log.md has no heading #gone"]);
        check(links, "README.md", "[a](../x.md)", &["leads out of the repository"]);
        check(links, "README.md", "`[a](gone.md)`\n```\n[a](gone.md)\n```\n", &[]);
    }

    #[test]
    fn files_on_the_map_are_there() {
        let page = "`engine/keys.rs` `docs/log.md` `Key` `keys.rs`\n```text\n  engine/keys.rs  keys\n  engine/gone.rs  x\n```\n";
        let expected =
            ["ARCHITECTURE.md:1: there is no `keys.rs`", "ARCHITECTURE.md:4: there is no `engine/gone.rs`"];
        check(mapped_files, architecture::PATH, page, &expected);
    }

    #[test]
    fn files_that_are_named_are_there() {
        let text = "see docs/log.md, docs/gone.md and `crates/engine/src/keys.rs`.";
        check(named_files, "README.md", text, &["README.md:1: there is no docs/gone.md"]);
        check(named_files, "CHANGELOG.md", text, &[]);
        let text = "// docs/gone.md\nlet x = \"docs/gone.md\";";
        check(
            named_files,
            "crates/a/tests/it.rs",
            text,
            &["crates/a/tests/it.rs:1: there is no docs/gone.md"],
        );
    }
}
