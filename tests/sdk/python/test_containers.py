"""Containers: create, list, delete, properties, metadata, leases."""

import time
import uuid

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from blob_support import answer_to, assert_refused, content, names


@pytest.fixture
def five_containers(blobs, container_name):
    created = [f"{container_name}-{letter}" for letter in "abcde"]
    for number, name in enumerate(created):
        blobs.create_container(name, metadata={"number": str(number)} if number % 2 else None)
    yield created
    for name in created:
        blobs.delete_container(name)


def test_a_created_container_is_listed_and_a_deleted_one_is_not(blobs, container_name):
    assert names(blobs.list_containers(name_starts_with=container_name)) == []
    client = blobs.create_container(container_name)
    assert client.container_name == container_name
    assert client.exists()
    assert names(blobs.list_containers(name_starts_with=container_name)) == [container_name]
    blobs.delete_container(container_name)
    assert names(blobs.list_containers(name_starts_with=container_name)) == []
    assert not client.exists()


def test_creating_and_deleting_answer_with_their_statuses(blobs, container_name):
    client = blobs.get_container_client(container_name)
    status, headers = answer_to(client.create_container)
    assert status == 201
    assert headers["etag"].startswith('"0x') and "last-modified" in headers
    assert headers["server"].startswith("Windows-Azure-Blob/1.0")
    assert answer_to(client.delete_container)[0] == 202


def test_creating_again_is_a_conflict(blobs, container_name):
    client = blobs.create_container(container_name, metadata={"color": "red"})
    with pytest.raises(ResourceExistsError) as caught:
        client.create_container(metadata={"color": "red"})
    assert (caught.value.status_code, caught.value.error_code) == (409, "ContainerAlreadyExists")
    assert client.get_container_properties().metadata == {"color": "red"}
    blobs.delete_container(container_name)


def test_a_container_created_again_is_empty(blobs, container_name):
    client = blobs.create_container(container_name, metadata={"old": "yes"})
    client.upload_blob("gone", b"old")
    blobs.delete_container(container_name)
    blobs.create_container(container_name)
    assert list(client.list_blobs()) == []
    assert client.get_container_properties().metadata == {}
    assert not client.get_blob_client("gone").exists()
    blobs.delete_container(container_name)


def test_a_missing_container_is_not_found(blobs, container_name):
    missing = blobs.get_container_client(container_name)
    blob = missing.get_blob_client("b")
    for call in (
        missing.delete_container,
        missing.get_container_properties,
        lambda: missing.set_container_metadata({"a": "b"}),
        missing.get_container_access_policy,
        lambda: missing.set_container_access_policy({}),
        lambda: list(missing.list_blobs()),
        lambda: list(missing.walk_blobs()),
        missing.acquire_lease,
        lambda: missing.upload_blob("b", b"x"),
        blob.download_blob,
        blob.get_blob_properties,
        blob.create_append_blob,
        lambda: blob.create_page_blob(512),
        lambda: blob.stage_block("a", b"x"),
        blob.get_block_list,
        blob.delete_blob,
    ):
        with pytest.raises(ResourceNotFoundError) as caught:
            call()
        assert (caught.value.status_code, caught.value.error_code) == (404, "ContainerNotFound")


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-first", "last-", "two--dashes", "with space", "dot.ted"])
def test_names_with_illegal_characters_are_refused(blobs, name):
    assert_refused(lambda: blobs.create_container(name), 400, "InvalidResourceName")


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_names_that_are_too_short_or_too_long_are_refused(blobs, name):
    assert_refused(lambda: blobs.create_container(name), 400, "OutOfRangeInput")


def test_the_longest_and_the_shortest_names_work(blobs, container_name):
    for name in ((container_name + "x" * 63)[:63], container_name[1:4], "0-" + container_name[:8] + "-0"):
        client = blobs.create_container(name)
        client.upload_blob("b", name.encode())
        assert content(client.get_blob_client("b")) == name.encode()
        blobs.delete_container(name)


