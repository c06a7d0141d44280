//! Operations and parameters in general (§1.1): verbs, resources, components, names without case, the timeout.

use testkit::{Request, Scheme, Style, message_xml};

use crate::{operations_on, with_queue};

#[test]
fn names_of_parameters_have_no_case() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "1");
    queue.put("abc", "2");
    for target in [
        "/?Comp=list",
        "/?COMP=LIST",
        "/?RESTYPE=service&Comp=properties",
        "/abc?COMP=metadata",
        "/abc?Comp=ACL",
        "/abc/messages?PeekOnly=true&NumOfMessages=2",
    ] {
        queue.send(Request::get(target)).expect(200);
    }
    let put = Request::post("/abc/messages?VisibilityTimeout=100&MessageTTL=200").xml(&message_xml("a"));
    queue.send(put).expect(201);
    assert_eq!(queue.texts("abc").len(), 2);
    let taken = queue.get("abc", "NUMOFMESSAGES=1&VISIBILITYTIMEOUT=60");
    let path = format!("/abc/messages/{}?PopReceipt={}&VisibilityTimeout=0", taken[0].id, taken[0].receipt);
    queue.send(Request::put(&path)).expect(204);
}

#[test]
fn unknown_parameters_are_ignored() {
    let server = with_queue();
    let queue = server.queue();
    for target in
        ["/?comp=list&x=1&y", "/abc?comp=metadata&whatever=%20", "/abc/messages?sr=q&$top=3&peekonly=true"]
    {
        let answer = queue.send(Request::get(target));
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
    }
    queue.send(Request::put("/abd?x=1")).expect(201);
}

#[test]
fn a_timeout_is_a_number_of_seconds() {
    let server = with_queue();
    let queue = server.queue();
    for good in ["1", "30", "31", "3600", "99999"] {
        queue.send(Request::get("/?comp=list").query("timeout", good)).expect(200);
    }
    for bad in ["x", "1.5", "-1", ""] {
        for (name, request) in operations_on("abc")
            .into_iter()
            .chain([("List Queues", Request::get("/?comp=list")), ("Create Queue", Request::put("/abc"))])
        {
            let refused = queue.send(request.query("timeout", bad));
            assert_eq!(
                (refused.status, &*refused.error_code()),
                (400, "InvalidQueryParameterValue"),
                "{name} {bad}"
            );
            assert_eq!(
                (refused.element("QueryParameterName"), refused.element("QueryParameterValue")),
                ("timeout".into(), bad.into())
            );
        }
    }
}

#[test]
fn a_wrong_verb_is_refused_on_every_resource() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "kept");
    for (target, verbs) in [
        ("/?comp=list", &["PUT", "POST", "DELETE"][..]),
        ("/?restype=service&comp=properties", &["POST", "DELETE"]),
        ("/abc", &["GET", "POST", "MERGE", "PATCH"]),
        ("/abc?comp=metadata", &["POST", "DELETE"]),
        ("/abc?comp=acl", &["POST", "DELETE"]),
        ("/abc/messages", &["PUT", "MERGE"]),
        ("/abc/messages/a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab", &["GET", "POST"]),
    ] {
        for verb in verbs {
            let refused = queue.send(Request::new(verb, target)).expect_error(405, "UnsupportedHttpVerb");
            assert_eq!(
                refused.error_message(),
                "The resource doesn't support specified Http Verb.",
                "{verb} {target}"
            );
        }
    }
    let unknown = queue.send(Request::new("BREW", "/abc"));
    let unknown = unknown.expect_error(400, "InvalidHttpVerb");
    assert_eq!(unknown.error_message(), "The HTTP verb specified was not recognized by the server.");
    assert_eq!(queue.texts("abc"), ["kept"]);
}

#[test]
fn an_unknown_component_is_named() {
    let server = with_queue();
    for target in ["/?comp=tables", "/abc?comp=x", "/?restype=service&comp=x"] {
        let refused =
            server.queue().send(Request::get(target)).expect_error(400, "InvalidQueryParameterValue");
        assert_eq!(refused.element("QueryParameterName"), "comp", "{target}");
    }
    let refused = server.queue().send(Request::get("/abc?comp=%3Cx%3E%26")).expect(400);
    assert_eq!(refused.element("QueryParameterValue"), "<x>&");
}

