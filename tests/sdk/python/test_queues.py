"""Queues: create, list, delete, metadata, and the count of messages."""

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError


def names(items):
    return [item.name for item in items]


def status_of(call, *arguments, **options):
    """The status of the answer, which the SDK keeps to itself."""
    seen = []
    call(*arguments, raw_response_hook=lambda response: seen.append(response.http_response.status_code), **options)
    return seen[-1]


@pytest.fixture
def five_queues(queues, queue_name):
    created = [f"{queue_name}-{letter}" for letter in "abcde"]
    for number, name in enumerate(created):
        queues.create_queue(name, metadata={"number": str(number)} if number % 2 else None)
    yield created
    for name in created:
        queues.delete_queue(name)


def test_a_created_queue_is_listed_and_a_deleted_one_is_not(queues, queue_name):
    assert names(queues.list_queues(name_starts_with=queue_name)) == []
    client = queues.create_queue(queue_name)
    assert client.queue_name == queue_name
    assert names(queues.list_queues(name_starts_with=queue_name)) == [queue_name]
    queues.delete_queue(queue_name)
    assert names(queues.list_queues(name_starts_with=queue_name)) == []


def test_creating_again_with_the_same_metadata_changes_nothing(queues, queue_name):
    client = queues.get_queue_client(queue_name)
    assert status_of(client.create_queue, metadata={"color": "red"}) == 201
    client.send_message("stays")
    for metadata in ({"color": "red"}, {"COLOR": "red"}):
        # The service is content. The SDK turns its 204 into an error.
        with pytest.raises(ResourceExistsError) as caught:
            client.create_queue(metadata=metadata)
        assert (caught.value.status_code, caught.value.error_code) == (204, "QueueAlreadyExists")
    assert [message.content for message in client.peek_messages()] == ["stays"]
    queues.delete_queue(queue_name)


@pytest.mark.parametrize("other", [None, {"color": "blue"}, {"color": "red", "size": "big"}])
def test_creating_again_with_other_metadata_is_a_conflict(queues, queue_name, other):
    client = queues.create_queue(queue_name, metadata={"color": "red"})
    with pytest.raises(ResourceExistsError) as caught:
        client.create_queue(metadata=other)
    assert (caught.value.status_code, caught.value.error_code) == (409, "QueueAlreadyExists")
    assert "The specified queue already exists." in caught.value.message
    assert client.get_queue_properties().metadata == {"color": "red"}
    queues.delete_queue(queue_name)


def test_a_queue_created_again_is_empty(queues, queue_name):
    client = queues.create_queue(queue_name, metadata={"old": "yes"})
    client.send_message("gone")
    queues.delete_queue(queue_name)
    queues.create_queue(queue_name)
    assert client.peek_messages() == []
    assert client.get_queue_properties().approximate_message_count == 0
    assert client.get_queue_properties().metadata == {}
    queues.delete_queue(queue_name)


def test_a_missing_queue_is_not_found(queues, queue_name):
    missing = queues.get_queue_client(queue_name)
    for call in (
        missing.delete_queue,
        missing.get_queue_properties,
        lambda: missing.set_queue_metadata({"a": "b"}),
        missing.get_queue_access_policy,
        lambda: missing.set_queue_access_policy({}),
        lambda: missing.send_message("text"),
        missing.receive_message,
        lambda: list(missing.receive_messages()),
        missing.peek_messages,
        missing.clear_messages,
        lambda: missing.delete_message("id", "AgAAAAMAAAAAAAAAHFrsOFDq2AE="),
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (404, "QueueNotFound")


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-first", "last-", "two--dashes", "with space", "dot.ted"])
def test_names_with_illegal_characters_are_refused(queues, name):
    with pytest.raises(HttpResponseError) as caught:
        queues.create_queue(name)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidResourceName")


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_names_that_are_too_short_or_too_long_are_refused(queues, name):
    with pytest.raises(HttpResponseError) as caught:
        queues.create_queue(name)
    assert (caught.value.status_code, caught.value.error_code) == (400, "OutOfRangeInput")


def test_the_longest_and_the_shortest_names_work(queues, queue_name):
    for name in ((queue_name + "x" * 63)[:63], queue_name[1:4], "0-" + queue_name[:8] + "-0"):
        client = queues.create_queue(name)
        client.send_message(name)
        assert client.receive_message().content == name
        queues.delete_queue(name)


def test_listing_by_prefix_comes_in_order(queues, five_queues):
    prefix = five_queues[0][:-1]
    assert names(queues.list_queues(name_starts_with=prefix)) == five_queues
    assert names(queues.list_queues(name_starts_with=five_queues[3])) == [five_queues[3]]
    assert names(queues.list_queues(name_starts_with=prefix + "z")) == []


def test_listing_without_a_prefix_contains_them_all(queues, five_queues):
    found = names(queues.list_queues())
    assert found == sorted(found)
    assert set(five_queues) <= set(found)


def test_listing_gives_metadata_only_when_asked(queues, five_queues):
    prefix = five_queues[0][:-1]
    plain = list(queues.list_queues(name_starts_with=prefix))
    assert all(not item.metadata for item in plain)
    full = list(queues.list_queues(name_starts_with=prefix, include_metadata=True))
    assert [item.metadata or {} for item in full] == [{}, {"number": "1"}, {}, {"number": "3"}, {}]


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6])
def test_listing_page_by_page_gives_each_once(queues, five_queues, size):
    pages = queues.list_queues(name_starts_with=five_queues[0][:-1], results_per_page=size).by_page()
    found = [names(page) for page in pages]
    assert found == [five_queues[start : start + size] for start in range(0, 5, size)]


