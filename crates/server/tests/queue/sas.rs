//! Shared access signatures of both kinds (§3.4, §3.5): versions, times, addresses, protocols, policies.

use testkit::{Credentials, Queues, Request, Response, Sas, message_xml};

use crate::{with_queue, with_stopped_clock};

const NEW: &str = "2025-11-05";

fn peek() -> Request {
    Request::get("/abc/messages?peekonly=true")
}

#[track_caller]
fn send(queue: &Queues<'_>, request: Request, sas: &Sas) -> Response {
    queue.send(request.sas(&sas.sign(queue.credentials())))
}

#[track_caller]
fn check(queue: &Queues<'_>, sas: Sas, expected: &str) {
    let answer = send(queue, peek(), &sas);
    let found = if answer.status == 200 { "ok".to_owned() } else { answer.error_code() };
    assert_eq!(found, expected, "{sas:?}\n{answer:?}");
    assert!(matches!(answer.status, 200 | 403), "{sas:?}\n{answer:?}");
}

fn service() -> Sas {
    Sas::queue(NEW, "abc")
}

fn account() -> Sas {
    Sas::queue_account(NEW)
}

#[test]
fn every_version_signs_its_own_lines() {
    let server = with_queue();
    let queue = server.queue();
    for version in [
        "2012-02-12",
        "2013-08-15",
        "2014-02-14",
        "2015-02-21",
        "2015-04-05",
        "2018-11-09",
        "2020-12-06",
        "2025-11-05",
        "2026-06-06",
    ] {
        check(&queue, Sas::queue(version, "abc"), "ok");
    }
    for version in ["2015-04-05", "2019-12-12", "2020-10-02", "2020-12-06", "2025-11-05"] {
        check(&queue, Sas::queue_account(version), "ok");
    }
    check(&queue, Sas::queue_account("2015-02-21"), "AuthenticationFailed");
    check(&queue, Sas::queue("2011-08-18", "abc"), "AuthenticationFailed");
    check(&queue, Sas::queue("new", "abc"), "AuthenticationFailed");
}

#[test]
fn the_signature_covers_every_field() {
    let server = with_queue();
    let queue = server.queue();
    for sas in [
        service().set("st", "2020-01-01").set("sip", "127.0.0.1").set("spr", "https,http"),
        account().set("ses", "scope"),
    ] {
        let signature = testkit::percent_encode(&sas.signature(queue.credentials()));
        queue.send(peek().sas(&sas.with_signature(&signature))).expect(200);
        for (name, value) in [
            ("sp", "rwdlacupx"),
            ("se", "2098-01-01"),
            ("st", "2019-01-01"),
            ("sip", "127.0.0.2"),
            ("spr", "https"),
            ("sv", "2024-11-04"),
            ("si", "x"),
            ("ss", "bq"),
            ("srt", "o"),
            ("ses", "y"),
        ] {
            let is_account = sas.unsigned().contains("ss=");
            let others: &[&str] = if is_account { &["si"] } else { &["ses", "srt", "ss"] };
            if others.contains(&name) {
                continue;
            }
            let changed = sas.clone().set(name, value).with_signature(&signature);
            let refused = queue.send(peek().sas(&changed));
            assert_eq!(
                (refused.status, &*refused.error_code()),
                (403, "AuthenticationFailed"),
                "{name} in {changed}"
            );
        }
    }
}

#[test]
fn wrong_signatures_are_refused() {
    let server = with_queue();
    let queue = server.queue();
    for sas in [service(), account()] {
        for signature in ["", "AAAA", "x", "%FF", &"A".repeat(44), "%zz"] {
            let refused = queue.send(peek().sas(&sas.with_signature(signature)));
            assert_eq!(refused.status, 403, "{refused:?}");
        }
        let other = sas.sign(&Credentials::new("devstoreaccount1", "c2Vjb25k"));
        queue.send(peek().sas(&other)).expect_error(403, "AuthenticationFailed");
    }
}

/// §3.4: the name of the queue is signed; `sr` is ignored.
#[test]
fn a_service_sas_is_for_one_queue() {
    let server = with_queue();
    let queue = server.queue();
    queue.create("other");
    check(&queue, Sas::queue(NEW, "other"), "AuthenticationFailed");
    check(&queue, service().set("sr", "q"), "ok");
    check(&queue, service().set("sr", "b"), "ok");
    check(&queue, Sas::queue("2014-02-14", "other"), "AuthenticationFailed");
    let elsewhere = Request::get("/other/messages?peekonly=true");
    send(&queue, elsewhere, &service()).expect_error(403, "AuthenticationFailed");
}

