//! The paths that a file's product code names: `std::fs::read`, `crate::front::Head`, `todo!`.
//!
//! Promises: every path is written out in full, as far as the file itself tells. A `use` is taken apart into one path
//! per name, `self` and `super` are resolved, and a name that a `use` or a `mod` brought in is replaced by what it
//! stands for. A glob ends with `*`, a macro with `!`.
//!
//! Leaves to others: names that come in through a glob, and re-exports of other files.

use std::collections::BTreeMap;

use super::rust_source::{RustSource, Token, TokenKind};
use super::tree;

/// A path, and where the file names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPath {
    pub segments: Vec<String>,
    pub line: usize,
}

/// Keywords that a rule may forbid by themselves, as if they were paths.
const KEYWORDS: [&str; 3] = ["async", "await", "unsafe"];

/// Every path that the product code of the file at `path` names.
pub fn named(path: &str, source: &RustSource) -> Vec<NamedPath> {
    let mut reader = Reader::new(path, source);
    reader.read();
    let Reader { module, aliases, found, .. } = reader;
    let resolve =
        |NamedPath { segments, line }| NamedPath { segments: resolve(segments, &module, &aliases), line };
    found.into_iter().map(resolve).collect()
}

/// What the names stand for that the `use`s and `mod`s of a file bring in.
pub fn aliases(path: &str, source: &RustSource) -> BTreeMap<String, Vec<String>> {
    let mut reader = Reader::new(path, source);
    reader.read();
    reader.aliases
}

fn resolve(segments: Vec<String>, module: &[String], aliases: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut rest = segments.as_slice();
    let mut base: Vec<String> = match rest.first().map(String::as_str) {
        Some("self" | "super") => [vec!["crate".to_owned()], module.to_vec()].concat(),
        Some(first) => match aliases.get(first) {
            // `use http;` stands for itself.
            Some(target) if *target != [first] => {
                rest = &rest[1..];
                target.clone()
            }
            _ => Vec::new(),
        },
        None => Vec::new(),
    };
    while let [first, tail @ ..] = rest {
        match first.as_str() {
            "self" if !base.is_empty() => {}
            "super" if base.len() > 1 => {
                base.pop();
            }
            _ => break,
        }
        rest = tail;
    }
    base.extend_from_slice(rest);
    base
}

struct Reader<'a> {
    source: &'a RustSource,
    code: Vec<Token>,
    at: usize,
    module: Vec<String>,
    aliases: BTreeMap<String, Vec<String>>,
    found: Vec<NamedPath>,
}

impl<'a> Reader<'a> {
    fn new(path: &str, source: &'a RustSource) -> Reader<'a> {
        let (aliases, found) = (BTreeMap::new(), Vec::new());
        Reader { source, code: source.code(), at: 0, module: tree::module_of(path), aliases, found }
    }

    fn read(&mut self) {
        while self.at < self.code.len() {
            match self.peek(0) {
                "use" if self.peek(1) != "<" => {
                    self.at += 1;
                    self.read_use(&[]);
                }
                "mod" if self.kind(1) == Some(TokenKind::Word) => {
                    let name = self.peek(1).to_owned();
                    let target = [vec!["crate".to_owned()], self.module.clone(), vec![name.clone()]].concat();
                    self.aliases.insert(name, target);
                    self.at += 2;
                }
                word if KEYWORDS.contains(&word) => {
                    self.add(vec![word.to_owned()], self.code[self.at].line);
                    self.at += 1;
                }
                "macro_rules" if self.kind(2) == Some(TokenKind::Word) => {
                    self.add(vec![format!("{}!", self.peek(2))], self.code[self.at].line);
                    self.at += 3;
                }
                _ if self.kind(0) == Some(TokenKind::Word) => self.read_path(),
                _ => self.at += 1,
            }
        }
        // `mod a; use a::B;`: `B` is in `crate::a`.
        let direct = self.aliases.clone();
        for (name, target) in &mut self.aliases {
            if target.first().is_some_and(|first| first != name) {
                *target = resolve(target.clone(), &self.module, &direct);
            }
        }
    }

    fn peek(&self, ahead: usize) -> &'a str {
        self.code.get(self.at + ahead).map_or("", |token| self.source.text_of(token))
    }

    fn kind(&self, ahead: usize) -> Option<TokenKind> {
        self.code.get(self.at + ahead).map(|token| token.kind)
    }

    fn add(&mut self, segments: Vec<String>, line: usize) {
        self.found.push(NamedPath { segments, line });
    }

    /// A path in an expression, a type or an attribute. A lone name is no path unless it is a macro.
    fn read_path(&mut self) {
        let line = self.code[self.at].line;
        let is_field = self.at > 0 && self.source.text_of(&self.code[self.at - 1]) == ".";
        let mut segments = vec![self.peek(0).to_owned()];
        self.at += 1;
        while self.peek(0) == "::" && self.kind(1) == Some(TokenKind::Word) {
            segments.push(self.peek(1).to_owned());
            self.at += 2;
        }
        let is_macro = self.peek(0) == "!" && self.peek(1) != "=";
        if is_macro && let Some(last) = segments.last_mut() {
            last.push('!');
        }
        if segments.len() > 1 || (is_macro && !is_field) {
            self.add(segments, line);
        }
    }

