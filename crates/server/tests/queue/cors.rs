//! CORS (§7): preflights without credentials, the order in which rules match, and the headers of ordinary answers.

use testkit::{Request, Response, TestServer, message_xml};

const A: &str = "http://www.contoso.com";
const B: &str = "http://b.example.com";

/// A rule written `origins methods allowed exposed`; `-` is an empty list.
fn rule(text: &str) -> String {
    let lists: Vec<&str> = text.split(' ').map(|list| if list == "-" { "" } else { list }).collect();
    format!(
        "<CorsRule><AllowedOrigins>{}</AllowedOrigins><AllowedMethods>{}</AllowedMethods><AllowedHeaders>{}</AllowedHeaders><ExposedHeaders>{}</ExposedHeaders><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>",
        lists[0], lists[1], lists[2], lists[3]
    )
}

fn set_rules(server: &TestServer, rules: &[&str]) -> Response {
    let rules: String = rules.iter().map(|text| rule(text)).collect();
    let body = format!("<StorageServiceProperties><Cors>{rules}</Cors></StorageServiceProperties>");
    let response = server.queue().send(Request::put("/?restype=service&comp=properties").xml(&body));
    server.wait_until_known_everywhere();
    response
}

fn world(rules: &[&str]) -> TestServer {
    let server = crate::with_queue();
    set_rules(&server, rules).expect(202);
    server
}

/// A preflight as a browser sends it: no credentials, no version, no Accept.
fn preflight(target: &str, origin: &str, method: &str, headers: Option<&str>) -> Request {
    let mut request = Request::new("OPTIONS", target).unsigned();
    for name in ["x-ms-version", "x-ms-date", "Accept"] {
        request = request.without(name);
    }
    request = request.header("Origin", origin).header("Access-Control-Request-Method", method);
    match headers {
        Some(headers) => request.header("Access-Control-Request-Headers", headers),
        None => request,
    }
}

#[track_caller]
fn check_preflight(
    server: &TestServer,
    origin: &str,
    method: &str,
    headers: Option<&str>,
    shown: Option<&str>,
) {
    let answer = server.queue().send(preflight("/abc", origin, method, headers));
    let Some(shown) = shown else {
        let refused = answer.expect_error(403, "CorsPreflightFailure");
        let message = "CORS not enabled or no matching rule found for this request.";
        assert_eq!(refused.error_message(), message);
        assert_eq!(refused.header("Access-Control-Allow-Origin"), None);
        return;
    };
    let answer = answer.expect(200);
    assert_eq!((answer.body.len(), answer.required("Content-Length")), (0, "0"));
    assert_eq!(answer.header("Access-Control-Allow-Origin"), Some(shown));
    assert_eq!(answer.header("Access-Control-Allow-Methods"), Some(method));
    assert_eq!(answer.header("Access-Control-Allow-Headers"), headers);
    assert_eq!(answer.header("Access-Control-Max-Age"), Some("60"));
    let credentials = (shown != "*").then_some("true");
    assert_eq!(answer.header("Access-Control-Allow-Credentials"), credentials);
    assert!(answer.header("x-ms-request-id").is_some());
}

#[test]
fn without_rules_every_preflight_fails() {
    let server = world(&[]);
    check_preflight(&server, A, "PUT", None, None);
}

#[test]
fn a_preflight_is_answered_by_the_first_rule_for_origin_and_method() {
    let server = world(&[&format!("{A} PUT,GET content-type,accept,x-ms-* -"), "* GET,DELETE * -"]);
    check_preflight(&server, A, "PUT", Some("content-type,accept"), Some(A));
    check_preflight(&server, A, "PUT", None, Some(A));
    check_preflight(&server, A, "GET", Some("X-MS-Date, Accept"), Some(A));
    check_preflight(&server, A, "DELETE", Some("anything"), Some("*"));
    check_preflight(&server, B, "GET", Some("anything"), Some("*"));
    check_preflight(&server, B, "PUT", None, None);
    check_preflight(&server, A, "POST", None, None);
    // The first rule decides, even though the second would allow the header.
    check_preflight(&server, A, "GET", Some("x-other"), None);
}

