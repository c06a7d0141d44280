//! Properties of the key encoding, over random strings from an alphabet chosen to be awkward.

use std::cmp::Ordering;
use std::ops::Bound;

use super::*;

/// The edges of every case of the encoding, and neighbours that would betray a wrong one.
const ALPHABET: &[char] = &[
    '\u{0}',
    '\u{1}',
    '\u{2}',
    ' ',
    'a',
    'b',
    '\u{7f}',
    '\u{80}',
    '\u{7ff}',
    '\u{800}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{efff}',
    '\u{f000}',
    '\u{fffd}',
    '\u{ffff}',
    '\u{10000}',
    '\u{1f600}',
    '\u{10ffff}',
];

fn string(random: &mut fastrand::Rng) -> String {
    let length = random.usize(0..5);
    (0..length).map(|_| ALPHABET[random.usize(0..ALPHABET.len())]).collect()
}

fn utf16_order(a: Key<'_>, b: Key<'_>) -> Ordering {
    a.partition
        .encode_utf16()
        .cmp(b.partition.encode_utf16())
        .then(a.row.encode_utf16().cmp(b.row.encode_utf16()))
}

fn bound<'a>(random: &mut fastrand::Rng, value: &'a str) -> Bound<&'a str> {
    match random.u8(0..3) {
        0 => Bound::Included(value),
        1 => Bound::Excluded(value),
        _ => Bound::Unbounded,
    }
}

/// What the bounds say, without any encoding.
fn within(value: &str, low: Bound<&str>, high: Bound<&str>) -> bool {
    let order = |bound: &str| value.encode_utf16().cmp(bound.encode_utf16());
    let above = match low {
        Bound::Included(low) => order(low).is_ge(),
        Bound::Excluded(low) => order(low).is_gt(),
        Bound::Unbounded => true,
    };
    let below = match high {
        Bound::Included(high) => order(high).is_le(),
        Bound::Excluded(high) => order(high).is_lt(),
        Bound::Unbounded => true,
    };
    above && below
}

fn range(random: &mut fastrand::Rng) -> KeyRange {
    let (a, b, partition) = (string(random), string(random), string(random));
    let (low, high) = (bound(random, &a), bound(random, &b));
    match random.u8(0..5) {
        0 => KeyRange::point(&a, &b),
        1 => KeyRange::from_key(&a, &b),
        2 => KeyRange::rows(&partition, low, high),
        3 => KeyRange::partitions(low, high),
        _ => KeyRange::all(),
    }
}

#[test]
fn encoded_order_is_the_order_of_utf16_code_units() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200_000 {
        let (p1, r1, p2, r2) =
            (string(&mut random), string(&mut random), string(&mut random), string(&mut random));
        // Half the pairs share a partition, so that rows decide.
        let p2 = if random.bool() { p1.clone() } else { p2 };
        let (a, b) = (Key::new(&p1, &r1), Key::new(&p2, &r2));
        let encoded = encode(TableId(20), a).cmp(&encode(TableId(20), b));
        assert_eq!(encoded, utf16_order(a, b), "{a:?} {b:?}");
    }
}

#[test]
fn decoding_returns_what_was_encoded() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..50_000 {
        let (partition, row) = (string(&mut random), string(&mut random));
        let table = TableId(random.u64(..));
        let bytes = encode(table, Key::new(&partition, &row));
        assert_eq!(decode(&bytes), Ok((table, Cow::from(partition), Cow::from(row))));
    }
}

#[test]
fn every_character_survives() {
    for character in '\u{0}'..=char::MAX {
        let string = character.to_string();
        let bytes = encode(TableId(16), Key::new(&string, &string));
        let (_, partition, row) = decode(&bytes).unwrap();
        assert_eq!((partition.as_ref(), row.as_ref()), (string.as_str(), string.as_str()));
    }
}

#[test]
fn a_plain_key_is_copied_and_borrowed() {
    let bytes = encode(TableId(0x0102), Key::new("täble😀", "row"));
    assert_eq!(bytes, [&[0, 0, 0, 0, 0, 0, 1, 2], "täble😀".as_bytes(), &[0], b"row"].concat());
    let (_, partition, row) = decode(&bytes).unwrap();
    assert!(matches!((partition, row), (Cow::Borrowed("täble😀"), Cow::Borrowed("row"))));
}

#[test]
fn special_bytes_are_written_as_documented() {
    let bytes = encode(TableId(0), Key::new("\u{0}\u{1}", "\u{e000}\u{ffff}"));
    assert_eq!(&bytes[8..], [0x01, 0x01, 0x01, 0x02, 0x00, 0xFE, 0x80, 0x80, 0xFF, 0xBF, 0xBF]);
}

