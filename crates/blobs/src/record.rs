//! The rows of a container, one partition per blob:
//!
//! ```text
//! S MOMENT               a snapshot or a version, or what a soft deletion keeps
//! T                      the blob itself: behind its snapshots, as lists show it
//! U GENERATION ID        a staged block
//! V SEGMENT LINE EPOCH   4 MiB of a page blob
//! ```
//!
//! Numbers are written as hexadecimal digits of fixed width, so that they sort. Staged blocks belong to the generation that the
//! blob's row names; others are garbage. The ETag is in the row and is not the row's version, because leases, tags, tiers and
//! staged blocks change rows and not ETags.
//!
//! Promises: values read as they were written, and bytes that are no value are refused.

use std::sync::Arc;

use bytes::Bytes;
use contents::ContentRef;
use protocol::blob::Tags;
use protocol::blob::blob_list::{DeletedBlob, ListedTier};
use protocol::blob::copy::{CopyState, CopyStatus};
use protocol::blob::encryption::CustomerKeyHash;
use protocol::blob::identifier::BlockId;
use protocol::blob::lease::{Lease, LeaseDuration};
use protocol::blob::properties::{AccessTier, BlobType, HttpProperties, RehydratePriority};
use protocol::blob::{BlobETag, conditions::ConditionState};
use protocol::common::guid::Guid;
use protocol::common::{DateTime, Metadata};

use crate::api::{BlobView, CommittedView, Stamp};
use crate::codec::{Decoder, Encoder};
use crate::content::ContentMap;
use crate::epochs::Epochs;

const TAG_RECORD: u8 = 1;
const TAG_BLOCK: u8 = 2;
pub(crate) const TAG_SEGMENT: u8 = 3;
const TICKS_PER_DAY: u64 = 864_000_000_000;

/// The row of the blob itself.
pub const BASE_ROW: &str = "T";
/// Snapshots and versions begin here and end before the blob itself.
pub(crate) const MOMENTS_BEGIN: &str = "S";
pub(crate) fn moment_row(moment: u64) -> String {
    format!("S{moment:016x}")
}

pub(crate) fn read_moment_row(row: &str) -> Option<u64> {
    let digits = row.strip_prefix('S').filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

pub(crate) fn block_row(generation: u64, id: &BlockId) -> String {
    let mut row = generation_row(generation);
    for byte in id.as_bytes() {
        row.push(char::from_digit(u32::from(byte >> 4), 16).expect("four bits are a digit"));
        row.push(char::from_digit(u32::from(byte & 15), 16).expect("four bits are a digit"));
    }
    row
}

/// All staged blocks of a generation begin with this.
pub(crate) fn generation_row(generation: u64) -> String {
    format!("U{generation:016x}")
}

pub(crate) fn read_block_row(row: &str) -> Option<(u64, BlockId)> {
    let digits = row.strip_prefix('U').filter(|digits| digits.is_ascii())?;
    let (generation, id) = digits.split_at_checked(16)?;
    let byte = |at: usize| u8::from_str_radix(id.get(at..at + 2)?, 16).ok();
    let id: Option<Vec<u8>> = (0..id.len()).step_by(2).map(byte).collect();
    Some((u64::from_str_radix(generation, 16).ok()?, BlockId::from_bytes(&id?)?))
}

/// The value of a row S or T.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct BlobRecord {
    pub(crate) kind: RecordKind,
    /// `None` for a blob that has only staged blocks.
    pub(crate) committed: Option<CommittedBlob>,
    pub(crate) lease: Lease,
    pub(crate) staging: Option<Staging>,
    pub(crate) deleted: Option<SoftDeletion>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RecordKind {
    #[default]
    Base,
    Snapshot,
    Version,
}

/// Where staged blocks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Staging {
    /// The moment at which the first block of this generation was staged.
    pub(crate) generation: u64,
    /// The length of all ids of this generation.
    pub(crate) id_bytes: u8,
}

/// A soft deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SoftDeletion {
    pub(crate) at: u64,
    /// From here on it cannot be undone.
    pub(crate) until: u64,
}