#[test]
fn times_bound_a_token() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    for sas in [service(), account()] {
        let se = |time: &str| sas.clone().set("se", time);
        for good in [
            "2026-06-26T23:39:13Z",
            "2026-06-26T23:40Z",
            "2026-06-27",
            "2026-06-27T00:00:00.5Z",
            "2026-06-26T23:39:12.5000000Z",
        ] {
            check(&queue, se(good), "ok");
        }
        for bad in ["2026-06-26T23:39:11Z", "2026-06-26T23:39Z", "2026-06-26", "2020-01-01"] {
            check(&queue, se(bad), "AuthenticationFailed");
        }
        let st = |time: &str| sas.clone().set("st", time);
        for good in ["2026-06-26T23:39:12Z", "2026-06-26T23:39Z", "2026-06-26", "2020-01-01T00:00:00Z"] {
            check(&queue, st(good), "ok");
        }
        for bad in ["2026-06-26T23:40Z", "2026-06-27", "2098-01-01"] {
            check(&queue, st(bad), "AuthenticationFailed");
        }
        for bad in ["soon", "2026-13-01", "26-06-2026"] {
            check(&queue, se(bad), "AuthenticationFailed");
            check(&queue, st(bad), "AuthenticationFailed");
        }
    }
}

#[test]
fn addresses_bound_a_token() {
    let server = with_queue();
    let queue = server.queue();
    for sas in [service(), account()] {
        for good in ["127.0.0.1", "127.0.0.0-127.0.0.255", "127.0.0.1-127.0.0.1", "0.0.0.0-255.255.255.255"] {
            check(&queue, sas.clone().set("sip", good), "ok");
        }
        for other in ["127.0.0.2", "10.0.0.0-10.255.255.255", "127.0.0.2-127.0.0.9"] {
            let refused = send(&queue, peek(), &sas.clone().set("sip", other));
            let refused = refused.expect_error(403, "AuthorizationSourceIPMismatch");
            let message =
                "This request is not authorized to perform this operation using this source IP 127.0.0.1.";
            assert_eq!(refused.error_message(), message);
        }
        for bad in ["localhost", "127.0.0.1-", "::1", "127.0.0.0/8"] {
            check(&queue, sas.clone().set("sip", bad), "AuthenticationFailed");
        }
    }
}

#[test]
fn protocols_bound_a_token() {
    let server = with_queue();
    let queue = server.queue();
    for sas in [service(), account()] {
        check(&queue, sas.clone().set("spr", "https,http"), "ok");
        let refused = send(&queue, peek(), &sas.clone().set("spr", "https"));
        let refused = refused.expect_error(403, "AuthorizationProtocolMismatch");
        assert_eq!(
            refused.error_message(),
            "This request is not authorized to perform this operation using this protocol."
        );
        for bad in ["http", "http,https", "ftp"] {
            check(&queue, sas.clone().set("spr", bad), "AuthenticationFailed");
        }
    }
}

#[test]
fn an_account_sas_names_its_services() {
    let server = with_queue();
    let queue = server.queue();
    for good in ["q", "bq", "bqtf", "tq", "qq"] {
        check(&queue, account().set("ss", good), "ok");
    }
    for other in ["b", "t", "btf", "f"] {
        let refused = send(&queue, peek(), &account().set("ss", other));
        let refused = refused.expect_error(403, "AuthorizationServiceMismatch");
        assert_eq!(
            refused.error_message(),
            "This request is not authorized to perform this operation using this service."
        );
    }
    check(&queue, account().set("ss", ""), "AuthenticationFailed");
}

/// §3 tells an account SAS by `ss` and `srt`. Here, as in the Table service, `ss` is enough: it is in no service SAS.
#[test]
fn services_alone_make_no_account_sas() {
    let server = with_queue();
    let queue = server.queue();
    let mut token = service().sign(queue.credentials());
    token.push_str("&ss=q");
    queue.send(peek().sas(&token)).expect(200);
    token.push_str("&srt=o");
    queue.send(peek().sas(&token)).expect_error(403, "AuthenticationFailed");
}

