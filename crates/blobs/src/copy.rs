//! Copies between blobs of this server.
//!
//! A copy of a block or append blob takes over the references of its source: it costs the same whatever the size. The commit
//! checks that the source's row is still the same, and marks it as one that shares its contents. So at every moment some row
//! names them, and no sweep can find them unnamed. The segments of a page blob are copied as rows of a new line, some at a time and
//! each time with the same check, and seen when the destination's row is committed. A copy that ends before that is never seen.

use std::collections::HashSet;
use std::sync::Arc;

use engine::env::ticks;
use engine::{Commit, Effect, Expect, Op};
use protocol::blob::checksum::{Checksums, ContentDigest};
use protocol::blob::conditions::{ConditionPurpose, Conditions};
use protocol::blob::copy::{CopyState, CopyStatus};
use protocol::blob::encryption::Encryption;
use protocol::blob::identifier::Revision;
use protocol::blob::limits::SYNC_COPY_BYTES_MAX;
use protocol::blob::properties::BlobType;
use protocol::common::DateTime;
use protocol::common::guid::Guid;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, Copied, CopyFrom, CopyRequest, CopyTags, NewBlob, Preconditions};
use crate::base::{BlobTarget, FoundBase, Tries, check_create, put_base, put_op};
use crate::containers::new_guid;
use crate::content::ContentMap;
use crate::epochs::{Epochs, segment_row};
use crate::finish::Unstoppable;
use crate::page_rows::{page_epochs, segments_of};
use crate::put::{NewContent, new_record, stamp_of};
use crate::read::FoundRecord;
use crate::record::{BASE_ROW, BlobContent};
use crate::service::{ATTEMPT_COUNT_MAX, BlobCore, BlobService};
use crate::stream::{OpenBlob, StreamSource};
use crate::sweep::COPY_TIME_MAX;

/// Segments that one commit writes.
const SEGMENT_COUNT_MAX: usize = 50;

/// A source, owned so that a task can finish what a request began.
struct CopySide {
    target: BlobTarget,
    revision: Revision,
    conditions: Conditions,
    encryption: Encryption,
}

impl BlobService {
    /// Copy Blob and Copy Blob From URL. The copy is complete when this returns.
    pub async fn copy_blob(
        &self,
        source: CopyFrom<'_>,
        place: BlobPlace<'_>,
        request: CopyRequest,
        pre: Preconditions,
    ) -> Result<Copied, ServiceError> {
        let target = self.inner.target(place).await?;
        let source = CopySide {
            target: self.inner.target(source.place).await.map_err(without_container)?,
            revision: source.revision,
            conditions: source.conditions,
            encryption: source.encryption,
        };
        let inner = self.inner.clone();
        Unstoppable::new(async move { inner.copy(&source, &target, &request, &pre).await }).await
    }

    /// For a copy whose source is elsewhere.
    pub fn new_copy_id(&self) -> Guid {
        new_guid()
    }

    /// No copy is ever pending, so this is always a refusal.
    pub async fn abort_copy(
        &self,
        place: BlobPlace<'_>,
        _copy_id: Guid,
        lease: Option<Guid>,
    ) -> Result<(), ServiceError> {
        let target = self.inner.target(place).await?;
        let found = self.inner.read_base(&target).await?;
        let pre = Preconditions { lease, ..Preconditions::default() };
        let lease_use = protocol::blob::lease::LeaseUse::Write;
        crate::base::check_change(&found, &pre, lease_use, self.inner.now().await?)?;
        Err(ErrorCode::NoPendingCopyOperation.into())
    }
}

/// A source in a container that is not there is missing like any other. `ContainerNotFound` is about the destination.
fn without_container(error: ServiceError) -> ServiceError {
    match error.code {
        ErrorCode::ContainerNotFound => ErrorCode::BlobNotFound.into(),
        _ => error,
    }
}

