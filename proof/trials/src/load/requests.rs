//! The requests of a step: single writes and batches, writes that must be refused, tables, counters on shared rows, and
//! reads and scans that are compared with the ledger.
//!
//! Promises: a write that must be refused is refused and changes nothing; a read returns what the writer knows. Leaves
//! the ledger of writes to `exchange.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use testkit::{Batch, RawClient, Request, batch_parts, entity_json, entity_path};

use super::exchange::{Stop, broken};
use super::operations::Operation;
use super::{BATCH_OPERATION_COUNT_MAX, Common, Writer};
use crate::contents::{ReadFailure, entity, rows_through};
use crate::ledger::{Change, HOT_PARTITION, Key, MAIN_TABLE, Version, etag_of};

const TABLE_COUNT_MAX: u64 = 2;
const HOT_ROW_COUNT: u64 = 3;
/// The version of a row written in the year 2000: an ETag that never matches.
const STALE: Version = 2000 * 372 * 86_400 * 10_000_000;

impl Writer {
    pub(super) fn send_one(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        operation: Operation,
    ) -> Result<(), Stop> {
        let mut request = Request::new(operation.method, &operation.target);
        for (name, value) in &operation.headers {
            request = request.header(name, value);
        }
        if let Some(json) = &operation.json {
            request = request.json(json);
        }
        self.write(common, client, &request, vec![operation.change])
    }

    pub(super) fn batch(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let count = match self.random.u32(0..10) {
            0 => BATCH_OPERATION_COUNT_MAX,
            1 => self.random.usize(1..=BATCH_OPERATION_COUNT_MAX),
            _ => self.random.usize(1..=8),
        };
        let mut taken = BTreeSet::new();
        let mut operations = Vec::with_capacity(count);
        while operations.len() < count {
            let operation = self.operation(&table, &partition, &taken);
            if let Change::Put { key, .. } | Change::Delete { key, .. } = &operation.change {
                taken.insert(key.1.clone());
            }
            operations.push(operation);
        }
        // One batch in eight ends with an operation that fails. Then none of the batch may happen.
        let spoiled =
            (self.random.u32(0..8) == 0).then(|| self.existing(&table, &partition, &taken)).flatten();
        self.send_batch(common, client, operations, spoiled.map(|key| (table, key)))
    }