impl SoftDeletion {
    /// Whole days, of which the one that has begun is none.
    pub(crate) fn remaining_days(&self, now: DateTime) -> u16 {
        (self.until.saturating_sub(now.ticks() + 1) / TICKS_PER_DAY) as u16
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CommittedBlob {
    pub(crate) blob_type: BlobType,
    /// The ETag, and the time of the last change.
    pub(crate) modified: u64,
    pub(crate) created: u64,
    pub(crate) http: HttpProperties,
    pub(crate) metadata: Metadata,
    pub(crate) tags: Tags,
    pub(crate) tier: Tier,
    pub(crate) copy: Option<CopyState>,
    pub(crate) sequence_number: u64,
    pub(crate) append_count: u32,
    pub(crate) is_sealed: bool,
    pub(crate) key: Option<CustomerKeyHash>,
    pub(crate) scope: Option<Box<str>>,
    /// The version that this is, if versions are kept.
    pub(crate) version: Option<u64>,
    pub(crate) size: u64,
    /// Whether other rows may name the same contents. Then only a sweep forgets them.
    pub(crate) is_shared: bool,
    pub(crate) content: BlobContent,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum BlobContent {
    Map(ContentMap),
    Pages(Epochs),
}

/// `None`: nobody set it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tier {
    pub(crate) explicit: Option<(AccessTier, u64)>,
    /// The tier to which an archived blob is on its way, and since when.
    pub(crate) rehydrating: Option<(AccessTier, RehydratePriority, u64)>,
}

impl Tier {
    pub(crate) fn set(tier: AccessTier, now: DateTime) -> Tier {
        Tier { explicit: Some((tier, now.ticks())), rehydrating: None }
    }

    pub(crate) fn is_archive(&self) -> bool {
        matches!(self.explicit, Some((AccessTier::Archive, _)))
    }

    /// The tier as it is at this time, if blobs leave the archive after so many ticks.
    pub(crate) fn at(self, now: DateTime, rehydrates_after: Option<u64>) -> Tier {
        match (self.rehydrating, rehydrates_after) {
            (Some((target, _, since)), Some(after)) if since.saturating_add(after) <= now.ticks() => {
                Tier { explicit: Some((target, since.saturating_add(after))), rehydrating: None }
            }
            _ => self,
        }
    }

    fn listed(&self, blob_type: BlobType) -> Option<ListedTier> {
        match self.explicit {
            Some((tier, changed)) => Some(ListedTier {
                tier,
                is_inferred: false,
                changed: Some(DateTime::from_ticks(changed)),
                rehydrating: self.rehydrating.map(|(target, priority, _)| (target, priority)),
            }),
            None if blob_type == BlobType::Page => None,
            None => Some(ListedTier {
                tier: AccessTier::Hot,
                is_inferred: true,
                changed: None,
                rehydrating: None,
            }),
        }
    }
}

impl CommittedBlob {
    pub(crate) fn state(&self) -> ConditionState<'_> {
        ConditionState { etag: self.etag(), last_modified: self.last_modified(), tags: &self.tags }
    }

    pub(crate) fn etag(&self) -> BlobETag {
        BlobETag(self.modified)
    }

    pub(crate) fn last_modified(&self) -> DateTime {
        DateTime::from_ticks(self.modified)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        let version = self.version.map(DateTime::from_ticks);
        Stamp { etag: self.etag(), last_modified: self.last_modified(), version }
    }

    pub(crate) fn map(&self) -> Option<&ContentMap> {
        match &self.content {
            BlobContent::Map(map) => Some(map),
            BlobContent::Pages(_) => None,
        }
    }

    fn view(&self) -> CommittedView {
        CommittedView {
            created: DateTime::from_ticks(self.created),
            last_modified: self.last_modified(),
            etag: self.etag(),
            size: self.size,
            http: self.http.clone(),
            sequence_number: (self.blob_type == BlobType::Page).then_some(self.sequence_number),
            append_count: (self.blob_type == BlobType::Append).then_some(self.append_count),
            is_sealed: self.is_sealed,
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            copy: self.copy.clone(),
            key_sha256: self.key,
            encryption_scope: self.scope.clone(),
        }
    }
}

impl BlobRecord {
    /// The blob as a caller sees it. `moment` is that of its row, if it is not the blob itself.
    pub(crate) fn view(
        &self,
        name: &str,
        moment: Option<u64>,
        now: DateTime,
        rehydrates_after: Option<u64>,
    ) -> BlobView {
        let blob_type = self.committed.as_ref().map_or(BlobType::Block, |committed| committed.blob_type);
        let tier = self.committed.as_ref().map(|committed| committed.tier).unwrap_or_default();
        let own_version = self.committed.as_ref().and_then(|committed| committed.version);
        let moment = moment.map(DateTime::from_ticks);
        let is_base = self.kind == RecordKind::Base;
        BlobView {
            name: name.into(),
            snapshot: moment.filter(|_| self.kind == RecordKind::Snapshot),
            version: match self.kind {
                RecordKind::Version => moment,
                RecordKind::Base => own_version.map(DateTime::from_ticks),
                RecordKind::Snapshot => None,
            },
            is_current_version: is_base && own_version.is_some(),
            committed: self.committed.as_ref().map(CommittedBlob::view),
            blob_type,
            tier: tier.at(now, rehydrates_after).listed(blob_type),
            lease: (is_base && self.deleted.is_none()).then(|| self.lease.at(now)),
            deleted: self.deleted.map(|deleted| DeletedBlob {
                time: DateTime::from_ticks(deleted.at),
                remaining_days: deleted.remaining_days(now),
            }),
        }
    }

