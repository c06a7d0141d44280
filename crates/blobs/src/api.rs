//! The plain values that operations take and return.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use protocol::ServiceError;
use protocol::blob::blob_list::{self, DeletedBlob, ListedBlob, ListedTier};
use protocol::blob::checksum::{Checksums, ExpectedChecksums};
use protocol::blob::conditions::{Conditions, TierConditions};
use protocol::blob::container_list::{DeletedContainer, ListedContainer};
use protocol::blob::copy::CopyState;
use protocol::blob::encryption::{CustomerKeyHash, Encryption};
use protocol::blob::identifier::{BlockId, Revision};
use protocol::blob::lease::{Lease, LeaseOutcome};
use protocol::blob::list_parameters::{BlobMarker, FindMarker};
use protocol::blob::properties::{
    AccessTier, BlobType, DeleteSnapshots, HttpProperties, PublicAccess, RehydratePriority,
};
use protocol::blob::{BlobETag, BlobName, ContainerName, Tags};
use protocol::common::guid::Guid;
use protocol::common::{AccountName, DateTime, Metadata, StoredPolicy};

/// A blob by its names.
#[derive(Clone, Copy, Debug)]
pub struct BlobPlace<'a> {
    pub account: &'a AccountName,
    pub container: &'a ContainerName,
    pub blob: &'a BlobName,
}

/// What must be true for an operation on a blob to happen.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    /// The lease id that the request carries.
    pub lease: Option<Guid>,
    pub conditions: Conditions,
    /// The key that the blob has to be written with, and for new blobs the scope.
    pub encryption: Encryption,
    /// The caller may create blobs and not overwrite them: an existing blob is refused with `UnauthorizedBlobOverwrite`.
    pub create_only: bool,
}

/// What every write answers with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    pub etag: BlobETag,
    pub last_modified: DateTime,
    /// The version that was written, if versions are kept.
    pub version: Option<DateTime>,
}

/// Bytes that come in, piece by piece. A failure of the source ends the operation, and nothing has changed.
#[async_trait]
pub trait Upload: Send {
    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>>;
}

/// A body with what is known of it.
pub struct UploadBody<'u> {
    pub source: &'u mut dyn Upload,
    /// How long it says it is. Another length is an error of the source, which is not noticed here.
    pub expected_bytes: Option<u64>,
    /// A longer one is refused with `RequestBodyTooLarge`.
    pub bytes_max: u64,
    /// Checked before anything is visible.
    pub expected: ExpectedChecksums,
    /// Whether the caller wants to know the MD5 even if it is neither stored nor expected. It costs more than the rest.
    pub with_md5: bool,
}

/// What a blob is put with.
#[derive(Clone, Debug, Default)]
pub struct NewBlob {
    pub http: HttpProperties,
    pub metadata: Metadata,
    pub tags: Tags,
    /// `None`: that of the blob that is replaced, else the usual one.
    pub tier: Option<AccessTier>,
    /// For content that the server read from somewhere else.
    pub copy: Option<CopyState>,
}

