//! Get Queue Metadata and Set Queue Metadata (§4.4, §4.5), and the rules for metadata (§2.6).

use testkit::{Queues, Request, Response, TestServer};

use crate::{pass, with_queue, with_stopped_clock};

#[track_caller]
fn get(queue: &Queues<'_>) -> Response {
    queue.send(Request::get("/abc?comp=metadata")).expect(200)
}

fn set() -> Request {
    Request::put("/abc?comp=metadata")
}

/// The metadata in an answer's headers, names in lower case, sorted.
fn shown(response: &Response) -> Vec<String> {
    let lines = response.headers.iter().filter_map(|(name, value)| {
        let name = name.to_lowercase();
        Some(format!("{}={value}", name.strip_prefix("x-ms-meta-")?))
    });
    let mut found: Vec<String> = lines.collect();
    found.sort();
    found
}

#[test]
fn metadata_are_headers_without_a_body() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set().header("x-ms-meta-hello", "world").header("x-ms-meta-number", "43")).expect(204);
    let found = get(&queue);
    assert_eq!(shown(&found), ["hello=world", "number=43"]);
    assert_eq!(found.required("x-ms-approximate-messages-count"), "0");
    assert_eq!((found.required("Content-Length"), found.required("Cache-Control")), ("0", "no-cache"));
    assert_eq!((found.header("Content-Type"), found.body.len()), (None, 0));
}

/// Trap 22.
#[test]
fn head_shows_the_same_headers() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set().header("x-ms-meta-a", "1")).expect(204);
    let (got, head) = (get(&queue), queue.send(Request::head("/abc?comp=metadata")).expect(200));
    assert_eq!(shown(&head), shown(&got));
    for name in ["x-ms-approximate-messages-count", "x-ms-version", "Cache-Control", "Content-Length"] {
        assert_eq!(head.header(name), got.header(name), "{name}");
    }
}

#[test]
fn setting_replaces_all() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set().header("x-ms-meta-a", "1").header("x-ms-meta-b", "2")).expect(204);
    queue.send(set().header("x-ms-meta-b", "3").header("x-ms-meta-c", "4")).expect(204);
    assert_eq!(shown(&get(&queue)), ["b=3", "c=4"]);
    queue.send(set()).expect(204);
    assert!(shown(&get(&queue)).is_empty());
}

#[test]
fn setting_leaves_messages_and_policies_alone() {
    let server = with_queue();
    let queue = server.queue();
    let policy = crate::POLICY;
    queue.send(Request::put("/abc?comp=acl").xml(policy)).expect(204);
    let message = queue.put("abc", "x");
    queue.send(set().header("x-ms-meta-a", "1")).expect(204);
    assert_eq!(queue.texts("abc"), ["x"]);
    assert_eq!(queue.send(Request::get("/abc?comp=acl")).expect(200).elements("Id"), ["p"]);
    queue.send(message.delete("abc")).expect(204);
}

#[test]
fn values_are_kept_as_they_are() {
    let server = with_queue();
    let queue = server.queue();
    for value in ["", "a", "two words", "a:b=c;d,e", "!#$%&'*+-.^_`|~\"()<>@[]{}?/\\", "~"] {
        queue.send(set().header("x-ms-meta-a", value)).expect(204);
        assert_eq!(get(&queue).required("x-ms-meta-a"), value);
    }
}

#[test]
fn names_are_identifiers() {
    let server = with_queue();
    let queue = server.queue();
    for good in ["a", "_", "_1", "a1_b2", "Z"] {
        queue.send(set().header(&format!("x-ms-meta-{good}"), "v")).expect(204);
    }
    for bad in ["1", "1a", "a-b", "-", "a.b", "a!", "a~b"] {
        let refused =
            queue.send(set().header(&format!("x-ms-meta-{bad}"), "v")).expect_error(400, "InvalidMetadata");
        let message = "The metadata specified is invalid. It has characters that are not permitted.";
        assert_eq!(refused.error_message(), message, "{bad}");
    }
    let empty = queue.send(set().header("x-ms-meta-", "v")).expect_error(400, "EmptyMetadataKey");
    assert_eq!(empty.error_message(), "The key for one of the metadata key-value pairs is empty.");
    let created = Request::put("/other").header("x-ms-meta-a-b", "v");
    queue.send(created).expect_error(400, "InvalidMetadata");
    queue.send(Request::get("/other?comp=metadata")).expect_error(404, "QueueNotFound");
}

