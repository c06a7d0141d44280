//! One record of the commit log: everything that one group of commits changed, as bytes.
//!
//! ```text
//! "LZLR" · length of the body, u32 · sequence, u64 · CRC-32 of the body · CRC-32 of salt and all before it · body
//! body:   last version, u64 · next table id, u64 · commits
//! commit: number of changes, varint · version, u64 · changes
//! change: tag · key, with its length before it · for a put: value, with its length before it
//! ```
//!
//! Numbers are little-endian; records begin at multiples of 8 bytes, with zeros between them. Pure: no files here.
//!
//! Promises: [`LogRecord::read`] returns what was written with that salt, in this segment. Bytes that a client chose are
//! never mistaken for a record, because clients do not know the salt.

use bytes::Bytes;

use engine::decide::Write;
use engine::keys::OwnedKey;
use engine::{Row, TableId, Version, keys, varint};

pub(crate) const ALIGNMENT: usize = 8;
const MARKER: [u8; 4] = *b"LZLR";
const HEAD_BYTES: usize = 24;
const NUMBERS_BYTES: usize = 16;
const TAG_REMOVE: u8 = 0;
const TAG_PUT: u8 = 1;
/// A put with a version of its own, not the commit's.
const TAG_LOAD: u8 = 2;

/// Whether these bytes begin like a record.
#[cfg(feature = "seeded-bugs")]
pub(crate) fn is_record(bytes: &[u8]) -> bool {
    bytes.starts_with(&MARKER)
}

/// Identifies the records of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Salt(pub(crate) u64);

/// The counters that never decrease, as of the end of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counters {
    pub(crate) last_version: u64,
    pub(crate) next_table: u64,
}

/// A record being built. Its buffer is reused for the next one.
#[derive(Default)]
pub(crate) struct RecordBuilder {
    bytes: Vec<u8>,
    change_count: usize,
}

impl RecordBuilder {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEAD_BYTES + NUMBERS_BYTES, 0);
        self.change_count = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.change_count == 0
    }

    /// Adds the changes of one commit. A commit without changes adds nothing.
    pub(crate) fn push_commit(&mut self, version: Version, writes: &[Write]) {
        if writes.is_empty() {
            return;
        }
        self.begin_commit(version, writes.len());
        for write in writes {
            self.bytes.push(if write.value.is_some() { TAG_PUT } else { TAG_REMOVE });
            self.push_sized(&write.key);
            if let Some(value) = &write.value {
                self.push_sized(value);
            }
        }
    }

    /// Adds rows that keep versions of their own.
    pub(crate) fn push_load(&mut self, version: Version, table: TableId, rows: &[(OwnedKey, Row)]) {
        self.begin_commit(version, rows.len());
        for (key, row) in rows {
            self.bytes.push(TAG_LOAD);
            self.bytes.extend_from_slice(&row.version.ticks().to_le_bytes());
            self.push_sized(&keys::encode(table, key.as_key()));
            self.push_sized(&row.value);
        }
        // Count it even without rows: it has moved the last version.
        self.change_count += 1;
    }

    /// The whole record.
    pub(crate) fn finish(&mut self, salt: Salt, sequence: u64, counters: Counters) -> &[u8] {
        self.bytes[HEAD_BYTES..][..8].copy_from_slice(&counters.last_version.to_le_bytes());
        self.bytes[HEAD_BYTES + 8..][..8].copy_from_slice(&counters.next_table.to_le_bytes());
        write_head(&mut self.bytes, salt, sequence);
        &self.bytes
    }

    /// Roughly the length of the record, and never too little.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + ALIGNMENT
    }

    fn begin_commit(&mut self, version: Version, change_count: usize) {
        self.change_count += change_count;
        varint::push(&mut self.bytes, change_count);
        self.bytes.extend_from_slice(&version.ticks().to_le_bytes());
    }

    fn push_sized(&mut self, bytes: &[u8]) {
        varint::push(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }
}

/// A record that was read and checked.
#[derive(Debug)]
pub(crate) struct LogRecord<'a> {
    pub(crate) sequence: u64,
    pub(crate) counters: Counters,
    commits: &'a [u8],
    /// Including the zeros behind it.
    pub(crate) size_bytes: usize,
}

impl<'a> LogRecord<'a> {
    /// The record at the beginning of `bytes`, if there is a whole one.
    pub(crate) fn read(salt: Salt, bytes: &'a [u8]) -> Option<LogRecord<'a>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        // Check the head first: a search for records must not read a long body at every place that looks like one.
        if head[..4] != MARKER || head_checksum(salt, &head[..20]).to_le_bytes() != head[20..] {
            return None;
        }
        let length = u32::from_le_bytes(head[4..8].try_into().ok()?);
        let sequence = u64::from_le_bytes(head[8..16].try_into().ok()?);
        let body = rest.get(..length as usize)?;
        if crc32fast::hash(body).to_le_bytes() != head[16..20] {
            return None;
        }
        let (last_version, body) = body.split_first_chunk::<8>()?;
        let (next_table, commits) = body.split_first_chunk::<8>()?;
        let counters = Counters {
            last_version: u64::from_le_bytes(*last_version),
            next_table: u64::from_le_bytes(*next_table),
        };
        let size_bytes = (HEAD_BYTES + NUMBERS_BYTES + commits.len()).next_multiple_of(ALIGNMENT);
        Some(LogRecord { sequence, counters, commits, size_bytes })
    }

