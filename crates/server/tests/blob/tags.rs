//! Tags (§21.2, §21.3) and Find Blobs by Tags (§21.4).

use testkit::{Blobs, Request};

use crate::with_container;

const TAGS: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag><Tag><Key>tag2</Key><Value>val2</Value></Tag></TagSet></Tags>";

#[test]
fn tags_are_set_and_read() {
    let server = with_container();
    let blob = server.blob();
    let etag = blob.put("/abc/b", "x").required("ETag").to_owned();
    blob.send(Request::put("/abc/b?comp=tags").xml(TAGS)).expect(204);
    assert_eq!(blob.send(Request::get("/abc/b?comp=tags")).expect(200).text(), TAGS);
    let head = blob.head("/abc/b").expect(200);
    assert_eq!((head.required("x-ms-tag-count"), head.required("ETag")), ("2", &*etag));
    let bad = TAGS.replace("tag2", "tag1");
    blob.send(Request::put("/abc/b?comp=tags").xml(&bad)).expect_error(400, "DuplicateTagNames");
    blob.send(Request::put("/abc/b?comp=tags").xml(&TAGS.replace("val1", "!")))
        .expect_error(400, "InvalidTags");
    blob.send(Request::put("/abc/b?comp=tags").xml("<Tags><TagSet /></Tags>")).expect(204);
    assert!(blob.send(Request::get("/abc/b?comp=tags")).expect(200).text().contains("<TagSet"));
    assert_eq!(blob.head("/abc/b").header("x-ms-tag-count"), None);
}

#[test]
fn blobs_are_found_by_tags() {
    let server = with_container();
    let blob = server.blob();
    blob.create("other");
    for (path, tags) in
        [("/abc/b1", "tag1=val1&tag2=x"), ("/abc/b2", "tag1=val2"), ("/other/b3", "tag1=val1")]
    {
        blob.send(Blobs::put_request(path, "x").header("x-ms-tags", tags)).expect(201);
    }
    let find = |path: &str, expression: &str| blob.send(Request::get(path).query("where", expression));
    let found = find("/?comp=blobs", "\"tag1\"='val1'").expect(200);
    assert_eq!(
        (found.elements("Name"), found.elements("ContainerName")),
        (vec!["b1".into(), "b3".into()], vec!["abc".into(), "other".into()])
    );
    // Trap 32: only the tags that the expression names.
    assert!(!found.text().contains("tag2"), "{found:?}");
    assert_eq!(
        find("/abc?restype=container&comp=blobs", "tag1 >= 'val1'").expect(200).elements("Name"),
        ["b1", "b2"]
    );
    assert_eq!(
        find("/?comp=blobs", "@container = 'other' AND tag1 = 'val1'").expect(200).elements("Name"),
        ["b3"]
    );
    find("/?comp=blobs", "tag1").expect_error(400, "InvalidQueryParameterValue");
}
