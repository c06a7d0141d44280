//! Shared Key in both forms (§3.1 to §3.3), and everybody who has no key (§3).

use testkit::{
    EMULATOR_ACCOUNT, EMULATOR_KEY, Queues, RawClient, Request, Response, Scheme, Style, TestServer,
    signature,
};

use crate::{operations_on, with_queue, with_stopped_clock};

const DATE: &str = "Fri, 26 Jun 2026 23:39:12 GMT";

fn list() -> Request {
    Request::get("/?comp=list")
}

#[track_caller]
fn check_refused(response: Response) {
    response.expect_error(403, "AuthenticationFailed");
}

fn exchange(queue: &Queues<'_>, text: &str) -> Response {
    RawClient::connect(queue.addr()).unwrap().exchange(text.as_bytes()).unwrap().of_queue()
}

/// Sends a request whose string to sign is given by the test.
fn send_signed(queue: &Queues<'_>, request: Request, scheme: &str, text: &str) -> Response {
    let value = format!("{scheme} {EMULATOR_ACCOUNT}:{}", signature(EMULATOR_KEY, text));
    queue.send(request.header("Authorization", &value))
}

/// §3.3, sent as they are at the time that they name.
#[test]
fn the_published_vectors_open_the_door() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    queue.create("myqueue");
    let common = format!("x-ms-date: {DATE}\r\nx-ms-version: 2025-11-05\r\n");
    let body = "<QueueMessage><MessageText>aGVsbG8=</MessageText></QueueMessage>";
    let put = format!(
        "POST /devstoreaccount1/myqueue/messages?visibilitytimeout=0&messagettl=-1 HTTP/1.1\r\nHost: 127.0.0.1:10001\r\n{common}Content-Type: application/xml\r\nContent-Length: 64\r\nAuthorization: SharedKey devstoreaccount1:phTvgCQg1F0+/SgS5NqDdPcbXkLN1C5sDTBiKVCPkxY=\r\n\r\n{body}"
    );
    exchange(&queue, &put).expect(201);
    let create = format!(
        "PUT /myqueue HTTP/1.1\r\nHost: devstoreaccount1.queue.core.windows.net\r\n{common}x-ms-meta-color: red\r\nContent-Length: 0\r\nAuthorization: SharedKey devstoreaccount1:TvmnyBLQoWjwpa1E2099HQ5r6UMUP795THUtV7DST1g=\r\n\r\n"
    );
    exchange(&queue, &create).expect_error(409, "QueueAlreadyExists");
    let lite = format!(
        "GET /devstoreaccount1/?comp=list HTTP/1.1\r\nHost: 127.0.0.1:10001\r\n{common}Authorization: SharedKeyLite devstoreaccount1:/inO/n6H9BO3hXNnt5YQZDaIyf32i/OINJdWCZnCBqw=\r\n\r\n"
    );
    assert_eq!(exchange(&queue, &lite).expect(200).elements("Name"), ["abc", "myqueue"]);
    let times = "st=2026-06-26T00%3A00%3A00Z&se=2026-06-27T00%3A00%3A00Z&spr=https%2Chttp";
    for (path, token) in [
        (
            "/myqueue/messages?peekonly=true",
            format!("sp=raup&{times}&sv=2025-11-05&sig=dCum2mVwnSJC9T5iMWNNWWTyPKDXWoCbeS232RQM9fY%3D"),
        ),
        (
            "/?comp=list",
            format!(
                "sp=rwdlacup&ss=bqt&srt=sco&{times}&sv=2025-11-05&sig=3VJA%2FuG9rOHlfE2Jf%2FeioLCQpcvfuveXNsLbJfrnbbM%3D"
            ),
        ),
        (
            "/?comp=list",
            format!(
                "sp=rwdlacup&ss=bqt&srt=sco&{times}&sv=2019-12-12&sig=uFVYLkqR1YKxoUKQV6KXSsAGB5nvYFORoJrDIzSQOe4%3D"
            ),
        ),
    ] {
        queue.send(Request::get(path).sas(&token)).expect(200);
    }
    let policy = "<SignedIdentifiers><SignedIdentifier><Id>policy1</Id><AccessPolicy><Expiry>2026-06-27</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    queue.send(Request::put("/myqueue?comp=acl").xml(policy)).expect(204);
    let token = "si=policy1&sv=2025-11-05&sig=iKf1xqV25nUo4NqAlzLRbkw0AuJ55FU%2FTKRZYjR4FzE%3D";
    queue.send(Request::get("/myqueue?comp=metadata").sas(token)).expect(200);
}

