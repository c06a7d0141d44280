//! Static websites (§4.5, `$web`): an account's website at a host of its own.

use testkit::{Blobs, Request, Response, Style, TestServer};

const PROPERTIES: &str = "/?restype=service&comp=properties";
const HOST: &str = "devstoreaccount1.web.localhost";

fn switch_on(blob: &Blobs, settings: &str) {
    let website = format!(
        "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled>{settings}</StaticWebsite></StorageServiceProperties>"
    );
    blob.send(Request::put(PROPERTIES).xml(&website)).expect(202);
}

/// A request as a browser sends it.
fn at(host: &str, request: Request) -> Request {
    let plain = request.unsigned().without("x-ms-date").without("x-ms-version");
    plain.style(Style::Host(host.to_owned())).header("Accept", "text/html,*/*")
}

fn visit(blob: &Blobs, path: &str) -> Response {
    blob.send(at(HOST, Request::get(path)))
}

/// A server whose website has a few pages.
fn with_website() -> TestServer {
    let server = TestServer::start();
    let blob = &server.blob();
    blob.create("$web");
    for (name, content) in [
        ("index.html", "<h1>root</h1>"),
        ("docs/index.html", "<h1>docs</h1>"),
        ("docs/a%20b.txt", "plain"),
        ("404.html", "<h1>not here</h1>"),
    ] {
        let html = Blobs::put_request(&format!("/$web/{name}"), content);
        blob.send(html.header("x-ms-blob-content-type", "text/html").header("x-ms-meta-k", "v")).expect(201);
    }
    let pages =
        "<IndexDocument>index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path>";
    switch_on(blob, pages);
    server
}

#[test]
fn a_website_shows_its_pages_to_everybody() {
    let server = with_website();
    let blob = &server.blob();
    for (path, content) in [
        ("/", "<h1>root</h1>"),
        ("/index.html", "<h1>root</h1>"),
        ("/docs/", "<h1>docs</h1>"),
        ("/docs", "<h1>docs</h1>"),
        ("/docs/a%20b.txt", "plain"),
        ("/docs%2Fa%20b.txt", "plain"),
        ("/?comp=list&restype=container&timeout=x&%zz", "<h1>root</h1>"),
    ] {
        let page = visit(blob, path).expect(200);
        assert_eq!((page.text(), page.required("Content-Type")), (content, "text/html"), "{path}");
    }
    let head = blob.send(at(HOST, Request::head("/docs"))).expect(200);
    assert_eq!((head.required("Content-Length"), head.body.len()), ("13", 0));
    // The hosts of the clouds are known too.
    for host in ["devstoreaccount1.z6.web.core.windows.net", "devstoreaccount1.z1.web.localhost:10000"] {
        assert_eq!(blob.send(at(host, Request::get("/"))).expect(200).text(), "<h1>root</h1>");
    }
    blob.send(at("nobody.web.localhost", Request::get("/x"))).expect(404);
}

#[test]
fn what_is_not_there_is_the_accounts_own_page_with_status_404() {
    let server = with_website();
    let blob = &server.blob();
    for request in [
        Request::get("/nope"),
        Request::get("/nope/"),
        // Neither a range nor a condition changes that.
        Request::get("/nope").header("Range", "bytes=0-1"),
        Request::get("/nope").header("If-None-Match", "*"),
    ] {
        let page = blob.send(at(HOST, request)).expect(404);
        assert_eq!((page.text(), page.required("Content-Type")), ("<h1>not here</h1>", "text/html"));
    }
    let head = blob.send(at(HOST, Request::head("/nope"))).expect(404);
    assert_eq!((head.required("Content-Length"), head.body.len()), ("17", 0));
    switch_on(blob, "<IndexDocument>index.html</IndexDocument>");
    let page = visit(blob, "/nope").expect(404);
    assert!(page.text().contains("ErrorCode: WebContentNotFound"), "{page:?}");
    assert_eq!(page.required("Content-Type"), "text/html; charset=utf-8");
    assert_eq!(blob.send(at(HOST, Request::head("/nope"))).expect(404).body.len(), 0);
}

#[test]
fn without_an_index_a_folder_has_the_default_page_or_none() {
    let server = with_website();
    let blob = &server.blob();
    switch_on(blob, "<DefaultIndexDocumentPath>docs/index.html</DefaultIndexDocumentPath>");
    for path in ["/", "/any/"] {
        assert_eq!(visit(blob, path).expect(200).text(), "<h1>docs</h1>", "{path}");
    }
    assert_eq!(visit(blob, "/index.html").expect(200).text(), "<h1>root</h1>");
    visit(blob, "/docs").expect(404);
    switch_on(blob, "");
    visit(blob, "/").expect(404);
    assert_eq!(visit(blob, "/index.html").expect(200).text(), "<h1>root</h1>");
}

