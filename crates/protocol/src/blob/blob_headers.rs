//! The headers with which Get Blob and Get Blob Properties show a blob.
//!
//! Leaves to others: `Content-Length`, `Content-Range` and the checksum of a range, which depend on what is sent, and
//! the headers that every answer has.

use crate::common::metadata::HEADER_PREFIX;

use super::blob_list::{Committed, ListedBlob};
use super::checksum::md5_to_header;
use super::copy::CopyState;
use super::versions;

/// What the answer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Get Blob Properties.
    Properties,
    /// Get Blob without a range.
    Whole,
    /// Get Blob with a range.
    Range,
}

/// Calls `put` with the name, in lower case, and the value of each header. Names of metadata keep their case.
pub fn write_blob_headers(
    blob: &ListedBlob<'_>,
    shown: Shown,
    version: &str,
    mut put: impl FnMut(&str, &str),
) {
    let Some(committed) = &blob.committed else { return };
    put("accept-ranges", "bytes");
    write_http(committed, shown, &mut put);
    put("etag", &committed.etag.quoted());
    put("last-modified", &committed.last_modified.to_http());
    put("x-ms-creation-time", &committed.created.to_http());
    put("x-ms-blob-type", blob.blob_type.as_str());
    if shown == Shown::Properties || version >= versions::TIER_ON_GET {
        write_tier(blob, version, &mut put);
    }
    if let Some(lease) = blob.lease {
        put("x-ms-lease-state", lease.state());
        put("x-ms-lease-status", lease.status());
        if let Some(duration) = lease.duration() {
            put("x-ms-lease-duration", duration);
        }
    }
    put("x-ms-server-encrypted", "true");
    if let Some(hash) = committed.key_sha256 {
        put(super::encryption::KEY_SHA256, &hash.to_header());
    }
    if let Some(scope) = committed.encryption_scope {
        put(super::encryption::SCOPE, scope);
    }
    if !committed.tags.is_empty() {
        put("x-ms-tag-count", &committed.tags.items().len().to_string());
    }
    if let Some(number) = committed.sequence_number {
        put("x-ms-blob-sequence-number", &number.to_string());
    }
    if let Some(count) = committed.append_count {
        put("x-ms-blob-committed-block-count", &count.to_string());
    }
    if committed.is_sealed {
        put("x-ms-blob-sealed", "true");
    }
    if let Some(written) = blob.version {
        put("x-ms-version-id", &written.to_padded());
        if blob.is_current_version {
            put("x-ms-is-current-version", "true");
        }
    }
    if let Some(copy) = committed.copy {
        write_copy(copy, &mut put);
    }
    for (name, value) in committed.metadata.items() {
        put(&[HEADER_PREFIX, name].concat(), value);
    }
}

fn write_http(committed: &Committed<'_>, shown: Shown, put: &mut impl FnMut(&str, &str)) {
    let http = committed.http;
    for (name, value) in [
        ("content-type", &http.content_type),
        ("content-encoding", &http.content_encoding),
        ("content-language", &http.content_language),
        ("content-disposition", &http.content_disposition),
        ("cache-control", &http.cache_control),
    ] {
        if let Some(value) = value {
            put(name, value);
        }
    }
    if let Some(md5) = &http.content_md5 {
        // With a range, the plain header is about the range.
        let name = if shown == Shown::Range { "x-ms-blob-content-md5" } else { "content-md5" };
        put(name, &md5_to_header(md5));
    }
}

fn write_tier(blob: &ListedBlob<'_>, version: &str, put: &mut impl FnMut(&str, &str)) {
    let Some(tier) = &blob.tier else { return };
    put("x-ms-access-tier", tier.tier.as_str());
    if tier.is_inferred {
        put("x-ms-access-tier-inferred", "true");
    }
    if let Some(chosen) = tier.smart_tier(version) {
        put("x-ms-smart-access-tier", chosen.as_str());
    }
    if let Some(changed) = tier.changed {
        put("x-ms-access-tier-change-time", &changed.to_http());
    }
    if let Some(status) = tier.archive_status() {
        put("x-ms-archive-status", &status);
    }
    if let Some((_, priority)) = tier.rehydrating {
        put(super::properties::REHYDRATE_PRIORITY, priority.as_str());
    }
}

fn write_copy(copy: &CopyState, put: &mut impl FnMut(&str, &str)) {
    put("x-ms-copy-id", &copy.id.to_string());
    put("x-ms-copy-source", &copy.source);
    put("x-ms-copy-status", copy.status.as_str());
    put("x-ms-copy-progress", &copy.progress());
    if let Some(completed) = copy.completed {
        put("x-ms-copy-completion-time", &completed.to_http());
    }
    if let Some(description) = &copy.description {
        put("x-ms-copy-status-description", description);
    }
}

