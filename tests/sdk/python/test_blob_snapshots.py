"""Snapshots, soft delete, undelete."""

import pytest
from azure.storage.blob import RetentionPolicy

from blob_support import answer_to, assert_refused, content, names


@pytest.fixture
def blob(container):
    return container.upload_blob("b", b"first", metadata={"a": "1"})


def at(container, snapshot):
    return container.get_blob_client("b", snapshot=snapshot["snapshot"])


def test_a_snapshot_stays_as_it_was(container, blob):
    taken = blob.create_snapshot()
    properties = blob.get_blob_properties()
    assert taken["etag"] == properties.etag
    blob.upload_blob(b"second", overwrite=True)
    snapshot = at(container, taken)
    assert content(snapshot) == b"first"
    found = snapshot.get_blob_properties()
    assert (found.snapshot, found.metadata, found.etag) == (taken["snapshot"], {"a": "1"}, properties.etag)
    assert content(blob) == b"second"


def test_a_snapshot_may_have_its_own_metadata(container, blob):
    taken = blob.create_snapshot(metadata={"own": "yes"})
    assert at(container, taken).get_blob_properties().metadata == {"own": "yes"}
    assert blob.get_blob_properties().metadata == {"a": "1"}


def test_snapshots_are_listed_in_front_of_their_blob(container, blob):
    taken = [blob.create_snapshot()["snapshot"] for _ in range(3)]
    assert taken == sorted(set(taken))
    found = [(item.name, item.snapshot) for item in container.list_blobs(include=["snapshots"])]
    assert found == [("b", moment) for moment in taken] + [("b", None)]
    assert names(container.list_blobs()) == ["b"]


def test_snapshots_are_not_written(container, blob):
    snapshot = at(container, blob.create_snapshot())
    for call in (
        lambda: snapshot.set_blob_metadata({"c": "d"}),
        lambda: snapshot.upload_blob(b"x", overwrite=True),
        snapshot.create_snapshot,
        snapshot.acquire_lease,
    ):
        # The SDK leaves the snapshot out of most writes, so only their effect on the snapshot is certain.
        try:
            call()
        except Exception as error:  # noqa: BLE001
            assert error.status_code == 400
    assert content(snapshot) == b"first"
    assert snapshot.get_blob_properties().metadata == {"a": "1"}


def test_a_blob_with_snapshots_is_not_deleted_by_accident(container, blob):
    taken = blob.create_snapshot()
    assert_refused(blob.delete_blob, 409, "SnapshotsPresent")
    blob.delete_blob(delete_snapshots="only")
    assert not at(container, taken).exists()
    assert content(blob) == b"first"
    taken = blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    assert not blob.exists()
    assert not at(container, taken).exists()


def test_a_single_snapshot_is_deleted(container, blob):
    first, second = blob.create_snapshot(), blob.create_snapshot()
    at(container, first).delete_blob()
    assert not at(container, first).exists()
    assert content(at(container, second)) == b"first"
    assert_refused(at(container, first).download_blob, 404, "BlobNotFound")


def test_a_snapshot_of_another_time_is_not_found(container, blob):
    other = container.get_blob_client("b", snapshot="2020-01-01T00:00:00.0000000Z")
    assert not other.exists()
    assert_refused(other.get_blob_properties, 404, "BlobNotFound")


@pytest.fixture
def kept(blobs):
    """Deleted blobs are kept for a while."""
    blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))
    yield
    blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=False))


def test_a_deleted_blob_comes_back(container, blob, kept):
    status, headers = answer_to(blob.delete_blob)
    assert (status, headers["x-ms-delete-type-permanent"]) == (202, "false")
    assert not blob.exists()
    assert names(container.list_blobs()) == []
    (found,) = container.list_blobs(include=["deleted"])
    assert (found.name, found.deleted, found.remaining_retention_days) == ("b", True, 1)
    assert found.deleted_time is not None
    blob.undelete_blob()
    assert content(blob) == b"first"
    assert blob.get_blob_properties().metadata == {"a": "1"}
    (found,) = container.list_blobs(include=["deleted"])
    assert not found.deleted


def test_snapshots_come_back_with_their_blob(container, blob, kept):
    taken = blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    assert not at(container, taken).exists()
    deleted = [(item.name, item.snapshot, item.deleted) for item in container.list_blobs(include=["deleted", "snapshots"])]
    assert deleted == [("b", taken["snapshot"], True), ("b", None, True)]
    blob.undelete_blob()
    assert content(at(container, taken)) == b"first"
    assert content(blob) == b"first"


def test_what_is_overwritten_is_kept_as_a_deleted_snapshot(container, blob, kept):
    blob.upload_blob(b"second", overwrite=True)
    found = list(container.list_blobs(include=["deleted", "snapshots"]))
    assert [(item.name, item.deleted or False) for item in found] == [("b", True), ("b", False)]
    blob.undelete_blob()
    old = container.get_blob_client("b", snapshot=found[0].snapshot)
    assert content(old) == b"first"
    assert content(blob) == b"second"


def test_undelete_of_what_is_not_deleted_changes_nothing(blob, kept):
    before = blob.get_blob_properties().etag
    blob.undelete_blob()
    assert blob.get_blob_properties().etag == before


def test_without_retention_a_deletion_is_for_good(blob):
    blob.delete_blob()
    assert_refused(blob.undelete_blob, 404, "BlobNotFound")
