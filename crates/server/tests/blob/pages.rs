//! Page blobs (§19), resize and sequence numbers (§16.4).

use testkit::{Request, Response, TestServer};

use crate::{pattern, with_container};

fn create(server: &TestServer, bytes: u64) -> Response {
    let request = Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob");
    server.blob().send(request.header("x-ms-blob-content-length", &bytes.to_string()))
}

fn update(server: &TestServer, range: &str, content: Vec<u8>) -> Response {
    let request = Request::put("/abc/disk?comp=page").header("x-ms-page-write", "update");
    server.blob().send(request.header("x-ms-range", range).bytes(content))
}

fn clear(server: &TestServer, range: &str) -> Response {
    let request = Request::put("/abc/disk?comp=page").header("x-ms-page-write", "clear");
    server.blob().send(request.header("x-ms-range", range))
}

fn ranges(server: &TestServer, query: &str) -> String {
    let list = server.blob().send(Request::get(&format!("/abc/disk?comp=pagelist{query}"))).expect(200);
    list.text().trim_start_matches("<?xml version=\"1.0\" encoding=\"utf-8\"?>").to_owned()
}

#[test]
fn pages_are_written_and_cleared() {
    let server = with_container();
    create(&server, 2048).expect(201);
    assert_eq!(ranges(&server, ""), "<PageList />");
    let page = pattern(512);
    let written = update(&server, "bytes=0-511", page.clone()).expect(201);
    written.required("x-ms-content-crc64");
    assert_eq!(written.required("x-ms-blob-sequence-number"), "0");
    update(&server, "bytes=1024-1535", page.clone()).expect(201);
    assert_eq!(
        ranges(&server, ""),
        "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><PageRange><Start>1024</Start><End>1535</End></PageRange></PageList>"
    );
    let zeros = vec![0; 512];
    let content = [&page[..], &zeros, &page, &zeros].concat();
    assert!(server.blob().content("/abc/disk") == content);
    update(&server, "bytes=512-1023", page.clone()).expect(201);
    assert_eq!(
        ranges(&server, ""),
        "<PageList><PageRange><Start>0</Start><End>1535</End></PageRange></PageList>"
    );
    let cleared = clear(&server, "bytes=0-1023").expect(201);
    assert_eq!(cleared.header("x-ms-content-crc64"), None);
    assert_eq!(
        ranges(&server, ""),
        "<PageList><PageRange><Start>1024</Start><End>1535</End></PageRange></PageList>"
    );
    let list = server.blob().send(Request::get("/abc/disk?comp=pagelist")).expect(200);
    assert_eq!(list.required("x-ms-blob-content-length"), "2048");
    list.required("ETag");
}

