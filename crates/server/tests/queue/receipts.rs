//! Pop receipts: the table of §5.1, for Update Message and Delete Message alike.

use testkit::{Message, Queues, Request};

use crate::{pass, with_queue, with_stopped_clock};

/// Sends both operations with this id and receipt, both exactly as in the URL.
#[track_caller]
fn check(queue: &Queues<'_>, id: &str, receipt: &str, status: u16, code: &str) {
    let path = format!("/abc/messages/{id}?popreceipt={receipt}");
    let update = Request::put(&format!("{path}&visibilitytimeout=0"));
    for request in [update, Request::delete(&path)] {
        let method = request.method.clone();
        let refused = queue.send(request);
        assert_eq!((refused.status, &*refused.error_code()), (status, code), "{method} {path}\n{refused:?}");
    }
}

#[track_caller]
fn check_stale(queue: &Queues<'_>, message: &Message) {
    check(queue, &message.id, &message.receipt, 404, "MessageNotFound");
}

#[test]
fn a_missing_receipt_is_named() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let path = format!("/abc/messages/{}", put.id);
    for request in [Request::put(&format!("{path}?visibilitytimeout=0")), Request::delete(&path)] {
        let refused = queue.send(request).expect_error(400, "MissingRequiredQueryParameter");
        let message = "A query parameter that's mandatory for this request is not specified.";
        assert_eq!(
            (refused.error_message(), refused.element("QueryParameterName")),
            (message.into(), "popreceipt".into())
        );
    }
}

#[test]
fn what_is_no_receipt_is_refused_before_the_message_is_looked_for() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    for (sent, shown) in [
        ("invalid", "invalid"),
        ("abc", "abc"),
        ("%3D%3D%3D%3D", "===="),
        ("a%20bc", "a bc"),
        ("%C3%A4bcd", "\u{e4}bcd"),
    ] {
        for id in [&*put.id, "unknown"] {
            let path = format!("/abc/messages/{id}?popreceipt={sent}");
            for request in [Request::put(&format!("{path}&visibilitytimeout=0")), Request::delete(&path)] {
                let refused = queue.send(request).expect_error(400, "InvalidQueryParameterValue");
                assert_eq!(
                    refused.error_message(),
                    "Value for one of the query parameters specified in the request URI is invalid."
                );
                let found =
                    ["QueryParameterName", "QueryParameterValue", "Reason"].map(|name| refused.element(name));
                assert_eq!(found, ["popreceipt", shown, "Invalid pop receipt format"].map(str::to_owned));
            }
        }
    }
    check(&queue, &put.id, "", 400, "InvalidQueryParameterValue");
    let missing = Request::delete("/missing/messages/unknown?popreceipt=invalid");
    queue.send(missing).expect_error(400, "InvalidQueryParameterValue");
}

/// Trap 1.
#[test]
fn a_foreign_receipt_matches_no_message() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    for foreign in
        ["AgAAAAMAAAAAAAAAHFrsOFDq2AE%3D", "AwAAAAMAAAAAAAAAJWAXJ1Dq2AEBAAAA", "bjoiqbcycpsabwpecydj", "AAAA"]
    {
        check(&queue, &put.id, foreign, 404, "MessageNotFound");
        check(&queue, "unknown", foreign, 404, "MessageNotFound");
    }
    assert_eq!(queue.texts("abc"), ["a"]);
}

#[test]
fn every_taking_and_update_makes_older_receipts_stale() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let first = queue.get_one("abc", "visibilitytimeout=1");
    check_stale(&queue, &put);
    let updated = first.after(&queue.send(first.hide("abc", 1)).expect(204));
    check_stale(&queue, &put);
    check_stale(&queue, &first);
    pass(&clock, 1);
    let second = queue.get_one("abc", "");
    for stale in [&put, &first, &updated] {
        check_stale(&queue, stale);
    }
    queue.send(second.delete("abc")).expect(204);
    check_stale(&queue, &second);
}

#[test]
fn an_update_of_the_same_time_makes_the_receipt_stale_too() {
    let (server, _) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    let taken = queue.get_one("abc", "visibilitytimeout=30");
    let updated = taken.after(&queue.send(taken.hide("abc", 30)).expect(204));
    check_stale(&queue, &taken);
    queue.send(updated.delete("abc")).expect(204);
}

/// §5.1: a slow consumer can still delete a message that nobody else took.
#[test]
fn a_receipt_stays_valid_until_somebody_takes_the_message() {
    let (server, clock) = with_stopped_clock();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.put("abc", "b");
    let (one, two) =
        (queue.get_one("abc", "visibilitytimeout=1"), queue.get_one("abc", "visibilitytimeout=1"));
    pass(&clock, 1000);
    assert_eq!(queue.texts("abc").len(), 2);
    queue.send(one.delete("abc")).expect(204);
    let updated = two.after(&queue.send(two.hide("abc", 60)).expect(204));
    assert!(queue.texts("abc").is_empty());
    queue.send(updated.delete("abc")).expect(204);
}

#[test]
fn peeking_and_metadata_leave_receipts_alone() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    queue.peek("abc");
    queue.count("abc");
    queue.send(Request::put("/abc?comp=metadata").header("x-ms-meta-a", "1")).expect(204);
    queue.send(put.delete("abc")).expect(204);
}

/// Trap 9.
#[test]
fn receipts_survive_being_put_into_a_url_without_escaping() {
    let server = with_queue();
    let queue = server.queue();
    for n in 0..50 {
        let put = queue.put("abc", &n.to_string());
        assert!(!put.receipt.contains(['+', '/', '&', ' ', '%']), "{}", put.receipt);
        queue
            .send(Request::delete(&format!("/abc/messages/{}?popreceipt={}", put.id, put.receipt)))
            .expect(204);
    }
}

#[test]
fn changed_digits_never_match() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    for at in 0..put.receipt.len() {
        let mut receipt = put.receipt.clone().into_bytes();
        receipt[at] = if receipt[at] == b'1' { b'2' } else { b'1' };
        let receipt = String::from_utf8(receipt).unwrap();
        let refused = queue.send(Request::delete(&testkit::message_path("abc", &put.id, &receipt)));
        assert!(matches!(refused.status, 400 | 404), "{receipt}: {refused:?}");
    }
    assert_eq!(queue.texts("abc"), ["a"]);
}
