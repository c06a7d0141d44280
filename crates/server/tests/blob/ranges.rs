//! Range reads (§12.1), their checksums (§12.2), and response headers that a signature sets (§7.2).

use testkit::{Blobs, Request, Sas};

use crate::{pattern, with_container};

#[test]
fn a_range_is_a_part() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "hello world");
    let get = |range: &str| blob.send(Request::get("/abc/b").header("x-ms-range", range));
    for (range, content, shown) in [
        ("bytes=1-1", "e", "bytes 1-1/11"),
        ("bytes=0-33554431", "hello world", "bytes 0-10/11"),
        ("bytes=0-", "hello world", "bytes 0-10/11"),
        ("bytes=6-", "world", "bytes 6-10/11"),
    ] {
        let part = get(range).expect(206);
        assert_eq!((part.text(), part.required("Content-Range")), (content, shown));
        assert_eq!(part.required("x-ms-blob-content-md5"), "XrY7u+Ae7tCTyyK7j1rNww==");
        assert_eq!(part.header("Content-MD5"), None);
    }
    let refused = get("bytes=11-").expect_error(416, "InvalidRange");
    assert_eq!(refused.required("Content-Range"), "bytes */11");
    blob.put("/abc/empty", "");
    let refused = blob.send(Request::get("/abc/empty").header("Range", "bytes=0-"));
    assert_eq!(refused.expect_error(416, "InvalidRange").required("Content-Range"), "bytes */0");
    for bad in ["bytes=2-1", "bytes=-5", "bytes=0-1,3-4", "items=0-1"] {
        get(bad).expect_error(400, "InvalidHeaderValue");
    }
    let both = Request::get("/abc/b").header("Range", "bytes=0-0").header("x-ms-range", "bytes=4-4");
    assert_eq!(blob.send(both).expect(206).text(), "o");
}

#[test]
fn the_checksum_of_a_range_comes_with_it() {
    let server = with_container();
    let blob = server.blob();
    blob.put("/abc/b", "hello world");
    let get = |headers: &[(&str, &str)]| {
        let request = Request::get("/abc/b");
        blob.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
    };
    const MD5: &str = "x-ms-range-get-content-md5";
    const CRC: &str = "x-ms-range-get-content-crc64";
    let part = get(&[("x-ms-range", "bytes=1-1"), (MD5, "true")]).expect(206);
    assert_eq!(part.required("Content-MD5"), "4WcXl8UuFfdjOAtF6EHsMg==");
    let part = get(&[("x-ms-range", "bytes=0-"), (CRC, "true")]).expect(206);
    assert_eq!(part.required("x-ms-content-crc64"), "vo7q9sPVKY0=");
    get(&[("x-ms-range", "bytes=0-"), (MD5, "true"), (CRC, "true")])
        .expect_error(400, "BothCrc64AndMd5RangeHeaderPresent");
    get(&[(MD5, "true")]).expect_error(400, "InvalidHeaderValue");
    blob.put("/abc/b", pattern(5 * 1024 * 1024));
    get(&[("x-ms-range", "bytes=0-4194304"), (MD5, "true")]).expect_error(400, "InvalidHeaderValue");
    get(&[("x-ms-range", "bytes=1-4194304"), (MD5, "true")]).expect(206);
}

#[test]
fn ranges_of_large_blobs_are_exact() {
    let server = with_container();
    let blob = server.blob();
    let content = pattern(9 * 1024 * 1024 + 17);
    blob.put("/abc/b", content.clone());
    for (first, last) in
        [(0, 0), (65_535, 65_536), (4_194_303, 4_194_305), (3, 9 * 1024 * 1024), (9_437_200, 9_437_199 + 1)]
    {
        let range = format!("bytes={first}-{last}");
        let part = blob.send(Request::get("/abc/b").header("Range", &range)).expect(206);
        let end = content.len().min(last + 1);
        assert!(part.body == content[first..end], "{range}");
    }
}

#[test]
fn a_signature_sets_headers_of_the_answer() {
    let server = with_container();
    let blob = server.blob();
    blob.send(Blobs::put_request("/abc/b", "x").header("x-ms-blob-content-type", "text/plain")).expect(201);
    let sas = Sas::blob("2025-11-05", "abc", "b")
        .set("rsct", "image/png")
        .set("rscd", "attachment; filename=a.png");
    let read = blob.send(Request::get("/abc/b").sas(&sas.sign(blob.credentials()))).expect(200);
    assert_eq!(read.required("Content-Type"), "image/png");
    assert_eq!(read.required("Content-Disposition"), "attachment; filename=a.png");
    // Without a signature these are nothing but unknown parameters.
    let read = blob.send(Request::get("/abc/b?rsct=image%2Fpng")).expect(200);
    assert_eq!(read.required("Content-Type"), "text/plain");
}
