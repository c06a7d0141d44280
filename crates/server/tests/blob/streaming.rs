//! Bodies as streams: `Expect`, chunks, broken uploads, slow readers (§2.2, issue 17).

use testkit::{Blobs, Request};

use crate::{pattern, with_container};

#[test]
fn a_body_is_asked_for_once_its_head_is_acceptable() {
    let server = with_container();
    let blob = server.blob();
    let content = pattern(100_000);
    let bytes =
        blob.bytes_of(&Blobs::put_request("/abc/b", content.clone()).header("Expect", "100-continue"));
    let (head, body) = bytes.split_at(bytes.len() - content.len());
    let mut client = blob.connect();
    client.send(head).unwrap();
    let asked = String::from_utf8(client.read_next().unwrap()).unwrap();
    assert_eq!(asked, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(body).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 201);
    assert!(blob.content("/abc/b") == content);
    // A request that is refused anyway is not asked for its body.
    for path in ["/nope/b", "/abc/b"] {
        let request = Blobs::put_request(path, content.clone())
            .header("Expect", "100-continue")
            .header("If-None-Match", "*");
        let bytes = blob.bytes_of(&request);
        let mut client = blob.connect();
        client.send(&bytes[..bytes.len() - content.len()]).unwrap();
        let answer = client.read_response(false).unwrap();
        assert!(matches!(answer.status, 404 | 409), "{answer:?}");
    }
}

#[test]
fn bodies_may_come_in_chunks() {
    let server = with_container();
    let blob = server.blob();
    let request = Request::put("/abc/b").header("x-ms-blob-type", "BlockBlob").without("Content-Length");
    let mut bytes = blob.bytes_of(&request.header("Transfer-Encoding", "chunked"));
    bytes.extend_from_slice(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    assert_eq!(blob.connect().exchange(&bytes).unwrap().status, 201);
    assert_eq!(blob.content("/abc/b"), b"hello world");
    let missing = Request::put("/abc/b").header("x-ms-blob-type", "BlockBlob").without("Content-Length");
    blob.send(missing).expect_error(411, "MissingContentLengthHeader");
}

#[test]
fn a_broken_upload_leaves_nothing() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "before");
    let bytes = blob.bytes_of(&Blobs::put_request("/abc/b", pattern(1_000_000)));
    let mut client = blob.connect();
    client.send(&bytes[..500_000]).unwrap();
    drop(client);
    let bytes = blob.bytes_of(&Blobs::put_request("/abc/new", pattern(1_000_000)));
    let mut client = blob.connect();
    client.send(&bytes[..500_000]).unwrap();
    client.finish_sending().unwrap();
    let _ = client.read_to_end();
    assert_eq!(blob.content("/abc/b"), b"before");
    blob.send(Request::get("/abc/new")).expect_error(404, "BlobNotFound");
}

#[test]
fn too_much_is_refused_before_it_is_sent() {
    let server = with_container();
    let blob = server.blob();
    let request =
        Request::put("/abc/b").header("x-ms-blob-type", "BlockBlob").header("Content-Length", "5242880001");
    let mut client = blob.connect();
    client.send(&blob.bytes_of(&request.header("Expect", "100-continue"))).unwrap();
    let refused = client.read_response(false).unwrap().of_blob().expect_error(413, "RequestBodyTooLarge");
    assert_eq!(refused.element("MaxLimit"), "5242880000");
    let old = Request::put("/abc/b").header("x-ms-blob-type", "BlockBlob").version("2015-12-11");
    let old = old.header("Content-Length", "67108865").header("Expect", "100-continue");
    let mut client = blob.connect();
    client.send(&blob.bytes_of(&old)).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 413);
}

/// Readers that stop in the middle hold only what is on its way, and what is overwritten meanwhile stays readable.
#[test]
fn a_slow_reader_reads_what_was_there_when_it_began() {
    let server = with_container();
    let blob = server.blob();
    let content = pattern(8 * 1024 * 1024);
    blob.put("/abc/b", content.clone());
    let request = blob.bytes_of(&Request::get("/abc/b"));
    let mut readers: Vec<_> = (0..20).map(|_| blob.connect()).collect();
    for reader in &mut readers {
        reader.send(&request).unwrap();
    }
    let mut begun: Vec<Vec<u8>> = readers.iter_mut().map(|reader| reader.read_next().unwrap()).collect();
    blob.put("/abc/b", "other");
    for (reader, received) in readers.iter_mut().zip(&mut begun).take(3) {
        let head_len = |bytes: &[u8]| bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
        while head_len(received).is_none_or(|head| received.len() < head + content.len()) {
            received.extend_from_slice(&reader.read_next().unwrap());
        }
        assert!(received.ends_with(&content));
    }
    assert_eq!(blob.content("/abc/b"), b"other");
}
