//! Errors: their shape byte for byte (§2.3), and the table of codes (§8) as far as a request can reach them.

use testkit::{Credentials, Queues, Request, Response, Sas, TestServer, message_xml};

use crate::{with_queue, with_stopped_clock};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn element(name: &str, value: &str) -> String {
    if value.is_empty() { format!("<{name} />") } else { format!("<{name}>{value}</{name}>") }
}

fn parameter(name: &str, value: &str, reason: &str) -> String {
    element("QueryParameterName", name) + &element("QueryParameterValue", value) + &element("Reason", reason)
}

fn range(name: &str, value: &str, min: &str, max: &str) -> String {
    element("QueryParameterName", name)
        + &element("QueryParameterValue", value)
        + &element("MinimumAllowed", min)
        + &element("MaximumAllowed", max)
}

/// The whole answer. The message is also the reason phrase; `elements` are those after the message.
#[track_caller]
fn check(response: Response, status: u16, code: &str, message: &str, elements: &str) {
    assert_eq!((response.status, response.header("x-ms-error-code")), (status, Some(code)), "{response:?}");
    assert_eq!(response.reason, message, "{response:?}");
    let id = response.required("x-ms-request-id");
    let text = response.text();
    let time_at = text.find("\nTime:").unwrap() + "\nTime:".len();
    let time = &text[time_at..time_at + "2023-06-16T19:45:53.9586012Z".len()];
    assert!(time.as_bytes()[19] == b'.' && time.ends_with('Z'), "{time}");
    let expected = format!(
        "{HEAD}<Error><Code>{code}</Code><Message>{message}\nRequestId:{id}\nTime:{time}</Message>{elements}</Error>"
    );
    assert_eq!(text, expected);
    assert_eq!(response.required("Content-Length"), response.body.len().to_string());
    assert_eq!(response.required("Content-Type"), "application/xml");
}

#[test]
fn the_time_has_seven_digits_of_a_second() {
    let (server, _) = with_stopped_clock();
    let refused = server.queue().send(Request::get("/missing?comp=acl"));
    assert!(refused.text().contains("\nTime:2026-06-26T23:39:12.0000000Z</Message>"), "{refused:?}");
}

#[test]
fn errors_of_names_and_metadata() {
    let server = with_queue();
    let queue = server.queue();
    let send = |request| queue.send(request);
    check(
        send(Request::put("/Abc")),
        400,
        "InvalidResourceName",
        "The specifed resource name contains invalid characters.",
        "",
    );
    check(
        send(Request::put("/ab")),
        400,
        "OutOfRangeInput",
        "The specified resource name length is not within the permissible limits.",
        "",
    );
    let create = |name: &str| Request::put("/abd").header(name, "v");
    check(
        send(create("x-ms-meta-")),
        400,
        "EmptyMetadataKey",
        "The key for one of the metadata key-value pairs is empty.",
        "",
    );
    check(
        send(create("x-ms-meta-1")),
        400,
        "InvalidMetadata",
        "The metadata specified is invalid. It has characters that are not permitted.",
        "",
    );
    let large = Request::put("/abd").header("x-ms-meta-a", &"v".repeat(9000));
    check(
        send(large),
        400,
        "MetadataTooLarge",
        "The metadata specified exceeds the maximum permissible limit.",
        "",
    );
    let other = Request::put("/abc").header("x-ms-meta-a", "v");
    check(send(other), 409, "QueueAlreadyExists", "The specified queue already exists.", "");
    check(send(Request::delete("/missing")), 404, "QueueNotFound", "The specified queue does not exist.", "");
}

