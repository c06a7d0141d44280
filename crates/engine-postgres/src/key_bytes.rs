//! Keys as two columns: the engine's bytes, cut at their separator.
//!
//! Promises: (pk, rk) in the order of the database's `bytea` is the order of the engine's keys, for bounds of ranges too.
//! Leaves to others: which characters those bytes are (`engine::keys`). A partition's bytes never hold the separator, so the
//! first one ends it; a bound without a separator lies between two partitions.

use std::borrow::Cow;

use engine::keys::{self, Key, KeyRange};
use engine::{ReadError, TableId};

const TABLE_ID_SIZE_BYTES: usize = 8;
const SEPARATOR: u8 = 0;
/// An entry of a btree holds 2,704 bytes, with its head and the table's id. `schema.sql` has the same number.
const SHORT_KEY_BYTES_MAX: usize = 2600;
/// Above every key: no encoded string holds two bytes FF in a row.
const PAST_ALL: [u8; 2] = [0xff, 0xff];

/// The place of a row, or a bound between rows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyBytes {
    pub(crate) pk: Vec<u8>,
    pub(crate) rk: Vec<u8>,
}

impl KeyBytes {
    pub(crate) fn of(key: Key<'_>) -> KeyBytes {
        KeyBytes::cut(&keys::encode(TableId::CATALOGUE, key)[TABLE_ID_SIZE_BYTES..])
    }

    /// Of an encoded key, which starts with the table's id.
    pub(crate) fn of_encoded(encoded: &[u8]) -> KeyBytes {
        KeyBytes::cut(encoded.get(TABLE_ID_SIZE_BYTES..).unwrap_or_default())
    }

    fn cut(bytes: &[u8]) -> KeyBytes {
        match bytes.iter().position(|byte| *byte == SEPARATOR) {
            Some(at) => KeyBytes { pk: bytes[..at].to_vec(), rk: bytes[at + 1..].to_vec() },
            None => KeyBytes { pk: bytes.to_vec(), rk: Vec::new() },
        }
    }

    /// Whether the row is in `long_rows`.
    pub(crate) fn is_long(&self) -> bool {
        self.pk.len() + self.rk.len() > SHORT_KEY_BYTES_MAX
    }

    /// The least bound above this key.
    pub(crate) fn after(pk: &[u8], rk: &[u8]) -> KeyBytes {
        KeyBytes { pk: pk.to_vec(), rk: [rk, &[SEPARATOR]].concat() }
    }
}

/// The bounds of a range; `None` if it holds no key.
pub(crate) fn bounds(range: &KeyRange) -> Option<(KeyBytes, KeyBytes)> {
    let table = TableId::CATALOGUE;
    let (start, end) = range.in_table(table);
    if start >= end {
        return None;
    }
    let start = KeyBytes::of_encoded(&start);
    let end = match end.starts_with(&table.0.to_be_bytes()) {
        true => KeyBytes::of_encoded(&end),
        false => KeyBytes { pk: PAST_ALL.to_vec(), rk: Vec::new() },
    };
    Some((start, end))
}

/// Gives the strings back. `buffer` is only there to be used again.
pub(crate) fn decode<'a>(
    buffer: &'a mut Vec<u8>,
    pk: &[u8],
    rk: &[u8],
) -> Result<(Cow<'a, str>, Cow<'a, str>), ReadError> {
    buffer.clear();
    buffer.extend_from_slice(&TableId::CATALOGUE.0.to_be_bytes());
    buffer.extend_from_slice(pk);
    buffer.push(SEPARATOR);
    buffer.extend_from_slice(rk);
    let (_, partition, row) = keys::decode(buffer)?;
    Ok((partition, row))
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{Excluded, Included, Unbounded};

    use super::*;

    const NAMES: [&str; 9] = ["", "\u{0}", "\u{1}", "a", "a\u{0}", "aa", "\u{1f600}", "\u{e000}", "\u{ffff}"];

    #[test]
    fn cut_keys_have_the_order_of_whole_ones_and_come_back() {
        let mut all = Vec::new();
        for partition in NAMES {
            for row in NAMES {
                let key = Key { partition, row };
                all.push((keys::encode(TableId(0), key), KeyBytes::of(key)));
                let KeyBytes { pk, rk } = KeyBytes::of(key);
                let mut buffer = Vec::new();
                let (decoded_partition, decoded_row) = decode(&mut buffer, &pk, &rk).unwrap();
                assert_eq!((&*decoded_partition, &*decoded_row), (partition, row));
            }
        }
        for (whole, cut) in &all {
            for (other_whole, other_cut) in &all {
                assert_eq!(whole.cmp(other_whole), cut.cmp(other_cut), "{cut:?} {other_cut:?}");
            }
        }
    }

    #[test]
    fn bounds_hold_what_the_range_holds() {
        let mut ranges = vec![KeyRange::all()];
        for name in NAMES {
            ranges.push(KeyRange::point("a", name));
            ranges.push(KeyRange::from_key(name, "a"));
            for low in [Included(name), Excluded(name), Unbounded] {
                for high in [Included("aa"), Excluded("\u{e000}"), Unbounded] {
                    ranges.push(KeyRange::partitions(low, high));
                    ranges.push(KeyRange::rows("a", low, high));
                }
            }
        }
        for range in ranges {
            for partition in NAMES {
                for row in NAMES {
                    let key = KeyBytes::of(Key { partition, row });
                    let is_inside = bounds(&range).is_some_and(|(start, end)| start <= key && key < end);
                    assert_eq!(is_inside, range.contains(partition, row), "{range:?} {partition:?} {row:?}");
                }
            }
        }
    }
}
