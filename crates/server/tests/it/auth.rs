//! Shared Key and Shared Key Lite (§8.2): published vectors, both account keys, dates, and every refusal (§8.7).

use std::sync::Arc;
use std::time::Duration;

use engine::env::{FakeClock, UNIX_EPOCH_TICKS};
use testkit::{
    EMULATOR_ACCOUNT, EMULATOR_KEY, Request, Response, Scheme, Style, TestServer, entity_json, http_date,
    signature,
};

const FAILED: &str = "Server failed to authenticate the request. Make sure the value of Authorization header is formed \
                      correctly including the signature.";
const SECOND_KEY: &str = "c2Vjb25kIGtleSBzZWNvbmQga2V5IHNlY29uZCBrZXk=";
const BOTH: [Scheme; 2] = [Scheme::SharedKey, Scheme::SharedKeyLite];

#[track_caller]
fn refused(response: Response) -> Response {
    let response = response.expect_message(403, "AuthenticationFailed", FAILED);
    assert_eq!(response.header("x-ms-error-code"), Some("AuthenticationFailed"));
    response
}

#[test]
fn the_published_vectors_are_accepted() {
    // Tue, 21 Sep 2021 00:50:22 GMT
    let clock = Arc::new(FakeClock::new(UNIX_EPOCH_TICKS + 1_632_185_422 * 10_000_000));
    let server = TestServer::options().clock(clock).start();
    let date = "Tue, 21 Sep 2021 00:50:22 GMT";
    assert_eq!(http_date(server.now()), date);
    let create = |table: &str| {
        let body = format!("{{\"TableName\":\"{table}\"}}");
        Request::post("/Tables").body("application/json;odata=nometadata", body)
    };
    let request = create("mytable")
        .header("Authorization", "SharedKey devstoreaccount1:oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=");
    server.send(request).expect(201);
    let request = create("inhost")
        .style(Style::Host("devstoreaccount1.table.core.windows.net".to_owned()))
        .header("Authorization", "SharedKey devstoreaccount1:a9OWBhrP50p2bxJAepogFCyaD2c951dGhWvjKDFe9Wk=");
    server.send(request).expect(201);
    server.insert("mytable", "pk", "a b", "");
    let request = Request::get("/mytable(PartitionKey='pk',RowKey='a%20b')").header(
        "Authorization",
        "SharedKeyLite devstoreaccount1:DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=",
    );
    server.send(request).expect(200);
}

#[test]
fn both_schemes_sign_every_operation() {
    let server = TestServer::start();
    for scheme in BOTH {
        let table = format!("t{}", scheme.name());
        let path = format!("/{table}(PartitionKey='p',RowKey='r')");
        let json = entity_json("p", "r", "");
        let batch = testkit::Batch::new().insert(&table, &entity_json("p", "r2", "")).request();
        for (request, status) in [
            (Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}")), 201),
            (Request::get("/Tables?$top=1"), 200),
            (Request::post(&format!("/{table}")).json(&json), 201),
            (Request::get(&format!("/{table}()?$filter=x%20eq%201")), 200),
            (Request::get(&path), 200),
            (Request::put(&path).json("{}"), 204),
            (Request::merge(&path).json("{}"), 204),
            (Request::post(&path).json("{}").header("X-HTTP-Method", "MERGE"), 204),
            (batch, 202),
            (Request::delete(&path).header("If-Match", "*"), 204),
            (Request::delete(&format!("/Tables('{table}')")), 204),
        ] {
            server.send(request.scheme(scheme)).expect(status);
        }
    }
}

#[test]
fn either_key_of_an_account_signs() {
    let accounts = format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}:{SECOND_KEY}");
    let server = TestServer::options().accounts(&accounts).start();
    for scheme in BOTH {
        for key in [EMULATOR_KEY, SECOND_KEY] {
            server
                .send(Request::get("/Tables").scheme(scheme).credentials(EMULATOR_ACCOUNT, key))
                .expect(200);
        }
        let unknown = "dW5rbm93biBrZXkgdW5rbm93biBrZXk=";
        refused(server.send(Request::get("/Tables").scheme(scheme).credentials(EMULATOR_ACCOUNT, unknown)));
    }
}