    /// What a caller can use: committed and not deleted.
    pub(crate) fn live(&self) -> Option<&CommittedBlob> {
        self.committed.as_ref().filter(|_| self.deleted.is_none())
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::new(TAG_RECORD);
        out.byte(match self.kind {
            RecordKind::Base => 0,
            RecordKind::Snapshot => 1,
            RecordKind::Version => 2,
        });
        write_lease(&self.lease, &mut out);
        out.option(self.staging, |out, staging| {
            out.number(staging.generation);
            out.byte(staging.id_bytes);
        });
        out.option(self.deleted, |out, deleted| {
            out.number(deleted.at);
            out.number(deleted.until);
        });
        out.option(self.committed.as_ref(), |out, committed| committed.write(out));
        out.finish()
    }

    /// With the bytes of a content that lies in the row.
    pub(crate) fn decode(value: &Bytes) -> Option<BlobRecord> {
        BlobRecord::read(value, Some(value))
    }

    /// From borrowed bytes.
    pub(crate) fn decode_borrowed(value: &[u8]) -> Option<BlobRecord> {
        BlobRecord::read(value, None)
    }

    fn read(value: &[u8], whole: Option<&Bytes>) -> Option<BlobRecord> {
        let mut from = Decoder::new(value, TAG_RECORD)?;
        let kind = match from.byte()? {
            0 => RecordKind::Base,
            1 => RecordKind::Snapshot,
            2 => RecordKind::Version,
            _ => return None,
        };
        let lease = read_lease(&mut from)?;
        let staging =
            from.option(|from| Some(Staging { generation: from.number()?, id_bytes: from.byte()? }))?;
        let deleted = from.option(|from| Some(SoftDeletion { at: from.number()?, until: from.number()? }))?;
        let committed = from.option(|from| CommittedBlob::read(from, whole))?;
        from.end()?;
        Some(BlobRecord { kind, committed, lease, staging, deleted })
    }
}

impl CommittedBlob {
    fn write(&self, out: &mut Encoder) {
        out.byte(match self.blob_type {
            BlobType::Block => 0,
            BlobType::Append => 1,
            BlobType::Page => 2,
        });
        out.number(self.modified);
        out.number(self.created);
        out.number(self.size);
        out.option(self.version, Encoder::number);
        out.byte(u8::from(self.is_shared) | u8::from(self.is_sealed) << 1);
        out.number(self.sequence_number);
        out.number(u64::from(self.append_count));
        let http = &self.http;
        for text in [
            &http.content_type,
            &http.content_encoding,
            &http.content_language,
            &http.content_disposition,
            &http.cache_control,
        ] {
            out.option(text.as_deref(), Encoder::text);
        }
        out.option(http.content_md5, |out, md5| out.raw(&md5));
        out.pairs(self.metadata.items());
        out.pairs(self.tags.items());
        out.option(self.tier.explicit, |out, (tier, changed)| {
            out.text(tier.as_str());
            out.number(changed);
        });
        out.option(self.tier.rehydrating, |out, (tier, priority, since)| {
            out.text(tier.as_str());
            out.text(priority.as_str());
            out.number(since);
        });
        out.option(self.copy.as_ref(), write_copy);
        out.option(self.key, |out, key| out.raw(&key.0));
        out.option(self.scope.as_deref(), Encoder::text);
        match &self.content {
            BlobContent::Map(map) => {
                out.byte(0);
                map.write(out);
            }
            BlobContent::Pages(epochs) => {
                out.byte(1);
                epochs.write(out);
            }
        }
    }

