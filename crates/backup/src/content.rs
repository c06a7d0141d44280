//! What the blocks of a backup say, and in which order.
//!
//! ```text
//! head (1)         created u64 · last version u64 · rows, about, u64 · program version, string
//! properties (2)   account, string · service properties, bytes                      any number of them
//! table (3)        account, string · name, string · 00, or 01 and its access policies, bytes
//! rows (4)         rows of the table before it: version u64 · PartitionKey, string · RowKey, string · record, bytes
//! end (5)          properties u64 · tables u64 · rows u64
//! ```
//!
//! Numbers are little-endian; a string (UTF-8) and bytes have their length before them, as a u32. Rows are in the
//! order of their keys. Promises: [`BackupReader`] gives nothing out of order and counts what it gives.

use std::io::Read;

use engine::Version;

use crate::BackupError;
use crate::block::BlockReader;

pub(crate) const HEAD: u8 = 1;
pub(crate) const PROPERTIES: u8 = 2;
pub(crate) const TABLE: u8 = 3;
pub(crate) const ROWS: u8 = 4;
pub(crate) const END: u8 = 5;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// 100 ns ticks since 0001-01-01T00:00:00Z.
    pub created: u64,
    /// No version up to this one may be handed out again; 0 when none ever was.
    pub last_version: u64,
    /// About how many rows follow.
    pub row_count: u64,
    pub program_version: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableHead {
    pub account: String,
    /// In the case it was created with.
    pub name: String,
    pub policies: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct End {
    pub properties_count: u64,
    pub table_count: u64,
    pub row_count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredRow<'a> {
    pub version: Version,
    pub partition: &'a str,
    pub row: &'a str,
    pub record: &'a [u8],
}

/// One block's content.
#[derive(Debug)]
pub enum Content<'a> {
    Properties {
        account: &'a str,
        properties: &'a [u8],
    },
    Table(TableHead),
    /// Rows of the table that came last.
    Rows(RowIter<'a>),
    /// The last one: everything before it was whole.
    End(End),
}

impl Head {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.created, self.last_version, self.row_count] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        push_bytes(&mut out, self.program_version.as_bytes());
        out
    }

    fn read(mut bytes: &[u8]) -> Option<Head> {
        let head = Head {
            created: pull_u64(&mut bytes)?,
            last_version: pull_u64(&mut bytes)?,
            row_count: pull_u64(&mut bytes)?,
            program_version: pull_str(&mut bytes)?.to_owned(),
        };
        bytes.is_empty().then_some(head)
    }
}

impl TableHead {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_bytes(&mut out, self.account.as_bytes());
        push_bytes(&mut out, self.name.as_bytes());
        match &self.policies {
            None => out.push(0),
            Some(policies) => {
                out.push(1);
                push_bytes(&mut out, policies);
            }
        }
        out
    }

    fn read(mut bytes: &[u8]) -> Option<TableHead> {
        let (account, name) = (pull_str(&mut bytes)?.to_owned(), pull_str(&mut bytes)?.to_owned());
        let policies = match pull(&mut bytes, 1)? {
            [0] => None,
            [1] => Some(pull_bytes(&mut bytes)?.to_vec()),
            _ => return None,
        };
        bytes.is_empty().then_some(TableHead { account, name, policies })
    }
}

impl End {
    pub(crate) fn write(self) -> Vec<u8> {
        [self.properties_count, self.table_count, self.row_count].map(u64::to_le_bytes).concat()
    }

    fn read(mut bytes: &[u8]) -> Option<End> {
        let end = End {
            properties_count: pull_u64(&mut bytes)?,
            table_count: pull_u64(&mut bytes)?,
            row_count: pull_u64(&mut bytes)?,
        };
        bytes.is_empty().then_some(end)
    }
}

pub(crate) fn write_properties(account: &str, properties: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_bytes(&mut out, account.as_bytes());
    push_bytes(&mut out, properties);
    out
}

pub(crate) fn push_row(out: &mut Vec<u8>, row: StoredRow<'_>) {
    out.extend_from_slice(&row.version.ticks().to_le_bytes());
    push_bytes(out, row.partition.as_bytes());
    push_bytes(out, row.row.as_bytes());
    push_bytes(out, row.record);
}

/// The rows of one block. It was read to its end once before it was given out, so it only ever yields rows.
#[derive(Clone, Debug)]
pub struct RowIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for RowIter<'a> {
    type Item = StoredRow<'a>;

    fn next(&mut self) -> Option<StoredRow<'a>> {
        Some(StoredRow {
            version: Version::new(pull_u64(&mut self.rest)?)?,
            partition: pull_str(&mut self.rest)?,
            row: pull_str(&mut self.rest)?,
            record: pull_bytes(&mut self.rest)?,
        })
    }
}

