//! Reads of entities: one entity by its keys, or one page of a query.
//!
//! Promises: rows go from the scan straight into the answer, in reserved memory. Leaves to others: which rows match
//! (`tables`), and their JSON (`protocol`).

use observe::Notes;
use protocol::common::DateTime;
use protocol::table::filter::{self, Schema};
use protocol::table::model::{ETag, TableName};
use protocol::table::operation::{Address, EntityRead};
use protocol::table::region::only_partition;
use protocol::table::wire::continuation;
use protocol::table::wire::json_write::{self, EntityWriter};
use protocol::{ErrorCode, ServiceError};
use tables::{EntityQuery, EntitySink, EntityView, PlanKind, Search, TableService};

use super::answer::{Continuation, TableAnswer};
use super::request::Asked;
use super::scan_rule::ScanRule;
use super::{TableHttp, spending};
use crate::front::refusal::Refusal;
use crate::front::service::Session;
use crate::http::memory_pool::Reservation;

/// The end of a list.
const SET_END_BYTES: usize = "]}".len();

/// Enough for a page of small entities. The buffer grows for larger ones.
const PAGE_CAPACITY_BYTES: usize = 16 * 1024;

pub async fn run(
    http: &TableHttp,
    session: &Session<'_>,
    read: &EntityRead<'_>,
    asked: &Asked<'_>,
) -> Result<TableAnswer, Refusal> {
    match read {
        EntityRead::Query(table) => query(http, session, table, asked).await,
        EntityRead::Get { address, if_match, if_none_match } => {
            let service = http.service_of(&address.table)?;
            get(service, session, address, (*if_match, *if_none_match), asked).await
        }
    }
}

async fn get(
    service: &TableService,
    session: &Session<'_>,
    address: &Address<'_>,
    (if_match, if_none_match): (Option<ETag>, Option<ETag>),
    asked: &Asked<'_>,
) -> Result<TableAnswer, Refusal> {
    let selection = asked.options.selection()?;
    let Address { table, partition_key, row_key } = address;
    session.notes.plan(PlanKind::Point);
    session.spend(spending::partition(table, partition_key), 1)?;
    let found = service.get_entity(session.account, table, partition_key, row_key).await?;
    // For the holder of a token, what is outside the token's bounds does not exist.
    let is_visible = session.grant.authorize_key(partition_key, row_key).is_ok();
    let found = found.filter(|_| is_visible);
    session.notes.read(1, u64::from(found.is_some()));
    let stored = found.ok_or(ErrorCode::ResourceNotFound)?;
    let timestamp = DateTime::from_ticks(stored.version.ticks());
    let names_this = |condition: ETag| match condition {
        ETag::Any => true,
        ETag::Exactly(named) => named == timestamp,
        ETag::Foreign => false,
    };
    if if_match.is_some_and(|condition| !names_this(condition)) {
        return Err(ErrorCode::UpdateConditionNotSatisfied.into());
    }
    if if_none_match.is_some_and(names_this) {
        return Ok(TableAnswer { status: 304, etag: Some(timestamp.text()), ..TableAnswer::default() });
    }
    let view = EntityView::open(partition_key, row_key, stored.version, &stored.value);
    let view = view.ok_or_else(unreadable_record)?;
    session.notes.row(view.size_bytes().into(), view.property_count().into());
    let writer = EntityWriter {
        base: session.base,
        account: session.account.as_str(),
        table: table.as_str(),
        level: asked.level,
        selection: selection.as_ref(),
    };
    let mut json = Vec::with_capacity(512 + stored.value.len() * 2);
    let etag = Some(writer.write_single(&view, &mut json));
    check_text(&json)?;
    Ok(TableAnswer { etag, ..TableAnswer::json(200, asked.level, json) })
}

/// Names and texts are copied as stored. Checking the whole answer once costs a tenth of checking each of them, and most
/// answers are ASCII, which is known sooner.
fn check_text(json: &[u8]) -> Result<(), ServiceError> {
    if json.iter().fold(0, |all, byte| all | byte).is_ascii() {
        return Ok(());
    }
    std::str::from_utf8(json).map(|_| ()).map_err(|_| unreadable_record())
}

