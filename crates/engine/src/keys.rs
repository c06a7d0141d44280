//! Keys: (table, partition, row) as bytes that sort the way the service lists.
//!
//! An encoded key is `table id (u64, big-endian) · enc(partition) · 00 · enc(row)`, where `enc` is UTF-8 with
//! four changes: U+0000 is `01 01` and U+0001 is `01 02`, which keeps `00` free as the separator, and the lead
//! bytes `EE` and `EF` (U+E000 to U+FFFF) become `FE` and `FF`, which puts them behind the supplementary
//! characters (`F0` to `F4`): the order of UTF-16 code units, where those are surrogate pairs below U+E000.
//!
//! Promises: encoded order equals the order of (partition, row) by UTF-16 code unit. No table's keys fall inside
//! another table's range. Decoding an encoded key returns it, and bytes that no key encodes to are an error. Only
//! this file builds or cuts a key: an engine that stores keys uses [`encode`], [`decode`], [`columns`] and
//! [`KeyRange::in_table`], and nothing above an engine sees an encoded key.

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;

use crate::TableId;

const SEPARATOR: u8 = 0x00;
/// It never stands alone in a key: it starts an escape. So `x 01` is above every key of partition `x`, and not above
/// any key of a longer partition that starts with `x`.
const ESCAPE: u8 = 0x01;
const ESCAPED_0000: u8 = 0x01;
const ESCAPED_0001: u8 = 0x02;
const TABLE_ID_SIZE_BYTES: usize = 8;

/// The place of a row in its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key<'a> {
    pub partition: &'a str,
    pub row: &'a str,
}

impl<'a> Key<'a> {
    pub fn new(partition: &'a str, row: &'a str) -> Key<'a> {
        Key { partition, row }
    }
}

/// A [`Key`] that owns its strings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OwnedKey {
    pub partition: Box<str>,
    pub row: Box<str>,
}

impl OwnedKey {
    pub fn as_key(&self) -> Key<'_> {
        Key { partition: &self.partition, row: &self.row }
    }
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> OwnedKey {
        OwnedKey { partition: key.partition.into(), row: key.row.into() }
    }
}

/// A run of keys in some table: half-open, in encoded bytes without the table id. It may lie between two keys, and so
/// hold none, although its bytes are not empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRange {
    start: Vec<u8>,
    /// `None`: to the end of the table.
    end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key of the table.
    pub fn all() -> KeyRange {
        KeyRange { start: Vec::new(), end: None }
    }

    /// One key.
    pub fn point(partition: &str, row: &str) -> KeyRange {
        let start = suffix(partition, row);
        let end = successor(&start);
        KeyRange { start, end: Some(end) }
    }

    /// This key, if it still exists, and all keys after it.
    pub fn from_key(partition: &str, row: &str) -> KeyRange {
        KeyRange { start: suffix(partition, row), end: None }
    }

    /// The rows of one partition between two bounds.
    pub fn rows(partition: &str, low: Bound<&str>, high: Bound<&str>) -> KeyRange {
        let start = match low {
            Bound::Included(row) => suffix(partition, row),
            Bound::Excluded(row) => successor(&suffix(partition, row)),
            Bound::Unbounded => partition_start(partition),
        };
        let end = match high {
            Bound::Included(row) => successor(&suffix(partition, row)),
            Bound::Excluded(row) => suffix(partition, row),
            Bound::Unbounded => partition_end(partition),
        };
        KeyRange { start, end: Some(end) }
    }

    /// All rows of the partitions between two bounds.
    pub fn partitions(low: Bound<&str>, high: Bound<&str>) -> KeyRange {
        let start = match low {
            Bound::Included(partition) => partition_start(partition),
            Bound::Excluded(partition) => partition_end(partition),
            Bound::Unbounded => Vec::new(),
        };
        let end = match high {
            Bound::Included(partition) => Some(partition_end(partition)),
            Bound::Excluded(partition) => Some(partition_start(partition)),
            Bound::Unbounded => None,
        };
        KeyRange { start, end }
    }

    /// True when the range holds no key because its bounds cross or meet.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// The keys that both ranges hold; `None` if there are none.
    pub fn intersect(&self, other: &KeyRange) -> Option<KeyRange> {
        let start = Ord::max(&self.start, &other.start).clone();
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(Ord::min(a, b).clone()),
            (Some(end), None) | (None, Some(end)) => Some(end.clone()),
            (None, None) => None,
        };
        let both = KeyRange { start, end };
        (!both.is_empty()).then_some(both)
    }

    pub fn contains(&self, partition: &str, row: &str) -> bool {
        let key = suffix(partition, row);
        self.start <= key && self.end.as_ref().is_none_or(|end| key < *end)
    }

    /// The same keys as sorted, disjoint, non-empty ranges: what a scan takes.
    pub fn normalize(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|a, b| a.start.cmp(&b.start));
        let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            let Some(last) = merged.last_mut() else {
                merged.push(range);
                continue;
            };
            match &last.end {
                None => break,
                Some(end) if *end < range.start => merged.push(range),
                Some(end) => {
                    if range.end.as_ref().is_none_or(|longer| end < longer) {
                        last.end = range.end;
                    }
                }
            }
        }
        merged
    }

    /// The range's bytes in one table: `start <= key < end`.
    pub fn in_table(&self, table: TableId) -> (Vec<u8>, Vec<u8>) {
        let prefix = table.0.to_be_bytes();
        let start = [&prefix[..], &self.start].concat();
        let end = match &self.end {
            Some(end) => [&prefix[..], end].concat(),
            None => table_end(table),
        };
        (start, end)
    }
}