#[test]
fn both_forms_sign_every_operation() {
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        let server = with_queue();
        let queue = server.queue();
        for (name, request) in operations_on("missing") {
            let answer = queue.send(request.scheme(scheme));
            assert_eq!((answer.status, &*answer.error_code()), (404, "QueueNotFound"), "{scheme:?} {name}");
        }
        queue.send(list().scheme(scheme)).expect(200);
        queue.send(Request::get("/?restype=service&comp=properties").scheme(scheme)).expect(200);
    }
}

#[test]
fn any_other_key_is_refused() {
    let server = TestServer::options().accounts(&format!("one:{EMULATOR_KEY}:c2Vjb25k;two:dHdv")).start();
    let queue = server.queue();
    queue.send(list()).expect(200);
    queue.send(list().credentials("one", "c2Vjb25k")).expect(200);
    check_refused(queue.send(list().credentials("one", "dHdv")));
    check_refused(queue.send(list().credentials("two", "dHdv").path_account("one")));
    queue.send(list().credentials("two", "dHdv")).expect(200);
    let unknown = queue.send(list().credentials("nobody", EMULATOR_KEY));
    let unknown = unknown.expect_error(404, "ResourceNotFound");
    assert_eq!(unknown.error_message(), "The specified resource does not exist.");
}

#[test]
fn every_part_that_is_signed_is_protected() {
    let server = with_queue();
    let queue = server.queue();
    let base = || Request::put("/abc?comp=metadata").header("x-ms-meta-a", "1");
    let authorization = |request: &Request| {
        let bytes = String::from_utf8(queue.bytes_of(request)).unwrap();
        let line = bytes.lines().find(|line| line.starts_with("Authorization: ")).unwrap();
        line["Authorization: ".len()..].to_owned()
    };
    let date = testkit::http_date(server.now());
    let signed = base().header("x-ms-date", &date);
    let value = authorization(&signed);
    let with_value =
        |request: Request| queue.send(request.header("x-ms-date", &date).header("Authorization", &value));
    with_value(base()).expect(204);
    for changed in [
        base().header("x-ms-meta-a", "2"),
        base().header("x-ms-meta-b", "1"),
        base().without("x-ms-meta-a"),
        base().header("x-ms-client-request-id", "x"),
        base().header("Content-Type", "text/plain"),
        base().header("Content-MD5", "eHg="),
        base().header("Content-Encoding", "identity"),
        base().header("Content-Language", "en"),
        base().header("If-Match", "*"),
        base().header("If-None-Match", "*"),
        base().header("If-Modified-Since", DATE),
        base().header("If-Unmodified-Since", DATE),
        base().header("Range", "bytes=0-1"),
        base().query("timeout", "5"),
        base().version("2020-12-06"),
        Request::put("/abd?comp=metadata").header("x-ms-meta-a", "1"),
        Request::put("/abc?comp=acl").header("x-ms-meta-a", "1"),
        Request::get("/abc?comp=metadata").header("x-ms-meta-a", "1"),
    ] {
        check_refused(with_value(changed));
    }
    // What is not signed may change on the way.
    with_value(base().header("Accept", "text/html").header("User-Agent", "x").header("Origin", "http://a"))
        .expect(204);
}

