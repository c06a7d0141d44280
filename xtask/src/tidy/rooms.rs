//! Rooms keep to themselves: what a room never contains, and which other rooms it uses.
//!
//! Rooms stand in the map in the order of the road, so a room uses only rooms further down the page. Tests are exempt:
//! looking into other rooms is what they are for.

use std::collections::BTreeSet;

use super::architecture::{self, Ban, Banned, Map, Room};
use super::paths::{self, NamedPath};
use super::tree::{self, Tree};
use super::{Finding, House, words};

/// The map itself: every line can be read, every crate has a room, and so has every file of a crate that is divided into
/// rooms.
pub fn map(house: &House) -> Vec<Finding> {
    let House { tree, map } = house;
    let mut findings = map.findings.clone();
    let mut homes: Vec<String> = Vec::new();
    for folder in ["crates", "proof"] {
        homes.extend(tree.crates_in(folder).into_iter().map(|name| format!("{folder}/{name}")));
    }
    for home in &homes {
        if !map.rooms.iter().any(|room| room.place == *home) {
            let message = format!("`{home}` is not on the map: add a line to its rooms");
            findings.push(Finding::new(architecture::PATH, 1, message));
        }
    }
    for (path, _) in tree.product_files() {
        let is_divided = |home: &&String| {
            tree::is_within(path, home) && map.rooms.iter().any(|room| is_room_inside(room, home))
        };
        let is_root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
        if let Some(home) = homes.iter().find(is_divided)
            && !is_root
            && map.room_of(path).is_none_or(|room| room.place == *home)
        {
            findings.push(Finding::new(
                path,
                1,
                "belongs to no room of its crate: move it into one, or map it",
            ));
        }
    }
    for room in &map.rooms {
        for Ban { what, .. } in &room.never {
            if let Banned::Path(path) = what
                && !exists_if_ours(tree, path)
            {
                let message = format!("`{}` never names `{path}`, but there is no such module", room.name);
                findings.push(Finding::new(architecture::PATH, room.line, message));
            }
        }
    }
    findings
}

fn is_room_inside(room: &Room, home: &str) -> bool {
    room.place != home && tree::is_within(&room.place, home)
}

/// A path into one of our own crates has to lead to a module, or a rule about it would hold for the wrong reason.
fn exists_if_ours(tree: &Tree, path: &str) -> bool {
    let mut segments = path.split("::");
    let first = segments.next().unwrap_or_default().replace('_', "-");
    if !tree.crates_in("crates").contains(first.as_str()) {
        return true;
    }
    let Some(module) = segments.next() else { return true };
    let mut place = format!("crates/{first}/src/{module}");
    for segment in segments.filter(|segment| segment.starts_with(char::is_lowercase)) {
        place = format!("{place}/{segment}");
    }
    tree.holds(&place) || tree.holds(&format!("{place}.rs"))
}

/// The words that a room never says.
pub fn never_words(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in &house.map.rooms {
        for Ban { what, except } in &room.never {
            let Banned::Word(word) = what else { continue };
            for (path, source) in house.tree.sources(&room.place) {
                if except.iter().any(|place| tree::is_within(path, place)) {
                    continue;
                }
                for (line, text) in words::find(source, word) {
                    let message = format!(
                        "`{}` has no word for *{word}*: say `{text}` in the words of this room",
                        room.name
                    );
                    findings.push(Finding::new(path, line, message));
                }
            }
        }
    }
    findings
}

/// The paths that a room never names.
pub fn never_paths(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in house.map.rooms.iter().filter(|room| !room.never.is_empty()) {
        for (path, source) in house.tree.sources(&room.place) {
            for NamedPath { segments, line } in paths::named(path, source) {
                let is_met = |ban: &&Ban| {
                    matches!(&ban.what, Banned::Path(pattern) if paths::matches(pattern, &segments))
                        && !ban.except.iter().any(|place| tree::is_within(path, place))
                };
                if let Some(Ban { what: Banned::Path(pattern), .. }) = room.never.iter().find(is_met) {
                    let named = segments.join("::");
                    let message = format!(
                        "`{}` never names `{pattern}`, but here is `{named}`: take it as a value",
                        room.name
                    );
                    findings.push(Finding::new(path, line, message));
                }
            }
        }
    }
    findings
}