def test_listing_by_prefix_comes_in_order(blobs, five_containers):
    prefix = five_containers[0][:-1]
    assert names(blobs.list_containers(name_starts_with=prefix)) == five_containers
    assert names(blobs.list_containers(name_starts_with=five_containers[3])) == [five_containers[3]]
    assert names(blobs.list_containers(name_starts_with=prefix + "z")) == []


def test_listing_without_a_prefix_contains_them_all(blobs, five_containers):
    found = names(blobs.list_containers())
    assert found == sorted(found)
    assert set(five_containers) <= set(found)


def test_listing_gives_metadata_only_when_asked(blobs, five_containers):
    prefix = five_containers[0][:-1]
    plain = list(blobs.list_containers(name_starts_with=prefix))
    assert all(not item.metadata for item in plain)
    full = list(blobs.list_containers(name_starts_with=prefix, include_metadata=True))
    assert [item.metadata or {} for item in full] == [{}, {"number": "1"}, {}, {"number": "3"}, {}]


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6])
def test_listing_page_by_page_gives_each_once(blobs, five_containers, size):
    pages = blobs.list_containers(name_starts_with=five_containers[0][:-1], results_per_page=size).by_page()
    assert [names(page) for page in pages] == [five_containers[start : start + size] for start in range(0, 5, size)]


def test_listing_resumes_from_a_saved_token(blobs, five_containers):
    prefix = five_containers[0][:-1]
    pages = blobs.list_containers(name_starts_with=prefix, results_per_page=2).by_page()
    assert names(next(pages)) == five_containers[:2]
    rest = blobs.list_containers(name_starts_with=prefix, results_per_page=2).by_page(pages.continuation_token)
    assert [name for page in rest for name in names(page)] == five_containers[2:]


def test_the_list_shows_what_the_properties_show(blobs, container_name):
    client = blobs.create_container(container_name, metadata={"Hello": "World"}, public_access="blob")
    properties = client.get_container_properties()
    (listed,) = blobs.list_containers(name_starts_with=container_name, include_metadata=True)
    for found in (properties, listed):
        assert found.name == container_name
        assert found.etag.strip('"') == properties.etag.strip('"')
        assert found.last_modified == properties.last_modified
        assert found.public_access == "blob"
        assert (found.lease.status, found.lease.state, found.lease.duration) == ("unlocked", "available", None)
        assert not found.has_immutability_policy and not found.has_legal_hold
    assert listed.metadata == {"Hello": "World"}
    blobs.delete_container(container_name)


def test_metadata_is_replaced_as_a_whole(container):
    assert container.get_container_properties().metadata == {}
    before = container.get_container_properties().etag
    container.set_container_metadata({"hello": "world", "number": "43", "_x1": "a b"})
    assert container.get_container_properties().metadata == {"hello": "world", "number": "43", "_x1": "a b"}
    assert container.get_container_properties().etag != before
    container.set_container_metadata({"other": "1"})
    assert container.get_container_properties().metadata == {"other": "1"}
    container.set_container_metadata({})
    assert container.get_container_properties().metadata == {}


@pytest.mark.parametrize("metadata", [{"with-dash": "1"}, {"1digit": "1"}])
def test_metadata_names_are_identifiers(container, metadata):
    assert_refused(lambda: container.set_container_metadata(metadata), 400, "InvalidMetadata")
    assert container.get_container_properties().metadata == {}


def test_writing_blobs_does_not_change_the_container(container):
    before = container.get_container_properties()
    container.upload_blob("b", b"x")
    after = container.get_container_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)


def test_conditions_of_containers_are_times(container):
    changed = container.get_container_properties().last_modified
    past, future = changed.replace(year=changed.year - 1), changed.replace(year=changed.year + 1)
    assert_refused(
        lambda: container.set_container_metadata({"a": "b"}, if_modified_since=future), 412, "ConditionNotMet"
    )
    container.set_container_metadata({"a": "b"}, if_modified_since=past)
    assert_refused(lambda: container.delete_container(if_unmodified_since=past), 412, "ConditionNotMet")
    assert_refused(lambda: container.delete_container(if_modified_since=future), 412, "ConditionNotMet")
    assert container.exists()


