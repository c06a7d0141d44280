"""`az storage queue`: create, list, exists, metadata, stats, policies, generate-sas, delete."""

import uuid

EXPIRY = ("--expiry", "2099-01-01T00:00Z")


def test_a_created_queue_exists_and_is_listed(az, queue):
    assert az("queue", "exists", "--name", queue) == {"exists": True}
    assert [found["name"] for found in az("queue", "list", "--prefix", queue)] == [queue]


def test_creating_a_queue_twice_succeeds_unless_metadata_differ(az, queue, refused):
    # `az` reports as created what already existed with the same metadata.
    az("queue", "create", "--name", queue)
    command = ("queue", "create", "--name", queue, "--metadata", "colour=red", "--fail-on-exist")
    refused("already exists", az, *command)


def test_a_missing_queue_does_not_exist(az, queue_name):
    assert az("queue", "exists", "--name", queue_name) == {"exists": False}


def test_a_deleted_queue_is_gone(az, queue):
    assert az("queue", "delete", "--name", queue) == {"deleted": True}
    assert az("queue", "exists", "--name", queue) == {"exists": False}
    assert az("queue", "delete", "--name", queue) == {"deleted": False}


def test_deleting_a_missing_queue_can_be_made_to_fail(az, queue_name, refused):
    refused("does not exist", az, "queue", "delete", "--name", queue_name, "--fail-not-exist")


def test_metadata_come_back_as_they_were_set(az, queue):
    az("queue", "metadata", "update", "--name", queue, "--metadata", "colour=red", "size=7")
    assert az("queue", "metadata", "show", "--name", queue) == {"colour": "red", "size": "7"}


def test_lists_have_metadata_on_demand(az, queue):
    az("queue", "metadata", "update", "--name", queue, "--metadata", "colour=red")
    listed = az("queue", "list", "--prefix", queue, "--include-metadata")
    assert [found["metadata"] for found in listed] == [{"colour": "red"}]


def test_a_list_ends_after_so_many_queues(az):
    prefix = "page" + uuid.uuid4().hex
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in names:
        az("queue", "create", "--name", name)
    # `az` tells the marker of the next page as a warning, which these tests do not see.
    some = az("queue", "list", "--prefix", prefix, "--num-results", "2")
    assert [found["name"] for found in some if "name" in found] == names[:2]
    everything = az("queue", "list", "--prefix", prefix, "--num-results", "*")
    assert [found["name"] for found in everything] == names


def test_a_name_that_breaks_the_rules_is_refused(az, refused):
    refused("InvalidResourceName", az, "queue", "create", "--name", "Upper--Case")


def test_policies_come_back_as_they_were_set(az, queue):
    place = ("--queue-name", queue, "--name", "reader")
    az("queue", "policy", "create", *place, "--permissions", "r", *EXPIRY)
    shown = az("queue", "policy", "show", *place)
    assert shown["permission"] == "r" and shown["expiry"].startswith("2099-01-01T00:00:00")
    assert list(az("queue", "policy", "list", "--queue-name", queue)) == ["reader"]
    az("queue", "policy", "update", *place, "--permissions", "rp")
    assert az("queue", "policy", "show", *place)["permission"] == "rp"
    az("queue", "policy", "delete", *place)
    assert az("queue", "policy", "list", "--queue-name", queue) == {}


def test_a_signature_allows_what_it_names_and_no_more(az, queue, az_with_queue_sas, refused):
    reader = az("queue", "generate-sas", "--name", queue, "--permissions", "r", *EXPIRY)
    adder = az("queue", "generate-sas", "--name", queue, "--permissions", "a", *EXPIRY)
    put = ("message", "put", "--queue-name", queue, "--content", "a")
    peek = ("message", "peek", "--queue-name", queue)
    az_with_queue_sas(adder, *put)
    assert [found["content"] for found in az_with_queue_sas(reader, *peek)] == ["a"]
    refused("You do not have the required permissions", az_with_queue_sas, reader, *put)
    refused("You do not have the required permissions", az_with_queue_sas, adder, *peek)


def test_a_policy_gives_a_signature_its_permissions_and_takes_them_away(az, queue, az_with_queue_sas, refused):
    place = ("--queue-name", queue, "--name", "reader")
    az("queue", "policy", "create", *place, "--permissions", "r", *EXPIRY)
    token = az("queue", "generate-sas", "--name", queue, "--policy-name", "reader")
    peek = ("message", "peek", "--queue-name", queue)
    assert az_with_queue_sas(token, *peek) == []
    az("queue", "policy", "delete", *place)
    refused("Authentication failure.", az_with_queue_sas, token, *peek)
