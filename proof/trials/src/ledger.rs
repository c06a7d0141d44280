//! The ledger kept outside the server: what each writer knows to be stored, and which request is still open.
//!
//! Every row and every table has one writer, except the hot rows, and a writer sends one request at a time. So after a
//! kill or a power cut a writer's rows are either exactly those acknowledged, or those plus the whole of the one open
//! request. Any other state is a broken promise. On a hot row each writer owns one counter.
//!
//! Versions are compared as ticks of 100 ns, parsed here from their printed form.

use std::collections::BTreeMap;

use serde_json::Value;

/// PartitionKey and RowKey.
pub type Key = (String, String);
pub type Properties = BTreeMap<String, Value>;
pub type Rows = BTreeMap<Key, Row>;

/// The table that is never dropped. Every other table belongs to one writer.
pub const MAIN_TABLE: &str = "trial";
/// The partition of rows that all writers merge into.
pub const HOT_PARTITION: &str = "hot";
/// The partition of rows that the trial itself writes to test whether writes are accepted.
pub const PROBE_PARTITION: &str = "probe";

/// Ticks of 100 ns since the year 0, by the simplified calendar below: good for comparing only.
pub type Version = u64;

#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub properties: Properties,
    /// `None` until the server has reported it.
    pub version: Option<Version>,
}

/// The tables, rows and counters of one writer.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct State {
    pub tables: BTreeMap<String, Rows>,
    /// Its counters on the hot rows, by RowKey and property.
    pub hot: BTreeMap<(String, String), u64>,
}

#[derive(Clone, Debug)]
pub enum Change {
    Put { table: String, key: Key, properties: Properties },
    Delete { table: String, key: Key },
    CreateTable(String),
    DropTable(String),
    Hot { row: String, property: String, number: u64 },
}

/// One request; all of its changes happen or none.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    pub changes: Vec<Change>,
    /// The greatest version acknowledged to any writer before this request was sent.
    pub floor: Version,
    /// The version in the server's answer, if there was one.
    pub version: Option<Version>,
}

impl State {
    pub fn new() -> State {
        State { tables: BTreeMap::from([(MAIN_TABLE.to_owned(), Rows::new())]), hot: BTreeMap::new() }
    }

    pub fn row_count(&self) -> usize {
        self.tables.values().map(BTreeMap::len).sum()
    }

    pub fn apply(&mut self, attempt: &Attempt) {
        for change in &attempt.changes {
            match change {
                Change::Put { table, key, properties } => {
                    let row = Row { properties: properties.clone(), version: attempt.version };
                    self.tables.entry(table.clone()).or_default().insert(key.clone(), row);
                }
                Change::Delete { table, key } => {
                    if let Some(rows) = self.tables.get_mut(table) {
                        rows.remove(key);
                    }
                }
                Change::CreateTable(table) => {
                    self.tables.insert(table.clone(), Rows::new());
                }
                Change::DropTable(table) => {
                    self.tables.remove(table);
                }
                Change::Hot { row, property, number } => {
                    self.hot.insert((row.clone(), property.clone()), *number);
                }
            }
        }
    }

    /// Describes how the found state differs; `None` if it does not. A version not known yet must be above `floor`, and
    /// the same for all such rows, because they come from one commit.
    pub fn difference(&self, found: &State, floor: Version) -> Option<String> {
        if self.tables.keys().ne(found.tables.keys()) {
            let (ours, theirs): (Vec<_>, Vec<_>) =
                (self.tables.keys().collect(), found.tables.keys().collect());
            return Some(format!("tables {ours:?} expected, {theirs:?} found"));
        }
        if self.hot != found.hot {
            return Some(format!("counters {:?} expected, {:?} found", self.hot, found.hot));
        }
        let mut new_version = None;
        for (table, rows) in &self.tables {
            let others = &found.tables[table];
            for (key, row) in rows {
                let Some(other) = others.get(key) else {
                    return Some(format!("{table} {key:?} is missing; it should be {}", brief(row)));
                };
                let same = match (row.version, other.version) {
                    (Some(ours), Some(theirs)) => ours == theirs,
                    (None, Some(theirs)) => theirs > floor && *new_version.get_or_insert(theirs) == theirs,
                    (_, None) => false,
                };
                if !same || row.properties != other.properties {
                    return Some(format!(
                        "{table} {key:?} should be {} (version above {floor} if not known) and is {}",
                        brief(row),
                        brief(other)
                    ));
                }
            }
            if let Some((key, row)) = others.iter().find(|(key, _)| !rows.contains_key(*key)) {
                return Some(format!("{table} {key:?} should not exist, but is {}", brief(row)));
            }
        }
        None
    }
}

/// The outcome of an open attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Applied,
    NotApplied,
}

