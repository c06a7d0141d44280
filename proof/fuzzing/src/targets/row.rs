//! Stored rows: a version, a checksum and a value under their key; and the rows of the catalogue.
//!
//! An input is the length of the key in one byte, the key, and the row.

use engine::{Key, TableId, TableRecord, Version, keys};
use engine_local::row_bytes::{read, size_bytes, write};

use super::stored;
use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "row",
    run,
    input_bytes_max: 1024 * 1024,
    tokens: &[
        b"\x00",
        b"\x01",
        b"\xFF",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x01\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x00",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let values = [Vec::new(), stored::sample().record.to_vec(), vec![0; 100]];
    let values = values.into_iter().chain(golden.bodies("{").into_iter().take(20));
    distinct(values.map(|value| {
        let key = keys::encode(TableId(16), Key::new("p", "r"));
        let mut row = vec![0; size_bytes(&value)];
        write(&mut row, &key, stored::version(), &value);
        [&[key.len() as u8], &key[..], &row[..]].concat()
    }))
}

pub fn run(input: &[u8]) -> Outcome {
    let Some((&key_len, rest)) = input.split_first() else { return Outcome::Refused("nothing") };
    let Some((key, row)) = rest.split_at_checked(usize::from(key_len)) else {
        return Outcome::Refused("no row");
    };

    // Any value reads back under its key. Under another key, or with a flipped bit, it counts as damaged.
    let version = Version::new(input.len() as u64).expect("not empty");
    let mut written = vec![0; size_bytes(row)];
    write(&mut written, key, version, row);
    assert!(read(key, &written).is_ok_and(|found| found == (version, row)), "a written row is not read");
    let another = [key, b"x"].concat();
    assert!(read(&another, &written).is_err(), "a row is accepted under another key");
    let at = input.iter().fold(0, |sum, byte| (sum * 31 + usize::from(*byte)) % written.len());
    written[at] ^= 1 << (at % 8);
    assert!(read(key, &written).is_err(), "a flipped bit at {at} is not noticed");

    if let Some(record) = TableRecord::read(row) {
        assert!(record.write() == row, "a row of the catalogue differs when written again");
    }
    match read(key, row) {
        Ok((version, value)) => {
            let mut again = vec![0; size_bytes(value)];
            write(&mut again, key, version, value);
            assert!(again == row, "a row differs when written again");
            Outcome::Accepted("row")
        }
        Err(damage) => {
            assert!(!damage.to_string().is_empty());
            mend(key, row)
        }
    }
}

/// Corrects the checksum, which a mutation almost always breaks, so that the code behind it is reached too.
fn mend(key: &[u8], row: &[u8]) -> Outcome {
    let Some((head, value)) = row.split_at_checked(size_bytes(&[])) else {
        return Outcome::Refused("too short");
    };
    let ticks = head.first_chunk().map_or(0, |ticks| u64::from_le_bytes(*ticks));
    let Some(version) = Version::new(ticks) else { return Outcome::Refused("not a version") };
    let mut mended = vec![0; row.len()];
    write(&mut mended, key, version, value);
    assert!(read(key, &mended).is_ok_and(|found| found == (version, value)));
    match keys::decode(key) {
        Ok(_) => Outcome::Accepted("row with its checksum made right"),
        Err(_) => Outcome::Refused("not a key"),
    }
}
