//! Headers of every answer (§2.2), and those of requests that need care (§2.1).

use testkit::{Request, Response, message_xml};

use crate::{operations_on, with_queue};

fn is_guid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

#[track_caller]
fn check_common(response: &Response) {
    assert!(is_guid(response.required("x-ms-request-id")), "{response:?}");
    assert_eq!(response.required("x-ms-version"), "2025-11-05");
    assert_eq!(response.required("Server"), "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0");
    assert!(response.required("Date").ends_with(" GMT"));
    // Trap 18.
    assert_eq!((response.header("ETag"), response.header("Last-Modified")), (None, None));
    match response.body.is_empty() {
        true => assert_eq!(response.header("Content-Type"), None, "{response:?}"),
        false => assert_eq!(response.required("Content-Type"), "application/xml"),
    }
}

#[test]
fn every_answer_has_the_common_headers() {
    let server = with_queue();
    let queue = server.queue();
    let mut ids = Vec::new();
    let mut requests = operations_on("missing");
    requests.extend(operations_on("abc").into_iter().skip(1));
    requests.extend([
        ("List Queues", Request::get("/?comp=list")),
        ("Create Queue", Request::put("/other")),
        ("Get Properties", Request::get("/?restype=service&comp=properties")),
        ("Anonymous", Request::get("/?comp=list").unsigned()),
        ("Bad URL", Request::get("/abc/x/y/z")),
    ]);
    for (_, request) in requests {
        let answer = queue.send(request);
        check_common(&answer);
        ids.push(answer.required("x-ms-request-id").to_owned());
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn an_answer_without_a_body_says_that_it_is_empty() {
    let server = with_queue();
    let queue = server.queue();
    let message = queue.put("abc", "a");
    let updated = queue.send(message.hide("abc", 0)).expect(204);
    for answer in [
        queue.send(message.after(&updated).delete("abc")).expect(204),
        updated,
        queue.send(Request::put("/abc?comp=metadata")).expect(204),
        queue.send(Request::put("/abc?comp=acl").xml(crate::POLICY)).expect(204),
        queue.send(Request::delete("/abc/messages")).expect(204),
        queue.send(Request::put("/abd")).expect(201),
        queue.send(Request::delete("/abd")).expect(204),
    ] {
        assert_eq!(answer.header("Content-Length"), Some("0"), "{answer:?}");
    }
}

#[test]
fn only_answers_to_reads_may_not_be_cached() {
    let server = with_queue();
    let queue = server.queue();
    for target in [
        "/?comp=list",
        "/?restype=service&comp=properties",
        "/abc?comp=metadata",
        "/abc?comp=acl",
        "/abc/messages",
        "/abc/messages?peekonly=true",
    ] {
        assert_eq!(
            queue.send(Request::get(target)).expect(200).header("Cache-Control"),
            Some("no-cache"),
            "{target}"
        );
    }
    assert_eq!(queue.send(Request::put("/abd")).expect(201).header("Cache-Control"), None);
    assert_eq!(queue.send(Request::get("/missing?comp=acl")).expect(404).header("Cache-Control"), None);
}

#[test]
fn the_callers_id_is_echoed() {
    let server = with_queue();
    let queue = server.queue();
    let longest = "x".repeat(1024);
    for id in ["271cd9ca-2e97-4279-b5eb-4b866252c40a", "x", "!~", &longest] {
        for target in ["/?comp=list", "/missing?comp=acl"] {
            let answer = queue.send(Request::get(target).header("x-ms-client-request-id", id));
            assert_eq!(answer.header("x-ms-client-request-id"), Some(id), "{target}");
        }
    }
    assert_eq!(queue.send(Request::get("/?comp=list")).header("x-ms-client-request-id"), None);
    let long = "x".repeat(1025);
    let answer = queue.send(Request::get("/?comp=list").header("x-ms-client-request-id", &long)).expect(200);
    assert_eq!(answer.header("x-ms-client-request-id"), None);
    let asked = Request::get("/?comp=list").header("x-ms-return-client-request-id", "true");
    queue.send(asked).expect(200);
}

/// §2.1: old .NET clients send it with every body.
#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let server = with_queue();
    let queue = server.queue();
    let request = Request::post("/abc/messages").xml(&message_xml("a")).header("Expect", "100-continue");
    let bytes = queue.bytes_of(&request);
    let body_at = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut client = queue.connect();
    client.send(&bytes[..body_at]).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 100);
    client.send(&bytes[body_at..]).unwrap();
    assert_eq!(client.read_response(false).unwrap().status, 201);
}

#[test]
fn a_head_error_has_headers_and_no_body() {
    let server = with_queue();
    for target in ["/missing?comp=metadata", "/missing?comp=acl"] {
        let head = server.queue().send(Request::head(target)).expect(404);
        assert_eq!((head.required("x-ms-error-code"), head.body.len()), ("QueueNotFound", 0));
    }
}
