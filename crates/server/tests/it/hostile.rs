//! How little an unauthenticated client can cost: credentials are checked before a body is read, and every input that
//! can grow is refused at its bound, with the right answer. The binary's tests send ten thousand random requests.

use std::time::Duration;

use testkit::{Request, Response, Sas, Stopwatch, TestServer, entity_json};

const VERSION: &str = "2019-02-02";
/// Far longer than any of these requests may take, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// The request is answered in time, with one of these errors, and the next client is served.
#[track_caller]
fn check(server: &TestServer, request: Request, expected: &[(u16, &str)]) -> Response {
    let watch = Stopwatch::start();
    let bytes = server.bytes_of(&request);
    let response = server.connect().exchange(&bytes).unwrap();
    assert!(watch.elapsed() < PATIENCE, "{:?}", watch.elapsed());
    let code = if response.body.is_empty() { String::new() } else { response.error_code() };
    let shown: String = request.target.chars().take(60).collect();
    assert!(expected.contains(&(response.status, &*code)), "{} {shown}: {response:?}", request.method);
    server.send(Request::get("/Tables")).expect(200);
    response
}

fn bombs() -> Vec<String> {
    let entities: String =
        (1..10).map(|at| format!("<!ENTITY e{at} \"{}\">", format!("&e{};", at - 1).repeat(10))).collect();
    vec![
        format!("<!DOCTYPE x [<!ENTITY e0 \"ha\">{entities}]><SignedIdentifiers>&e9;</SignedIdentifiers>"),
        "<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><SignedIdentifiers>&e;</SignedIdentifiers>"
            .to_owned(),
        "<!DOCTYPE x [<!ENTITY % p SYSTEM \"http://127.0.0.1:1/x\">%p;]><SignedIdentifiers />".to_owned(),
        "<SignedIdentifiers>&e;</SignedIdentifiers>".to_owned(),
        "<a>".repeat(500_000),
        format!("<SignedIdentifiers>{}", "<SignedIdentifier>".repeat(100_000)),
        format!("<SignedIdentifiers {}/>", "a='b' ".repeat(200_000)),
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<SignedIdentifier/>".repeat(100_000)),
        format!("<SignedIdentifiers>{}</SignedIdentifiers>", "<!--x-->".repeat(100_000)) + "<",
        format!("<?xml version=\"1.0\" encoding=\"{}\"?><SignedIdentifiers/>", "x".repeat(100_000)),
    ]
}

#[test]
fn credentials_are_checked_before_the_body_is_read() {
    let server = TestServer::with_table("mytable");
    let bad = "SharedKey devstoreaccount1:AAAA";
    let expired = Sas::account(VERSION).set("se", "2001-01-01").sign(server.credentials());
    for target in ["/mytable", "/Tables", "/$batch", "/mytable?comp=acl", "/?restype=service&comp=properties"]
    {
        let method = if target.contains("comp=") { "PUT" } else { "POST" };
        let body = Request::new(method, target).json("").header("Content-Length", "1000000");
        for request in [
            body.clone().header("Authorization", bad),
            body.clone().sas(&expired),
            body.clone().unsigned(),
            body.clone().header("Authorization", bad).header("Expect", "100-continue"),
        ] {
            // The answer comes although only the head was sent.
            let mut client = server.connect();
            client.send(&server.bytes_of(&request)).unwrap();
            let response = client.read_response(false).unwrap();
            assert!([403, 404].contains(&response.status), "{method} {target}: {response:?}");
        }
    }
}

#[test]
fn permissions_are_checked_before_the_body_is_read() {
    let server = TestServer::with_table("mytable");
    let reader = Sas::account(VERSION).set("sp", "r").sign(server.credentials());
    for target in ["/mytable", "/Tables", "/mytable?comp=acl", "/?restype=service&comp=properties"] {
        let method = if target.contains("comp=") { "PUT" } else { "POST" };
        let request = Request::new(method, target).json("").header("Content-Length", "1000000").sas(&reader);
        let mut client = server.connect();
        client.send(&server.bytes_of(&request)).unwrap();
        assert_eq!(client.read_response(false).unwrap().status, 403, "{method} {target}");
    }
}

