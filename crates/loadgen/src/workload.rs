//! The workloads: which requests go to which table or queue on how many connections, and what a right answer looks like.
//! What is said of tables and entities goes for queues and messages too.
//!
//! Every loaded entity has a number. Its row key is that number followed by eight digits, so that later inserts can
//! fall between any two. Leaves to others: making the requests (`sources.rs`) and sending them (`generator.rs`).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::Error;
use crate::endpoint::{Endpoint, MeasuredService};
use crate::generator::Requests;
use crate::messages::Takes;
use crate::queue_request::{MESSAGE_TEXT, QueueSigner};
use crate::request::{BATCH_OPERATION_COUNT, PARTITION, Signer, row_key};
use crate::sources::{Batches, Inserts, MERGING_CONNECTION_COUNT_MAX, Merges, Mix, Prepared, Random, Scan};

/// Signed requests per measurement: enough that the server's caches see many rows, few enough to fit in memory.
const PREPARED_REQUEST_COUNT: usize = 20_000;
/// Fewer for queries: each is longer and does more work.
const PREPARED_QUERY_COUNT: usize = 1_000;
pub const PAGE_ENTITY_COUNT: u64 = 1000;
pub const ANY_OF_KEY_COUNT: usize = 20;
/// Rows that the conditional merges go through in turn.
const MERGED_ROW_COUNT: u64 = 512;
const GROUP_COUNT: u64 = 100;
/// Distance between the keys of loaded entities.
pub(crate) const KEY_SPREAD: u64 = 100_000_000;

/// The number of the next new entity, shared by all workloads on one server so that no key comes twice. Starts at 1.
pub type Counter = Arc<AtomicU64>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkloadKind {
    Read,
    ReadMiss,
    Insert,
    Upsert,
    Merge,
    HotMerge,
    Batch,
    Page,
    AnyOf,
    Filter,
    Scan,
    Mix,
    PutMessage,
    Take,
    Take32,
    Peek,
}

impl WorkloadKind {
    pub const TABLE: [WorkloadKind; 12] = [
        WorkloadKind::Read,
        WorkloadKind::ReadMiss,
        WorkloadKind::Insert,
        WorkloadKind::Upsert,
        WorkloadKind::Merge,
        WorkloadKind::HotMerge,
        WorkloadKind::Batch,
        WorkloadKind::Page,
        WorkloadKind::AnyOf,
        WorkloadKind::Filter,
        WorkloadKind::Scan,
        WorkloadKind::Mix,
    ];
    pub const QUEUE: [WorkloadKind; 4] =
        [WorkloadKind::PutMessage, WorkloadKind::Take, WorkloadKind::Take32, WorkloadKind::Peek];

    /// The workloads of all services.
    pub fn all() -> impl Iterator<Item = WorkloadKind> {
        WorkloadKind::TABLE.into_iter().chain(WorkloadKind::QUEUE)
    }