#[cfg(test)]
mod tests {
    use super::super::blob_list::ListedTier;
    use super::super::blob_list::tests::Stored;
    use super::super::lease::{Lease, LeaseDuration};
    use super::super::properties::{AccessTier, BlobType, RehydratePriority};
    use super::*;
    use crate::common::DateTime;
    use crate::common::guid::Guid;

    fn headers(blob: &ListedBlob<'_>, shown: Shown, version: &str) -> Vec<String> {
        let mut headers = Vec::new();
        write_blob_headers(blob, shown, version, |name, value| headers.push(format!("{name}: {value}")));
        headers.sort_unstable();
        headers
    }

    /// The example of section 16.2, with metadata.
    #[test]
    fn properties_are_those_of_the_service() {
        let stored = Stored::new();
        let mut blob = stored.blob("a", &stored.tags);
        if let Some(committed) = &mut blob.committed {
            committed.copy = None;
        }
        let common = [
            "accept-ranges: bytes",
            "content-md5: sQqNsWTgdUEFt6mb5y4/5Q==",
            "content-type: application/octet-stream",
            "etag: \"0x8DB00BD621178BB\"",
            "last-modified: Fri, 27 Jan 2023 23:22:39 GMT",
            "x-ms-blob-type: BlockBlob",
            "x-ms-creation-time: Fri, 27 Jan 2023 23:22:39 GMT",
            "x-ms-lease-state: available",
            "x-ms-lease-status: unlocked",
            "x-ms-meta-Color: red",
            "x-ms-server-encrypted: true",
            "x-ms-tag-count: 2",
        ];
        let tier = ["x-ms-access-tier: Hot", "x-ms-access-tier-inferred: true"];
        let mut with_tier: Vec<&str> = common.iter().chain(&tier).copied().collect();
        with_tier.sort_unstable();
        assert_eq!(headers(&blob, Shown::Properties, "2021-12-02"), with_tier);
        // Get Blob shows the tier only in new versions, section 16.3.
        assert_eq!(headers(&blob, Shown::Whole, "2021-12-02"), common);
        assert_eq!(headers(&blob, Shown::Whole, "2026-10-06"), with_tier);
        let of_range = headers(&blob, Shown::Range, "2021-12-02");
        assert!(of_range.contains(&"x-ms-blob-content-md5: sQqNsWTgdUEFt6mb5y4/5Q==".to_owned()));
        assert!(!of_range.iter().any(|header| header.starts_with("content-md5")));
    }

    #[test]
    fn what_applies_is_shown() {
        let stored = Stored::new();
        let mut blob = stored.blob("a", &stored.tags);
        blob.blob_type = BlobType::Append;
        blob.lease =
            Some(Lease::Leased { id: Guid([1; 16]), duration: LeaseDuration::Fixed(15), until: None });
        blob.tier = Some(ListedTier {
            tier: AccessTier::Archive,
            is_inferred: false,
            changed: DateTime::parse("2023-01-28T00:00:00Z"),
            rehydrating: Some((AccessTier::Hot, RehydratePriority::Standard)),
        });
        if let Some(committed) = &mut blob.committed {
            committed.append_count = Some(3);
            committed.is_sealed = true;
        }
        let found = headers(&blob, Shown::Properties, "2021-12-02");
        for expected in [
            "x-ms-access-tier: Archive",
            "x-ms-access-tier-change-time: Sat, 28 Jan 2023 00:00:00 GMT",
            "x-ms-archive-status: rehydrate-pending-to-hot",
            "x-ms-rehydrate-priority: Standard",
            "x-ms-lease-duration: fixed",
            "x-ms-blob-committed-block-count: 3",
            "x-ms-blob-sealed: true",
            // Section 20.1.
            "x-ms-copy-id: 5436d360-5e64-4683-a10e-973b37b1dd9e",
            "x-ms-copy-source: http://127.0.0.1:10000/acct/mycontainer/orig",
            "x-ms-copy-status: success",
            "x-ms-copy-progress: 1024/1024",
            "x-ms-copy-completion-time: Fri, 14 Jun 2019 17:37:51 GMT",
        ] {
            assert!(found.iter().any(|header| header == expected), "{expected} is not in {found:?}");
        }
        assert!(!found.iter().any(|header| header.contains("inferred")));
        // Snapshots show no lease, and staged blocks nothing at all.
        let snapshot = ListedBlob { lease: None, ..blob.clone() };
        let of_snapshot = headers(&snapshot, Shown::Properties, "2021-12-02");
        assert!(!of_snapshot.iter().any(|header| header.contains("lease")));
        let staged = ListedBlob { committed: None, ..blob };
        assert!(headers(&staged, Shown::Properties, "2021-12-02").is_empty());
    }
}
