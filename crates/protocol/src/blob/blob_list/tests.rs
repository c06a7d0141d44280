//! The pages of sections 15, 20.1, 21.4 and 21.7 of the specification, byte for byte.

use super::*;
use crate::blob::checksum::parse_md5;
use crate::blob::copy::CopyStatus;
use crate::blob::encryption::CustomerKeyHash;
use crate::blob::lease::LeaseDuration;
use crate::common::guid::Guid;
use crate::common::query::Query;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const BASE: &str = "https://acct.blob.core.windows.net";
const VERSION: &str = "2021-12-02";
const ROOT_TAG: &str = "<EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\" ContainerName=\"mycontainer\">";

pub(in crate::blob) struct Stored {
    http: HttpProperties,
    metadata: Metadata,
    pub tags: Tags,
    copy: CopyState,
}

impl Stored {
    pub fn new() -> Stored {
        Stored {
            http: HttpProperties {
                content_type: Some("application/octet-stream".into()),
                content_md5: Some(parse_md5("sQqNsWTgdUEFt6mb5y4/5Q==").unwrap()),
                ..HttpProperties::default()
            },
            metadata: Metadata::read([("Color", "red")]).unwrap(),
            tags: Tags::read([("tag1", "val1"), ("tag2", "val2")]).unwrap(),
            copy: CopyState {
                id: Guid::parse("5436d360-5e64-4683-a10e-973b37b1dd9e").unwrap(),
                source: "http://127.0.0.1:10000/acct/mycontainer/orig".into(),
                status: CopyStatus::Success,
                copied: 1024,
                total: 1024,
                completed: DateTime::parse("2019-06-14T17:37:51Z"),
                description: None,
            },
        }
    }

    pub fn blob<'a>(&'a self, name: &'a str, tags: &'a Tags) -> ListedBlob<'a> {
        let time = DateTime::parse("2023-01-27T23:22:39.1Z").unwrap();
        ListedBlob {
            name,
            snapshot: None,
            version: None,
            is_current_version: false,
            committed: Some(Committed {
                created: time,
                last_modified: time,
                etag: BlobETag(0x8DB_00BD_6211_78BB),
                size: 11,
                http: &self.http,
                sequence_number: None,
                append_count: None,
                is_sealed: false,
                metadata: &self.metadata,
                tags,
                copy: Some(&self.copy),
                key_sha256: None,
                encryption_scope: None,
            }),
            blob_type: BlobType::Block,
            tier: Some(ListedTier {
                tier: AccessTier::Hot,
                is_inferred: true,
                changed: None,
                rehydrating: None,
            }),
            lease: Some(Lease::Available),
            deleted: None,
        }
    }
}

