//! Writes of entities, alone or as a part of a batch: read the same way, checked the same way, answered the same way.

use bytes::Bytes;
use engine::{OwnedKey, Version};
use protocol::ServiceError;
use protocol::model::{DateTime, TableName};
use protocol::operation::{Address, Operation};
use protocol::wire::MetadataLevel;
use protocol::wire::json_read::read_entity;
use protocol::wire::json_write::EntityWriter;
use protocol::wire::negotiate::Preference;
use protocol::wire::uri;
use tables::{Action, Change, EntityView, Transaction};

use crate::answer::{Answer, Refusal};
use crate::tables::{Call, Session, unreadable_record};

/// One write, read but not yet carried out.
pub struct Write<'a> {
    pub table: TableName,
    pub change: Change<'a>,
    pub reply: Reply,
}

/// How a write will be answered. Decided first, so that a request that cannot be answered is not carried out.
#[derive(Clone, Copy)]
pub enum Reply {
    /// No level: without content.
    Insert {
        level: Option<MetadataLevel>,
        preference: Option<Preference>,
    },
    Update,
    Delete,
}

/// What the answer to a write repeats of it, once the change itself is on its way.
pub struct Written {
    reply: Reply,
    /// Of an insert.
    key: Option<OwnedKey>,
    record: Option<Bytes>,
}

impl<'a> Write<'a> {
    /// `None` when the operation is no write of an entity.
    pub fn read(
        operation: Operation<'a>,
        payload: &'a [u8],
        call: Call<'_>,
    ) -> Result<Option<Write<'a>>, ServiceError> {
        let (address, action, reply) = match operation {
            Operation::InsertEntity(table) => {
                let preference = call.preference();
                let level = match preference {
                    Some(Preference::ReturnNoContent) => None,
                    _ => Some(call.level()?),
                };
                let change = Change::insert(read_entity(payload)?)?;
                return Ok(Some(Write { table, change, reply: Reply::Insert { level, preference } }));
            }
            Operation::ReplaceEntity { address, condition } => {
                let properties = read_entity(payload)?.properties;
                (address, Action::Replace { properties, condition }, Reply::Update)
            }
            Operation::MergeEntity { address, condition } => {
                let properties = read_entity(payload)?.properties;
                (address, Action::Merge { properties, condition }, Reply::Update)
            }
            Operation::DeleteEntity { address, condition } => {
                (address, Action::Delete { condition }, Reply::Delete)
            }
            _ => return Ok(None),
        };
        // Keys in the payload of an update say nothing: the URL decides.
        let Address { table, partition_key, row_key } = address;
        Ok(Some(Write { table, change: Change { partition_key, row_key, action }, reply }))
    }
}

impl Reply {
    /// Takes what the answer needs from the change at `index`, which is the last one pushed.
    pub fn keep(self, transaction: &Transaction, index: usize) -> Written {
        let Reply::Insert { level, .. } = self else {
            return Written { reply: self, key: None, record: None };
        };
        let (partition, row) = (transaction.partition_key().into(), transaction.row_key(index).into());
        let record = level.and_then(|_| transaction.record(index));
        Written { reply: self, key: Some(OwnedKey { partition, row }), record }
    }
}

impl Written {
    pub fn answer(
        &self,
        session: &Session<'_>,
        table: &TableName,
        version: Version,
    ) -> Result<Answer, Refusal> {
        let etag = Some(DateTime::from_ticks(version.ticks()));
        let (level, preference, key) = match (self.reply, &self.key) {
            (Reply::Delete, _) => return Ok(Answer::no_content()),
            (Reply::Insert { level, preference }, Some(key)) => (level, preference, key),
            (Reply::Update | Reply::Insert { .. }, _) => return Ok(Answer { etag, ..Answer::no_content() }),
        };
        let answer = match (level, &self.record) {
            (Some(level), Some(record)) => {
                let view = EntityView::open(&key.partition, &key.row, version, record);
                let writer = EntityWriter {
                    base: session.base,
                    account: session.account.as_str(),
                    table: table.as_str(),
                    level,
                    selection: None,
                };
                let mut json = Vec::with_capacity(512 + record.len() * 2);
                writer.write_single(&view.ok_or_else(unreadable_record)?, &mut json);
                Answer::json(201, level, json)
            }
            _ => Answer::no_content(),
        };
        let location = Some(entity_url(session.base, table, key));
        Ok(Answer { etag, location, preference, ..answer })
    }
}

/// A write by itself is a transaction of one change.
pub async fn run_one(
    session: &Session<'_>,
    operation: Operation<'_>,
    payload: &[u8],
    call: Call<'_>,
) -> Result<Answer, Refusal> {
    let turn = session.heavy_lane.turn(payload.len()).await;
    let Some(Write { table, change, reply }) = Write::read(operation, payload, call)? else {
        return Err(protocol::ErrorCode::NotImplemented.into());
    };
    // The keys of an insert are in its payload: only now are they known.
    session.grant.authorize_key(&change.partition_key, &change.row_key)?;
    let transaction = Transaction::one(change)?;
    let written = reply.keep(&transaction, 0);
    drop(turn);
    let version = session.service.commit(session.account, &table, transaction).await?;
    written.answer(session, &table, version)
}

fn entity_url(base: &str, table: &TableName, key: &OwnedKey) -> String {
    let names_len = "/(PartitionKey='',RowKey='')".len() + table.as_str().len();
    let mut url = Vec::with_capacity(base.len() + names_len + key.partition.len() + key.row.len());
    url.extend_from_slice(base.as_bytes());
    url.push(b'/');
    uri::write_entity_path(table.as_str(), &key.partition, &key.row, &mut url);
    String::from_utf8(url).expect("the path is escaped, and the rest was text before")
}