    fn read(from: &mut Decoder<'_>, whole: Option<&Bytes>) -> Option<CommittedBlob> {
        let blob_type = match from.byte()? {
            0 => BlobType::Block,
            1 => BlobType::Append,
            2 => BlobType::Page,
            _ => return None,
        };
        let (modified, created, size) = (from.number()?, from.number()?, from.number()?);
        let version = from.option(Decoder::number)?;
        let flags = from.byte().filter(|flags| *flags < 4)?;
        let (sequence_number, append_count) = (from.number()?, u32::try_from(from.number()?).ok()?);
        let mut text = || from.option(|from| from.text().map(Box::from));
        let (content_type, content_encoding, content_language) = (text()?, text()?, text()?);
        let (content_disposition, cache_control) = (text()?, text()?);
        let content_md5 = from.option(Decoder::array)?;
        let metadata = Metadata::read(from.pairs()?).ok()?;
        let tags = Tags::read(from.pairs()?).ok()?;
        let explicit = from.option(|from| Some((AccessTier::parse(from.text()?)?, from.number()?)))?;
        let rehydrating = from.option(|from| {
            let (tier, priority) =
                (AccessTier::parse(from.text()?)?, RehydratePriority::parse(from.text()?)?);
            Some((tier, priority, from.number()?))
        })?;
        let copy = from.option(read_copy)?;
        let key = from.option(Decoder::array)?.map(CustomerKeyHash);
        let scope = from.option(|from| from.text().map(Box::from))?;
        let content = match from.byte()? {
            0 => BlobContent::Map(ContentMap::read(from, whole)?),
            1 => BlobContent::Pages(Epochs::read(from)?),
            _ => return None,
        };
        Some(CommittedBlob {
            blob_type,
            modified,
            created,
            http: HttpProperties {
                content_type,
                content_encoding,
                content_language,
                content_disposition,
                cache_control,
                content_md5,
            },
            metadata,
            tags,
            tier: Tier { explicit, rehydrating },
            copy,
            sequence_number,
            append_count,
            is_sealed: flags & 2 != 0,
            key,
            scope,
            version,
            size,
            is_shared: flags & 1 != 0,
            content,
        })
    }
}

pub(crate) fn write_lease(lease: &Lease, out: &mut Encoder) {
    let mut begin = |tag: u8, id: &Guid| {
        out.byte(tag);
        out.raw(&id.0);
    };
    match lease {
        Lease::Available => out.byte(0),
        Lease::Leased { id, duration, until } => {
            begin(1, id);
            write_duration(*duration, out);
            out.option(until.map(DateTime::ticks), Encoder::number);
        }
        Lease::Breaking { id, until } => {
            begin(2, id);
            out.number(until.ticks());
        }
        Lease::Broken { id } => begin(3, id),
        Lease::Expired { id, duration } => {
            begin(4, id);
            write_duration(*duration, out);
        }
    }
}

fn write_duration(duration: LeaseDuration, out: &mut Encoder) {
    out.byte(match duration {
        LeaseDuration::Infinite => 0,
        LeaseDuration::Fixed(seconds) => seconds,
    });
}

pub(crate) fn read_lease(from: &mut Decoder<'_>) -> Option<Lease> {
    let tag = from.byte()?;
    if tag == 0 {
        return Some(Lease::Available);
    }
    let id = Guid(from.array()?);
    let duration = |from: &mut Decoder<'_>| {
        Some(match from.byte()? {
            0 => LeaseDuration::Infinite,
            seconds => LeaseDuration::Fixed(seconds),
        })
    };
    match tag {
        1 => {
            let duration = duration(from)?;
            let until = from.option(Decoder::number)?.map(DateTime::from_ticks);
            Some(Lease::Leased { id, duration, until })
        }
        2 => Some(Lease::Breaking { id, until: DateTime::from_ticks(from.number()?) }),
        3 => Some(Lease::Broken { id }),
        4 => Some(Lease::Expired { id, duration: duration(from)? }),
        _ => None,
    }
}

fn write_copy(out: &mut Encoder, copy: &CopyState) {
    out.raw(&copy.id.0);
    out.text(&copy.source);
    out.byte(match copy.status {
        CopyStatus::Pending => 0,
        CopyStatus::Success => 1,
        CopyStatus::Aborted => 2,
        CopyStatus::Failed => 3,
    });
    out.number(copy.copied);
    out.number(copy.total);
    out.option(copy.completed.map(DateTime::ticks), Encoder::number);
    out.option(copy.description.as_deref(), Encoder::text);
}

