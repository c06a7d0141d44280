//! `ARCHITECTURE.md` as values: its rooms, and the code that has only one place.
//!
//! Two forms of table are read, and everything else on the page is for people alone:
//!
//! ```text
//! | room     | owns                  | uses                 | never                       |
//! | `engine` | versioned rows, …     |                      | `redb`, *entity*, *account* |
//! | `tables` | the rules of tables   | `engine`, `protocol` | `http`, *header*            |
//!
//! | code that names | stands only in |
//! | `redb`          | `engine-local` |
//! ```
//!
//! A room is a crate (`engine`), a folder or a file in one (`server/front`), or everything below a folder of the root
//! (`proof`). *Never* lists paths in code spans, and words in emphasis; `(except …)` behind one of them names the places
//! where it may stand. *Uses* lists other rooms, or says `any`. Other words in these cells
//! are a finding, because nothing would check them.

use super::Finding;
use super::tree::Tree;

pub const PATH: &str = "ARCHITECTURE.md";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Room {
    /// As the page calls it: `server/front`.
    pub name: String,
    /// Where it lies: `crates/server/src/front`.
    pub place: String,
    /// The rooms that it may use; `None` for any.
    pub uses: Option<Vec<String>>,
    pub never: Vec<Ban>,
    /// The line of the page.
    pub line: usize,
}

/// Something that a room never contains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ban {
    pub what: Banned,
    /// Places, such as `crates/engine/src/env`, where it may stand.
    pub except: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Banned {
    Path(String),
    Word(String),
}

/// Code that has only one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnlyPlace {
    pub paths: Vec<String>,
    pub places: Vec<String>,
    pub line: usize,
}

#[derive(Default, Debug)]
pub struct Map {
    pub rooms: Vec<Room>,
    pub only_places: Vec<OnlyPlace>,
    /// Lines that cannot be read.
    pub findings: Vec<Finding>,
}

impl Map {
    pub fn read(tree: &Tree) -> Map {
        let mut map = Map::default();
        let Some(text) = tree.text(PATH) else {
            map.findings.push(Finding::new(PATH, 1, "there is no map: write it"));
            return map;
        };
        let mut columns: Vec<String> = Vec::new();
        for (line, text) in text.lines().enumerate().map(|(n, text)| (n + 1, text)) {
            let Some(cells) = cells(text) else {
                columns.clear();
                continue;
            };
            if columns.is_empty() {
                columns = cells.into_iter().map(str::to_owned).collect();
            } else if !cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) {
                let cell =
                    |column: &str| columns.iter().position(|name| name == column).and_then(|n| cells.get(n));
                match columns[0].as_str() {
                    "room" => map.add_room(tree, line, cell("room"), cell("uses"), cell("never")),
                    "code that names" => {
                        map.add_only_place(tree, line, cell("code that names"), cell("stands only in"));
                    }
                    _ => {}
                }
            }
        }
        if map.rooms.is_empty() {
            map.findings.push(Finding::new(
                PATH,
                1,
                "no table of rooms: give one the columns room, owns, uses, never",
            ));
        }
        map
    }

    fn complain(&mut self, line: usize, message: String) {
        self.findings.push(Finding::new(PATH, line, message));
    }

    fn add_room(
        &mut self,
        tree: &Tree,
        line: usize,
        room: Option<&&str>,
        uses: Option<&&str>,
        never: Option<&&str>,
    ) {
        let (Some(room), Some(uses), Some(never)) = (room, uses, never) else {
            return self.complain(line, "a room needs the columns room, owns, uses and never".to_owned());
        };
        let name = room.trim_matches('`').to_owned();
        let Some(place) = self.place(tree, line, &name) else { return };
        let uses = match *uses {
            "any" => None,
            list => Some(self.code_spans(line, list)),
        };
        let never = match bans(never) {
            Ok(bans) => bans,
            Err(rest) => {
                self.complain(line, cannot_check(rest));
                Vec::new()
            }
        };
        let never = never
            .into_iter()
            .map(|(what, except)| {
                let except = except.iter().filter_map(|name| self.place(tree, line, name)).collect();
                Ban { what, except }
            })
            .collect();
        self.rooms.push(Room { name, place, uses, never, line });
    }

    fn add_only_place(&mut self, tree: &Tree, line: usize, paths: Option<&&str>, places: Option<&&str>) {
        let (Some(paths), Some(places)) = (paths, places) else {
            return self.complain(
                line,
                "this table needs the columns 'code that names' and 'stands only in'".to_owned(),
            );
        };
        let paths = self.code_spans(line, paths);
        let names = self.code_spans(line, places);
        let places = names.iter().filter_map(|name| self.place(tree, line, name)).collect();
        self.only_places.push(OnlyPlace { paths, places, line });
    }

    /// A list of code spans and nothing else.
    fn code_spans(&mut self, line: usize, cell: &str) -> Vec<String> {
        let mut spans = Vec::new();
        match bans(cell) {
            Ok(items) => {
                for (what, except) in items {
                    match what {
                        Banned::Path(span) if except.is_empty() => spans.push(span),
                        other => {
                            self.complain(line, format!("{other:?} does not belong here: list code spans"))
                        }
                    }
                }
            }
            Err(rest) => self.complain(line, cannot_check(rest)),
        }
        spans
    }

    fn place(&mut self, tree: &Tree, line: usize, name: &str) -> Option<String> {
        let place = place(tree, name);
        if place.is_none() {
            self.complain(line, format!("there is no `{name}`: correct the map, or build the room"));
        }
        place
    }

    /// The room to which a file belongs: the innermost one.
    pub fn room_of(&self, path: &str) -> Option<&Room> {
        let around = self.rooms.iter().filter(|room| super::tree::is_within(path, &room.place));
        around.max_by_key(|room| room.place.len())
    }
}