#[test]
fn errors_of_parameters() {
    let server = with_queue();
    let queue = server.queue();
    let send = |target: &str| queue.send(Request::get(target));
    let out_of_range =
        "One of the query parameters specified in the request URI is outside the permissible range.";
    let invalid = "Value for one of the query parameters specified in the request URI is invalid.";
    check(
        send("/abc/messages?numofmessages=100"),
        400,
        "OutOfRangeQueryParameterValue",
        out_of_range,
        &range("numofmessages", "100", "1", "32"),
    );
    check(
        send("/?comp=list&maxresults=0"),
        400,
        "OutOfRangeQueryParameterValue",
        out_of_range,
        &range("maxresults", "0", "1", "5000"),
    );
    check(send("/?comp=x"), 400, "InvalidQueryParameterValue", invalid, &parameter("comp", "x", ""));
    check(
        send("/?comp=list&timeout=x"),
        400,
        "InvalidQueryParameterValue",
        invalid,
        &parameter("timeout", "x", ""),
    );
    check(
        send("/?restype=service&comp=stats"),
        400,
        "InvalidQueryParameterValue",
        invalid,
        &parameter("comp", "stats", ""),
    );
    check(send("/?comp=list&marker=%2F"), 400, "InvalidMarker", "The specified marker is invalid.", "");
    let delete = |target: &str| queue.send(Request::delete(target));
    check(
        delete("/abc/messages/1?popreceipt=invalid"),
        400,
        "InvalidQueryParameterValue",
        invalid,
        &parameter("popreceipt", "invalid", "Invalid pop receipt format"),
    );
    let missing = "A query parameter that's mandatory for this request is not specified.";
    check(
        delete("/abc/messages/1"),
        400,
        "MissingRequiredQueryParameter",
        missing,
        &element("QueryParameterName", "popreceipt"),
    );
    check(
        delete("/abc/messages/1?popreceipt=AAAA"),
        404,
        "MessageNotFound",
        "The specified message does not exist.",
        "",
    );
    let put = Request::post("/abc/messages?visibilitytimeout=9&messagettl=5").xml(&message_xml("a"));
    check(
        queue.send(put),
        400,
        "InvalidQueryParameterValue",
        invalid,
        &parameter("visibilitytimeout", "9", "messagettl must be greater than visibilitytimeout"),
    );
}

#[test]
fn errors_of_addresses_verbs_and_versions() {
    let server = with_queue();
    let queue = server.queue();
    check(
        queue.send(Request::get("/abc/x")),
        400,
        "InvalidUri",
        "The requested URI does not represent any resource on the server.",
        "",
    );
    check(
        queue.send(Request::get("/abc")),
        405,
        "UnsupportedHttpVerb",
        "The resource doesn't support specified Http Verb.",
        "",
    );
    check(
        queue.send(Request::new("BREW", "/abc")),
        400,
        "InvalidHttpVerb",
        "The HTTP verb specified was not recognized by the server.",
        "",
    );
    let version = element("HeaderName", "x-ms-version") + &element("HeaderValue", "new");
    check(
        queue.send(Request::get("/abc").version("new")),
        400,
        "InvalidHeaderValue",
        "The value for one of the HTTP headers is not in the correct format.",
        &version,
    );
    let unknown = queue.send(Request::get("/?comp=list").path_account("nobody"));
    check(unknown, 404, "ResourceNotFound", "The specified resource does not exist.", "");
}

#[test]
fn errors_of_bodies() {
    let server = with_queue();
    let queue = server.queue();
    let document = element("LineNumber", "0") + &element("LinePosition", "0") + &element("Reason", "");
    let post = |body: &str| queue.send(Request::post("/abc/messages").xml(body));
    check(
        post("<QueueMessage/>"),
        400,
        "InvalidXmlDocument",
        "XML specified is not syntactically valid.",
        &document,
    );
    let large = "The request body is too large and exceeds the maximum permissible limit.";
    for size in [65_537, 600_000, 5_000_000] {
        check(
            post(&message_xml(&"x".repeat(size))),
            413,
            "RequestBodyTooLarge",
            large,
            &element("MaxLimit", "65536"),
        );
    }
}

fn refuse(queue: &Queues<'_>, sas: &Sas, code: &str, message: &str) {
    let answer = queue.send(Request::get("/abc/messages?peekonly=true").sas(&sas.sign(queue.credentials())));
    check(answer, 403, code, message, "");
}