/// The answer to a write of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutContent {
    pub stamp: Stamp,
    /// Always with the CRC-64, and with the MD5 where it was computed: of a block blob put as a whole, or if one was sent.
    pub checksums: Checksums,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    pub stamp: Stamp,
    pub checksums: Checksums,
    /// Where the appended bytes begin.
    pub offset: u64,
    pub append_count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PagesWritten {
    pub stamp: Stamp,
    pub checksums: Checksums,
    pub sequence_number: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PropertiesSet {
    pub stamp: Stamp,
    /// Of page blobs.
    pub sequence_number: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockLists {
    /// `None` for a blob that has only staged blocks.
    pub stamp: Option<Stamp>,
    pub size: u64,
    /// In the order of the content. Empty unless they were asked for.
    pub committed: Vec<(BlockId, u64)>,
    /// In the order in which they were staged. Empty unless they were asked for.
    pub uncommitted: Vec<(BlockId, u64)>,
}

/// Which pages to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageQuery {
    /// Only what differs from this snapshot.
    pub previous: Option<DateTime>,
    /// Widened to whole pages. `None`: all pages.
    pub range: Option<protocol::blob::range::ByteRange>,
    /// Continues with this byte.
    pub marker: Option<u64>,
    pub count_max: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRanges {
    pub stamp: Stamp,
    pub size: u64,
    /// Sorted; neighbours are merged.
    pub ranges: Vec<PageRange>,
    /// The byte with which the next answer begins.
    pub next: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRange {
    pub range: Range<u64>,
    /// It had content in the previous snapshot and has none now.
    pub is_cleared: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leased {
    pub stamp: Stamp,
    pub outcome: LeaseOutcome,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshotted {
    pub stamp: Stamp,
    pub snapshot: DateTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierSet {
    /// 200
    Done,
    /// 202: the blob is on its way out of the archive.
    Rehydrating,
}

/// What a deletion is about beside the blob.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deletion {
    pub snapshots: Option<DeleteSnapshots>,
    /// Of a snapshot or version that is softly deleted.
    pub is_permanent: bool,
    pub tier_conditions: TierConditions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deleted {
    /// `false` if it can be undeleted, or is kept as a version.
    pub is_permanent: bool,
}

/// Where a copy comes from: a blob of this server.
#[derive(Clone, Debug)]
pub struct CopyFrom<'a> {
    pub place: BlobPlace<'a>,
    pub revision: Revision,
    pub conditions: Conditions,
    pub encryption: Encryption,
}

/// What a copy is made with.
#[derive(Clone, Debug, Default)]
pub struct CopyRequest {
    /// The URL that properties show as the source.
    pub source_url: Box<str>,
    /// `None`: the source's.
    pub metadata: Option<Metadata>,
    pub tags: CopyTags,
    pub tier: Option<AccessTier>,
    pub rehydrate_priority: Option<RehydratePriority>,
    /// Whether a copy of an append blob is sealed.
    pub seal: bool,
    /// Synchronous copies read the source, so they are limited in size and answer with its checksums.
    pub is_synchronous: bool,
    /// Checked for synchronous copies.
    pub expected: ExpectedChecksums,
}

#[derive(Clone, Debug)]
pub enum CopyTags {
    Replace(Tags),
    /// Those of the source.
    Copy,
}

impl Default for CopyTags {
    fn default() -> CopyTags {
        CopyTags::Replace(Tags::default())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    pub stamp: Stamp,
    pub copy_id: Guid,
    /// Of synchronous copies.
    pub checksums: Checksums,
}

/// A blob, a snapshot or a version as it was found, with the lease as it was then.
#[derive(Clone, Debug)]
pub struct BlobView {
    pub name: Box<str>,
    pub snapshot: Option<DateTime>,
    pub version: Option<DateTime>,
    pub is_current_version: bool,
    /// `None` for a blob that has only staged blocks.
    pub committed: Option<CommittedView>,
    pub blob_type: BlobType,
    pub tier: Option<ListedTier>,
    pub lease: Option<Lease>,
    pub deleted: Option<DeletedBlob>,
}

#[derive(Clone, Debug)]
pub struct CommittedView {
    pub created: DateTime,
    pub last_modified: DateTime,
    pub etag: BlobETag,
    pub size: u64,
    pub http: HttpProperties,
    pub sequence_number: Option<u64>,
    pub append_count: Option<u32>,
    pub is_sealed: bool,
    pub metadata: Metadata,
    pub tags: Tags,
    pub copy: Option<CopyState>,
    pub key_sha256: Option<CustomerKeyHash>,
    pub encryption_scope: Option<Box<str>>,
}

impl BlobView {
    /// As the wire writes it.
    pub fn listed(&self) -> ListedBlob<'_> {
        ListedBlob {
            name: &self.name,
            snapshot: self.snapshot,
            version: self.version,
            is_current_version: self.is_current_version,
            committed: self.committed.as_ref().map(CommittedView::listed),
            blob_type: self.blob_type,
            tier: self.tier,
            lease: self.lease,
            deleted: self.deleted,
        }
    }

    pub fn size(&self) -> u64 {
        self.committed.as_ref().map_or(0, |committed| committed.size)
    }

    /// `None` for a blob that has only staged blocks.
    pub fn stamp(&self) -> Option<Stamp> {
        let committed = self.committed.as_ref()?;
        Some(Stamp { etag: committed.etag, last_modified: committed.last_modified, version: self.version })
    }
}

impl CommittedView {
    fn listed(&self) -> blob_list::Committed<'_> {
        blob_list::Committed {
            created: self.created,
            last_modified: self.last_modified,
            etag: self.etag,
            size: self.size,
            http: &self.http,
            sequence_number: self.sequence_number,
            append_count: self.append_count,
            is_sealed: self.is_sealed,
            metadata: &self.metadata,
            tags: &self.tags,
            copy: self.copy.as_ref(),
            key_sha256: self.key_sha256,
            encryption_scope: self.encryption_scope.as_deref(),
        }
    }
}

/// What a container is created with.
#[derive(Clone, Debug, Default)]
pub struct NewContainer {
    pub metadata: Metadata,
    pub public_access: Option<PublicAccess>,
    pub default_encryption_scope: Option<Box<str>>,
    pub deny_encryption_scope_override: bool,
}

/// A container as it was found, with the lease as it was then.
#[derive(Clone, Debug)]
pub struct ContainerView {
    pub name: Box<str>,
    pub etag: BlobETag,
    pub last_modified: DateTime,
    pub lease: Lease,
    pub public_access: Option<PublicAccess>,
    pub metadata: Metadata,
    pub default_encryption_scope: Option<Box<str>>,
    pub deny_encryption_scope_override: bool,
    pub deleted: Option<DeletedContainerView>,
}

#[derive(Clone, Debug)]
pub struct DeletedContainerView {
    pub version: Box<str>,
    pub time: DateTime,
    pub remaining_days: u16,
}

impl ContainerView {
    pub fn listed(&self) -> ListedContainer<'_> {
        ListedContainer {
            name: &self.name,
            last_modified: self.last_modified,
            etag: self.etag,
            lease: self.lease,
            public_access: self.public_access,
            metadata: &self.metadata,
            default_encryption_scope: self.default_encryption_scope.as_deref(),
            deny_encryption_scope_override: self.deny_encryption_scope_override,
            deleted: self.deleted.as_ref().map(|deleted| DeletedContainer {
                version: &deleted.version,
                time: deleted.time,
                remaining_days: deleted.remaining_days,
            }),
        }
    }

    pub fn stamp(&self) -> Stamp {
        Stamp { etag: self.etag, last_modified: self.last_modified, version: None }
    }
}

#[derive(Clone, Debug)]
pub struct ContainerAclView {
    pub container: ContainerView,
    pub policies: Arc<[StoredPolicy]>,
}

#[derive(Clone, Debug)]
pub struct ContainerPage {
    pub containers: Vec<ContainerView>,
    /// The first name of the next page.
    pub next: Option<String>,
}

/// A page of blobs. It may be shorter than asked for, even empty, and still have a next one.
#[derive(Clone, Debug)]
pub struct BlobPage {
    pub entries: Vec<BlobEntry>,
    pub next: Option<BlobMarker>,
}

#[derive(Clone, Debug)]
pub enum BlobEntry {
    Blob(Box<BlobView>),
    /// The common beginning of names, with the delimiter at its end.
    Prefix(String),
}

#[derive(Clone, Debug)]
pub struct FoundPage {
    pub blobs: Vec<FoundBlob>,
    pub next: Option<FindMarker>,
}

#[derive(Clone, Debug)]
pub struct FoundBlob {
    pub container: String,
    pub name: String,
    pub tags: Tags,
}
