//! Stored access policies: Get and Set Table ACL byte for byte (§3.8, §3.9), their limits and errors. Also tokens that
//! name a policy (§8.4): changing or removing it takes effect on the very next request.

use std::sync::Arc;

use engine::env::FakeClock;
use engine_local::{LocalEngine, LocalOptions};
use testkit::{Batch, Request, Response, Sas, TempDir, TestServer, batch_parts, entity_json};

use crate::sas::{VERSIONS, not_authenticated, not_authorized};

const HEAD: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
const FAR: &str = "<Expiry>2099-01-01T00:00:00.0000000Z</Expiry>";

fn get() -> Request {
    Request::get("/mytable?comp=acl").header("Accept", "application/xml")
}

fn set(body: &str) -> Request {
    let request = Request::put("/mytable?comp=acl").header("Accept", "application/xml");
    request.body("application/xml", body)
}

fn document(identifiers: &str) -> String {
    format!("<SignedIdentifiers>{identifiers}</SignedIdentifiers>")
}

fn policy(id: &str, fields: &str) -> String {
    let inside = if fields.is_empty() {
        "<AccessPolicy />".to_owned()
    } else {
        format!("<AccessPolicy>{fields}</AccessPolicy>")
    };
    format!("<SignedIdentifier><Id>{id}</Id>{inside}</SignedIdentifier>")
}

/// An identifier alone, which is also how a policy without fields is shown.
fn bare(id: &str) -> String {
    format!("<SignedIdentifier><Id>{id}</Id></SignedIdentifier>")
}

/// The service returns exactly these policies.
#[track_caller]
fn check_get(server: &TestServer, expected: &str) {
    let response = server.send(get()).expect(200);
    assert_eq!(response.text(), format!("{HEAD}{expected}"));
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
    for absent in ["Cache-Control", "X-Content-Type-Options", "x-ms-error-code"] {
        assert_eq!(response.header(absent), None, "{absent}");
    }
    assert!(response.header("x-ms-request-id").is_some());
    assert_eq!(response.header("x-ms-version"), Some("2019-02-02"));
}

#[track_caller]
fn check_set(server: &TestServer, body: &str, shown: &str) {
    let response = server.send(set(body)).expect(204);
    assert_eq!((response.header("Content-Length"), response.header("Content-Type")), (Some("0"), None));
    for absent in ["Cache-Control", "X-Content-Type-Options"] {
        assert_eq!(response.header(absent), None, "{absent}");
    }
    check_get(server, shown);
}

/// The policies are refused with a front-end error, whose reason phrase is the message, and nothing changes.
#[track_caller]
fn check_refused(server: &TestServer, body: &str, code: &str) {
    let before = server.send(get()).body;
    let response = server.send(set(body)).expect_error(400, code);
    assert_eq!(response.header("x-ms-error-code"), Some(code));
    assert_eq!(response.header("Content-Type"), Some("application/xml"));
    assert!(response.text().starts_with("<?xml"), "no byte-order mark before an error: {response:?}");
    let message = match code {
        "InvalidXmlDocument" => "XML specified is not syntactically valid.",
        _ => "The value for one of the XML nodes is not in the correct format.",
    };
    assert_eq!((response.error_message().as_str(), response.reason.as_str()), (message, message));
    assert_eq!(server.send(get()).body, before, "{body}");
}

#[test]
fn the_recorded_exchange_is_repeated() {
    let server = TestServer::with_table("mytable");
    check_get(&server, "<SignedIdentifiers />");
    let body = "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2021-06-08T03:10:09Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    let shown = "<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    check_set(&server, body, shown);
}

#[test]
fn what_is_set_replaces_the_whole_list() {
    let server = TestServer::with_table("mytable");
    let two = document(&(policy("a", "<Permission>ra</Permission>") + &bare("b")));
    check_set(&server, &two, &two);
    let one = document(&policy("c", FAR));
    check_set(&server, &one, &one);
    check_set(&server, "<SignedIdentifiers />", "<SignedIdentifiers />");
    check_set(&server, &one, &one);
    check_set(&server, "", "<SignedIdentifiers />");
    check_set(&server, &one, &one);
    // A request without a body clears the policies, too.
    server.send(Request::put("/mytable?comp=acl")).expect(204);
    check_get(&server, "<SignedIdentifiers />");
}

