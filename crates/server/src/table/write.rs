//! Writes of entities, single or as parts of a batch: both are read and answered by the same code.
//!
//! Leaves to others: limits and conditions (`tables`), and the payload's JSON (`protocol`).

use std::borrow::Cow;

use bytes::Bytes;
use engine::{OwnedKey, Version};
use observe::NotedRow;
use protocol::common::{BaseUrl, DateTime};
use protocol::table::model::TableName;
use protocol::table::operation::{Address, EntityWrite};
use protocol::table::wire::json_read::{read_entity, read_properties};
use protocol::table::wire::json_write::EntityWriter;
use protocol::table::wire::negotiate::Preference;
use protocol::table::wire::{MetadataLevel, uri};
use protocol::{ErrorCode, ServiceError};
use tables::{Action, Change, EntityView, Transaction};

use super::TableHttp;
use super::answer::TableAnswer;
use super::entities::unreadable_record;
use super::header_names::PREFERENCE_APPLIED;
use super::request::Asked;
use super::{describe, outbox};
use crate::front::refusal::Refusal;
use crate::front::service::Session;
use crate::http::memory_pool::{FREE_BYTES, Reservation};

/// Runs a single write as a transaction of one change.
pub(crate) async fn run_one(
    service: &TableHttp,
    session: &Session<'_>,
    write: &EntityWrite<'_>,
    asked: &Asked<'_>,
    payload: &[u8],
) -> Result<TableAnswer, Refusal> {
    let turn = session.turn_to_parse(payload.len()).await;
    let run = async {
        let mut transaction = Transaction::new();
        let (table, change) = read_change(write, payload)?;
        // The keys of an insert are in its payload: only now are they known.
        session.grant.authorize_key(&change.partition_key, &change.row_key)?;
        let enqueue = outbox::read_enqueue(session, &asked.outbox)?;
        let reply = push(&mut transaction, change, asked)?;
        drop(turn);
        if let EntityWrite::Insert(table) = write {
            note_rows(session, table, &transaction);
        }
        let bytes_max = reply.bytes_max(session, table, payload.len());
        let reservation = reserve(session, bytes_max)?;
        let enqueues = enqueue.map(|enqueue| (0, enqueue)).into_iter().collect();
        let version = outbox::commit(service, session, table, transaction, &enqueues).await?;
        let mut answer = reply.answer(session, table, version)?;
        debug_assert!(answer.body.as_bytes().len() <= bytes_max);
        if let Some(reservation) = reservation {
            answer.body.hold(reservation);
        }
        Ok::<_, ServiceError>(answer)
    };
    repeat_preference(run.await.map_err(Refusal::from), asked.preference)
}

/// Notes what a transaction writes, when the head of the request does not say so.
pub(crate) fn note_rows(session: &Session<'_>, table: &TableName, transaction: &Transaction) {
    let rows = transaction.rows().map(|row| NotedRow {
        operation: describe::operation_of(row.kind),
        row: row.row_key,
        size_bytes: row.size_bytes,
        property_count: row.property_count,
    });
    session.notes.rows(table.as_str(), transaction.partition_key(), rows);
}

/// Reserves memory for the answers to writes before they happen: afterwards it would be too late to refuse.
pub(crate) fn reserve(session: &Session<'_>, bytes_max: usize) -> Result<Option<Reservation>, ServiceError> {
    if bytes_max <= FREE_BYTES {
        return Ok(None);
    }
    let mut reservation = session.reserve_answer();
    if reservation.grow(bytes_max) { Ok(Some(reservation)) } else { Err(ErrorCode::ServerBusy.into()) }
}

/// The change that a write asks for, and its table.
pub(crate) fn read_change<'a>(
    write: &'a EntityWrite<'_>,
    payload: &'a [u8],
) -> Result<(&'a TableName, Change<'a>), ServiceError> {
    let (address, action) = match write {
        EntityWrite::Insert(table) => return Ok((table, Change::insert(read_entity(payload)?)?)),
        EntityWrite::Replace { address, condition } => {
            (address, Action::Replace { properties: read_properties(payload)?, condition: *condition })
        }
        EntityWrite::Merge { address, condition } => {
            (address, Action::Merge { properties: read_properties(payload)?, condition: *condition })
        }
        EntityWrite::Delete { address, condition } => (address, Action::Delete { condition: *condition }),
    };
    // The URL determines the keys of an update; keys in its payload are ignored.
    let Address { table, partition_key, row_key } = address;
    let (partition_key, row_key) = (Cow::Borrowed(&**partition_key), Cow::Borrowed(&**row_key));
    Ok((table, Change { partition_key, row_key, action }))
}

