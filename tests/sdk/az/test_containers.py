"""`az storage container`: create, list, exists, show, metadata, permissions, policies, leases, delete."""

import uuid

EXPIRY = ("--expiry", "2099-01-01T00:00Z")


def test_a_created_container_exists_and_is_listed(az, container):
    assert az("container", "exists", "--name", container) == {"exists": True}
    assert [found["name"] for found in az("container", "list", "--prefix", container)] == [container]
    shown = az("container", "show", "--name", container)
    assert (shown["name"], shown["properties"]["lease"]["state"]) == (container, "available")


def test_creating_a_container_twice(az, container, refused):
    assert az("container", "create", "--name", container) == {"created": False}
    refused("already exists", az, "container", "create", "--name", container, "--fail-on-exist")


def test_a_deleted_container_is_gone(az, container):
    assert az("container", "delete", "--name", container) == {"deleted": True}
    assert az("container", "exists", "--name", container) == {"exists": False}


def test_metadata_come_back_as_they_were_set(az, container):
    az("container", "metadata", "update", "--name", container, "--metadata", "colour=red", "size=7")
    assert az("container", "metadata", "show", "--name", container) == {"colour": "red", "size": "7"}


def test_a_list_ends_after_so_many_containers(az):
    prefix = "page" + uuid.uuid4().hex
    names = [f"{prefix}-{number}" for number in range(4)]
    for name in names:
        az("container", "create", "--name", name)
    some = az("container", "list", "--prefix", prefix, "--num-results", "2")
    assert [found["name"] for found in some if "name" in found] == names[:2]
    everything = az("container", "list", "--prefix", prefix, "--num-results", "*")
    assert [found["name"] for found in everything] == names


def test_public_access_comes_back_as_set(az, container):
    az("container", "set-permission", "--name", container, "--public-access", "blob")
    assert az("container", "show-permission", "--name", container) == {"publicAccess": "blob"}
    az("container", "set-permission", "--name", container, "--public-access", "off")
    assert az("container", "show-permission", "--name", container) == {"publicAccess": "off"}


def test_policies_come_back_as_they_were_set(az, container):
    place = ("--container-name", container, "--name", "reader")
    az("container", "policy", "create", *place, "--permissions", "r", *EXPIRY)
    shown = az("container", "policy", "show", *place)
    assert shown["permission"] == "r" and shown["expiry"].startswith("2099-01-01T00:00:00")
    az("container", "policy", "update", *place, "--permissions", "rl")
    assert az("container", "policy", "show", *place)["permission"] == "rl"
    az("container", "policy", "delete", *place)
    assert az("container", "policy", "list", "--container-name", container) == {}


def test_a_lease_guards_the_deletion(az, container, refused):
    lease = az("container", "lease", "acquire", "--container-name", container, "--lease-duration", "60")
    uuid.UUID(lease)
    refused("LeaseIdMissing", az, "container", "delete", "--name", container)
    az("container", "lease", "renew", "--container-name", container, "--lease-id", lease)
    assert az("container", "lease", "break", "--container-name", container, "--lease-break-period", "0") == 0
    assert az("container", "delete", "--name", container) == {"deleted": True}
