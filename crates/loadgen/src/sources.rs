//! Sources of requests: signed beforehand, filled in from a template, or following from the last answer.
//!
//! Promises: no source repeats a key that it inserts. Leaves to others: which source a workload uses (`workload.rs`)
//! and how a request is signed (`request.rs`).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memchr::memmem;

use crate::clock;
use crate::generator::Requests;
use crate::request::{BATCH_OPERATION_COUNT, Signer, Template, row_key_bytes, row_key_hex};
use crate::workload::{Counter, KEY_SPREAD, TableShape};

/// Sign again after this long: the server accepts a signature for fifteen minutes only.
pub(crate) const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(5 * 60);

/// The most connections that can each merge rows of their own.
pub(crate) const MERGING_CONNECTION_COUNT_MAX: usize = 64;

/// Requests signed beforehand, sent in turn.
pub(crate) struct Prepared {
    requests: Vec<Vec<u8>>,
    next: usize,
    expected: Option<u16>,
}

impl Prepared {
    pub fn new(requests: Vec<Vec<u8>>) -> Box<Prepared> {
        assert!(!requests.is_empty(), "a workload asks something");
        Box::new(Prepared { requests, next: 0, expected: None })
    }

    /// Accepts this status and no other.
    pub(crate) fn expecting(mut self: Box<Self>, status: u16) -> Box<Prepared> {
        self.expected = Some(status);
        self
    }
}

impl Requests for Prepared {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        out.clear();
        out.extend_from_slice(&self.requests[self.next]);
        self.next = (self.next + 1) % self.requests.len();
        Some(0)
    }

    fn accepts(&self, status: u16) -> bool {
        self.expected.map_or(status / 100 == 2, |expected| status == expected)
    }
}

/// Single inserts, each with a new key far from the one before. In a table with loaded entities, the new keys fall
/// between theirs.
pub(crate) struct Inserts {
    template: Template,
    loaded: u64,
    counter: Counter,
}

impl Inserts {
    pub fn new(template: Template, loaded: u64, counter: &Counter) -> Box<Inserts> {
        Box::new(Inserts { template, loaded, counter: counter.clone() })
    }
}

impl Requests for Inserts {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.template.fill(out, || {
            let number = self.counter.fetch_add(1, Ordering::Relaxed);
            match self.loaded {
                0 => row_key_hex(mix(number)),
                loaded => row_key_bytes(mix(number) % loaded * KEY_SPREAD + number),
            }
        });
        Some(0)
    }
}

/// Transactions of a hundred inserts with ascending keys.
pub struct Batches {
    signer: Signer,
    signed: Instant,
    table: String,
    shape: TableShape,
    spread: u64,
    template: Template,
    partition: String,
    next: Next,
}

/// The number of the next entity.
enum Next {
    UpTo { next: u64, end: u64 },
    Endless { first: u64, counter: Counter },
}

impl Batches {
    /// Entities 0 to `count`, a multiple of a hundred, in one partition. Their keys are their numbers.
    pub fn new(signer: &Signer, table: &str, count: u64) -> Batches {
        Batches::with(signer, table, TableShape::one_partition(count), 1, Next::UpTo { next: 0, end: count })
    }

    /// The entities of a shape, which must have a multiple of a hundred in each partition.
    pub fn loading(signer: &Signer, table: &str, shape: TableShape) -> Batches {
        Batches::with(signer, table, shape, KEY_SPREAD, Next::UpTo { next: 0, end: shape.entities })
    }

    /// An endless supply of new entities, sorted after the `loaded` ones.
    pub(crate) fn endless(signer: &Signer, table: &str, loaded: u64, counter: &Counter) -> Box<Batches> {
        let next = Next::Endless { first: loaded, counter: counter.clone() };
        Box::new(Batches::with(signer, table, TableShape::one_partition(0), KEY_SPREAD, next))
    }

    fn with(signer: &Signer, table: &str, shape: TableShape, spread: u64, next: Next) -> Batches {
        let partition = shape.partition(0);
        Batches {
            template: signer.batch_in(table, &partition, BATCH_OPERATION_COUNT),
            signer: signer.clone(),
            signed: clock::now(),
            table: table.to_owned(),
            shape,
            spread,
            partition,
            next,
        }
    }

    /// Entities handed out so far.
    pub fn sent(&self) -> u64 {
        match &self.next {
            Next::UpTo { next, .. } => *next,
            Next::Endless { counter, .. } => counter.load(Ordering::Relaxed),
        }
    }
}

impl Requests for Batches {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        let count = BATCH_OPERATION_COUNT as u64;
        let mut number = match &mut self.next {
            Next::UpTo { next, end } => {
                if *next >= *end {
                    return None;
                }
                *next += count;
                *next - count
            }
            Next::Endless { first, counter } => *first + counter.fetch_add(count, Ordering::Relaxed),
        };
        let partition = self.shape.partition(number);
        let now = clock::now();
        if partition != self.partition || now.duration_since(self.signed) > SIGNATURE_AGE_MAX {
            self.signer.renew();
            self.template = self.signer.batch_in(&self.table, &partition, BATCH_OPERATION_COUNT);
            (self.partition, self.signed) = (partition, now);
        }
        let spread = self.spread;
        self.template.fill(out, || {
            let key = row_key_bytes(number * spread);
            number += 1;
            key
        });
        Some(0)
    }
}

