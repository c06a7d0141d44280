//! List Blobs (§15).

use testkit::{Blobs, Request, Response, TestServer};

use crate::{with_container, with_stopped_clock};

fn list(server: &TestServer, query: &str) -> Response {
    server.blob().send(Request::get(&format!("/abc?restype=container&comp=list{query}")))
}

#[test]
fn a_blob_is_listed_with_everything() {
    let (server, _) = with_stopped_clock();
    let blob = server.blob();
    let put = Blobs::put_request("/abc/blob1", "hello world").header("x-ms-tags", "tag1=val1&tag2=val2");
    let etag = blob.send(put.header("x-ms-meta-MyName", "v")).expect(201).required("ETag").to_owned();
    let found = list(&server, "&include=tags,metadata").expect(200);
    let time = "Fri, 26 Jun 2026 23:39:12 GMT";
    // Traps 5 and 25: the ETag has no quotes, and names of metadata keep their case.
    let expected = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"{}/\" ContainerName=\"abc\"><Blobs><Blob><Name>blob1</Name><Properties><Creation-Time>{time}</Creation-Time><Last-Modified>{time}</Last-Modified><Etag>{}</Etag><Content-Length>11</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5><Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted><TagCount>2</TagCount></Properties><Metadata><MyName>v</MyName></Metadata><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag><Tag><Key>tag2</Key><Value>val2</Value></Tag></TagSet></Tags><OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>",
        blob.base(),
        etag.trim_matches('"')
    );
    assert_eq!(found.text(), expected);
}

#[test]
fn a_delimiter_makes_prefixes() {
    let server = with_container();
    for name in ["a/blob1", "a/blob2", "b/c/blob3", "blob4", "B"] {
        server.blob().put(&format!("/abc/{name}"), "x");
    }
    let found = list(&server, "&delimiter=%2F").expect(200);
    assert_eq!(found.elements("Name"), ["B", "a/", "b/", "blob4"]);
    assert_eq!(found.text().matches("<BlobPrefix>").count(), 2);
    assert_eq!(list(&server, "&delimiter=%2F&prefix=b%2F").expect(200).elements("Name"), ["b/c/"]);
    assert_eq!(list(&server, "&delimiter=").expect(200).elements("Name").len(), 5);
    // Page by page the same, and no marker when only swallowed names are left (trap 51).
    let mut names = Vec::new();
    let mut marker = String::new();
    let mut page_count = 0;
    loop {
        let page = list(
            &server,
            &format!("&delimiter=%2F&maxresults=1&marker={}", testkit::percent_encode(&marker)),
        );
        let page = page.expect(200);
        names.extend(page.elements("Name"));
        marker = page.element("NextMarker");
        page_count += 1;
        if marker.is_empty() {
            break;
        }
    }
    assert_eq!((names.join(","), page_count), ("B,a/,b/,blob4".to_owned(), 4));
    assert_eq!(list(&server, "&delimiter=%2F&prefix=a&maxresults=1").expect(200).element("NextMarker"), "");
}

#[test]
fn pages_go_on_where_the_last_one_ended() {
    let server = with_container();
    for at in 0..7 {
        server.blob().put(&format!("/abc/b{at}"), "x");
    }
    let first = list(&server, "&maxresults=5&prefix=b").expect(200);
    assert_eq!(first.elements("Name").len(), 5);
    assert!(first.text().contains("<Prefix>b</Prefix><MaxResults>5</MaxResults><Blobs>"), "{first:?}");
    let marker = testkit::percent_encode(&first.element("NextMarker"));
    assert_eq!(list(&server, &format!("&marker={marker}")).expect(200).elements("Name"), ["b5", "b6"]);
    list(&server, "&maxresults=0").expect_error(400, "OutOfRangeQueryParameterValue");
    list(&server, "&include=x").expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(list(&server, "&startFrom=b5").expect(200).elements("Name"), ["b5", "b6"]);
    server
        .blob()
        .send(Request::get("/nope?restype=container&comp=list"))
        .expect_error(404, "ContainerNotFound");
}

#[test]
fn snapshots_and_staged_blocks_are_listed_when_they_are_asked_for() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let snapshot = blob.send(Request::put("/abc/b?comp=snapshot")).expect(201);
    blob.send(Request::put("/abc/staged?comp=block&blockid=MQ%3D%3D").bytes("x")).expect(201);
    assert_eq!(list(&server, "").expect(200).elements("Name"), ["b"]);
    let found = list(&server, "&include=snapshots&include=uncommittedblobs").expect(200);
    assert_eq!(found.elements("Name"), ["b", "b", "staged"]);
    assert_eq!(found.element("Snapshot"), snapshot.required("x-ms-snapshot"));
    assert!(found.text().find("<Snapshot>") < found.text().find("<LeaseStatus>"), "{found:?}");
    assert!(found.text().contains("<Blob><Name>staged</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"), "{found:?}");
}

#[test]
fn a_list_begins_and_ends_where_it_is_asked_to() {
    let server = with_container();
    for name in ["a", "b/1", "b/2", "b/3", "c"] {
        server.blob().put(&format!("/abc/{name}"), "x");
    }
    let names = |query: &str| list(&server, query).expect(200).elements("Name");
    assert_eq!(names("&endBefore=b%2F2"), ["a", "b/1"]);
    assert_eq!(names("&startFrom=b%2F1&endBefore=b%2F3"), ["b/1", "b/2"]);
    assert_eq!(names("&prefix=b%2F&endBefore=c"), ["b/1", "b/2", "b/3"]);
    assert_eq!(names("&delimiter=%2F&endBefore=b%2F2"), ["a", "b/"]);
    assert_eq!(names("&startFrom=c&endBefore=b").len(), 0);
    let page = list(&server, "&endBefore=b%2F2&maxresults=1").expect(200);
    let marker = testkit::percent_encode(&page.element("NextMarker"));
    let rest = list(&server, &format!("&endBefore=b%2F2&marker={marker}")).expect(200);
    assert_eq!((rest.elements("Name"), rest.element("NextMarker")), (vec!["b/1".to_owned()], String::new()));
}
