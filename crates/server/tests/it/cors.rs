//! CORS over the wire (§10.2, §10.3): preflights without credentials, the order in which rules match, and every row of
//! the table of CORS headers on ordinary answers, errors included.

use testkit::{EMULATOR_KEY, Request, Response, Style, TestServer, entity_json, entity_path};

const A: &str = "http://a.example.com";
const B: &str = "http://b.example.com";

/// A rule written `origins methods allowed exposed`; `-` is an empty list.
fn rule(text: &str) -> String {
    let lists: Vec<&str> = text.split(' ').map(|list| list.trim_matches('-')).collect();
    format!(
        "<CorsRule><AllowedOrigins>{}</AllowedOrigins><AllowedMethods>{}</AllowedMethods><AllowedHeaders>{}</AllowedHeaders><ExposedHeaders>{}</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>",
        lists[0], lists[1], lists[2], lists[3]
    )
}

fn set_rules(server: &TestServer, rules: &[&str]) {
    let rules: String = rules.iter().map(|text| rule(text)).collect();
    let body = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    let request = Request::put("/?restype=service&comp=properties").body("application/xml", body);
    server.send(request).expect(202);
    server.wait_until_known_everywhere();
}

/// A server with table `mytable`, entity ('p','r') and these rules.
fn world(rules: &[&str]) -> TestServer {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    set_rules(&server, rules);
    server
}

/// A preflight as a browser sends it: no credentials, no version, no Accept.
fn preflight(target: &str, origin: &str, method: &str, headers: Option<&str>) -> Request {
    let mut request = Request::new("OPTIONS", target).unsigned();
    for name in ["x-ms-version", "x-ms-date", "Accept", "DataServiceVersion"] {
        request = request.without(name);
    }
    request = request.header("Origin", origin).header("Access-Control-Request-Method", method);
    match headers {
        Some(headers) => request.header("Access-Control-Request-Headers", headers),
        None => request,
    }
}

#[track_caller]
fn check_allowed(server: &TestServer, origin: &str, method: &str, headers: Option<&str>, shown: &str) {
    let response = server.send(preflight("/mytable", origin, method, headers)).expect(200);
    assert_eq!(response.body, b"");
    assert_eq!(response.header("Content-Length"), Some("0"));
    assert_eq!(response.header("Access-Control-Allow-Origin"), Some(shown));
    assert_eq!(response.header("Access-Control-Allow-Methods"), Some(method));
    assert_eq!(response.header("Access-Control-Allow-Headers"), headers);
    assert_eq!(response.header("Access-Control-Max-Age"), Some("60"));
    let credentials = (shown != "*").then_some("true");
    assert_eq!(response.header("Access-Control-Allow-Credentials"), credentials);
    assert!(response.header("x-ms-request-id").is_some());
}

#[track_caller]
fn check_refused(server: &TestServer, origin: &str, method: &str, headers: Option<&str>) {
    let response = server.send(preflight("/mytable", origin, method, headers));
    let message = "CORS not enabled or no matching rule found for this request.";
    let response = response.expect_message(403, "CorsPreflightFailure", message);
    assert_eq!(response.header("x-ms-error-code"), Some("CorsPreflightFailure"));
    assert_eq!(response.reason, message);
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
    assert!(!response.headers.iter().any(|(name, _)| name.starts_with("access-control-")), "{response:?}");
}

#[test]
fn a_preflight_repeats_what_was_asked_for() {
    let server = world(&[&format!("{A} PUT,GET content-type,accept,x-ms-* *")]);
    check_allowed(&server, A, "PUT", Some("content-type,accept"), A);
    check_allowed(&server, A, "PUT", Some("Content-Type, ACCEPT,x-ms-version,X-MS-DATE"), A);
    check_allowed(&server, A, "GET", None, A);
    check_refused(&server, A, "DELETE", None);
    check_refused(&server, A, "put", None);
    check_refused(&server, B, "PUT", None);
    check_refused(&server, A, "PUT", Some("content-type,authorization"));
    check_refused(&server, "HTTP://A.example.com", "PUT", None);
    check_refused(&server, "http://a.example.com:8080", "PUT", None);
    check_refused(&server, "https://a.example.com", "PUT", None);
    check_refused(&server, "null", "PUT", None);
}

