//! Append Block and Seal.
//!
//! Short appends gather in the tail of the blob's row, and the tail is written to the store of contents when it is long enough. So
//! a short append is one commit, and costs the same whatever the blob's size.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use contents::{ContentRef, PendingContent};
use protocol::blob::conditions::AppendConditions;
use protocol::blob::lease::{Lease, LeaseUse};
use protocol::blob::limits::APPEND_COUNT_MAX;
use protocol::blob::properties::BlobType;
use protocol::common::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::api::{Appended, BlobPlace, Preconditions, Stamp, UploadBody};
use crate::base::{BlobTarget, FoundBase, Tries, check_change, next_etag, put_base};
use crate::content::{ContentEntry, ContentMap, INLINE_BYTES_MAX, RolledNodes};
use crate::finish::Unstoppable;
use crate::put::stamp_of;
use crate::record::BlobContent;
use crate::service::{BlobCore, BlobService};
use crate::upload::{Received, ReceivedData};

impl BlobService {
    pub async fn append_block(
        &self,
        place: BlobPlace<'_>,
        body: UploadBody<'_>,
        append: AppendConditions,
        pre: Preconditions,
    ) -> Result<Appended, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let found = inner.read_base(&target).await?;
        let added = body.expected_bytes.unwrap_or(0);
        check_append(&found, &append, &pre, added, inner.now().await?)?;
        let received = inner.receive(body, false, INLINE_BYTES_MAX).await?;
        let inner = inner.clone();
        Unstoppable::new(async move { inner.append(&target, received, &append, &pre).await }).await
    }

    pub async fn seal(
        &self,
        place: BlobPlace<'_>,
        append: AppendConditions,
        pre: Preconditions,
    ) -> Result<Stamp, ServiceError> {
        let target = self.inner.target(place).await?;
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(&self.inner, &target).await?;
            let found = self.inner.read_base(&target).await?;
            let moment = self.inner.next_moment().await?;
            let lease = check_change(&found, &pre, LeaseUse::Write, moment)?;
            let mut record = found.required()?.0.clone();
            let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
            if committed.blob_type != BlobType::Append {
                return Err(ErrorCode::InvalidBlobType.into());
            }
            append.check(committed.size, 0)?;
            if committed.is_sealed {
                return Ok(committed.stamp());
            }
            committed.is_sealed = true;
            committed.modified = next_etag(found.live(), moment);
            record.lease = lease;
            if self.inner.try_commit(&target, vec![put_base(&found, &record)]).await? {
                return Ok(stamp_of(&record));
            }
        }
    }
}

fn check_append(
    found: &FoundBase,
    append: &AppendConditions,
    pre: &Preconditions,
    added: u64,
    now: DateTime,
) -> Result<Lease, ServiceError> {
    let lease = check_change(found, pre, LeaseUse::Write, now)?;
    let (_, committed) = found.required()?;
    if committed.blob_type != BlobType::Append {
        return Err(ErrorCode::InvalidBlobType.into());
    }
    pre.encryption.check(committed.key)?;
    append.check(committed.size, added)?;
    if committed.is_sealed {
        return Err(ErrorCode::BlobIsSealed.into());
    }
    if committed.append_count >= APPEND_COUNT_MAX {
        return Err(ErrorCode::BlockCountExceedsLimit.into());
    }
    Ok(lease)
}

/// What an append has written that no row names yet.
#[derive(Default)]
struct AppendedContents {
    contents: Vec<ContentRef>,
    guards: Vec<PendingContent>,
    nodes: RolledNodes,
}

impl BlobCore {
    async fn append(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        received: Received,
        append: &AppendConditions,
        pre: &Preconditions,
    ) -> Result<Appended, ServiceError> {
        let Received { length, checksums, data } = received;
        let outcome = self.try_append(target, length, &data, append, pre).await;
        if let (Err(error), ReceivedData::Stored(parts, pending)) = (&outcome, data) {
            self.give_up(error, &parts, [pending]).await;
        }
        let (stamp, offset, append_count) = outcome?;
        Ok(Appended { stamp, checksums, offset, append_count })
    }

    async fn try_append(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        length: u64,
        data: &ReceivedData,
        append: &AppendConditions,
        pre: &Preconditions,
    ) -> Result<(Stamp, u64, u32), ServiceError> {
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            let lease = check_append(&found, append, pre, length, moment)?;
            let mut record = found.required()?.0.clone();
            record.lease = lease;
            let committed = record.committed.as_mut().ok_or(ErrorCode::BlobNotFound)?;
            let BlobContent::Map(map) = &mut committed.content else {
                return Err(ErrorCode::InvalidBlobType.into());
            };
            let unnamed = self.add(map, data).await?;
            let offset = committed.size;
            committed.size += length;
            committed.append_count += 1;
            committed.copy = None;
            committed.modified = next_etag(found.live(), moment);
            let append_count = committed.append_count;
            match self.try_commit(target, vec![put_base(&found, &record)]).await {
                Ok(true) => return Ok((stamp_of(&record), offset, append_count)),
                Ok(false) => {
                    self.forget(&unnamed.contents).await;
                    self.forget(&unnamed.nodes.contents).await;
                }
                Err(error) => {
                    self.keep_unresolved(&error, unnamed.guards.into_iter().chain(unnamed.nodes.guards));
                    return Err(error);
                }
            }
        }
    }

    /// Adds bytes to the end of a content.
    async fn add(&self, map: &mut ContentMap, data: &ReceivedData) -> Result<AppendedContents, ServiceError> {
        let mut unnamed = AppendedContents::default();
        match data {
            ReceivedData::Inline(bytes) if map.tail.len() + bytes.len() <= INLINE_BYTES_MAX => {
                map.tail = concatenated(&map.tail, bytes);
            }
            ReceivedData::Inline(bytes) => {
                // The tail and what is added go to one content, so that contents are not much shorter than a tail.
                let together = concatenated(&std::mem::take(&mut map.tail), bytes);
                self.add_content(map, together, &mut unnamed).await?;
            }
            ReceivedData::Stored(parts, _) => {
                let tail = std::mem::take(&mut map.tail);
                if !tail.is_empty() {
                    self.add_content(map, tail, &mut unnamed).await?;
                }
                map.entries.push(ContentEntry { id: None, parts: parts.as_slice().into() });
            }
        }
        unnamed.nodes = self.roll(map).await?;
        Ok(unnamed)
    }

    async fn add_content(
        &self,
        map: &mut ContentMap,
        bytes: Bytes,
        unnamed: &mut AppendedContents,
    ) -> Result<(), ServiceError> {
        let (parts, pending) = self.write_content(bytes).await?;
        unnamed.contents.extend(&parts);
        unnamed.guards.push(pending);
        map.entries.push(ContentEntry { id: None, parts: parts.into() });
        Ok(())
    }
}

fn concatenated(first: &Bytes, second: &Bytes) -> Bytes {
    let mut all = BytesMut::with_capacity(first.len() + second.len());
    all.extend_from_slice(first);
    all.extend_from_slice(second);
    all.freeze()
}
