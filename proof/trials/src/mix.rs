//! Requests for the trials that measure: mixes of reads and writes, expensive scans and batches, all signed beforehand.
//!
//! Owns: filling the tables, and the requests to them. The server accepts a signature for fifteen minutes, so a longer
//! run must make new requests.

use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use loadgen::endpoint::Endpoint;
use loadgen::generator::{self, Requests};
use loadgen::request::{HOLE, Signer, Template, row_key, row_key_bytes, row_key_hex};
use loadgen::sources::Batches;
use loadgen::table;

use crate::Error;

/// The table that point reads go to, filled by [`fill`].
pub const READ_TABLE: &str = "reading";
pub const WRITE_TABLE: &str = "writing";
/// Entities of some 39 KiB.
pub const LARGE_TABLE: &str = "large";
pub const READ_ROW_COUNT: u64 = 20_000;
const PREPARED_REQUEST_COUNT: usize = 20_000;
const SMALL_BATCH_OPERATION_COUNT: usize = 10;
const FULL_BATCH_OPERATION_COUNT: u64 = 100;
/// Keeps a batch of a hundred just below the 4 MiB that a payload may have.
const LARGE_STRING_LENGTH: usize = 20_000;
const LARGE_STRING_COUNT: usize = 2;
/// Only this many large rows exist; they are replaced again and again, so that the store does not fill the disk.
const LARGE_ROW_COUNT: u64 = 2_000;
/// Odd, so that multiplying by it gives every number once, and far from the one before.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
const FILL_CONNECTION_COUNT: usize = 16;
const FILL_TIME_MAX: Duration = Duration::from_secs(14 * 60);

/// The kinds of requests in a [`Mix`].
pub const MIX_KINDS: [&str; 3] = ["read", "insert", "batch"];

/// Of ten requests, `reads_of_ten` are point reads. Of the others, two are inserts for every small batch of inserts.
pub struct Mix {
    reads_of_ten: u32,
    reads: Vec<Vec<u8>>,
    insert: Template,
    batch: Template,
    random: Rng,
    /// The number of the next inserted entity. Mixes with different names never insert the same.
    counter: u64,
}

impl Mix {
    pub fn new(seed: u64, name: u8, reads_of_ten: u32) -> Result<Mix, Error> {
        let signer = Signer::new()?;
        let mut random = Rng::with_seed(seed);
        let reads = (0..PREPARED_REQUEST_COUNT)
            .map(|_| signer.get(READ_TABLE, &row_key(random.u64(0..READ_ROW_COUNT))))
            .collect();
        Ok(Mix {
            reads_of_ten,
            reads,
            insert: signer.insert(WRITE_TABLE),
            batch: signer.batch(WRITE_TABLE, SMALL_BATCH_OPERATION_COUNT),
            random,
            counter: u64::from(name) << 48,
        })
    }
}

impl Requests for Mix {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        let key = || {
            self.counter += 1;
            row_key_hex(self.counter.wrapping_mul(SCATTER))
        };
        if self.random.u32(0..10) < self.reads_of_ten {
            out.clear();
            out.extend_from_slice(&self.reads[self.random.usize(0..self.reads.len())]);
            return Some(0);
        }
        if self.random.u32(0..3) < 2 {
            self.insert.fill(out, key);
            return Some(1);
        }
        self.batch.fill(out, key);
        Some(2)
    }
}

/// The same request, repeated forever.
pub struct Same(pub Vec<u8>);

impl Requests for Same {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        out.extend_from_slice(&self.0);
        Some(0)
    }
}

/// Transactions that write a hundred large entities each.
pub struct LargeBatches {
    template: Template,
    counter: u64,
}

