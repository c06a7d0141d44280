//! What is seen of a blob, and `EnumerationResults`: the answers to List Blobs and to Find Blobs by Tags.
//!
//! Promises: elements come in the service's order. Every name can be read back: one that XML cannot hold is
//! percent-encoded, in the versions that know this.

use crate::common::list::{Items, ROOT, write_head, write_metadata};
use crate::common::percent::push_escaped;
use crate::common::xml_write::{XmlWriter, is_xml_text};
use crate::common::{DateTime, Metadata};

use super::checksum::md5_to_header;
use super::copy::CopyState;
use super::etag::BlobETag;
use super::lease::Lease;
use super::list_parameters::{BlobMarker, FindBlobsParameters, FindMarker, Include, ListBlobsParameters};
use super::properties::{AccessTier, BlobType, HttpProperties, RehydratePriority};
use super::tags::Tags;
use super::versions;

/// Bytes of a blob without metadata and tags, and of what surrounds the list.
const BLOB_BYTES_USUAL: usize = 1024;
const CAPACITY_BYTES: usize = 2048;

/// A blob, a snapshot or a version, in a list or by itself.
#[derive(Clone, Debug)]
pub struct ListedBlob<'a> {
    pub name: &'a str,
    pub snapshot: Option<DateTime>,
    pub version: Option<DateTime>,
    pub is_current_version: bool,
    /// `None` for a blob that has only staged blocks.
    pub committed: Option<Committed<'a>>,
    pub blob_type: BlobType,
    pub tier: Option<ListedTier>,
    /// As it is now. Snapshots have none.
    pub lease: Option<Lease>,
    /// If it is softly deleted.
    pub deleted: Option<DeletedBlob>,
}

