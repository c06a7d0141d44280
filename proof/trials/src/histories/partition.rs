//! The sequential model of one partition: the answer of each operation when it happens alone.
//!
//! Every write stores its own number (`writer`) in its rows, so a row that is read names the write that made it. This
//! also reveals the ETag of a write without a known answer, as soon as any client reads its row; see
//! [`Partition::learn`].

use std::collections::HashMap;

use super::checker::{Interval, Sequential};

pub const ROW_COUNT_MAX: usize = 4;

/// A row's version in ticks, taken from its ETag.
pub type Tag = u64;

/// A row: the number of its last write, and two properties, each with the number of the write that set it.
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
    /// A single change, or several as an entity group transaction.
    Write(Vec<Change>),
    Get(usize),
    /// One page of a scan, from this row on.
    Page(usize),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The ETag of each change; a delete has none.
    Written(Vec<Option<Tag>>),
    /// The first change that was refused, and the status.
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
    /// Its number, which it also stores in its rows.
    pub id: u32,
    pub client: usize,
    pub call: Call,
    pub answer: Answer,
}

/// The model, with the ETags learnt from reads.
#[derive(Default)]
pub struct Partition {
    tags: HashMap<(u32, usize), Tag>,
}

impl Partition {
    /// Learns the ETags of writes without a known answer from all reads.
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

    /// A tag that was never read cannot occur in a condition either, so any unused one will do.
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

/// The status with which a single change is refused, if it is.
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
                // Up to where the next page begins, the partition has exactly the rows of this page.
                let end = next.unwrap_or(ROW_COUNT_MAX);
                let expected =
                    (*from..end).filter_map(|at| rows.get(at).copied().flatten().map(|row| (at, row)));
                expected.eq(found.iter().copied()).then_some(*rows)
            }
            _ => None,
        }
    }
}
