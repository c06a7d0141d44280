//! The workloads: what is asked, of which table, on how many connections, and what a right answer looks like.
//!
//! A loaded entity has a number; its row key is that number followed by eight digits, so that later inserts can fall
//! between any two. The requests themselves are made in `sources.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::Error;
use crate::endpoint::Endpoint;
use crate::generator::Requests;
use crate::request::{BATCH_OPERATION_COUNT, PARTITION, Signer, row_key};
use crate::sources::{Batches, Inserts, MERGING_CONNECTION_COUNT_MAX, Merges, Mix, Prepared, Random, Scan};

/// Signed requests per measurement. Enough that the server's caches see many rows, few enough to sit in memory.
const PREPARED_REQUEST_COUNT: usize = 20_000;
/// Those of queries are longer and each of them does more.
const PREPARED_QUERY_COUNT: usize = 1_000;
pub const PAGE_ENTITY_COUNT: u64 = 1000;
pub const ANY_OF_KEY_COUNT: usize = 20;
/// Rows that conditional merges take turns on.
const MERGED_ROW_COUNT: u64 = 512;
const GROUP_COUNT: u64 = 100;
/// Distance between the keys of loaded entities.
pub const KEY_SPREAD: u64 = 100_000_000;

/// Numbers for new entities, shared by all workloads on one server, so that no key comes twice. Begins at 1.
pub type Counter = Arc<AtomicU64>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
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
}

impl Action {
    pub const ALL: [Action; 12] = [
        Action::Read,
        Action::ReadMiss,
        Action::Insert,
        Action::Upsert,
        Action::Merge,
        Action::HotMerge,
        Action::Batch,
        Action::Page,
        Action::AnyOf,
        Action::Filter,
        Action::Scan,
        Action::Mix,
    ];

    /// As on the command line and in files of results.
    pub fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::ReadMiss => "read-miss",
            Action::Insert => "insert",
            Action::Upsert => "upsert",
            Action::Merge => "merge",
            Action::HotMerge => "hot-merge",
            Action::Batch => "batch",
            Action::Page => "page",
            Action::AnyOf => "any-of",
            Action::Filter => "filter",
            Action::Scan => "scan",
            Action::Mix => "mix",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Action::Read => "point read",
            Action::ReadMiss => "point read, not found",
            Action::Insert => "insert, random keys",
            Action::Upsert => "upsert",
            Action::Merge => "merge with ETag",
            Action::HotMerge => "merge of one hot entity",
            Action::Batch => "transaction of 100 inserts",
            Action::Page => "row range, page of 1,000",
            Action::AnyOf => "`or` of 20 row keys",
            Action::Filter => "partition scan, 1 % match",
            Action::Scan => "table scan, all pages",
            Action::Mix => "mix, 90 % reads",
        }
    }

    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name() == name)
    }

    /// All names, for a sentence that refuses another.
    pub fn names() -> String {
        Action::ALL.map(Action::name).join(", ")
    }

    /// Whether the table has more entities afterwards: such workloads leave the tables of the others alone.
    pub fn adds_entities(self) -> bool {
        matches!(self, Action::Insert | Action::Batch | Action::Mix)
    }

    /// Whether the entities of a table of this size suffice.
    fn entities_min(self) -> u64 {
        match self {
            Action::Insert | Action::Batch => 0,
            Action::Page | Action::Merge => PAGE_ENTITY_COUNT,
            _ => 100,
        }
    }
}

/// What is in a table before it is measured: entities 0 to `entities`, evenly over `partitions`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    pub entities: u64,
    pub partitions: u64,
}

impl Shape {
    pub const fn one_partition(entities: u64) -> Shape {
        Shape { entities, partitions: 1 }
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
    pub action: Action,
    pub shape: Shape,
    pub connections: usize,
}

impl Workload {
    /// The table's name in a run. Workloads that may share a table do.
    pub fn table(&self) -> String {
        let prefix = if self.action.adds_entities() { "grown" } else { "kept" };
        format!("{prefix}{}in{}", self.shape.entities, self.shape.partitions)
    }

