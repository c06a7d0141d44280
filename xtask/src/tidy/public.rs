//! Public items that nobody outside their crate names: their visibility is wider than it needs to be.
//!
//! A heuristic, so the gate knows a bound instead of a list: a type can be needed outside without being named, and a
//! name like `new` is found everywhere. `cargo xtask tidy --public` prints the list.

use std::collections::{BTreeMap, BTreeSet};

use super::names::is_for_programs;
use super::rust_source::{RustSource, TokenKind};
use super::tree::Tree;
use super::{Finding, House};

/// As many as there are now, nearly all of them what public functions return. Lower it when there are fewer.
const UNNAMED_COUNT_MAX: usize = 74;

const KINDS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "const", "static", "type", "mod"];
/// Words between `pub` and the kind of item.
const QUALIFIERS: [&str; 4] = ["async", "const", "unsafe", "extern"];

pub fn check(house: &House) -> Vec<Finding> {
    check_against(house, UNNAMED_COUNT_MAX)
}

fn check_against(house: &House, unnamed_count_max: usize) -> Vec<Finding> {
    let unnamed = unnamed(&house.tree).len();
    if unnamed <= unnamed_count_max {
        return Vec::new();
    }
    let message = format!(
        "{unnamed} public items are named nowhere outside their crate, {unnamed_count_max} is the bound: make new ones \
         `pub(crate)` (`cargo xtask tidy --public` lists all)"
    );
    vec![Finding::new("xtask/src/tidy/public.rs", 1, message)]
}

/// Prints every public item that nobody outside its crate names.
pub fn list(tree: &Tree) {
    let unnamed = unnamed(tree);
    for Item { path, line, name, kind } in &unnamed {
        println!("{path}:{line}: {kind} {name}");
    }
    let all: usize = libraries(tree).map(|name| public_items(tree, name).len()).sum();
    println!("\n{} of {all} public items are named nowhere outside their crate", unnamed.len());
}

#[derive(PartialEq, Eq, Debug)]
struct Item {
    path: String,
    line: usize,
    name: String,
    kind: String,
}

fn unnamed(tree: &Tree) -> Vec<Item> {
    let mut words: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, source) in tree.rust_files() {
        words.entry(home_of(path)).or_default().extend(all_words(source));
    }
    let mut unnamed = Vec::new();
    for library in libraries(tree) {
        let home = format!("crates/{library}/src");
        let is_named = |name: &str| words.iter().any(|(other, words)| *other != home && words.contains(name));
        unnamed.extend(public_items(tree, library).into_iter().filter(|item| !is_named(&item.name)));
    }
    unnamed
}

/// A program has no users outside: only libraries count. The users of the crates for programs are not in this tree.
fn libraries(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.crates_in("crates")
        .into_iter()
        .filter(|name| tree.text(&format!("crates/{name}/src/lib.rs")).is_some())
        .filter(|name| !is_for_programs(&format!("crates/{name}/")))
}

/// The product code of one crate, or else the outermost folder: `crates/a/src`, `crates/a/tests`, `proof`, `xtask`.
fn home_of(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 3 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

fn all_words(source: &RustSource) -> impl Iterator<Item = &str> {
    let words = source.tokens.iter().filter(|token| token.kind == TokenKind::Word);
    words.map(|token| source.text_of(token))
}

fn public_items(tree: &Tree, library: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for (path, source) in tree.sources(&format!("crates/{library}/src")) {
        let code = source.code();
        let text = |n: usize| code.get(n).map_or("", |token| source.text_of(token));
        for n in (0..code.len()).filter(|n| text(*n) == "pub" && text(n + 1) != "(") {
            let mut at = n + 1;
            while QUALIFIERS.contains(&text(at))
                && (KINDS.contains(&text(at + 1)) || QUALIFIERS.contains(&text(at + 1)))
            {
                at += 1;
            }
            if KINDS.contains(&text(at)) {
                let (kind, name) = (text(at).to_owned(), text(at + 1).to_owned());
                items.push(Item { path: path.to_owned(), line: code[n].line, name, kind });
            }
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house() -> House {
        House::new(Tree::of(&[
            ("crates/a/Cargo.toml", ""),
            (
                "crates/a/src/lib.rs",
                "pub fn used() {}\npub const fn unused() {}\npub(crate) fn own() {}\npub struct Tested { pub field: u8 }",
            ),
            ("crates/a/src/x.rs", "use crate::unused; pub const LIMIT: u8 = 1;"),
            ("crates/a/tests/it.rs", "Tested"),
            ("crates/b/Cargo.toml", ""),
            ("crates/b/src/main.rs", "a::used(); pub fn program() {} // unused"),
        ]))
    }

    #[test]
    fn items_that_nobody_else_names_are_found() {
        let house = house();
        let unnamed = unnamed(&house.tree);
        let names: Vec<&str> = unnamed.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["unused", "LIMIT"]);
        assert_eq!(public_items(&house.tree, "a").len(), 4);
    }

    #[test]
    fn more_than_the_bound_is_a_finding() {
        assert_eq!(check_against(&house(), 2), []);
        assert!(check_against(&house(), 1)[0].message.starts_with("2 public items"));
    }
}
