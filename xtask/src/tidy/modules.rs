//! Modules: each says what it owns, has one subject, and contains no unfinished work.

use super::rust_source::{Token, TokenKind};
use super::{Finding, House};

/// Past this, look for the second subject of the file.
const FILE_LINE_COUNT_MAX: usize = 700;
/// Files with one subject that is longer, and why.
const LONG_FILES: [(&str, &str); 0] = [];

/// Macros that stand for unfinished work.
const UNFINISHED_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Words in comments that stand for it.
const UNFINISHED_WORDS: [&str; 2] = ["FIXME", "XXX"];

pub fn docs(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in house.tree.rust_files().filter(|(path, _)| path.contains("src/")) {
        let first = source.tokens.first().map(|token| source.text_of(token));
        if !first.is_some_and(|text| text.starts_with("//!") || text.starts_with("/*!")) {
            findings.push(Finding::new(
                path,
                1,
                "opens without `//!`: say what the module owns and promises",
            ));
        }
    }
    findings
}

pub fn length(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: Vec<&str> = LONG_FILES.iter().map(|(path, _)| *path).collect();
    for (path, source) in house.tree.rust_files().filter(|(path, _)| path.contains("src/")) {
        let lines = source.text.lines().count();
        if lines <= FILE_LINE_COUNT_MAX {
            continue;
        }
        match known.iter().position(|known| *known == path) {
            Some(n) => drop(known.remove(n)),
            None => {
                let message =
                    format!("{lines} lines: past {FILE_LINE_COUNT_MAX}, look for the second subject");
                findings.push(Finding::new(path, FILE_LINE_COUNT_MAX + 1, message));
            }
        }
    }
    let stale =
        known.iter().map(|path| Finding::new(path, 1, "is not long any more: remove it from LONG_FILES"));
    findings.extend(stale);
    findings
}

/// Tests included: one that is ignored, or not written yet, proves nothing.
pub fn unfinished(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in house.tree.rust_files() {
        let code: Vec<&Token> =
            source.tokens.iter().filter(|token| token.kind != TokenKind::Comment).collect();
        for (n, token) in code.iter().enumerate() {
            let text = |ahead: usize| code.get(n + ahead).map_or("", |token| source.text_of(token));
            if UNFINISHED_MACROS.contains(&text(0)) && text(1) == "!" {
                let message = format!("`{}!` stands for unfinished work: finish it", text(0));
                findings.push(Finding::new(path, token.line, message));
            }
            if matches!([text(0), text(1), text(2), text(3)], ["#", "[", "ignore", "]" | "="]) {
                let message = "`#[ignore]`: a test that does not run proves nothing; mend it or remove it";
                findings.push(Finding::new(path, token.line, message));
            }
        }
        for token in source.tokens.iter().filter(|token| token.kind == TokenKind::Comment) {
            let mut words = source.text_of(token).split(|c: char| !c.is_alphanumeric());
            if let Some(word) = words.find(|word| UNFINISHED_WORDS.contains(word)) {
                findings.push(Finding::new(path, token.line, format!("{word}: mend it, or open an issue")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    fn check(rule: fn(&House) -> Vec<Finding>, text: &str, expected: &[usize]) {
        let house = House::new(Tree::of(&[("crates/a/src/lib.rs", text)]));
        let lines: Vec<usize> = rule(&house).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, expected, "{text}");
    }

    #[test]
    fn a_module_without_a_doc_is_found() {
        check(docs, "//! Keys.\nmod a;", &[]);
        check(docs, "mod a;", &[1]);
        check(docs, "// Keys.\nmod a;", &[1]);
        check(docs, "", &[1]);
    }

    #[test]
    fn a_long_file_is_found() {
        check(length, &"\n".repeat(FILE_LINE_COUNT_MAX), &[]);
        check(length, &"\n".repeat(FILE_LINE_COUNT_MAX + 1), &[FILE_LINE_COUNT_MAX + 1]);
    }

    #[test]
    fn unfinished_work_is_found() {
        check(unfinished, "fn f() {\n    todo!()\n}\nlet x = dbg!(y);", &[2, 4]);
        check(unfinished, "#[test]\nfn f() { todo!() }", &[2]);
        check(unfinished, "#[test]\n#[ignore]\nfn f() {}\n#[ignore = \"slow\"]", &[2, 4]);
        check(unfinished, "// a FIXME\n// XXX: b\n// fixmeup\n\"FIXME\"", &[1, 2]);
        check(unfinished, "let todo = ignore; // todo", &[]);
    }
}