impl BlobCore {
    async fn copy(
        self: &Arc<BlobCore>,
        source: &CopySide,
        target: &BlobTarget,
        request: &CopyRequest,
        pre: &Preconditions,
    ) -> Result<Copied, ServiceError> {
        let copy_id = new_guid();
        let mut tries = Tries::default();
        loop {
            let _turn = tries.begin(self, target).await?;
            let from = self.find_record(&source.target, source.revision).await?;
            let found = self.read_base(target).await?;
            let moment = self.next_moment().await?;
            self.check_source(&from, source, request, moment)?;
            let committed = from.committed()?;
            let lease = check_create(&found, pre, committed.blob_type, moment)?;
            lease.check_copy_destination()?;
            let checksums = match request.is_synchronous {
                true => self.digest(&from, source, request).await?,
                false => Checksums::default(),
            };
            let mut content = NewContent {
                blob_type: committed.blob_type,
                size: committed.size,
                content: committed.content.clone(),
                sequence_number: committed.sequence_number,
                append_count: committed.append_count,
                is_sealed: committed.blob_type == BlobType::Append && request.seal,
                is_shared: true,
            };
            let is_same_row = from.row == BASE_ROW.into()
                && source.target.table == target.table
                && source.target.blob == target.blob;
            if is_same_row && found.expect != Expect::Exactly(from.version) {
                // It was replaced between the two looks: what the first one saw may be forgotten already.
                continue;
            }
            match &mut content.content {
                // What is kept of the destination sees the same segments.
                BlobContent::Pages(epochs) if is_same_row => epochs.advance(),
                BlobContent::Pages(epochs) => {
                    *epochs = Epochs::begin(moment);
                    let epochs = *epochs;
                    if !self.copy_segments(&from, source, target, epochs).await? {
                        continue;
                    }
                }
                BlobContent::Map(_) => {}
            }
            let new = NewBlob {
                http: committed.http.clone(),
                metadata: request.metadata.clone().unwrap_or_else(|| committed.metadata.clone()),
                tags: match &request.tags {
                    CopyTags::Replace(tags) => tags.clone(),
                    CopyTags::Copy => committed.tags.clone(),
                },
                tier: request.tier,
                copy: Some(CopyState {
                    id: copy_id,
                    source: request.source_url.clone(),
                    status: CopyStatus::Success,
                    copied: committed.size,
                    total: committed.size,
                    completed: Some(moment),
                    description: None,
                }),
            };
            let (keeping, retired) = self.replace(target, &found, moment).await?;
            let record = new_record(&found, &new, content, pre, lease, keeping, moment);
            let mut ops = vec![put_base(&found, &record)];
            ops.extend(retired.op);
            let commits = self.with_source(&from, source, target, &found, ops, is_same_row);
            if self.try_commits(target, commits).await? {
                // What a blob is copied onto itself for is not its content.
                let gone = retired.gone.filter(|_| !is_same_row);
                self.after_replacing(target, &found, gone, HashSet::new()).await;
                return Ok(Copied { stamp: stamp_of(&record), copy_id, checksums });
            }
        }
    }

    fn check_source(
        &self,
        from: &FoundRecord,
        source: &CopySide,
        request: &CopyRequest,
        now: DateTime,
    ) -> Result<(), ServiceError> {
        let committed = from.committed()?;
        source.conditions.check(ConditionPurpose::CopySource, Some(&committed.state()))?;
        source.encryption.check(committed.key)?;
        if committed.tier.at(now, self.rehydrates_after()).is_archive() && request.tier.is_none() {
            return Err(ErrorCode::BlobArchived.into());
        }
        if request.is_synchronous {
            if committed.blob_type != BlobType::Block {
                return Err(ErrorCode::InvalidSourceBlobType.into());
            }
            if committed.size > SYNC_COPY_BYTES_MAX {
                return Err(ErrorCode::CopySourceConflict.into());
            }
        }
        Ok(())
    }

    /// The checksums of a source, which are compared with those that the caller expects.
    async fn digest(
        self: &Arc<BlobCore>,
        from: &FoundRecord,
        source: &CopySide,
        request: &CopyRequest,
    ) -> Result<Checksums, ServiceError> {
        // The row was read before this pin, so it is read again behind it.
        let pin = self.contents.pin();
        let again = self.find_record(&source.target, source.revision).await?;
        let committed = again.committed()?;
        if committed.modified != from.committed()?.modified {
            return Err(ErrorCode::ServerBusy.into());
        }
        let map: ContentMap = committed.map().cloned().ok_or(ErrorCode::InvalidSourceBlobType)?;
        let size = committed.size;
        let view = self.view(&again, source.target.name(), self.now().await?);
        let open = OpenBlob { view, inner: self.clone(), pin, source: StreamSource::Map(map) };
        let mut stream = open.stream(0..size);
        let mut digest = ContentDigest::new(request.expected.md5.is_some(), true);
        while let Some(piece) = stream.next().await {
            digest.update(&piece?);
        }
        let checksums = digest.finish();
        request.expected.check(&checksums)?;
        Ok(checksums)
    }