#[test]
fn a_token_of_tables_opens_no_queue_and_the_reverse() {
    let server = with_queue();
    let queue = server.queue();
    server.create_table("abc");
    send(&queue, peek(), &Sas::account(NEW)).expect_error(403, "AuthorizationServiceMismatch");
    send(&queue, peek(), &Sas::table(NEW, "abc")).expect_error(403, "AuthenticationFailed");
    let table = server.send(Request::get("/abc()").sas(&account().sign(server.credentials())));
    assert_eq!(table.status, 403, "{table:?}");
    let both = account().set("ss", "qt").sign(server.credentials());
    server.send(Request::get("/abc()").sas(&both)).expect(200);
    queue.send(peek().sas(&both)).expect(200);
}

/// §3.5: signature, times, address, protocol, service, resource type, permission.
#[test]
fn failures_have_an_order() {
    let server = with_queue();
    let queue = server.queue();
    let mut sas = account()
        .set("sp", "w")
        .set("srt", "s")
        .set("ss", "b")
        .set("spr", "https")
        .set("sip", "1.2.3.4")
        .set("se", "2020-01-01");
    for (name, value, code) in [
        ("se", "2099-01-01", "AuthenticationFailed"),
        ("sip", "127.0.0.1", "AuthorizationSourceIPMismatch"),
        ("spr", "https,http", "AuthorizationProtocolMismatch"),
        ("ss", "q", "AuthorizationServiceMismatch"),
        ("srt", "o", "AuthorizationResourceTypeMismatch"),
        ("sp", "r", "AuthorizationPermissionMismatch"),
    ] {
        check(&queue, sas.clone(), code);
        sas = sas.set(name, value);
    }
    check(&queue, sas, "ok");
}

#[test]
fn what_a_token_must_have() {
    let server = with_queue();
    let queue = server.queue();
    for missing in ["sp", "se", "sv"] {
        check(&queue, service().without(missing), "AuthenticationFailed");
    }
    for missing in ["sp", "se", "sv", "srt"] {
        check(&queue, account().without(missing), "AuthenticationFailed");
    }
}

/// §3.5: signed exactly as written.
#[test]
fn letters_are_signed_in_the_order_sent() {
    let server = with_queue();
    let queue = server.queue();
    check(&queue, account().set("sp", "pulr").set("srt", "ocs").set("ss", "tqb"), "ok");
}

/// §2.4: the header, else `api-version`, else `sv`; with the two oldest versions of `sv` the header does not count.
#[test]
fn the_version_comes_from_the_header_or_the_token() {
    let server = with_queue();
    let queue = server.queue();
    let version = |request: Request, sas: Sas| {
        send(&queue, request, &sas).expect(200).required("x-ms-version").to_owned()
    };
    let bare = || peek().without("x-ms-version");
    assert_eq!(version(peek().version("2020-12-06"), service()), "2020-12-06");
    assert_eq!(version(bare(), Sas::queue("2019-02-02", "abc")), "2019-02-02");
    assert_eq!(version(bare().query("api-version", "2018-03-28"), service()), "2018-03-28");
    assert_eq!(
        version(peek().query("api-version", "2018-03-28").version("2020-12-06"), service()),
        "2020-12-06"
    );
    assert_eq!(version(peek(), Sas::queue("2012-02-12", "abc")), "2012-02-12");
    assert_eq!(version(peek(), Sas::queue("2013-08-15", "abc")), "2013-08-15");
}

#[test]
fn a_key_in_the_header_comes_first() {
    let server = with_queue();
    let queue = server.queue();
    let token = service().set("sp", "a").sign(queue.credentials());
    let mut signed = peek();
    signed.target = format!("{}&{token}", signed.target);
    queue.send(signed).expect(200);
}

