//! Reads of blobs, snapshots and versions.

use std::sync::Arc;

use contents::Pin;
use engine::env::ticks;
use protocol::blob::Tags;
use protocol::blob::conditions::ConditionPurpose;
use protocol::blob::identifier::Revision;
use protocol::blob::lease::{Leasable, LeaseUse};
use protocol::blob::range::ByteRange;
use protocol::common::DateTime;
use protocol::{ErrorCode, ServiceError};

use crate::api::{BlobPlace, BlobView, CopyFrom, Preconditions};
use crate::base::BlobTarget;
use crate::page_rows::{PagePlan, segments_of};
use crate::record::{BASE_ROW, BlobContent, BlobRecord, CommittedBlob, RecordKind, moment_row};
use crate::service::{BlobCore, BlobService};
use crate::stream::{OpenBlob, StreamSource};

/// A record that a read is about.
pub(crate) struct FoundRecord {
    pub(crate) record: BlobRecord,
    /// Of its row.
    pub(crate) row: Box<str>,
    pub(crate) moment: Option<u64>,
    pub(crate) version: engine::Version,
}

impl FoundRecord {
    pub(crate) fn committed(&self) -> Result<&CommittedBlob, ServiceError> {
        Ok(self.record.live().ok_or(ErrorCode::BlobNotFound)?)
    }
}

impl BlobService {
    /// Get Blob Properties, Get Blob Metadata.
    pub async fn blob_properties(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        pre: &Preconditions,
    ) -> Result<BlobView, ServiceError> {
        let inner = &self.inner;
        let target = inner.target(place).await?;
        let found = inner.find_record(&target, revision).await?;
        let now = inner.now().await?;
        check_read(&found, pre, now)?;
        pre.encryption.check(found.committed()?.key)?;
        Ok(inner.view(&found, target.name(), now))
    }

    /// Get Blob: everything that is checked before bytes flow. `range` is the one that will be read, if it is known.
    pub async fn open_blob(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        range: Option<ByteRange>,
        pre: &Preconditions,
    ) -> Result<OpenBlob, ServiceError> {
        let target = self.inner.target(place).await?;
        self.inner.open(&target, revision, range, |found, now| check_read(found, pre, now), pre).await
    }

    /// The source of an operation whose name ends with From URL. Give its stream to the operation as an
    /// [`Upload`](crate::Upload).
    pub async fn open_source(
        &self,
        source: &CopyFrom<'_>,
        range: Option<ByteRange>,
    ) -> Result<OpenBlob, ServiceError> {
        let target = self.inner.target(source.place).await?;
        let check = |found: &FoundRecord, _| {
            let state = found.committed()?.state();
            Ok(source.conditions.check(ConditionPurpose::UrlSource, Some(&state))?)
        };
        let pre = Preconditions { encryption: source.encryption.clone(), ..Preconditions::default() };
        self.inner.open(&target, source.revision, range, check, &pre).await
    }

    /// Whether there is such a blob.
    pub async fn exists(&self, place: BlobPlace<'_>) -> Result<bool, ServiceError> {
        let target = self.inner.target(place).await?;
        Ok(self.inner.read_base(&target).await?.live().is_some())
    }

    pub async fn tags(
        &self,
        place: BlobPlace<'_>,
        revision: Revision,
        pre: &Preconditions,
    ) -> Result<Tags, ServiceError> {
        let target = self.inner.target(place).await?;
        let found = self.inner.find_record(&target, revision).await?;
        check_read(&found, pre, self.inner.now().await?)?;
        Ok(found.committed()?.tags.clone())
    }
}

/// Checks a read: lease, then conditions.
pub(crate) fn check_read(
    found: &FoundRecord,
    pre: &Preconditions,
    now: DateTime,
) -> Result<(), ServiceError> {
    let committed = found.committed()?;
    if found.record.kind == RecordKind::Base {
        found.record.lease.at(now).check_use(LeaseUse::Read, pre.lease, Leasable::Blob)?;
    }
    Ok(pre.conditions.check(ConditionPurpose::Read, Some(&committed.state()))?)
}

