"""Block blobs from blocks: stage, list, commit, limits, uploads in parts."""

import base64
import hashlib

import pytest
from azure.storage.blob import BlobBlock, ContentSettings

from blob_support import KIB, MIB, answer_to, assert_refused, bytes_of, content, names


def blocks(*ids):
    return [BlobBlock(block_id=name) for name in ids]


def listed(found):
    return [(block.id, block.size) for block in found]


def test_blocks_are_staged_listed_and_committed_in_the_order_of_the_list(container):
    blob = container.get_blob_client("b")
    for name, data in (("1", b"one"), ("2", b"two!"), ("3", b"three")):
        blob.stage_block(name, data)
    committed, uncommitted = blob.get_block_list("all")
    assert listed(committed) == []
    assert sorted(listed(uncommitted)) == [("1", 3), ("2", 4), ("3", 5)]
    blob.commit_block_list(blocks("3", "1", "3"))
    assert content(blob) == b"threeonethree"
    committed, uncommitted = blob.get_block_list("all")
    assert listed(committed) == [("3", 5), ("1", 3), ("3", 5)]
    assert listed(uncommitted) == []


def test_staged_blocks_alone_are_no_blob(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    assert not blob.exists()
    assert_refused(blob.download_blob, 404, "BlobNotFound")
    assert names(container.list_blobs()) == []
    (found,) = container.list_blobs(include=["uncommittedblobs"])
    assert (found.name, found.size, found.etag) == ("b", 0, None)
    blob.delete_blob()
    assert names(container.list_blobs(include=["uncommittedblobs"])) == []


def test_staging_answers_with_a_checksum_and_no_etag(container):
    blob = container.get_blob_client("b")
    status, headers = answer_to(blob.stage_block, "1", b"HelloWorld")
    assert status == 201
    assert "etag" not in headers and "last-modified" not in headers and "content-md5" not in headers
    assert len(base64.b64decode(headers["x-ms-content-crc64"])) == 8
    right = base64.b64encode(hashlib.md5(b"more").digest()).decode()
    _, headers = answer_to(blob.stage_block, "2", b"more", validate_content=True)
    assert headers["content-md5"] == right
    assert_refused(
        lambda: blob.stage_block("3", b"other", headers={"Content-MD5": right}), 400, "Md5Mismatch"
    )
    assert sorted(listed(blob.get_block_list("uncommitted")[1])) == [("1", 10), ("2", 4)]


def test_a_block_staged_again_is_replaced(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"old")
    blob.stage_block("1", b"newer")
    assert listed(blob.get_block_list("uncommitted")[1]) == [("1", 5)]
    blob.commit_block_list(blocks("1"))
    assert content(blob) == b"newer"


def test_committed_blocks_are_used_again(container):
    blob = container.get_blob_client("b")
    for name in "123":
        blob.stage_block(name, name.encode() * 4)
    blob.commit_block_list(blocks("1", "2", "3"))
    blob.stage_block("4", b"new!")
    blob.commit_block_list(blocks("4", "2"))
    assert content(blob) == b"new!2222"
    # What the last list left out is gone.
    assert_refused(lambda: blob.commit_block_list(blocks("1")), 400, "InvalidBlockList")
    assert content(blob) == b"new!2222"


def test_the_newest_block_is_meant(container):
    # The SDK takes `state` but sends every block as Latest, so the other two are for other suites.
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"old")
    blob.commit_block_list(blocks("1"))
    blob.stage_block("1", b"newest")
    blob.commit_block_list(blocks("1"))
    assert content(blob) == b"newest"