fn set_policy(queue: &Queues<'_>, fields: &str) {
    let body = format!(
        "<SignedIdentifiers><SignedIdentifier><Id>policy</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    );
    queue.send(Request::put("/abc?comp=acl").xml(&body)).expect(204);
}

fn by_policy() -> Sas {
    service().without("sp").without("se").set("si", "policy")
}

#[test]
fn a_stored_policy_completes_a_token() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    check(&queue, by_policy(), "AuthenticationFailed");
    set_policy(&queue, "<Expiry>2026-06-27</Expiry><Permission>r</Permission>");
    check(&queue, by_policy(), "ok");
    let put = Request::post("/abc/messages").xml(&message_xml("a"));
    send(&queue, put, &by_policy()).expect_error(403, "AuthorizationPermissionMismatch");
    check(&queue, by_policy().set("si", "other"), "AuthenticationFailed");
    check(&queue, by_policy().set("si", "Policy"), "AuthenticationFailed");
    set_policy(&queue, "<Expiry>2026-06-26</Expiry><Permission>r</Permission>");
    check(&queue, by_policy(), "AuthenticationFailed");
    set_policy(&queue, "<Start>2026-06-27</Start><Expiry>2026-06-28</Expiry><Permission>r</Permission>");
    check(&queue, by_policy(), "AuthenticationFailed");
    set_policy(&queue, "<Permission>r</Permission>");
    check(&queue, by_policy(), "AuthenticationFailed");
    check(&queue, by_policy().set("se", "2026-06-27"), "ok");
    set_policy(&queue, "<Expiry>2026-06-27</Expiry>");
    check(&queue, by_policy().set("sp", "r"), "ok");
    queue.send(Request::put("/abc?comp=acl")).expect(204);
    check(&queue, by_policy().set("sp", "r"), "AuthenticationFailed");
}

#[test]
fn what_the_policy_says_the_token_may_not() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    set_policy(&queue, "<Start>2026-06-26</Start><Expiry>2026-06-27</Expiry><Permission>r</Permission>");
    for (name, value) in [("sp", "r"), ("se", "2026-06-27"), ("st", "2026-06-26")] {
        check(&queue, by_policy().set(name, value), "AuthenticationFailed");
    }
}

#[test]
fn policies_of_other_queues_do_not_count() {
    let server = with_queue();
    let queue = server.queue();
    queue.create("other");
    set_policy(&queue, "<Expiry>2099-01-01</Expiry><Permission>r</Permission>");
    let elsewhere = Sas::queue(NEW, "other").without("sp").without("se").set("si", "policy");
    let request = Request::get("/other/messages?peekonly=true");
    send(&queue, request, &elsewhere).expect_error(403, "AuthenticationFailed");
}

#[test]
fn a_token_works_by_host_and_on_the_secondary() {
    let server = with_queue();
    let queue = server.queue();
    let host = testkit::Style::Host("devstoreaccount1.queue.core.windows.net".to_owned());
    for sas in [service(), account()] {
        send(&queue, peek().style(host.clone()), &sas).expect(200);
        send(&queue, peek().path_account("devstoreaccount1-secondary"), &sas).expect(200);
    }
}

#[test]
fn a_refusal_tells_why() {
    let server = with_queue();
    let queue = server.queue();
    let detail = |sas: &str| {
        let answer = queue.send(peek().sas(sas)).expect(403);
        let text = answer.text().to_owned();
        let (_, rest) = text.split_once("<AuthenticationErrorDetail>").expect("a detail");
        rest.split_once("</AuthenticationErrorDetail>").expect("its end").0.to_owned()
    };
    let forged = detail(&service().with_signature("AAAA"));
    assert_eq!(forged, "Signature fields not well formed.", "a signature has 32 bytes");
    let other = testkit::percent_encode("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let forged = detail(&service().with_signature(&other));
    let expected = format!(
        "Signature did not match. String to sign used was {}",
        service().string_to_sign(testkit::EMULATOR_ACCOUNT)
    );
    assert_eq!(forged, expected);
    let expired = detail(&service().set("se", "2020-01-01").sign(queue.credentials()));
    assert!(
        expired.starts_with(
            "Signed expiry time [Wed, 01 Jan 2020 00:00:00 GMT] must be after signed start time ["
        ),
        "{expired}"
    );
    let early = service().set("st", "2090-01-01").set("se", "2099-01-01");
    let early = detail(&early.sign(queue.credentials()));
    let expected = "Signature not valid in the specified time frame: Start [Sun, 01 Jan 2090 00:00:00 GMT] - \
                    Expiry [Thu, 01 Jan 2099 00:00:00 GMT] - Current [";
    assert!(early.starts_with(expected), "{early}");
}