/// Reads a backup from its first byte to its last.
pub struct BackupReader<R> {
    blocks: BlockReader<R>,
    head: Head,
    seen: End,
    in_table: bool,
    ended: bool,
    /// The key of the row that came last in this table, as it sorts.
    last_key: Vec<u32>,
    scratch: Vec<u32>,
}

impl<R: Read> BackupReader<R> {
    pub fn open(input: R) -> Result<BackupReader<R>, BackupError> {
        let mut blocks = BlockReader::open(input)?;
        let head = match blocks.next()? {
            (HEAD, bytes) => Head::read(bytes),
            _ => None,
        };
        let head = head.ok_or_else(|| blocks.damaged("the head does not read"))?;
        let (last_key, scratch) = (Vec::new(), Vec::new());
        Ok(BackupReader {
            blocks,
            head,
            seen: End::default(),
            in_table: false,
            ended: false,
            last_key,
            scratch,
        })
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What was given so far.
    pub fn seen(&self) -> End {
        self.seen
    }

    /// The next block; `None` after the end.
    pub fn next_content(&mut self) -> Result<Option<Content<'_>>, BackupError> {
        if self.ended {
            return Ok(None);
        }
        let (kind, bytes) = self.blocks.next()?;
        // Looked at again below: what is borrowed from the reader cannot be given out while it is still asked.
        let checked = match kind {
            ROWS if !self.in_table => Err("rows come before any table"),
            ROWS => check_rows(bytes, &mut self.last_key, &mut self.scratch)
                .map(|count| self.seen.row_count += count),
            PROPERTIES if read_properties(bytes).is_some() => {
                self.seen.properties_count += 1;
                Ok(())
            }
            TABLE if TableHead::read(bytes).is_some() => {
                self.seen.table_count += 1;
                self.in_table = true;
                self.last_key.clear();
                Ok(())
            }
            END => match End::read(bytes) {
                Some(end) if end == self.seen => {
                    self.ended = true;
                    Ok(())
                }
                _ => Err("the counts at the end do not agree with what came before"),
            },
            _ => Err("a block does not read"),
        };
        if let Err(cause) = checked {
            return Err(self.blocks.damaged(cause));
        }
        if self.ended {
            self.blocks.expect_end()?;
            return Ok(Some(Content::End(self.seen)));
        }
        let bytes = self.blocks.last();
        let content = match kind {
            PROPERTIES => read_properties(bytes)
                .map(|(account, properties)| Content::Properties { account, properties }),
            TABLE => TableHead::read(bytes).map(Content::Table),
            _ => Some(Content::Rows(RowIter { rest: bytes })),
        };
        content.map(Some).ok_or_else(|| self.blocks.damaged("a block does not read"))
    }

    /// Reads all that is left and throws it away: whether the file is whole.
    pub fn verify(mut self) -> Result<(Head, End), BackupError> {
        while self.next_content()?.is_some() {}
        Ok((self.head, self.seen))
    }
}

/// How many rows there are. They must read to the last byte and lie in the order of their keys.
fn check_rows(bytes: &[u8], last_key: &mut Vec<u32>, key: &mut Vec<u32>) -> Result<u64, &'static str> {
    let mut rows = RowIter { rest: bytes };
    let mut count = 0;
    while !rows.rest.is_empty() {
        let row = rows.next().ok_or("a row does not read")?;
        // The order of UTF-16 code units; one below all of them keeps the two keys apart.
        key.clear();
        key.extend(row.partition.encode_utf16().map(sortable));
        key.push(0);
        key.extend(row.row.encode_utf16().map(sortable));
        if *key <= *last_key {
            return Err("the rows are not in order");
        }
        std::mem::swap(key, last_key);
        count += 1;
    }
    Ok(count)
}

/// Leaves 0 free.
fn sortable(unit: u16) -> u32 {
    u32::from(unit) + 1
}

fn read_properties(mut bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (account, properties) = (pull_str(&mut bytes)?, pull_bytes(&mut bytes)?);
    bytes.is_empty().then_some((account, properties))
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Nothing that is stored comes near 4 GiB; a block could not hold it.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn pull<'a>(bytes: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(taken)
}

fn pull_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(pull(bytes, 8)?.try_into().ok()?))
}

fn pull_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = u32::from_le_bytes(pull(bytes, 4)?.try_into().ok()?);
    pull(bytes, usize::try_from(size).ok()?)
}

fn pull_str<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(pull_bytes(bytes)?).ok()
}
