//! Stored keys: decodes bytes and encodes them again, compares the order of any two keys, and checks ranges around
//! them.

use std::cmp::Ordering;
use std::ops::Bound::{Excluded, Included, Unbounded};

use engine::keys::{decode, encode};
use engine::{Key, KeyRange, TableId};
use protocol::common::ordinal::compare_ordinal;

use crate::golden::distinct;
use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "key",
    run,
    // Two escaped keys of 512 UTF-16 units are far shorter.
    input_bytes_max: 16 * 1024,
    tokens: &[
        b"\x00",
        b"\x01",
        b"\x01\x01",
        b"\x01\x02",
        b"\x01\x03",
        b"\x02",
        b"\xEE",
        b"\xEF",
        b"\xFE",
        b"\xFF",
        b"\xEE\x80\x80",
        b"\xFE\x80\x80",
        b"\xFF\xBF\xBF",
        b"\xEF\xBF\xBF",
        b"\xF0\x9F\x92\x8E",
        b"\xF4\x8F\xBF\xBF",
        b"\xED\xA0\x80",
        b"\xC3\xA9",
        b"\x7F",
        b"a",
        b"\x00\x00\x00\x00\x00\x00\x00\x10",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let keys = [
        ("", ""),
        ("p", "r"),
        ("p\0", "\u{1}"),
        ("\u{FFFF}", "\u{10FFFF}"),
        ("\u{E000}a", "\u{1F48E}"),
        ("é", "a rather long row key, as keys go, with 0123456789"),
    ];
    let encoded = keys.iter().map(|(partition, row)| encode(TableId(16), Key::new(partition, row)));
    // The targets of golden requests serve as keys, too.
    let targets = golden.requests().map(|request| encode(TableId(17), Key::new(request.target(), "r")));
    distinct(encoded.chain(targets))
}

pub fn run(input: &[u8]) -> Outcome {
    check_pair(input);
    match decode(input) {
        Ok((table, partition, row)) => {
            let again = encode(table, Key::new(&partition, &row));
            assert!(again == input, "one key, two encodings: {}", again.escape_ascii());
            Outcome::Accepted(if row.is_empty() { "partition" } else { "partition and row" })
        }
        Err(_) => Outcome::Refused("not a key"),
    }
}

/// Takes the input as four texts, which make two keys.
fn check_pair(input: &[u8]) {
    let quarter = input.len() / 4;
    let texts: Vec<String> = (0..4)
        .map(|at| String::from_utf8_lossy(&input[at * quarter..(at + 1) * quarter]).into_owned())
        .collect();
    let [a, b] = [Key::new(&texts[0], &texts[1]), Key::new(&texts[2], &texts[3])];
    let order = compare_ordinal(a.partition, b.partition).then_with(|| compare_ordinal(a.row, b.row));
    let table = TableId(16);
    let [bytes_a, bytes_b] = [encode(table, a), encode(table, b)];
    assert_eq!(bytes_a.cmp(&bytes_b), order, "encoded keys sort differently: {a:?} {b:?}");
    assert!(bytes_a < encode(TableId(17), b), "a key of one table sorts among those of the next");
    for (key, bytes) in [(a, &bytes_a), (b, &bytes_b)] {
        let (id, partition, row) = decode(bytes).expect("an encoded key decodes");
        assert_eq!((id, &*partition, &*row), (table, key.partition, key.row));
    }

    let holds = |range: &KeyRange| range.contains(b.partition, b.row);
    assert!(KeyRange::all().contains(b.partition, b.row));
    assert_eq!(holds(&KeyRange::point(a.partition, a.row)), order == Ordering::Equal);
    let from_a = KeyRange::from_key(a.partition, a.row);
    assert_eq!(holds(&from_a), order != Ordering::Greater);
    let partitions = compare_ordinal(b.partition, a.partition);
    assert_eq!(holds(&KeyRange::partitions(Excluded(a.partition), Unbounded)), partitions.is_gt());
    assert_eq!(
        holds(&KeyRange::partitions(Included(a.partition), Included(a.partition))),
        partitions.is_eq()
    );
    assert_eq!(holds(&KeyRange::partitions(Unbounded, Excluded(a.partition))), partitions.is_lt());
    let rows = KeyRange::rows(a.partition, Excluded(a.row), Included(b.row));
    let is_inside = partitions.is_eq() && compare_ordinal(a.row, b.row).is_lt();
    assert_eq!(holds(&rows), is_inside, "{a:?} {b:?}");
    let both = from_a.intersect(&KeyRange::point(b.partition, b.row));
    assert_eq!(both.is_some(), holds(&from_a));
    let united = KeyRange::normalize(vec![
        KeyRange::point(b.partition, b.row),
        rows,
        KeyRange::point(a.partition, a.row),
    ]);
    assert!(united.iter().any(|range| range.contains(a.partition, a.row)));
    assert!(united.iter().any(holds));
}
