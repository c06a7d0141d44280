//! COMPAT.md is honest: every row has one of the three marks, and every test that a row names exists.
//!
//! A test is looked for where its runner would find it: a function with its attribute in a module that is
//! declared, a `def`, a `test("...")` and so on. That it passes is for its own suite to say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

const HEADING: &str = "| Behaviour | Here | Test |";
const RULER: &str = "|---|---|---|";
const MARKS: [&str; 3] = ["same", "different", "unverified"];
/// What stands in the last cell of a row that nothing shows.
const NO_TEST: &str = "no test yet";
/// Fewer rows mean that the tables are no longer written as this file reads them.
const ROW_COUNT_MIN: usize = 400;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One row, and the number of its line.
struct Row {
    line: usize,
    cells: Vec<String>,
}

fn rows() -> Vec<Row> {
    let document = fs::read_to_string(repository().join("COMPAT.md")).unwrap();
    let mut rows = Vec::new();
    let mut in_table = false;
    for (index, text) in document.lines().enumerate() {
        in_table = text == HEADING || in_table && text.starts_with('|');
        if in_table && text != HEADING && text != RULER {
            let inside = text.strip_prefix('|').and_then(|text| text.strip_suffix('|')).unwrap_or_default();
            let cells = inside.split('|').map(|cell| cell.trim().to_owned()).collect();
            rows.push(Row { line: index + 1, cells });
        }
    }
    assert!(rows.len() >= ROW_COUNT_MIN, "only {} rows were found", rows.len());
    rows
}

/// The tests of a last cell: code spans with commas between. `None` when it is written in any other way.
fn named_tests(cell: &str) -> Option<Vec<&str>> {
    if cell == NO_TEST {
        return Some(Vec::new());
    }
    cell.split(", `")
        .enumerate()
        .map(|(at, span)| {
            let span = if at == 0 { span.strip_prefix('`')? } else { span };
            span.strip_suffix('`').filter(|name| !name.contains('`'))
        })
        .collect()
}

/// Whether `crate: module::test`, or `sdk/language: file::test`, is in the tree.
fn exists(name: &str) -> bool {
    let Some((place, path)) = name.split_once(": ") else { return false };
    match place {
        "sdk/python" => in_sdk_suite("python", path, |test| format!("\ndef {test}(")),
        "sdk/javascript" => in_sdk_suite("javascript", path, |test| format!("(\"{test}\"")),
        "sdk/go" => in_sdk_suite("go", path, |test| format!("\nfunc {test}(")),
        "sdk/java" => in_sdk_suite("java/src/test/java/sdk", path, |test| format!("\n    void {test}(")),
        _ => in_crate(place, path),
    }
}

/// `needle` is how a test of that name begins in a file of the suite.
fn in_sdk_suite(suite: &str, path: &str, needle: impl Fn(&str) -> String) -> bool {
    let Some((file, test)) = path.split_once("::") else { return false };
    let source = fs::read_to_string(repository().join("tests/sdk").join(suite).join(file));
    source.is_ok_and(|source| source.contains(&needle(test)))
}

fn in_crate(name: &str, path: &str) -> bool {
    let mut modules: Vec<&str> = path.split("::").collect();
    let Some(test) = modules.pop() else { return false };
    let folders = ["crates", "proof"].map(|place| repository().join(place).join(name));
    folders.iter().flat_map(|folder| crate_roots(folder)).any(|root| in_file(&root, &modules, test))
}

/// The library or the binary, and each binary of integration tests.
fn crate_roots(folder: &Path) -> Vec<PathBuf> {
    let mut roots = vec![folder.join("src/lib.rs"), folder.join("src/main.rs")];
    for entry in fs::read_dir(folder.join("tests")).into_iter().flatten() {
        let path = entry.unwrap().path();
        roots.push(if path.is_dir() { path.join("main.rs") } else { path });
    }
    roots.retain(|root| root.is_file());
    roots
}

fn in_file(file: &Path, modules: &[&str], test: &str) -> bool {
    let source = fs::read_to_string(file).unwrap();
    let Some((module, rest)) = modules.split_first() else { return declares_test(&source, test) };
    if let Some(block) = inline_module(&source, module) {
        return rest.is_empty() && declares_test(&block, test);
    }
    // A file that nobody declares is not compiled.
    let is_declared = source.lines().any(|line| line.ends_with(&format!("mod {module};")));
    is_declared && module_file(file, module).is_some_and(|file| in_file(&file, rest, test))
}

fn module_file(parent: &Path, module: &str) -> Option<PathBuf> {
    let stem = parent.file_stem()?.to_str()?;
    let is_root_of_folder = matches!(stem, "lib" | "main" | "mod");
    let folder = if is_root_of_folder { parent.parent()?.to_owned() } else { parent.with_extension("") };
    let files = [folder.join(format!("{module}.rs")), folder.join(module).join("mod.rs")];
    files.into_iter().find(|file| file.is_file())
}