impl BlobCore {
    /// The record of a blob, snapshot or version that a caller can see.
    pub(crate) async fn find_record(
        &self,
        target: &BlobTarget,
        revision: Revision,
    ) -> Result<FoundRecord, ServiceError> {
        let found = self.find_any_record(target, revision).await?;
        found.filter(|found| found.record.live().is_some()).ok_or_else(|| ErrorCode::BlobNotFound.into())
    }

    /// The same, also if it is deleted softly or has only staged blocks.
    pub(crate) async fn find_any_record(
        &self,
        target: &BlobTarget,
        revision: Revision,
    ) -> Result<Option<FoundRecord>, ServiceError> {
        let (moment, kind) = match revision {
            Revision::Base => (None, RecordKind::Base),
            Revision::Snapshot(taken) => (Some(taken.ticks()), RecordKind::Snapshot),
            Revision::Version(written) => (Some(written.ticks()), RecordKind::Version),
        };
        let row = moment.map_or_else(|| BASE_ROW.to_owned(), moment_row);
        let found = self.read_record(target.table, target.name(), &row).await?;
        if let Some((record, version)) = found.filter(|(record, _)| record.kind == kind) {
            return Ok(Some(FoundRecord { record, row: row.into(), moment, version }));
        }
        if kind != RecordKind::Version {
            return Ok(None);
        }
        // The current version is the blob itself.
        let base = self.read_record(target.table, target.name(), BASE_ROW).await?;
        let is_meant = |record: &BlobRecord| record.live().is_some_and(|live| live.version == moment);
        let base = base.filter(|(record, _)| is_meant(record));
        Ok(base.map(|(record, version)| FoundRecord { record, row: BASE_ROW.into(), moment: None, version }))
    }

    pub(crate) fn view(&self, found: &FoundRecord, name: &str, now: DateTime) -> BlobView {
        found.record.view(name, found.moment, now, self.rehydrates_after())
    }

    /// In ticks.
    pub(crate) fn rehydrates_after(&self) -> Option<u64> {
        self.options.rehydrates_after.map(ticks)
    }

    pub(crate) async fn open(
        self: &Arc<BlobCore>,
        target: &BlobTarget,
        revision: Revision,
        range: Option<ByteRange>,
        check: impl Fn(&FoundRecord, DateTime) -> Result<(), ServiceError>,
        pre: &Preconditions,
    ) -> Result<OpenBlob, ServiceError> {
        // Before the row is read: then nothing that it names can be forgotten until the stream ends.
        let pin: Pin = self.contents.pin();
        let mut found = self.find_record(target, revision).await?;
        let now = self.now().await?;
        check(&found, now)?;
        let committed = found.committed()?;
        pre.encryption.check(committed.key)?;
        if committed.tier.at(now, self.rehydrates_after()).is_archive() {
            return Err(ErrorCode::BlobArchived.into());
        }
        let source = match committed.content {
            BlobContent::Pages(_) => {
                let range = match range {
                    None => 0..committed.size,
                    Some(range) => range.within(committed.size).unwrap_or(0..0),
                };
                let view =
                    self.page_view(target.table, target.name(), &found.row, segments_of(&range)).await?;
                // The record as it was when the pages were read.
                found.record = view.record.clone().ok_or(ErrorCode::BlobNotFound)?;
                check(&found, now)?;
                let BlobContent::Pages(epochs) = found.committed()?.content else {
                    return Err(ErrorCode::ServerBusy.into());
                };
                StreamSource::Pages(Box::new(PagePlan {
                    table: target.table,
                    blob: target.name().into(),
                    row: found.row.clone(),
                    line: epochs.line,
                    ready: view,
                }))
            }
            BlobContent::Map(_) => {
                match found.record.committed.as_mut().map(|committed| &mut committed.content) {
                    Some(BlobContent::Map(map)) => StreamSource::Map(std::mem::take(map)),
                    _ => return Err(ErrorCode::BlobNotFound.into()),
                }
            }
        };
        let view = self.view(&found, target.name(), now);
        Ok(OpenBlob { view, inner: self.clone(), pin, source })
    }
}
