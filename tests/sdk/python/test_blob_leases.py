"""Leases of blobs: their states, and what they guard."""

import time
import uuid

import pytest
from azure.storage.blob import BlobBlock, ContentSettings

from blob_support import assert_refused, bytes_of, content

MISMATCH = "LeaseIdMismatchWithBlobOperation"


@pytest.fixture
def blob(container):
    return container.upload_blob("b", b"content")


def state(blob):
    found = blob.get_blob_properties().lease
    return (found.status, found.state, found.duration)


def test_a_lease_is_acquired_renewed_changed_and_released(flavour, blob):
    before = blob.get_blob_properties().etag
    assert state(blob) == ("unlocked", "available", None)
    lease = blob.acquire_lease(lease_duration=15)
    assert state(blob) == ("locked", "leased", "fixed")
    lease.renew()
    new = str(uuid.uuid4())
    lease.change(new)
    assert lease.id == new
    lease.release()
    assert state(blob) == ("unlocked", "available", None)
    # Leases leave the blob as it is.
    assert blob.get_blob_properties().etag == before
    gone = flavour.lease(blob, new)
    assert_refused(gone.renew, 409, "LeaseIdMismatchWithLeaseOperation")
    assert_refused(gone.release, 409, "LeaseIdMismatchWithLeaseOperation")
    assert_refused(lambda: gone.change(str(uuid.uuid4())), 409, "LeaseNotPresentWithLeaseOperation")
    assert_refused(gone.break_lease, 409, "LeaseNotPresentWithLeaseOperation")


def test_an_infinite_lease(blob):
    lease = blob.acquire_lease()
    assert state(blob) == ("locked", "leased", "infinite")
    lease.release()


def test_the_id_may_be_chosen_and_used_again(blob):
    chosen = str(uuid.uuid4())
    assert blob.acquire_lease(lease_duration=15, lease_id=chosen).id == chosen
    # Who has the lease may acquire it again, with another duration.
    assert blob.acquire_lease(lease_duration=-1, lease_id=chosen).id == chosen
    assert state(blob) == ("locked", "leased", "infinite")
    assert_refused(lambda: blob.acquire_lease(lease_duration=15), 409, "LeaseAlreadyPresent")
    assert_refused(
        lambda: blob.acquire_lease(lease_duration=15, lease_id=str(uuid.uuid4())), 409, "LeaseAlreadyPresent"
    )


@pytest.mark.parametrize("seconds", [0, 14, 61, -2])
def test_durations_are_15_to_60_seconds_or_for_ever(blob, seconds):
    assert_refused(lambda: blob.acquire_lease(lease_duration=seconds), 400, "InvalidHeaderValue")
    assert state(blob) == ("unlocked", "available", None)


def test_an_id_that_is_no_guid_is_refused(blob):
    assert_refused(lambda: blob.acquire_lease(lease_duration=15, lease_id="mine"), 400, "InvalidHeaderValue")


def test_a_lease_expires_and_the_holder_may_renew_it(flavour, container, blob):
    if flavour.name == "aio":
        pytest.skip("waiting once is enough")
    lease = blob.acquire_lease(lease_duration=15)
    untouched = container.upload_blob("untouched", b"x")
    other = untouched.acquire_lease(lease_duration=15)
    time.sleep(15.2)
    assert state(blob) == ("unlocked", "expired", None)
    assert_refused(lambda: blob.set_blob_metadata({"a": "b"}, lease=lease), 412, "LeaseLost")
    # A write of somebody else ends it for good.
    blob.set_blob_metadata({"a": "b"})
    assert_refused(lease.renew, 409, "LeaseIdMismatchWithLeaseOperation")
    other.renew()
    assert state(untouched) == ("locked", "leased", "fixed")
    other.release()


def test_a_lease_is_broken(flavour, blob):
    lease = blob.acquire_lease(lease_duration=60)
    left = lease.break_lease()
    assert 55 <= left <= 60
    assert state(blob) == ("locked", "breaking", None)
    assert_refused(blob.acquire_lease, 409, "LeaseAlreadyPresent")
    assert_refused(
        lambda: blob.acquire_lease(lease_id=lease.id), 409, "LeaseIsBreakingAndCannotBeAcquired"
    )
    assert_refused(lambda: lease.change(str(uuid.uuid4())), 409, "LeaseIsBreakingAndCannotBeChanged")
    # The holder may still write.
    blob.set_blob_metadata({"a": "b"}, lease=lease)
    assert lease.break_lease(lease_break_period=1) <= 1
    time.sleep(1.1)
    assert state(blob) == ("unlocked", "broken", None)
    assert_refused(lease.renew, 409, "LeaseIsBrokenAndCannotBeRenewed")
    assert_refused(lambda: blob.set_blob_metadata({"c": "d"}, lease=lease), 412, "LeaseLost")
    blob.set_blob_metadata({"c": "d"})
    assert state(blob) == ("unlocked", "available", None)


