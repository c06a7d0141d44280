//! The sequential model of one partition: what each operation must answer when it happens alone.
//!
//! Every write gives the rows it writes a number of its own (`writer`), so a row that is read says who wrote it. That
//! also tells the ETag of a write whose answer nobody heard, as soon as anybody reads what it wrote; see
//! [`Partition::learn`].

use std::collections::HashMap;

use super::checker::{Interval, Sequential};

pub const ROW_COUNT_MAX: usize = 4;

/// A row's version in ticks, as its ETag says it.
pub type Tag = u64;

/// A row as it is written and read: who wrote it last, and two properties, each the number of who set it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    pub tag: Tag,
    pub writer: u32,
    pub a: Option<u32>,
    pub b: Option<u32>,
}

/// By row number.
pub type Rows = [Option<Row>; ROW_COUNT_MAX];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Insert,
    Replace,
    Merge,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    None,
    Any,
    Tag(Tag),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    pub row: usize,
    pub verb: Verb,
    pub condition: Condition,
    /// Which of the two properties it sets.
    pub sets: (bool, bool),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// One change alone, or several as an entity group transaction.
    Write(Vec<Change>),
    Get(usize),
    /// One page of a scan, from this row on.
    Page(usize),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// With the ETag of each change; a delete has none.
    Written(Vec<Option<Tag>>),
    /// The first change that was refused, and with which status.
    Refused {
        change: usize,
        status: u16,
    },
    Found(Option<Row>),
    /// The rows, and the row that the continuation names.
    Page(Vec<(usize, Row)>, Option<usize>),
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Its number, which is what it writes.
    pub id: u32,
    pub client: usize,
    pub call: Call,
    pub answer: Answer,
}

/// The model, with the ETags that were learnt from reads.
#[derive(Default)]
pub struct Partition {
    tags: HashMap<(u32, usize), Tag>,
}

impl Partition {
    /// Looks through all reads for the ETags of writes whose answers are unknown.
    pub fn learn(history: &[Interval<Operation>]) -> Partition {
        let mut tags = HashMap::new();
        for interval in history {
            match (&interval.operation.call, &interval.operation.answer) {
                (Call::Get(at), Answer::Found(Some(row))) => drop(tags.insert((row.writer, *at), row.tag)),
                (_, Answer::Page(rows, _)) => {
                    tags.extend(rows.iter().map(|(at, row)| ((row.writer, *at), row.tag)));
                }
                _ => {}
            }
        }
        Partition { tags }
    }

    /// A tag that was never read cannot have been asked for either: any that no row bears will do.
    fn tag(&self, id: u32, row: usize) -> Tag {
        self.tags.get(&(id, row)).copied().unwrap_or(u64::MAX - (u64::from(id) << 8) - row as u64)
    }

    pub fn learnt_tag(&self, id: u32, row: usize) -> Option<Tag> {
        self.tags.get(&(id, row)).copied()
    }

    fn write(
        &self,
        rows: &Rows,
        id: u32,
        changes: &[Change],
        tag: impl Fn(usize) -> Option<Tag>,
    ) -> Option<Rows> {
        if changes.iter().any(|change| refusal(rows, change).is_some()) {
            return None;
        }
        let mut after = *rows;
        for (index, change) in changes.iter().enumerate() {
            let (a, b) = (change.sets.0.then_some(id), change.sets.1.then_some(id));
            let old = rows[change.row];
            after[change.row] = match change.verb {
                Verb::Delete => None,
                Verb::Insert | Verb::Replace => Some(Row { tag: tag(index)?, writer: id, a, b }),
                Verb::Merge => Some(Row {
                    tag: tag(index)?,
                    writer: id,
                    a: a.or(old.and_then(|row| row.a)),
                    b: b.or(old.and_then(|row| row.b)),
                }),
            };
        }
        Some(after)
    }
}

/// The status that a change by itself is refused with.
fn refusal(rows: &Rows, change: &Change) -> Option<u16> {
    match (change.verb, change.condition, &rows[change.row]) {
        (Verb::Insert, _, Some(_)) => Some(409),
        (Verb::Insert, _, None) | (_, Condition::None, _) => None,
        (_, _, None) => Some(404),
        (_, Condition::Tag(tag), Some(row)) if row.tag != tag => Some(412),
        (_, _, Some(_)) => None,
    }
}

impl Sequential for Partition {
    type State = Rows;
    type Operation = Operation;

    fn initial(&self) -> Rows {
        Rows::default()
    }

    fn step(&self, rows: &Rows, operation: &Operation) -> Option<Rows> {
        match (&operation.call, &operation.answer) {
            (Call::Write(changes), Answer::Written(tags)) => {
                self.write(rows, operation.id, changes, |index| tags.get(index).copied().flatten())
            }
            (Call::Write(changes), Answer::Unknown) => self
                .write(rows, operation.id, changes, |index| Some(self.tag(operation.id, changes[index].row))),
            (Call::Write(changes), Answer::Refused { change, status }) => {
                let earlier_hold = changes[..*change].iter().all(|earlier| refusal(rows, earlier).is_none());
                (earlier_hold && refusal(rows, &changes[*change]) == Some(*status)).then_some(*rows)
            }
            (Call::Get(row), Answer::Found(found)) => (rows[*row] == *found).then_some(*rows),
            (Call::Page(from), Answer::Page(found, next)) => {
                // Up to where the next page begins, there is what the page has and nothing else.
                let end = next.unwrap_or(ROW_COUNT_MAX);
                let expected =
                    (*from..end).filter_map(|at| rows.get(at).copied().flatten().map(|row| (at, row)));
                expected.eq(found.iter().copied()).then_some(*rows)
            }
            _ => None,
        }
    }
}