#[test]
fn the_signature_covers_what_it_should() {
    let server = TestServer::with_table("mytable");
    for scheme in BOTH {
        let post = Request::post("/mytable").json(&entity_json("p", scheme.name(), "")).scheme(scheme);
        refused(server.send(post.clone().signed_target("/devstoreaccount1/other")));
        refused(server.send(post.clone().signed_target("/mytable")));
        refused(server.send(post.clone().signed_target("/devstoreaccount1/mytable?comp=acl")));
        // Of the query, only `comp` is signed.
        let get = Request::get("/mytable()?$top=1&timeout=5").scheme(scheme);
        server.send(get.signed_target("/devstoreaccount1/mytable()")).expect(200);
    }
    let bytes = server.bytes_of(&Request::put("/mytable(PartitionKey='p',RowKey='r')").json("{}"));
    let text = String::from_utf8(bytes).unwrap();
    for (signed, sent) in
        [("PUT ", "MERGE "), ("Content-Type: application/json", "Content-Type: application/json;x=y")]
    {
        let changed = text.replacen(signed, sent, 1);
        refused(server.connect().exchange(changed.as_bytes()).unwrap());
    }
    let request =
        Request::put("/mytable(PartitionKey='p',RowKey='r')").json("{}").header("Content-MD5", "abc");
    server.send(request).expect(204);
}

#[test]
fn lite_does_not_cover_the_verb() {
    let server = TestServer::with_table("mytable");
    let request =
        Request::put("/mytable(PartitionKey='p',RowKey='r')").json("{}").scheme(Scheme::SharedKeyLite);
    let text = String::from_utf8(server.bytes_of(&request)).unwrap();
    assert_eq!(server.connect().exchange(text.replacen("PUT ", "MERGE ", 1).as_bytes()).unwrap().status, 204);
}

#[test]
fn a_date_is_good_for_fifteen_minutes_either_way() {
    let clock = Arc::new(FakeClock::default());
    let server = TestServer::options().clock(clock).start();
    let now = server.now();
    let minutes = |count: u64| Duration::from_secs(count * 60);
    for scheme in BOTH {
        for (date, good) in [
            (now, true),
            (now - minutes(14), true),
            (now + minutes(14), true),
            (now - minutes(15), true),
            (now - minutes(15) - Duration::from_secs(1), false),
            (now + minutes(15) + Duration::from_secs(1), false),
            (now - minutes(60 * 24), false),
            (now + minutes(60 * 24), false),
        ] {
            let date = http_date(date);
            for header in ["x-ms-date", "Date"] {
                let request =
                    Request::get("/Tables").scheme(scheme).without("x-ms-date").header(header, &date);
                let response = server.send(request);
                match good {
                    true => drop(response.expect(200)),
                    false => drop(refused(response)),
                }
            }
        }
    }
}

#[test]
fn x_ms_date_wins_over_date() {
    let clock = Arc::new(FakeClock::default());
    let server = TestServer::options().clock(clock).start();
    let stale = http_date(server.now() - Duration::from_secs(3600));
    for scheme in BOTH {
        server.send(Request::get("/Tables").scheme(scheme).header("Date", &stale)).expect(200);
        server.send(Request::get("/Tables").scheme(scheme).header("Date", "nonsense")).expect(200);
        let now = http_date(server.now());
        let request = Request::get("/Tables").scheme(scheme).header("x-ms-date", &stale).header("Date", &now);
        refused(server.send(request));
    }
}

#[test]
fn a_date_is_needed() {
    let server = TestServer::start();
    for scheme in BOTH {
        refused(server.send(Request::get("/Tables").scheme(scheme).without("x-ms-date")));
        for date in ["yesterday", "2025-01-01T00:00:00Z", "0"] {
            refused(server.send(Request::get("/Tables").scheme(scheme).header("x-ms-date", date)));
        }
    }
}

#[test]
fn an_authorization_that_cannot_be_read_is_a_bad_request() {
    let server = TestServer::start();
    let message = "Authentication information is not given in the correct format. Check the value of Authorization header.";
    for value in [
        "SharedKey",
        "SharedKey ",
        "SharedKey devstoreaccount1",
        "garbage",
        "SharedKey :abc=",
        "Basic eDp5",
        "SharedKey devstoreaccount1:",
    ] {
        let response = server.send(Request::get("/Tables").header("Authorization", value));
        let response = response.expect_message(400, "InvalidAuthenticationInfo", message);
        assert_eq!(response.header("x-ms-error-code"), Some("InvalidAuthenticationInfo"), "{value}");
    }
}

#[test]
fn a_wrong_signature_is_refused() {
    let server = TestServer::start();
    for scheme in ["SharedKey", "SharedKeyLite"] {
        for value in ["AAAA", "oSRL1U6GT6H9ozZwtxhmNf81TZ6hYxZt0accxTeX5n8=", &signature(EMULATOR_KEY, "x")] {
            let header = format!("{scheme} devstoreaccount1:{value}");
            refused(server.send(Request::get("/Tables").header("Authorization", &header)));
        }
    }
    // A right signature with the other scheme's name is refused.
    let bytes = server.bytes_of(&Request::get("/Tables").scheme(Scheme::SharedKeyLite));
    let text = String::from_utf8(bytes).unwrap().replace("SharedKeyLite", "SharedKey");
    refused(server.connect().exchange(text.as_bytes()).unwrap());
}