#[test]
fn bytes_that_no_key_encodes_to_are_refused() {
    let check = |suffix: &[u8]| {
        let bytes = [&[0; 8], suffix].concat();
        assert_eq!(decode(&bytes), Err(KeyDamage(bytes.clone())), "{suffix:02x?}");
    };
    check(b"no separator");
    check(b"two\0separators\0");
    check(b"escape at the end\x01\0");
    check(b"unknown escape\x01\x03\0");
    check(b"\xEE\x80\x80 unmoved lead\0");
    check(b"\xEF\xBF\xBF unmoved lead\0");
    check(b"not utf-8 \xC0\0");
    check(b"moved lead, cut short \xFE\0");
    assert!(decode(&[0; 7]).is_err());
    assert!(decode(&[]).is_err());
}

#[test]
fn decoding_random_bytes_never_panics_and_accepts_only_canonical_keys() {
    let mut random = fastrand::Rng::with_seed(3);
    let palette = [0x00, 0x01, 0x02, b'a', 0x80, 0xBF, 0xC3, 0xEE, 0xEF, 0xF0, 0xFE, 0xFF];
    for _ in 0..200_000 {
        let length = random.usize(0..16);
        let bytes: Vec<u8> = (0..length).map(|_| palette[random.usize(0..palette.len())]).collect();
        if let Ok((table, partition, row)) = decode(&bytes) {
            assert_eq!(encode(table, Key::new(&partition, &row)), bytes);
        }
    }
}

#[test]
fn ranges_hold_exactly_what_their_bounds_say() {
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..200_000 {
        let (p, r, a, b) =
            (string(&mut random), string(&mut random), string(&mut random), string(&mut random));
        let partition = if random.bool() { p.clone() } else { string(&mut random) };
        let (low, high) = (bound(&mut random, &a), bound(&mut random, &b));
        let key = Key::new(&p, &r);

        let rows = KeyRange::rows(&partition, low, high);
        assert_eq!(
            rows.contains(&p, &r),
            p == partition && within(&r, low, high),
            "{key:?} {low:?} {high:?}"
        );
        let partitions = KeyRange::partitions(low, high);
        assert_eq!(partitions.contains(&p, &r), within(&p, low, high), "{key:?} {low:?} {high:?}");
        assert_eq!(KeyRange::point(&a, &b).contains(&p, &r), key == Key::new(&a, &b));
        assert_eq!(KeyRange::from_key(&a, &b).contains(&p, &r), utf16_order(key, Key::new(&a, &b)).is_ge());
        assert!(KeyRange::all().contains(&p, &r));
        assert!(KeyRange::point(&p, &r).contains(&p, &r));
    }
}

#[test]
fn an_empty_range_holds_nothing_and_an_intersection_what_both_hold() {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..200_000 {
        let (a, b) = (range(&mut random), range(&mut random));
        let (p, r) = (string(&mut random), string(&mut random));
        assert!(!(a.is_empty() && a.contains(&p, &r)), "{a:?}");
        let both = a.intersect(&b);
        let expected = a.contains(&p, &r) && b.contains(&p, &r);
        assert_eq!(both.is_some_and(|range| range.contains(&p, &r)), expected, "{a:?} {b:?}");
    }
}

#[test]
fn normalizing_keeps_the_keys_and_gives_sorted_disjoint_ranges() {
    let mut random = fastrand::Rng::with_seed(6);
    for _ in 0..20_000 {
        let count = random.usize(0..6);
        let ranges: Vec<KeyRange> = (0..count).map(|_| range(&mut random)).collect();
        let normal = KeyRange::normalize(ranges.clone());
        for pair in normal.windows(2) {
            assert!(pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start), "{normal:?}");
        }
        assert!(normal.iter().all(|range| !range.is_empty()));
        for _ in 0..20 {
            let (p, r) = (string(&mut random), string(&mut random));
            let held = normal.iter().filter(|range| range.contains(&p, &r)).count();
            assert_eq!(held, usize::from(ranges.iter().any(|range| range.contains(&p, &r))));
        }
    }
}

#[test]
fn adjacent_ranges_become_one() {
    let whole = KeyRange::normalize(vec![
        KeyRange::rows("p", Bound::Included("m"), Bound::Unbounded),
        KeyRange::rows("p", Bound::Unbounded, Bound::Excluded("m")),
    ]);
    assert_eq!(whole, [KeyRange::rows("p", Bound::Unbounded, Bound::Unbounded)]);
}

#[test]
fn a_table_holds_its_own_keys_and_no_others() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50_000 {
        let (p, r) = (string(&mut random), string(&mut random));
        let table = TableId(random.u64(0..3) * 255 + random.u64(0..3));
        let other = TableId(random.u64(0..3) * 255 + random.u64(0..3));
        let key = encode(other, Key::new(&p, &r));
        let (start, end) = table_range(table);
        assert_eq!(start <= key && key < end, table == other);
        let some = range(&mut random);
        let (start, end) = some.in_table(table);
        assert_eq!(start <= key && key < end, table == other && some.contains(&p, &r));
    }
}
