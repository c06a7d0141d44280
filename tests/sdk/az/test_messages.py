"""`az storage message`: put, get, peek, update, delete, clear."""

import pytest


@pytest.fixture
def messages(az, queue):
    """Commands on messages of the test's queue."""

    def run(verb, *options):
        return az("message", verb, "--queue-name", queue, *options)

    return run


def contents(found):
    return [message["content"] for message in found]


def test_messages_are_taken_in_the_order_in_which_they_were_put(messages):
    for text in ("one", "two", "three"):
        assert messages("put", "--content", text)["content"] == text
    assert contents(messages("get", "--num-messages", "2")) == ["one", "two"]
    assert contents(messages("get")) == ["three"]
    assert messages("get") == []


def test_peeking_takes_nothing(messages):
    messages("put", "--content", "one")
    for _ in range(2):
        found = messages("peek", "--num-messages", "32")
        assert contents(found) == ["one"] and found[0]["dequeueCount"] == 0
    assert contents(messages("get")) == ["one"]


def test_a_taken_message_is_deleted_with_its_receipt(messages, refused):
    messages("put", "--content", "one")
    taken = messages("get", "--visibility-timeout", "30")[0]
    messages("delete", "--id", taken["id"], "--pop-receipt", taken["popReceipt"])
    again = ("delete", "--id", taken["id"], "--pop-receipt", taken["popReceipt"])
    refused("The specified message does not exist.", messages, *again)


def test_an_updated_message_has_a_new_text_and_receipt(messages, refused):
    messages("put", "--content", "one")
    taken = messages("get", "--visibility-timeout", "30")[0]
    place = ("--id", taken["id"], "--pop-receipt", taken["popReceipt"])
    updated = messages("update", *place, "--content", "two", "--visibility-timeout", "0")
    assert updated["popReceipt"] != taken["popReceipt"]
    refused("The specified message does not exist.", messages, "delete", *place)
    found = messages("get")[0]
    assert found["content"] == "two" and found["dequeueCount"] == 2


def test_a_delayed_message_waits(messages):
    messages("put", "--content", "later", "--visibility-timeout", "600")
    assert messages("get") == [] and messages("peek") == []


def test_a_message_may_live_for_ever(messages):
    put = messages("put", "--content", "one", "--time-to-live", "-1")
    assert put["expirationTime"].startswith("9999-12-31")


@pytest.mark.parametrize("text", ["a<b>&\"c'", "Ä 🜁 中文", " spaces around "])
def test_texts_come_back_as_they_were_sent(messages, text):
    messages("put", "--content", text)
    assert contents(messages("get")) == [text]


def test_clearing_removes_everything(messages):
    for text in ("one", "two"):
        messages("put", "--content", text)
    messages("get")
    messages("clear")
    assert messages("peek", "--num-messages", "32") == []


@pytest.mark.parametrize("count", ["0", "33"])
def test_a_number_out_of_bounds_is_refused(messages, refused, count):
    refused("OutOfRangeQueryParameterValue", messages, "get", "--num-messages", count)
