//! Writes: a single change, or up to a hundred in one partition, checked one by one and committed together.
//!
//! Insert, replace, merge, upsert and delete differ only in what they expect and what they put. A single write is
//! a transaction of one change, so an entity group transaction is atomic by construction.

use std::borrow::Cow;
use std::num::NonZeroU64;

use bytes::Bytes;
use engine::{Effect, Expect, Op, Version};
use protocol::table::model::{ETag, Entity, Property};
use protocol::{ErrorCode, ServiceError};

use crate::{limits, record};

/// One write, with its keys.
pub struct Change<'a> {
    pub partition_key: Cow<'a, str>,
    pub row_key: Cow<'a, str>,
    pub action: Action<'a>,
}

pub enum Action<'a> {
    Insert(Vec<Property<'a>>),
    /// Insert Or Replace when there is no condition.
    Replace {
        properties: Vec<Property<'a>>,
        condition: Option<ETag>,
    },
    /// Insert Or Merge when there is no condition.
    Merge {
        properties: Vec<Property<'a>>,
        condition: Option<ETag>,
    },
    Delete {
        condition: ETag,
    },
}

impl<'a> Change<'a> {
    /// An insert takes its keys from the payload.
    pub fn insert(entity: Entity<'a>) -> Result<Change<'a>, ServiceError> {
        let partition_key = entity.partition_key.ok_or(ErrorCode::PropertiesNeedValue)?;
        let row_key = entity.row_key.ok_or(ErrorCode::PropertiesNeedValue)?;
        Ok(Change { partition_key, row_key, action: Action::Insert(entity.properties) })
    }
}

/// What a transaction does to one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowWrite<'a> {
    pub row_key: &'a str,
    pub kind: WriteKind,
    /// Of the entity, or of what a merge changes: its size as the service counts it, and how many properties it has.
    pub size_bytes: u32,
    pub property_count: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteKind {
    Insert,
    InsertOrReplace,
    InsertOrMerge,
    Update,
    Merge,
    Delete,
}

/// Valid changes to distinct rows of one partition.
#[derive(Clone, Default)]
pub struct Transaction {
    partition_key: Box<str>,
    pub(crate) ops: Vec<Op>,
}

impl Transaction {
    pub fn new() -> Transaction {
        Transaction::default()
    }

    pub fn one(change: Change<'_>) -> Result<Transaction, ServiceError> {
        let mut transaction = Transaction::new();
        transaction.push(change)?;
        Ok(transaction)
    }

    /// Checks the change by itself, then against the earlier ones; returns its index.
    pub fn push(&mut self, change: Change<'_>) -> Result<usize, ServiceError> {
        let op = prepare(&change)?;
        if self.ops.is_empty() {
            self.partition_key = change.partition_key.into();
        } else if *self.partition_key != *change.partition_key {
            return Err(ErrorCode::CommandsInBatchActOnDifferentPartitions.into());
        }
        if self.ops.iter().any(|earlier| earlier.row == op.row) {
            return Err(ErrorCode::InvalidDuplicateRow.into());
        }
        if self.ops.len() == limits::BATCH_OPERATION_COUNT_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    pub fn row_key(&self, index: usize) -> &str {
        self.ops.get(index).map_or("", |op| &op.row)
    }

    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// What it does, row by row.
    pub fn rows(&self) -> impl Iterator<Item = RowWrite<'_>> + Clone {
        self.ops.iter().map(|op| {
            let (kind, record) = match (&op.effect, op.expect) {
                (Effect::Put(record), Expect::Absent) => (WriteKind::Insert, Some(record)),
                (Effect::Put(record), Expect::Any) => (WriteKind::InsertOrReplace, Some(record)),
                (Effect::Put(record), _) => (WriteKind::Update, Some(record)),
                (Effect::Merge(record), Expect::Any) => (WriteKind::InsertOrMerge, Some(record)),
                (Effect::Merge(record), _) => (WriteKind::Merge, Some(record)),
                (Effect::Delete | Effect::CheckOnly, _) => (WriteKind::Delete, None),
            };
            let record = record.and_then(|record| record::Record::open(record));
            let (size_bytes, property_count) =
                record.map_or((0, 0), |record| (record.size, record.property_count));
            RowWrite { row_key: &op.row, kind, size_bytes, property_count }
        })
    }