#[test]
fn strangers_have_nothing_parsed() {
    let server = TestServer::with_table("mytable");
    let refused = [(403, "AuthenticationFailed")];
    let deep = format!("{}x eq 1{}", "(".repeat(5_000), ")".repeat(5_000));
    for request in [
        Request::get("/mytable()").query("$filter", &deep),
        Request::get(&format!("/mytable{}", "(".repeat(5_000))),
        Request::get("/mytable()?$select=a,,b&$top=-1&timeout=x&$orderby=x"),
        Request::post("/mytable").json(&"[".repeat(100_000)),
        Request::put("/mytable?comp=acl").body("application/xml", bombs().remove(0)),
    ] {
        check(&server, request.header("Authorization", "SharedKey devstoreaccount1:AAAA"), &refused);
    }
}

#[test]
fn xml_has_no_entities_and_no_depth() {
    let server = TestServer::with_table("mytable");
    for body in bombs() {
        for target in ["/mytable?comp=acl", "/?restype=service&comp=properties"] {
            let body = body.replace(
                "SignedIdentifiers",
                if target.contains("acl") { "SignedIdentifiers" } else { "StorageServiceProperties" },
            );
            let request = Request::put(target).body("application/xml", body);
            let response =
                check(&server, request, &[(400, "InvalidXmlDocument"), (413, "RequestBodyTooLarge")]);
            assert!(!response.text().contains("root:"), "{response:?}");
        }
    }
}

#[test]
fn xml_bodies_are_bounded_like_all_others() {
    let server = TestServer::with_table("mytable");
    let large = " ".repeat((4 << 20) + 1);
    for target in ["/mytable?comp=acl", "/?restype=service&comp=properties"] {
        let request = Request::put(target).body("application/xml", large.clone());
        check(&server, request, &[(413, "RequestBodyTooLarge"), (400, "InvalidXmlDocument")]);
    }
}

#[test]
fn filters_have_no_depth() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", r#""x":1"#);
    for depth in [1_000, 5_000, 20_000] {
        for filter in [
            format!("{}x eq 1{}", "(".repeat(depth), ")".repeat(depth)),
            format!("{}(x eq 1)", "not ".repeat(depth)),
            "(".repeat(depth),
            ")".repeat(depth),
            format!("x eq {}1", "-".repeat(depth)),
            format!("{}x eq 1", "not(".repeat(depth)),
        ] {
            let target = format!("/mytable()?$filter={}", filter.replace(' ', "+"));
            check(
                &server,
                Request::get(&target),
                &[(400, "InvalidInput"), (501, "NotImplemented"), (414, "")],
            );
        }
    }
    // A wide filter is not deep, but its width is bounded, too.
    for count in [10, 1_000, 4_000] {
        let target = format!("/mytable()?$filter={}", vec!["x+eq+1"; count].join("+or+"));
        check(&server, Request::get(&target), &[(200, ""), (400, "InvalidInput")]);
    }
}

#[test]
fn json_has_no_depth() {
    let server = TestServer::with_table("mytable");
    for depth in [100, 10_000, 1_000_000] {
        for body in [
            "[".repeat(depth),
            "{\"a\":".repeat(depth.min(500_000)),
            format!(
                "{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"x\":{}{}}}",
                "[".repeat(depth),
                "]".repeat(depth)
            ),
            format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"x\":{}}}", "9".repeat(depth + 400)),
        ] {
            let refused = [
                (400, "InvalidInput"),
                (400, "PropertiesNeedValue"),
                (400, "PropertyValueTooLarge"),
                (400, "InvalidValueType"),
            ];
            check(&server, Request::post("/mytable").json(&body), &refused);
        }
    }
    server.get("mytable", "p", "r").expect(404);
}