fn read_copy(from: &mut Decoder<'_>) -> Option<CopyState> {
    Some(CopyState {
        id: Guid(from.array()?),
        source: from.text()?.into(),
        status: match from.byte()? {
            0 => CopyStatus::Pending,
            1 => CopyStatus::Success,
            2 => CopyStatus::Aborted,
            3 => CopyStatus::Failed,
            _ => return None,
        },
        copied: from.number()?,
        total: from.number()?,
        completed: from.option(Decoder::number)?.map(DateTime::from_ticks),
        description: from.option(|from| from.text().map(Box::from))?,
    })
}

/// The value of a row U.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StagedBlock {
    pub(crate) at: u64,
    pub(crate) parts: Arc<[ContentRef]>,
}

impl StagedBlock {
    pub(crate) fn length(&self) -> u64 {
        self.parts.iter().map(ContentRef::length).sum()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::new(TAG_BLOCK);
        out.number(self.at);
        out.contents(&self.parts);
        out.finish()
    }

    pub(crate) fn decode(value: &[u8]) -> Option<StagedBlock> {
        let mut from = Decoder::new(value, TAG_BLOCK)?;
        let block = StagedBlock { at: from.number()?, parts: from.contents()?.into() };
        from.end()?;
        Some(block)
    }
}

/// Whether these bytes are a value of some row of a container.
pub(crate) fn is_sound(value: &[u8]) -> bool {
    match value.first() {
        Some(&TAG_RECORD) => BlobRecord::decode_borrowed(value).is_some(),
        Some(&TAG_BLOCK) => StagedBlock::decode(value).is_some(),
        Some(&TAG_SEGMENT) => crate::page_rows::PageSegment::decode(value).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> BlobRecord {
        let id = Guid([7; 16]);
        BlobRecord {
            kind: RecordKind::Version,
            lease: Lease::Leased {
                id,
                duration: LeaseDuration::Fixed(15),
                until: Some(DateTime::from_ticks(9)),
            },
            staging: Some(Staging { generation: 5, id_bytes: 64 }),
            deleted: Some(SoftDeletion { at: 1, until: 2 }),
            committed: Some(CommittedBlob {
                blob_type: BlobType::Append,
                modified: 11,
                created: 10,
                http: HttpProperties {
                    content_type: Some("text/plain".into()),
                    content_md5: Some([3; 16]),
                    ..HttpProperties::default()
                },
                metadata: Metadata::read([("Key", "value")]).unwrap(),
                tags: Tags::read([("tag", "")]).unwrap(),
                tier: Tier {
                    explicit: Some((AccessTier::Archive, 4)),
                    rehydrating: Some((AccessTier::Hot, RehydratePriority::High, 6)),
                },
                copy: Some(CopyState {
                    id,
                    source: "http://x".into(),
                    status: CopyStatus::Success,
                    copied: 1,
                    total: 2,
                    completed: Some(DateTime::from_ticks(8)),
                    description: None,
                }),
                sequence_number: 12,
                append_count: 13,
                is_sealed: true,
                key: Some(CustomerKeyHash([1; 32])),
                scope: Some("scope".into()),
                version: Some(14),
                size: 4,
                is_shared: true,
                content: BlobContent::Map(ContentMap::inline(Bytes::from_static(b"tail"))),
            }),
        }
    }

    #[test]
    fn a_record_reads_as_it_was_written_and_no_part_of_it_does() {
        let record = record();
        let value = record.encode();
        assert_eq!(BlobRecord::decode(&value), Some(record));
        for end in 0..value.len() {
            assert!(!is_sound(&value[..end]), "{end}");
        }
        assert!(!is_sound(&[&value[..], b"x"].concat()));
    }

    #[test]
    fn a_cleared_page_blob_remembers_when_it_was_put() {
        let mut record = record();
        let born = Epochs::begin(DateTime::from_ticks(7));
        for epochs in [born, born.cleared(DateTime::from_ticks(9))] {
            record.committed.as_mut().unwrap().content = BlobContent::Pages(epochs);
            assert_eq!(BlobRecord::decode(&record.encode()).as_ref(), Some(&record));
            assert_eq!(epochs.born, born.born);
        }
    }

    #[test]
    fn rows_read_as_they_were_written() {
        let id = BlockId::from_bytes(b"\0\xffid").unwrap();
        assert_eq!(read_block_row(&block_row(17, &id)), Some((17, id)));
        assert_eq!(read_moment_row(&moment_row(u64::MAX)), Some(u64::MAX));
        for row in ["", "S", "T", "U", "U00", "Uäääääääää", "S000000000000000g"] {
            assert!(read_block_row(row).is_none() && read_moment_row(row).is_none(), "{row}");
        }
    }
}
