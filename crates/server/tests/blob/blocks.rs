//! Put Block, Put Block List, Get Block List (§17.2 to §17.5).

use testkit::{Request, Response, TestServer};

use crate::{pattern, with_container};

fn put_block(server: &TestServer, id: &str, content: impl Into<Vec<u8>>) -> Response {
    server.blob().send(Request::put("/abc/b?comp=block").query("blockid", id).bytes(content))
}

fn put_list(server: &TestServer, inside: &str) -> Response {
    let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{inside}</BlockList>");
    server.blob().send(Request::put("/abc/b?comp=blocklist").xml(&list))
}

#[test]
fn blocks_become_content_when_they_are_listed() {
    let server = with_container();
    let blob = server.blob();
    let staged = put_block(&server, "MQ==", "HelloWorld").expect(201);
    assert_eq!(staged.required("x-ms-content-crc64"), "8R2aIe9T07E=");
    assert_eq!(staged.required("x-ms-request-server-encrypted"), "true");
    for absent in ["ETag", "Last-Modified", "Content-MD5"] {
        assert_eq!(staged.header(absent), None, "{absent}");
    }
    // Trap 48.
    blob.send(Request::get("/abc/b")).expect_error(404, "BlobNotFound");
    let list = blob.send(Request::get("/abc/b?comp=blocklist&blocklisttype=all")).expect(200);
    assert_eq!(
        list.text(),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><CommittedBlocks /><UncommittedBlocks><Block><Name>MQ==</Name><Size>10</Size></Block></UncommittedBlocks></BlockList>"
    );
    assert_eq!((list.required("x-ms-blob-content-length"), list.header("ETag")), ("0", None));
    put_block(&server, "Mg==", "second").expect(201);
    let committed = put_list(&server, "<Latest>Mg==</Latest><Uncommitted>MQ==</Uncommitted>").expect(201);
    committed.required("ETag");
    committed.required("x-ms-content-crc64");
    assert_eq!(blob.content("/abc/b"), b"secondHelloWorld");
    let list = blob.send(Request::get("/abc/b?comp=blocklist&blocklisttype=all")).expect(200);
    assert_eq!(list.elements("Name"), ["Mg==", "MQ=="]);
    assert!(list.text().ends_with("<UncommittedBlocks /></BlockList>"), "{list:?}");
    assert_eq!(list.required("x-ms-blob-content-length"), "16");
    assert_eq!(list.required("ETag"), committed.required("ETag"));
    // A block of the content can be used again, more than once.
    put_list(&server, "<Committed>MQ==</Committed><Latest>MQ==</Latest>").expect(201);
    assert_eq!(blob.content("/abc/b"), b"HelloWorldHelloWorld");
    put_list(&server, "<Committed>Mg==</Committed>").expect_error(400, "InvalidBlockList");
    put_list(&server, "").expect(201);
    assert_eq!(blob.content("/abc/b"), b"");
}

#[test]
fn the_checksum_of_a_list_is_that_of_the_document() {
    let server = with_container();
    put_block(&server, "Mg==", "0123456789").expect(201);
    let list = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><BlockList><Latest>Mg==</Latest></BlockList>";
    let request =
        Request::put("/abc/b?comp=blocklist").xml(list).header("x-ms-blob-content-type", "text/plain");
    let put = server.blob().send(request).expect(201);
    assert_eq!(put.required("x-ms-content-crc64"), "9VozlWcmhh8=");
    let head = server.blob().head("/abc/b").expect(200);
    // Trap 9: the type of the document is not that of the blob.
    assert_eq!((head.required("Content-Type"), head.header("Content-MD5")), ("text/plain", None));
}

#[test]
fn wrong_blocks_are_refused() {
    let server = with_container();
    let refused = put_block(&server, "!!", "x").expect_error(400, "InvalidQueryParameterValue");
    assert_eq!(refused.element("QueryParameterName"), "blockid");
    put_block(&server, "MQ==", "").expect_error(400, "InvalidHeaderValue");
    put_block(&server, "MQ==", "x").expect(201);
    // Ids of one length, as long as they are not committed.
    put_block(&server, "MTA=", "x").expect_error(400, "InvalidBlobOrBlock");
    put_list(&server, "<Latest>bm9wZQ==</Latest>").expect_error(400, "InvalidBlockList");
    put_list(&server, "<Other>MQ==</Other>").expect_error(400, "InvalidXmlDocument");
    server
        .blob()
        .send(Request::put("/abc/b?comp=blocklist").xml("<BlockList>"))
        .expect_error(400, "InvalidXmlDocument");
    put_list(&server, "<Latest>MQ==</Latest>").expect(201);
    put_block(&server, "MTA=", "x").expect(201);
}

#[test]
fn a_list_may_be_longer_than_other_documents() {
    let server = with_container();
    let id = testkit_base64(&[7; 64]);
    put_block(&server, &id, "x").expect(201);
    let latest = format!("<Latest>{id}</Latest>");
    put_list(&server, &latest.repeat(50_000)).expect(201);
    assert_eq!(server.blob().head("/abc/b").expect(200).required("Content-Length"), "50000");
    put_list(&server, &latest.repeat(50_001)).expect_error(400, "BlockListTooLong");
    let list = server.blob().send(Request::get("/abc/b?comp=blocklist")).expect(200);
    assert_eq!(list.elements("Size").len(), 50_000);
}

fn testkit_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn large_blocks_make_a_large_blob() {
    let server = with_container();
    let content = pattern(12 * 1024 * 1024);
    let mut list = String::new();
    for (at, block) in content.chunks(5 * 1024 * 1024).enumerate() {
        let id = testkit_base64(format!("{at:05}").as_bytes());
        put_block(&server, &id, block).expect(201);
        list.push_str(&format!("<Latest>{id}</Latest>"));
    }
    put_list(&server, &list).expect(201);
    assert!(server.blob().content("/abc/b") == content);
}
