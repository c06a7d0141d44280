//! The outbox, which goes beyond the service: a transaction and its messages happen together, or not at all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use testkit::{Batch, Request, Sas, TestServer, batch_parts, entity_json, entity_path};

fn start() -> TestServer {
    let server = TestServer::with_table("mytable");
    server.queue().create("outbox");
    server.insert("mytable", "p", "old", "");
    server
}

/// The headers of an operation that enqueues this text.
fn enqueue<'a>(queue: &'a str, base64: &'a str) -> [(&'a str, &'a str); 2] {
    [("x-lazulite-enqueue", queue), ("x-lazulite-message", base64)]
}

fn insert(row: &str) -> String {
    entity_json("p", row, "")
}

#[test]
fn a_transaction_puts_its_messages() {
    let server = start();
    let (first, second) = (STANDARD.encode("first"), STANDARD.encode("zweite & <dritte> €"));
    let batch = Batch::new()
        .operation("POST", "/mytable", &enqueue("outbox", &first), Some(&insert("1")))
        .operation("POST", "/mytable", &[], Some(&insert("2")))
        .operation(
            "DELETE",
            &entity_path("mytable", "p", "old"),
            &[&enqueue("outbox", &second)[..], &[("If-Match", "*")]].concat(),
            None,
        );
    let parts = batch_parts(&server.send(batch.request()).expect(202));
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [201, 201, 204]);
    assert_eq!(server.queue().texts("outbox"), ["first", "zweite & <dritte> €"]);
    assert_eq!(server.queue().count("outbox"), 2);
    server.get("mytable", "p", "2").expect(200);
    let taken = server.queue().get("outbox", "numofmessages=32");
    assert_eq!(taken[0].dequeue_count, "1");
}

#[test]
fn a_transaction_that_fails_puts_nothing() {
    let server = start();
    let text = STANDARD.encode("text");
    let batch = Batch::new()
        .operation("POST", "/mytable", &enqueue("outbox", &text), Some(&insert("1")))
        .operation("POST", "/mytable", &enqueue("outbox", &text), Some(&insert("old")));
    let parts = batch_parts(&server.send(batch.request()).expect(202));
    assert_eq!(parts[0].status, 409);
    server.get("mytable", "p", "1").expect(404);
    assert_eq!(server.queue().count("outbox"), 0);
}

#[test]
fn a_message_that_cannot_be_put_undoes_the_transaction() {
    let server = start();
    let (text, large) = (STANDARD.encode("text"), STANDARD.encode("x".repeat(65_537)));
    let control = STANDARD.encode("\u{1}");
    let bytes = STANDARD.encode(b"\xff");
    for (headers, status, code) in [
        (enqueue("missing", &text).to_vec(), 404, "QueueNotFound"),
        (enqueue("Bad_Name", &text).to_vec(), 400, "InvalidResourceName"),
        (enqueue("outbox", "no base64!").to_vec(), 400, "InvalidHeaderValue"),
        (enqueue("outbox", &control).to_vec(), 400, "InvalidHeaderValue"),
        (enqueue("outbox", &bytes).to_vec(), 400, "InvalidHeaderValue"),
        (enqueue("outbox", &large).to_vec(), 413, "RequestBodyTooLarge"),
        (vec![("x-lazulite-enqueue", "outbox")], 400, "MissingRequiredHeader"),
        (vec![("x-lazulite-message", &*text)], 400, "MissingRequiredHeader"),
    ] {
        let batch = Batch::new().operation("POST", "/mytable", &[], Some(&insert("0"))).operation(
            "POST",
            "/mytable",
            &headers,
            Some(&insert("1")),
        );
        let parts = batch_parts(&server.send(batch.request()).expect(202));
        assert_eq!((parts.len(), parts[0].status), (1, status), "{code}");
        let body = String::from_utf8_lossy(&parts[0].body);
        assert!(body.contains(code), "{body}");
        assert!(body.contains("1:"), "the operation is named: {body}");
        server.get("mytable", "p", "0").expect(404);
    }
    assert_eq!(server.queue().count("outbox"), 0);
}

#[test]
fn a_single_write_is_a_transaction_too() {
    let server = start();
    let text = STANDARD.encode("one");
    let write = |row: &str| {
        Request::post("/mytable")
            .json(&insert(row))
            .header("x-lazulite-enqueue", "outbox")
            .header("x-lazulite-message", &text)
    };
    server.send(write("1")).expect(201);
    server.send(write("1")).expect(409);
    assert_eq!(server.queue().texts("outbox"), ["one"]);
    server.send(write("2").header("x-lazulite-enqueue", "missing")).expect(404);
    server.get("mytable", "p", "2").expect(404);
}

#[test]
fn a_cleared_queue_takes_messages_at_once() {
    let server = start();
    let text = STANDARD.encode("text");
    for row in ["1", "2", "3"] {
        let batch = Batch::new().operation("POST", "/mytable", &enqueue("outbox", &text), Some(&insert(row)));
        server.send(batch.request()).expect(202);
        assert_eq!(server.queue().count("outbox"), 1);
        server.queue().send(Request::delete("/outbox/messages")).expect(204);
    }
}

#[test]
fn a_hundred_operations_put_a_hundred_messages() {
    let server = start();
    let texts: Vec<String> = (0..100).map(|n| STANDARD.encode(format!("{n:03}"))).collect();
    let batch = texts.iter().enumerate().fold(Batch::new(), |batch, (n, text)| {
        batch.operation("POST", "/mytable", &enqueue("outbox", text), Some(&insert(&format!("{n:03}"))))
    });
    let parts = batch_parts(&server.send(batch.request()).expect(202));
    assert_eq!(parts.len(), 100);
    assert_eq!(server.queue().count("outbox"), 100);
    let first: Vec<String> = (0..32).map(|n| format!("{n:03}")).collect();
    assert_eq!(server.queue().texts("outbox"), first);
}

#[test]
fn a_caller_needs_permission_for_the_queue_too() {
    let server = start();
    let text = STANDARD.encode("text");
    let write = |row: &str, token: &str| {
        let request = Request::post("/mytable").json(&insert(row));
        let request = request.header("x-lazulite-enqueue", "outbox").header("x-lazulite-message", &text);
        server.send(request.sas(token))
    };
    let account = |services: &str, permissions: &str| {
        let sas = Sas::account("2020-12-06").set("ss", services).set("sp", permissions);
        sas.set("srt", "sco").sign(server.credentials())
    };
    write("1", &account("tq", "a")).expect(201);
    let refused = write("2", &account("t", "a")).expect(403);
    assert!(refused.text().contains("AuthorizationServiceMismatch"), "{}", refused.text());
    // A signature for one table is for nothing else, whatever the queue is called.
    server.queue().create("mytable");
    let table = Sas::table("2020-12-06", "mytable").set("sp", "raud").sign(server.credentials());
    let request = Request::post("/mytable").json(&insert("3"));
    let request = request.header("x-lazulite-enqueue", "mytable").header("x-lazulite-message", &text);
    let refused = server.send(request.sas(&table)).expect(403);
    assert!(refused.text().contains("AuthorizationFailure"), "{}", refused.text());
    for row in ["2", "3"] {
        server.get("mytable", "p", row).expect(404);
    }
    assert_eq!((server.queue().count("outbox"), server.queue().count("mytable")), (1, 0));
}
