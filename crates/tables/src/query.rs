//! Queries: a page of entities or tables in key order, and the key to resume from.
//!
//! Leaves to others: choosing the key ranges (`plan`), and writing the rows into an answer (an [`EntitySink`]).

use std::ops::Bound::{Excluded, Included, Unbounded};

use engine::{Budget, Flow, Key, KeyRange, OwnedKey, Share, Sink, Version};
use protocol::auth::KeyBounds;
use protocol::common::{AccountName, DateTime};
use protocol::table::filter::{Filter, FilterProperty, Properties};
use protocol::table::model::{RawValue, TableName};
use protocol::{ErrorCode, ServiceError};

use crate::error::of_table;
use crate::limits::{PAGE_BYTES_MAX, PAGE_TIME_MAX};
use crate::plan::{Plan, PlanKind, plan};
use crate::property_path::{KeylessRow, PropertyPaths};
use crate::record::{EntityView, Record};
use crate::service::{ATTEMPT_COUNT_MAX, TableService, damaged_name};

/// Which entities to return, where to start, and how many at most.
pub struct EntityQuery {
    /// `None`: all of them.
    pub filter: Option<Filter>,
    /// The keys that the caller may see. Nothing outside of them is returned or named by a continuation.
    pub within: Option<KeyBounds>,
    /// The entity that a continuation token named: the first one to return.
    pub resume: Option<(String, String)>,
    pub entity_count_max: u32,
    /// With whom it shares the turns of long scans.
    pub share: Share,
}

/// Receives the entities of a page one by one.
pub trait EntitySink: Send {
    /// Hears how the rows are going to be found, before the first one. It may refuse.
    fn planned(&mut self, _search: Search) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Hears how many rows were examined, also when the query fails or is given up.
    fn examined(&mut self, _row_count: u64) {}

    /// Takes one entity and returns the page's size in bytes. `None` when it does not fit: then it was not taken, and the
    /// page ends before it.
    fn entity(&mut self, entity: &EntityView<'_>) -> Option<usize>;
}

/// How the rows of a query are going to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Search {
    pub plan: PlanKind,
    /// Rows that are found may still be left out.
    pub is_filtered: bool,
    /// More than one when a filter joins keys by `or`.
    pub range_count: usize,
}

/// How a page ended, and what it cost.
#[derive(Debug)]
pub struct Page {
    /// The next entity to return, or the key at which to look for it; `None` at the end.
    pub next: Option<OwnedKey>,
    pub plan: PlanKind,
    pub examined_count: u64,
    pub returned_count: u64,
}

/// Which tables to return, where to start, and how many at most.
pub struct TableQuery {
    pub filter: Option<Filter>,
    /// The table's name in lower case.
    pub resume: Option<String>,
    pub table_count_max: u32,
    /// With whom it shares the turns of long scans.
    pub share: Share,
}

pub struct TablePage {
    /// The names in the case in which the tables were created.
    pub names: Vec<String>,
    pub next: Option<String>,
}

fn page_budget(share: Share) -> Budget {
    Budget { rows_examined_max: u64::MAX, time_max: PAGE_TIME_MAX, share }
}

impl TableService {
    pub async fn query_entities(
        &self,
        account: &AccountName,
        table: &TableName,
        query: EntityQuery,
        sink: &mut dyn EntitySink,
    ) -> Result<Page, ServiceError> {
        let since = self.catalogue.ticket();
        let mut id = self.table_id(account, table).await?;
        let Plan { kind, ranges, predicate } = plan(query.filter);
        let kind = kind_within(kind, query.within.as_ref());
        let is_filtered = predicate.is_some();
        sink.planned(Search { plan: kind, is_filtered, range_count: ranges.len() })?;
        let mut page = PageSink {
            predicate: predicate.as_ref(),
            needs_keys: predicate.as_ref().is_none_or(Filter::reads_keys),
            has_matched: false,
            paths: PropertyPaths::default(),
            room: query.entity_count_max,
            page_bytes: 0,
            examined_count: 0,
            returned_count: 0,
            damaged: false,
            sink,
        };
        // A query for zero entities gets none, and no continuation: with one, a client would resume forever.
        let next = if query.entity_count_max == 0 {
            None
        } else {
            let ranges = resume_ranges(clip(ranges, query.within.as_ref()), query.resume);
            let mut attempt_count = 0;
            loop {
                let scanned = self.engine.scan(id, &ranges, page_budget(query.share), &mut page).await;
                let scanned = scanned.map_err(|error| of_table(table, error))?;
                // Rows prove that the table was there. Without any, perhaps it is another one by now.
                if page.examined_count > 0 || !self.catalogue.is_shared() {
                    break scanned;
                }
                let now = self.catalogue.current_id(account, table.as_str(), id).await?;
                let now = now.ok_or(ErrorCode::TableNotFound)?;
                if now == id {
                    break scanned;
                }
                id = now;
                attempt_count += 1;
                if attempt_count == ATTEMPT_COUNT_MAX {
                    return Err(ErrorCode::ServerBusy.into());
                }
            }
        };
        if page.damaged {
            return Err(ServiceError::with_source(
                ErrorCode::InternalError,
                "a stored record does not decode",
            ));
        }
        // If the table was dropped during the scan, rows may be missing. A shared engine shows all of them or none.
        let is_certain = self.catalogue.is_shared();
        if !is_certain && !self.catalogue.is_unchanged(account, table.as_str(), id, since).await? {
            return Err(ErrorCode::TableNotFound.into());
        }
        let (examined_count, returned_count) = (page.examined_count, page.returned_count);
        Ok(Page { next, plan: kind, examined_count, returned_count })
    }