    pub fn check(&self) -> Result<(), Error> {
        let wanted = self.action.entities_min();
        if self.shape.entities < wanted {
            return Err(format!("{} needs at least {wanted} entities", self.action.name()).into());
        }
        if self.action == Action::Merge && self.connections > MERGING_CONNECTION_COUNT_MAX {
            return Err(format!("merge takes at most {MERGING_CONNECTION_COUNT_MAX} connections").into());
        }
        Ok(())
    }

    /// Fresh requests, signed now: good for fifteen minutes.
    pub fn requests(
        &self,
        endpoint: &Endpoint,
        table: &str,
        counter: &Counter,
    ) -> Result<Box<dyn Requests>, Error> {
        self.check()?;
        let signer = Signer::of(endpoint)?;
        let shape = self.shape;
        let mut random = Random::new(0x5eed);
        let mut prepare = |count: usize, numbers: u64, request: &dyn Fn(u64) -> Vec<u8>| {
            (0..count).map(|_| request(random.below(numbers.max(1)))).collect::<Vec<_>>()
        };
        let get = |number: u64| signer.get_in(table, &shape.partition(number), &loaded_key(number));
        let upsert = |number: u64| signer.upsert(table, &shape.partition(number), &loaded_key(number));
        Ok(match self.action {
            Action::Read => Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &get)),
            Action::ReadMiss => {
                let miss = |number: u64| {
                    signer.get_in(table, &shape.partition(number), &row_key((number + 1) * KEY_SPREAD - 1))
                };
                Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &miss)).expecting(404)
            }
            Action::Upsert => Prepared::new(prepare(PREPARED_REQUEST_COUNT, shape.entities, &upsert)),
            Action::Page => {
                let page = |number: u64| signer.page(table, &shape.partition(number), &loaded_key(number));
                let last = shape.entities - PAGE_ENTITY_COUNT + 1;
                Prepared::new(prepare(PREPARED_QUERY_COUNT, last, &page))
            }
            Action::AnyOf => {
                let step = shape.entities / ANY_OF_KEY_COUNT as u64;
                let any_of = |number: u64| {
                    let keys: Vec<String> =
                        (0..ANY_OF_KEY_COUNT as u64).map(|index| loaded_key(index * step + number)).collect();
                    signer.any_of(table, &shape.partition(0), &keys)
                };
                Prepared::new(prepare(PREPARED_QUERY_COUNT, step, &any_of))
            }
            Action::Insert => Inserts::new(signer.insert(table), shape.entities, counter),
            Action::Batch => Batches::endless(&signer, table, shape.entities, counter),
            Action::HotMerge => Merges::new(vec![merge(&signer, table, shape, 0)], false),
            Action::Merge => {
                let numbers = (0..MERGED_ROW_COUNT).map(|index| index * (shape.entities / MERGED_ROW_COUNT));
                Merges::new(numbers.map(|number| merge(&signer, table, shape, number)).collect(), true)
            }
            Action::Filter => {
                let query = |group: u64| {
                    signer.query(table, &Signer::group_filter(&shape.partition(0), &format!("{group:02}")))
                };
                Scan::new((0..GROUP_COUNT).map(query), false)
            }
            Action::Scan => Scan::new([signer.query(table, "$top=1000")], true),
            Action::Mix => Mix::new(
                prepare(PREPARED_REQUEST_COUNT, shape.entities, &get),
                prepare(PREPARED_REQUEST_COUNT, shape.entities, &upsert),
                Inserts::new(signer.insert(table), shape.entities, counter),
            ),
        })
    }

    /// Entities that one request reads or writes; for scans, where pages differ, the probe of a whole pass tells.
    pub fn entities_per_request(&self) -> u64 {
        match self.action {
            Action::Batch => BATCH_OPERATION_COUNT as u64,
            Action::Page => PAGE_ENTITY_COUNT,
            Action::AnyOf => ANY_OF_KEY_COUNT as u64,
            Action::ReadMiss => 0,
            _ => 1,
        }
    }

    /// Entities that a whole pass of a scan returns, by what was loaded.
    pub fn entities_per_pass(&self) -> Option<u64> {
        match self.action {
            Action::Filter => Some(self.shape.entities / self.shape.partitions / GROUP_COUNT),
            Action::Scan => Some(self.shape.entities),
            _ => None,
        }
    }

    /// Whether an answer also says the right thing: a status alone can hide an empty page.
    pub fn is_right(&self, status: u16, answer: &str) -> bool {
        let has_etag = || answer.to_ascii_lowercase().contains("\r\netag: w/");
        match self.action {
            Action::Read | Action::Mix => {
                status == 200 && answer.contains(r#""Name":"Ada Lovelace""#) && answer.contains("odata.etag")
            }
            Action::ReadMiss => status == 404 && answer.contains("ResourceNotFound"),
            Action::Insert | Action::Upsert | Action::Merge | Action::HotMerge => status == 204 && has_etag(),
            Action::Page | Action::AnyOf => {
                status == 200 && count_entities(answer) == self.entities_per_request()
            }
            // A page may be empty; a pass may not, which is checked where passes are counted.
            Action::Filter | Action::Scan => status == 200,
            Action::Batch => {
                status == 202 && answer.matches("HTTP/1.1 204 No Content").count() == BATCH_OPERATION_COUNT
            }
        }
    }
}