def test_a_leased_container_is_deleted_by_the_holder_only(blobs, container_name):
    container = blobs.create_container(container_name)
    lease = container.acquire_lease(lease_duration=60)
    uuid.UUID(lease.id)
    found = container.get_container_properties().lease
    assert (found.status, found.state, found.duration) == ("locked", "leased", "fixed")
    (listed,) = blobs.list_containers(name_starts_with=container_name)
    assert (listed.lease.status, listed.lease.state, listed.lease.duration) == ("locked", "leased", "fixed")
    # Everything but the deletion goes on without the lease.
    container.upload_blob("b", b"x")
    container.set_container_metadata({"a": "b"})
    assert_refused(container.delete_container, 412, "LeaseIdMissing")
    other = str(uuid.uuid4())
    assert_refused(
        lambda: container.delete_container(lease=other), 412, "LeaseIdMismatchWithContainerOperation"
    )
    container.delete_container(lease=lease)
    assert not container.exists()


def test_a_container_lease_is_renewed_changed_and_released(flavour, container):
    lease = container.acquire_lease(lease_duration=-1)
    assert container.get_container_properties().lease.duration == "infinite"
    old, new = lease.id, str(uuid.uuid4())
    lease.renew()
    assert lease.id == old
    lease.change(new)
    assert lease.id == new
    assert_refused(lambda: container.acquire_lease(), 409, "LeaseAlreadyPresent")
    lease.release()
    assert container.get_container_properties().lease.state == "available"
    assert_refused(flavour.lease(container, new).renew, 409, "LeaseIdMismatchWithLeaseOperation")


def test_a_container_lease_is_broken_at_once_or_later(container):
    lease = container.acquire_lease(lease_duration=15)
    assert lease.break_lease(lease_break_period=0) == 0
    assert container.get_container_properties().lease.state == "broken"
    assert_refused(lease.renew, 409, "LeaseIsBrokenAndCannotBeRenewed")
    lease = container.acquire_lease(lease_duration=15)
    assert lease.break_lease(lease_break_period=1) == 1
    found = container.get_container_properties().lease
    assert (found.status, found.state, found.duration) == ("locked", "breaking", None)
    time.sleep(1.1)
    assert container.get_container_properties().lease.state == "broken"


def test_a_lease_on_the_container_of_another_id_is_refused(container):
    lease = container.acquire_lease(lease_duration=15)
    assert_refused(
        lambda: container.get_container_properties(lease=str(uuid.uuid4())),
        412,
        "LeaseIdMismatchWithContainerOperation",
    )
    assert container.get_container_properties(lease=lease).name == container.container_name
    released = lease.id
    lease.release()
    assert_refused(
        lambda: container.get_container_properties(lease=released), 412, "LeaseNotPresentWithContainerOperation"
    )


def test_etag_conditions_on_a_container_are_refused(container):
    etag = container.get_container_properties().etag
    # The SDK lets nobody do it with its own arguments; the header says the same.
    assert_refused(
        lambda: container.set_container_metadata({"a": "b"}, headers={"If-Match": etag}),
        400,
        "ConditionHeadersNotSupported",
    )


def test_account_information_is_there_on_every_level(blobs, container):
    for client in (blobs, container, container.get_blob_client("b")):
        found = client.get_account_information()
        assert (found["sku_name"], found["account_kind"]) == ("Standard_LRS", "StorageV2")
        assert found["is_hns_enabled"] is False


def test_the_root_container_holds_blobs_without_a_container_in_their_url(flavour, settings, blobs):
    try:
        blobs.create_container("$root")
    except ResourceExistsError:
        pass
    root = blobs.get_container_client("$root")
    root.upload_blob("photo.png", b"picture", overwrite=True)
    assert "$root" in names(blobs.list_containers(name_starts_with="$"))
    assert content(root.get_blob_client("photo.png")) == b"picture"
    root.delete_blob("photo.png")


def test_a_container_client_made_from_its_url(flavour, settings, container):
    with flavour.blobs_at(settings["BlobEndpoint"], settings["AccountKey"]) as service:
        other = service.get_container_client(container.container_name)
        assert other.url == container.url
        other.upload_blob("b", b"by another client")
    assert content(container.get_blob_client("b")) == b"by another client"
