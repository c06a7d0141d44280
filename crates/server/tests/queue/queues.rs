//! Create Queue and Delete Queue (§4.1, §4.3), and the names of queues (§2.6).

use testkit::{EMULATOR_KEY, Request, TestServer, message_xml};

use crate::{operations_on, with_queue};

fn create(name: &str) -> Request {
    Request::put(&format!("/{name}"))
}

#[test]
fn a_new_queue_is_created_and_an_equal_one_is_there_already() {
    let server = TestServer::start();
    let queue = server.queue();
    let created = queue.send(create("abc")).expect(201);
    assert_eq!((created.body.len(), created.required("Content-Length")), (0, "0"));
    assert_eq!(created.header("Content-Type"), None);
    queue.send(create("abc")).expect(204);
}

#[test]
fn a_queue_with_other_metadata_is_a_conflict() {
    let server = TestServer::start();
    let queue = server.queue();
    let with = |name: &str, value: &str| create("abc").header(name, value);
    queue.send(with("x-ms-meta-color", "red")).expect(201);
    queue.send(with("x-ms-meta-color", "red")).expect(204);
    queue.send(with("x-ms-meta-color", "Red")).expect_error(409, "QueueAlreadyExists");
    queue.send(with("x-ms-meta-colour", "red")).expect_error(409, "QueueAlreadyExists");
    queue
        .send(with("x-ms-meta-color", "red").header("x-ms-meta-b", ""))
        .expect_error(409, "QueueAlreadyExists");
    let plain = queue.send(create("abc")).expect_error(409, "QueueAlreadyExists");
    assert_eq!(plain.error_message(), "The specified queue already exists.");
}

#[test]
fn metadata_are_compared_without_case_and_order_of_names() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(create("abc").header("x-ms-meta-Color", "red").header("x-ms-meta-size", "9")).expect(201);
    queue.send(create("abc").header("x-ms-meta-SIZE", "9").header("x-ms-meta-color", "red")).expect(204);
}

#[test]
fn what_was_refused_changes_nothing() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(create("abc").header("x-ms-meta-a", "1")).expect(201);
    queue.put("abc", "kept");
    queue.send(create("abc").header("x-ms-meta-a", "2")).expect_error(409, "QueueAlreadyExists");
    let found = queue.send(Request::get("/abc?comp=metadata")).expect(200);
    assert_eq!(found.required("x-ms-meta-a"), "1");
    assert_eq!(queue.texts("abc"), ["kept"]);
}

#[test]
fn names_have_3_to_63_lower_case_letters_digits_and_single_dashes() {
    let server = TestServer::start();
    let queue = server.queue();
    let longest = "q".repeat(63);
    for good in ["abc", "000", "a-b", "a-b-c", "my-queue-1", "1-2", &longest] {
        queue.send(create(good)).expect(201);
    }
    for bad in ["Abc", "abC", "-abc", "abc-", "a--b", "a_b", "a.b", "%C3%A4bc", "a%20b", "%24logs", "a%2Fb"] {
        let refused = queue.send(create(bad)).expect_error(400, "InvalidResourceName");
        // §2.6: misspelled by the service itself.
        assert_eq!(
            refused.error_message(),
            "The specifed resource name contains invalid characters.",
            "{bad}"
        );
    }
    let too_long = "q".repeat(64);
    for bad in ["a", "ab", "0", &too_long, &"q".repeat(300)] {
        let refused = queue.send(create(bad)).expect_error(400, "OutOfRangeInput");
        let message = "The specified resource name length is not within the permissible limits.";
        assert_eq!(refused.error_message(), message, "{bad}");
    }
}

#[test]
fn every_operation_checks_the_name() {
    let server = TestServer::start();
    for (name, request) in operations_on("a--b") {
        let refused = server.queue().send(request);
        assert_eq!((refused.status, refused.error_code().as_str()), (400, "InvalidResourceName"), "{name}");
    }
    for (name, request) in operations_on("ab") {
        let refused = server.queue().send(request);
        assert_eq!((refused.status, refused.error_code().as_str()), (400, "OutOfRangeInput"), "{name}");
    }
}

