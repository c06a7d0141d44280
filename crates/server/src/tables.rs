//! Operations on tables, and reads of entities: payload to values, one call into the service, values to an answer.

use std::net::IpAddr;

use protocol::auth::Grant;
use protocol::filter::{self, Schema};
use protocol::model::{AccountName, DateTime, ETag, TableName};
use protocol::operation::{Address, Operation};
use protocol::wire::continuation;
use protocol::wire::headers::OperationHeaders;
use protocol::wire::json_read::read_table_name;
use protocol::wire::json_write::{self, EntityWriter, TableWriter};
use protocol::wire::negotiate::{self, Preference};
use protocol::wire::options::QueryOptions;
use protocol::{ErrorCode, ServiceError};
use tables::{EntityQuery, EntitySink, EntityView, TableQuery, TableService};

use crate::answer::{Answer, Next, Refusal};
use crate::heavy::HeavyLane;
use crate::room::{Room, SharedRoom};
use crate::{settings, write};

/// Whose data, and under which URL the caller knows it.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    pub service: &'a TableService,
    pub account: &'a AccountName,
    /// The account's base URL, without a slash at its end.
    pub base: &'a str,
    pub grant: &'a Grant,
    /// From where; for the audit.
    pub peer: IpAddr,
    pub answer_room: &'a SharedRoom,
    pub heavy_lane: &'a HeavyLane,
}

/// How one operation was asked for.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub options: &'a QueryOptions<'a>,
    pub headers: &'a OperationHeaders<'a>,
    /// The protocol's version that the request speaks.
    pub version: &'a str,
    pub explain: bool,
}

impl Call<'_> {
    pub fn level(&self) -> Result<negotiate::MetadataLevel, ServiceError> {
        negotiate::response_level(self.options.format.as_deref(), self.headers)
    }

    /// Only what makes something listens to `Prefer`.
    pub fn preference(&self) -> Option<Preference> {
        Preference::parse(self.headers.prefer)
    }
}

/// The first version in which an update may leave `If-Match` out.
const UPSERT_VERSION: &str = "2011-08-18";

/// What a page may be larger than its room: an entity of ordinary size, and the end of the list.
const ROOM_SLACK_BYTES: usize = 16 * 1024;

/// Room for a page of small entities; larger ones grow it.
const PAGE_CAPACITY_BYTES: usize = 16 * 1024;

pub fn takes_payload(operation: &Operation<'_>) -> bool {
    match operation {
        Operation::CreateTable
        | Operation::InsertEntity(_)
        | Operation::ReplaceEntity { .. }
        | Operation::MergeEntity { .. }
        | Operation::SetServiceProperties
        | Operation::SetTableAcl(_)
        | Operation::Batch => true,
        Operation::QueryTables
        | Operation::GetTable(_)
        | Operation::DeleteTable(_)
        | Operation::QueryEntities(_)
        | Operation::GetEntity { .. }
        | Operation::DeleteEntity { .. }
        | Operation::GetServiceProperties
        | Operation::GetServiceStats
        | Operation::GetTableAcl(_) => false,
    }
}

/// Checks that come before the question whether the caller may: can this be answered in a form that was asked for?
pub fn check(operation: &Operation<'_>, call: Call<'_>) -> Result<(), ServiceError> {
    if settings::owns(operation) {
        return Ok(());
    }
    negotiate::check_data_service_version(call.headers)?;
    if call.options.has_unsupported {
        return Err(ErrorCode::NotImplemented.into());
    }
    let is_batch = matches!(operation, Operation::Batch);
    if takes_payload(operation) && !is_batch {
        negotiate::check_content_type(call.headers.content_type)?;
    }
    let has_body = match operation {
        Operation::CreateTable | Operation::InsertEntity(_) => {
            call.preference() != Some(Preference::ReturnNoContent)
        }
        _ => {
            !takes_payload(operation)
                && !matches!(operation, Operation::DeleteTable(_) | Operation::DeleteEntity { .. })
        }
    };
    if has_body {
        call.level()?;
    }
    // Before upserts were invented, every update had to say what it expects to find.
    let is_upsert = matches!(
        operation,
        Operation::ReplaceEntity { condition: None, .. } | Operation::MergeEntity { condition: None, .. }
    );
    if is_upsert && call.version < UPSERT_VERSION { Err(ErrorCode::InvalidInput.into()) } else { Ok(()) }
}