/// Compares the found state with the two that are allowed, without and with the open request.
pub fn settle(known: &State, open: Option<&Attempt>, found: &State) -> Result<Outcome, String> {
    let Some(difference) = known.difference(found, Version::MAX) else { return Ok(Outcome::NotApplied) };
    let Some(attempt) = open else { return Err(difference) };
    let mut applied = known.clone();
    applied.apply(attempt);
    match applied.difference(found, attempt.floor) {
        None => Ok(Outcome::Applied),
        Some(other) => Err(format!(
            "neither without the open request ({difference}) nor with it ({other}); it has {} changes, the first {}",
            attempt.changes.len(),
            attempt.changes.first().map_or_else(String::new, |change| cut(&format!("{change:?}"))),
        )),
    }
}

/// The ticks of an ETag (`W/"datetime'…'"`, percent-encoded) or of a Timestamp.
pub fn version_of(text: &str) -> Option<Version> {
    let text = text.replace("%3A", ":").replace("%3a", ":");
    let time = match text.split_once("datetime'") {
        Some((_, rest)) => rest.split_once('\'')?.0,
        None => &text,
    };
    let (date, time) = time.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str| text.parse::<u64>().ok();
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.splitn(3, ':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    if fraction.len() > 7 {
        return None;
    }
    let ticks = number(&format!("{fraction:0<7}"))?;
    // Every month has 31 days here: the number only has to grow with time.
    let days = (year * 12 + month - 1) * 31 + day - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 10_000_000 + ticks)
}

/// The ETag of a version, as the server prints it.
pub fn etag_of(version: Version) -> String {
    let (ticks, seconds) = (version % 10_000_000, version / 10_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = (days / 372, days / 31 % 12 + 1, days % 31 + 1);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("W/\"datetime'{year:04}-{month:02}-{day:02}T{hour:02}%3A{minute:02}%3A{second:02}.{ticks:07}Z'\"")
}

fn brief(row: &Row) -> String {
    let properties = serde_json::to_string(&row.properties).unwrap_or_default();
    let version = row.version.map_or_else(|| "not known".to_owned(), |version| version.to_string());
    format!("{} (version {version})", cut(&properties))
}

fn cut(text: &str) -> String {
    const SHOWN_MAX: usize = 200;
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_both_forms_and_grow_with_time() {
        let etag = version_of("W/\"datetime'2026-11-15T08%3A59%3A01.1234567Z'\"").unwrap();
        assert_eq!(version_of("2026-11-15T08:59:01.1234567Z"), Some(etag));
        assert!(version_of("2026-11-15T08:59:01.12345Z").unwrap() < etag);
        assert!(version_of("2026-12-01T00:00:00Z").unwrap() > etag);
        assert_eq!(version_of("2026-11-15"), None);
        assert_eq!(etag_of(etag), "W/\"datetime'2026-11-15T08%3A59%3A01.1234567Z'\"");
    }

    fn put(row: &str, n: u64) -> Change {
        let properties = Properties::from([("n".to_owned(), n.into())]);
        Change::Put { table: MAIN_TABLE.to_owned(), key: ("p".to_owned(), row.to_owned()), properties }
    }

    /// The state after these changes, as if read from a server that gave them this version.
    fn found(changes: &[Change], version: Version) -> State {
        let mut state = State::new();
        state.apply(&Attempt { changes: changes.to_vec(), floor: 0, version: Some(version) });
        state
    }

    #[test]
    fn an_open_request_is_there_wholly_or_not_at_all() {
        let known = State::new();
        let open = Attempt { changes: vec![put("a", 1), put("b", 1)], floor: 5, version: None };
        assert_eq!(settle(&known, Some(&open), &State::new()), Ok(Outcome::NotApplied));
        assert_eq!(settle(&known, Some(&open), &found(&open.changes, 6)), Ok(Outcome::Applied));
        assert!(settle(&known, Some(&open), &found(&open.changes[..1], 6)).is_err(), "half");
        assert!(
            settle(&known, Some(&open), &found(&open.changes, 5)).is_err(),
            "a version that was given before"
        );
        assert!(settle(&known, None, &found(&open.changes, 6)).is_err(), "nobody sent it");
    }

    #[test]
    fn what_was_acknowledged_may_neither_vanish_nor_change() {
        let known = found(&[put("a", 1)], 6);
        assert_eq!(settle(&known, None, &known), Ok(Outcome::NotApplied));
        assert!(settle(&known, None, &State::new()).is_err());
        assert!(settle(&known, None, &found(&[put("a", 2)], 6)).is_err(), "another value");
        assert!(settle(&known, None, &found(&[put("a", 1)], 7)).is_err(), "another version");
    }
}