#[test]
fn origins_match_exactly_or_by_sub_domain() {
    let server = world(&["http://*.contoso.com,http://exact.org GET - -"]);
    for good in ["http://a.contoso.com", "http://a.b.contoso.com", "http://exact.org"] {
        check_preflight(&server, good, "GET", None, Some(good));
    }
    for bad in [
        "http://contoso.com.evil.org",
        "https://a.contoso.com",
        "http://EXACT.org",
        "http://exact.org:81",
        "null",
        "http://acontoso.com",
    ] {
        check_preflight(&server, bad, "GET", None, None);
    }
}

#[test]
fn a_preflight_needs_its_two_headers_and_nothing_else() {
    let server = world(&["* PUT * *"]);
    let queue = server.queue();
    for target in ["/abc", "/missing", "/missing/messages/x", "/", "/A--B?comp=x"] {
        queue.send(preflight(target, A, "PUT", None)).expect(200);
    }
    for missing in ["Origin", "Access-Control-Request-Method"] {
        let refused = queue.send(preflight("/abc", A, "PUT", None).without(missing));
        let refused = refused.expect_error(400, "InvalidHeaderValue");
        assert_eq!(refused.error_message(), "A required CORS header is not present.");
    }
    queue.send(preflight("/abc", A, "PUT", None).path_account("nobody")).expect(404);
}

/// The CORS headers of an answer: origin, credentials, Vary.
fn shown(answer: &Response) -> [Option<String>; 3] {
    ["Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Vary"]
        .map(|name| answer.header(name).map(str::to_owned))
}

#[track_caller]
fn check(server: &TestServer, request: Request, expected: [Option<&str>; 3]) {
    let answer = server.queue().send(request);
    assert_eq!(shown(&answer), expected.map(|text| text.map(str::to_owned)), "{answer:?}");
}

fn get(origin: Option<&str>) -> Request {
    let request = Request::get("/abc?comp=metadata");
    match origin {
        Some(origin) => request.header("Origin", origin),
        None => request,
    }
}

#[test]
fn answers_to_reads_follow_the_table() {
    let exact = world(&[&format!("{A} GET - -")]);
    check(&exact, get(Some(A)), [Some(A), Some("true"), Some("Origin")]);
    check(&exact, get(Some(B)), [None, None, Some("Origin")]);
    check(&exact, get(None), [None, None, Some("Origin")]);
    let any = world(&["* GET - -"]);
    check(&any, get(Some(A)), [Some("*"), None, None]);
    check(&any, get(None), [Some("*"), None, None]);
    let none = world(&[]);
    check(&none, get(Some(A)), [None, None, None]);
    check(&none, get(None), [None, None, None]);
}

#[test]
fn answers_to_writes_follow_the_table() {
    let put = |origin: Option<&str>| {
        let request = Request::post("/abc/messages").xml(&message_xml("a"));
        match origin {
            Some(origin) => request.header("Origin", origin),
            None => request,
        }
    };
    let exact = world(&[&format!("{A} POST - -")]);
    check(&exact, put(Some(A)), [Some(A), Some("true"), None]);
    check(&exact, put(Some(B)), [None, None, None]);
    check(&exact, put(None), [None, None, None]);
    let any = world(&["* POST - -"]);
    check(&any, put(Some(A)), [Some("*"), None, None]);
    check(&any, put(None), [None, None, None]);
    // Requests of any origin run.
    assert_eq!(exact.queue().count("abc"), 3);
}

#[test]
fn headers_of_the_request_are_not_checked_then() {
    let server = world(&[&format!("{A} GET - -")]);
    check(&server, get(Some(A)).header("x-other", "1"), [Some(A), Some("true"), Some("Origin")]);
}

