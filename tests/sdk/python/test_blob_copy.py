"""Copies within the account: whole blobs, snapshots, tags, conditions, abort."""

import uuid

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier

from blob_support import MIB, answer_to, assert_refused, bytes_of, content


@pytest.fixture
def source(container):
    settings = ContentSettings("image/png", content_language="de", cache_control="no-cache")
    return container.upload_blob(
        "source", b"content", content_settings=settings, metadata={"a": "b"}, tags={"t": "1"}
    )


def test_a_copy_is_complete_at_once(container, source):
    copy = container.get_blob_client("copy")
    started = copy.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    uuid.UUID(started["copy_id"])
    assert content(copy) == b"content"
    found = copy.get_blob_properties()
    assert found.content_settings.content_type == "image/png"
    assert found.content_settings.content_language == "de"
    assert found.content_settings.cache_control == "no-cache"
    assert found.content_settings.content_md5 == source.get_blob_properties().content_settings.content_md5
    assert found.metadata == {"a": "b"}
    # Tags stay behind.
    assert copy.get_blob_tags() == {}
    assert (found.copy.id, found.copy.status, found.copy.progress) == (started["copy_id"], "success", "7/7")
    assert found.copy.source == source.url
    assert found.copy.completion_time is not None


def test_a_copy_answers_202(container, source):
    status, headers = answer_to(container.get_blob_client("copy").start_copy_from_url, source.url)
    assert status == 202
    assert headers["x-ms-copy-status"] == "success"


def test_a_copy_may_have_its_own_metadata_tags_and_tier(container, source):
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(
        source.url, metadata={"c": "d"}, tags={"u": "2"}, standard_blob_tier=StandardBlobTier.COOL
    )
    found = copy.get_blob_properties()
    assert (found.metadata, found.blob_tier) == ({"c": "d"}, "Cool")
    assert copy.get_blob_tags() == {"u": "2"}


def test_a_copy_stays_when_its_source_goes(container, source):
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url)
    source.upload_blob(b"other", overwrite=True)
    assert content(copy) == b"content"
    source.delete_blob()
    assert content(copy) == b"content"


@pytest.mark.parametrize("size", [0, 100_000, 9 * MIB])
def test_copies_of_every_size(container, size):
    data = bytes_of(size)
    source = container.upload_blob("big", data)
    for name, options in (("copy", {}), ("sync", {"requires_sync": True})):
        copy = container.get_blob_client(name)
        assert copy.start_copy_from_url(source.url, **options)["copy_status"] == "success"
        assert content(copy) == data


def test_the_copy_is_forgotten_when_the_blob_is_written(container, source):
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url)
    copy.upload_blob(b"new", overwrite=True)
    assert copy.get_blob_properties().copy.id is None


def test_a_copy_overwrites_and_keeps_the_blocks(container):
    source = container.get_blob_client("source")
    for name in "12":
        source.stage_block(name, name.encode() * 3)
    source.commit_block_list(["1", "2"])
    copy = container.upload_blob("copy", b"old")
    copy.start_copy_from_url(source.url)
    assert [(block.id, block.size) for block in copy.get_block_list()[0]] == [("1", 3), ("2", 3)]
    assert content(copy) == b"111222"


@pytest.mark.parametrize("kind", [BlobType.PAGEBLOB, BlobType.APPENDBLOB])
def test_blobs_of_other_types_are_copied(container, kind):
    data = bytes_of(2048)
    source = container.upload_blob("source", data, blob_type=kind)
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url)
    assert content(copy) == data
    assert copy.get_blob_properties().blob_type == kind
    block = container.upload_blob("block", b"x")
    assert_refused(lambda: block.start_copy_from_url(source.url), 409, "InvalidBlobType")


def test_a_snapshot_is_promoted(container, source):
    snapshot = source.create_snapshot()["snapshot"]
    source.upload_blob(b"changed", overwrite=True)
    old = container.get_blob_client("source", snapshot=snapshot)
    assert "snapshot=" in old.url
    source.start_copy_from_url(old.url)
    assert content(source) == b"content"


def test_a_missing_source_is_not_found(container):
    copy = container.get_blob_client("copy")
    missing = container.get_blob_client("nope")
    assert_refused(lambda: copy.start_copy_from_url(missing.url), 404, "BlobNotFound")
    error = assert_refused(
        lambda: copy.start_copy_from_url(missing.url, requires_sync=True), 404, "CannotVerifyCopySource"
    )
    assert error.response.headers["x-ms-copy-source-status-code"] == "404"
    assert error.response.headers["x-ms-copy-source-error-code"] == "BlobNotFound"
    assert not copy.exists()


def test_sources_outside_this_server_are_not_asked(container):
    copy = container.get_blob_client("copy")
    for url in ("http://127.0.0.1:1/container/blob", "http://example.invalid/container/blob"):
        with pytest.raises(Exception) as caught:
            copy.start_copy_from_url(url)
        assert caught.value.error_code == "CannotVerifyCopySource"
    assert_refused(lambda: copy.start_copy_from_url("no url at all"), 400, "InvalidHeaderValue")
    assert not copy.exists()


def test_source_conditions(container, source):
    copy = container.get_blob_client("copy")
    etag = source.get_blob_properties().etag
    unmet = {"source_etag": '"0x1"', "source_match_condition": MatchConditions.IfNotModified}
    assert_refused(lambda: copy.start_copy_from_url(source.url, **unmet), 412, "SourceConditionNotMet")
    unmet = {"source_etag": etag, "source_match_condition": MatchConditions.IfModified}
    assert_refused(lambda: copy.start_copy_from_url(source.url, **unmet), 412, "SourceConditionNotMet")
    copy.start_copy_from_url(source.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified)
    assert content(copy) == b"content"


def test_there_is_nothing_to_abort(container, source):
    copy = container.get_blob_client("copy")
    started = copy.start_copy_from_url(source.url)
    assert_refused(lambda: copy.abort_copy(started), 409, "NoPendingCopyOperation")
    assert content(copy) == b"content"


def test_a_synchronous_copy_takes_tags_along_when_asked(container, source):
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url, requires_sync=True, tags="COPY")
    assert copy.get_blob_tags() == {"t": "1"}
    copy.start_copy_from_url(source.url, requires_sync=True, tags={"own": "yes"})
    assert copy.get_blob_tags() == {"own": "yes"}


def test_a_sealed_copy(container):
    source = container.get_blob_client("log")
    source.create_append_blob()
    source.append_block(b"line")
    source.seal_append_blob()
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url, seal_destination_blob=True)
    assert copy.get_blob_properties().is_append_blob_sealed
    assert_refused(lambda: copy.append_block(b"x"), 409, "BlobIsSealed")