/// Adds the change to the transaction, and keeps what its answer will repeat.
pub fn push(
    transaction: &mut Transaction,
    change: Change<'_>,
    asked: &Asked<'_>,
) -> Result<Reply, ServiceError> {
    let property_count = match &change.action {
        Action::Insert(properties) => Some(properties.len()),
        _ => None,
    };
    let is_delete = matches!(change.action, Action::Delete { .. });
    let index = transaction.push(change)?;
    if is_delete {
        return Ok(Reply::Delete);
    }
    let Some(property_count) = property_count else { return Ok(Reply::Update) };
    let (partition, row) = (transaction.partition_key().into(), transaction.row_key(index).into());
    let record = if asked.returns_content() { transaction.record(index) } else { None };
    let (level, preference) = (asked.level, asked.preference);
    Ok(Reply::Insert { key: OwnedKey { partition, row }, record, property_count, level, preference })
}

/// How a write will be answered once it is committed.
pub enum Reply {
    Insert {
        key: OwnedKey,
        /// The stored record, if the answer repeats it.
        record: Option<Bytes>,
        property_count: usize,
        level: MetadataLevel,
        preference: Option<Preference>,
    },
    Update,
    Delete,
}

/// What an answer has besides names and values: status line, headers, boundaries, names of metadata.
const ANSWER_OVERHEAD_BYTES: usize = 1024;
/// By how much a property may be longer in the answer than in the payload: a double is written with up to 17 digits, a
/// date with its time.
const PROPERTY_GROWTH_BYTES: usize = 32;
/// A byte of a key takes up to three in a URL.
const KEY_GROWTH_FACTOR: usize = 3;
/// `odata.id`, `odata.editLink` and `Location`, or `Location` and `DataServiceId`.
const URL_COUNT_MAX: usize = 3;

impl Reply {
    /// How long the answer may become. Strings are not longer in an answer than in a payload.
    pub fn bytes_max(&self, session: &Session<'_>, table: &TableName, payload_len: usize) -> usize {
        let Reply::Insert { key, record, property_count, .. } = self else { return ANSWER_OVERHEAD_BYTES };
        let keys_len = KEY_GROWTH_FACTOR * (key.partition.len() + key.row.len());
        let urls_len = URL_COUNT_MAX * (session.base.size_bytes() + table.as_str().len() + keys_len);
        let json_len = match record {
            None => 0,
            Some(_) => payload_len + PROPERTY_GROWTH_BYTES * property_count,
        };
        ANSWER_OVERHEAD_BYTES + urls_len + json_len
    }

    pub fn answer(
        self,
        session: &Session<'_>,
        table: &TableName,
        version: Version,
    ) -> Result<TableAnswer, ServiceError> {
        let etag = || Some(DateTime::from_ticks(version.ticks()).text());
        let (key, record, level, preference) = match self {
            Reply::Delete => return Ok(TableAnswer::no_content()),
            Reply::Update => return Ok(TableAnswer { etag: etag(), ..TableAnswer::no_content() }),
            Reply::Insert { key, record, level, preference, .. } => (key, record, level, preference),
        };
        let location = Some(entity_url(session.base, table, &key));
        let Some(record) = record else {
            return Ok(TableAnswer { etag: etag(), location, preference, ..TableAnswer::no_content() });
        };
        let view = EntityView::open(&key.partition, &key.row, version, &record);
        let writer = EntityWriter {
            base: session.base,
            account: session.account.as_str(),
            table: table.as_str(),
            level,
            selection: None,
        };
        let mut json = Vec::with_capacity(512 + record.len() * 2);
        let etag = Some(writer.write_single(&view.ok_or_else(unreadable_record)?, &mut json));
        Ok(TableAnswer { etag, location, preference, ..TableAnswer::json(201, level, json) })
    }
}

/// Once `Prefer` was read, a refusal repeats it just as a success does.
pub(crate) fn repeat_preference(
    outcome: Result<TableAnswer, Refusal>,
    preference: Option<Preference>,
) -> Result<TableAnswer, Refusal> {
    let Some(applied) = preference else { return outcome };
    match outcome {
        Ok(answer) => Ok(TableAnswer { preference, ..answer }),
        Err(refusal) => {
            let header = Some(Box::new((PREFERENCE_APPLIED, applied.name().to_owned())));
            Err(Refusal { header, ..refusal })
        }
    }
}

fn entity_url(base: BaseUrl<'_>, table: &TableName, key: &OwnedKey) -> String {
    let names_len = "/(PartitionKey='',RowKey='')".len() + table.as_str().len();
    let mut url = Vec::with_capacity(base.size_bytes() + names_len + key.partition.len() + key.row.len());
    base.parts().iter().for_each(|part| url.extend_from_slice(part.as_bytes()));
    url.push(b'/');
    uri::write_entity_path(table.as_str(), &key.partition, &key.row, &mut url);
    String::from_utf8(url).expect("the path is escaped, and the rest was text before")
}