def test_an_infinite_lease_is_broken_at_once(blob):
    lease = blob.acquire_lease()
    assert lease.break_lease() == 0
    assert state(blob) == ("unlocked", "broken", None)


WRITES = {
    "put": lambda blob, **lease: blob.upload_blob(b"new", overwrite=True, **lease),
    "stage": lambda blob, **lease: blob.stage_block("1", b"x", **lease),
    "commit": lambda blob, **lease: blob.commit_block_list([], **lease),
    "metadata": lambda blob, **lease: blob.set_blob_metadata({"a": "b"}, **lease),
    "headers": lambda blob, **lease: blob.set_http_headers(ContentSettings("text/css"), **lease),
    "tags": lambda blob, **lease: blob.set_blob_tags({"a": "b"}, **lease),
    "delete": lambda blob, **lease: blob.delete_blob(**lease),
}


@pytest.mark.parametrize("verb", WRITES)
def test_a_leased_blob_is_written_by_the_holder_only(blob, verb):
    lease = blob.acquire_lease(lease_duration=60)
    write = WRITES[verb]
    assert_refused(lambda: write(blob), 412, "LeaseIdMissing")
    assert_refused(lambda: write(blob, lease=str(uuid.uuid4())), 412, MISMATCH)
    assert content(blob) == b"content"
    write(blob, lease=lease)
    if verb != "delete":
        # Whatever was written, the lease is still there.
        assert state(blob) == ("locked", "leased", "fixed")


@pytest.mark.parametrize("verb", WRITES)
def test_an_id_for_a_blob_without_lease_is_refused(blob, verb):
    stranger = str(uuid.uuid4())
    assert_refused(lambda: WRITES[verb](blob, lease=stranger), 412, "LeaseNotPresentWithBlobOperation")
    assert content(blob) == b"content"


def test_reads_need_no_lease_but_may_name_it(blob):
    lease = blob.acquire_lease(lease_duration=60)
    assert content(blob) == b"content"
    assert content(blob, lease=lease) == b"content"
    assert blob.get_blob_properties(lease=lease).size == 7
    assert_refused(lambda: content(blob, lease=str(uuid.uuid4())), 412, MISMATCH)
    assert blob.create_snapshot()["snapshot"]


def test_pages_and_appends_are_guarded_too(container):
    log = container.get_blob_client("log")
    log.create_append_blob()
    lease = log.acquire_lease(lease_duration=60)
    assert_refused(lambda: log.append_block(b"x"), 412, "LeaseIdMissing")
    log.append_block(b"x", lease=lease)
    assert_refused(log.seal_append_blob, 412, "LeaseIdMissing")
    disk = container.get_blob_client("disk")
    disk.create_page_blob(512)
    lease = disk.acquire_lease(lease_duration=60)
    page = bytes_of(512)
    assert_refused(lambda: disk.upload_page(page, offset=0, length=512), 412, "LeaseIdMissing")
    disk.upload_page(page, offset=0, length=512, lease=lease)
    assert_refused(lambda: disk.clear_page(offset=0, length=512), 412, "LeaseIdMissing")
    assert_refused(lambda: disk.resize_blob(1024), 412, "LeaseIdMissing")
    assert content(disk) == page


def test_a_lease_on_the_destination_of_a_copy(container, blob):
    source = container.upload_blob("source", b"source")
    lease = blob.acquire_lease(lease_duration=-1)
    assert_refused(lambda: blob.start_copy_from_url(source.url), 412, "LeaseIdMissing")
    blob.start_copy_from_url(source.url, destination_lease=lease)
    assert content(blob) == b"source"
    assert state(blob) == ("locked", "leased", "infinite")


def test_who_holds_the_lease_overwrites_although_the_sdk_asks_for_a_new_blob(blob):
    lease = blob.acquire_lease(lease_duration=60)
    # Without overwrite the SDK sends If-None-Match: *, which the service does not hold against the holder.
    blob.upload_blob(b"by the holder", lease=lease)
    assert content(blob) == b"by the holder"


def test_a_deleted_container_takes_leased_blobs_along(blobs, container_name):
    container = blobs.create_container(container_name)
    container.upload_blob("b", b"x").acquire_lease()
    blobs.delete_container(container_name)
    blobs.create_container(container_name)
    assert list(container.list_blobs()) == []
    blobs.delete_container(container_name)


def test_blocks_of_leased_blobs_are_committed_by_the_holder(blob):
    lease = blob.acquire_lease(lease_duration=60)
    blob.stage_block("1", b"one", lease=lease)
    assert_refused(lambda: blob.commit_block_list([BlobBlock("1")]), 412, "LeaseIdMissing")
    blob.commit_block_list([BlobBlock("1")], lease=lease)
    assert content(blob) == b"one"
