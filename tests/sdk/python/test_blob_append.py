"""Append blobs: append, positions, sizes, seal, from URL."""

import hashlib

import pytest
from azure.storage.blob import BlobType, ContentSettings

from blob_support import KIB, MIB, answer_to, assert_refused, bytes_of, content


@pytest.fixture
def log(container):
    blob = container.get_blob_client("log.txt")
    blob.create_append_blob(metadata={"a": "b"}, content_settings=ContentSettings("text/plain"))
    return blob


def test_a_new_append_blob_is_empty(log):
    found = log.get_blob_properties()
    assert (found.size, found.blob_type, found.append_blob_committed_block_count) == (0, BlobType.APPENDBLOB, 0)
    assert found.metadata == {"a": "b"}
    assert found.content_settings.content_type == "text/plain"
    assert found.content_settings.content_md5 is None
    assert content(log) == b""


def test_what_is_appended_comes_behind(log):
    first = log.append_block(b"one")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    second = log.append_block(b"two!")
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("3", 2)
    assert second["etag"] != first["etag"]
    assert content(log) == b"onetwo!"
    assert log.get_blob_properties().append_blob_committed_block_count == 2


@pytest.mark.parametrize("size", [1, 8 * KIB, 100_000, 4 * MIB])
def test_blocks_of_every_size(log, size):
    data = bytes_of(size)
    log.append_block(data)
    log.append_block(data[::-1])
    assert content(log) == data + data[::-1]
    assert content(log, offset=size - 1, length=2) == data[-1:] * 2


def test_many_short_appends(log):
    lines = [f"line {number}\n".encode() for number in range(200)]
    for line in lines:
        log.append_block(line)
    assert content(log) == b"".join(lines)
    assert log.get_blob_properties().append_blob_committed_block_count == 200


def test_the_position_is_a_condition(log):
    log.append_block(b"0123", appendpos_condition=0)
    assert_refused(
        lambda: log.append_block(b"x", appendpos_condition=3), 412, "AppendPositionConditionNotMet"
    )
    log.append_block(b"45", appendpos_condition=4)
    assert content(log) == b"012345"


def test_the_size_is_a_condition(log):
    log.append_block(b"0123", maxsize_condition=4)
    assert_refused(lambda: log.append_block(b"x", maxsize_condition=4), 412, "MaxBlobSizeConditionNotMet")
    log.append_block(b"4", maxsize_condition=5)
    assert content(log) == b"01234"


def test_appending_needs_an_append_blob(container):
    block = container.upload_blob("block", b"x")
    assert_refused(lambda: block.append_block(b"y"), 409, "InvalidBlobType")
    assert_refused(block.seal_append_blob, 409, "InvalidBlobType")


def test_checksums_are_checked(log):
    status, headers = answer_to(log.append_block, b"data", validate_content=True)
    assert status == 201
    assert "x-ms-content-crc64" in headers and "content-md5" in headers
    wrong = "XrY7u+Ae7tCTyyK7j1rNww=="
    assert_refused(lambda: log.append_block(b"data", headers={"Content-MD5": wrong}), 400, "Md5Mismatch")
    assert content(log) == b"data"


def test_a_sealed_blob_takes_no_more(log):
    log.append_block(b"last words")
    before = log.get_blob_properties()
    assert not before.is_append_blob_sealed
    sealed = log.seal_append_blob()
    assert sealed["blob_sealed"] is True
    after = log.get_blob_properties()
    assert after.is_append_blob_sealed
    assert after.etag != before.etag
    assert_refused(lambda: log.append_block(b"!"), 409, "BlobIsSealed")
    log.seal_append_blob()
    log.set_blob_metadata({"still": "writable"})
    assert content(log) == b"last words"


def test_creating_again_empties_the_blob(log):
    log.append_block(b"old")
    log.create_append_blob()
    assert content(log) == b""
    found = log.get_blob_properties()
    assert (found.append_blob_committed_block_count, found.metadata) == (0, {})


def test_uploads_append_and_overwrite(container):
    blob = container.upload_blob("b", b"one", blob_type=BlobType.APPENDBLOB)
    blob.upload_blob(b"two", blob_type=BlobType.APPENDBLOB, overwrite=False)
    assert content(blob) == b"onetwo"
    blob.upload_blob(b"three", blob_type=BlobType.APPENDBLOB, overwrite=True)
    assert content(blob) == b"three"


def test_blocks_from_url(container, log):
    data = bytes_of(20_000)
    source = container.upload_blob("source", data)
    log.append_block(b"head")
    found = log.append_block_from_url(source.url, source_offset=100, source_length=1000)
    assert (found["blob_append_offset"], found["blob_committed_block_count"]) == ("4", 2)
    log.append_block_from_url(source.url, source_content_md5=hashlib.md5(data).digest())
    assert content(log) == b"head" + data[100:1100] + data
    assert_refused(
        lambda: log.append_block_from_url(source.url, source_content_md5=hashlib.md5(b"x").digest()),
        400,
        "Md5Mismatch",
    )
    assert_refused(
        lambda: log.append_block_from_url(container.get_blob_client("nope").url), 404, "CannotVerifyCopySource"
    )
    assert log.get_blob_properties().size == 21_004