#[test]
fn each_field_may_be_left_out() {
    let server = TestServer::with_table("mytable");
    let start = "<Start>2001-01-01T00:00:00.0000000Z</Start>";
    for fields in [
        start.to_owned(),
        FAR.to_owned(),
        "<Permission>raud</Permission>".to_owned(),
        format!("{start}{FAR}"),
        format!("{start}{FAR}<Permission>au</Permission>"),
    ] {
        let body = document(&policy("id", &fields));
        check_set(&server, &body, &body);
    }
    // A policy without fields comes back without its element (§0.4, ruling 5).
    let shown = document(&bare("id"));
    check_set(&server, &shown, &shown);
    check_set(&server, &document(&policy("id", "")), &shown);
    // Some clients send unset fields as empty elements, and a byte-order mark first.
    let empty = policy("id", "<Start /><Expiry></Expiry><Permission />");
    check_set(&server, &format!("\u{FEFF}{}", document(&empty)), &shown);
}

#[test]
fn times_come_back_with_seven_digits() {
    let server = TestServer::with_table("mytable");
    for (given, shown) in [
        ("2030-01-02", "2030-01-02T00:00:00.0000000Z"),
        ("2030-01-02T03:04Z", "2030-01-02T03:04:00.0000000Z"),
        ("2030-01-02T03:04:05Z", "2030-01-02T03:04:05.0000000Z"),
        ("2030-01-02T03:04:05.6Z", "2030-01-02T03:04:05.6000000Z"),
        ("2030-01-02T03:04:05.1234567Z", "2030-01-02T03:04:05.1234567Z"),
        ("2030-01-02T03:04:05+01:00", "2030-01-02T02:04:05.0000000Z"),
    ] {
        for name in ["Start", "Expiry"] {
            let field = |time: &str| document(&policy("id", &format!("<{name}>{time}</{name}>")));
            check_set(&server, &field(given), &field(shown));
        }
    }
    for time in ["soon", "2030", "2030-02-30", "2030-01-02T25:00Z", "2030-01-02T03:04:05.12345678Z"] {
        let body = document(&policy("id", &format!("<Start>{time}</Start>")));
        check_refused(&server, &body, "InvalidXmlNodeValue");
    }
}

#[test]
fn limits_are_kept() {
    let server = TestServer::with_table("mytable");
    let many = |count: usize| document(&(0..count).map(|at| bare(&format!("id{at}"))).collect::<String>());
    check_set(&server, &many(5), &many(5));
    check_refused(&server, &many(6), "InvalidXmlDocument");
    let named = |id: &str| document(&bare(id));
    check_set(&server, &named(&"x".repeat(64)), &named(&"x".repeat(64)));
    check_refused(&server, &named(&"x".repeat(65)), "InvalidXmlDocument");
    check_refused(&server, &named(""), "InvalidXmlDocument");
    check_set(&server, &named("a&amp;b&lt;ü"), &named("a&amp;b&lt;ü"));
    check_refused(&server, &document(&policy("a", "").repeat(2)), "InvalidXmlDocument");
    for letters in ["r", "ra", "raud", "ud"] {
        let body = document(&policy("id", &format!("<Permission>{letters}</Permission>")));
        check_set(&server, &body, &body);
    }
}

#[test]
fn what_is_not_such_a_document_is_refused() {
    let server = TestServer::with_table("mytable");
    let id = "<SignedIdentifier><Id>a</Id></SignedIdentifier>";
    for body in [
        "x",
        "<",
        "<SignedIdentifiers>",
        "<SignedIdentifiers></Other>",
        "<Other />",
        "<signedidentifiers />",
        &document("<Other />"),
        &document("<SignedIdentifier />"),
        &document("<SignedIdentifier><AccessPolicy /></SignedIdentifier>"),
        &document("<SignedIdentifier><Id>a</Id><Other /></SignedIdentifier>"),
        &document("<SignedIdentifier><Id>a</Id><AccessPolicy><Other /></AccessPolicy></SignedIdentifier>"),
        &format!("{}{}", document(id), document(id)),
        &format!("<!DOCTYPE x [<!ENTITY e \"a\">]>{}", document(id)),
        &document("<SignedIdentifier><Id>&e;</Id></SignedIdentifier>"),
    ] {
        check_refused(&server, body, "InvalidXmlDocument");
    }
    for letters in ["x", "rr", "dr", "rw", "R"] {
        let body = document(&policy("id", &format!("<Permission>{letters}</Permission>")));
        check_refused(&server, &body, "InvalidXmlNodeValue");
    }
}