#[test]
fn an_origin_is_repeated_up_to_512_bytes_and_header_names_up_to_16_kib() {
    let server = world(&["http://*.contoso.com GET * *"]);
    let origin = |bytes: usize| {
        let (before, after) = ("http://", ".contoso.com");
        [before, &"x".repeat(bytes - before.len() - after.len()), after].concat()
    };
    check_allowed(&server, &origin(512), "GET", None, &origin(512));
    check_refused(&server, &origin(513), "GET", None);
    let names = |bytes: usize| format!("x-name,{}", "y".repeat(bytes - 7));
    check_allowed(&server, &origin(30), "GET", Some(&names(16 * 1024)), &origin(30));
    check_refused(&server, &origin(30), "GET", Some(&names(16 * 1024 + 1)));

    // Another request with such an origin runs, and its answer does not repeat it.
    let get = |bytes| {
        let request = Request::get(&entity_path("mytable", "p", "r")).header("Origin", &origin(bytes));
        let answer = server.send(request).expect(200);
        answer.header("Access-Control-Allow-Origin").map(str::to_owned)
    };
    assert_eq!(get(512), Some(origin(512)));
    assert_eq!(get(513), None);
}

#[test]
fn without_rules_every_preflight_fails() {
    let server = TestServer::with_table("mytable");
    check_refused(&server, A, "GET", None);
    set_rules(&server, &[&format!("{A} GET * *")]);
    check_allowed(&server, A, "GET", None, A);
    let body = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    let request = Request::put("/?restype=service&comp=properties").body("application/xml", body);
    server.send(request).expect(202);
    server.wait_until_known_everywhere();
    check_refused(&server, A, "GET", None);
}

#[test]
fn a_rule_for_everybody_says_so() {
    let server = world(&["* GET,PUT,MERGE,DELETE * *"]);
    for method in ["GET", "PUT", "MERGE", "DELETE"] {
        check_allowed(&server, A, method, Some("authorization,x-anything"), "*");
    }
    check_allowed(&server, "null", "GET", None, "*");
    check_refused(&server, A, "POST", None);
}

#[test]
fn a_wildcard_stands_for_subdomains() {
    let server = world(&["http://*.contoso.com,https://x.org GET * *"]);
    for origin in ["http://www.contoso.com", "http://a.b.contoso.com", "https://x.org"] {
        check_allowed(&server, origin, "GET", None, origin);
    }
    for origin in [
        "http://contoso.com",
        "https://www.contoso.com",
        "http://www.contoso.com:81",
        "http://wwwcontoso.com",
        "http://evil.com/.contoso.com",
        "http://evil.com#.contoso.com",
        "http://www.contoso.com.evil.com",
        "http://x.org",
    ] {
        check_refused(&server, origin, "GET", None);
    }
}

#[test]
fn the_first_rule_for_origin_and_method_decides() {
    let narrow = format!("{A} GET accept *");
    let server = world(&[&narrow, "* GET,PUT * *"]);
    check_allowed(&server, A, "GET", Some("accept"), A);
    // A later rule would allow the header, but only the first match counts.
    check_refused(&server, A, "GET", Some("x-other"));
    // The first rule does not match another method or another origin.
    check_allowed(&server, A, "PUT", Some("x-other"), "*");
    check_allowed(&server, B, "GET", Some("x-other"), "*");
    set_rules(&server, &["* GET,PUT * *", &narrow]);
    check_allowed(&server, A, "GET", Some("x-other"), "*");
}

#[test]
fn header_lists_have_names_prefixes_or_a_star() {
    let server = world(&[&format!("{A} GET x-ms-meta-data,x-ms-meta-target* -"), &format!("{B} GET - -")]);
    for headers in ["x-ms-meta-data", "X-MS-Meta-Data", "x-ms-meta-target", "x-ms-meta-targetandmore"] {
        check_allowed(&server, A, "GET", Some(headers), A);
    }
    for headers in ["x-ms-meta", "x-ms-meta-data2", "accept", "x-ms-meta-data,accept"] {
        check_refused(&server, A, "GET", Some(headers));
    }
    check_allowed(&server, B, "GET", None, B);
    check_refused(&server, B, "GET", Some("accept"));
}