#[test]
fn ranges_of_pages_are_exact() {
    let server = with_container();
    create(&server, 513).expect_error(400, "InvalidHeaderValue");
    server
        .blob()
        .send(Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob"))
        .expect_error(400, "MissingRequiredHeader");
    create(&server, 1024).expect(201);
    // Trap 53.
    update(&server, "bytes=1-512", pattern(512)).expect_error(400, "InvalidHeaderValue");
    update(&server, "bytes=1024-1535", pattern(512)).expect_error(416, "InvalidPageRange");
    update(&server, "bytes=0-511", pattern(1024)).expect_error(400, "InvalidHeaderValue");
    let large = update(&server, "bytes=0-4194815", pattern(512)).expect_error(413, "RequestBodyTooLarge");
    assert_eq!(large.element("MaxLimit"), "4194304");
    server.blob().send(Request::put("/abc/disk?comp=page")).expect_error(400, "MissingRequiredHeader");
    server.blob().put("/abc/block", "x");
    server.blob().send(Request::get("/abc/block?comp=pagelist")).expect_error(409, "InvalidBlobType");
}

#[test]
fn sizes_and_sequence_numbers_change_without_the_rest() {
    let server = with_container();
    let blob = server.blob();
    let request = Request::put("/abc/disk").header("x-ms-blob-type", "PageBlob");
    let request = request.header("x-ms-blob-content-length", "1024").header("x-ms-blob-sequence-number", "7");
    blob.send(request.header("x-ms-blob-content-type", "text/plain")).expect(201);
    let set = |headers: &[(&str, &str)]| {
        let request = Request::put("/abc/disk?comp=properties");
        blob.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
    };
    assert_eq!(
        set(&[("x-ms-blob-content-length", "512")]).expect(200).required("x-ms-blob-sequence-number"),
        "7"
    );
    let up = set(&[("x-ms-sequence-number-action", "increment")]).expect(200);
    assert_eq!(up.required("x-ms-blob-sequence-number"), "8");
    set(&[("x-ms-sequence-number-action", "max"), ("x-ms-blob-sequence-number", "3")]).expect(200);
    let head = blob.head("/abc/disk").expect(200);
    assert_eq!(head.required("Content-Length"), "512");
    assert_eq!(
        (head.required("x-ms-blob-sequence-number"), head.required("Content-Type")),
        ("8", "text/plain")
    );
    let conditional = Request::put("/abc/disk?comp=page").header("x-ms-page-write", "clear");
    let conditional =
        conditional.header("x-ms-range", "bytes=0-511").header("x-ms-if-sequence-number-lt", "8");
    blob.send(conditional).expect_error(412, "SequenceNumberConditionNotMet");
}

#[test]
fn a_diff_shows_what_changed_since_a_snapshot() {
    let server = with_container();
    create(&server, 2048).expect(201);
    update(&server, "bytes=1024-1535", pattern(512)).expect(201);
    let snapshot = server.blob().send(Request::put("/abc/disk?comp=snapshot")).expect(201);
    let snapshot = testkit::percent_encode(snapshot.required("x-ms-snapshot"));
    update(&server, "bytes=0-511", pattern(512)).expect(201);
    clear(&server, "bytes=1024-1535").expect(201);
    assert_eq!(
        ranges(&server, &format!("&prevsnapshot={snapshot}")),
        "<PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange><Start>1024</Start><End>1535</End></ClearRange></PageList>"
    );
    assert_eq!(
        ranges(&server, &format!("&snapshot={snapshot}")),
        "<PageList><PageRange><Start>1024</Start><End>1535</End></PageRange></PageList>"
    );
}

fn snapshot(server: &TestServer) -> String {
    let taken = server.blob().send(Request::put("/abc/disk?comp=snapshot")).expect(201);
    testkit::percent_encode(taken.required("x-ms-snapshot"))
}

#[test]
fn a_blob_that_was_cleared_is_still_the_same_blob() {
    let server = with_container();
    create(&server, 1024).expect(201);
    update(&server, "bytes=0-511", pattern(512)).expect(201);
    let first = snapshot(&server);
    let since = |moment: &str| ranges(&server, &format!("&prevsnapshot={moment}"));
    let cleared = "<PageList><ClearRange><Start>0</Start><End>511</End></ClearRange></PageList>";
    clear(&server, "bytes=0-1023").expect(201);
    assert_eq!(since(&first), cleared);
    let resize = |bytes: &str| {
        let request = Request::put("/abc/disk?comp=properties").header("x-ms-blob-content-length", bytes);
        server.blob().send(request).expect(200);
    };
    resize("0");
    resize("1024");
    assert_eq!(since(&first), cleared);
    let second = snapshot(&server);
    update(&server, "bytes=512-1023", pattern(512)).expect(201);
    let written = "<PageRange><Start>512</Start><End>1023</End></PageRange>";
    assert_eq!(since(&second), format!("<PageList>{written}</PageList>"));
    assert_eq!(since(&first), cleared.replace("</PageList>", &format!("{written}</PageList>")));
    create(&server, 1024).expect(201);
    let diff = Request::get(&format!("/abc/disk?comp=pagelist&prevsnapshot={first}"));
    server.blob().send(diff).expect_error(409, "BlobOverwritten");
}

#[test]
fn a_body_in_chunks_must_have_the_length_of_its_range() {
    let server = with_container();
    create(&server, 1024).expect(201);
    let mut body = b"200\r\n".to_vec();
    body.extend_from_slice(&pattern(512));
    body.extend_from_slice(b"\r\n0\r\n\r\n");
    let request = Request::put("/abc/disk?comp=page").header("x-ms-page-write", "update").bytes(body);
    let request = request.without("Content-Length").header("Transfer-Encoding", "chunked");
    let refused = server.blob().send(request.clone().header("x-ms-range", "bytes=0-1023"));
    let refused = refused.expect_error(400, "InvalidHeaderValue");
    let element = |name| refused.element(name);
    assert_eq!((element("HeaderName"), element("HeaderValue")), ("Content-Length".into(), "512".into()));
    server.blob().send(request.header("x-ms-range", "bytes=0-511")).expect(201);
}