#[test]
fn a_percent_encoded_name_is_the_same_name() {
    let server = with_queue();
    server.queue().put("%61bc", "x");
    assert_eq!(server.queue().texts("abc"), ["x"]);
}

#[test]
fn every_operation_tells_that_there_is_no_such_queue() {
    let server = with_queue();
    for (name, request) in operations_on("missing") {
        let refused = server.queue().send(request);
        assert_eq!((refused.status, refused.error_code().as_str()), (404, "QueueNotFound"), "{name}");
        assert_eq!(refused.error_message(), "The specified queue does not exist.", "{name}");
    }
    let head = server.queue().send(Request::head("/missing?comp=metadata"));
    assert_eq!((head.status, head.header("x-ms-error-code")), (404, Some("QueueNotFound")));
    assert!(head.body.is_empty());
}

#[test]
fn a_deleted_queue_is_gone_with_its_messages() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "x");
    queue.send(Request::delete("/abc")).expect(204);
    queue.send(Request::delete("/abc")).expect_error(404, "QueueNotFound");
    for (name, request) in operations_on("abc") {
        assert_eq!(queue.send(request).status, 404, "{name}");
    }
    let listed = queue.send(Request::get("/?comp=list")).expect(200);
    assert!(listed.elements("Name").is_empty());
}

/// Trap 23: the live service blocks the name for a while; emulators free it at once.
#[test]
fn a_queue_made_again_at_once_is_empty() {
    let server = TestServer::start();
    let queue = server.queue();
    queue.send(create("abc").header("x-ms-meta-a", "1")).expect(201);
    let policy = crate::POLICY;
    queue.send(Request::put("/abc?comp=acl").xml(policy)).expect(204);
    let message = queue.put("abc", "x");
    queue.send(Request::delete("/abc")).expect(204);

    queue.send(create("abc")).expect(201);
    let found = queue.send(Request::get("/abc?comp=metadata")).expect(200);
    assert_eq!((found.required("x-ms-approximate-messages-count"), found.header("x-ms-meta-a")), ("0", None));
    assert!(queue.send(Request::get("/abc?comp=acl")).expect(200).elements("Id").is_empty());
    assert!(queue.texts("abc").is_empty());
    queue.send(message.delete("abc")).expect_error(404, "MessageNotFound");
    queue.send(message.hide("abc", 0)).expect_error(404, "MessageNotFound");
}

#[test]
fn of_many_who_create_one_queue_only_one_made_it() {
    let server = TestServer::start();
    let bytes = server.queue().bytes_of(&create("abc"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..12)
            .map(|_| {
                let (mut client, bytes) = (server.queue().connect(), &bytes);
                scope.spawn(move || client.exchange(bytes).unwrap().status)
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 11, "{statuses:?}");
}

#[test]
fn accounts_have_their_own_queues() {
    let server = TestServer::options().accounts(&format!("one:{EMULATOR_KEY};two:{EMULATOR_KEY}")).start();
    let queue = server.queue();
    queue.send(create("abc")).expect(201);
    let two = |request: Request| queue.send(request.credentials("two", EMULATOR_KEY));
    two(Request::get("/abc?comp=metadata")).expect_error(404, "QueueNotFound");
    two(create("abc")).expect(201);
    two(Request::post("/abc/messages").xml(&message_xml("of two"))).expect(201);
    assert!(queue.texts("abc").is_empty());
    two(Request::delete("/abc")).expect(204);
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn tables_and_queues_of_one_name_have_nothing_in_common() {
    let server = with_queue();
    server.create_table("abc");
    server.queue().put("abc", "x");
    server.send(Request::delete("/Tables('abc')")).expect(204);
    assert_eq!(server.queue().texts("abc"), ["x"]);
    server.create_table("abc");
    server.queue().send(Request::delete("/abc")).expect(204);
    server.send(Request::get("/abc()")).expect(200);
}