/// What a blob has once it was written.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    pub created: DateTime,
    pub last_modified: DateTime,
    pub etag: BlobETag,
    pub size: u64,
    pub http: &'a HttpProperties,
    /// Of page blobs.
    pub sequence_number: Option<u64>,
    /// How many blocks were appended, for append blobs. Lists do not show it.
    pub append_count: Option<u32>,
    pub is_sealed: bool,
    pub metadata: &'a Metadata,
    pub tags: &'a Tags,
    pub copy: Option<&'a CopyState>,
    pub key_sha256: Option<super::encryption::CustomerKeyHash>,
    pub encryption_scope: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedTier {
    pub tier: AccessTier,
    /// Whether nobody set it.
    pub is_inferred: bool,
    pub changed: Option<DateTime>,
    /// The tier to which an archived blob is on its way.
    pub rehydrating: Option<(AccessTier, RehydratePriority)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletedBlob {
    pub time: DateTime,
    pub remaining_days: u16,
}

impl ListedTier {
    /// `x-ms-smart-access-tier`: the tier that the smart one has chosen. All content is at hand here, so it is always
    /// the same.
    pub(crate) fn smart_tier(&self, version: &str) -> Option<AccessTier> {
        (self.tier == AccessTier::Smart && version >= versions::SMART_TIER).then_some(AccessTier::Hot)
    }

    /// `x-ms-archive-status`.
    pub(crate) fn archive_status(&self) -> Option<String> {
        let (target, _) = self.rehydrating?;
        Some(format!("rehydrate-pending-to-{}", target.as_str().to_ascii_lowercase()))
    }
}

pub struct BlobListWriter {
    items: Items,
    include: Include,
    /// The protocol version of the request.
    version: Box<str>,
    /// The URL of the container, which old versions show with each blob.
    url_base: Option<String>,
}

impl BlobListWriter {
    /// `base` is the account's URL without a trailing slash, and `entry_count` how many blobs and prefixes are to come.
    pub fn begin(
        base: &str,
        container: &str,
        parameters: &ListBlobsParameters,
        version: &str,
        entry_count: usize,
    ) -> BlobListWriter {
        let mut out = XmlWriter::begin_unmarked(CAPACITY_BYTES + entry_count * BLOB_BYTES_USUAL);
        let url_base = (version < versions::ENDPOINT_IN_LIST).then(|| [base, "/", container].concat());
        match &url_base {
            Some(url) => out.start_with(ROOT, "ContainerName", url),
            None => {
                let endpoint = [base, "/"].concat();
                let attributes = [("ServiceEndpoint", &*endpoint), ("ContainerName", container)];
                out.start_with_all(ROOT, &attributes);
            }
        }
        let (prefix, marker) = (parameters.prefix.as_deref(), parameters.marker_text.as_deref());
        write_head(prefix, marker, parameters.count_max, &mut out);
        if let Some(delimiter) = &parameters.delimiter {
            out.leaf("Delimiter", delimiter);
        }
        BlobListWriter {
            items: Items::new(out, "Blobs", CAPACITY_BYTES),
            include: parameters.include,
            version: version.into(),
            url_base,
        }
    }

    /// Adds a blob, unless `admit` refuses an answer of that many bytes. Tells whether it did.
    pub fn push(&mut self, blob: &ListedBlob<'_>, admit: impl FnOnce(usize) -> bool) -> bool {
        let BlobListWriter { items, include, version, url_base } = self;
        let write = |out: &mut XmlWriter| write_blob(blob, *include, version, url_base.as_deref(), out);
        items.push(write, admit)
    }

    /// Adds the common beginning of names, with the delimiter at its end.
    pub fn push_prefix(&mut self, prefix: &str, admit: impl FnOnce(usize) -> bool) -> bool {
        let version = &self.version;
        let write = |out: &mut XmlWriter| {
            out.start("BlobPrefix");
            write_name(prefix, version, out);
            out.end("BlobPrefix");
        };
        self.items.push(write, admit)
    }

    /// `next` is where the next page begins, if there is one.
    pub fn finish(self, next: Option<&BlobMarker>) -> Vec<u8> {
        self.items.finish(next.map(BlobMarker::write).as_deref())
    }
}

fn write_name(name: &str, version: &str, out: &mut XmlWriter) {
    if version < versions::ENCODED_NAMES || is_xml_text(name) {
        return out.leaf("Name", name);
    }
    let mut encoded = String::with_capacity(name.len() * 2);
    push_escaped(name, &mut encoded);
    out.start_with("Name", "Encoded", "true");
    out.text(&encoded);
    out.end("Name");
}

fn write_blob(
    blob: &ListedBlob<'_>,
    include: Include,
    version: &str,
    url_base: Option<&str>,
    out: &mut XmlWriter,
) {
    out.start("Blob");
    write_name(blob.name, version, out);
    if blob.deleted.is_some() {
        out.leaf("Deleted", "true");
    }
    if let Some(snapshot) = blob.snapshot {
        out.leaf("Snapshot", &snapshot.to_padded());
    }
    if let Some(written) = blob.version {
        out.leaf("VersionId", &written.to_padded());
        if blob.is_current_version {
            out.leaf("IsCurrentVersion", "true");
        }
    }
    if let Some(base) = url_base {
        out.leaf("Url", &[base, "/", blob.name].concat());
    }
    out.start("Properties");
    write_properties(blob, include, version, out);
    out.end("Properties");
    if let Some(committed) = &blob.committed {
        if include.has(Include::METADATA) {
            write_metadata(committed.metadata, out);
        }
        if include.has(Include::TAGS) && !committed.tags.is_empty() {
            committed.tags.write(|_| true, out);
        }
    }
    out.empty("OrMetadata");
    out.end("Blob");
}

fn write_properties(blob: &ListedBlob<'_>, include: Include, version: &str, out: &mut XmlWriter) {
    match &blob.committed {
        Some(committed) => {
            out.http_date("Creation-Time", committed.created);
            out.http_date("Last-Modified", committed.last_modified);
            out.leaf("Etag", &committed.etag.to_string());
            out.number("Content-Length", committed.size);
            write_http(committed.http, out);
            if let Some(number) = committed.sequence_number {
                out.number("x-ms-blob-sequence-number", number);
            }
        }
        None => out.number("Content-Length", 0),
    }
    out.leaf("BlobType", blob.blob_type.as_str());
    if let Some(tier) = &blob.tier {
        out.leaf("AccessTier", tier.tier.as_str());
        if tier.is_inferred {
            out.leaf("AccessTierInferred", "true");
        }
        if let Some(chosen) = tier.smart_tier(version) {
            out.leaf("SmartAccessTier", chosen.as_str());
        }
    }
    write_lease(blob, out);
    if let Some(copy) =
        blob.committed.and_then(|committed| committed.copy).filter(|_| include.has(Include::COPY))
    {
        write_copy(copy, out);
    }
    out.leaf("ServerEncrypted", if blob.committed.is_some() { "true" } else { "false" });
    if let Some(committed) = &blob.committed {
        if let Some(hash) = committed.key_sha256 {
            out.leaf("CustomerProvidedKeySha256", &hash.to_header());
        }
        if let Some(scope) = committed.encryption_scope {
            out.leaf("EncryptionScope", scope);
        }
    }
    if let Some(tier) = &blob.tier {
        if let Some(changed) = tier.changed {
            out.http_date("AccessTierChangeTime", changed);
        }
        if let Some(status) = tier.archive_status() {
            out.leaf("ArchiveStatus", &status);
        }
        if let Some((_, priority)) = tier.rehydrating {
            out.leaf("RehydratePriority", priority.as_str());
        }
    }
    if let Some(committed) = &blob.committed {
        if !committed.tags.is_empty() {
            out.number("TagCount", committed.tags.items().len() as u64);
        }
        if committed.is_sealed {
            out.leaf("Sealed", "true");
        }
    }
    if let Some(deleted) = &blob.deleted {
        out.http_date("DeletedTime", deleted.time);
        out.number("RemainingRetentionDays", u64::from(deleted.remaining_days));
    }
}

/// What is not set is an empty element.
fn write_http(http: &HttpProperties, out: &mut XmlWriter) {
    let text = |property: &Option<Box<str>>| property.as_deref().unwrap_or_default().to_owned();
    out.leaf("Content-Type", &text(&http.content_type));
    out.leaf("Content-Encoding", &text(&http.content_encoding));
    out.leaf("Content-Language", &text(&http.content_language));
    // Nobody can set it, and the service does not compute it.
    out.empty("Content-CRC64");
    out.leaf("Content-MD5", &http.content_md5.as_ref().map(md5_to_header).unwrap_or_default());
    out.leaf("Cache-Control", &text(&http.cache_control));
    out.leaf("Content-Disposition", &text(&http.content_disposition));
}

fn write_lease(blob: &ListedBlob<'_>, out: &mut XmlWriter) {
    if blob.deleted.is_some() {
        return out.empty("LeaseStatus");
    }
    let Some(lease) = blob.lease else { return };
    out.leaf("LeaseStatus", lease.status());
    out.leaf("LeaseState", lease.state());
    if let Some(duration) = lease.duration() {
        out.leaf("LeaseDuration", duration);
    }
}

fn write_copy(copy: &CopyState, out: &mut XmlWriter) {
    out.leaf("CopyId", &copy.id.to_string());
    out.leaf("CopySource", &copy.source);
    out.leaf("CopyStatus", copy.status.as_str());
    out.leaf("CopyProgress", &copy.progress());
    if let Some(completed) = copy.completed {
        out.http_date("CopyCompletionTime", completed);
    }
    if let Some(description) = &copy.description {
        out.leaf("CopyStatusDescription", description);
    }
}

/// Writes the blobs that Find found.
pub struct FoundBlobsWriter<'p> {
    items: Items,
    parameters: &'p FindBlobsParameters,
}