    /// Calls `apply` with every change in order: the key, and the row, or `None` where it was removed. Returns `None`
    /// if the bytes cannot be read, which does not happen to a whole record.
    pub(crate) fn for_each_change(&self, mut apply: impl FnMut(&[u8], Option<Row>)) -> Option<()> {
        let mut bytes = self.commits;
        while !bytes.is_empty() {
            let change_count = varint::pull(&mut bytes)?;
            let commit_version = pull_u64(&mut bytes)?;
            for _ in 0..change_count {
                let (tag, rest) = bytes.split_first()?;
                bytes = rest;
                let version = if *tag == TAG_LOAD { pull_u64(&mut bytes)? } else { commit_version };
                let key = pull_sized(&mut bytes)?;
                match *tag {
                    TAG_REMOVE => apply(key, None),
                    TAG_PUT | TAG_LOAD => {
                        let value = Bytes::copy_from_slice(pull_sized(&mut bytes)?);
                        apply(key, Some(Row { version: Version::new(version)?, value }));
                    }
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

/// Makes a record of a body, which has room for the head before it.
fn write_head(bytes: &mut Vec<u8>, salt: Salt, sequence: u64) {
    let length = u32::try_from(bytes.len() - HEAD_BYTES).expect("the bounds on a group are far below 4 GiB");
    let body_checksum = crc32fast::hash(&bytes[HEAD_BYTES..]);
    bytes[..4].copy_from_slice(&MARKER);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
    bytes[16..20].copy_from_slice(&body_checksum.to_le_bytes());
    let head_checksum = head_checksum(salt, &bytes[..20]);
    bytes[20..24].copy_from_slice(&head_checksum.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}

fn head_checksum(salt: Salt, head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.0.to_le_bytes());
    hasher.update(head);
    hasher.finalize()
}

fn pull_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn pull_sized<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint::pull(bytes)?;
    let (content, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(content)
}

/// For the fuzzer alone: records of any body.
#[doc(hidden)]
pub mod fuzzed {
    use super::{HEAD_BYTES, LogRecord, Row, Salt, write_head};

    pub struct LoggedChange {
        pub key: Vec<u8>,
        pub row: Option<Row>,
    }

    pub fn write(salt: u64, sequence: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = [&[0; HEAD_BYTES], body].concat();
        write_head(&mut bytes, Salt(salt), sequence);
        bytes
    }

    /// The sequence number, the length, and the changes if they can be read.
    pub fn read(salt: u64, bytes: &[u8]) -> Option<(u64, usize, Option<Vec<LoggedChange>>)> {
        let record = LogRecord::read(Salt(salt), bytes)?;
        let mut changes = Vec::new();
        let whole = record.for_each_change(|key, row| changes.push(LoggedChange { key: key.to_vec(), row }));
        Some((record.sequence, record.size_bytes, whole.map(|()| changes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::keys::Key;

    const SALT: Salt = Salt(0x0123_4567_89ab_cdef);
    const NUMBERS: Counters = Counters { last_version: 70, next_table: 17 };

    fn version(ticks: u64) -> Version {
        Version::new(ticks).unwrap()
    }

    fn key(row: &str) -> Vec<u8> {
        keys::encode(TableId(16), Key { partition: "p", row })
    }

    fn sample() -> Vec<u8> {
        let mut builder = RecordBuilder::default();
        builder.clear();
        builder.push_commit(version(60), &[]);
        assert!(builder.is_empty());
        let put = Write { key: key("a"), value: Some(Bytes::from(vec![7; 300])) };
        builder.push_commit(version(61), &[put, Write { key: key("b"), value: None }]);
        let loaded = (
            OwnedKey { partition: "p".into(), row: "c".into() },
            Row { version: version(5), value: "v".into() },
        );
        builder.push_load(version(70), TableId(16), &[loaded]);
        builder.finish(SALT, 9, NUMBERS).to_vec()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = sample();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        assert_eq!((&bytes[..4], &bytes[8..16]), (&b"LZLR"[..], &[9, 0, 0, 0, 0, 0, 0, 0][..]));
        let record = LogRecord::read(SALT, &[&bytes[..], &[1, 2, 3]].concat()).map(|record| {
            let mut changes = Vec::new();
            record.for_each_change(|key, row| changes.push((key.to_vec(), row))).unwrap();
            (record.sequence, record.counters, record.size_bytes, changes)
        });
        let (sequence, counters, size_bytes, changes) = record.unwrap();
        assert_eq!((sequence, counters, size_bytes), (9, NUMBERS, bytes.len()));
        let row = |ticks, value: Bytes| Some(Row { version: version(ticks), value });
        let expected = [
            (key("a"), row(61, Bytes::from(vec![7; 300]))),
            (key("b"), None),
            (key("c"), row(5, "v".into())),
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn any_flipped_bit_any_cut_and_another_salt_make_it_no_record() {
        let bytes = sample();
        let end = HEAD_BYTES + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        for bit in 0..end * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(LogRecord::read(SALT, &flipped).is_none(), "bit {bit}");
        }
        for length in 0..end {
            assert!(LogRecord::read(SALT, &bytes[..length]).is_none(), "length {length}");
        }
        assert!(LogRecord::read(Salt(1), &bytes).is_none());
    }
}