pub async fn run(
    session: &Session<'_>,
    operation: Operation<'_>,
    payload: &[u8],
    call: Call<'_>,
) -> Result<Answer, Refusal> {
    match operation {
        Operation::QueryTables => query_tables(session, call).await,
        Operation::CreateTable => remember_preference(create_table(session, payload, call).await, call),
        Operation::GetTable(name) => get_table(session, &name, call).await,
        Operation::DeleteTable(name) => {
            session.service.delete_table(session.account, &name).await?;
            Ok(Answer::no_content())
        }
        Operation::QueryEntities(table) => query_entities(session, &table, call).await,
        Operation::GetEntity { address, if_match, if_none_match } => {
            get_entity(session, &address, (if_match, if_none_match), call).await
        }
        Operation::InsertEntity(_) => {
            remember_preference(write::run_one(session, operation, payload, call).await, call)
        }
        Operation::ReplaceEntity { .. } | Operation::MergeEntity { .. } | Operation::DeleteEntity { .. } => {
            write::run_one(session, operation, payload, call).await
        }
        Operation::Batch
        | Operation::GetServiceProperties
        | Operation::SetServiceProperties
        | Operation::GetServiceStats
        | Operation::GetTableAcl(_)
        | Operation::SetTableAcl(_) => Err(ErrorCode::NotImplemented.into()),
    }
}

/// A refusal that comes after `Prefer` was read repeats it, as a success does.
fn remember_preference(outcome: Result<Answer, Refusal>, call: Call<'_>) -> Result<Answer, Refusal> {
    let preference = call.preference();
    match outcome {
        Ok(answer) => Ok(Answer { preference, ..answer }),
        Err(refusal) => Err(Refusal { preference, ..refusal }),
    }
}

async fn create_table(session: &Session<'_>, payload: &[u8], call: Call<'_>) -> Result<Answer, Refusal> {
    let level = match call.preference() {
        Some(Preference::ReturnNoContent) => None,
        _ => Some(call.level()?),
    };
    let name = TableName::parse(&read_table_name(payload)?).map_err(ServiceError::from)?;
    session.service.create_table(session.account, &name).await?;
    let location = Some(format!("{}/Tables('{}')", session.base, name.as_str()));
    let answer = match level {
        None => Answer::no_content(),
        Some(level) => {
            let mut json = Vec::new();
            table_writer(session, level).write_single(name.as_str(), &mut json);
            Answer::json(201, level, json)
        }
    };
    Ok(Answer { location, ..answer })
}

async fn get_table(session: &Session<'_>, name: &TableName, call: Call<'_>) -> Result<Answer, Refusal> {
    let level = call.level()?;
    let name = session.service.get_table(session.account, name).await?;
    let mut json = Vec::new();
    table_writer(session, level).write_single(&name, &mut json);
    Ok(Answer::json(200, level, json))
}

async fn query_tables(session: &Session<'_>, call: Call<'_>) -> Result<Answer, Refusal> {
    let level = call.level()?;
    let options = call.options;
    let query = TableQuery {
        filter: filter::parse(options.filter.as_deref().unwrap_or_default(), Schema::Tables)?,
        resume: options.next_table()?,
        table_count_max: options.page_count()?,
    };
    let page = session.service.query_tables(session.account, query).await?;
    let writer = table_writer(session, level);
    let mut json = Vec::with_capacity(256 + 64 * page.names.len());
    writer.begin_set(&mut json);
    for name in &page.names {
        writer.write_element(name, &mut json);
    }
    json_write::end_set(&mut json);
    let next = page.next.map(|name| Next::Table(continuation::encode(&name)));
    Ok(Answer { next, ..Answer::json(200, level, json) })
}

fn table_writer<'a>(session: &Session<'a>, level: negotiate::MetadataLevel) -> TableWriter<'a> {
    TableWriter { base: session.base, account: session.account.as_str(), level }
}