    /// The name on the command line and in result files.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::Read => "read",
            WorkloadKind::ReadMiss => "read-miss",
            WorkloadKind::Insert => "insert",
            WorkloadKind::Upsert => "upsert",
            WorkloadKind::Merge => "merge",
            WorkloadKind::HotMerge => "hot-merge",
            WorkloadKind::Batch => "batch",
            WorkloadKind::Page => "page",
            WorkloadKind::AnyOf => "any-of",
            WorkloadKind::Filter => "filter",
            WorkloadKind::Scan => "scan",
            WorkloadKind::Mix => "mix",
            WorkloadKind::PutMessage => "put-message",
            WorkloadKind::Take => "take",
            WorkloadKind::Take32 => "take-32",
            WorkloadKind::Peek => "peek",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            WorkloadKind::Read => "point read",
            WorkloadKind::ReadMiss => "point read, not found",
            WorkloadKind::Insert => "insert, random keys",
            WorkloadKind::Upsert => "upsert",
            WorkloadKind::Merge => "merge with ETag",
            WorkloadKind::HotMerge => "merge of one hot entity",
            WorkloadKind::Batch => "transaction of 100 inserts",
            WorkloadKind::Page => "row range, page of 1,000",
            WorkloadKind::AnyOf => "`or` of 20 row keys",
            WorkloadKind::Filter => "partition scan, 1 % match",
            WorkloadKind::Scan => "table scan, all pages",
            WorkloadKind::Mix => "mix, 90 % reads",
            WorkloadKind::PutMessage => "put message",
            WorkloadKind::Take => "take 1 message, delete it",
            WorkloadKind::Take32 => "take 32 messages, delete each",
            WorkloadKind::Peek => "peek at 1 message",
        }
    }

    pub fn from_name(name: &str) -> Option<WorkloadKind> {
        WorkloadKind::all().find(|kind| kind.name() == name)
    }

    /// All names, for an error message about an unknown one.
    pub fn names() -> String {
        WorkloadKind::all().map(WorkloadKind::name).collect::<Vec<_>>().join(", ")
    }

    /// The service whose endpoint it is for.
    pub fn service(self) -> MeasuredService {
        if WorkloadKind::QUEUE.contains(&self) { MeasuredService::Queue } else { MeasuredService::Table }
    }

    /// Messages that each operation removes.
    pub(crate) fn messages_taken(self) -> u64 {
        match self {
            WorkloadKind::Take => 1,
            WorkloadKind::Take32 => 32,
            _ => 0,
        }
    }

    /// Whether it adds entities to the table. Such workloads get tables of their own.
    pub fn adds_entities(self) -> bool {
        matches!(
            self,
            WorkloadKind::Insert | WorkloadKind::Batch | WorkloadKind::Mix | WorkloadKind::PutMessage
        )
    }

    /// The fewest entities that the table must have.
    fn entities_min(self) -> u64 {
        match self {
            WorkloadKind::Insert | WorkloadKind::Batch | WorkloadKind::PutMessage => 0,
            WorkloadKind::Page | WorkloadKind::Merge => PAGE_ENTITY_COUNT,
            _ => 100,
        }
    }
}

/// What a table holds before it is measured: entities 0 to `entities`, spread evenly over `partitions`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableShape {
    pub entities: u64,
    pub partitions: u64,
}

impl TableShape {
    pub const fn one_partition(entities: u64) -> TableShape {
        TableShape { entities, partitions: 1 }
    }

    /// `1k`, `10M in 100 partitions`.
    pub fn label(self) -> String {
        let count = match self.entities {
            n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => format!("{}M", n / 1_000_000),
            n if n >= 1_000 && n.is_multiple_of(1_000) => format!("{}k", n / 1_000),
            n => n.to_string(),
        };
        match self.partitions {
            1 => count,
            partitions => format!("{count} in {partitions} partitions"),
        }
    }

    pub fn partition(self, number: u64) -> String {
        match self.partitions {
            1 => PARTITION.to_owned(),
            partitions => format!("{PARTITION}{:03}", number / (self.entities / partitions).max(1)),
        }
    }
}