#[test]
fn a_preflight_needs_its_two_headers_and_nothing_else() {
    let server = world(&[&format!("{A} GET * *")]);
    let message = "A required CORS header is not present.";
    let complete = || preflight("/mytable", A, "GET", None);
    for missing in ["Origin", "Access-Control-Request-Method"] {
        let response = server.send(complete().without(missing));
        let response = response.expect_message(400, "InvalidHeaderValue", message);
        assert_eq!(response.header("x-ms-error-code"), Some("InvalidHeaderValue"));
        server.send(complete().header(missing, "")).expect_error(400, "InvalidHeaderValue");
    }
    // Any path works, even of a resource that does not exist, and any other header or body.
    for target in [
        "/",
        "/Tables",
        "/absent",
        "/mytable(PartitionKey='p',RowKey='r')",
        "/$batch",
        "/?restype=service&comp=properties",
        "/mytable?comp=acl",
        "/no/such/thing",
        "/mytable?sv=2019-02-02&sig=nonsense",
    ] {
        server.send(preflight(target, A, "GET", None)).expect(200);
    }
    server.send(complete().header("Authorization", "nonsense")).expect(200);
    server.send(complete().header("Authorization", "SharedKey devstoreaccount1:AAAA")).expect(200);
}

#[test]
fn rules_belong_to_an_account() {
    let accounts = format!("first:{EMULATOR_KEY};second:{EMULATOR_KEY}");
    let server = TestServer::options().accounts(&accounts).start();
    set_rules(&server, &[&format!("{A} GET * *")]);
    let request = preflight("/mytable", A, "GET", None);
    server.send(request.clone()).expect(200);
    server.send(request.clone().path_account("second")).expect_error(403, "CorsPreflightFailure");
    server.send(request.clone().path_account("nobody")).expect_error(404, "ResourceNotFound");
    let host = Style::Host("first.table.core.windows.net".to_owned());
    server.send(request.clone().style(host)).expect(200);
    server.send(request.path_account("first-secondary")).expect(200);
}

/// The CORS headers of an answer: whether it has `Vary: Origin`, its `Allow-Origin`, whether it has `Expose-Headers`.
fn spoken(response: &Response) -> (bool, Option<&str>, bool) {
    let allowed = response.header("Access-Control-Allow-Origin");
    let credentials = response.header("Access-Control-Allow-Credentials");
    let is_concrete = allowed.is_some_and(|origin| origin != "*");
    assert_eq!(credentials, is_concrete.then_some("true"), "{response:?}");
    for absent in ["Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age"] {
        assert_eq!(response.header(absent), None);
    }
    let vary = response.header("Vary");
    assert!(vary.is_none_or(|vary| vary == "Origin"), "{response:?}");
    (vary.is_some(), allowed, response.header("Access-Control-Expose-Headers").is_some())
}

#[test]
fn the_table_of_reads_holds() {
    let (none, exact, every): (&[&str], _, _) =
        (&[], [&*format!("{A} GET,HEAD,PUT * *")], ["* GET,HEAD,PUT * *"]);
    let nothing = (false, None, false);
    for (rules, origin, expected) in [
        (none, None, nothing),
        (&exact[..], None, (true, None, false)),
        (&every[..], None, (false, Some("*"), true)),
        (none, Some(A), nothing),
        (&exact[..], Some(A), (true, Some(A), true)),
        (&exact[..], Some(B), (true, None, false)),
        (&every[..], Some(A), (false, Some("*"), true)),
    ] {
        let server = world(&[]);
        set_rules(&server, rules);
        let path = entity_path("mytable", "p", "r");
        for (method, target, status) in [
            ("GET", "/Tables", 200),
            ("GET", "/mytable()", 200),
            ("GET", path.as_str(), 200),
            ("HEAD", path.as_str(), 200),
            ("GET", "/?restype=service&comp=properties", 200),
            ("GET", "/absent()", 404),
            ("GET", "/mytable()?$filter=nonsense%20here", 400),
        ] {
            let request = Request::new(method, target);
            let request = match origin {
                Some(origin) => request.header("Origin", origin),
                None => request,
            };
            let refused =
                server.send(request.clone().header("Authorization", "SharedKey devstoreaccount1:AAAA"));
            assert_eq!(
                spoken(&refused.expect(403)),
                expected,
                "{method} {target} unsigned, {rules:?} {origin:?}"
            );
            let response = server.send(request).expect(status);
            assert_eq!(spoken(&response), expected, "{method} {target}, {rules:?} {origin:?}");
        }
    }
}