/// The bytes of a key.
pub fn encode(table: TableId, key: Key<'_>) -> Vec<u8> {
    // Exact for a key without escapes, the common case: one allocation.
    let mut bytes = Vec::with_capacity(TABLE_ID_SIZE_BYTES + key.partition.len() + 1 + key.row.len());
    bytes.extend_from_slice(&table.0.to_be_bytes());
    push(&mut bytes, key.partition);
    bytes.push(SEPARATOR);
    push(&mut bytes, key.row);
    bytes
}

/// Up to this length a key is encoded on the stack, if it is only looked up.
const KEY_BYTES_USUAL: usize = 128;

/// Calls `look` with the encoded key. A short key without escapes, the common case, is not allocated.
pub fn with_encoded<T>(table: TableId, key: Key<'_>, look: impl FnOnce(&[u8]) -> T) -> T {
    let Key { partition, row } = key;
    let row_start = TABLE_ID_SIZE_BYTES + partition.len() + 1;
    let mut bytes = [SEPARATOR; KEY_BYTES_USUAL];
    let len = row_start + row.len();
    if len > KEY_BYTES_USUAL || !is_plain(partition) || !is_plain(row) {
        return look(&encode(table, key));
    }
    bytes[..TABLE_ID_SIZE_BYTES].copy_from_slice(&table.0.to_be_bytes());
    bytes[TABLE_ID_SIZE_BYTES..row_start - 1].copy_from_slice(partition.as_bytes());
    bytes[row_start..len].copy_from_slice(row.as_bytes());
    look(&bytes[..len])
}

/// The bytes between which all keys of a table lie: `start <= key < end`.
pub fn table_range(table: TableId) -> (Vec<u8>, Vec<u8>) {
    (table.0.to_be_bytes().to_vec(), table_end(table))
}

/// The bytes between which all keys lie.
pub fn everything() -> (Vec<u8>, Vec<u8>) {
    (Vec::new(), vec![0xff; TABLE_ID_SIZE_BYTES + 1])
}

/// The table that an encoded key belongs to.
pub fn table_of(bytes: &[u8]) -> Option<TableId> {
    bytes.first_chunk::<TABLE_ID_SIZE_BYTES>().map(|id| TableId(u64::from_be_bytes(*id)))
}

/// Cuts an encoded key into table, partition and row; borrows the strings unless they hold an escape.
pub fn decode(bytes: &[u8]) -> Result<(TableId, Cow<'_, str>, Cow<'_, str>), KeyDamage> {
    cut(bytes).ok_or_else(|| KeyDamage(bytes.to_vec()))
}

fn cut(bytes: &[u8]) -> Option<(TableId, Cow<'_, str>, Cow<'_, str>)> {
    let (id, rest) = bytes.split_first_chunk::<TABLE_ID_SIZE_BYTES>()?;
    let separator = rest.iter().position(|byte| *byte == SEPARATOR)?;
    let partition = pull(&rest[..separator])?;
    let row = pull(&rest[separator + 1..])?;
    Some((TableId(u64::from_be_bytes(*id)), partition, row))
}