/// The row key of a loaded entity.
pub fn loaded_key(number: u64) -> String {
    row_key(number * KEY_SPREAD)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Workload {
    pub kind: WorkloadKind,
    pub shape: TableShape,
    pub connections: usize,
}

impl Workload {
    /// The table's name in a run. Workloads share a table where they can.
    pub fn table(&self) -> String {
        let prefix = if self.kind.adds_entities() { "grown" } else { "kept" };
        format!("{prefix}{}in{}", self.shape.entities, self.shape.partitions)
    }

    pub fn check(&self) -> Result<(), Error> {
        let wanted = self.kind.entities_min();
        if self.shape.entities < wanted {
            return Err(format!("{} needs at least {wanted} entities", self.kind.name()).into());
        }
        if self.kind == WorkloadKind::Merge && self.connections > MERGING_CONNECTION_COUNT_MAX {
            return Err(format!("merge takes at most {MERGING_CONNECTION_COUNT_MAX} connections").into());
        }
        Ok(())
    }

    /// Requests signed now; the server accepts them for fifteen minutes.
    pub fn requests(
        &self,
        endpoint: &Endpoint,
        table: &str,
        counter: &Counter,
    ) -> Result<Box<dyn Requests>, Error> {
        self.check()?;
        if self.kind.service() == MeasuredService::Queue {
            return self.queue_requests(endpoint, table);
        }
        let signer = Signer::of(endpoint)?;
        let shape = self.shape;
        let mut random = Random::new(0x5eed);
        let mut prepare = |count: usize, numbers: u64, request: &dyn Fn(u64) -> Vec<u8>| {
            (0..count).map(|_| request(random.below(numbers.max(1)))).collect::<Vec<_>>()
        };
        let get = |number: u64| signer.get_in(table, &shape.partition(number), &loaded_key(number));
        let upsert = |number: u64| signer.upsert(table, &shape.partition(number), &loaded_key(number));
        Ok(match self.kind {
            WorkloadKind::Read => Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &get)),
            WorkloadKind::ReadMiss => {
                let miss = |number: u64| {
                    signer.get_in(table, &shape.partition(number), &row_key((number + 1) * KEY_SPREAD - 1))
                };
                Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &miss)).expecting(404)
            }
            WorkloadKind::Upsert => Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &upsert)),
            WorkloadKind::Page => {
                let page = |number: u64| signer.page(table, &shape.partition(number), &loaded_key(number));
                let last = shape.entities - PAGE_ENTITY_COUNT + 1;
                Prepared::new(prepare(PREPARED_QUERY_COUNT, last, &page))
            }
            WorkloadKind::AnyOf => {
                let step = shape.entities / ANY_OF_KEY_COUNT as u64;
                let any_of = |number: u64| {
                    let keys: Vec<String> =
                        (0..ANY_OF_KEY_COUNT as u64).map(|index| loaded_key(index * step + number)).collect();
                    signer.any_of(table, &shape.partition(0), &keys)
                };
                Prepared::new(prepare(PREPARED_QUERY_COUNT, step, &any_of))
            }
            WorkloadKind::Insert => Inserts::new(signer.insert(table), shape.entities, counter),
            WorkloadKind::Batch => Batches::endless(&signer, table, shape.entities, counter),
            WorkloadKind::HotMerge => Merges::new(vec![merge(&signer, table, shape, 0)], false),
            WorkloadKind::Merge => {
                let numbers = (0..MERGED_ROW_COUNT).map(|index| index * (shape.entities / MERGED_ROW_COUNT));
                Merges::new(numbers.map(|number| merge(&signer, table, shape, number)).collect(), true)
            }
            WorkloadKind::Filter => {
                let query = |group: u64| {
                    signer.query(table, &Signer::group_filter(&shape.partition(0), &format!("{group:02}")))
                };
                Scan::new((0..GROUP_COUNT).map(query), false)
            }
            WorkloadKind::Scan => Scan::new([signer.query(table, "$top=1000")], true),
            WorkloadKind::Mix => Mix::new(
                prepare(PREPARED_REQUEST_COUNT, shape.entities, &get),
                prepare(PREPARED_REQUEST_COUNT, shape.entities, &upsert),
                Inserts::new(signer.insert(table), shape.entities, counter),
            ),
            other => return Err(format!("{} is not about tables", other.name()).into()),
        })
    }

    fn queue_requests(&self, endpoint: &Endpoint, queue: &str) -> Result<Box<dyn Requests>, Error> {
        let signer = QueueSigner::of(endpoint)?;
        Ok(match self.kind {
            WorkloadKind::PutMessage => Prepared::new(vec![signer.put(queue, &[])]).expecting(201),
            WorkloadKind::Peek => Prepared::new(vec![signer.peek(queue)]).expecting(200),
            kind => Takes::new(&signer, queue, kind.messages_taken()),
        })
    }

    /// Entities that one request reads or writes. Not for scans: their pages differ, so the probe counts a whole pass.
    pub(crate) fn entities_per_request(&self) -> u64 {
        match self.kind {
            WorkloadKind::Batch => BATCH_OPERATION_COUNT as u64,
            WorkloadKind::Page => PAGE_ENTITY_COUNT,
            WorkloadKind::AnyOf => ANY_OF_KEY_COUNT as u64,
            WorkloadKind::ReadMiss => 0,
            WorkloadKind::Take32 => self.kind.messages_taken(),
            _ => 1,
        }
    }

    /// Entities that a whole scan must return, given what was loaded.
    pub(crate) fn entities_per_pass(&self) -> Option<u64> {
        match self.kind {
            WorkloadKind::Filter => Some(self.shape.entities / self.shape.partitions / GROUP_COUNT),
            WorkloadKind::Scan => Some(self.shape.entities),
            _ => None,
        }
    }

    /// Whether an answer has the right status and content: the status alone can hide an empty page.
    pub(crate) fn is_right(&self, status: u16, answer: &str) -> bool {
        let has_etag = || answer.to_ascii_lowercase().contains("\r\netag: w/");
        match self.kind {
            WorkloadKind::Read | WorkloadKind::Mix => {
                status == 200 && answer.contains(r#""Name":"Ada Lovelace""#) && answer.contains("odata.etag")
            }
            WorkloadKind::ReadMiss => status == 404 && answer.contains("ResourceNotFound"),
            WorkloadKind::Insert | WorkloadKind::Upsert | WorkloadKind::Merge | WorkloadKind::HotMerge => {
                status == 204 && has_etag()
            }
            WorkloadKind::Page | WorkloadKind::AnyOf => {
                status == 200 && count_entities(answer) == self.entities_per_request()
            }
            // A page may be empty. `probe` checks the entities of a whole pass.
            WorkloadKind::Filter | WorkloadKind::Scan => status == 200,
            WorkloadKind::Batch => {
                status == 202 && answer.matches("HTTP/1.1 204 No Content").count() == BATCH_OPERATION_COUNT
            }
            WorkloadKind::PutMessage => status == 201 && answer.contains("<PopReceipt>"),
            WorkloadKind::Peek => status == 200 && answer.contains(MESSAGE_TEXT),
            // The deletions follow.
            WorkloadKind::Take | WorkloadKind::Take32 => {
                let wanted = self.entities_per_request() as usize;
                status == 204 || status == 200 && answer.matches(MESSAGE_TEXT).count() == wanted
            }
        }
    }
}