#[test]
fn a_table_that_is_not_there_has_no_policies() {
    let server = TestServer::start();
    let check = |response: Response| {
        let message = "The table specified does not exist.";
        let response = response.expect_message(404, "TableNotFound", message);
        assert_eq!(response.header("x-ms-error-code"), Some("TableNotFound"));
        assert_eq!(response.header("Content-Type"), Some("application/xml"));
        assert_eq!(response.reason, message);
    };
    check(server.send(get()));
    check(server.send(set(&document(&policy("a", "")))));
    for method in ["POST", "DELETE", "MERGE"] {
        let request = Request::new(method, "/mytable?comp=acl").header("Content-Length", "0");
        server.send(request.header("Accept", "application/xml")).expect_error(405, "UnsupportedHttpVerb");
    }
}

/// A token that names the policy `id` and carries these fields itself.
fn named(id: &str, fields: &[(&str, &str)]) -> Sas {
    let bare = Sas::table("2019-02-02", "mytable").without("sp").without("se").set("si", id);
    fields.iter().fold(bare, |sas, (name, value)| sas.set(name, value))
}

fn read(server: &TestServer, sas: &Sas) -> Response {
    server.send(Request::get("/mytable()").sas(&sas.sign(server.credentials())))
}

fn store(server: &TestServer, fields: &str) {
    server.send(set(&document(&policy("id", fields)))).expect(204);
}

#[test]
fn each_term_is_in_the_token_or_in_the_policy_and_never_in_both() {
    let server = TestServer::with_table("mytable");
    let permission = "<Permission>r</Permission>";
    let start = "<Start>2001-01-01T00:00:00Z</Start>";
    let far = ("se", "2099-01-01");
    let check = |stored: &str, fields: &[(&str, &str)], is_good: bool| {
        store(&server, stored);
        let response = read(&server, &named("id", fields));
        if is_good {
            response.expect(200);
        } else {
            not_authenticated(response);
        }
    };
    check(&format!("{start}{FAR}{permission}"), &[], true);
    check(&format!("{FAR}{permission}"), &[], true);
    check(&format!("{FAR}{permission}"), &[("st", "2001-01-01")], true);
    check(permission, &[far], true);
    check(FAR, &[("sp", "r")], true);
    check("", &[("sp", "r"), far], true);
    check(start, &[("sp", "r"), far], true);
    // Refused: a required term is in neither.
    check("", &[], false);
    check("", &[far], false);
    check("", &[("sp", "r")], false);
    check(FAR, &[], false);
    check(permission, &[], false);
    // Refused: a term is in both.
    check(&format!("{FAR}{permission}"), &[far], false);
    check(&format!("{FAR}{permission}"), &[("sp", "r")], false);
    check(&format!("{start}{FAR}{permission}"), &[("st", "2001-01-01")], false);
    // Refused: there is no policy of that name, in that case, or in that table.
    store(&server, &format!("{FAR}{permission}"));
    for id in ["other", "ID", "id ", "i"] {
        not_authenticated(read(&server, &named(id, &[])));
        not_authenticated(read(&server, &named(id, &[("sp", "r"), far])));
    }
    server.create_table("second");
    let elsewhere = named("id", &[]).set("tn", "second").sign(server.credentials());
    not_authenticated(server.send(Request::get("/second()").sas(&elsewhere)));
    let absent = named("id", &[]).set("tn", "absent").sign(server.credentials());
    not_authenticated(server.send(Request::get("/absent()").sas(&absent)));
}

#[test]
fn every_version_may_name_a_policy() {
    let server = TestServer::with_table("mytable");
    store(&server, &format!("{FAR}<Permission>r</Permission>"));
    for version in VERSIONS {
        read(&server, &named("id", &[]).set("sv", version)).expect(200);
    }
}

