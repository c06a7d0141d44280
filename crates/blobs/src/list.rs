//! List Blobs, flat and by a delimiter.

use engine::{OwnedKey, Share};
use protocol::ServiceError;
use protocol::blob::ContainerName;
use protocol::blob::list_parameters::{BlobMarker, Include, ListBlobsParameters};
use protocol::common::{AccountName, DateTime};

use crate::api::{BlobEntry, BlobPage};
use crate::record::{BASE_ROW, BlobRecord, RecordKind, moment_row, read_moment_row};
use crate::service::{BlobService, damaged_row};
use crate::walk::{BlobWalker, WalkStep};

/// Records of one page, stored. A page that would have more is shorter.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl BlobService {
    pub async fn list_blobs(
        &self,
        account: &AccountName,
        container: &ContainerName,
        parameters: &ListBlobsParameters,
        share: Share,
    ) -> Result<BlobPage, ServiceError> {
        let inner = &self.inner;
        let since = inner.catalogue.ticket();
        let table = inner.find(account, container).await?;
        let prefix = parameters.prefix.as_deref().unwrap_or_default();
        let start = match (&parameters.marker, &parameters.start_from) {
            (Some(BlobMarker { name, moment }), _) => {
                let row = moment.map_or_else(String::new, |moment| moment_row(moment.ticks()));
                Some(OwnedKey { partition: name.as_str().into(), row: row.into() })
            }
            (None, Some(name)) => Some(OwnedKey { partition: name.as_str().into(), row: "".into() }),
            (None, None) => None,
        };
        let mut walker = ListWalker {
            prefix,
            delimiter: parameters.delimiter.as_deref(),
            include: parameters.include,
            count_max: parameters.page_count(),
            now: inner.now().await?,
            rehydrates_after: inner.rehydrates_after(),
            entries: Vec::new(),
            bytes: 0,
            is_damaged: false,
        };
        let ends = (start.as_ref(), parameters.end_before.as_deref());
        let next = inner.walk(table, ends, prefix, share, &mut walker).await?;
        if walker.is_damaged {
            return Err(damaged_row());
        }
        if !inner.catalogue.is_unchanged(account, container.as_str(), table, since).await? {
            return Err(protocol::ErrorCode::ContainerNotFound.into());
        }
        Ok(BlobPage { entries: walker.entries, next: next.map(marker) })
    }
}

/// Where the next page begins.
fn marker(next: OwnedKey) -> BlobMarker {
    begin_at(next.partition.into(), read_moment_row(&next.row).map(DateTime::from_ticks))
}

/// A page that begins with this snapshot or version, or with the blob itself. That is behind its snapshots, where the
/// end of time is: without a moment, they would all come again.
fn begin_at(name: String, moment: Option<DateTime>) -> BlobMarker {
    BlobMarker { name, moment: Some(moment.unwrap_or(DateTime::MAX)) }
}

impl BlobEntry {
    /// A page that begins with this entry.
    pub fn marker(&self) -> BlobMarker {
        match self {
            BlobEntry::Blob(blob) => {
                let version = blob.version.filter(|_| !blob.is_current_version);
                begin_at(blob.name.to_string(), blob.snapshot.or(version))
            }
            BlobEntry::Prefix(prefix) => BlobMarker { name: prefix.clone(), moment: None },
        }
    }
}

struct ListWalker<'p> {
    prefix: &'p str,
    delimiter: Option<&'p str>,
    include: Include,
    count_max: usize,
    now: DateTime,
    rehydrates_after: Option<u64>,
    entries: Vec<BlobEntry>,
    bytes: usize,
    is_damaged: bool,
}

impl ListWalker<'_> {
    fn is_shown(&self, record: &BlobRecord) -> bool {
        let is_expired = record.deleted.is_some_and(|deleted| deleted.until <= self.now.ticks());
        if is_expired || (record.deleted.is_some() && !self.include.has(Include::DELETED)) {
            return false;
        }
        match record.kind {
            RecordKind::Base => record.committed.is_some() || self.include.has(Include::UNCOMMITTED_BLOBS),
            RecordKind::Snapshot => self.include.has(Include::SNAPSHOTS),
            RecordKind::Version => {
                self.include.has(Include::VERSIONS) || self.include.has(Include::DELETED_WITH_VERSIONS)
            }
        }
    }

    /// The common beginning under which the delimiter puts a name.
    fn common_prefix<'n>(&self, name: &'n str) -> Option<&'n str> {
        let delimiter = self.delimiter?;
        let rest = name.get(self.prefix.len()..)?;
        let at = rest.find(delimiter)?;
        Some(&name[..self.prefix.len() + at + delimiter.len()])
    }
}

impl BlobWalker for ListWalker<'_> {
    fn see(&mut self, name: &str, row: &str, value: &[u8]) -> WalkStep {
        let is_base = row == BASE_ROW;
        let moment = read_moment_row(row);
        if !is_base && moment.is_none() {
            return WalkStep::PassBlob;
        }
        let shows_moments = self.include.has(Include::SNAPSHOTS)
            || self.include.has(Include::VERSIONS)
            || self.include.has(Include::DELETED_WITH_VERSIONS);
        if !is_base && !shows_moments {
            return WalkStep::PassMoments;
        }
        let Some(record) = BlobRecord::decode_borrowed(value) else {
            self.is_damaged = true;
            return WalkStep::Stop;
        };
        if !self.is_shown(&record) {
            return if is_base { WalkStep::PassBlob } else { WalkStep::Next };
        }
        self.bytes += value.len();
        if self.entries.len() >= self.count_max || (self.bytes > PAGE_BYTES_MAX && !self.entries.is_empty()) {
            return WalkStep::Stop;
        }
        if let Some(prefix) = self.common_prefix(name) {
            self.entries.push(BlobEntry::Prefix(prefix.to_owned()));
            return WalkStep::PassPrefix(prefix.to_owned());
        }
        let view = record.view(name, moment, self.now, self.rehydrates_after);
        self.entries.push(BlobEntry::Blob(Box::new(view)));
        if is_base { WalkStep::PassBlob } else { WalkStep::Next }
    }
}