def test_a_block_that_is_not_there_is_refused(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    assert_refused(lambda: blob.commit_block_list(blocks("1", "2")), 400, "InvalidBlockList")
    assert not blob.exists()
    assert listed(blob.get_block_list("uncommitted")[1]) == [("1", 3)]


def test_an_empty_list_makes_an_empty_blob(container):
    blob = container.get_blob_client("b")
    blob.commit_block_list([])
    assert content(blob) == b""
    assert blob.get_blob_properties().size == 0


def test_a_committed_list_brings_its_properties(container):
    blob = container.upload_blob("b", b"old", metadata={"old": "1"}, content_settings=ContentSettings("text/plain"))
    blob.stage_block("1", b"new")
    blob.commit_block_list(
        blocks("1"), metadata={"New": "2"}, content_settings=ContentSettings("image/png", content_language="de")
    )
    found = blob.get_blob_properties()
    assert (found.content_settings.content_type, found.content_settings.content_language) == ("image/png", "de")
    assert {name.lower(): value for name, value in found.metadata.items()} == {"new": "2"}
    assert found.content_settings.content_md5 is None
    blob.stage_block("1", b"newer")
    blob.commit_block_list(blocks("1"))
    found = blob.get_blob_properties()
    assert found.content_settings.content_type == "application/octet-stream"
    assert found.metadata == {}


def test_put_blob_drops_staged_blocks(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"one")
    blob.upload_blob(b"whole")
    committed, uncommitted = blob.get_block_list("all")
    assert (listed(committed), listed(uncommitted)) == ([], [])


def test_ids_of_staged_blocks_have_one_length(container):
    blob = container.get_blob_client("b")
    blob.stage_block("aa", b"x")
    assert_refused(lambda: blob.stage_block("aaa", b"x"), 400, "InvalidBlobOrBlock")
    blob.commit_block_list(blocks("aa"))
    blob.stage_block("aaa", b"y")
    blob.commit_block_list(blocks("aa", "aaa"))
    assert content(blob) == b"xy"


def test_an_empty_block_is_refused(container):
    blob = container.get_blob_client("b")
    assert_refused(lambda: blob.stage_block("1", b""), 400, "InvalidHeaderValue")


def test_the_longest_ids_work(container):
    blob = container.get_blob_client("b")
    longest = "x" * 64
    blob.stage_block(longest, b"data")
    blob.commit_block_list(blocks(longest))
    assert listed(blob.get_block_list()[0]) == [(longest, 4)]


def test_block_lists_are_only_of_block_blobs(container):
    append = container.get_blob_client("append")
    append.create_append_blob()
    assert_refused(append.get_block_list, 409, "InvalidBlobType")
    assert_refused(lambda: append.stage_block("1", b"x"), 409, "InvalidBlobType")
    page = container.get_blob_client("page")
    page.create_page_blob(512)
    assert_refused(lambda: page.commit_block_list([]), 409, "InvalidBlobType")


def test_a_list_of_thousands_of_blocks(container):
    blob = container.get_blob_client("b")
    blob.stage_block("0000", b"a")
    blob.stage_block("0001", b"b")
    order = ["0000", "0001", "0001"] * 10_000
    blob.commit_block_list(blocks(*order))
    assert blob.get_blob_properties().size == 30_000
    assert content(blob) == b"abb" * 10_000
    assert len(blob.get_block_list()[0]) == 30_000


def test_a_list_of_more_than_50000_blocks_is_refused(container):
    blob = container.get_blob_client("b")
    blob.stage_block("1", b"a")
    assert_refused(lambda: blob.commit_block_list(blocks(*["1"] * 50_001)), 400, "BlockListTooLong")
    blob.commit_block_list(blocks(*["1"] * 50_000))
    assert blob.get_blob_properties().size == 50_000


@pytest.mark.parametrize("concurrency", [1, 4])
def test_uploads_in_parts_and_downloads_in_parts(flavour, connection_string, container_name, blobs, concurrency):
    options = {
        "max_single_put_size": 64 * KIB,
        "max_block_size": 64 * KIB,
        "max_single_get_size": 96 * KIB,
        "max_chunk_get_size": 40 * KIB,
    }
    data = bytes_of(3 * MIB + 5)
    blobs.create_container(container_name)
    with flavour.blobs(connection_string, **options) as service:
        blob = service.get_blob_client(container_name, "b")
        blob.upload_blob(data, max_concurrency=concurrency, metadata={"a": "b"})
        assert len(blob.get_block_list()[0]) == 49
        assert content(blob, max_concurrency=concurrency) == data
        downloader = blob.download_blob()
        assert downloader.size == len(data)
        assert b"".join(downloader.chunks()) == data
        assert blob.get_blob_properties().metadata == {"a": "b"}
        blob.upload_blob(data[:200_000], overwrite=True, max_concurrency=concurrency)
        assert content(blob) == data[:200_000]
    blobs.delete_container(container_name)


def test_blocks_from_url(container):
    data = bytes_of(100_000)
    source = container.upload_blob("source", data)
    blob = container.get_blob_client("b")
    blob.stage_block_from_url("1", source.url, source_offset=10, source_length=500)
    blob.stage_block_from_url("2", source.url)
    blob.commit_block_list(blocks("1", "2"))
    assert content(blob) == data[10:510] + data
    md5 = hashlib.md5(data[:100]).digest()
    blob.stage_block_from_url("3", source.url, source_offset=0, source_length=100, source_content_md5=md5)
    assert_refused(
        lambda: blob.stage_block_from_url("4", source.url, source_content_md5=md5), 400, "Md5Mismatch"
    )
    missing = container.get_blob_client("nope")
    assert_refused(lambda: blob.stage_block_from_url("4", missing.url), 404, "CannotVerifyCopySource")


def test_put_blob_from_url(container):
    data = bytes_of(50_000)
    settings = ContentSettings("image/png", content_language="de")
    source = container.upload_blob("source", data, content_settings=settings, metadata={"a": "b"})
    blob = container.get_blob_client("b")
    blob.upload_blob_from_url(source.url)
    assert content(blob) == data
    found = blob.get_blob_properties()
    assert (found.content_settings.content_type, found.content_settings.content_language) == ("image/png", "de")
    assert bytes(found.content_settings.content_md5) == hashlib.md5(data).digest()
    assert found.metadata == {}
    assert_refused(lambda: blob.upload_blob_from_url(source.url, overwrite=False), 409, "BlobAlreadyExists")
    blob.upload_blob_from_url(source.url, overwrite=True, include_source_blob_properties=False, metadata={"c": "d"})
    found = blob.get_blob_properties()
    assert found.content_settings.content_type == "application/octet-stream"
    assert found.metadata == {"c": "d"}