#[test]
fn the_times_of_a_policy_bind() {
    // The clock stands at the first instant of 2025.
    let server = TestServer::options().clock(Arc::new(FakeClock::default())).start();
    server.create_table("mytable");
    let check = |fields: &str, is_good: bool| {
        store(&server, &format!("{fields}<Permission>r</Permission>"));
        let response = read(&server, &named("id", &[]));
        if is_good {
            response.expect(200);
        } else {
            not_authenticated(response);
        }
    };
    check("<Expiry>2025-01-01T00:00:01Z</Expiry>", true);
    check("<Expiry>2024-12-31T23:59:59Z</Expiry>", false);
    check("<Start>2024-12-31T23:59:59Z</Start><Expiry>2025-01-02</Expiry>", true);
    check("<Start>2025-01-01T00:00:01Z</Start><Expiry>2025-01-02</Expiry>", false);
}

#[test]
fn a_change_counts_from_the_next_request_on() {
    let server = TestServer::with_table("mytable");
    let token = named("id", &[]).sign(server.credentials());
    // The token's requests share one open connection; another connection changes the policy.
    let mut client = server.connect();
    let mut send = |request: Request| client.exchange(&server.bytes_of(&request.sas(&token))).unwrap();
    let query = || Request::get("/mytable()");
    let insert = |row: usize| Request::post("/mytable").json(&entity_json("p", &row.to_string(), ""));
    for round in 0..20 {
        not_authenticated(send(query()));
        store(&server, &format!("{FAR}<Permission>r</Permission>"));
        send(query()).expect(200);
        not_authorized(send(insert(round)), "AuthorizationPermissionMismatch", " using this permission");
        store(&server, &format!("{FAR}<Permission>a</Permission>"));
        not_authorized(send(query()), "AuthorizationPermissionMismatch", " using this permission");
        send(insert(round)).expect(201);
        let batch = Batch::new().insert("mytable", &entity_json("p", &format!("b{round}"), ""));
        assert_eq!(batch_parts(&send(batch.request()))[0].status, 204);
        store(&server, "<Expiry>2001-01-01</Expiry><Permission>a</Permission>");
        not_authenticated(send(insert(100 + round)));
        not_authenticated(send(batch.request()));
        store(&server, &format!("{FAR}<Permission>raud</Permission>"));
        send(query()).expect(200);
        server.send(set("")).expect(204);
    }
    not_authenticated(send(query()));
    let rows = server.send(query()).expect(200).json();
    assert_eq!(rows["value"].as_array().unwrap().len(), 40, "no refused write was made");
}

#[test]
fn renaming_a_policy_revokes_its_tokens() {
    let server = TestServer::with_table("mytable");
    let fields = format!("{FAR}<Permission>r</Permission>");
    store(&server, &fields);
    let sas = named("id", &[]);
    read(&server, &sas).expect(200);
    server.send(set(&document(&policy("renamed", &fields)))).expect(204);
    not_authenticated(read(&server, &sas));
    read(&server, &named("renamed", &[])).expect(200);
}

#[test]
fn a_table_made_again_has_no_policies() {
    let server = TestServer::with_table("mytable");
    store(&server, &format!("{FAR}<Permission>r</Permission>"));
    let sas = named("id", &[]);
    read(&server, &sas).expect(200);
    server.send(Request::delete("/Tables('mytable')")).expect(204);
    not_authenticated(read(&server, &sas));
    server.create_table("MyTable");
    check_get(&server, "<SignedIdentifiers />");
    not_authenticated(read(&server, &sas));
}

#[test]
fn policies_survive_a_restart() {
    let directory = TempDir::new().unwrap();
    let start = || {
        let clock = Arc::new(engine::env::SystemClock::new());
        let engine = LocalEngine::open(directory.path(), LocalOptions::new(tables::FAMILIES, clock)).unwrap();
        TestServer::options().engine(Arc::new(engine)).start()
    };
    let server = start();
    server.create_table("mytable");
    let body = document(&policy("id", &format!("{FAR}<Permission>r</Permission>")));
    check_set(&server, &body, &body);
    drop(server);
    let server = start();
    check_get(&server, &body);
    read(&server, &named("id", &[])).expect(200);
}