#[test]
fn a_website_that_is_off_or_has_no_container_shows_nothing() {
    let server = TestServer::start();
    let blob = &server.blob();
    switch_on(blob, "<IndexDocument>index.html</IndexDocument>");
    visit(blob, "/").expect(404);
    blob.create("$web");
    blob.put("/$web/index.html", "x");
    assert_eq!(visit(blob, "/").expect(200).text(), "x");
    let off = "<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>";
    blob.send(Request::put(PROPERTIES).xml(off)).expect(202);
    visit(blob, "/").expect(404);
    visit(blob, "/index.html").expect(404);
    // The container itself stays private.
    let anonymous = Request::get("/$web/index.html").unsigned().without("x-ms-date");
    blob.send(anonymous).expect_error(401, "NoAuthenticationInformation");
}

#[test]
fn ranges_and_conditions_of_browsers_are_heard() {
    let server = with_website();
    let blob = &server.blob();
    let whole = visit(blob, "/").expect(200);
    let etag = whole.required("ETag").to_owned();
    let part = blob.send(at(HOST, Request::get("/").header("Range", "bytes=4-7"))).expect(206);
    assert_eq!((part.text(), part.required("Content-Range")), ("root", "bytes 4-7/13"));
    blob.send(at(HOST, Request::get("/").header("Range", "bytes=99-"))).expect(416);
    let kept = blob.send(at(HOST, Request::get("/").header("If-None-Match", &etag))).expect(304);
    assert_eq!((kept.required("ETag"), kept.body.len()), (&*etag, 0));
    let modified = whole.required("Last-Modified").to_owned();
    blob.send(at(HOST, Request::get("/").header("If-Modified-Since", &modified))).expect(304);
}

#[test]
fn rules_for_other_origins_are_those_of_the_service() {
    let server = with_website();
    let blob = &server.blob();
    let from = |origin: &str| blob.send(at(HOST, Request::get("/").header("Origin", origin))).expect(200);
    assert_eq!(from("http://other.example").header("Access-Control-Allow-Origin"), None);
    let rule = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://other.example</AllowedOrigins>\
         <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>0</MaxAgeInSeconds><ExposedHeaders /><AllowedHeaders />\
         </CorsRule></Cors></StorageServiceProperties>";
    blob.send(Request::put(PROPERTIES).xml(rule)).expect(202);
    assert_eq!(from("http://other.example").required("Access-Control-Allow-Origin"), "http://other.example");
    assert_eq!(from("http://third.example").header("Access-Control-Allow-Origin"), None);
}

#[test]
fn visitors_do_nothing_but_read_and_see_only_the_website() {
    let server = with_website();
    let blob = &server.blob();
    blob.create("abc");
    blob.put("/abc/secret", "secret");
    for method in ["PUT", "POST", "DELETE", "PATCH"] {
        blob.send(at(HOST, Request::new(method, "/index.html"))).expect_error(405, "UnsupportedHttpVerb");
    }
    // Not even the owner, whose signature nobody looks at here.
    let owner = Request::put("/index.html").style(Style::Host(HOST.to_owned()));
    blob.send(owner.header("x-ms-blob-type", "BlockBlob")).expect_error(405, "UnsupportedHttpVerb");
    for path in ["/abc/secret", "/../abc/secret", "/..%2Fabc/secret", "/$web/index.html", "/%00", "//"] {
        let found = visit(blob, path);
        assert!(found.status == 404 || found.status == 400, "{path}: {found:?}");
        assert!(!found.text().contains("secret<") && found.text() != "secret", "{path}: {found:?}");
    }
    // The protocol's own headers and parameters mean nothing: no tags to guess, no snapshots, no encryption keys.
    for (name, value) in [
        ("x-ms-if-tags", "\"a\" = 'b'"),
        ("x-ms-lease-id", "d9ecf1a8-6e13-4b5a-8b4c-000000000000"),
        ("x-ms-range", "bytes=0-1"),
        ("x-ms-encryption-key", "AAAA"),
        ("x-ms-version", "nonsense"),
        ("Authorization", "SharedKey devstoreaccount1:AAAA"),
    ] {
        let page = blob.send(at(HOST, Request::get("/")).header(name, value)).expect(200);
        assert_eq!(page.text(), "<h1>root</h1>", "{name}");
    }
    // A website is no source of a copy, and nothing inside a batch.
    let copy = Request::put("/abc/copy").header("x-ms-copy-source", &format!("http://{HOST}/index.html"));
    let refused = blob.send(copy);
    assert!(refused.status >= 400, "{refused:?}");
    blob.send(Request::get("/abc/copy")).expect_error(404, "BlobNotFound");
}
