//! One place for each: code that may stand in one file or folder of the product, and nowhere else.
//!
//! The map lists what and where. Proof and tests are free: a simulation has a clock of its own, and a benchmark opens
//! the tree beside the engine.

use super::architecture::{self, OnlyPlace};
use super::paths;
use super::tree;
use super::{Finding, House};

pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    let named: Vec<(&str, Vec<paths::NamedPath>)> =
        house.tree.product_files().map(|(path, source)| (path, paths::named(path, source))).collect();
    // A place that is not there is a finding of the map; what belongs in it is found when the map is right.
    let known = house.map.only_places.iter().filter(|only| !only.places.is_empty());
    for OnlyPlace { paths: patterns, places, line } in known {
        for pattern in patterns {
            let mut is_in_place = false;
            for (path, named) in &named {
                let is_place = places.iter().any(|place| tree::is_within(path, place));
                for found in named.iter().filter(|named| paths::matches(pattern, &named.segments)) {
                    if is_place {
                        is_in_place = true;
                    } else {
                        let message =
                            format!("`{pattern}` stands only in {}: call that instead", places.join(", "));
                        findings.push(Finding::new(path, found.line, message));
                    }
                }
            }
            if !is_in_place {
                let message =
                    format!("`{pattern}` stands nowhere in {}: correct the line", places.join(", "));
                findings.push(Finding::new(architecture::PATH, *line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    fn check_tree(page: &str, files: &[(&str, &str)], expected: &[&str]) {
        let page = format!("| code that names | stands only in |\n|---|---|\n{page}");
        let mut all = vec![(architecture::PATH, page.as_str())];
        all.extend_from_slice(files);
        let found: Vec<String> = check(&House::new(Tree::of(&all))).iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} does not contain {expected}");
        }
    }

    #[test]
    fn what_stands_elsewhere_is_found() {
        check_tree(
            "| `std::time::Instant::now` | `engine/env` |\n",
            &[
                ("crates/engine/src/env/clock.rs", "use std::time::Instant;\nfn now() { Instant::now() }"),
                ("crates/server/src/a.rs", "use std::time::Instant;\n\nfn f() { Instant::now() }"),
                ("proof/bench/src/main.rs", "fn f() { std::time::Instant::now() }"),
            ],
            &["crates/server/src/a.rs:3: `std::time::Instant::now` stands only in crates/engine/src/env"],
        );
    }

    #[test]
    fn a_second_table_of_codes_is_found() {
        check_tree(
            "| `codes!` | `a/error.rs` |\n",
            &[("crates/a/src/error.rs", "codes! {}"), ("crates/b/src/error.rs", "macro_rules! codes {}")],
            &["crates/b/src/error.rs:1: `codes!` stands only in"],
        );
    }

    #[test]
    fn a_place_without_what_it_is_for_is_found() {
        let files = [("crates/a/src/error.rs", "")];
        check_tree(
            "| `codes!` | `a/error.rs` |\n",
            &files,
            &["ARCHITECTURE.md:3: `codes!` stands nowhere in"],
        );
    }
}