/// The order of the road: a room uses what its line says, and a line says only what is used.
pub fn uses(house: &House) -> Vec<Finding> {
    let House { tree, map } = house;
    let mut findings = Vec::new();
    for (n, room) in map.rooms.iter().enumerate() {
        let Some(allowed) = &room.uses else { continue };
        let used = match room.place.split('/').collect::<Vec<_>>()[..] {
            [_, _] | ["xtask"] => used_by_crate(tree, room),
            _ => used_by_room(tree, map, room),
        };
        for (other, path, line) in &used {
            if !allowed.contains(other) {
                let message =
                    format!("`{}` may not use `{other}`: its line on the map lists what it uses", room.name);
                findings.push(Finding::new(path, *line, message));
            }
        }
        for other in allowed {
            let mut complain = |message: String| {
                findings.push(Finding::new(architecture::PATH, room.line, message));
            };
            if !used.iter().any(|(used, ..)| used == other) {
                complain(format!("`{}` does not use `{other}`: remove it from the line", room.name));
            }
            match map.rooms.iter().position(|room| room.name == *other) {
                None => complain(format!("`{other}` is no room: correct the line of `{}`", room.name)),
                Some(place) if place < n => {
                    complain(format!(
                        "`{}` uses `{other}`, which is above it: dependencies point down",
                        room.name
                    ));
                }
                Some(place)
                    if room.place.starts_with("crates/") && map.rooms[place].place.starts_with("proof/") =>
                {
                    complain(format!("`{}` is product and uses `{other}`, which is proof", room.name));
                }
                Some(_) => {}
            }
        }
    }
    findings
}

/// The rooms that a crate uses, by its manifest, without what only its tests need.
fn used_by_crate(tree: &Tree, room: &Room) -> Vec<(String, String, usize)> {
    let ours: BTreeSet<&str> =
        ["crates", "proof"].into_iter().flat_map(|folder| tree.crates_in(folder)).collect();
    let path = format!("{}/Cargo.toml", room.place);
    let dependencies = dependencies(tree.text(&path).unwrap_or_default());
    // Crates for programs go by the names that programs know them by.
    let folder = |name: String| name.strip_prefix("lazulite-").map_or(name.clone(), str::to_owned);
    let folders = dependencies.into_iter().map(|(name, line)| (folder(name), line));
    let ours = folders.filter(|(name, _)| ours.contains(name.as_str()));
    ours.map(|(name, line)| (name, path.clone(), line)).collect()
}

/// The names in the dependency tables of a manifest, those for tests left out, each with its line.
fn dependencies(manifest: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut is_dependencies = false;
    for (n, line) in manifest.lines().enumerate() {
        if let Some(section) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let is_for_tests = section.contains("dev-dependencies");
            is_dependencies = section.ends_with("dependencies") && !is_for_tests;
            if let Some((_, name)) = section.rsplit_once("dependencies.")
                && !is_for_tests
            {
                found.push((name.to_owned(), n + 1));
            }
        } else if is_dependencies {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('#') {
                found.push((name.to_owned(), n + 1));
            }
        }
    }
    found
}

