//! Generated workloads: each writes the observations that a server would make of one program's requests.

use std::time::Duration;

use fastrand::Rng;
use observe::{Advisor, Detail, Named, NotedRow, Notes, Observation, Observer, Operation, PlanKind, Shape};
use protocol::common::DateTime;
use protocol::table::filter;

pub const ACCOUNT: &str = "devstoreaccount1";

/// Sends observations to an advisor, at times that pass without anybody waiting.
pub struct Generator {
    pub advisor: Advisor,
    pub now: Duration,
    pub random: Rng,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator {
            advisor: Advisor::default(),
            // Not at the beginning of a window.
            now: Duration::from_secs(1234),
            random: Rng::with_seed(seed),
        }
    }

    /// Runs so many seconds in steps of 10 ms.
    pub fn run(&mut self, seconds: u64, mut step: impl FnMut(&mut Generator, u64)) {
        for number in 0..seconds * 100 {
            self.now += Duration::from_millis(10);
            step(self, number);
        }
    }

    pub fn key(&mut self) -> String {
        format!("{:08x}", self.random.u32(..))
    }

    fn send(&mut self, operation: Operation, took: Duration, detail: Detail<'_>) {
        self.advisor.observe(&Observation {
            operation,
            account: ACCOUNT,
            status: 200,
            error: None,
            bytes_in: detail.row_bytes_max,
            bytes_out: 200 * detail.returned,
            took,
            at: self.now,
            now: DateTime::UNIX_EPOCH,
            request_id: "",
            detail,
        });
    }

    pub fn get(&mut self, table: &str, partition: &str, row: &str) {
        let detail = Detail {
            container: table,
            partition: Some(partition),
            row: Some(row),
            plan: Some(PlanKind::Point),
            examined: 1,
            returned: 1,
            row_bytes_max: 300,
            property_count_max: 5,
            ..Detail::default()
        };
        self.send(Operation::GetEntity, Duration::from_micros(90), detail);
    }

    pub fn query(&mut self, table: &str, source: &str, examined: u64, returned: u64) {
        let parsed = filter::parse(source, filter::Schema::Entities).unwrap();
        let plan = parsed.as_ref().map(|filter| protocol::table::region::kind(&filter.root));
        let shape = parsed.map(|filter| Shape::new(filter::shape_number(&filter.root), source));
        let detail = Detail {
            container: table,
            plan: plan.or(Some(PlanKind::TableScan)),
            filter_shape: shape,
            examined,
            returned,
            ..Detail::default()
        };
        self.send(Operation::QueryEntities, Duration::from_micros(100 + 2 * examined), detail);
    }

    pub fn write(&mut self, operation: Operation, table: &str, keys: (&str, &str), written: u64) {
        self.write_sized(operation, table, keys, written, 500, 8);
    }

    pub fn write_sized(
        &mut self,
        operation: Operation,
        table: &str,
        keys: (&str, &str),
        written: u64,
        row_bytes_max: u64,
        property_count_max: u32,
    ) {
        let notes = Notes::default();
        notes.row(row_bytes_max, property_count_max);
        notes.written(written);
        let mut named = Named { container: table, partition: Some(keys.0), row: Some(keys.1), filter: None };
        if operation == Operation::EntityGroupTransaction {
            named = Named::default();
            let rows: Vec<String> = (0..written).map(|number| format!("{}{number:02}", keys.1)).collect();
            let row = |row| NotedRow {
                operation: Operation::InsertOrReplaceEntity,
                row,
                size_bytes: row_bytes_max as u32,
                property_count: property_count_max as u8,
            };
            notes.rows(table, keys.0, rows.iter().map(|text| row(text)));
        }
        self.send(operation, Duration::from_micros(800), notes.detail(named));
    }

    pub fn delete_table(&mut self, table: &str) {
        let detail = Detail { container: table, ..Detail::default() };
        self.send(Operation::DeleteTable, Duration::from_millis(1), detail);
    }

    /// A program with good keys: points, ranges, lists of what is wanted, writes that spread, small transactions. About
    /// 6,000 requests a second.
    pub fn well_designed(&mut self, step: u64) {
        for _ in 0..50 {
            let (partition, row) = (self.key(), self.key());
            self.get("Orders", &partition, &row);
        }
        for _ in 0..6 {
            let (partition, row) = (self.key(), format!("{step:09}"));
            self.write(Operation::InsertEntity, "Orders", (&partition, &row), 1);
            self.write(Operation::InsertOrReplaceEntity, "Baskets", (&partition, "basket"), 1);
        }
        // A counter that is written again and again.
        self.write(Operation::InsertOrMergeEntity, "Counters", ("counters", "visits"), 1);
        let partition = self.key();
        self.write(Operation::EntityGroupTransaction, "OrderLines", (&partition, "000"), 20);
        let owner = self.key();
        let filter = format!("PartitionKey eq '{owner}' and RowKey ge '2026-01' and RowKey lt '2026-02'");
        self.query("Orders", &filter, 31, 31);
        // All lines of an order, and a small partition read for one property of it.
        self.query("OrderLines", &format!("PartitionKey eq '{owner}'"), 20, 20);
        self.query("OrderLines", &format!("PartitionKey eq '{owner}' and Kind eq 'gift'"), 20, 2);
        self.query("Orders", &format!("PartitionKey eq '{owner}' and RowKey eq '1'"), 1, 1);
        if step.is_multiple_of(100) {
            // A short list of everything.
            self.query("Countries", "", 180, 180);
            let row = self.key();
            self.write(Operation::DeleteEntity, "Baskets", (&owner, &row), 1);
        }
    }
}
