//! The contents of a backup's blocks, and their order.
//!
//! ```text
//! head (1)         created u64 · last version u64 · rows, about, u64 · program version, string
//! properties (2)   account, string · service properties, bytes                      any number of them
//! table (3)        account, string · name, string · 00, or 01 and its access policies, bytes
//! rows (4)         rows of the table before it: version u64 · PartitionKey, string · RowKey, string · record, bytes
//! properties (6)   the same as kind 2, of the Queue service
//! queue (7), messages (8)   see `queue_content.rs`
//! properties (9)   the same as kind 2, of the Blob service
//! container (10), piece of a content (11), rows (12)   see `blob_content.rs`
//! end (5)          properties u64 · tables u64 · rows u64 · queues u64 · messages u64
//!                  · containers u64 · rows of containers u64 · blobs u64 · contents u64 · their bytes u64
//! ```
//!
//! Format 1 had no queues: its kinds end with 5, and its end with the rows. Format 2 had no blobs: its kinds end with 8, and its
//! end with the messages. Numbers are little-endian; strings (UTF-8) and bytes follow their length, a u32. Rows are in the order
//! of their keys.
//! Promises: [`BackupReader`] refuses blocks and rows that are out of order, checks the counts at the end, and refuses
//! contents that break a rule. Leaves to others: framing and checksums (`block.rs`), and the rules (`rules.rs`).

use std::io::Read;

use blobs::ContentPiece;
use engine::Version;

use crate::BackupError;
use crate::blob_content::{ContainerHead, PieceOrder, read_piece};
use crate::block::{BlockReader, FORMAT_WITH_BLOBS, FORMAT_WITH_QUEUES};
use crate::queue_content::{MessageIter, MessagePlace, QueueHead, check_messages};
use crate::rules::Rules;

