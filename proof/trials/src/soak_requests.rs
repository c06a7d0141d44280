//! The load of the trial `soak`: reads, inserts, merges, batches, scans, deletes over a moving window of rows, and now
//! and then a table that is created and dropped.
//!
//! Owns: the window. Rows are inserted at its head and deleted at its tail. Rows that are read or changed lie well
//! inside, so that no request depends on another in flight, and every answer must be a success. Promises: when all
//! requests are answered, the table holds exactly the window.

use fastrand::Rng;
use loadgen::request::{HOLE, Signer, Template, row_key_hex};
use testkit::Stopwatch;

use crate::Error;
use loadgen::generator::Requests;

pub const TABLE: &str = "soaked";
pub const KINDS: [&str; 7] = ["read", "insert", "merge", "batch", "scan", "delete", "table"];
const READ: usize = 0;
const INSERT: usize = 1;
const MERGE: usize = 2;
const BATCH: usize = 3;
const SCAN: usize = 4;
const DELETE: usize = 5;
const TABLES: usize = 6;

/// The window grows to this size and keeps it.
const ROW_COUNT_MAX: u64 = 60_000;
/// Rows at either end of the window that only inserts and deletes touch: more than can be in flight.
const MARGIN: u64 = 4_000;
pub const ROW_COUNT_MIN: u64 = 5 * MARGIN;
const BATCH_OPERATION_COUNT: u64 = 10;
const REQUESTS_PER_TABLE_STEP: u64 = 2_000;
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
/// Sign again after this long: the server accepts a signature for fifteen minutes only.
const SIGNER_AGE_SECONDS_MAX: u64 = 300;

pub struct SoakRequests {
    signer: Signer,
    signed: Stopwatch,
    insert: Template,
    insert_batch: Template,
    delete_batch: Template,
    random: Rng,
    head: u64,
    tail: u64,
    sent: u64,
    /// The step of the current table: created, filled, dropped.
    table_step: u64,
}

impl SoakRequests {
    pub fn new(seed: u64) -> Result<SoakRequests, Error> {
        let signer = Signer::new()?;
        Ok(SoakRequests {
            signed: Stopwatch::start(),
            insert: signer.insert(TABLE),
            insert_batch: signer.batch(TABLE, BATCH_OPERATION_COUNT as usize),
            delete_batch: delete_batch(&signer),
            signer,
            random: Rng::with_seed(seed),
            head: 0,
            tail: 0,
            sent: 0,
            table_step: 0,
        })
    }

    /// The keys of all rows that exist once every request is answered.
    pub fn row_keys(&self) -> impl Iterator<Item = String> {
        (self.tail..self.head).map(|number| String::from_utf8_lossy(&key(number)).into_owned())
    }

    pub fn row_count(&self) -> u64 {
        self.head - self.tail
    }

    /// Writes a batch of inserts for the initial rows.
    pub fn first_rows(&mut self, out: &mut Vec<u8>) {
        let head = &mut self.head;
        self.insert_batch.fill(out, || next(head));
    }

    fn renew_signatures(&mut self) -> Result<(), Error> {
        if self.signed.elapsed().as_secs() < SIGNER_AGE_SECONDS_MAX {
            return Ok(());
        }
        let fresh = SoakRequests::new(0)?;
        (self.signer, self.signed) = (fresh.signer, fresh.signed);
        (self.insert, self.insert_batch) = (fresh.insert, fresh.insert_batch);
        self.delete_batch = fresh.delete_batch;
        Ok(())
    }

    fn inner_row(&mut self) -> String {
        let number = self.random.u64(self.tail + MARGIN..self.head - MARGIN);
        String::from_utf8_lossy(&key(number)).into_owned()
    }

    fn entity_target(row: &str) -> String {
        format!("/{TABLE}(PartitionKey='p',RowKey='{row}')")
    }

    /// Whether to insert next: more inserts than deletes while the window grows, and as many of both afterwards.
    fn inserts_next(&mut self) -> bool {
        self.row_count() < ROW_COUNT_MAX && self.random.u32(0..4) > 0
    }

