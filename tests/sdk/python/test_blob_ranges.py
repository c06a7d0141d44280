"""Reading parts: ranges, checksums of ranges, empty blobs, streams."""

import base64
import hashlib
import io

import pytest

from blob_support import KIB, MIB, answer_to, assert_refused, bytes_of, content

SIZE = 100_000


@pytest.fixture(scope="module")
def data():
    return bytes_of(SIZE)


@pytest.fixture
def blob(container, data):
    return container.upload_blob("b", data)


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 1), (0, SIZE), (1, 5), (SIZE - 1, 1), (8190, 4), (50_000, 50_000), (10, SIZE)]
)
def test_a_range_is_read(blob, data, offset, length):
    assert content(blob, offset=offset, length=length) == data[offset : offset + length]


def test_an_open_range(blob, data):
    assert content(blob, offset=99_990) == data[99_990:]


def test_every_range_is_partial_content(blob):
    # The SDK asks for a range by itself.
    status, headers = answer_to(blob.download_blob)
    assert (status, headers["content-range"]) == (206, f"bytes 0-{SIZE - 1}/{SIZE}")
    assert headers["accept-ranges"] == "bytes"
    status, headers = answer_to(blob.download_blob, offset=5, length=3)
    assert (status, headers["content-range"], headers["content-length"]) == (206, f"bytes 5-7/{SIZE}", "3")
    assert "content-md5" not in headers
    assert headers["x-ms-blob-content-md5"]


def test_the_checksum_of_a_range(blob, data):
    status, headers = answer_to(blob.download_blob, offset=100, length=1000, validate_content=True)
    assert status == 206
    assert headers["content-md5"] == base64.b64encode(hashlib.md5(data[100:1100]).digest()).decode()


@pytest.mark.parametrize("offset", [SIZE, SIZE + 1])
def test_a_range_behind_the_end_is_refused(blob, offset):
    error = assert_refused(lambda: content(blob, offset=offset, length=1), 416, "InvalidRange")
    assert error.response.headers["Content-Range"] == f"bytes */{SIZE}"


def test_empty_blobs_are_read_although_no_range_of_them_exists(container):
    blob = container.upload_blob("empty", b"")
    assert content(blob) == b""
    assert_refused(lambda: content(blob, offset=0, length=1), 416, "InvalidRange")


def test_downloads_in_chunks_and_into_streams(flavour, connection_string, container, data, blob):
    options = {"max_single_get_size": 32 * KIB, "max_chunk_get_size": 16 * KIB}
    with flavour.blobs(connection_string, **options) as service:
        blob = service.get_blob_client(container.container_name, "b")
        downloader = blob.download_blob()
        chunks = list(downloader.chunks())
        assert [len(chunk) for chunk in chunks] == [16 * KIB] * 6 + [SIZE - 96 * KIB]
        assert b"".join(chunks) == data
        stream = io.BytesIO()
        assert blob.download_blob(max_concurrency=3).readinto(stream) == SIZE
        assert stream.getvalue() == data
        assert content(blob, offset=1000, length=60_000, max_concurrency=2) == data[1000:61_000]
        assert blob.download_blob().read(10) == data[:10]


def test_the_properties_come_with_the_content(blob):
    found = blob.download_blob().properties
    properties = blob.get_blob_properties()
    assert (found.etag, found.size, found.last_modified) == (properties.etag, SIZE, properties.last_modified)
    assert found.content_settings.content_md5 == properties.content_settings.content_md5
    assert found.creation_time == properties.creation_time


@pytest.mark.parametrize("size", [5 * MIB, 33 * MIB + 1])
def test_blobs_of_many_mebibytes(container, size):
    data = bytes_of(size)
    blob = container.upload_blob("big", data)
    assert content(blob, max_concurrency=4) == data
    assert content(blob, offset=size - 100) == data[-100:]
    assert content(blob, offset=4 * MIB - 1, length=2) == data[4 * MIB - 1 : 4 * MIB + 1]


def test_ranges_across_blocks(container, data):
    blob = container.get_blob_client("blocks")
    places = [0, 1, 9000, 9001, 50_000, SIZE]
    for start, end in zip(places, places[1:]):
        blob.stage_block(f"{start:06}", data[start:end])
    blob.commit_block_list([f"{start:06}" for start in places[:-1]])
    for offset, length in ((0, 3), (8999, 3), (9000, 1), (0, SIZE), (1, 60_000)):
        assert content(blob, offset=offset, length=length) == data[offset : offset + length]