/// What stands between `mod name {` and its brace, moved to the left. rustfmt sees to the columns.
fn inline_module(source: &str, module: &str) -> Option<String> {
    let mut lines = source.lines();
    lines.find(|line| !line.starts_with(' ') && line.ends_with(&format!("mod {module} {{")))?;
    let inside = lines.take_while(|line| *line != "}").map(|line| line.strip_prefix("    ").unwrap_or(line));
    Some(inside.collect::<Vec<_>>().join("\n"))
}

/// Whether there is a function of that name, not inside anything, with a test's attribute above it.
fn declares_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let heads = [format!("fn {name}("), format!("async fn {name}(")];
    let is_head = |line: &str| heads.iter().any(|head| line.starts_with(head));
    let has_attribute = |at: usize| {
        let above = lines[..at].iter().rev();
        let mut attributes = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        attributes.any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
    };
    lines.iter().enumerate().any(|(at, line)| is_head(line) && has_attribute(at))
}

#[test]
fn every_row_has_a_mark_and_names_tests_or_says_that_it_has_none() {
    let mut wrong = Vec::new();
    for Row { line, cells } in rows() {
        let [behaviour, here, tests] = cells.as_slice() else {
            wrong.push(format!("line {line}: {} cells instead of three", cells.len()));
            continue;
        };
        let (mark, remark) = here.split_once(": ").unwrap_or((here, ""));
        if behaviour.is_empty() || !MARKS.contains(&mark) {
            wrong.push(format!("line {line}: no behaviour, or no mark: '{here}'"));
        }
        // A difference without its reason helps nobody, nor does a reading that is not told.
        if mark != "same" && remark.is_empty() {
            wrong.push(format!("line {line}: '{mark}' without more"));
        }
        if named_tests(tests).is_none() {
            wrong.push(format!("line {line}: neither tests nor '{NO_TEST}': {tests}"));
        }
    }
    assert!(wrong.is_empty(), "COMPAT.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_test_that_a_row_names_exists() {
    let mut missing = Vec::new();
    for Row { line, cells } in rows() {
        let tests = cells.last().and_then(|cell| named_tests(cell)).unwrap_or_default();
        missing.extend(
            tests.into_iter().filter(|test| !exists(test)).map(|test| format!("line {line}: {test}")),
        );
    }
    assert!(missing.is_empty(), "COMPAT.md names tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn tests_are_found_where_they_are_and_nowhere_else() {
    for name in [
        "testkit: every_test_that_a_row_names_exists",
        "server: etags::if_match_decides_by_verb_and_state",
        "server: address::tests::accounts_are_found_in_the_host_or_in_the_path",
        "tls: tests::plain_http_is_told_that_this_port_speaks_https",
        "protocol: filter::tests::matching::logic_is_two_valued",
        "protocol: auth::sas::tests::an_empty_field_is_an_absent_one",
        "engine-local: conformance::local_keeps_every_promise",
        "cli: restart::a_continuation_token_survives_a_restart",
        "sdk/python: test_tables.py::test_the_name_tables_is_reserved",
        "sdk/javascript: entities.test.mjs::delete minds the etag",
        "sdk/go: tables_test.go::TestACreatedTableIsListedAndADeletedOneIsNot",
    ] {
        assert!(exists(name), "{name}");
    }
    for name in [
        "",
        "etags::if_match_decides_by_verb_and_state",
        "nowhere: etags::if_match_decides_by_verb_and_state",
        "server: if_match_decides_by_verb_and_state",
        "server: headers::if_match_decides_by_verb_and_state",
        "server: etags::if_match_decides",
        "server: etags::tests::if_match_decides_by_verb_and_state",
        // A helper is not a test; and what is inside a module of the file is not in the file.
        "server: etags::with_entity",
        "server: address::accounts_are_found_in_the_host_or_in_the_path",
        "protocol: filter::tests::logic_is_two_valued",
        "sdk/python: test_tables.py::test_the_name_tables",
        "sdk/python: test_nothing.py::test_the_name_tables_is_reserved",
        "sdk/javascript: entities.test.mjs::delete minds",
        "sdk/go: tables_test.go::TestACreatedTable",
        "sdk/cobol: tables.cob::a created table",
    ] {
        assert!(!exists(name), "{name}");
    }
}

#[test]
fn a_last_cell_is_tests_or_says_that_there_are_none() {
    let check = |cell: &str, expected: Option<Vec<&str>>| assert_eq!(named_tests(cell), expected, "{cell}");
    check("no test yet", Some(vec![]));
    check("`a: b::c`", Some(vec!["a: b::c"]));
    check("`a: b::c`, `d: e`", Some(vec!["a: b::c", "d: e"]));
    for bad in ["", "(planned)", "a: b", "`a: b` (planned)", "`a: b`,`c: d`", "`a: b`, no test yet", "`a: b"]
    {
        check(bad, None);
    }
}