#[test]
fn other_verbs_never_vary() {
    let (exact, every) = (format!("{A} PUT,POST,MERGE,DELETE * *"), "* PUT,POST,MERGE,DELETE * *");
    for (rules, origin, expected) in [
        (exact.as_str(), None, (false, None, false)),
        (exact.as_str(), Some(A), (false, Some(A), true)),
        (exact.as_str(), Some(B), (false, None, false)),
        (every, None, (false, None, false)),
        (every, Some(A), (false, Some("*"), true)),
    ] {
        let server = world(&[rules]);
        let path = entity_path("mytable", "p", "r");
        for request in [
            Request::put(&path).json("{}"),
            Request::merge(&path).json("{}"),
            Request::post("/mytable").json(&entity_json("p", "new", "")),
            Request::post("/mytable").json(&entity_json("p", "new", "")),
            Request::delete(&path).header("If-Match", "*"),
        ] {
            let request = match origin {
                Some(origin) => request.header("Origin", origin),
                None => request,
            };
            assert_eq!(spoken(&server.send(request)), expected, "{rules} {origin:?}");
        }
        // The request is carried out whatever its origin.
        server.get("mytable", "p", "new").expect(200);
        server.get("mytable", "p", "r").expect(404);
    }
}

#[test]
fn exposed_headers_are_those_of_the_answer() {
    let star = format!("{A} GET,POST * *");
    let server = world(&[&star]);
    let read = || Request::get(&entity_path("mytable", "p", "r")).header("Origin", A);
    let response = server.send(read().header("x-ms-client-request-id", "mine")).expect(200);
    let exposed: Vec<String> = names(response.required("Access-Control-Expose-Headers"));
    // As recorded: every header of the answer is exposed, also those of HTTP itself.
    for (name, _) in &response.headers {
        let name = name.to_ascii_lowercase();
        if !name.starts_with("access-control-") && name != "vary" && name != "connection" {
            assert!(exposed.contains(&name), "{name} is not among {exposed:?}");
        }
    }
    for name in &exposed {
        assert!(response.header(name).is_some(), "{name} is exposed and not there");
    }
    set_rules(&server, &[&format!("{A} GET * etag,x-ms-request*,x-absent")]);
    let response = server.send(read()).expect(200);
    let mut exposed = names(response.required("Access-Control-Expose-Headers"));
    exposed.sort();
    assert_eq!(exposed, ["etag", "x-ms-request-id"]);
    set_rules(&server, &[&format!("{A} GET * -")]);
    let response = server.send(read()).expect(200);
    assert_eq!(response.header("Access-Control-Expose-Headers"), None);
    assert_eq!(response.header("Access-Control-Allow-Origin"), Some(A));
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[test]
fn a_change_of_rules_counts_at_once() {
    let server = world(&[]);
    let mut client = server.connect();
    for _ in 0..5 {
        set_rules(&server, &[&format!("{A} GET * *")]);
        let bytes = server.bytes_of(&Request::get("/Tables").header("Origin", A));
        let response = client.exchange(&bytes).unwrap();
        assert_eq!(response.header("Access-Control-Allow-Origin"), Some(A));
        set_rules(&server, &[&format!("{B} GET * *")]);
        let response = client.exchange(&bytes).unwrap();
        assert_eq!(response.header("Access-Control-Allow-Origin"), None);
    }
}