/// A signed header counts whatever characters it has. Shared Key Lite does not sign this one.
#[test]
fn a_header_beyond_ascii_is_signed() {
    let server = TestServer::start();
    for scheme in BOTH {
        let request =
            Request::get("/Tables").scheme(scheme).header("Content-Type", "application/json;x=\u{e4}");
        server.send(request.clone()).expect(200);
        let bytes = server.bytes_of(&request);
        let at = bytes.windows(2).position(|pair| pair == "\u{e4}".as_bytes()).unwrap();
        let latin = [&bytes[..at], b"\xe4", &bytes[at + 2..]].concat();
        assert_eq!(server.connect().exchange(&latin).unwrap().status, 200);
    }
}

#[test]
fn the_account_in_the_header_is_that_of_the_url() {
    let server = TestServer::start();
    let request =
        Request::get("/Tables").credentials("otheraccount", EMULATOR_KEY).path_account(EMULATOR_ACCOUNT);
    refused(server.send(request));
}

#[test]
fn no_credentials_depends_on_the_version() {
    let server = TestServer::with_table("mytable");
    for version in [None, Some("2017-11-09"), Some("2019-02-02"), Some("2019-07-07")] {
        let request = Request::get("/mytable()").unsigned();
        let request = match version {
            Some(version) => request.header("x-ms-version", version),
            None => request.without("x-ms-version"),
        };
        let message = "The specified resource does not exist.";
        let response = server.send(request).expect_message(404, "ResourceNotFound", message);
        assert_eq!(response.header("WWW-Authenticate"), None);
    }
    for version in ["2019-12-12", "2020-12-06", "2026-06-06"] {
        let response = server.send(Request::get("/mytable()").unsigned().header("x-ms-version", version));
        let message = "Server failed to authenticate the request. Please refer to the information in the \
                       www-authenticate header.";
        let response = response.expect_message(401, "NoAuthenticationInformation", message);
        check_challenge(&response);
    }
}

#[test]
fn a_bearer_token_is_not_valid_here() {
    let server = TestServer::with_table("mytable");
    let request = Request::get("/mytable()").header("Authorization", "Bearer eyJ0.eyJh.c2ln");
    let response = refused(server.send(request.clone().header("x-ms-version", "2019-07-07")));
    assert_eq!(response.header("WWW-Authenticate"), None);
    let response = server.send(request.header("x-ms-version", "2020-12-06"));
    let response = response.expect_error(401, "InvalidAuthenticationInfo");
    check_challenge(&response);
}

#[track_caller]
fn check_challenge(response: &Response) {
    let challenge = response.required("WWW-Authenticate");
    assert!(challenge.starts_with("Bearer authorization_uri=https://"), "{challenge}");
    assert!(challenge.contains(" resource_id=https://storage.azure.com"), "{challenge}");
    assert_eq!(response.header("x-ms-error-code"), Some(response.error_code().as_str()));
}

#[test]
fn signatures_over_another_spelling_of_the_path_are_tried_too() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    let plain = "/devstoreaccount1/mytable(PartitionKey='p',RowKey='r')";
    for scheme in BOTH {
        let sent = "/mytable%28PartitionKey=%27p%27%2CRowKey=%27r%27%29";
        server.send(Request::get(sent).scheme(scheme)).expect(200);
        server.send(Request::get(sent).scheme(scheme).signed_target(plain)).expect(200);
        let body = testkit::Batch::new().insert("mytable", &entity_json("p", scheme.name(), ""));
        let mut request = body.request().scheme(scheme);
        request.target = "/%24batch".to_owned();
        server.send(request.signed_target("/devstoreaccount1/$batch")).expect(202);
    }
}

#[test]
fn strangers_learn_nothing_about_paths() {
    let server = TestServer::with_table("mytable");
    for target in ["/mytable()", "/absent()", "/Tables('x')", "/no/such/thing", "/$batch", "/mytable(broken"]
    {
        refused(server.send(Request::get(target).header("Authorization", "SharedKey devstoreaccount1:AAAA")));
    }
}

#[test]
fn the_version_is_checked_before_the_signature() {
    let server = TestServer::start();
    let request = Request::get("/Tables").header("Authorization", "SharedKey devstoreaccount1:AAAA");
    server.send(request.header("x-ms-version", "nonsense")).expect_error(400, "InvalidHeaderValue");
}

#[test]
fn a_refused_write_writes_nothing() {
    let server = TestServer::with_table("mytable");
    let request = Request::post("/mytable").json(&entity_json("p", "r", ""));
    refused(server.send(request.header("Authorization", "SharedKey devstoreaccount1:AAAA")));
    server.get("mytable", "p", "r").expect(404);
}