impl<'p> FoundBlobsWriter<'p> {
    pub fn begin(base: &str, parameters: &'p FindBlobsParameters) -> FoundBlobsWriter<'p> {
        let mut out = XmlWriter::begin_unmarked(CAPACITY_BYTES);
        out.start_with(ROOT, "ServiceEndpoint", &[base, "/"].concat());
        if let Some(marker) = &parameters.marker_text {
            out.leaf("Marker", marker);
        }
        out.leaf("Where", parameters.expression.text());
        if let Some(count_max) = parameters.count_max {
            out.number("MaxResults", count_max as u64);
        }
        FoundBlobsWriter { items: Items::new(out, "Blobs", CAPACITY_BYTES), parameters }
    }

    /// Adds a blob with those of its tags that the expression names, unless `admit` refuses an answer of that many bytes.
    pub fn push(
        &mut self,
        container: &str,
        blob: &str,
        tags: &Tags,
        admit: impl FnOnce(usize) -> bool,
    ) -> bool {
        let expression = &self.parameters.expression;
        let write = |out: &mut XmlWriter| {
            out.start("Blob");
            write_name(blob, versions::ENCODED_NAMES, out);
            out.leaf("ContainerName", container);
            tags.write(|key| expression.names(key), out);
            out.end("Blob");
        };
        self.items.push(write, admit)
    }

    pub fn finish(self, next: Option<&FindMarker>) -> Vec<u8> {
        self.items.finish(next.map(FindMarker::write).as_deref())
    }
}

#[cfg(test)]
pub(super) mod tests;