#[test]
fn the_lite_form_signs_less() {
    let server = with_queue();
    let queue = server.queue();
    let date = testkit::http_date(server.now());
    let text = format!(
        "GET\n\n\n\nx-ms-date:{date}\nx-ms-version:2025-11-05\n/devstoreaccount1/devstoreaccount1/?comp=list"
    );
    let request = || list().header("x-ms-date", &date);
    send_signed(&queue, request(), "SharedKeyLite", &text).expect(200);
    send_signed(&queue, request().query("prefix", "x"), "SharedKeyLite", &text).expect(200);
    check_refused(send_signed(
        &queue,
        Request::get("/?comp=properties").header("x-ms-date", &date),
        "SharedKeyLite",
        &text,
    ));
    check_refused(send_signed(&queue, request(), "SharedKey", &text));
}

#[test]
fn the_form_of_tables_is_refused() {
    let server = with_queue();
    let date = testkit::http_date(server.now());
    let text = format!("GET\n\n\n{date}\n/devstoreaccount1/devstoreaccount1/?comp=list");
    check_refused(send_signed(&server.queue(), list().header("x-ms-date", &date), "SharedKey", &text));
    let text = format!("{date}\n/devstoreaccount1/devstoreaccount1/?comp=list");
    check_refused(send_signed(&server.queue(), list().header("x-ms-date", &date), "SharedKeyLite", &text));
}

/// Trap 11.
#[test]
fn by_path_the_account_is_signed_twice() {
    let server = with_queue();
    let date = testkit::http_date(server.now());
    let lines = format!("GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2025-11-05\n");
    let request = || list().header("x-ms-date", &date);
    let twice = format!("{lines}/devstoreaccount1/devstoreaccount1/\ncomp:list");
    send_signed(&server.queue(), request(), "SharedKey", &twice).expect(200);
    let once = format!("{lines}/devstoreaccount1/\ncomp:list");
    check_refused(send_signed(&server.queue(), request(), "SharedKey", &once));
}

#[test]
fn by_host_the_account_is_signed_once() {
    let server = with_queue();
    let queue = server.queue();
    for host in ["devstoreaccount1.queue.core.windows.net", "devstoreaccount1.queue.localhost:10001"] {
        let found = queue.send(list().style(Style::Host(host.to_owned()))).expect(200);
        assert_eq!(found.elements("Name"), ["abc"], "{host}");
    }
}

#[test]
fn dates_are_at_most_fifteen_minutes_away() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    let at = |date: &str| queue.send(list().header("x-ms-date", date));
    for good in [DATE, "Fri, 26 Jun 2026 23:24:13 GMT", "Fri, 26 Jun 2026 23:54:11 GMT"] {
        at(good).expect(200);
    }
    for bad in
        ["Fri, 26 Jun 2026 23:24:11 GMT", "Fri, 26 Jun 2026 23:54:13 GMT", "Sat, 27 Jun 2026 23:39:12 GMT"]
    {
        check_refused(at(bad));
    }
    for bad in ["yesterday", "2026-06-26T23:39:12Z", "1782517152"] {
        check_refused(at(bad));
    }
}

#[test]
fn the_date_header_is_enough_and_x_ms_date_wins() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
        queue.send(list().without("x-ms-date").header("Date", DATE).scheme(scheme)).expect(200);
        queue.send(list().header("Date", "Thu, 01 Jan 1970 00:00:00 GMT").scheme(scheme)).expect(200);
        check_refused(queue.send(list().without("x-ms-date").scheme(scheme)));
    }
}

/// §3.1, trap 14.
#[test]
fn a_length_of_zero_is_an_empty_line_since_2015_02_21() {
    let server = with_queue();
    let queue = server.queue();
    let date = testkit::http_date(server.now());
    let check = |version: &str, line: &str, is_right: bool| {
        let text = format!(
            "PUT\n\n\n{line}\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n/devstoreaccount1/devstoreaccount1/abc\ncomp:metadata"
        );
        let request = Request::put("/abc?comp=metadata").version(version).header("x-ms-date", &date);
        let answer = send_signed(&queue, request, "SharedKey", &text);
        assert_eq!(answer.status, if is_right { 204 } else { 403 }, "{version} {line:?} {answer:?}");
    };
    check("2014-02-14", "0", true);
    check("2014-02-14", "", false);
    check("2015-02-21", "", true);
    check("2015-02-21", "0", false);
    check("2025-11-05", "", true);
}

