"""Messages: send, receive, peek, update, delete, clear."""

import re
import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.queue import (
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
)

GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
TEXT_BYTES_MAX = 65_536
WEEK = 604_800


def refused(status, code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    assert (caught.value.status_code, caught.value.error_code) == (status, code)
    return caught.value


def contents(messages):
    return [message.content for message in messages]


def around(moment, seconds):
    """Whether `moment` is `seconds` from now. Times on the wire are cut to whole seconds."""
    return abs((moment - datetime.now(timezone.utc)).total_seconds() - seconds) < 5


def received(queue):
    """The next message. Waits for one that becomes visible soon."""
    for _ in range(100):
        message = queue.receive_message()
        if message is not None:
            return message
        time.sleep(0.05)
    raise AssertionError("no message became visible")


def test_a_sent_message_is_described(queue):
    sent = queue.send_message("text")
    assert GUID.fullmatch(sent.id)
    assert sent.pop_receipt
    assert around(sent.inserted_on, 0)
    assert sent.next_visible_on == sent.inserted_on
    assert sent.expires_on - sent.inserted_on == timedelta(days=7)


def test_a_received_message_is_described(queue):
    sent = queue.send_message("text")
    message = queue.receive_message()
    assert message.content == "text"
    assert (message.id, message.inserted_on, message.expires_on) == (sent.id, sent.inserted_on, sent.expires_on)
    assert message.dequeue_count == 1
    assert message.pop_receipt and message.pop_receipt != sent.pop_receipt
    assert around(message.next_visible_on, 30)


def test_a_peeked_message_has_no_receipt(queue):
    sent = queue.send_message("text")
    (message,) = queue.peek_messages()
    assert (message.id, message.content, message.dequeue_count) == (sent.id, "text", 0)
    assert (message.inserted_on, message.expires_on) == (sent.inserted_on, sent.expires_on)
    assert message.pop_receipt is None and message.next_visible_on is None


TEXTS = {
    "plain": "hello",
    "unicode": "grüße 漢字 😀 \u00a0 e\u0301",
    "XML": "<a href=\"x\">&amp; & ]]> 'q' <![CDATA[y]]></a>",
    "white space": "  leading, trailing, \t tab and\nline  ",
    "only white space": "   ",
    "JSON": '{"a": [1, 2.5, null], "b": "\\u00e9"}',
    "Base64": "aGVsbG8+/w==",
    "url": "a+b%20c?d=e&f#g",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_text_comes_back_as_sent(queue, text):
    queue.send_message(text)
    assert contents(queue.peek_messages()) == [text]
    assert queue.receive_message().content == text


def test_an_empty_text_comes_back_empty(queue):
    queue.send_message("")
    # The SDK reads an empty element as nothing.
    assert not queue.receive_message().content


@pytest.mark.parametrize("text", ["a\x00b", "a\x01b", "a\ufffeb"])
def test_characters_outside_of_xml_are_refused(queue, text):
    refused(400, "InvalidXmlDocument", queue.send_message, text)
    assert queue.peek_messages() == []


@pytest.mark.parametrize("letter", ["x", "ü", "漢", "😀", "&"])
def test_a_text_has_64_kib_of_utf_8_at_most(queue, letter):
    most = letter * (TEXT_BYTES_MAX // len(letter.encode()))
    most += "x" * (TEXT_BYTES_MAX - len(most.encode()))
    queue.send_message(most)
    assert queue.receive_message().content == most
    refused(413, "RequestBodyTooLarge", queue.send_message, most + "x")
    assert queue.peek_messages() == []


def test_a_text_of_a_megabyte_is_refused(queue):
    refused(413, "RequestBodyTooLarge", queue.send_message, "x" * 1_048_576)
    assert queue.peek_messages() == []


def test_base64_policies_for_text_and_bytes(flavour, connection_string, queue):
    for encode, decode, value, stored in (
        (TextBase64EncodePolicy(), TextBase64DecodePolicy(), "grüße \x00", "Z3LDvMOfZSAA"),
        (BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy(), b"\x00\xff\xfe", "AP/+"),
    ):
        with flavour.queues(connection_string) as service:
            client = service.get_queue_client(
                queue.queue_name, message_encode_policy=encode, message_decode_policy=decode
            )
            client.send_message(value)
            assert contents(queue.peek_messages()) == [stored]
            assert contents(client.peek_messages()) == [value]
            message = client.receive_message()
            assert message.content == value
            client.update_message(message, content=value, visibility_timeout=0)
            assert contents(queue.peek_messages()) == [stored]
        queue.clear_messages()


def test_time_to_live(queue):
    assert around(queue.send_message("short", time_to_live=100).expires_on, 100)
    assert around(queue.send_message("long", time_to_live=10 * WEEK).expires_on, 10 * WEEK)
    assert queue.send_message("for ever", time_to_live=-1).expires_on == NEVER
    assert queue.send_message("longer than time", time_to_live=2**40).expires_on == NEVER
    assert [message.expires_on for message in queue.peek_messages(4)][2:] == [NEVER, NEVER]


def test_a_message_is_gone_when_it_has_expired(queue):
    sent = queue.send_message("short", time_to_live=1)
    queue.send_message("long")
    time.sleep(1.2)
    assert contents(queue.peek_messages(32)) == ["long"]
    assert contents(queue.receive_messages(messages_per_page=32, max_messages=32)) == ["long"]
    assert queue.get_queue_properties().approximate_message_count == 1
    refused(404, "MessageNotFound", queue.delete_message, sent)


@pytest.mark.parametrize("seconds", [0, -2])
def test_a_time_to_live_of_nothing_is_refused(queue, seconds):
    refused(400, "InvalidQueryParameterValue", queue.send_message, "text", time_to_live=seconds)


def test_visibility_must_end_before_the_message_does(queue):
    error = refused(
        400, "InvalidQueryParameterValue", queue.send_message, "text", visibility_timeout=10, time_to_live=10
    )
    assert "messagettl must be greater than visibilitytimeout" in str(error)
    queue.send_message("text", visibility_timeout=9, time_to_live=10)
    queue.send_message("text", visibility_timeout=WEEK, time_to_live=-1)


@pytest.mark.parametrize("seconds", [-1, WEEK + 1])
def test_visibility_is_at_most_a_week(queue, seconds):
    code = "OutOfRangeQueryParameterValue"
    refused(400, code, queue.send_message, "text", visibility_timeout=seconds, time_to_live=-1)
    sent = queue.send_message("text")
    refused(400, code, queue.update_message, sent, visibility_timeout=seconds)
    refused(400, code, queue.receive_message, visibility_timeout=seconds)


def test_receiving_takes_a_second_at_least(queue):
    queue.send_message("text")
    refused(400, "OutOfRangeQueryParameterValue", queue.receive_message, visibility_timeout=0)
    assert around(queue.receive_message(visibility_timeout=WEEK).next_visible_on, WEEK)


def test_a_message_sent_invisible_appears_on_time(queue):
    sent = queue.send_message("later", visibility_timeout=1)
    assert around(sent.next_visible_on, 1)
    assert queue.receive_message() is None and queue.peek_messages() == []
    assert received(queue).id == sent.id


def test_a_received_message_comes_back_with_a_higher_count(queue):
    sent = queue.send_message("again")
    first = queue.receive_message(visibility_timeout=1)
    assert queue.receive_message() is None
    second = received(queue)
    assert (second.id, first.dequeue_count, second.dequeue_count) == (sent.id, 1, 2)
    assert second.pop_receipt != first.pop_receipt


def test_messages_come_first_in_first_out(queue):
    for number in range(40):
        queue.send_message(f"{number}")
    expected = [f"{number}" for number in range(40)]
    assert contents(queue.peek_messages(32)) == expected[:32]
    assert queue.receive_message().content == "0"
    assert contents(queue.receive_messages(messages_per_page=32, max_messages=32)) == expected[1:33]
    assert contents(queue.receive_messages()) == expected[33:]
    assert list(queue.receive_messages()) == []


def test_pages_of_messages_end_when_the_queue_is_empty(queue):
    for number in range(7):
        queue.send_message(f"{number}")
    pages = queue.receive_messages(messages_per_page=3, visibility_timeout=60).by_page()
    assert [contents(page) for page in pages] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


@pytest.mark.parametrize("count", [0, 33])
def test_one_to_32_messages_at_a_time(queue, count):
    code = "OutOfRangeQueryParameterValue"
    refused(400, code, lambda: list(queue.receive_messages(messages_per_page=count)))
    if count == 0:  # The SDK itself refuses to peek at more than 32.
        refused(400, code, queue.peek_messages, max_messages=count)


def test_an_empty_queue_gives_nothing(queue):
    assert queue.receive_message() is None
    assert list(queue.receive_messages(messages_per_page=32)) == []
    assert queue.peek_messages(max_messages=32) == []


def test_peeking_changes_nothing(queue):
    queue.send_message("text")
    for _ in range(3):
        (message,) = queue.peek_messages()
        assert message.dequeue_count == 0
    assert queue.receive_message().dequeue_count == 1
    assert queue.peek_messages() == []


def test_an_update_changes_text_and_visibility(queue):
    queue.send_message("old")
    message = queue.receive_message()
    updated = queue.update_message(message, content="new", visibility_timeout=0)
    assert updated.pop_receipt != message.pop_receipt
    assert around(updated.next_visible_on, 0)
    again = queue.receive_message()
    assert (again.id, again.content, again.dequeue_count) == (message.id, "new", 2)
    assert (again.inserted_on, again.expires_on) == (message.inserted_on, message.expires_on)


def test_an_update_without_text_keeps_the_text(queue):
    queue.send_message("<stays> & more")
    message = queue.receive_message()
    queue.update_message(message.id, message.pop_receipt, visibility_timeout=0)
    assert contents(queue.peek_messages()) == ["<stays> & more"]


def test_an_update_extends_the_time(queue):
    queue.send_message("text")
    message = queue.receive_message(visibility_timeout=1)
    updated = queue.update_message(message, visibility_timeout=100)
    assert around(updated.next_visible_on, 100)
    time.sleep(1.2)
    assert queue.receive_message() is None
    queue.delete_message(updated)


def test_an_update_with_a_receipt_from_sending(queue):
    sent = queue.send_message("old")
    queue.update_message(sent, content="new", visibility_timeout=0)
    (message,) = queue.peek_messages()
    assert (message.content, message.dequeue_count) == ("new", 0)


def test_an_update_with_too_much_text_is_refused(queue):
    sent = queue.send_message("old")
    refused(413, "RequestBodyTooLarge", queue.update_message, sent, content="x" * (TEXT_BYTES_MAX + 1))
    queue.update_message(sent, content="x" * TEXT_BYTES_MAX, visibility_timeout=0)
    assert contents(queue.peek_messages()) == ["x" * TEXT_BYTES_MAX]


def test_deleting_by_message_or_by_id_and_receipt(queue):
    for _ in range(3):
        queue.send_message("text")
    queue.delete_message(queue.receive_message())
    message = queue.receive_message()
    queue.delete_message(message.id, message.pop_receipt)
    # The SDK deletes with the receipt from sending, too.
    sent = queue.send_message("text")
    queue.delete_message(sent)
    assert queue.get_queue_properties().approximate_message_count == 1


def test_a_message_is_deleted_after_its_time_when_nobody_took_it(queue):
    queue.send_message("slow")
    message = queue.receive_message(visibility_timeout=1)
    time.sleep(1.2)
    queue.delete_message(message)
    assert queue.peek_messages() == []


def test_receipts_that_are_no_longer_the_newest_are_refused(queue):
    sent = queue.send_message("text")
    taken = queue.receive_message()
    updated = queue.update_message(taken, visibility_timeout=30)
    for stale in (sent, taken):
        refused(404, "MessageNotFound", queue.delete_message, taken.id, stale.pop_receipt)
        refused(404, "MessageNotFound", queue.update_message, taken.id, stale.pop_receipt, visibility_timeout=0)
    queue.delete_message(taken.id, updated.pop_receipt)
    refused(404, "MessageNotFound", queue.delete_message, taken.id, updated.pop_receipt)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_a_message_that_was_taken_again_is_lost_to_the_first_taker(queue):
    queue.send_message("text")
    first = queue.receive_message(visibility_timeout=1)
    second = received(queue)
    refused(404, "MessageNotFound", queue.delete_message, first)
    refused(404, "MessageNotFound", queue.update_message, first, visibility_timeout=60)
    queue.delete_message(second)


def test_malformed_receipts_are_refused(queue):
    sent = queue.send_message("text")
    for call in (queue.delete_message, queue.update_message):
        error = refused(400, "InvalidQueryParameterValue", call, sent.id, "no receipt!")
        assert "Invalid pop receipt format" in str(error)
    assert contents(queue.peek_messages()) == ["text"]


def test_an_unknown_message_is_not_found(queue):
    receipt = queue.send_message("text").pop_receipt
    for name in ("00000000-0000-0000-0000-000000000000", "no-guid"):
        with pytest.raises(ResourceNotFoundError) as caught:
            queue.delete_message(name, receipt)
        assert caught.value.error_code == "MessageNotFound"


def test_clearing_removes_visible_and_invisible_messages(queue):
    for _ in range(3):
        queue.send_message("text")
    taken = queue.receive_message()
    queue.send_message("later", visibility_timeout=60)
    queue.clear_messages()
    assert queue.peek_messages() == []
    assert queue.get_queue_properties().approximate_message_count == 0
    refused(404, "MessageNotFound", queue.delete_message, taken)
    queue.clear_messages()
    queue.send_message("new")
    assert contents(queue.receive_messages()) == ["new"]
