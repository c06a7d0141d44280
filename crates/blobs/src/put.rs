//! Put Blob, for the three types of blobs.

use std::collections::HashSet;
use std::sync::Arc;

use contents::{ContentId, ContentRef, PendingContent};
use protocol::blob::lease::Lease;
use protocol::blob::properties::BlobType;
use protocol::common::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, NewBlob, Preconditions, PutContent, Stamp, UploadBody};
use crate::base::{
    BlobTarget, FoundBase, Keeping, Retired, Tries, check_create, next_etag, put_base, retire,
};
use crate::content::{ContentMap, INLINE_BYTES_MAX};
use crate::epochs::Epochs;
use crate::finish::Unstoppable;
use crate::record::{BlobContent, BlobRecord, CommittedBlob, RecordKind, Tier};
use crate::service::{BlobCore, BlobService};
use crate::upload::{Received, ReceivedData};

/// What is put, beside its properties.
pub(crate) struct NewContent {
    pub(crate) blob_type: BlobType,
    pub(crate) size: u64,
    pub(crate) content: BlobContent,
    pub(crate) sequence_number: u64,
    pub(crate) append_count: u32,
    pub(crate) is_sealed: bool,
    pub(crate) is_shared: bool,
}

impl NewContent {
    pub(crate) fn of_map(blob_type: BlobType, map: ContentMap) -> NewContent {
        NewContent {
            blob_type,
            size: map.length(),
            content: BlobContent::Map(map),
            sequence_number: 0,
            append_count: 0,
            is_sealed: false,
            is_shared: false,
        }
    }
}

/// The record of a blob that is put, in the place of what was found.
pub(crate) fn new_record(
    found: &FoundBase,
    new: &NewBlob,
    content: NewContent,
    pre: &Preconditions,
    lease: Lease,
    keeping: Keeping,
    moment: DateTime,
) -> BlobRecord {
    let old = found.live();
    let modified = next_etag(found.record.as_ref().and_then(|record| record.committed.as_ref()), moment);
    let tier = match new.tier {
        Some(tier) => Tier::set(tier, moment),
        None => old.map(|old| old.tier).unwrap_or_default(),
    };
    let NewContent { blob_type, size, content, sequence_number, append_count, is_sealed, is_shared } =
        content;
    BlobRecord {
        kind: RecordKind::Base,
        lease,
        staging: None,
        deleted: None,
        committed: Some(CommittedBlob {
            blob_type,
            modified,
            created: old.map_or(modified, |old| old.created),
            http: new.http.clone(),
            metadata: new.metadata.clone(),
            tags: new.tags.clone(),
            tier,
            copy: new.copy.clone(),
            sequence_number,
            append_count,
            is_sealed,
            key: pre.encryption.key,
            scope: pre.encryption.scope.clone(),
            version: (keeping == Keeping::Versions).then_some(modified),
            size,
            is_shared,
            content,
        }),
    }
}

impl BlobService {
    /// Put Blob of a block blob: lease and conditions come before the body.
    pub async fn put_block_blob(
        &self,
        place: BlobPlace<'_>,
        body: UploadBody<'_>,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<PutContent, ServiceError> {
        self.put_body(place, body, new, pre, true).await
    }

    /// Put Blob From URL: what is wrong with the checksums of the source comes before the conditions.
    pub async fn put_block_blob_from_url(
        &self,
        place: BlobPlace<'_>,
        body: UploadBody<'_>,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<PutContent, ServiceError> {
        let has_checksum = body.expected.has_md5() || body.expected.crc64.is_some();
        self.put_body(place, body, new, pre, !has_checksum).await
    }

    async fn put_body(
        &self,
        place: BlobPlace<'_>,
        body: UploadBody<'_>,
        mut new: NewBlob,
        pre: Preconditions,
        conditions_first: bool,
    ) -> Result<PutContent, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let is_long = body.expected_bytes.is_none_or(|bytes| bytes > INLINE_BYTES_MAX as u64);
        if is_long && conditions_first {
            // A refusal should come before a long body.
            inner.check_put(&target, &new, &pre).await?;
        }
        let received = match inner.receive(body, true, INLINE_BYTES_MAX).await {
            Ok(received) => received,
            Err(error) => {
                let is_mismatch = matches!(error.code, ErrorCode::Md5Mismatch | ErrorCode::Crc64Mismatch);
                if is_mismatch && conditions_first {
                    // Only now, so that a short body that is right costs one look at the row and not two.
                    inner.check_put(&target, &new, &pre).await?;
                }
                return Err(error);
            }
        };
        new.http.content_md5 = received.checksums.md5;
        let inner = inner.clone();
        Unstoppable::new(async move { inner.put_received(&target, received, &new, &pre).await }).await
    }

    pub async fn put_append_blob(
        &self,
        place: BlobPlace<'_>,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        let content = |_| NewContent::of_map(BlobType::Append, ContentMap::default());
        Unstoppable::new(async move { inner.put_content(&target, content, &new, &pre).await }).await
    }

    /// `size` is a multiple of 512.
    pub async fn put_page_blob(
        &self,
        place: BlobPlace<'_>,
        size: u64,
        sequence_number: u64,
        new: NewBlob,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let target = self.inner.target(place).await?;
        let inner = self.inner.clone();
        let content = move |moment: DateTime| NewContent {
            blob_type: BlobType::Page,
            size,
            content: BlobContent::Pages(Epochs::begin(moment)),
            sequence_number,
            append_count: 0,
            is_sealed: false,
            is_shared: false,
        };
        Unstoppable::new(async move { inner.put_content(&target, content, &new, &pre).await }).await
    }
}