/// The rooms that the code of a folder uses: crates, and other rooms of its own crate.
fn used_by_room(tree: &Tree, map: &Map, room: &Room) -> Vec<(String, String, usize)> {
    let crates = tree.crates_in("crates");
    let Some((home, _)) = room.place.split_once("/src") else { return Vec::new() };
    // What the root of the crate re-exports is still in the room that defines it.
    let root = format!("{home}/src/lib.rs");
    let exports =
        tree.rust_files().find(|(path, _)| *path == root).map(|(path, source)| paths::aliases(path, source));
    let mut found = Vec::new();
    for (path, source) in tree.sources(&room.place) {
        for NamedPath { mut segments, line } in paths::named(path, source) {
            let name = segments[0].replace('_', "-");
            if crates.contains(name.as_str()) {
                found.push((name, path.to_owned(), line));
            }
            if segments[0] != "crate" {
                continue;
            }
            let exported = segments.get(1).and_then(|name| exports.as_ref()?.get(name));
            if let Some(target) =
                exported.filter(|target| target.first().is_some_and(|first| first == "crate"))
            {
                segments.splice(..2, target.iter().cloned());
            }
            let target = format!("{home}/src/{}", segments[1..].join("/"));
            let others =
                map.rooms.iter().filter(|other| is_room_inside(other, home) && other.place != room.place);
            let is_target = |other: &&Room| tree::is_within(&target, other.place.trim_end_matches(".rs"));
            if let Some(other) = others.filter(is_target).max_by_key(|other| other.place.len()) {
                found.push((other.name.clone(), path.to_owned(), line));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| room | owns | uses | never |\n|---|---|---|---|\n";

    fn house(rooms: &str, files: &[(&str, &str)]) -> House {
        let page = format!("{HEAD}{rooms}");
        let mut all = vec![(architecture::PATH, page.as_str())];
        all.extend_from_slice(files);
        House::new(Tree::of(&all))
    }

    fn check(findings: Vec<Finding>, expected: &[&str]) {
        let found: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} does not contain {expected}");
        }
    }

    #[test]
    fn a_word_that_a_room_has_not_is_found() {
        let house = house(
            "| `engine` | | | *entity* (except `engine/ok.rs`) |\n",
            &[
                (
                    "crates/engine/src/lib.rs",
                    "\n/// An entity.\nfn f() {}\n#[cfg(test)] mod tests { /* entity */ }",
                ),
                ("crates/engine/src/ok.rs", "// entity"),
                ("crates/engine/tests/it.rs", "// entity"),
                ("crates/tables/src/lib.rs", "// entity"),
            ],
        );
        check(never_words(&house), &["crates/engine/src/lib.rs:2: `engine` has no word for *entity*"]);
    }

    #[test]
    fn a_path_that_a_room_never_names_is_found() {
        let house = house(
            "| `protocol` | | | `std::fs`, `async`, `std::time::SystemTime` (except `protocol/ok.rs`) |\n",
            &[
                ("crates/protocol/src/a.rs", "use std::{fs, io};\nfn f() { fs::read() }"),
                ("crates/protocol/src/b.rs", "async fn f() {}\nuse std::time::SystemTime;"),
                ("crates/protocol/src/ok.rs", "use std::time::SystemTime;"),
            ],
        );
        let expected = ["a.rs:1: `protocol` never", "a.rs:2:", "b.rs:1:", "b.rs:2:"];
        check(never_paths(&house), &expected);
    }

    #[test]
    fn crates_use_what_their_manifests_say() {
        let house = house(
            "| `tables` | | `engine` | |\n| `server` | | `tables` | |\n| `engine` | | | |\n",
            &[
                (
                    "crates/server/Cargo.toml",
                    "[dependencies]\ntables.workspace = true\nengine = \"1\"\nlog = \"1\"\n",
                ),
                ("crates/tables/Cargo.toml", "[dev-dependencies]\nengine.workspace = true\n"),
                ("crates/engine/Cargo.toml", "[dependencies]\n"),
            ],
        );
        let expected = [
            "`tables` does not use `engine`",
            "crates/server/Cargo.toml:3: `server` may not use `engine`",
            "`server` uses `tables`, which is above it",
        ];
        check(uses(&house), &expected);
    }

    #[test]
    fn product_does_not_use_proof() {
        let house = house(
            "| `server` | | `testkit` | |\n| `testkit` | | any | |\n",
            &[
                ("crates/server/Cargo.toml", "[target.'cfg(unix)'.dependencies]\ntestkit.workspace = true\n"),
                ("proof/testkit/Cargo.toml", "[dependencies.server]\n"),
            ],
        );
        check(uses(&house), &["`server` is product and uses `testkit`, which is proof"]);
    }

    #[test]
    fn rooms_of_one_crate_are_used_downwards() {
        let house = house(
            "| `server` | | | |\n| `server/table` | | `server/front` | |\n| `server/front` | | `engine` | |\n| `engine` | | | |\n",
            &[
                ("crates/engine/Cargo.toml", ""),
                ("crates/server/src/lib.rs", "mod front; mod table; pub use table::Answer;"),
                ("crates/server/src/table/mod.rs", "use crate::front::{Head, Body};"),
                ("crates/server/src/front/mod.rs", "use super::table::rows;\nuse engine::Row;"),
                ("crates/server/src/front/cors.rs", "use crate::Answer;\nuse crate::front::Head;"),
            ],
        );
        let expected = [
            "crates/server/src/front/cors.rs:1: `server/front` may not use `server/table`",
            "crates/server/src/front/mod.rs:1: `server/front` may not use `server/table`",
        ];
        check(uses(&house), &expected);
    }

    #[test]
    fn everything_has_a_room_and_every_room_is_there() {
        let house = house(
            "| `server` | | | `engine::wire` |\n| `server/front` | | | |\n| `server/attic` | | | |\n",
            &[
                ("crates/engine/Cargo.toml", ""),
                ("crates/server/Cargo.toml", ""),
                ("crates/server/src/lib.rs", ""),
                ("crates/server/src/front/mod.rs", ""),
                ("crates/server/src/loose.rs", ""),
            ],
        );
        let expected = [
            "there is no `server/attic`",
            "`crates/engine` is not on the map",
            "crates/server/src/loose.rs:1: belongs to no room",
            "never names `engine::wire`, but there is no such module",
        ];
        check(map(&house), &expected);
    }
}
