//! Containers to measure on, and sources of requests to them: puts with names that never repeat, gets, lists.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::blob_request::{BlobPuts, BlobSigner};
use crate::endpoint::Endpoint;
use crate::generator::Requests;
use crate::request::{ROW_KEY_LENGTH, row_key_bytes, row_key_hex};
use crate::sources::{Prepared, SIGNATURE_AGE_MAX, mix};
use crate::table::{DataLoad, Filled, ask_for};
use crate::workload::Counter;
use crate::{Error, clock};

/// Puts share a sync, so many connections fill a container faster than few.
const FILL_CONNECTION_COUNT: usize = 64;
/// Names in a list, which all begin with the same digits.
pub const LISTED_COUNT: u64 = 1000;
const LISTED_PREFIX_LENGTH: usize = ROW_KEY_LENGTH - 3;
const PREPARED_LIST_COUNT: u64 = 1000;

pub fn create(endpoint: &Endpoint, container: &str) -> Result<(), Error> {
    ask_for(endpoint, &BlobSigner::of(endpoint)?.create_container(container), 201).map(|_| ())
}

/// The name of the `number`th blob of a container that was filled, in the order of a list.
pub fn name(number: u64) -> [u8; ROW_KEY_LENGTH] {
    row_key_bytes(number)
}

/// Puts the blobs 0 to `count`, each with this body. An error if it takes longer than `time_max`.
pub fn fill(
    endpoint: &Endpoint,
    container: &str,
    body: &[u8],
    count: u64,
    time_max: Duration,
    progress: impl FnMut(&Filled),
) -> Result<Filled, Error> {
    let load = DataLoad {
        address: endpoint.address,
        connection_count: FILL_CONNECTION_COUNT,
        per_request: 1,
        wanted: count,
        time_max,
        stop: None,
    };
    let names = Names::UpTo { next: 0, end: count };
    load.run(&mut NewBlobs::with(BlobSigner::of(endpoint)?, container, body, names), progress)
}

/// An endless supply of puts, each with a name far from the one before.
pub fn puts(
    endpoint: &Endpoint,
    container: &str,
    body: &[u8],
    counter: &Counter,
) -> Result<Box<dyn Requests>, Error> {
    let names = Names::Endless(counter.clone());
    Ok(Box::new(NewBlobs::with(BlobSigner::of(endpoint)?, container, body, names)))
}

/// Gets of the blobs 0 to `count` in no visible order. Signed now; the server accepts them for fifteen minutes.
pub fn gets(endpoint: &Endpoint, container: &str, count: u64) -> Result<Box<dyn Requests>, Error> {
    let signer = BlobSigner::of(endpoint)?;
    let get = |number: u64| signer.get(container, &String::from_utf8_lossy(&name(mix(number) % count)));
    Ok(Prepared::new((0..count).map(get).collect()).expecting(200))
}

/// Lists of a thousand names each, anywhere among the blobs 0 to `count`.
pub fn lists(endpoint: &Endpoint, container: &str, count: u64) -> Result<Box<dyn Requests>, Error> {
    let signer = BlobSigner::of(endpoint)?;
    let list = |number: u64| {
        let first = name(mix(number) % (count / LISTED_COUNT) * LISTED_COUNT);
        signer.list(container, &String::from_utf8_lossy(&first[..LISTED_PREFIX_LENGTH]), LISTED_COUNT)
    };
    Ok(Prepared::new((0..PREPARED_LIST_COUNT).map(list).collect()).expecting(200))
}

enum Names {
    UpTo { next: u64, end: u64 },
    Endless(Counter),
}

struct NewBlobs {
    signer: BlobSigner,
    signed: Instant,
    container: String,
    body: Vec<u8>,
    puts: BlobPuts,
    names: Names,
}

impl NewBlobs {
    fn with(signer: BlobSigner, container: &str, body: &[u8], names: Names) -> NewBlobs {
        let puts = signer.puts(container, body.len() as u64);
        let (container, body) = (container.to_owned(), body.to_vec());
        NewBlobs { signer, signed: clock::now(), container, body, puts, names }
    }
}

impl Requests for NewBlobs {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        let name = match &mut self.names {
            Names::UpTo { next, end } if *next >= *end => return None,
            Names::UpTo { next, .. } => {
                *next += 1;
                name(*next - 1)
            }
            Names::Endless(counter) => row_key_hex(mix(counter.fetch_add(1, Ordering::Relaxed))),
        };
        let now = clock::now();
        if now.duration_since(self.signed) > SIGNATURE_AGE_MAX {
            self.signer.renew();
            self.signed = now;
            self.puts = self.signer.puts(&self.container, self.body.len() as u64);
        }
        self.puts.write(&name, out);
        out.extend_from_slice(&self.body);
        Some(0)
    }

    fn accepts(&self, status: u16) -> bool {
        status == 201
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_comes_twice_and_a_supply_ends() {
        let endpoint = Endpoint::development(([127, 0, 0, 1], 1).into());
        let counter = Counter::new(1.into());
        let mut endless = puts(&endpoint, "c", b"body", &counter).unwrap();
        let mut seen = std::collections::HashSet::new();
        let mut out = Vec::new();
        for _ in 0..1000 {
            endless.next(0, &mut out).unwrap();
            assert!(out.ends_with(b"\r\n\r\nbody"));
            let line = out.split(|byte| *byte == b'\r').next().unwrap().to_vec();
            assert!(seen.insert(line));
        }
        let signer = BlobSigner::of(&endpoint).unwrap();
        let mut two = NewBlobs::with(signer, "c", b"", Names::UpTo { next: 0, end: 2 });
        assert_eq!((0..3).filter(|_| two.next(0, &mut out).is_some()).count(), 2);
    }
}