impl BlobCore {
    /// Whether the blob may be put, as far as it is known before its content.
    async fn check_put(
        &self,
        target: &BlobTarget,
        new: &NewBlob,
        pre: &Preconditions,
    ) -> Result<(), ServiceError> {
        let found = self.read_base(target).await?;
        let lease = check_create(&found, pre, BlobType::Block, self.now().await?)?;
        check_copy(new, &lease)
    }

    async fn put_received(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        received: Received,
        new: &NewBlob,
        pre: &Preconditions,
    ) -> Result<PutContent, ServiceError> {
        let Received { checksums, data, .. } = received;
        let mut map = data.map();
        // A long content may have more references than a row should hold.
        let outcome = match self.roll(&mut map).await {
            Ok(rolled) => {
                let content = |_| NewContent::of_map(BlobType::Block, map.clone());
                let outcome = self.put_content(target, content, new, pre).await;
                if let Err(error) = &outcome {
                    self.give_up(error, &rolled.contents, rolled.guards).await;
                }
                outcome
            }
            Err(error) => Err(error),
        };
        if let (Err(error), ReceivedData::Stored(parts, pending)) = (&outcome, data) {
            self.give_up(error, &parts, [pending]).await;
        }
        Ok(PutContent { stamp: outcome?, checksums })
    }

    /// Puts a blob whose content is there. `content` gets the moment of the put.
    pub(crate) async fn put_content(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        content: impl Fn(DateTime) -> NewContent,
        new: &NewBlob,
        pre: &Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            let content = content(moment);
            let lease = check_create(&found, pre, content.blob_type, moment)?;
            check_copy(new, &lease)?;
            let (keeping, retired) = self.replace(target, &found, moment).await?;
            let record = new_record(&found, new, content, pre, lease, keeping, moment);
            let mut ops = vec![put_base(&found, &record)];
            ops.extend(retired.op);
            if self.try_commit(target, ops).await? {
                self.after_replacing(target, &found, retired.gone, HashSet::new()).await;
                return Ok(stamp_of(&record));
            }
        }
    }

    /// What is kept of what is about to be replaced.
    pub(crate) async fn replace(
        &self,
        target: &BlobTarget,
        found: &FoundBase,
        moment: DateTime,
    ) -> Result<(Keeping, Retired), ServiceError> {
        match found.record.as_ref().filter(|record| record.committed.is_some()) {
            Some(old) => {
                let keeping = self.keeping(&target.account).await?;
                Ok((keeping, retire(old, keeping, moment)))
            }
            None => {
                let keeping = if self.options.keeps_versions { Keeping::Versions } else { Keeping::Nothing };
                Ok((keeping, Retired { op: None, gone: None }))
            }
        }
    }

    /// Gives back what the new content does not need.
    pub(crate) async fn after_replacing(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        found: &FoundBase,
        gone: Option<CommittedBlob>,
        kept: HashSet<ContentId>,
    ) {
        if let Some(gone) = gone {
            self.drop_content(&gone, &kept).await;
        }
        if let Some(staging) = found.record.as_ref().and_then(|record| record.staging) {
            self.drop_generation(target.clone(), staging.generation, kept);
        }
    }

    /// Forgets what a refused write has stored. After a failure nobody knows whether a row names it; the sweep does, or will.
    pub(crate) async fn give_up(
        &self,
        error: &ServiceError,
        parts: &[ContentRef],
        guards: impl IntoIterator<Item = PendingContent>,
    ) {
        self.keep_unresolved(error, guards);
        if error.code.status() < 500 {
            self.forget(parts).await;
        }
    }
}

/// A copy may take longer than any lease that ends, so its destination must have none.
fn check_copy(new: &NewBlob, lease: &Lease) -> Result<(), ServiceError> {
    if new.copy.is_some() { Ok(lease.check_copy_destination()?) } else { Ok(()) }
}

pub(crate) fn stamp_of(record: &BlobRecord) -> Stamp {
    record.committed.as_ref().expect("it was committed just now").stamp()
}