    /// The record that the insert or replace at this index writes, for an answer that repeats it.
    pub fn record(&self, index: usize) -> Option<Bytes> {
        match &self.ops.get(index)?.effect {
            Effect::Put(record) => Some(record.clone()),
            Effect::Merge(_) | Effect::Delete | Effect::CheckOnly => None,
        }
    }
}

fn prepare(change: &Change<'_>) -> Result<Op, ServiceError> {
    let (partition_key, row_key) = (&*change.partition_key, &*change.row_key);
    match change.action {
        Action::Insert(_) => limits::check_payload_keys(partition_key, row_key)?,
        _ => limits::check_address_keys(partition_key, row_key)?,
    }
    let encode = |properties: &[Property<'_>]| -> Result<Bytes, ServiceError> {
        let size = limits::check_entity(partition_key, row_key, properties)?;
        Ok(record::encode(size, properties))
    };
    let (expect, effect) = match &change.action {
        Action::Insert(properties) => (Expect::Absent, Effect::Put(encode(properties)?)),
        Action::Replace { properties, condition } => {
            (expectation(*condition), Effect::Put(encode(properties)?))
        }
        Action::Merge { properties, condition } => {
            (expectation(*condition), Effect::Merge(encode(properties)?))
        }
        Action::Delete { condition } => (expectation(Some(*condition)), Effect::Delete),
    };
    Ok(Op { row: row_key.into(), expect, effect })
}

fn expectation(condition: Option<ETag>) -> Expect {
    match condition {
        None => Expect::Any,
        Some(ETag::Any) => Expect::Present,
        // The NonZero type cannot hold tick 0. No entity is that old, so using tick 1 instead matches nothing either.
        Some(ETag::Exactly(timestamp)) => {
            Expect::Exactly(Version(NonZeroU64::new(timestamp.ticks()).unwrap_or(NonZeroU64::MIN)))
        }
        // No entity has tick 1, but whether there is an entity still matters: 404 or 412.
        Some(ETag::Foreign) => Expect::Exactly(Version(NonZeroU64::MIN)),
    }
}

#[cfg(test)]
mod tests {
    use protocol::table::model::Value;

    use super::*;

    fn change(partition_key: &'static str, row_key: &'static str) -> Change<'static> {
        Change {
            partition_key: partition_key.into(),
            row_key: row_key.into(),
            action: Action::Delete { condition: ETag::Any },
        }
    }

    #[test]
    fn a_transaction_has_one_partition_and_distinct_rows() {
        let mut transaction = Transaction::one(change("p", "1")).unwrap();
        assert!(transaction.push(change("p", "2")).is_ok());
        let refused = |transaction: &mut Transaction, partition_key, row_key| {
            transaction.push(change(partition_key, row_key)).unwrap_err().code
        };
        assert_eq!(refused(&mut transaction, "q", "3"), ErrorCode::CommandsInBatchActOnDifferentPartitions);
        assert_eq!(refused(&mut transaction, "p", "1"), ErrorCode::InvalidDuplicateRow);
        assert_eq!(refused(&mut transaction, "p", "a#b"), ErrorCode::OutOfRangeInput);
    }

    #[test]
    fn rows_tell_what_is_done_to_them() {
        let properties = || vec![Property { name: "x".into(), value: Value::Int32(1) }];
        let mut transaction = Transaction::new();
        let actions = [
            ("1", Action::Insert(properties()), WriteKind::Insert, 1),
            ("2", Action::Replace { properties: vec![], condition: None }, WriteKind::InsertOrReplace, 0),
            ("3", Action::Replace { properties: vec![], condition: Some(ETag::Any) }, WriteKind::Update, 0),
            ("4", Action::Merge { properties: properties(), condition: None }, WriteKind::InsertOrMerge, 1),
            ("5", Action::Merge { properties: vec![], condition: Some(ETag::Foreign) }, WriteKind::Merge, 0),
            ("6", Action::Delete { condition: ETag::Any }, WriteKind::Delete, 0),
        ];
        let mut expected = Vec::new();
        for (row_key, action, kind, property_count) in actions {
            transaction.push(Change { partition_key: "p".into(), row_key: row_key.into(), action }).unwrap();
            // 4 + 2 * (1 + 1) + Timestamp (8 + 18 + 8) + x (8 + 2 + 4); nothing for what is deleted.
            let size_bytes = if kind == WriteKind::Delete { 0 } else { 42 + 14 * u32::from(property_count) };
            expected.push(RowWrite { row_key, kind, size_bytes, property_count });
        }
        assert_eq!(transaction.rows().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_insert_needs_both_keys() {
        let entity = Entity { row_key: Some("r".into()), ..Entity::default() };
        assert_eq!(
            Change::insert(entity).err().map(|error| error.code),
            Some(ErrorCode::PropertiesNeedValue)
        );
    }
}