pub(crate) const HEAD: u8 = 1;
pub(crate) const PROPERTIES: u8 = 2;
pub(crate) const TABLE: u8 = 3;
pub(crate) const ROWS: u8 = 4;
pub(crate) const END: u8 = 5;
pub(crate) const QUEUE_PROPERTIES: u8 = 6;
pub(crate) const QUEUE: u8 = 7;
pub(crate) const MESSAGES: u8 = 8;
pub(crate) const BLOB_PROPERTIES: u8 = 9;
pub(crate) const CONTAINER: u8 = 10;
pub(crate) const PIECE: u8 = 11;
pub(crate) const BLOB_ROWS: u8 = 12;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupHead {
    /// 100 ns ticks since 0001-01-01T00:00:00Z.
    pub created: u64,
    /// The store assigned versions up to this one, and none of them may be assigned again; 0 if it never assigned any.
    pub last_version: u64,
    /// The approximate number of rows that follow.
    pub row_count: u64,
    pub program_version: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableHead {
    pub account: String,
    /// In the upper and lower case of its creation.
    pub name: String,
    pub policies: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Of all services.
    pub properties_count: u64,
    pub table_count: u64,
    pub row_count: u64,
    pub queue_count: u64,
    pub message_count: u64,
    pub container_count: u64,
    pub blob_row_count: u64,
    /// Rows that are blobs, and not snapshots, versions, staged blocks or pages.
    pub blob_count: u64,
    pub content_count: u64,
    pub content_bytes: u64,
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
    /// Rows of the table before them.
    Rows(RowIter<'a>),
    /// Of the Queue service.
    QueueProperties {
        account: &'a str,
        properties: &'a [u8],
    },
    Queue(QueueHead),
    /// Messages of the queue before them.
    Messages(MessageIter<'a>),
    /// Of the Blob service.
    BlobProperties {
        account: &'a str,
        properties: &'a [u8],
    },
    Container(ContainerHead),
    /// A part of a content of the container before it.
    Piece(ContentPiece<'a>),
    /// Rows of the container before them, without references to a store.
    BlobRows(RowIter<'a>),
    /// The last block: the file is complete.
    End(Totals),
}

impl BackupHead {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.created, self.last_version, self.row_count] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        push_bytes(&mut out, self.program_version.as_bytes());
        out
    }

    fn read(mut bytes: &[u8]) -> Option<BackupHead> {
        let head = BackupHead {
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
        push_policies(&mut out, self.policies.as_deref());
        out
    }

    fn read(mut bytes: &[u8]) -> Option<TableHead> {
        let (account, name) = (pull_str(&mut bytes)?.to_owned(), pull_str(&mut bytes)?.to_owned());
        let policies = pull_policies(&mut bytes)?;
        bytes.is_empty().then_some(TableHead { account, name, policies })
    }
}

impl Totals {
    pub(crate) fn write(self) -> Vec<u8> {
        let Totals { properties_count, table_count, row_count, queue_count, message_count, .. } = self;
        let Totals { container_count, blob_row_count, blob_count, content_count, content_bytes, .. } = self;
        let services = [properties_count, table_count, row_count, queue_count, message_count];
        let blobs = [container_count, blob_row_count, blob_count, content_count, content_bytes];
        [services, blobs].concat().into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn read(mut bytes: &[u8], format: u32) -> Option<Totals> {
        let mut end = Totals {
            properties_count: pull_u64(&mut bytes)?,
            table_count: pull_u64(&mut bytes)?,
            row_count: pull_u64(&mut bytes)?,
            ..Totals::default()
        };
        if format >= FORMAT_WITH_QUEUES {
            end.queue_count = pull_u64(&mut bytes)?;
            end.message_count = pull_u64(&mut bytes)?;
        }
        if format >= FORMAT_WITH_BLOBS {
            end.container_count = pull_u64(&mut bytes)?;
            end.blob_row_count = pull_u64(&mut bytes)?;
            end.blob_count = pull_u64(&mut bytes)?;
            end.content_count = pull_u64(&mut bytes)?;
            end.content_bytes = pull_u64(&mut bytes)?;
        }
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

/// The rows of one block. The reader has checked the whole block, so only its end stops the iteration.
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Table,
    Queue,
    Container,
}

/// Reads a backup from its first byte to its last.
pub struct BackupReader<R> {
    blocks: BlockReader<R>,
    head: BackupHead,
    seen: Totals,
    /// What rows or messages belong to, if they follow.
    inside: Inside,
    ended: bool,
    /// The place of this queue's last message so far.
    last_place: Option<MessagePlace>,
    pieces: PieceOrder,
    /// The sort key of this table's last row so far.
    last_key: Vec<u32>,
    scratch: Vec<u32>,
    rules: Rules,
    /// Broken rules are not errors.
    is_tolerant: bool,
    /// The first rule that was broken.
    broken_rule: Option<String>,
}

impl<R: Read> BackupReader<R> {
    pub fn open(input: R) -> Result<BackupReader<R>, BackupError> {
        let mut blocks = BlockReader::open(input)?;
        let head = match blocks.next()? {
            (HEAD, bytes) => BackupHead::read(bytes),
            _ => None,
        };
        let head = head.ok_or_else(|| blocks.damaged("the head cannot be decoded"))?;
        let (last_key, scratch) = (Vec::new(), Vec::new());
        Ok(BackupReader {
            rules: Rules::new(&head),
            broken_rule: Rules::check_head(&head).err(),
            is_tolerant: false,
            blocks,
            head,
            seen: Totals::default(),
            inside: Inside::Nothing,
            ended: false,
            last_place: None,
            pieces: PieceOrder::default(),
            last_key,
            scratch,
        })
    }

    /// Reads on when a rule is broken: for a backup of our own that need only be complete.
    pub fn tolerant(mut self) -> BackupReader<R> {
        self.is_tolerant = true;
        self
    }

    /// The first rule that was broken so far. A reader that is not tolerant returns it as an error.
    pub fn broken_rule(&self) -> Option<&str> {
        self.broken_rule.as_deref()
    }

    pub fn head(&self) -> &BackupHead {
        &self.head
    }

    /// The counts of what was read so far.
    pub fn seen(&self) -> Totals {
        self.seen
    }

    /// The next block's content; `None` after the end.
    pub fn next_content(&mut self) -> Result<Option<Content<'_>>, BackupError> {
        if self.ended {
            return Ok(None);
        }
        let format = self.blocks.format();
        let (kind, bytes) = self.blocks.next()?;
        // Parsed here and again below: a value that borrows from the reader could not be returned after `damaged`.
        let checked = match kind {
            QUEUE_PROPERTIES.. if format < FORMAT_WITH_QUEUES => {
                Err("a block is of a kind that its format lacks")
            }
            BLOB_PROPERTIES.. if format < FORMAT_WITH_BLOBS => {
                Err("a block is of a kind that its format lacks")
            }
            _ if self.pieces.is_open() && kind != PIECE => Err("a content is not complete"),
            PIECE | BLOB_ROWS if self.inside != Inside::Container => {
                Err("contents come before any container")
            }
            PIECE => see_piece(bytes, &mut self.pieces, &mut self.seen),
            BLOB_ROWS => check_rows(bytes, &mut self.last_key, &mut self.scratch).map(|count| {
                self.seen.blob_row_count += count;
                self.seen.blob_count += RowIter { rest: bytes }.filter(is_blob).count() as u64;
            }),
            ROWS if self.inside != Inside::Table => Err("rows come before any table"),
            MESSAGES if self.inside != Inside::Queue => Err("messages come before any queue"),
            MESSAGES => {
                check_messages(bytes, &mut self.last_place).map(|count| self.seen.message_count += count)
            }
            ROWS => check_rows(bytes, &mut self.last_key, &mut self.scratch)
                .map(|count| self.seen.row_count += count),
            PROPERTIES | QUEUE_PROPERTIES | BLOB_PROPERTIES if read_properties(bytes).is_some() => {
                self.seen.properties_count += 1;
                Ok(())
            }
            TABLE if TableHead::read(bytes).is_some() => {
                self.seen.table_count += 1;
                self.inside = Inside::Table;
                self.last_key.clear();
                Ok(())
            }
            QUEUE if QueueHead::read(bytes).is_some() => {
                self.seen.queue_count += 1;
                self.inside = Inside::Queue;
                self.last_place = None;
                Ok(())
            }
            CONTAINER if ContainerHead::read(bytes).is_some() => {
                self.seen.container_count += 1;
                self.inside = Inside::Container;
                self.last_key.clear();
                Ok(())
            }
            END => match Totals::read(bytes, format) {
                Some(end) if end == self.seen => {
                    self.ended = true;
                    Ok(())
                }
                _ => Err("the counts at the end do not agree with what came before"),
            },
            _ => Err("a block cannot be decoded"),
        };
        if let Err(cause) = checked {
            return Err(self.blocks.damaged(cause));
        }
        if self.broken_rule.is_none() {
            self.broken_rule = check_rules(&mut self.rules, kind, self.blocks.last()).err();
        }
        if let Some(sentence) = self.broken_rule.as_ref().filter(|_| !self.is_tolerant) {
            return Err(BackupError::Forbidden(sentence.clone()));
        }
        if self.ended {
            self.blocks.expect_end()?;
            return Ok(Some(Content::End(self.seen)));
        }
        let bytes = self.blocks.last();
        let content = match kind {
            PROPERTIES => read_properties(bytes)
                .map(|(account, properties)| Content::Properties { account, properties }),
            QUEUE_PROPERTIES => read_properties(bytes)
                .map(|(account, properties)| Content::QueueProperties { account, properties }),
            TABLE => TableHead::read(bytes).map(Content::Table),
            QUEUE => QueueHead::read(bytes).map(Content::Queue),
            MESSAGES => Some(Content::Messages(MessageIter { rest: bytes })),
            BLOB_PROPERTIES => read_properties(bytes)
                .map(|(account, properties)| Content::BlobProperties { account, properties }),
            CONTAINER => ContainerHead::read(bytes).map(Content::Container),
            PIECE => read_piece(bytes).map(Content::Piece),
            BLOB_ROWS => Some(Content::BlobRows(RowIter { rest: bytes })),
            _ => Some(Content::Rows(RowIter { rest: bytes })),
        };
        content.map(Some).ok_or_else(|| self.blocks.damaged("a block cannot be decoded"))
    }

    /// Reads the rest of the file and discards it. Succeeds if the file is complete.
    pub fn verify(mut self) -> Result<(BackupHead, Totals), BackupError> {
        while self.next_content()?.is_some() {}
        Ok((self.head, self.seen))
    }
}

/// Checks a block that was decoded before.
fn check_rules(rules: &mut Rules, kind: u8, bytes: &[u8]) -> Result<(), String> {
    match kind {
        PROPERTIES => read_properties(bytes)
            .map_or(Ok(()), |(account, properties)| rules.check_properties(account, properties)),
        QUEUE_PROPERTIES => read_properties(bytes)
            .map_or(Ok(()), |(account, properties)| rules.check_queue_properties(account, properties)),
        QUEUE => QueueHead::read(bytes).map_or(Ok(()), |queue| rules.check_queue(&queue)),
        MESSAGES => MessageIter { rest: bytes }
            .try_for_each(|(version, message)| rules.check_message(version, &message)),
        BLOB_PROPERTIES => read_properties(bytes)
            .map_or(Ok(()), |(account, properties)| rules.check_blob_properties(account, properties)),
        CONTAINER => ContainerHead::read(bytes).map_or(Ok(()), |container| rules.check_container(&container)),
        PIECE => read_piece(bytes).map_or(Ok(()), |piece| rules.check_piece(&piece)),
        BLOB_ROWS => RowIter { rest: bytes }.try_for_each(|row| rules.check_blob_row(row)),
        TABLE => TableHead::read(bytes).map_or(Ok(()), |table| rules.check_table(&table)),
        ROWS => RowIter { rest: bytes }.try_for_each(|row| rules.check_row(row)),
        _ => Ok(()),
    }
}

/// Takes note of a piece. Contents are numbered without a gap.
fn see_piece(bytes: &[u8], pieces: &mut PieceOrder, seen: &mut Totals) -> Result<(), &'static str> {
    let piece = read_piece(bytes).ok_or("a piece of a content cannot be decoded")?;
    pieces.see(&piece)?;
    seen.content_count = pieces.count;
    seen.content_bytes += piece.bytes.len() as u64;
    Ok(())
}

fn is_blob(row: &StoredRow<'_>) -> bool {
    row.row == blobs::BLOB_ROW
}

/// Counts the rows. They must fill the block exactly and be in the order of their keys.
fn check_rows(bytes: &[u8], last_key: &mut Vec<u32>, key: &mut Vec<u32>) -> Result<u64, &'static str> {
    let mut rows = RowIter { rest: bytes };
    let mut count = 0;
    while !rows.rest.is_empty() {
        let row = rows.next().ok_or("a row cannot be decoded")?;
        // Keys sort by UTF-16 code units. A separator below all of them keeps the two keys apart.
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

/// Leaves 0 free for the separator.
fn sortable(unit: u16) -> u32 {
    u32::from(unit) + 1
}

fn read_properties(mut bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (account, properties) = (pull_str(&mut bytes)?, pull_bytes(&mut bytes)?);
    bytes.is_empty().then_some((account, properties))
}

pub(crate) fn push_policies(out: &mut Vec<u8>, policies: Option<&[u8]>) {
    out.push(u8::from(policies.is_some()));
    if let Some(policies) = policies {
        push_bytes(out, policies);
    }
}

/// The outer `None`: they do not decode. The inner `None`: there are none.
pub(crate) fn pull_policies(bytes: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    match pull(bytes, 1)? {
        [0] => Some(None),
        [1] => Some(Some(pull_bytes(bytes)?.to_vec())),
        _ => None,
    }
}

pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // No stored value comes near 4 GiB: a block could not hold it.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(crate) fn pull<'a>(bytes: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    Some(taken)
}

pub(crate) fn pull_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(pull(bytes, 8)?.try_into().ok()?))
}

pub(crate) fn pull_u32(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(pull(bytes, 4)?.try_into().ok()?))
}

pub(crate) fn pull_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = pull_u32(bytes)?;
    pull(bytes, usize::try_from(size).ok()?)
}

pub(crate) fn pull_str<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(pull_bytes(bytes)?).ok()
}
