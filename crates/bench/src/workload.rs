//! The workloads: what is asked, of which table, on how many connections, and what a right answer looks like.

use crate::Error;
use crate::load::Source;
use crate::request::{
    BATCH_OPERATION_COUNT, ROW_KEY_LENGTH, Signer, Template, row_key, row_key_bytes, row_key_hex,
};

/// Pre-signed requests per measurement. Enough that the server's caches see many rows, few enough to sit in memory.
const PREPARED_REQUEST_COUNT: usize = 20_000;
const PAGE_ENTITY_COUNT: u64 = 1000;

#[derive(Clone, Copy)]
pub enum Action {
    Read,
    Insert,
    Upsert,
    Page,
    Batch,
}

pub struct Workload {
    pub name: &'static str,
    pub what: &'static str,
    pub action: Action,
    /// Entities in the table before the measurement; tables of the same size are shared.
    pub entities: u64,
    pub connections: usize,
    pub status: u16,
}

pub const ALL: [Workload; 7] = [
    Workload::new("read-1k", "point read, 1,000 entities", Action::Read, 1_000, 64, 200),
    Workload::new("read-100k", "point read, 100,000 entities", Action::Read, 100_000, 64, 200),
    Workload::new("read-1m", "point read, 1,000,000 entities", Action::Read, 1_000_000, 64, 200),
    Workload::new("insert", "insert, random keys", Action::Insert, 0, 64, 204),
    Workload::new("upsert", "upsert, 100,000 entities", Action::Upsert, 100_000, 64, 204),
    Workload::new("page", "range page of 1,000 entities", Action::Page, 100_000, 1, 200),
    Workload::new("batch", "transaction of 100 inserts", Action::Batch, 0, 16, 202),
];

impl Workload {
    const fn new(
        name: &'static str,
        what: &'static str,
        action: Action,
        entities: u64,
        connections: usize,
        status: u16,
    ) -> Workload {
        Workload { name, what, action, entities, connections, status }
    }

    pub fn table(&self) -> String {
        match self.action {
            Action::Insert => "inserts".to_owned(),
            Action::Batch => "batches".to_owned(),
            Action::Read | Action::Upsert | Action::Page => format!("entities{}", self.entities),
        }
    }

    /// Fresh requests, signed now. `counter` numbers the entities that were ever inserted, so that none is repeated.
    pub fn source<'a>(&self, counter: &'a mut u64) -> Result<Box<dyn Source + 'a>, Error> {
        let signer = Signer::new()?;
        let table = self.table();
        let mut random = Random(0x5eed);
        let mut prepare = |count: u64, request: &dyn Fn(&str) -> Vec<u8>| {
            let requests =
                (0..PREPARED_REQUEST_COUNT).map(|_| request(&row_key(random.next() % count))).collect();
            Box::new(Prepared { requests, next: 0 })
        };
        Ok(match self.action {
            Action::Read => prepare(self.entities, &|key| signer.get(&table, key)),
            Action::Upsert => prepare(self.entities, &|key| signer.upsert(&table, key)),
            Action::Page => prepare(self.entities - PAGE_ENTITY_COUNT, &|key| signer.page(&table, key)),
            Action::Insert => Box::new(Inserts { template: signer.insert(&table), counter }),
            Action::Batch => Box::new(Batches {
                template: signer.batch(&table, BATCH_OPERATION_COUNT),
                counter,
                end: u64::MAX,
            }),
        })
    }

    /// Entities that one request reads or writes.
    pub fn entities_per_request(&self) -> u64 {
        match self.action {
            Action::Batch => BATCH_OPERATION_COUNT as u64,
            Action::Page => PAGE_ENTITY_COUNT,
            Action::Read | Action::Insert | Action::Upsert => 1,
        }
    }

    /// Whether an answer with the right status also says the right thing.
    pub fn is_right(&self, answer: &str) -> bool {
        match self.action {
            Action::Read => answer.contains(r#""Name":"Ada Lovelace""#) && answer.contains("odata.etag"),
            Action::Insert | Action::Upsert => answer.to_ascii_lowercase().contains("\r\netag: w/"),
            Action::Page => answer.matches(r#""RowKey":"#).count() as u64 == PAGE_ENTITY_COUNT,
            Action::Batch => answer.matches("HTTP/1.1 204 No Content").count() == BATCH_OPERATION_COUNT,
        }
    }
}

/// Fills `table` with entities 0 to `count`, in transactions. Both must be multiples of a hundred.
pub fn fill<'a>(table: &str, counter: &'a mut u64, count: u64) -> Result<Box<dyn Source + 'a>, Error> {
    Ok(Box::new(Batches {
        template: Signer::new()?.batch(table, BATCH_OPERATION_COUNT),
        counter,
        end: count,
    }))
}

/// Requests signed beforehand, in turn.
struct Prepared {
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Source for Prepared {
    fn next(&mut self, out: &mut Vec<u8>) -> bool {
        out.clear();
        out.extend_from_slice(&self.requests[self.next]);
        self.next = (self.next + 1) % self.requests.len();
        true
    }
}

/// Single inserts; each key new, and far from the one before it.
struct Inserts<'a> {
    template: Template,
    counter: &'a mut u64,
}

impl Source for Inserts<'_> {
    fn next(&mut self, out: &mut Vec<u8>) -> bool {
        self.template.fill(out, || {
            *self.counter += 1;
            row_key_hex(mix(*self.counter))
        });
        true
    }
}

/// Transactions of inserts with ascending keys, up to `end`.
struct Batches<'a> {
    template: Template,
    counter: &'a mut u64,
    end: u64,
}

impl Source for Batches<'_> {
    fn next(&mut self, out: &mut Vec<u8>) -> bool {
        if *self.counter >= self.end {
            return false;
        }
        self.template.fill(out, || -> [u8; ROW_KEY_LENGTH] {
            let key = row_key_bytes(*self.counter);
            *self.counter += 1;
            key
        });
        true
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }
}

/// SplitMix64's finish: different inputs give different outputs, in no visible order.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_never_repeat_a_key() {
        let keys: std::collections::HashSet<u64> = (0..100_000).map(mix).collect();
        assert_eq!(keys.len(), 100_000);
    }

    #[test]
    fn filling_stops_at_the_count() {
        let mut counter = 0;
        let mut source = fill("t", &mut counter, 300).unwrap();
        let mut out = Vec::new();
        let batches = std::iter::from_fn(|| source.next(&mut out).then_some(())).count();
        drop(source);
        assert_eq!((batches, counter), (3, 300));
    }
}