/// Writes each entity into the answer during the scan.
struct JsonSink<'a> {
    writer: EntityWriter<'a>,
    json: Vec<u8>,
    reservation: Reservation,
    /// An entity was not taken because there was no memory for it.
    has_refused: bool,
    notes: &'a Notes,
    /// Which scans are refused, and what of: the table, and the text of the filter.
    scans: Option<(&'a ScanRule, &'a TableName, &'a str)>,
}

impl EntitySink for JsonSink<'_> {
    fn planned(&mut self, search: Search) -> Result<(), ServiceError> {
        if let Some((rule, table, filter)) = self.scans {
            rule.check(table, search, || {
                let filter = filter::parse(filter, Schema::Entities).ok()??;
                Some(filter::shape(&filter.root))
            })?;
        }
        self.notes.plan(search.plan);
        Ok(())
    }

    fn examined(&mut self, row_count: u64) {
        // Nothing is returned before all of the page is.
        self.notes.read(row_count, 0);
    }

    fn entity(&mut self, entity: &EntityView<'_>) -> Option<usize> {
        let before = self.json.len();
        self.writer.write_element(entity, &mut self.json);
        if !self.reservation.grow(self.json.len() + SET_END_BYTES) {
            // When memory is short, pages get shorter, and the continuation leads to the rest.
            self.json.truncate(before);
            self.has_refused = true;
            return None;
        }
        Some(self.json.len())
    }
}

async fn query(
    http: &TableHttp,
    session: &Session<'_>,
    table: &TableName,
    asked: &Asked<'_>,
) -> Result<TableAnswer, Refusal> {
    let service = http.service_of(table)?;
    let options = &asked.options;
    let selection = options.selection()?;
    let filter_text = options.filter.as_deref().unwrap_or_default();
    let filter = filter::parse(filter_text, Schema::Entities)?;
    if let Some(filter) = &filter {
        session.notes.shape(filter::shape_number(&filter.root));
    }
    let partition_key = match &filter {
        Some(filter) if session.is_throttled() => only_partition(&filter.root),
        _ => None,
    };
    if let Some(partition_key) = &partition_key {
        session.spend(spending::partition(table, partition_key), 1)?;
    }
    let query = EntityQuery {
        filter,
        within: session.grant.bounds().cloned(),
        resume: options.next_entity()?,
        entity_count_max: options.page_count()?,
        share: session.share(),
    };
    let writer = EntityWriter {
        base: session.base,
        account: session.account.as_str(),
        table: table.as_str(),
        level: asked.level,
        selection: selection.as_ref(),
    };
    let reservation = session.reserve_answer();
    let mut sink = JsonSink {
        writer,
        json: Vec::with_capacity(PAGE_CAPACITY_BYTES),
        reservation,
        has_refused: false,
        notes: session.notes,
        scans: http.scan_rule.as_ref().map(|rule| (rule, table, filter_text)),
    };
    sink.writer.begin_set(&mut sink.json);
    let page = service.query_entities(session.account, table, query, &mut sink).await?;
    session.notes.read(page.examined_count, page.returned_count);
    if let Some(partition_key) = &partition_key {
        let further_count = page.returned_count.saturating_sub(1);
        session.spend_further(spending::partition(table, partition_key), further_count);
    }
    let JsonSink { mut json, reservation, has_refused, .. } = sink;
    // A page that ends before its first entity would lead the caller to the same place again and again.
    if has_refused && page.returned_count == 0 {
        return Err(ErrorCode::ServerBusy.into());
    }
    json_write::end_set(&mut json);
    check_text(&json)?;
    if page.next.is_some() {
        session.notes.has_more();
    }
    let next = page.next.map(|key| Continuation::Entity {
        partition_key: continuation::encode(&key.partition),
        row_key: continuation::encode(&key.row),
    });
    let explanation = asked.explain.then(|| {
        format!("{}; examined={}; returned={}", page.plan.name(), page.examined_count, page.returned_count)
    });
    let mut answer = TableAnswer { next, explanation, ..TableAnswer::json(200, asked.level, json) };
    answer.body.hold(reservation);
    Ok(answer)
}

pub(crate) fn unreadable_record() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a stored record does not decode")
}