#[test]
fn headers_without_a_value_are_signed_since_2016_05_31() {
    let server = with_queue();
    let queue = server.queue();
    let date = testkit::http_date(server.now());
    let check = |version: &str, line: &str, is_right: bool| {
        let text = format!(
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\n{line}x-ms-version:{version}\n/devstoreaccount1/devstoreaccount1/\ncomp:list"
        );
        let request = list().version(version).header("x-ms-date", &date).header("x-ms-empty", "");
        let answer = send_signed(&queue, request, "SharedKey", &text);
        assert_eq!(answer.status, if is_right { 200 } else { 403 }, "{version} {line:?} {answer:?}");
    };
    check("2015-12-11", "", true);
    check("2015-12-11", "x-ms-empty:\n", false);
    check("2016-05-31", "x-ms-empty:\n", true);
    check("2016-05-31", "", false);
}

/// §3.1: some clients imitate the order of .NET, in which a dash has no weight.
#[test]
fn headers_may_be_sorted_by_bytes_or_by_culture() {
    let server = with_queue();
    let queue = server.queue();
    let date = testkit::http_date(server.now());
    for (names, is_right) in [
        (["x-ms-a-b", "x-ms-ab"], true),
        (["x-ms-ab", "x-ms-a-b"], true),
        (["x-ms-a1", "x-ms-a_"], true),
        (["x-ms-a_", "x-ms-a1"], true),
        (["x-ms-ab", "x-ms-aa"], false),
    ] {
        let [first, second] = names;
        let text = format!(
            "GET\n\n\n\n\n\n\n\n\n\n\n\n{first}:1\n{second}:1\nx-ms-date:{date}\nx-ms-version:2025-11-05\n/devstoreaccount1/devstoreaccount1/\ncomp:list"
        );
        let request = list().header("x-ms-date", &date).header(first, "1").header(second, "1");
        let answer = send_signed(&queue, request, "SharedKey", &text);
        assert_eq!(answer.status, if is_right { 200 } else { 403 }, "{names:?} {answer:?}");
    }
}

#[test]
fn blanks_in_values_are_unfolded() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(Request::put("/abc?comp=metadata").header("x-ms-meta-a", "  two \t  words  ")).expect(204);
}

#[test]
fn parameters_are_signed_decoded_sorted_and_in_lower_case() {
    let server = with_queue();
    let queue = server.queue();
    for target in [
        "/?comp=list&prefix=a%20b",
        "/?prefix=%C3%A4&comp=list",
        "/?COMP=list&Prefix=A",
        "/?comp=list&x=2&x=1",
        "/?comp=list&x=%26%3D%2C",
        "/?comp=list&x",
        "/?comp=list&x=",
        "/?comp=list&&x=1",
    ] {
        for scheme in [Scheme::SharedKey, Scheme::SharedKeyLite] {
            let answer = queue.send(Request::get(target).scheme(scheme));
            assert_eq!(answer.status, 200, "{target} {scheme:?}: {answer:?}");
        }
    }
}

/// §3.1: some clients write a blank as `+`.
#[test]
fn a_plus_may_be_signed_as_itself_or_as_a_blank() {
    let server = with_queue();
    let queue = server.queue();
    let date = testkit::http_date(server.now());
    for signed in ["a+b", "a b"] {
        let text = format!(
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2025-11-05\n/devstoreaccount1/devstoreaccount1/\ncomp:list\nprefix:{signed}"
        );
        let request = Request::get("/?comp=list&prefix=a+b").header("x-ms-date", &date);
        send_signed(&queue, request, "SharedKey", &text).expect(200);
    }
}