/// Entities in the answer to a query.
pub(crate) fn count_entities(answer: &str) -> u64 {
    answer.matches(r#""RowKey":"#).count() as u64
}

fn merge(signer: &Signer, table: &str, shape: TableShape, number: u64) -> (Vec<u8>, Vec<u8>) {
    signer.merge(table, &shape.partition(number), &loaded_key(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: WorkloadKind, entities: u64) -> Workload {
        Workload { kind, shape: TableShape::one_partition(entities), connections: 1 }
    }

    fn first_request(workload: &Workload) -> String {
        let endpoint = Endpoint::development(([127, 0, 0, 1], 1).into());
        let mut requests = workload.requests(&endpoint, "t", &Counter::new(1.into())).unwrap();
        let mut out = Vec::new();
        assert!(requests.next(0, &mut out).is_some(), "{}", workload.kind.name());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_lead_back_to_their_action() {
        for kind in WorkloadKind::all() {
            assert_eq!(WorkloadKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(WorkloadKind::from_name("reed"), None);
    }

    #[test]
    fn every_workload_has_requests() {
        for kind in WorkloadKind::TABLE {
            let request = first_request(&workload(kind, 1000));
            assert!(request.contains("Authorization: SharedKeyLite"), "{request}");
        }
        for kind in WorkloadKind::QUEUE {
            let request = first_request(&workload(kind, 1000));
            assert!(request.contains("Authorization: SharedKey devstoreaccount1:"), "{request}");
        }
        let any_of = first_request(&workload(WorkloadKind::AnyOf, 1000));
        assert_eq!(any_of.matches("RowKey%20eq").count(), ANY_OF_KEY_COUNT);
        assert!(first_request(&workload(WorkloadKind::ReadMiss, 1000)).contains("99999999')"));
    }

    #[test]
    fn a_table_that_is_too_small_is_refused() {
        assert!(workload(WorkloadKind::Page, 100).check().is_err());
        assert!(workload(WorkloadKind::Insert, 0).check().is_ok());
    }

    #[test]
    fn wrong_answers_are_seen() {
        let page = workload(WorkloadKind::Page, 1000);
        let thousand = r#""RowKey":"x""#.repeat(1000);
        assert!(page.is_right(200, &thousand) && !page.is_right(200, &thousand[12..]));
        assert!(!workload(WorkloadKind::ReadMiss, 1000).is_right(200, "ResourceNotFound"));
        assert!(!workload(WorkloadKind::Insert, 0).is_right(204, "HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(workload(WorkloadKind::Insert, 0).is_right(204, "HTTP/1.1 204 x\r\nETag: W/\"x\"\r\n\r\n"));
        let parts = "HTTP/1.1 204 No Content".repeat(99);
        assert!(!workload(WorkloadKind::Batch, 0).is_right(202, &parts));
    }

    #[test]
    fn shapes_have_short_names_and_even_partitions() {
        assert_eq!(TableShape::one_partition(10_000_000).label(), "10M");
        let shape = TableShape { entities: 100_000, partitions: 100 };
        assert_eq!(shape.label(), "100k in 100 partitions");
        assert_eq!(
            [shape.partition(0), shape.partition(999), shape.partition(99_999)],
            ["p000", "p000", "p099"]
        );
        assert_eq!(TableShape::one_partition(7).partition(3), "p");
    }
}