/// Merges rows in turn, each connection its own rows. If wanted, each merge sends the ETag that the row's last merge
/// returned.
pub(crate) struct Merges {
    rows: Vec<Merged>,
    uses_etags: bool,
    /// For every connection: its current row, and how many merges it has sent.
    turns: Vec<(usize, usize)>,
}

struct Merged {
    head: Vec<u8>,
    rest: Vec<u8>,
    etag: Vec<u8>,
}

impl Merges {
    /// Takes each row's request cut in two where its ETag goes.
    pub fn new(rows: Vec<(Vec<u8>, Vec<u8>)>, uses_etags: bool) -> Box<Merges> {
        let rows = rows.into_iter().map(|(head, rest)| Merged { head, rest, etag: b"*".to_vec() }).collect();
        Box::new(Merges { rows, uses_etags, turns: Vec::new() })
    }
}

impl Requests for Merges {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        if self.turns.len() <= connection {
            self.turns.resize(connection + 1, (0, 0));
        }
        // Connections must not share a row: each would make the other's ETag stale.
        let stride = MERGING_CONNECTION_COUNT_MAX.min(self.rows.len());
        let own = (self.rows.len() / stride).max(1);
        let (row, turn) = &mut self.turns[connection];
        *row = (connection % stride) + stride * (*turn % own);
        *turn += 1;
        let row = &self.rows[*row % self.rows.len()];
        out.clear();
        out.extend_from_slice(&row.head);
        out.extend_from_slice(&row.etag);
        out.extend_from_slice(&row.rest);
        Some(0)
    }

    fn answered(&mut self, connection: usize, answer: &[u8]) -> bool {
        let count = self.rows.len();
        if self.uses_etags
            && let Some((row, _)) = self.turns.get(connection)
            && let Some(etag) = header(answer, b"etag")
        {
            self.rows[*row % count].etag = etag.to_vec();
        }
        true
    }
}

/// Queries that each connection follows through all their pages.
pub(crate) struct Scan {
    /// Whether each page counts as an operation, or only the whole query.
    counts_pages: bool,
    /// Each request cut in two where a continuation goes: after the query options.
    queries: Vec<(Vec<u8>, Vec<u8>)>,
    next: usize,
    /// For every connection: its current query, and the continuation to send next.
    places: Vec<(usize, Vec<u8>)>,
}

impl Scan {
    pub fn new(queries: impl IntoIterator<Item = Vec<u8>>, counts_pages: bool) -> Box<Scan> {
        let cut = |request: Vec<u8>| {
            let at = memmem::find(&request, b" HTTP/1.1\r\n").unwrap_or(request.len());
            (request[..at].to_vec(), request[at..].to_vec())
        };
        Box::new(Scan {
            counts_pages,
            queries: queries.into_iter().map(cut).collect(),
            next: 0,
            places: Vec::new(),
        })
    }
}

impl Requests for Scan {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        if self.places.len() <= connection {
            self.places.resize(connection + 1, (0, Vec::new()));
        }
        let (query, continuation) = &mut self.places[connection];
        if continuation.is_empty() {
            *query = self.next;
            self.next = (self.next + 1) % self.queries.len();
        }
        let (head, rest) = &self.queries[*query];
        out.clear();
        out.extend_from_slice(head);
        out.extend_from_slice(continuation);
        out.extend_from_slice(rest);
        Some(0)
    }

    fn answered(&mut self, connection: usize, answer: &[u8]) -> bool {
        let Some((_, continuation)) = self.places.get_mut(connection) else { return true };
        *continuation = continuation_of(answer);
        self.counts_pages || continuation.is_empty()
    }
}

/// The query options that lead to the next page; empty after the last.
pub(crate) fn continuation_of(answer: &[u8]) -> Vec<u8> {
    let mut options = Vec::new();
    for (name, option) in [
        (&b"x-ms-continuation-nextpartitionkey"[..], &b"&NextPartitionKey="[..]),
        (b"x-ms-continuation-nextrowkey", b"&NextRowKey="),
    ] {
        let Some(value) = header(answer, name) else { continue };
        options.extend_from_slice(option);
        for byte in value {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'!' => {
                    options.push(*byte);
                }
                other => options.extend_from_slice(format!("%{other:02X}").as_bytes()),
            }
        }
    }
    options
}

/// A header of an answer, by its name in lower case.
fn header<'a>(answer: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let head = &answer[..memmem::find(answer, b"\r\n\r\n").unwrap_or(answer.len())];
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

/// Nine reads to one write; every second write is an insert, the others are upserts.
pub(crate) struct Mix {
    reads: Box<Prepared>,
    upserts: Box<Prepared>,
    inserts: Box<Inserts>,
    turn: u64,
}

impl Mix {
    pub fn new(reads: Vec<Vec<u8>>, upserts: Vec<Vec<u8>>, inserts: Box<Inserts>) -> Box<Mix> {
        Box::new(Mix { reads: Prepared::new(reads), upserts: Prepared::new(upserts), inserts, turn: 0 })
    }
}

impl Requests for Mix {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.turn += 1;
        match self.turn % 20 {
            10 => self.upserts.next(connection, out),
            0 => self.inserts.next(connection, out),
            _ => self.reads.next(connection, out),
        }
    }
}

/// A deterministic sequence of random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % bound
    }
}

/// The finaliser of SplitMix64: different inputs give different outputs, in no visible order.
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