/// §3.1: joined with a comma by emulators.
#[test]
fn a_header_that_occurs_twice_is_signed_joined_or_refused() {
    let server = with_queue();
    let request = list().header("x-ms-other", "1").another_header("x-ms-other", "2");
    let answer = server.queue().send(request);
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
}

/// Trap 12.
#[test]
fn the_secondary_may_be_signed_with_or_without_its_suffix() {
    let server = with_queue();
    let queue = server.queue();
    let secondary = || list().path_account("devstoreaccount1-secondary");
    queue.send(secondary()).expect(200);
    queue.send(secondary().signed_target("/devstoreaccount1/?comp=list")).expect(200);
    check_refused(queue.send(secondary().signed_target("/other/?comp=list")));
    let host = Style::Host("devstoreaccount1-secondary.queue.core.windows.net".to_owned());
    queue.send(list().style(host)).expect(200);
}

#[test]
fn nobody_gets_in_without_credentials() {
    let server = with_queue();
    let queue = server.queue();
    let mut requests = operations_on("abc");
    requests.push(("List Queues", list()));
    requests.push(("Create Queue", Request::put("/other")));
    requests.push(("Get Properties", Request::get("/?restype=service&comp=properties")));
    for (name, request) in requests {
        let refused = queue.send(request.unsigned());
        assert_eq!((refused.status, &*refused.error_code()), (401, "NoAuthenticationInformation"), "{name}");
        let message = "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
        assert_eq!(refused.error_message(), message);
        let challenge = refused.required("WWW-Authenticate");
        assert!(
            challenge.starts_with("Bearer authorization_uri=https://login.microsoftonline.com/"),
            "{challenge}"
        );
        assert!(
            challenge.ends_with("/oauth2/authorize resource_id=https://storage.azure.com"),
            "{challenge}"
        );
    }
    let old = queue.send(list().unsigned().version("2018-03-28"));
    old.expect_error(404, "ResourceNotFound");
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn what_is_no_authorization_is_called_so() {
    let server = with_queue();
    for bad in [
        "SharedKey",
        "SharedKey devstoreaccount1",
        "Basic dXNlcg==",
        "x",
        "SharedKeyHeavy devstoreaccount1:eA==",
        "SharedKey :",
        ":",
    ] {
        let refused = server.queue().send(list().header("Authorization", bad));
        let refused = refused.expect_error(400, "InvalidAuthenticationInfo");
        let message = "Authentication information is not given in the correct format. Check the value of Authorization header.";
        assert_eq!(refused.error_message(), message, "{bad}");
    }
    for wrong in ["AAAA", "not+base64!", "", &"A".repeat(44), &"A".repeat(5000)] {
        let refused = server
            .queue()
            .send(list().header("Authorization", &format!("SharedKey devstoreaccount1:{wrong}")));
        assert!(matches!(refused.status, 400 | 403), "{wrong}: {refused:?}");
    }
}

/// The text repeats the request. Nothing in it comes from the key.
#[test]
fn a_refusal_tells_the_string_that_the_server_signed() {
    let server = with_queue();
    let refused = server.queue().send(list().credentials(EMULATOR_ACCOUNT, "c2Vjb25k"));
    check_refused(refused.clone());
    let text = refused.text();
    let (_, detail) = text.split_once("<AuthenticationErrorDetail>").unwrap();
    let (detail, _) = detail.split_once("</AuthenticationErrorDetail>").unwrap();
    assert!(detail.starts_with("The MAC signature found in the HTTP request '"), "{detail}");
    let known =
        "' is not the same as any computed signature. Server used following string to sign: 'GET\n\n\n\n";
    assert!(detail.contains(known), "{detail}");
    assert!(detail.contains("x-ms-date:") && detail.contains("\ncomp:list"), "{detail}");
    assert!(detail.ends_with("'."), "{detail}");
}
