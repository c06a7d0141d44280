//! Every promise about keys, with random values: allowed characters, back again, and the order.

use lazulite_client::DateTime;
use protocol::common::ordinal::compare_ordinal;
use protocol::table::model::find_forbidden_key_char;

use super::*;

const CASE_COUNT: usize = 20_000;

/// Texts that share prefixes and are full of the characters that matter.
fn text(random: &mut fastrand::Rng) -> String {
    const AROUND: &[char] = &[
        '\0',
        '\u{1F}',
        ' ',
        '!',
        '"',
        '#',
        '$',
        '-',
        '.',
        '/',
        '0',
        '9',
        '>',
        '?',
        '@',
        'W',
        'Z',
        '[',
        '\\',
        ']',
        '_',
        'a',
        'z',
        '}',
        '~',
        '\u{7F}',
        '\u{80}',
        '\u{9F}',
        '\u{A0}',
        'é',
        '\u{D7FF}',
        '\u{E000}',
        '\u{FFFD}',
        '\u{10000}',
        '\u{10FFFF}',
    ];
    (0..random.usize(0..5)).map(|_| AROUND[random.usize(..AROUND.len())]).collect()
}

fn check_allowed(key: &str) {
    assert_eq!(find_forbidden_key_char(key), None, "{key:?}");
}

#[test]
fn escaped_texts_are_allowed_come_back_and_keep_the_order() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..CASE_COUNT {
        let (a, b) = (text(&mut random), text(&mut random));
        let (key_a, key_b) = (escape(&a), escape(&b));
        check_allowed(&key_a);
        assert_eq!(unescape(&key_a).as_deref(), Ok(a.as_str()));
        assert_eq!(compare_ordinal(&key_a, &key_b), compare_ordinal(&a, &b), "{a:?} {b:?}");
    }
}

#[test]
fn every_character_of_the_first_plane_comes_back() {
    for character in (0..=0xFFFF).filter_map(char::from_u32) {
        let text = character.to_string();
        let key = escape(&text);
        check_allowed(&key);
        assert_eq!(unescape(&key).as_deref(), Ok(text.as_str()));
        assert!(key.chars().all(|character| character >= '"'), "{key:?}");
    }
}

#[test]
fn texts_that_nobody_escaped_are_refused() {
    for text in ["\"", "\"a", ".", ".a", "a/", "~X", "~", " ", "!", "[>", "\u{80}", "\\\\"] {
        assert!(unescape(text).is_err(), "{text:?}");
    }
}

#[test]
fn composite_keys_sort_as_tuples() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..CASE_COUNT {
        let mut tuple = || -> Vec<String> { (0..random.usize(1..4)).map(|_| text(&mut random)).collect() };
        let (a, b) = (tuple(), tuple());
        let (key_a, key_b) = (compose(&a), compose(&b));
        check_allowed(&key_a);
        assert_eq!(parts(&key_a).as_ref(), Ok(&a));
        let compared = a.iter().zip(&b).map(|(a, b)| compare_ordinal(a, b)).find(|order| order.is_ne());
        let expected = compared.unwrap_or(a.len().cmp(&b.len()));
        assert_eq!(compare_ordinal(&key_a, &key_b), expected, "{a:?} {b:?}");
        let range = part_range(&a);
        let is_inside =
            compare_ordinal(&range.start, &key_b).is_le() && compare_ordinal(&key_b, &range.end).is_lt();
        assert_eq!(is_inside, b.len() > a.len() && b.starts_with(&a), "{a:?} {b:?}");
    }
}

#[test]
fn integers_keep_their_order() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut value = || match random.u8(0..4) {
        0 => [i64::MIN, -1, 0, 1, i64::MAX][random.usize(..5)],
        1 => random.i64(-20..20),
        _ => random.i64(..),
    };
    for _ in 0..CASE_COUNT {
        let (a, b) = (value(), value());
        assert_eq!(compare_ordinal(&signed(a), &signed(b)), a.cmp(&b));
        assert_eq!(parse_signed(&signed(a)), Ok(a));
        let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
        let [key_a, key_b] = [a, b].map(|value| padded(value, 20).unwrap());
        assert_eq!(compare_ordinal(&key_a, &key_b), a.cmp(&b));
        assert_eq!(parse_padded(&key_a, 20), Ok(a));
    }
    for text in ["", "1", "-0000", "+0001", "99999999999999999999", "00000000000000000 1"] {
        assert!(parse_signed(text).is_err(), "{text}");
    }
}

#[test]
fn times_sort_both_ways() {
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..CASE_COUNT {
        let mut time = || DateTime::from_ticks(random.u64(..=DateTime::MAX.ticks()));
        let (a, b) = (time(), time());
        assert_eq!(compare_ordinal(&chronological(a), &chronological(b)), a.cmp(&b));
        assert_eq!(compare_ordinal(&log_tail(a), &log_tail(b)), b.cmp(&a));
        assert_eq!(parse_chronological(&chronological(a)), Ok(a));
        assert_eq!(parse_log_tail(&log_tail(a)), Ok(a));
    }
    assert_eq!(log_tail(DateTime::MAX), "0".repeat(TICKS_WIDTH));
    assert!(parse_log_tail("9999999999999999999").is_err());
}

#[test]
fn buckets_are_even_and_keep_the_order_inside() {
    const BUCKETS: u16 = 16;
    let mut counts = [0_u32; BUCKETS as usize];
    for n in 0..16_000_u32 {
        counts[usize::from(bucket(&format!("{n:06}"), BUCKETS).unwrap())] += 1;
    }
    assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");

    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..CASE_COUNT {
        let (a, b) = (text(&mut random), text(&mut random));
        for write in [|value: &str| bucketed(value, 2).unwrap(), |value: &str| hashed(value, 1).unwrap()] {
            let (key_a, key_b) = (write(&a), write(&b));
            check_allowed(&key_a);
            let (parts_a, parts_b) = (parts(&key_a).unwrap(), parts(&key_b).unwrap());
            assert_eq!(parts_a[1], a);
            if parts_a[0] == parts_b[0] {
                assert_eq!(compare_ordinal(&key_a, &key_b), compare_ordinal(&a, &b));
            }
        }
    }
    assert!(bucket("a", 0).is_err() && bucket("a", 1001).is_err() && hashed("a", 0).is_err());
    assert_eq!(bucket_names(3).collect::<Vec<_>>(), ["000", "001", "002"]);
}