/// The bytes of the partition and those of the row, without the separator: for engines that keep them apart. Bounds
/// of ranges may be cut too. Pairs of them have the order of the whole bytes. What has no separator lies between two
/// partitions.
pub fn columns(bytes: &[u8]) -> (&[u8], &[u8]) {
    let rest = bytes.get(TABLE_ID_SIZE_BYTES..).unwrap_or_default();
    match rest.iter().position(|byte| *byte == SEPARATOR) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[]),
    }
}

/// A key whose [`columns`] these are. `buffer` is only there to be used again.
pub fn decode_columns<'a>(
    buffer: &'a mut Vec<u8>,
    partition: &[u8],
    row: &[u8],
) -> Result<(Cow<'a, str>, Cow<'a, str>), KeyDamage> {
    buffer.clear();
    buffer.extend_from_slice(&TableId::CATALOGUE.0.to_be_bytes());
    buffer.extend_from_slice(partition);
    buffer.push(SEPARATOR);
    buffer.extend_from_slice(row);
    let (_, partition, row) = decode(buffer)?;
    Ok((partition, row))
}

/// The row of the least bound above a key, as one of its [`columns`].
pub fn row_after(row: &[u8]) -> Vec<u8> {
    successor(row)
}

/// Above the partition of every key, as one of its [`columns`]: no encoded string holds two bytes FF in a row.
pub const PARTITION_PAST_ALL: [u8; 2] = [0xff, 0xff];

/// Bytes that no key encodes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyDamage(Vec<u8>);

impl fmt::Display for KeyDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the key does not decode", hexadecimal(&self.0))
    }
}

/// An encoded key for the log: readable if it decodes, hexadecimal if not.
pub fn describe(bytes: &[u8]) -> String {
    match cut(bytes) {
        Some((table, partition, row)) => format!("table {}, partition {partition:?}, row {row:?}", table.0),
        None => hexadecimal(bytes),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    format!("key {bytes:02x?}")
}

fn suffix(partition: &str, row: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(partition.len() + 1 + row.len());
    push(&mut bytes, partition);
    bytes.push(SEPARATOR);
    push(&mut bytes, row);
    bytes
}

/// No encoded string holds the separator, so no key lies between a key and the same bytes with a separator added.
fn successor(suffix: &[u8]) -> Vec<u8> {
    [suffix, &[SEPARATOR]].concat()
}

fn partition_start(partition: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(partition.len() + 1);
    push(&mut bytes, partition);
    bytes.push(SEPARATOR);
    bytes
}

/// Separator plus one: above every key of the partition, not above any key of a partition that follows.
fn partition_end(partition: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(partition.len() + 1);
    push(&mut bytes, partition);
    bytes.push(ESCAPE);
    bytes
}

fn table_end(table: TableId) -> Vec<u8> {
    // Families are below 16, so the last id of all is out of reach.
    debug_assert!(table.0 < u64::MAX);
    table.0.saturating_add(1).to_be_bytes().to_vec()
}

/// Whether the string is encoded as it is.
fn is_plain(string: &str) -> bool {
    // A fold looks at every byte, so it compiles to vector instructions; `any` with its early exit does not.
    !string.bytes().fold(false, |special, byte| special | (byte < 0x02) | (byte | 0x01 == 0xEF))
}

fn push(bytes: &mut Vec<u8>, string: &str) {
    if is_plain(string) {
        bytes.extend_from_slice(string.as_bytes());
        return;
    }
    for byte in string.bytes() {
        match byte {
            0x00 => bytes.extend_from_slice(&[ESCAPE, ESCAPED_0000]),
            0x01 => bytes.extend_from_slice(&[ESCAPE, ESCAPED_0001]),
            0xEE | 0xEF => bytes.push(byte | 0x10),
            plain => bytes.push(plain),
        }
    }
}

fn pull(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // EE, EF, FE and FF are the bytes that hold all bits of EE.
    let plain = !bytes.iter().fold(false, |special, byte| special | (*byte < 0x02) | (byte | 0x11 == 0xFF));
    if plain {
        return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    }
    let mut string = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match *byte {
            ESCAPE => match rest.next() {
                Some(&ESCAPED_0000) => string.push(0x00),
                Some(&ESCAPED_0001) => string.push(0x01),
                _ => return None,
            },
            0xFE | 0xFF => string.push(byte & !0x10),
            // `push` never writes these. Accepting them would give one string two encodings.
            SEPARATOR | 0xEE | 0xEF => return None,
            plain => string.push(plain),
        }
    }
    String::from_utf8(string).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests;