impl LargeBatches {
    pub fn new() -> Result<LargeBatches, Error> {
        let text = "lapis lazuli ".repeat(LARGE_STRING_LENGTH / 13 + 1);
        let properties: Vec<String> = (0..LARGE_STRING_COUNT)
            .map(|index| format!(r#""Text{index}":"{}""#, &text[..LARGE_STRING_LENGTH]))
            .collect();
        let json = format!("{{{}}}", properties.join(","));
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        for _ in 0..FULL_BATCH_OPERATION_COUNT {
            body.push_str(&format!(
                "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 PUT http://127.0.0.1/devstoreaccount1/{LARGE_TABLE}(PartitionKey='p',RowKey='{HOLE}') HTTP/1.1\r\n\
                 Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n\
                 DataServiceVersion: 3.0\r\n\r\n{json}\r\n"
            ));
        }
        body.push_str("--changeset_c--\r\n\r\n--batch_b--\r\n");
        let head = "Content-Type: multipart/mixed; boundary=batch_b\r\n";
        Ok(LargeBatches {
            template: Template::new(Signer::new()?.request("POST", "/$batch", head, &body)),
            counter: 0,
        })
    }
}

impl Requests for LargeBatches {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.template.fill(out, || {
            self.counter += 1;
            row_key_bytes(self.counter % LARGE_ROW_COUNT)
        });
        Some(0)
    }
}

/// A page of [`LARGE_TABLE`], which has 4 MiB once a batch or two are in it.
pub fn large_page() -> Result<Vec<u8>, Error> {
    Ok(Signer::new()?.request("GET", &format!("/{LARGE_TABLE}()"), "", ""))
}

/// A scan of a whole table with a filter that no entity of [`fill`] passes.
pub fn scan_for_nothing(table: &str) -> Result<Vec<u8>, Error> {
    Ok(Signer::new()?.request("GET", &format!("/{table}()?$filter=Note%20eq%20'nothing'"), "", ""))
}

pub fn create_table(address: SocketAddr, table: &str) -> Result<(), Error> {
    ask(address, &Signer::new()?.create_table(table), 204).map(|_| ())
}

/// Fills a table with entities 0 to `count`, a multiple of a hundred, in transactions.
pub fn fill(address: SocketAddr, table: &str, count: u64) -> Result<(), Error> {
    send_all(address, &mut Batches::new(&Signer::new()?, table, count), count)
}

/// Fills a table like [`fill`], but with entities that differ, so that their compressed size is realistic.
pub fn fill_varied(address: SocketAddr, table: &str, count: u64) -> Result<(), Error> {
    send_all(address, &mut Varied::new(table, count)?, count)
}

fn send_all(address: SocketAddr, requests: &mut dyn Requests, count: u64) -> Result<(), Error> {
    let transactions = generator::send_all(address, FILL_CONNECTION_COUNT, FILL_TIME_MAX, requests)?;
    let loaded = transactions * FULL_BATCH_OPERATION_COUNT;
    if loaded == count {
        return Ok(());
    }
    Err(format!("{loaded} of {count} entities were loaded in time").into())
}

/// The `Name` that [`fill_varied`] gives to the entity with this number.
pub fn varied_name(number: u64) -> String {
    String::from_utf8_lossy(&row_key_hex(number.wrapping_mul(SCATTER))).into_owned()
}

/// Transactions of a hundred inserts each. The key and four texts of every entity are holes.
struct Varied {
    template: Template,
    counter: u64,
    end: u64,
    random: Rng,
}

impl Varied {
    fn new(table: &str, end: u64) -> Result<Varied, Error> {
        let json = format!(
            r#"{{"PartitionKey":"p","RowKey":"{HOLE}","Name":"{HOLE}","City":"{HOLE}","Age":36,"Score":99.5,"Active":true,"Visits":"1234567890123","Visits@odata.type":"Edm.Int64","Since":"2020-01-02T03:04:05.678Z","Since@odata.type":"Edm.DateTime","Note":"{HOLE} and {HOLE}"}}"#
        );
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        for _ in 0..FULL_BATCH_OPERATION_COUNT {
            body.push_str(&format!(
                "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://127.0.0.1/devstoreaccount1/{table} HTTP/1.1\r\n\
                 Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n\
                 Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n{json}\r\n"
            ));
        }
        body.push_str("--changeset_c--\r\n\r\n--batch_b--\r\n");
        let head = "Content-Type: multipart/mixed; boundary=batch_b\r\n";
        let template = Template::new(Signer::new()?.request("POST", "/$batch", head, &body));
        Ok(Varied { template, counter: 0, end, random: Rng::with_seed(1) })
    }
}

impl Requests for Varied {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        if self.counter >= self.end {
            return None;
        }
        let mut hole = 0;
        self.template.fill(out, || {
            hole += 1;
            match hole % 5 {
                1 => row_key_bytes(self.counter),
                2 => row_key_hex(self.counter.wrapping_mul(SCATTER)),
                0 => {
                    self.counter += 1;
                    row_key_hex(self.random.u64(..))
                }
                _ => row_key_hex(self.random.u64(..)),
            }
        });
        Some(0)
    }
}

/// Sends one request on a connection of its own. Returns the answer; any status but the expected one is an error.
pub fn ask(address: SocketAddr, request: &[u8], expected: u16) -> Result<String, Error> {
    table::ask_for(&Endpoint::development(address), request, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_batches_fit_a_payload_and_have_a_key_each() {
        let mut out = Vec::new();
        let mut batches = LargeBatches::new().unwrap();
        batches.next(0, &mut out);
        assert!((3 << 20..4 << 20).contains(&out.len()), "{}", out.len());
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("RowKey='0000000000000100'") && !text.contains(HOLE));
    }

    #[test]
    fn varied_entities_have_the_name_of_their_number() {
        let (mut source, mut out) = (Varied::new("t", 100).unwrap(), Vec::new());
        assert!(source.next(0, &mut out).is_some());
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(
            text.contains(&format!(r#""RowKey":"{}","Name":"{}""#, row_key(99), varied_name(99))),
            "{text}"
        );
        assert!(!text.contains(HOLE) && source.next(0, &mut out).is_none());
    }

    #[test]
    fn a_mix_has_all_kinds() {
        let mut mix = Mix::new(7, 1, 7).unwrap();
        let mut seen = [0; MIX_KINDS.len()];
        let mut out = Vec::new();
        (0..1000).for_each(|_| seen[mix.next(0, &mut out).unwrap()] += 1);
        assert!(seen[0] > 600 && seen[1] > 100 && seen[2] > 50, "{seen:?}");
    }
}