    pub(super) fn send_batch(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        operations: Vec<Operation>,
        spoiled_by: Option<(String, Key)>,
    ) -> Result<(), Stop> {
        let mut batch = Batch::new();
        let mut changes = Vec::new();
        for operation in operations {
            let headers: Vec<(&str, &str)> =
                operation.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            batch = batch.operation(operation.method, &operation.target, &headers, operation.json.as_deref());
            changes.push(operation.change);
        }
        let Some((table, key)) = spoiled_by.filter(|_| changes.len() < BATCH_OPERATION_COUNT_MAX) else {
            common.tally.batches.fetch_add(1, Ordering::Relaxed);
            return self.write(common, client, &batch.request(), changes);
        };
        let batch = batch.insert(&table, &entity_json(&key.0, &key.1, ""));
        let response = self.exchange(common, client, &batch.request())?;
        if response.status != 202 || batch_parts(&response).iter().all(|part| part.status != 409) {
            return Err(broken(format!(
                "a batch that inserts an existing row is answered with {response:?}"
            )));
        }
        common.tally.refused.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Sends a write that must be refused and change nothing.
    pub(super) fn refused(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let Some(key) = self.existing(&table, &partition, &BTreeSet::new()) else { return Ok(()) };
        let path = entity_path(&table, &key.0, &key.1);
        let (request, expected) = match self.random.u32(0..3) {
            0 => (Request::post(&format!("/{table}")).json(&entity_json(&key.0, &key.1, "")), 409),
            1 => (Request::merge(&path).header("If-Match", &etag_of(STALE)).json("{\"n\":0}"), 412),
            _ => (Request::delete(&path).header("If-Match", &etag_of(STALE)), 412),
        };
        let response = self.exchange(common, client, &request)?;
        common.tally.refused.fetch_add(1, Ordering::Relaxed);
        if response.status != expected {
            return Err(broken(format!("{expected} expected for {} {path}: {response:?}", request.method)));
        }
        Ok(())
    }

    pub(super) fn create_or_drop_table(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
    ) -> Result<(), Stop> {
        let table = format!("w{}t{}", self.number, self.random.u64(0..TABLE_COUNT_MAX));
        if self.known.tables.contains_key(&table) {
            self.drop_table(common, client, &table)
        } else {
            self.create_table(common, client, &table)
        }
    }

    pub(super) fn create_table(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        table: &str,
    ) -> Result<(), Stop> {
        let request = Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"));
        self.write(common, client, &request, vec![Change::CreateTable(table.to_owned())])
    }

    pub(super) fn drop_table(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
        table: &str,
    ) -> Result<(), Stop> {
        let request = Request::delete(&format!("/Tables('{table}')"));
        self.write(common, client, &request, vec![Change::DropTable(table.to_owned())])
    }

    /// Sets its own counter on one hot row, or a second counter on all of them in one batch.
    pub(super) fn hot(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let number = self.number();
        if self.random.bool() {
            let (row, property) = (self.hot_row(), format!("w{}c", self.number));
            let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
            let request = Request::merge(&path).json(&format!("{{\"{property}\":{number}}}"));
            return self.write(common, client, &request, vec![Change::Hot { row, property, number }]);
        }
        let mut batch = Batch::new();
        let mut changes = Vec::new();
        for row in 0..HOT_ROW_COUNT {
            let (row, property) = (format!("h{row}"), format!("w{}c{row}", self.number));
            let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
            let json = format!("{{\"{property}\":{number}}}");
            batch = batch.operation("MERGE", &path, &[], Some(&json));
            changes.push(Change::Hot { row, property, number });
        }
        self.write(common, client, &batch.request(), changes)
    }

    /// Reads a hot row and merges with its ETag. If another writer was faster, nothing may have changed.
    pub(super) fn hot_conditional(
        &mut self,
        common: &Common<'_>,
        client: &mut RawClient,
    ) -> Result<(), Stop> {
        let (row, property) = (self.hot_row(), format!("w{}c", self.number));
        let path = entity_path(MAIN_TABLE, HOT_PARTITION, &row);
        let response = self.exchange(common, client, &Request::get(&path))?;
        let Some(etag) = response.header("ETag").filter(|_| response.status == 200) else {
            return if response.status == 404 {
                Ok(())
            } else {
                Err(broken(format!("{path}: {response:?}")))
            };
        };
        let number = self.number();
        let request =
            Request::merge(&path).header("If-Match", etag).json(&format!("{{\"{property}\":{number}}}"));
        self.write(common, client, &request, vec![Change::Hot { row, property, number }])
    }

    fn hot_row(&mut self) -> String {
        format!("h{}", self.random.u64(0..HOT_ROW_COUNT))
    }

    pub(super) fn read_row(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let Some(key) = self.existing(&table, &partition, &BTreeSet::new()) else { return Ok(()) };
        let path = entity_path(&table, &key.0, &key.1);
        let response = self.exchange(common, client, &Request::get(&path))?;
        let found = serde_json::from_slice(&response.body).ok().and_then(|body| entity(body).ok());
        common.tally.reads.fetch_add(1, Ordering::Relaxed);
        match found {
            Some((found, row)) if found == key && row == self.known.tables[&table][&key] => Ok(()),
            _ => Err(broken(format!("{path} should be {:?}: {response:?}", self.known.tables[&table][&key]))),
        }
    }

    pub(super) fn scan(&mut self, common: &Common<'_>, client: &mut RawClient) -> Result<(), Stop> {
        let (table, partition) = self.somewhere();
        let mut stop = None;
        let mut ask = |request: &Request| match self.exchange(common, client, request) {
            Ok(response) => Ok(response),
            Err(reason) => {
                stop = Some(reason);
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
        };
        let found = match rows_through(&mut ask, &table, Some(&partition)) {
            Ok(rows) => rows,
            Err(ReadFailure::Broken(_)) => return Err(stop.unwrap_or(Stop::Cut)),
            Err(failure) => return Err(broken(format!("{table} {partition}: {failure}"))),
        };
        common.tally.reads.fetch_add(1, Ordering::Relaxed);
        let rows = &self.known.tables[&table];
        let expected = rows.iter().filter(|(key, _)| key.0 == partition);
        if expected.clone().ne(found.iter()) {
            let (ours, theirs) = (expected.count(), found.len());
            return Err(broken(format!(
                "a scan of {table} {partition} does not agree: {ours} rows, {theirs} found"
            )));
        }
        Ok(())
    }
}
