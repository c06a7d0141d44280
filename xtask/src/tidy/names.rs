//! Names: a type's name is defined once in the product, so that searching for it finds one thing.

use std::collections::BTreeMap;

use super::rust_source::{RustSource, TokenKind};
use super::{Finding, House};

/// Names that stand for more than one type, and why that is right. One line per name:
/// `("Record", "a record of the log and a record of a table: each is the usual word in its own format"),`
const SHARED_NAMES: [(&str, &str); 0] = [];

pub fn check(house: &House) -> Vec<Finding> {
    check_against(house, &SHARED_NAMES)
}

fn check_against(house: &House, shared: &[(&str, &str)]) -> Vec<Finding> {
    let mut defined: BTreeMap<(&str, String), Vec<(&str, usize)>> = BTreeMap::new();
    for (path, source) in house.tree.product_files() {
        for (name, line) in types(source) {
            defined.entry((scope(path), name)).or_default().push((path, line));
        }
    }
    defined.retain(|_, places| places.len() > 1);
    let mut findings = Vec::new();
    for ((_, name), places) in &defined {
        if shared.iter().any(|(shared, _)| shared == name) {
            continue;
        }
        let [(path, line), others @ ..] = &places[..] else { continue };
        let others: Vec<String> = others.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let message = format!(
            "`{name}` is also defined in {}: rename one, or list it in SHARED_NAMES",
            others.join(", ")
        );
        findings.push(Finding::new(path, *line, message));
    }
    let is_defined_twice = |name: &str| defined.keys().any(|(_, defined)| defined == name);
    for (name, _) in shared.iter().filter(|(name, _)| !is_defined_twice(name)) {
        let message = format!("`{name}` is not defined twice any more: remove it from SHARED_NAMES");
        findings.push(Finding::new("xtask/src/tidy/names.rs", 1, message));
    }
    findings
}

/// The crates that users build their programs on. They say the service's words from the other side of the wire, so their
/// names may be those of the server: `Entity`, `Query`.
const FOR_PROGRAMS: [&str; 3] = ["crates/client/", "crates/client-derive/", "crates/patterns/"];

pub fn is_for_programs(path: &str) -> bool {
    !scope(path).is_empty()
}

/// Within which a name stands for one type: a crate for programs, or everything else.
fn scope(path: &str) -> &'static str {
    FOR_PROGRAMS.into_iter().find(|start| path.starts_with(start)).unwrap_or_default()
}

/// The types that a file defines for others: associated types and those inside a function are not among them.
fn types(source: &RustSource) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let code = source.code();
    // One entry per open brace: whether it belongs to a module. Only types directly in modules count.
    let mut around: Vec<bool> = Vec::new();
    let mut opens_module = false;
    for (n, token) in code.iter().enumerate() {
        let text = source.text_of(token);
        match text {
            "{" => around.push(std::mem::take(&mut opens_module)),
            "}" => drop(around.pop()),
            "mod" => opens_module = true,
            ";" => opens_module = false,
            "struct" | "enum" | "union" | "trait" | "type" if around.iter().all(|is_module| *is_module) => {
                if let Some(name) = code.get(n + 1).filter(|next| next.kind == TokenKind::Word) {
                    found.push((source.text_of(name).to_owned(), name.line));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::Tree;

    #[test]
    fn types_are_found_where_others_see_them() {
        let text = "\
pub struct A<T>(T);
enum B { C }
impl X for B { type Error = D; }
fn f() { struct E; }
mod inner { trait F {} }
pub(crate) type G = u8;
#[cfg(test)]
mod tests { struct H; }
";
        let names: Vec<String> = types(&RustSource::read(text)).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "F", "G"]);
    }

    fn house() -> House {
        House::new(Tree::of(&[
            ("crates/a/src/lib.rs", "struct Key;\nstruct One;"),
            ("crates/b/src/lib.rs", "\nenum Key {}"),
            ("proof/c/src/lib.rs", "struct One;"),
        ]))
    }

    #[test]
    fn a_name_for_two_types_is_found() {
        let found: Vec<String> = check_against(&house(), &[]).iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = "crates/a/src/lib.rs:1: `Key` is also defined in crates/b/src/lib.rs:2:";
        assert!(found[0].starts_with(expected), "{found:?}");
    }

    #[test]
    fn a_shared_name_is_allowed_as_long_as_it_is_shared() {
        assert_eq!(check_against(&house(), &[("Key", "why")]), []);
        let stale = check_against(&house(), &[("Key", "why"), ("One", "why")]);
        assert!(stale[0].message.contains("`One` is not defined twice any more"));
    }
}