async fn get_entity(
    session: &Session<'_>,
    address: &Address<'_>,
    (if_match, if_none_match): (Option<ETag>, Option<ETag>),
    call: Call<'_>,
) -> Result<Answer, Refusal> {
    let level = call.level()?;
    let selection = call.options.selection()?;
    let Address { table, partition_key, row_key } = address;
    let found = session.service.get_entity(session.account, table, partition_key, row_key).await?;
    let stored = found.ok_or(ErrorCode::ResourceNotFound)?;
    let etag = Some(DateTime::from_ticks(stored.version.ticks()));
    let names_this = |condition: ETag| match condition {
        ETag::Any => true,
        ETag::Exactly(timestamp) => Some(timestamp) == etag,
    };
    if if_match.is_some_and(|condition| !names_this(condition)) {
        return Err(ErrorCode::UpdateConditionNotSatisfied.into());
    }
    if if_none_match.is_some_and(names_this) {
        return Ok(Answer { status: 304, etag, ..Answer::default() });
    }
    let view = EntityView::open(partition_key, row_key, stored.version, &stored.value);
    let view = view.ok_or_else(unreadable_record)?;
    let writer = EntityWriter {
        base: session.base,
        account: session.account.as_str(),
        table: table.as_str(),
        level,
        selection: selection.as_ref(),
    };
    let mut json = Vec::with_capacity(512 + stored.value.len() * 2);
    writer.write_single(&view, &mut json);
    check_text(&json)?;
    Ok(Answer { etag, ..Answer::json(200, level, json) })
}

/// Names and texts are copied as they are stored. Looking at the whole answer once costs a tenth of looking at each.
fn check_text(json: &[u8]) -> Result<(), ServiceError> {
    std::str::from_utf8(json).map(|_| ()).map_err(|_| unreadable_record())
}

/// Writes each entity into the answer as the scan passes it.
struct JsonSink<'a> {
    writer: EntityWriter<'a>,
    json: Vec<u8>,
    room: Room,
}

impl EntitySink for JsonSink<'_> {
    fn entity(&mut self, entity: &EntityView<'_>) -> Option<usize> {
        self.writer.write_element(entity, &mut self.json);
        // Where memory is short, pages are short: the continuation leads to the rest.
        self.room.grow(self.json.len()).then_some(self.json.len())
    }
}

async fn query_entities(session: &Session<'_>, table: &TableName, call: Call<'_>) -> Result<Answer, Refusal> {
    let level = call.level()?;
    let options = call.options;
    let selection = options.selection()?;
    let filter = filter::parse(options.filter.as_deref().unwrap_or_default(), Schema::Entities)?;
    let query = EntityQuery {
        plan: tables::plan(filter),
        within: session.grant.bounds().cloned(),
        resume: options.next_entity()?,
        entity_count_max: options.page_count()?,
    };
    let writer = EntityWriter {
        base: session.base,
        account: session.account.as_str(),
        table: table.as_str(),
        level,
        selection: selection.as_ref(),
    };
    let room = session.answer_room.small();
    let mut sink = JsonSink { writer, json: Vec::with_capacity(PAGE_CAPACITY_BYTES), room };
    sink.writer.begin_set(&mut sink.json);
    let page = session.service.query_entities(session.account, table, query, &mut sink).await?;
    let JsonSink { mut json, mut room, .. } = sink;
    json_write::end_set(&mut json);
    check_text(&json)?;
    // The one entity of a page may be too large for the room that is left.
    if !room.grow(json.len()) && json.len() > room.bytes() + ROOM_SLACK_BYTES {
        return Err(ErrorCode::ServerBusy.into());
    }
    let room = Some(room);
    let next = page.next.map(|key| Next::Entity {
        partition_key: continuation::encode(&key.partition),
        row_key: continuation::encode(&key.row),
    });
    let explanation = call.explain.then(|| {
        format!("{}; examined={}; returned={}", page.plan.name(), page.examined_count, page.returned_count)
    });
    Ok(Answer { next, explanation, room, ..Answer::json(200, level, json) })
}

pub fn unreadable_record() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a stored record does not decode")
}