#[test]
fn a_path_that_is_no_resource_is_refused() {
    let server = with_queue();
    for target in
        ["/abc/other", "/abc/Messages", "/abc/messages/1/2", "/abc//messages", "//abc", "/abc/messages//"]
    {
        server.queue().send(Request::get(target)).expect_error(400, "InvalidUri");
    }
    server.queue().send(Request::get("/")).expect_error(400, "InvalidUri");
}

/// §8: URL and verb, version, caller, permission, name, parameters, body, queue, message, receipt.
#[test]
fn checks_have_an_order() {
    let server = with_queue();
    let queue = server.queue();
    let bad = |target: &str| Request::put(target).xml("nothing");
    queue.send(bad("/A--b/messages/x").version("new").unsigned()).expect_error(400, "InvalidHeaderValue");
    queue.send(bad("/A--b/messages/x").unsigned()).expect_error(401, "NoAuthenticationInformation");
    queue.send(bad("/A--b/messages/x")).expect_error(400, "InvalidResourceName");
    queue.send(bad("/missing/messages/x")).expect_error(400, "MissingRequiredQueryParameter");
    queue.send(bad("/missing/messages/x?popreceipt=invalid")).expect_error(400, "InvalidQueryParameterValue");
    queue
        .send(bad("/missing/messages/x?popreceipt=AAAA&visibilitytimeout=-1"))
        .expect_error(400, "OutOfRangeQueryParameterValue");
    queue
        .send(bad("/missing/messages/x?popreceipt=AAAA&visibilitytimeout=0"))
        .expect_error(400, "InvalidXmlDocument");
    let good = |target: &str| Request::put(target).xml(&message_xml("a"));
    queue
        .send(good("/missing/messages/x?popreceipt=AAAA&visibilitytimeout=0"))
        .expect_error(404, "QueueNotFound");
    queue
        .send(good("/abc/messages/x?popreceipt=AAAA&visibilitytimeout=0"))
        .expect_error(404, "MessageNotFound");
}

/// §1: host style, path style, and what stands after the account.
#[test]
fn accounts_are_in_the_host_or_in_the_path() {
    let server = with_queue();
    let queue = server.queue();
    for host in [
        "devstoreaccount1.queue.core.windows.net",
        "devstoreaccount1.queue.localhost:10001",
        "devstoreaccount1-ipv6.queue.core.windows.net",
        "devstoreaccount1-dualstack.queue.core.windows.net",
        "devstoreaccount1-secondary.queue.core.windows.net",
        "DEVSTOREACCOUNT1.queue.core.windows.net",
    ] {
        let request = Request::get("/abc?comp=metadata").style(Style::Host(host.to_owned()));
        let answer = queue.send(request);
        if host.starts_with('D') {
            assert!(matches!(answer.status, 200 | 403 | 404), "{answer:?}");
        } else {
            assert_eq!(answer.status, 200, "{host}: {answer:?}");
        }
    }
    for host in ["localhost:10001", "host.docker.internal", "azurite", "127.0.0.1", "[::1]:10001"] {
        let request = Request::get("/devstoreaccount1/abc?comp=metadata").style(Style::Host(host.to_owned()));
        queue.send(request).expect(200);
    }
    let listed = queue.send(
        Request::get("/?comp=list").style(Style::Host("devstoreaccount1.queue.core.windows.net".to_owned())),
    );
    assert!(
        listed
            .expect(200)
            .text()
            .contains("ServiceEndpoint=\"http://devstoreaccount1.queue.core.windows.net/\"")
    );
}

#[test]
fn both_schemes_address_alike() {
    let server = with_queue();
    let host = Style::Host("devstoreaccount1.queue.core.windows.net".to_owned());
    let request = Request::get("/abc?comp=metadata").style(host).scheme(Scheme::SharedKeyLite);
    server.queue().send(request).expect(200);
}
