//! Blob Batch (§21.6).

use testkit::{BlobPart, Request};

use crate::with_container;

#[test]
fn each_part_is_answered_by_itself() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b0", "x");
    let parts = ["/abc/b0", "/abc/nope", "/nope/b"].map(|path| BlobPart(Request::delete(path)));
    let answer = blob.send(blob.batch("/?comp=batch", &parts)).expect(202);
    let boundary =
        answer.required("Content-Type").strip_prefix("multipart/mixed; boundary=").unwrap().to_owned();
    assert!(boundary.starts_with("batchresponse_"), "{boundary}");
    let text = answer.text();
    assert!(text.ends_with(&format!("\r\n--{boundary}--")), "{text}");
    let found: Vec<&str> = text.split(&format!("--{boundary}\r\n")).skip(1).collect();
    assert_eq!(found.len(), 3);
    for (id, (part, status)) in found.iter().zip(["202", "404", "404"]).enumerate() {
        let head = format!("Content-Type: application/http\r\nContent-ID: {id}\r\n\r\nHTTP/1.1 {status} ");
        assert!(part.starts_with(&head), "{part}");
    }
    assert!(found[0].contains("\r\nx-ms-delete-type-permanent: true\r\n"), "{}", found[0]);
    assert!(
        found[1].contains("\r\nx-ms-error-code: BlobNotFound\r\n")
            && found[1].contains("<Code>BlobNotFound</Code>")
    );
    assert!(found[2].contains("<Code>ContainerNotFound</Code>"), "{}", found[2]);
    blob.send(Request::get("/abc/b0")).expect_error(404, "BlobNotFound");
}

#[test]
fn the_batch_of_an_account_may_be_written_as_that_of_a_container() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let parts = [BlobPart(Request::delete("/abc/b"))];
    // With the account in the path, the JavaScript SDK takes it for a container.
    let answer = blob.send(blob.batch("/?restype=container&comp=batch", &parts)).expect(202);
    assert!(answer.text().contains("HTTP/1.1 202 "), "{}", answer.text());
    blob.send(Request::get("/abc/b")).expect_error(404, "BlobNotFound");
}

#[test]
fn parts_have_their_own_credentials() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "x");
    let wrong = Request::delete("/abc/b").header("Authorization", "SharedKey devstoreaccount1:AAAA");
    let answer = blob.send(blob.batch("/?comp=batch", &[BlobPart(wrong)])).expect(202);
    assert!(answer.text().contains("HTTP/1.1 403 "), "{answer:?}");
    let without = Request::delete("/abc/b").unsigned();
    let answer = blob.send(blob.batch("/?comp=batch", &[BlobPart(without)])).expect(202);
    assert!(!answer.text().contains("HTTP/1.1 202 "), "{answer:?}");
    assert_eq!(blob.content("/abc/b"), b"x");
}

#[test]
fn a_batch_is_of_one_kind_and_for_one_container() {
    let server = with_container();
    let blob = server.blob();
    blob.create("other");
    for path in ["/abc/b", "/other/b"] {
        blob.put(path, "x");
    }
    let tier =
        |path: &str| BlobPart(Request::put(&format!("{path}?comp=tier")).header("x-ms-access-tier", "Cool"));
    let delete = |path: &str| BlobPart(Request::delete(path));
    let refused = |request: Request| {
        blob.send(request).expect_error(400, "InvalidInput");
        assert_eq!(blob.content("/abc/b"), b"x");
    };
    refused(blob.batch("/?comp=batch", &[delete("/abc/b"), tier("/other/b")]));
    refused(blob.batch("/?comp=batch", &[BlobPart(Request::get("/abc/b"))]));
    refused(blob.batch("/?comp=batch", &[]));
    refused(blob.batch("/abc?restype=container&comp=batch", &[delete("/abc/b"), delete("/other/b")]));
    let many: Vec<BlobPart> = (0..257).map(|at| delete(&format!("/abc/n{at}"))).collect();
    refused(blob.batch("/?comp=batch", &many));
    let answer = blob.send(blob.batch("/abc?restype=container&comp=batch", &[tier("/abc/b")])).expect(202);
    assert!(answer.text().contains("HTTP/1.1 200 "), "{answer:?}");
    assert_eq!(blob.head("/abc/b").required("x-ms-access-tier"), "Cool");
}
