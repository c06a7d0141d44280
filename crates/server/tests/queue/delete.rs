//! Delete Message (§5.6).

use testkit::Request;

use crate::with_queue;

#[test]
fn a_deleted_message_is_gone_for_good() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.put("abc", "b");
    let taken = queue.get_one("abc", "");
    queue.send(taken.delete("abc")).expect(204);
    queue.send(taken.delete("abc")).expect_error(404, "MessageNotFound");
    queue.send(taken.hide("abc", 0)).expect_error(404, "MessageNotFound");
    assert_eq!((queue.texts("abc"), queue.count("abc")), (vec!["b".to_owned()], 1));
}

#[test]
fn a_message_can_be_deleted_before_anybody_took_it() {
    let server = with_queue();
    let queue = server.queue();
    let (visible, hidden) = (queue.put("abc", "a"), queue.put_with("abc", "visibilitytimeout=100", "b"));
    queue.send(visible.delete("abc")).expect(204);
    queue.send(hidden.delete("abc")).expect(204);
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn a_message_can_be_deleted_after_an_update() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    let taken = queue.get_one("abc", "");
    let updated = queue.send(taken.hide("abc", 50)).expect(204);
    queue.send(taken.delete("abc")).expect_error(404, "MessageNotFound");
    queue.send(taken.after(&updated).delete("abc")).expect(204);
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn each_of_many_taken_messages_is_deleted_on_its_own() {
    let server = with_queue();
    let queue = server.queue();
    (0..32).for_each(|n| drop(queue.put("abc", &n.to_string())));
    let taken = queue.get("abc", "numofmessages=32");
    for message in taken.iter().rev() {
        queue.send(message.delete("abc")).expect(204);
    }
    assert_eq!(queue.count("abc"), 0);
}

#[test]
fn the_receipt_of_one_message_does_not_delete_another() {
    let server = with_queue();
    let queue = server.queue();
    queue.put("abc", "a");
    queue.put("abc", "b");
    let (one, two) =
        (queue.get_one("abc", "visibilitytimeout=100"), queue.get_one("abc", "visibilitytimeout=200"));
    let crossed = Request::delete(&testkit::message_path("abc", &one.id, &two.receipt));
    queue.send(crossed).expect_error(404, "MessageNotFound");
    assert_eq!(queue.count("abc"), 2);
}

#[test]
fn a_message_is_not_in_another_queue() {
    let server = with_queue();
    let queue = server.queue();
    queue.create("other");
    let put = queue.put("abc", "a");
    queue.send(put.delete("other")).expect_error(404, "MessageNotFound");
    queue.send(put.delete("missing")).expect_error(404, "QueueNotFound");
    assert_eq!(queue.count("abc"), 1);
}

/// An id that is left out must not turn the deletion of a message into that of all messages.
#[test]
fn an_empty_id_deletes_nothing() {
    let server = with_queue();
    let queue = server.queue();
    let put = queue.put("abc", "a");
    let refused = queue.send(Request::delete(&format!("/abc/messages/?popreceipt={}", put.receipt)));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(queue.count("abc"), 1);
}

#[test]
fn of_many_who_delete_one_message_only_one_does() {
    let server = with_queue();
    let bytes = server.queue().bytes_of(&server.queue().put("abc", "a").delete("abc"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let (mut client, bytes) = (server.queue().connect(), &bytes);
                scope.spawn(move || client.exchange(bytes).unwrap().status)
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 7, "{statuses:?}");
}