#[test]
fn errors_have_cors_headers_too() {
    let server = world(&[&format!("{A} GET,PUT - *")]);
    for request in [
        Request::get("/missing?comp=metadata"),
        Request::get("/abc/messages?numofmessages=99"),
        Request::get("/abc?comp=metadata").unsigned(),
    ] {
        check(&server, request.header("Origin", A), [Some(A), Some("true"), Some("Origin")]);
    }
}

#[test]
fn headers_of_the_answer_are_exposed_as_the_rule_says() {
    let server = world(&[&format!("{A} GET - x-ms-meta-*,date"), "* GET - *"]);
    let queue = server.queue();
    queue.send(Request::put("/abc?comp=metadata").header("x-ms-meta-color", "red")).expect(204);
    let exposed = |origin: &str| {
        let answer = queue.send(get(Some(origin))).expect(200);
        let mut names: Vec<String> =
            answer.required("Access-Control-Expose-Headers").split(',').map(str::to_lowercase).collect();
        names.sort();
        names
    };
    assert_eq!(exposed(A), ["date", "x-ms-meta-color"]);
    let all = exposed(B);
    for name in [
        "x-ms-request-id",
        "server",
        "x-ms-version",
        "cache-control",
        "content-length",
        "date",
        "x-ms-meta-color",
        "x-ms-approximate-messages-count",
    ] {
        assert!(all.contains(&name.to_owned()), "{name} in {all:?}");
    }
}

#[test]
fn rules_have_bounds() {
    let server = world(&[]);
    let long = format!("http://{}", "a".repeat(250));
    let prefixes = "a-*,b-*,c-*";
    let literals = |count: usize| (0..count).map(|n| format!("h{n}")).collect::<Vec<_>>().join(",");
    for good in [
        format!("{A} {} * *", "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT"),
        format!("* GET {},a-*,b-* -", literals(64)),
    ] {
        set_rules(&server, &[&good]).expect(202);
    }
    for bad in [
        format!("{A} BREW - -"),
        format!("{A} get - -"),
        format!("{long} GET - -"),
        format!("* GET {prefixes} -"),
        format!("* GET - {prefixes}"),
        format!("* GET {} -", literals(65)),
        "- GET - -".to_owned(),
        "* - - -".to_owned(),
        format!("* GET {} -", "h".repeat(257)),
    ] {
        let refused = set_rules(&server, &[&bad]);
        assert_eq!(refused.status, 400, "{bad}");
        assert!(
            matches!(&*refused.error_code(), "InvalidXmlDocument" | "InvalidXmlNodeValue"),
            "{bad}: {refused:?}"
        );
    }
    let large = format!("http://{} GET - -", "a".repeat(200));
    let both = format!(
        "{A} GET {} {}",
        literals(60).replace('h', &"h".repeat(20)),
        literals(60).replace('h', &"g".repeat(20))
    );
    let refused = set_rules(&server, &[&large, &both, &both]);
    assert_eq!(refused.status, 400, "more than 2 KiB: {refused:?}");
}

#[test]
fn queues_and_tables_have_their_own_rules() {
    let server = world(&["* GET - -"]);
    let tables = server.send(Request::get("/Tables").header("Origin", A)).expect(200);
    assert_eq!(tables.header("Access-Control-Allow-Origin"), None);
}

#[test]
fn a_change_of_rules_counts_at_once() {
    let server = world(&["* GET - -"]);
    check_preflight(&server, A, "GET", None, Some("*"));
    set_rules(&server, &[&format!("{A} GET - -")]).expect(202);
    check_preflight(&server, A, "GET", None, Some(A));
    check_preflight(&server, B, "GET", None, None);
    let nothing = "<StorageServiceProperties><Cors /></StorageServiceProperties>";
    server.queue().send(Request::put("/?restype=service&comp=properties").xml(nothing)).expect(202);
    server.wait_until_known_everywhere();
    check_preflight(&server, A, "GET", None, None);
}