fn cannot_check(rest: &str) -> String {
    format!("tidy cannot check '{rest}': list code spans and *words*, and say the rest elsewhere")
}

/// The path of the file or folder that the page calls `name`: `engine/keys.rs` is `crates/engine/src/keys.rs`. Paths from
/// the root are accepted too.
pub fn place(tree: &Tree, name: &str) -> Option<String> {
    let name = name.trim_end_matches('/');
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let mut candidates = Vec::new();
    for home in ["crates/", "proof/", ""] {
        if rest.is_empty() {
            candidates.push(format!("{home}{first}"));
        } else {
            candidates.push(format!("{home}{first}/src/{rest}"));
            candidates.push(format!("{home}{first}/{rest}"));
        }
    }
    candidates.into_iter().find(|candidate| tree.holds(candidate))
}

/// The cells of one line of a table; `None` for other lines. No cell may contain a bar.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// `` `a`, *b* (except `c`, `d`) `` as values; the error is the text that cannot be read.
fn bans(cell: &str) -> Result<Vec<(Banned, Vec<String>)>, &str> {
    let mut rest = cell.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (what, behind) = quoted(rest, '`')
            .map(|(path, behind)| (Banned::Path(path), behind))
            .or_else(|| quoted(rest, '*').map(|(word, behind)| (Banned::Word(word.to_lowercase()), behind)))
            .ok_or(rest)?;
        let mut except = Vec::new();
        let mut behind = behind.trim_start();
        if let Some(list) = behind.strip_prefix("(except ") {
            let (list, after) = list.split_once(')').ok_or(behind)?;
            for item in list.split(',') {
                match quoted(item.trim(), '`') {
                    Some((name, "")) => except.push(name),
                    _ => return Err(item),
                }
            }
            behind = after.trim_start();
        }
        found.push((what, except));
        rest = match behind.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if behind.is_empty() => behind,
            None => return Err(behind),
        };
    }
    Ok(found)
}

/// The text between two quotes at the start, and the text after them.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (inner, behind) = text.strip_prefix(quote)?.split_once(quote)?;
    (!inner.is_empty()).then(|| (inner.to_owned(), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> Map {
        Map::read(&Tree::of(&[
            (PATH, page),
            ("crates/engine/src/lib.rs", ""),
            ("crates/server/src/front/cors.rs", ""),
            ("proof/bench/src/main.rs", ""),
        ]))
    }

    #[test]
    fn a_room_reads() {
        let page = "\
# Rooms

| room | owns | uses | never |
|---|---|---|---|
| `server/front` | `x`, *y*, anything | `engine` | `std::fs` (except `engine`, `bench`), *Queue message* |
| `proof` | proof | any | |

| other | table |
|---|---|
| `a` | `b` |
";
        let map = read(page);
        assert_eq!(map.findings, []);
        let places = vec!["crates/engine".to_owned(), "proof/bench".to_owned()];
        let front = Room {
            name: "server/front".to_owned(),
            place: "crates/server/src/front".to_owned(),
            uses: Some(vec!["engine".to_owned()]),
            never: vec![
                Ban { what: Banned::Path("std::fs".to_owned()), except: places },
                Ban { what: Banned::Word("queue message".to_owned()), except: vec![] },
            ],
            line: 5,
        };
        let proof =
            Room { name: "proof".to_owned(), place: "proof".to_owned(), uses: None, never: vec![], line: 6 };
        assert_eq!(map.rooms, [front, proof]);
        assert_eq!(map.room_of("crates/server/src/front/cors.rs").unwrap().name, "server/front");
        assert_eq!(map.room_of("crates/server/src/lib.rs"), None);
    }

    #[test]
    fn code_with_one_place_reads() {
        let page = "| code that names | stands only in |\n|---|---|\n| `a::b`, `c!` | `engine/lib.rs` |\n";
        let only = &read(page).only_places[0];
        assert_eq!(only.paths, ["a::b", "c!"]);
        assert_eq!(only.places, ["crates/engine/src/lib.rs"]);
    }

    #[test]
    fn what_nobody_can_check_is_a_finding() {
        let check = |row: &str, expected: &str| {
            let map = read(&format!("| room | owns | uses | never |\n|---|---|---|---|\n{row}\n"));
            let messages: Vec<&str> = map.findings.iter().map(|finding| finding.message.as_str()).collect();
            assert!(messages.iter().any(|message| message.contains(expected)), "{row}: {messages:?}");
        };
        check("| `engine` | | | a rule about data |", "cannot check 'a rule about data'");
        check("| `engine` | | | `a` and `b` |", "cannot check 'and `b`'");
        check("| `engine` | | everything | |", "cannot check 'everything'");
        check("| `engine` | | *word* | |", "does not belong here");
        check("| `cellar` | | | |", "there is no `cellar`");
        check("| `engine` | | | `a` (except `cellar`) |", "there is no `cellar`");
        check("| `engine` |", "needs the columns");
    }

    #[test]
    fn a_page_without_rooms_is_a_finding() {
        assert_eq!(read("# Nothing").findings.len(), 1);
        assert_eq!(Map::read(&Tree::of(&[])).findings.len(), 1);
    }
}