#[test]
fn errors_of_callers() {
    let server = with_queue();
    let queue = server.queue();
    let list = || Request::get("/?comp=list");
    check(
        queue.send(list().unsigned()),
        401,
        "NoAuthenticationInformation",
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
        "",
    );
    check(
        queue.send(list().header("Authorization", "x")),
        400,
        "InvalidAuthenticationInfo",
        "Authentication information is not given in the correct format. Check the value of Authorization header.",
        "",
    );
    let Credentials { account, .. } = queue.credentials().clone();
    let forged = queue.send(list().credentials(&account, "AAAA"));
    // `shared_key` tests its text.
    let body = forged.text().to_owned();
    let detail = body.split("AuthenticationErrorDetail>").nth(1).unwrap().trim_end_matches("</");
    check(
        forged,
        403,
        "AuthenticationFailed",
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
        &element("AuthenticationErrorDetail", detail),
    );
    let sas = || Sas::queue_account("2025-11-05");
    let not = "This request is not authorized to perform this operation";
    refuse(
        &queue,
        &sas().set("sp", "w"),
        "AuthorizationPermissionMismatch",
        &format!("{not} using this permission."),
    );
    refuse(
        &queue,
        &sas().set("srt", "s"),
        "AuthorizationResourceTypeMismatch",
        &format!("{not} using this resource type."),
    );
    refuse(
        &queue,
        &sas().set("ss", "b"),
        "AuthorizationServiceMismatch",
        &format!("{not} using this service."),
    );
    refuse(
        &queue,
        &sas().set("spr", "https"),
        "AuthorizationProtocolMismatch",
        &format!("{not} using this protocol."),
    );
    refuse(
        &queue,
        &sas().set("sip", "1.2.3.4"),
        "AuthorizationSourceIPMismatch",
        &format!("{not} using this source IP 127.0.0.1."),
    );
    let acl = queue.send(Request::get("/abc?comp=acl").sas(&sas().sign(queue.credentials())));
    check(acl, 403, "AuthorizationFailure", &format!("{not}."), "");
    let secondary = queue.send(Request::put("/abc").path_account("devstoreaccount1-secondary"));
    assert_eq!(secondary.expect(403).error_code(), "InsufficientAccountPermissions");
    let preflight = Request::new("OPTIONS", "/abc")
        .unsigned()
        .header("Origin", "http://a")
        .header("Access-Control-Request-Method", "PUT");
    check(
        queue.send(preflight),
        403,
        "CorsPreflightFailure",
        "CORS not enabled or no matching rule found for this request.",
        "",
    );
    let preflight = Request::new("OPTIONS", "/abc").unsigned();
    check(queue.send(preflight), 400, "InvalidHeaderValue", "A required CORS header is not present.", "");
}

#[test]
fn too_many_requests_at_once_are_told_so() {
    let server = TestServer::options().limits(|limits| limits.requests_in_flight_max = 0).start();
    let busy = server.queue().send(Request::get("/?comp=list"));
    check(busy, 503, "ServerBusy", "The server is busy.", "");
}

/// §2.3: what the caller sent is escaped, and not repeated at any length.
#[test]
fn texts_of_the_caller_do_not_break_the_document() {
    let server = with_queue();
    let queue = server.queue();
    let refused = queue.send(Request::get("/?comp=list").query("maxresults", "</Error><&\"'>"));
    assert!(refused.text().contains("<QueryParameterValue>&lt;/Error&gt;&lt;&amp;"), "{refused:?}");
    let refused = queue.send(Request::get("/?comp=list").query("maxresults", &"x".repeat(6000))).expect(400);
    assert!(refused.body.len() < 4000);
    let refused = queue.send(Request::get("/?comp=list&maxresults=%00%01%0B")).expect(400);
    assert!(!refused.text().contains(['\0', '\u{1}', '\u{b}']), "{refused:?}");
}