    /// One tree of a `use`, without the comma or the semicolon after it.
    fn read_use(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        loop {
            let line = self.code.get(self.at).map_or(0, |token| token.line);
            match self.peek(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        self.read_use(&segments);
                        if self.peek(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    segments.push("*".to_owned());
                    self.add(segments, line);
                    return;
                }
                name if self.kind(0) == Some(TokenKind::Word) => {
                    self.at += 1;
                    // `use a::{self, b}`: `self` is `a`.
                    if name != "self" || segments.is_empty() {
                        segments.push(name.to_owned());
                    }
                    if self.peek(0) == "::" {
                        continue;
                    }
                    let mut alias = segments.last().cloned().unwrap_or_default();
                    if self.peek(0) == "as" {
                        alias = self.peek(1).to_owned();
                        self.at += 2;
                    }
                    self.add(segments.clone(), line);
                    let target = resolve(segments, &self.module, &BTreeMap::new());
                    self.aliases.insert(alias, target);
                    return;
                }
                _ => {
                    self.at += 1;
                    return;
                }
            }
        }
    }
}

/// Does a path name what the pattern describes, or something inside it? The last segment of a pattern may end with
/// `*` for any rest, and a path that ends with a glob names everything that the glob brings in.
pub fn matches(pattern: &str, path: &[String]) -> bool {
    for (n, wanted) in pattern.split("::").enumerate() {
        match path.get(n).map(String::as_str) {
            Some("*") => return true,
            Some(segment) => match wanted.strip_suffix('*') {
                Some(start) if segment.starts_with(start) => {}
                None if segment == wanted => {}
                _ => return false,
            },
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let source = RustSource::read(text);
        let found: Vec<String> = named("crates/a/src/front/cors.rs", &source)
            .iter()
            .map(|path| path.segments.join("::"))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_use_is_taken_apart() {
        check("use a::b;", &["a::b"]);
        check("pub(crate) use ::a::b as c;", &["a::b"]);
        check("use a::{b, c::{self, d}, e::*};", &["a::b", "a::c", "a::c::d", "a::e::*"]);
        check("use a::{b, c,}; x::y", &["a::b", "a::c", "x::y"]);
    }

    #[test]
    fn paths_in_code_are_found_and_lone_names_are_not() {
        check("let x = a::b(c); d::<e::f>()", &["a::b", "e::f"]);
        check("x.y(a::b::<c>::d)", &["a::b"]);
        check("#[allow(clippy::x)] fn f() {}", &["clippy::x"]);
        check("// a::b\nlet x = \"c::d\";", &[]);
        check("#[cfg(test)] mod tests { use a::b; }", &[]);
    }

    #[test]
    fn macros_and_keywords_are_paths() {
        check("todo!(); a != b; c::d! {}", &["todo!", "c::d!"]);
        check("macro_rules! codes { () => {} }", &["codes!"]);
        check("async fn a() { b.await }", &["async", "await"]);
    }

    #[test]
    fn names_stand_for_what_brought_them_in() {
        check("use std::time::Instant; Instant::now()", &["std::time::Instant", "std::time::Instant::now"]);
        check("use std::time as t; t::Instant::now()", &["std::time", "std::time::Instant::now"]);
        check("use http; http::Response", &["http", "http::Response"]);
        check("mod x; x::y", &["crate::front::cors::x::y"]);
        let source = RustSource::read("mod a; pub use a::B;");
        assert_eq!(aliases("crates/a/src/lib.rs", &source)["B"], ["crate", "a", "B"]);
    }

    #[test]
    fn self_and_super_are_resolved() {
        check("use super::a;", &["crate::front::a"]);
        check("use super::super::a; a::b", &["crate::a", "crate::a::b"]);
        check("self::a::b", &["crate::front::cors::a::b"]);
        check("use crate::{table, front};", &["crate::table", "crate::front"]);
    }

    #[test]
    fn patterns_match_from_the_start() {
        let check = |pattern, path: &str, expected| {
            let path: Vec<String> = path.split("::").map(str::to_owned).collect();
            assert_eq!(matches(pattern, &path), expected, "{pattern} {path:?}");
        };
        check("std::fs", "std::fs::read", true);
        check("std::fs", "std::fs", true);
        check("std::fs", "std::fsx", false);
        check("std::fs", "std", false);
        check("std::fs", "a::std::fs", false);
        check("std::net::Tcp*", "std::net::TcpStream::connect", true);
        check("std::net::Tcp*", "std::net::IpAddr", false);
        check("std::time::Instant", "std::time::*", true);
        check("todo!", "todo!", true);
    }
}
