//! Requests that a proxy in front might read otherwise are refused as a whole: 400, and the connection closes.

use testkit::{Request, TestServer, entity_json, entity_path};

fn insert() -> Request {
    Request::post("/mytable").json(&entity_json("p", "r", ""))
}

fn chunked_insert(encoding: &str) -> Request {
    let json = entity_json("p", "r", "");
    let body = format!("{:x}\r\n{json}\r\n0\r\n\r\n", json.len());
    let request = Request::post("/mytable").body("application/json", body).without("Content-Length");
    request.header("Transfer-Encoding", encoding)
}

/// Sends the bytes, alone and behind a request that is right. Nothing is stored, and nothing follows the refusal.
#[track_caller]
fn refused(server: &TestServer, bytes: &[u8]) {
    let right = server.bytes_of(&Request::get("/mytable()"));
    for first in [&[][..], &right] {
        let mut client = server.connect();
        client.send(&[first, bytes, &right].concat()).unwrap();
        if !first.is_empty() {
            assert_eq!(client.read_response(false).unwrap().status, 200);
        }
        let shown = String::from_utf8_lossy(bytes);
        let response = client.read_response(false).expect(&shown);
        assert_eq!(response.status, 400, "{shown}\n{response:?}");
        assert_eq!(client.read_to_end().unwrap_or_default(), b"", "{shown}");
    }
    server.get("mytable", "p", "r").expect_error(404, "ResourceNotFound");
}

#[test]
fn every_line_of_a_head_ends_with_cr_lf() {
    let server = TestServer::with_table("mytable");
    let bytes = server.bytes_of(&insert());
    let head_len = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let crs: Vec<usize> = (0..head_len).filter(|at| bytes[*at] == b'\r').collect();
    assert!(crs.len() > 8);
    for cr in crs {
        let mut bare = bytes.clone();
        bare.remove(cr);
        refused(&server, &bare);
    }
    let head = String::from_utf8(bytes[..head_len].to_vec()).unwrap().replace("\r\n", "\n");
    refused(&server, &[head.as_bytes(), &bytes[head_len..]].concat());
    // A line end within a body is nobody's business.
    let json = entity_json("p", "r", "").replace(',', ",\n\n\r\n\n");
    server.send(Request::post("/mytable").json(&json)).expect(201);
}

#[test]
fn a_header_has_one_line() {
    let server = TestServer::with_table("mytable");
    for value in ["a\r\n folded: b", "a\r\n\tb", "a\rb", "a\r\r\nx: b", "a\0b", "a\r\nx : b", "a\r\n: b"] {
        refused(&server, &server.bytes_of(&insert().header("x-odd", value)));
    }
}

#[test]
fn there_is_one_host() {
    let server = TestServer::with_table("mytable");
    let host = server.addr().to_string();
    for name in ["Host", "host", "HOST"] {
        refused(&server, &server.bytes_of(&insert().another_header(name, &host)));
        refused(&server, &server.bytes_of(&insert().another_header(name, "elsewhere")));
    }
}

#[test]
fn a_host_is_a_name_and_a_port() {
    let server = TestServer::with_table("mytable");
    server.send(insert().header("Host", &"h".repeat(260))).expect_error(400, "InvalidHeaderValue");
    let longest = format!("{}:65535", "h".repeat(253));
    server.send(Request::get("/mytable()").header("Host", &longest)).expect(200);
    for host in ["h".repeat(260), "h".repeat(120_000)] {
        // A line that is far too long may be refused before the service sees it.
        server.send(insert().header("Host", &host)).expect(400);
        let target = format!("http://{}/devstoreaccount1/mytable()", &host[..host.len().min(60_000)]);
        let request = Request::get(&target).style(testkit::Style::Bare).without("Host");
        let request = request.signed_target("/devstoreaccount1/mytable()");
        server.send(request).expect_error(400, "InvalidHeaderValue");
    }
    // The request line and the header name the same host.
    let target = format!("http://{}/devstoreaccount1/mytable()", server.addr());
    let request = Request::get(&target).style(testkit::Style::Bare);
    let request = request.signed_target("/devstoreaccount1/mytable()");
    server.send(request.clone()).expect(200);
    server.send(request.header("Host", "elsewhere")).expect_error(400, "InvalidHeaderValue");
}

#[test]
fn a_body_has_one_length() {
    let server = TestServer::with_table("mytable");
    let len = entity_json("p", "r", "").len();
    for (one, other) in [(len, len + 1), (len + 1, len), (len, len), (0, len)] {
        let request = insert().header("Content-Length", &one.to_string());
        refused(&server, &server.bytes_of(&request.another_header("content-length", &other.to_string())));
    }
    for value in [format!("{len}, {len}"), format!("+{len}"), format!("0x{len:x}"), String::new()] {
        refused(&server, &server.bytes_of(&insert().header("Content-Length", &value)));
    }
    for length in [0, len, 1000] {
        let both = chunked_insert("chunked").another_header("Content-Length", &length.to_string());
        refused(&server, &server.bytes_of(&both));
        let both = insert().header("Content-Length", &length.to_string());
        refused(&server, &server.bytes_of(&both.another_header("Transfer-Encoding", "chunked")));
    }
}

#[test]
fn the_only_transfer_encoding_is_chunked() {
    let server = TestServer::with_table("mytable");
    for encoding in [
        "gzip, chunked",
        "chunked, chunked",
        "chunked, gzip",
        "gzip",
        "identity",
        "xchunked",
        "\"chunked\"",
        "",
    ] {
        refused(&server, &server.bytes_of(&chunked_insert(encoding)));
    }
    let twice = chunked_insert("chunked").another_header("Transfer-Encoding", "chunked");
    refused(&server, &server.bytes_of(&twice));
    let twice = chunked_insert("gzip").another_header("Transfer-Encoding", "chunked");
    refused(&server, &server.bytes_of(&twice));
    server.send(chunked_insert("Chunked")).expect(201);
    server.send(Request::delete(&entity_path("mytable", "p", "r")).header("If-Match", "*")).expect(204);
    // Chunks have CR LF too. By then the head was accepted, so the service answers.
    let bytes = server.bytes_of(&chunked_insert("chunked"));
    for at in (0..bytes.len()).rev().filter(|at| bytes[*at] == b'\r').take(5) {
        let mut bare = bytes.clone();
        bare.remove(at);
        refused(&server, &bare);
    }
}
