//! Keys as two columns.
//!
//! Promises: (pk, rk) in the order of the database's `bytea` is the order of the engine's keys, for bounds of ranges
//! too. Leaves to others: which characters those bytes are, and where they are cut (`engine::keys`).

use engine::TableId;
use engine::keys::{self, Key, KeyRange};

/// An entry of a btree holds 2,704 bytes, with its head and the table's id. `schema.sql` has the same number.
const SHORT_KEY_BYTES_MAX: usize = 2600;

/// The place of a row, or a bound between rows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyBytes {
    pub(crate) pk: Vec<u8>,
    pub(crate) rk: Vec<u8>,
}

impl KeyBytes {
    pub(crate) fn of(key: Key<'_>) -> KeyBytes {
        KeyBytes::of_encoded(&keys::encode(TableId::CATALOGUE, key))
    }

    pub(crate) fn of_encoded(encoded: &[u8]) -> KeyBytes {
        let (pk, rk) = keys::columns(encoded);
        KeyBytes { pk: pk.to_vec(), rk: rk.to_vec() }
    }

    /// Whether the row is in `long_rows`.
    pub(crate) fn is_long(&self) -> bool {
        self.pk.len() + self.rk.len() > SHORT_KEY_BYTES_MAX
    }

    /// The least bound above this key.
    pub(crate) fn after(pk: &[u8], rk: &[u8]) -> KeyBytes {
        KeyBytes { pk: pk.to_vec(), rk: keys::row_after(rk) }
    }
}

/// The bounds of a range; `None` if it holds no key.
pub(crate) fn bounds(range: &KeyRange) -> Option<(KeyBytes, KeyBytes)> {
    let table = TableId::CATALOGUE;
    let (start, end) = range.in_table(table);
    if start >= end {
        return None;
    }
    let end = match keys::table_of(&end) == Some(table) {
        true => KeyBytes::of_encoded(&end),
        false => KeyBytes { pk: keys::PARTITION_PAST_ALL.to_vec(), rk: Vec::new() },
    };
    Some((KeyBytes::of_encoded(&start), end))
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
                let (decoded_partition, decoded_row) = keys::decode_columns(&mut buffer, &pk, &rk).unwrap();
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