/// Entities in the answer to a query.
pub fn count_entities(answer: &str) -> u64 {
    answer.matches(r#""RowKey":"#).count() as u64
}

fn merge(signer: &Signer, table: &str, shape: Shape, number: u64) -> (Vec<u8>, Vec<u8>) {
    signer.merge(table, &shape.partition(number), &loaded_key(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(action: Action, entities: u64) -> Workload {
        Workload { action, shape: Shape::one_partition(entities), connections: 1 }
    }

    fn first_request(workload: &Workload) -> String {
        let endpoint = Endpoint::development(([127, 0, 0, 1], 1).into());
        let mut requests = workload.requests(&endpoint, "t", &Counter::new(1.into())).unwrap();
        let mut out = Vec::new();
        assert!(requests.next(0, &mut out).is_some(), "{}", workload.action.name());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_lead_back_to_their_action() {
        for action in Action::ALL {
            assert_eq!(Action::from_name(action.name()), Some(action));
        }
        assert_eq!(Action::from_name("reed"), None);
    }

    #[test]
    fn every_workload_has_requests() {
        for action in Action::ALL {
            let request = first_request(&workload(action, 1000));
            assert!(request.contains("Authorization: SharedKeyLite"), "{request}");
        }
        let any_of = first_request(&workload(Action::AnyOf, 1000));
        assert_eq!(any_of.matches("RowKey%20eq").count(), ANY_OF_KEY_COUNT);
        assert!(first_request(&workload(Action::ReadMiss, 1000)).contains("99999999')"));
    }

    #[test]
    fn a_table_that_is_too_small_is_refused() {
        assert!(workload(Action::Page, 100).check().is_err());
        assert!(workload(Action::Insert, 0).check().is_ok());
    }

    #[test]
    fn wrong_answers_are_seen() {
        let page = workload(Action::Page, 1000);
        let thousand = r#""RowKey":"x""#.repeat(1000);
        assert!(page.is_right(200, &thousand) && !page.is_right(200, &thousand[12..]));
        assert!(!workload(Action::ReadMiss, 1000).is_right(200, "ResourceNotFound"));
        assert!(!workload(Action::Insert, 0).is_right(204, "HTTP/1.1 204 No Content\r\n\r\n"));
        assert!(workload(Action::Insert, 0).is_right(204, "HTTP/1.1 204 x\r\nETag: W/\"x\"\r\n\r\n"));
        let parts = "HTTP/1.1 204 No Content".repeat(99);
        assert!(!workload(Action::Batch, 0).is_right(202, &parts));
    }

    #[test]
    fn shapes_have_short_names_and_even_partitions() {
        assert_eq!(Shape::one_partition(10_000_000).label(), "10M");
        let shape = Shape { entities: 100_000, partitions: 100 };
        assert_eq!(shape.label(), "100k in 100 partitions");
        assert_eq!(
            [shape.partition(0), shape.partition(999), shape.partition(99_999)],
            ["p000", "p000", "p099"]
        );
        assert_eq!(Shape::one_partition(7).partition(3), "p");
    }
}
