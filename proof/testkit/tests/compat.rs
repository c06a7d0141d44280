//! The compatibility ledger is honest: every row of `docs/compat/*.md` has one of the three marks, every test that a
//! row names exists, and `COMPAT.md` leads to every page of the ledger.
//!
//! A test is looked for where its runner would find it: a function with its attribute in a module that is
//! declared, a `def`, a `test("...")` and so on. Whether the test passes is the business of its own suite.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

const HEADING: &str = "| Behaviour | Here | Test |";
const RULER: &str = "|---|---|---|";
const MARKS: [&str; 3] = ["same", "different", "unverified"];
/// The last cell of a row that no test shows.
const NO_TEST: &str = "no test yet";
/// With fewer rows, the tables probably have a form that this file does not read.
const ROW_COUNT_MIN: usize = 400;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of the ledger, as paths from the root of the repository, in order.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = fs::read_dir(repository().join("docs/compat"))
        .unwrap()
        .map(|entry| format!("docs/compat/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|page| page.ends_with(".md"))
        .collect();
    pages.sort();
    pages
}

/// One row, and its place as `page:line`.
struct Row {
    place: String,
    cells: Vec<String>,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for page in pages() {
        let document = fs::read_to_string(repository().join(&page)).unwrap();
        let count_before = rows.len();
        let mut in_table = false;
        for (index, text) in document.lines().enumerate() {
            in_table = text == HEADING || in_table && text.starts_with('|');
            if in_table && text != HEADING && text != RULER {
                let inside = text.strip_prefix('|').and_then(|text| text.strip_suffix('|'));
                let cells = inside.unwrap_or_default().split('|').map(|cell| cell.trim().to_owned());
                rows.push(Row { place: format!("{page}:{}", index + 1), cells: cells.collect() });
            }
        }
        assert!(rows.len() > count_before, "{page} has no rows");
    }
    assert!(rows.len() >= ROW_COUNT_MIN, "only {} rows were found", rows.len());
    rows
}

/// The tests that a last cell names: code spans separated by commas. `None` if the cell has any other form.
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

/// Whether the test `crate: module::test` or `sdk/language: file::test` exists.
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

/// `needle` gives the text with which a test of that name begins.
fn in_sdk_suite(suite: &str, path: &str, needle: impl Fn(&str) -> String) -> bool {
    let Some((file, test)) = path.split_once("::") else { return false };
    let source = fs::read_to_string(repository().join("tests/sdk").join(suite).join(file));
    source.is_ok_and(|source| source.contains(&needle(test)))
}

fn in_crate(name: &str, path: &str) -> bool {
    let mut modules: Vec<&str> = path.split("::").collect();
    let Some(test) = modules.pop() else { return false };
    // Product and proof: see ARCHITECTURE.md.
    let folders = ["crates", "proof"].map(|folder| repository().join(folder).join(name));
    folders.iter().flat_map(|folder| crate_roots(folder)).any(|root| in_file(&root, &modules, test))
}

/// The root files of the library, the binary and the integration tests.
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
    // An undeclared file is not compiled.
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

/// The lines between `mod name {` and its closing brace, without their indentation. Relies on rustfmt's layout.
fn inline_module(source: &str, module: &str) -> Option<String> {
    let mut lines = source.lines();
    lines.find(|line| !line.starts_with(' ') && line.ends_with(&format!("mod {module} {{")))?;
    let inside = lines.take_while(|line| *line != "}").map(|line| line.strip_prefix("    ").unwrap_or(line));
    Some(inside.collect::<Vec<_>>().join("\n"))
}

/// Whether there is a top-level function of that name with a test attribute above it.
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
    for Row { place, cells } in rows() {
        let [behaviour, here, tests] = cells.as_slice() else {
            wrong.push(format!("{place}: {} cells instead of three", cells.len()));
            continue;
        };
        let (mark, remark) = here.split_once(": ").unwrap_or((here, ""));
        if behaviour.is_empty() || !MARKS.contains(&mark) {
            wrong.push(format!("{place}: no behaviour, or no mark: '{here}'"));
        }
        // A difference needs its reason, and an unverified row the reading that we chose.
        if mark != "same" && remark.is_empty() {
            wrong.push(format!("{place}: '{mark}' without more"));
        }
        if named_tests(tests).is_none() {
            wrong.push(format!("{place}: neither tests nor '{NO_TEST}': {tests}"));
        }
    }
    assert!(wrong.is_empty(), "docs/compat:\n{}", wrong.join("\n"));
}

#[test]
fn every_test_that_a_row_names_exists() {
    let mut missing = Vec::new();
    for Row { place, cells } in rows() {
        let tests = cells.last().and_then(|cell| named_tests(cell)).unwrap_or_default();
        missing.extend(tests.into_iter().filter(|test| !exists(test)).map(|test| format!("{place}: {test}")));
    }
    assert!(missing.is_empty(), "docs/compat names tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn compat_md_links_to_every_page_of_the_ledger_and_to_no_other() {
    let document = fs::read_to_string(repository().join("COMPAT.md")).unwrap();
    let links: Vec<&str> =
        document.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect();
    for page in pages() {
        assert!(links.contains(&page.as_str()), "COMPAT.md does not link to {page}");
    }
    for link in links.iter().filter(|link| link.starts_with("docs/")) {
        assert!(repository().join(link).is_file(), "COMPAT.md links to {link}, which does not exist");
    }
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
        // A helper is not a test, and a test in an inner module is not a test of the file's own module.
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
