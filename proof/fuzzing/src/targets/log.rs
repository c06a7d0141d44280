//! Records of the commit log, as a crash or a bad disk may leave them in a segment.
//!
//! An input is the body of a record. It is read as it is, and also inside a record with correct checksums.

use engine_local::log_record::{LoggedChange, read, write};

use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "log",
    run,
    input_bytes_max: 1024 * 1024,
    tokens: &[
        b"LZLR",
        b"\x00",
        b"\x01",
        b"\x02",
        b"\x80",
        b"\xFF\xFF\xFF\xFF\x0F",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x00\x00\x00\x00",
    ],
    seeds,
};

const SALT: u64 = 0x1234_5678_9abc_def0;
const SEQUENCE: u64 = 7;

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let values = golden.bodies("{").into_iter().take(20);
    distinct(values.map(|value| {
        let mut body = [[9; 8], [16; 8]].concat();
        // Two changes at one version: a put and a removal.
        body.extend_from_slice(&[2, 5, 0, 0, 0, 0, 0, 0, 0, 1, 3]);
        body.extend_from_slice(b"key");
        let value = &value[..value.len().min(100)];
        body.push(value.len() as u8);
        body.extend_from_slice(value);
        body.extend_from_slice(b"\x00\x03yek");
        body
    }))
}

pub fn run(input: &[u8]) -> Outcome {
    // The bare bytes have no valid checksum. Reading them must not panic.
    let _ = read(SALT, input);
    let record = write(SALT, SEQUENCE, input);
    assert!(record.len().is_multiple_of(8), "a record ends at a multiple of eight");
    assert!(read(SALT ^ 1, &record).is_none(), "a record of another segment is accepted");
    let mut flipped = record.clone();
    let at = input.iter().fold(0, |sum, byte| (sum * 31 + usize::from(*byte)) % (24 + input.len()));
    flipped[at] ^= 1 << (at % 8);
    assert!(read(SALT, &flipped).is_none(), "a flipped bit at {at} is not noticed");
    match read(SALT, &record) {
        None => Outcome::Refused("too short for its numbers"),
        Some((sequence, size_bytes, changes)) => {
            assert!((sequence, size_bytes) == (SEQUENCE, record.len()), "another record is read");
            let Some(changes) = changes else { return Outcome::Refused("changes that cannot be decoded") };
            let bytes: usize = changes
                .iter()
                .map(|LoggedChange { key, row }| key.len() + row.as_ref().map_or(0, |row| row.value.len()))
                .sum();
            assert!(bytes <= input.len(), "more is read than is there");
            Outcome::Accepted("record")
        }
    }
}