    /// Adds to a commit that the source's row is still the same, and from now on one that shares its contents.
    fn with_source(
        &self,
        from: &FoundRecord,
        source: &CopySide,
        target: &BlobTarget,
        found: &FoundBase,
        ops: Vec<Op>,
        is_same_row: bool,
    ) -> Vec<Commit> {
        debug_assert!(!is_same_row || found.record.is_some());
        let has_contents = from
            .record
            .live()
            .and_then(|live| live.map())
            .is_some_and(|map| map.own_contents().next().is_some());
        if is_same_row || !has_contents {
            return vec![target.commit(ops)];
        }
        let mut shared = from.record.clone();
        let was_shared = match &mut shared.committed {
            Some(committed) => std::mem::replace(&mut committed.is_shared, true),
            None => true,
        };
        let expect = Expect::Exactly(from.version);
        let op = match was_shared {
            true => Op { row: from.row.clone(), expect, effect: Effect::CheckOnly },
            false => put_op(from.row.clone(), expect, shared.encode()),
        };
        together(target, ops, &source.target, op)
    }

    /// Copies the segments of a page blob to rows of a new line, which nobody sees yet. `false` if the source has changed
    /// meanwhile.
    async fn copy_segments(
        &self,
        from: &FoundRecord,
        source: &CopySide,
        target: &BlobTarget,
        epochs: Epochs,
    ) -> Result<bool, ServiceError> {
        let committed = from.committed()?;
        let all = segments_of(&(0..committed.size));
        let (mut next, mut try_count) = (all.start, 0);
        while next < all.end {
            // A sweep removes older rows that nobody sees. Half of that time leaves enough for the rest of the copy.
            let is_late = self.now().await?.ticks() > epochs.line.begun + ticks(COPY_TIME_MAX) / 2;
            if is_late || try_count == ATTEMPT_COUNT_MAX {
                return Err(ErrorCode::ServerBusy.into());
            }
            let (table, name) = (source.target.table, source.target.name());
            let view = self.page_view(table, name, &from.row, next..all.end).await?;
            let live = view.record.as_ref().and_then(|record| record.live());
            let is_same = live.is_some_and(|live| live.modified == committed.modified)
                && view.record.as_ref().and_then(page_epochs).map(|found| found.line)
                    == page_epochs(&from.record).map(|found| found.line);
            let Some(version) = view.version.filter(|_| is_same) else { return Ok(false) };
            let ops: Vec<Op> = view
                .segments
                .iter()
                .filter(|(_, segment)| !segment.extents.is_empty())
                .map(|(index, segment)| put_op(segment_row(*index, epochs), Expect::Any, segment.encode()))
                .collect();
            // Every write of pages changes the source's row. So while it is the same, the source names these contents, and
            // no sweep can find them unnamed.
            let check =
                Op { row: from.row.clone(), expect: Expect::Exactly(version), effect: Effect::CheckOnly };
            let mut is_done = true;
            for ops in ops.chunks(SEGMENT_COUNT_MAX) {
                let commits = together(target, ops.to_vec(), &source.target, check.clone());
                is_done = self.try_commits(target, commits).await?;
                if !is_done {
                    break;
                }
            }
            // The row may have changed without the pages, as when a lease is renewed.
            (next, try_count) = if is_done { (view.covered.end, 0) } else { (next, try_count + 1) };
        }
        Ok(true)
    }
}

/// Changes of one blob and a change of another, perhaps the same one, which happen together.
fn together(target: &BlobTarget, mut ops: Vec<Op>, other: &BlobTarget, op: Op) -> Vec<Commit> {
    if other.table == target.table && other.blob.as_str() == target.blob.as_str() {
        ops.push(op);
        return vec![target.commit(ops)];
    }
    vec![target.commit(ops), other.commit(vec![op])]
}