def test_listing_resumes_from_a_saved_token(queues, five_queues):
    prefix = five_queues[0][:-1]
    pages = queues.list_queues(name_starts_with=prefix, results_per_page=2).by_page()
    assert names(next(pages)) == five_queues[:2]
    token = pages.continuation_token
    # The token names the next page, even when its first queue is gone.
    queues.delete_queue(five_queues[2])
    rest = queues.list_queues(name_starts_with=prefix, results_per_page=2).by_page(continuation_token=token)
    assert [name for page in rest for name in names(page)] == five_queues[3:]
    queues.create_queue(five_queues[2])


def test_a_page_size_of_zero_is_refused(queues):
    with pytest.raises(HttpResponseError) as caught:
        list(queues.list_queues(results_per_page=0))
    assert (caught.value.status_code, caught.value.error_code) == (400, "OutOfRangeQueryParameterValue")


def test_metadata_is_replaced_as_a_whole(queue):
    assert queue.get_queue_properties().metadata == {}
    queue.set_queue_metadata({"hello": "world", "number": "43", "_x1": "a b"})
    assert queue.get_queue_properties().metadata == {"hello": "world", "number": "43", "_x1": "a b"}
    queue.set_queue_metadata({"other": "1"})
    assert queue.get_queue_properties().metadata == {"other": "1"}
    queue.set_queue_metadata({})
    assert queue.get_queue_properties().metadata == {}


@pytest.mark.parametrize("metadata", [{"with-dash": "1"}, {"1digit": "1"}])
def test_metadata_names_are_identifiers(queue, metadata):
    with pytest.raises(HttpResponseError) as caught:
        queue.set_queue_metadata(metadata)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidMetadata")
    assert queue.get_queue_properties().metadata == {}


def test_metadata_has_8_kib_at_most(queue):
    # Names and values count. The name has one character and the values share the rest.
    most = {"a": "x" * 4095, "b": "y" * 4095}
    queue.set_queue_metadata(most)
    assert queue.get_queue_properties().metadata == most
    with pytest.raises(HttpResponseError) as caught:
        queue.set_queue_metadata({"a": "x" * 4095, "b": "y" * 4096})
    assert (caught.value.status_code, caught.value.error_code) == (400, "MetadataTooLarge")
    assert queue.get_queue_properties().metadata == most


def test_the_count_is_of_visible_and_invisible_messages(queue):
    def count():
        return queue.get_queue_properties().approximate_message_count

    assert count() == 0
    for number in range(3):
        queue.send_message(f"message {number}", visibility_timeout=0 if number else 60)
    assert count() == 3
    taken = queue.receive_message()
    assert count() == 3
    queue.delete_message(taken)
    assert count() == 2
    queue.clear_messages()
    assert count() == 0


def test_a_queue_client_made_from_its_url(flavour, settings, queue):
    url = settings["QueueEndpoint"].rstrip("/") + "/" + queue.queue_name
    assert queue.url == url
    with flavour.queues_at(settings["QueueEndpoint"], settings["AccountKey"]) as service:
        other = service.get_queue_client(queue.queue_name)
        other.send_message("by another client")
    assert queue.receive_message().content == "by another client"
