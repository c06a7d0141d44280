//! Clear Messages (§5.7).

use testkit::Request;

use crate::with_queue;

#[test]
fn visible_and_invisible_messages_are_removed() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "visible");
    queue.put("abc", "taken");
    queue.put_with("abc", "visibilitytimeout=100", "hidden");
    let taken = queue.get_one("abc", "");
    queue.send(Request::delete("/abc/messages")).expect(204);
    assert_eq!((queue.count("abc"), queue.texts("abc").len()), (0, 0));
    queue.send(taken.delete("abc")).expect_error(404, "MessageNotFound");
    queue.send(taken.hide("abc", 0)).expect_error(404, "MessageNotFound");
    assert!(queue.get("abc", "numofmessages=32").is_empty());
}

#[test]
fn the_queue_itself_stays_as_it_was() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(Request::put("/abc?comp=metadata").header("x-ms-meta-a", "1")).expect(204);
    let policy = crate::POLICY;
    queue.send(Request::put("/abc?comp=acl").xml(policy)).expect(204);
    queue.put("abc", "a");
    queue.send(Request::delete("/abc/messages")).expect(204);
    assert_eq!(queue.send(Request::get("/abc?comp=metadata")).expect(200).required("x-ms-meta-a"), "1");
    assert_eq!(queue.send(Request::get("/abc?comp=acl")).expect(200).elements("Id"), ["p"]);
}

#[test]
fn an_empty_queue_can_be_cleared_and_a_cleared_one_used() {
    let server = with_queue();
    let queue = server.queue();
    queue.send(Request::delete("/abc/messages")).expect(204);
    for round in 0..3 {
        queue.put("abc", &format!("round {round}"));
        assert_eq!((queue.texts("abc"), queue.count("abc")), (vec![format!("round {round}")], 1));
        queue.send(Request::delete("/abc/messages")).expect(204);
    }
}

#[test]
fn only_the_named_queue_is_cleared() {
    let server = with_queue();
    let queue = server.queue();
    queue.create("abcd");
    queue.put("abcd", "kept");
    queue.send(Request::delete("/abc/messages")).expect(204);
    assert_eq!(queue.texts("abcd"), ["kept"]);
}