    fn table_request(&mut self, out: &mut Vec<u8>) {
        let table = format!("passing{}", self.table_step / 3);
        match self.table_step % 3 {
            0 => *out = self.signer.create_table(&table),
            1 => {
                let mut number = 0;
                self.signer.batch(&table, 100).fill(out, || next(&mut number));
            }
            _ => *out = self.signer.request("DELETE", &format!("/Tables('{table}')"), "", ""),
        }
        self.table_step += 1;
    }
}

impl Requests for SoakRequests {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        Some(self.next_kind(out))
    }
}

impl SoakRequests {
    /// Writes the next request into `out` and returns its kind.
    fn next_kind(&mut self, out: &mut Vec<u8>) -> usize {
        self.renew_signatures().expect("the account key is well-formed");
        self.sent += 1;
        if self.sent.is_multiple_of(REQUESTS_PER_TABLE_STEP) {
            self.table_request(out);
            return TABLES;
        }
        match self.random.u32(0..100) {
            0..45 => {
                let row = self.inner_row();
                *out = self.signer.get(TABLE, &row);
                READ
            }
            45..65 => {
                let row = self.inner_row();
                let headers = "Content-Type: application/json\r\nIf-Match: *\r\n";
                let body = format!(r#"{{"Note":"merged {:>12}"}}"#, self.sent);
                *out = self.signer.request("MERGE", &Self::entity_target(&row), headers, &body);
                MERGE
            }
            65..70 => {
                let row = self.inner_row();
                let filter = format!("PartitionKey%20eq%20'p'%20and%20RowKey%20ge%20'{row}'");
                *out = self.signer.request("GET", &format!("/{TABLE}()?$filter={filter}&$top=100"), "", "");
                SCAN
            }
            70..95 => {
                if self.inserts_next() {
                    let head = &mut self.head;
                    self.insert.fill(out, || next(head));
                    return INSERT;
                }
                let row = String::from_utf8_lossy(&next(&mut self.tail)).into_owned();
                *out = self.signer.request("DELETE", &Self::entity_target(&row), "If-Match: *\r\n", "");
                DELETE
            }
            _ => {
                if self.inserts_next() {
                    let head = &mut self.head;
                    self.insert_batch.fill(out, || next(head));
                } else {
                    let tail = &mut self.tail;
                    self.delete_batch.fill(out, || next(tail));
                }
                BATCH
            }
        }
    }
}

fn next(number: &mut u64) -> [u8; loadgen::request::ROW_KEY_LENGTH] {
    let key = key(*number);
    *number += 1;
    key
}

fn key(number: u64) -> [u8; loadgen::request::ROW_KEY_LENGTH] {
    row_key_hex(number.wrapping_mul(SCATTER))
}

fn delete_batch(signer: &Signer) -> Template {
    let mut body = String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
    for _ in 0..BATCH_OPERATION_COUNT {
        body.push_str(&format!(
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             DELETE http://127.0.0.1/devstoreaccount1/{TABLE}(PartitionKey='p',RowKey='{HOLE}') HTTP/1.1\r\n\
             Accept: application/json;odata=minimalmetadata\r\nIf-Match: *\r\nDataServiceVersion: 3.0\r\n\r\n\r\n"
        ));
    }
    body.push_str("--changeset_c--\r\n\r\n--batch_b--\r\n");
    let headers = "Content-Type: multipart/mixed; boundary=batch_b\r\n";
    Template::new(signer.request("POST", "/$batch", headers, &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_and_then_stays() {
        let mut requests = SoakRequests::new(1).unwrap();
        let mut out = Vec::new();
        while requests.row_count() < ROW_COUNT_MIN {
            requests.first_rows(&mut out);
        }
        let mut seen = [0u64; KINDS.len()];
        for _ in 0..400_000 {
            seen[requests.next_kind(&mut out)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
        let rows = requests.row_count();
        assert!((ROW_COUNT_MAX - 1_000..ROW_COUNT_MAX + 1_000).contains(&rows), "{rows}");
        assert_eq!(requests.row_keys().count() as u64, rows);
    }
}