#[test]
fn one_name_occurs_once() {
    let server = with_queue();
    let queue = server.queue();
    for other in ["x-ms-meta-a", "x-ms-meta-A"] {
        let twice = set().header("x-ms-meta-a", "1").another_header(other, "2");
        assert_eq!(queue.send(twice).expect(400).error_code(), "InvalidMetadata", "{other}");
    }
    assert!(shown(&get(&queue)).is_empty());
}

#[test]
fn values_are_ascii() {
    let server = with_queue();
    let queue = server.queue();
    // It is signed all the same, and refused for what it is.
    queue.send(set().header("x-ms-meta-a", "\u{e4}")).expect_error(400, "InvalidMetadata");
    assert!(shown(&get(&queue)).is_empty());
}

#[test]
fn all_together_have_at_most_8_kib() {
    let server = with_queue();
    let queue = server.queue();
    let long = "v".repeat(4095);
    let most = || set().header("x-ms-meta-a", &long).header("x-ms-meta-b", &long);
    queue.send(most()).expect(204);
    assert_eq!(get(&queue).required("x-ms-meta-b"), long);
    let refused = queue.send(most().header("x-ms-meta-c", "")).expect_error(400, "MetadataTooLarge");
    assert_eq!(refused.error_message(), "The metadata specified exceeds the maximum permissible limit.");
    let create = Request::put("/other").header("x-ms-meta-a", &"v".repeat(8192));
    queue.send(create).expect_error(400, "MetadataTooLarge");
    assert_eq!(get(&queue).required("x-ms-meta-a"), long);
}

/// Trap 13: the Python client sends a header without a name beside the real ones.
#[test]
fn a_header_without_a_dash_is_no_metadata() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(set().header("x-ms-meta", "{'val': 'value'}").header("x-ms-meta-val", "value")).expect(204);
    assert_eq!(shown(&get(&queue)), ["val=value"]);
}

/// §4.4: visible and invisible messages count, expired ones do not.
#[test]
fn the_count_is_that_of_all_messages() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "1");
    queue.put_with("abc", "messagettl=10", "2");
    queue.put_with("abc", "visibilitytimeout=100", "hidden");
    assert_eq!(queue.count("abc"), 3);
    let taken = queue.get_one("abc", "visibilitytimeout=50");
    assert_eq!(queue.count("abc"), 3);
    pass(&clock, 10);
    assert_eq!(queue.count("abc"), 2);
    queue.send(taken.delete("abc")).expect(204);
    assert_eq!(queue.count("abc"), 1);
    queue.send(Request::delete("/abc/messages")).expect(204);
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn the_count_follows_many_messages() {
    let server = with_queue();
    let queue = server.queue();
    for n in 0..40 {
        queue.put("abc", &n.to_string());
    }
    assert_eq!(queue.count("abc"), 40);
    let taken = queue.get("abc", "numofmessages=32");
    assert_eq!((taken.len(), queue.count("abc")), (32, 40));
    for message in &taken[..10] {
        queue.send(message.delete("abc")).expect(204);
    }
    assert_eq!(queue.count("abc"), 30);
}

#[test]
fn metadata_of_a_queue_are_not_those_of_another() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(Request::put("/abc").header("x-ms-meta-a", "1")).expect(201);
    queue.send(Request::put("/abcd").header("x-ms-meta-a", "2")).expect(201);
    assert_eq!(shown(&get(&queue)), ["a=1"]);
}
