"""Access policies of queues: stored with the queue, returned as set, at most five."""

from datetime import datetime, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import AccessPolicy, QueueSasPermissions

START = datetime(2021, 6, 8, 2, 5, 9, tzinfo=timezone.utc)
EXPIRY = datetime(2021, 6, 8, 3, 10, 9, tzinfo=timezone.utc)


def moment(text):
    """A time with seven digits of a second, as the SDK hands it on. The last digit is more than Python keeps."""
    return datetime.fromisoformat(text[:-2] + "+00:00") if isinstance(text, str) else text


def fields(policy):
    return (moment(policy.start), moment(policy.expiry), policy.permission) if policy else (None, None, None)


def refused(queue, policies):
    before = list(queue.get_queue_access_policy())
    with pytest.raises(HttpResponseError) as caught:
        queue.set_queue_access_policy(policies)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidXmlDocument")
    assert list(queue.get_queue_access_policy()) == before


def test_a_new_queue_has_no_policies(queue):
    assert queue.get_queue_access_policy() == {}


def test_a_policy_comes_back_as_it_was_set(queue):
    letters = QueueSasPermissions(read=True, add=True, update=True, process=True)
    queue.set_queue_access_policy({"id": AccessPolicy(start=START, expiry=EXPIRY, permission=letters)})
    (found,) = queue.get_queue_access_policy().values()
    assert fields(found) == (START, EXPIRY, "raup")


def test_times_come_back_with_seven_digits_of_a_second(queue):
    queue.set_queue_access_policy({"id": AccessPolicy(start=START, expiry=EXPIRY, permission="r")})
    seen = []
    queue.get_queue_access_policy(raw_response_hook=lambda response: seen.append(response.http_response.text()))
    assert "<Start>2021-06-08T02:05:09.0000000Z</Start><Expiry>2021-06-08T03:10:09.0000000Z</Expiry>" in seen[0]


def test_each_field_is_optional(queue):
    queue.set_queue_access_policy(
        {
            "start": AccessPolicy(start=START),
            "expiry": AccessPolicy(expiry=EXPIRY),
            "permission": AccessPolicy(permission="up"),
            "none": None,
        }
    )
    assert {name: fields(found) for name, found in queue.get_queue_access_policy().items()} == {
        "start": (START, None, None),
        "expiry": (None, EXPIRY, None),
        "permission": (None, None, "up"),
        "none": (None, None, None),
    }


def test_setting_replaces_all_and_nothing_clears_all(queue):
    policy = AccessPolicy(permission="r")
    queue.set_queue_access_policy({"a": policy, "b": policy})
    queue.set_queue_access_policy({"c": policy})
    assert list(queue.get_queue_access_policy()) == ["c"]
    queue.set_queue_access_policy({})
    assert queue.get_queue_access_policy() == {}


def test_five_are_accepted_and_six_refused(queue):
    policies = {f"id{n}": AccessPolicy(permission="r") for n in range(5)}
    queue.set_queue_access_policy(policies)
    assert list(queue.get_queue_access_policy()) == list(policies)
    refused(queue, {**policies, "one too many": AccessPolicy(permission="r")})


def test_an_identifier_has_64_characters_at_most(queue):
    queue.set_queue_access_policy({"x" * 64: AccessPolicy(permission="r")})
    assert list(queue.get_queue_access_policy()) == ["x" * 64]
    refused(queue, {"x" * 65: AccessPolicy(permission="r")})


@pytest.mark.parametrize("letters", ["x", "rd", "w"])
def test_letters_of_other_services_are_refused(queue, letters):
    refused(queue, {"a": AccessPolicy(permission=letters)})


def test_identifiers_may_hold_any_text(queue):
    names = ["ü 😀", "<&>\"'"]
    queue.set_queue_access_policy({name: AccessPolicy(permission="r") for name in names})
    assert list(queue.get_queue_access_policy()) == names


def test_policies_go_with_their_queue(queues, queue_name):
    queue = queues.create_queue(queue_name)
    queue.set_queue_access_policy({"a": AccessPolicy(permission="r")})
    queues.delete_queue(queue_name)
    queues.create_queue(queue_name)
    assert queue.get_queue_access_policy() == {}
    queues.delete_queue(queue_name)