#[test]
fn paths_have_no_depth() {
    let server = TestServer::with_table("mytable");
    for count in [10, 1_000, 20_000] {
        for target in [
            format!("/mytable{}", "(".repeat(count)),
            format!("/mytable{}{}", "(".repeat(count), ")".repeat(count)),
            format!("/mytable(PartitionKey='{}", "''".repeat(count)),
            format!("/mytable{}", "/Tables".repeat(count / 10)),
            format!("/mytable({}RowKey='r')", "PartitionKey='p',".repeat(count / 10)),
            format!("/{}", "x".repeat(count + 60)),
        ] {
            let response = server.connect().exchange(&server.bytes_of(&Request::get(&target))).unwrap();
            assert!([400, 404, 414, 501].contains(&response.status), "{count}: {response:?}");
        }
    }
}

#[test]
fn nothing_is_unpacked() {
    let server = TestServer::with_table("mytable");
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".repeat(100);
    for encoding in ["gzip", "deflate", "br"] {
        let request = Request::post("/mytable").body("application/json", gzip.clone());
        check(
            &server,
            request.header("Content-Encoding", encoding),
            &[(400, "InvalidInput"), (415, "MediaTypeNotSupported")],
        );
    }
    server.insert("mytable", "p", "r", "");
    let response = server.send(Request::get("/mytable()").header("Accept-Encoding", "gzip, deflate, br"));
    assert_eq!(response.expect(200).header("Content-Encoding"), None);
}

#[test]
fn a_token_of_any_length_is_only_refused() {
    let server = TestServer::with_table("mytable");
    for token in [
        Sas::table(VERSION, "mytable").set("spk", &"x".repeat(10_000)).with_signature("AAAA"),
        Sas::account(VERSION).set("sp", &"r".repeat(10_000)).with_signature("AAAA"),
        Sas::account(VERSION).set("sip", &"1.".repeat(5_000)).with_signature("AAAA"),
        format!("{}sig=AAAA", "sv=2019-02-02&".repeat(1_000)),
        format!("sig={}", "A".repeat(20_000)),
        format!("{}&sig=x", "&".repeat(20_000)),
        Sas::table(VERSION, "mytable").set("si", "\n\n\n").sign(server.credentials()),
        Sas::table(VERSION, "mytable").set("spk", "a\nb").sign(server.credentials()),
    ] {
        check(&server, Request::get("/mytable()").sas(&token), &[(403, "AuthenticationFailed")]);
    }
    // A genuine token may be long.
    let long = Sas::table(VERSION, "mytable").set("epk", &"z".repeat(1_000)).sign(server.credentials());
    server.send(Request::get("/mytable()").sas(&long)).expect(200);
}

#[test]
fn preflights_are_bounded() {
    let server = TestServer::with_table("mytable");
    for length in [10, 1_000, 30_000] {
        let request = Request::new("OPTIONS", "/mytable").unsigned().header("Origin", &"o".repeat(length));
        let request = request.header("Access-Control-Request-Method", &"M".repeat(length));
        let request = request.header("Access-Control-Request-Headers", &"x,".repeat(length));
        check(&server, request, &[(403, "CorsPreflightFailure"), (431, "")]);
    }
}

#[test]
fn a_batch_has_a_bounded_number_of_parts() {
    let server = TestServer::with_table("mytable");
    let part = "--b\r\nContent-Type: application/http\r\n\r\nGET /mytable() HTTP/1.1\r\n\r\n\r\n";
    for body in [
        part.repeat(20_000),
        "--b\r\n".repeat(500_000),
        format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{}", "--c\r\n".repeat(500_000)),
        "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n".repeat(50_000),
        entity_json("p", "r", ""),
    ] {
        let request = Request::post("/$batch").body("multipart/mixed; boundary=b", body);
        let response = server.connect().exchange(&server.bytes_of(&request)).unwrap();
        assert!([202, 400].contains(&response.status), "{response:?}");
        assert!(!response.text().contains("HTTP/1.1 2"), "{response:?}");
    }
}