fn list(version: &str, query: &str, blobs: &[ListedBlob<'_>]) -> String {
    let parameters = ListBlobsParameters::read(&Query::split(query)).unwrap();
    let mut writer = BlobListWriter::begin(BASE, "mycontainer", &parameters, version, blobs.len());
    for blob in blobs {
        assert!(!writer.push(blob, |_| false));
        assert!(writer.push(blob, |_| true));
    }
    String::from_utf8(writer.finish(None)).unwrap()
}

#[test]
fn a_flat_page() {
    let stored = Stored::new();
    let page = list(VERSION, "include=tags", &[stored.blob("blob1", &stored.tags)]);
    assert_eq!(
        page,
        format!(
            "{HEAD}{ROOT_TAG}<Blobs><Blob><Name>blob1</Name><Properties><Creation-Time>Fri, 27 Jan 2023 23:22:39 GMT</Creation-Time><Last-Modified>Fri, 27 Jan 2023 23:22:39 GMT</Last-Modified><Etag>0x8DB00BD621178BB</Etag><Content-Length>11</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>sQqNsWTgdUEFt6mb5y4/5Q==</Content-MD5><Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted><TagCount>2</TagCount></Properties><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag><Tag><Key>tag2</Key><Value>val2</Value></Tag></TagSet></Tags><OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>"
        )
    );
}

#[test]
fn a_hierarchical_page() {
    let query = Query::split("prefix=blockblob&maxresults=1&delimiter=%2F");
    let parameters = ListBlobsParameters::read(&query).unwrap();
    let mut writer = BlobListWriter::begin(BASE, "mycontainer", &parameters, VERSION, 1);
    assert!(!writer.push_prefix("blockblob0/", |_| false));
    assert!(writer.push_prefix("blockblob0/", |_| true));
    let next = BlobMarker { name: "blockblob1/".to_owned(), moment: None };
    let page = String::from_utf8(writer.finish(Some(&next))).unwrap();
    assert_eq!(
        page,
        format!(
            "{HEAD}{ROOT_TAG}<Prefix>blockblob</Prefix><MaxResults>1</MaxResults><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>blockblob0/</Name></BlobPrefix></Blobs><NextMarker>{}</NextMarker></EnumerationResults>",
            next.write()
        )
    );
}

#[test]
fn a_blob_with_staged_blocks_only() {
    let stored = Stored::new();
    let none = Tags::default();
    let staged = ListedBlob { committed: None, ..stored.blob("x", &none) };
    let page = list(VERSION, "include=uncommittedblobs,metadata,tags,copy", &[staged]);
    assert_eq!(
        page,
        format!(
            "{HEAD}{ROOT_TAG}<Blobs><Blob><Name>x</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>false</ServerEncrypted></Properties><OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>"
        )
    );
}

#[track_caller]
fn check_contains(page: &str, expected: &[&str]) {
    for expected in expected {
        assert!(page.contains(expected), "{page}\ndoes not contain\n{expected}");
    }
}

#[test]
fn everything_that_can_be_included() {
    let stored = Stored::new();
    let none = Tags::default();
    let moment = DateTime::parse("2019-08-28T17:07:35.2821851Z");
    let snapshot = ListedBlob { snapshot: moment, lease: None, ..stored.blob("a", &none) };
    let mut full = stored.blob("a", &none);
    full.version = moment;
    full.is_current_version = true;
    full.blob_type = BlobType::Page;
    full.lease = Some(Lease::Leased { id: Guid([1; 16]), duration: LeaseDuration::Infinite, until: None });
    full.tier = Some(ListedTier {
        tier: AccessTier::Archive,
        is_inferred: false,
        changed: DateTime::parse("2023-01-28T00:00:00Z"),
        rehydrating: Some((AccessTier::Hot, RehydratePriority::Standard)),
    });
    if let Some(committed) = &mut full.committed {
        committed.sequence_number = Some(7);
        committed.is_sealed = true;
        committed.key_sha256 = Some(CustomerKeyHash([0; 32]));
        committed.encryption_scope = Some("scope");
    }
    let page = list(VERSION, "include=snapshots,metadata,copy,versions,tags", &[snapshot, full]);
    check_contains(
        &page,
        &[
            "<Blob><Name>a</Name><Snapshot>2019-08-28T17:07:35.2821851Z</Snapshot><Properties>",
            // A snapshot has no lease, and no tags that it does not have.
            "<AccessTierInferred>true</AccessTierInferred><CopyId>5436d360-5e64-4683-a10e-973b37b1dd9e</CopyId><CopySource>http://127.0.0.1:10000/acct/mycontainer/orig</CopySource><CopyStatus>success</CopyStatus><CopyProgress>1024/1024</CopyProgress><CopyCompletionTime>Fri, 14 Jun 2019 17:37:51 GMT</CopyCompletionTime><ServerEncrypted>true</ServerEncrypted></Properties><Metadata><Color>red</Color></Metadata><OrMetadata /></Blob>",
            "<Blob><Name>a</Name><VersionId>2019-08-28T17:07:35.2821851Z</VersionId><IsCurrentVersion>true</IsCurrentVersion><Properties>",
            "<x-ms-blob-sequence-number>7</x-ms-blob-sequence-number><BlobType>PageBlob</BlobType><AccessTier>Archive</AccessTier><LeaseStatus>locked</LeaseStatus><LeaseState>leased</LeaseState><LeaseDuration>infinite</LeaseDuration><CopyId>",
            "<ServerEncrypted>true</ServerEncrypted><CustomerProvidedKeySha256>AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=</CustomerProvidedKeySha256><EncryptionScope>scope</EncryptionScope><AccessTierChangeTime>Sat, 28 Jan 2023 00:00:00 GMT</AccessTierChangeTime><ArchiveStatus>rehydrate-pending-to-hot</ArchiveStatus><RehydratePriority>Standard</RehydratePriority><Sealed>true</Sealed></Properties>",
        ],
    );
    let plain = list(VERSION, "", &[stored.blob("a", &stored.tags)]);
    for absent in ["CopyId", "<Metadata", "<Tags>", "Snapshot"] {
        assert!(!plain.contains(absent), "{absent}");
    }
}

#[test]
fn a_deleted_blob_has_an_empty_lease_status() {
    let stored = Stored::new();
    let none = Tags::default();
    let mut blob = stored.blob("a", &none);
    let time = DateTime::parse("2023-01-28T00:00:00Z").unwrap();
    blob.deleted = Some(DeletedBlob { time, remaining_days: 1 });
    check_contains(
        &list(VERSION, "include=deleted", &[blob]),
        &[
            "<Name>a</Name><Deleted>true</Deleted><Properties>",
            "<AccessTierInferred>true</AccessTierInferred><LeaseStatus /><ServerEncrypted>",
            "<DeletedTime>Sat, 28 Jan 2023 00:00:00 GMT</DeletedTime><RemainingRetentionDays>1</RemainingRetentionDays></Properties>",
        ],
    );
}

#[test]
fn names_are_escaped_or_encoded() {
    let stored = Stored::new();
    let none = Tags::default();
    let page = list(VERSION, "prefix=%3C", &[stored.blob("<a&b>", &none), stored.blob("ä/\u{FFFF}", &none)]);
    check_contains(
        &page,
        &[
            "<Prefix>&lt;</Prefix>",
            "<Name>&lt;a&amp;b&gt;</Name>",
            "<Name Encoded=\"true\">%C3%A4%2F%EF%BF%BF</Name>",
        ],
    );
    let old = list("2020-10-02", "", &[stored.blob("\u{FFFF}", &none)]);
    check_contains(&old, &["<Name>\u{FFFD}</Name>"]);
    let older = list("2012-02-12", "", &[stored.blob("a", &none)]);
    check_contains(
        &older,
        &[
            "<EnumerationResults ContainerName=\"https://acct.blob.core.windows.net/mycontainer\"><Blobs>",
            "<Url>https://acct.blob.core.windows.net/mycontainer/a</Url>",
        ],
    );
}

/// Without the newline after the declaration, and with plain apostrophes, which mean the same.
#[test]
fn found_blobs_show_the_tags_that_were_asked_for() {
    let stored = Stored::new();
    let query = Query::split("where=%22tag1%22%3D%27val1%27");
    let parameters = FindBlobsParameters::read(&query).unwrap();
    let mut writer = FoundBlobsWriter::begin(BASE, &parameters);
    assert!(writer.push("mycontainer", "blob1", &stored.tags, |_| true));
    let page = String::from_utf8(writer.finish(None)).unwrap();
    assert_eq!(
        page,
        format!(
            "{HEAD}<EnumerationResults ServiceEndpoint=\"https://acct.blob.core.windows.net/\"><Where>\"tag1\"='val1'</Where><Blobs><Blob><Name>blob1</Name><ContainerName>mycontainer</ContainerName><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker /></EnumerationResults>"
        )
    );
    let query = Query::split("where=a%3D%27b%27&maxresults=3");
    let parameters = FindBlobsParameters::read(&query).unwrap();
    let empty = String::from_utf8(FoundBlobsWriter::begin(BASE, &parameters).finish(None)).unwrap();
    assert!(empty.ends_with(
        "<Where>a='b'</Where><MaxResults>3</MaxResults><Blobs /><NextMarker /></EnumerationResults>"
    ));
}