    pub async fn query_tables(
        &self,
        account: &AccountName,
        query: TableQuery,
    ) -> Result<TablePage, ServiceError> {
        if query.table_count_max == 0 {
            return Ok(TablePage { names: Vec::new(), next: None });
        }
        let mut names = Vec::new();
        let mut damaged = false;
        let mut take = |lower: &str, payload: &[u8]| {
            let Ok(name) = std::str::from_utf8(payload) else {
                damaged = true;
                return Flow::Stop;
            };
            if query.filter.as_ref().is_some_and(|filter| !filter.matches(&LowerName(lower))) {
                return Flow::Continue;
            }
            if names.len() == query.table_count_max as usize {
                return Flow::Stop;
            }
            names.push(name.to_owned());
            Flow::Continue
        };
        let budget = page_budget(query.share);
        let next = self.catalogue.list(account, query.resume.as_deref(), budget, &mut take).await?;
        if damaged { Err(damaged_name()) } else { Ok(TablePage { names, next }) }
    }
}

/// The parts of the ranges that lie within the bounds.
/// How a plan finds its rows when the caller may see only some keys.
fn kind_within(kind: PlanKind, bounds: Option<&KeyBounds>) -> PlanKind {
    let Some(KeyBounds { start, end }) = bounds else { return kind };
    let narrowest = match (start, end) {
        (Some((first, None)), Some((last, None))) if first == last => PlanKind::PartitionScan,
        (Some((first, _)), Some((last, _))) if first == last => PlanKind::RowRange,
        (None, None) => PlanKind::TableScan,
        _ => PlanKind::PartitionRange,
    };
    kind.min(narrowest)
}

fn clip(ranges: Vec<KeyRange>, bounds: Option<&KeyBounds>) -> Vec<KeyRange> {
    let Some(bounds) = bounds else { return ranges };
    let from = match &bounds.start {
        None => KeyRange::all(),
        Some((partition_key, row_key)) => {
            KeyRange::from_key(partition_key, row_key.as_deref().unwrap_or_default())
        }
    };
    let to = match &bounds.end {
        None => vec![KeyRange::all()],
        Some((partition_key, None)) => vec![KeyRange::partitions(Unbounded, Included(partition_key))],
        // All partitions before the last one, and the beginning of the last one.
        Some((partition_key, Some(row_key))) => KeyRange::normalize(vec![
            KeyRange::partitions(Unbounded, Excluded(partition_key)),
            KeyRange::rows(partition_key, Unbounded, Included(row_key)),
        ]),
    };
    let clipped =
        ranges.iter().flat_map(|range| to.iter().filter_map(|to| range.intersect(to)?.intersect(&from)));
    clipped.collect()
}

fn resume_ranges(ranges: Vec<KeyRange>, resume: Option<(String, String)>) -> Vec<KeyRange> {
    let Some((partition_key, row_key)) = resume else { return ranges };
    let rest = KeyRange::from_key(&partition_key, &row_key);
    ranges.iter().filter_map(|range| range.intersect(&rest)).collect()
}

struct PageSink<'a> {
    predicate: Option<&'a Filter>,
    /// A row cannot be judged without its keys.
    needs_keys: bool,
    /// The next row was judged already, and is wanted.
    has_matched: bool,
    paths: PropertyPaths,
    room: u32,
    page_bytes: usize,
    examined_count: u64,
    returned_count: u64,
    damaged: bool,
    sink: &'a mut dyn EntitySink,
}

/// However a scan ends, and even if nobody waits for its end, what it has cost is told.
impl Drop for PageSink<'_> {
    fn drop(&mut self) {
        self.sink.examined(self.examined_count);
    }
}

impl PageSink<'_> {
    /// A full page ends at the next row, whether or not that one matches. Looking for the next match could take long, and
    /// the caller already has what it asked for.
    fn is_full(&self) -> bool {
        self.room == 0 || self.page_bytes >= PAGE_BYTES_MAX
    }
}

impl Sink for PageSink<'_> {
    fn passes_over(&mut self, version: Version, value: &[u8]) -> bool {
        if self.needs_keys || self.is_full() {
            return false;
        }
        let Some(record) = Record::open(value) else { return false };
        let timestamp = DateTime::from_ticks(version.ticks());
        let row = KeylessRow { record, timestamp, paths: &self.paths };
        self.has_matched = self.predicate.is_none_or(|predicate| predicate.matches(&row));
        self.examined_count += u64::from(!self.has_matched);
        !self.has_matched
    }

    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.is_full() {
            return Flow::Stop;
        }
        self.examined_count += 1;
        let Some(entity) = EntityView::open(key.partition, key.row, version, value) else {
            self.damaged = true;
            return Flow::Stop;
        };
        let has_matched = std::mem::take(&mut self.has_matched)
            || self.predicate.is_none_or(|predicate| predicate.matches(&entity));
        if !has_matched {
            return Flow::Continue;
        }
        let Some(page_bytes) = self.sink.entity(&entity) else { return Flow::Stop };
        self.room -= 1;
        self.returned_count += 1;
        self.page_bytes = page_bytes;
        Flow::Continue
    }
}

/// A table as a filter sees it: its name in lower case.
struct LowerName<'a>(&'a str);

impl Properties for LowerName<'_> {
    fn property(&self, property: &FilterProperty) -> Option<RawValue<'_>> {
        matches!(property, FilterProperty::TableName).then(|| RawValue::String(self.0.as_bytes()))
    }
}
