"""Page blobs: write, clear, ranges, resize, sequence numbers, differences of snapshots."""

import hashlib

import pytest
from azure.storage.blob import BlobType, SequenceNumberAction

from blob_support import MIB, answer_to, assert_refused, bytes_of, content

PAGE = 512


@pytest.fixture
def disk(container):
    blob = container.get_blob_client("disk.vhd")
    blob.create_page_blob(8 * PAGE)
    return blob


def ranges(blob, **options):
    return [(found.start, found.end, found.cleared) for found in blob.list_page_ranges(**options)]


def pages(first, last, is_cleared=False):
    return (first * PAGE, (last + 1) * PAGE - 1, is_cleared)


def test_a_new_page_blob_is_all_zeros(disk):
    found = disk.get_blob_properties()
    assert (found.size, found.blob_type, found.page_blob_sequence_number) == (8 * PAGE, BlobType.PAGEBLOB, 0)
    assert content(disk) == bytes(8 * PAGE)
    assert ranges(disk) == []
    assert disk.get_page_ranges() == ([], [])


def test_pages_are_written_and_cleared(disk):
    data = bytes_of(3 * PAGE)
    status, headers = answer_to(disk.upload_page, data, offset=PAGE, length=3 * PAGE)
    assert (status, headers["x-ms-blob-sequence-number"]) == (201, "0")
    assert content(disk) == bytes(PAGE) + data + bytes(4 * PAGE)
    disk.upload_page(data[:PAGE], offset=6 * PAGE, length=PAGE)
    assert ranges(disk) == [pages(1, 3), pages(6, 6)]
    disk.clear_page(offset=2 * PAGE, length=PAGE)
    assert ranges(disk) == [pages(1, 1), pages(3, 3), pages(6, 6)]
    assert content(disk, offset=2 * PAGE, length=PAGE) == bytes(PAGE)
    assert ranges(disk, offset=3 * PAGE, length=2 * PAGE) == [pages(3, 3)]


def test_every_write_changes_the_etag(disk):
    seen = {disk.get_blob_properties().etag}
    for _ in range(3):
        seen.add(disk.upload_page(bytes_of(PAGE), offset=0, length=PAGE)["etag"])
    seen.add(disk.clear_page(offset=0, length=PAGE)["etag"])
    assert len(seen) == 5


def test_pages_beyond_the_end_are_refused(disk):
    assert_refused(lambda: disk.upload_page(bytes(PAGE), offset=8 * PAGE, length=PAGE), 416, "InvalidPageRange")
    assert_refused(lambda: disk.clear_page(offset=8 * PAGE, length=PAGE), 416, "InvalidPageRange")
    assert_refused(
        lambda: disk.upload_page(bytes(2 * PAGE), offset=7 * PAGE, length=2 * PAGE), 416, "InvalidPageRange"
    )


def test_a_write_has_4_mib_at_most(container):
    blob = container.get_blob_client("b")
    blob.create_page_blob(16 * MIB)
    data = bytes_of(4 * MIB)
    blob.upload_page(data, offset=4 * MIB - PAGE, length=4 * MIB)
    assert content(blob, offset=4 * MIB - PAGE, length=4 * MIB) == data
    assert_refused(
        lambda: blob.upload_page(bytes(4 * MIB + PAGE), offset=0, length=4 * MIB + PAGE), 413, "RequestBodyTooLarge"
    )


def test_an_upload_leaves_out_pages_of_zeros(container):
    data = bytes_of(PAGE) + bytes(4 * MIB) + bytes_of(PAGE, seed=2)
    blob = container.upload_blob("b", data, blob_type=BlobType.PAGEBLOB)
    assert content(blob) == data
    blob.upload_blob(bytes(MIB), blob_type=BlobType.PAGEBLOB, overwrite=True)
    assert content(blob) == bytes(MIB)
    assert ranges(blob) == []


def test_a_page_blob_is_resized(disk):
    data = bytes_of(8 * PAGE)
    disk.upload_page(data, offset=0, length=8 * PAGE)
    disk.resize_blob(4 * PAGE)
    assert content(disk) == data[: 4 * PAGE]
    disk.resize_blob(6 * PAGE)
    # What was cut off does not come back.
    assert content(disk) == data[: 4 * PAGE] + bytes(2 * PAGE)
    assert ranges(disk) == [pages(0, 3)]


def test_sequence_numbers(disk):
    def number():
        return disk.get_blob_properties().page_blob_sequence_number

    disk.set_sequence_number(SequenceNumberAction.UPDATE, "7")
    assert number() == 7
    disk.set_sequence_number(SequenceNumberAction.MAX, "5")
    assert number() == 7
    disk.set_sequence_number(SequenceNumberAction.MAX, "9")
    assert number() == 9
    disk.set_sequence_number(SequenceNumberAction.INCREMENT)
    assert number() == 10
    data = bytes_of(PAGE)
    for condition, met in (
        ({"if_sequence_number_lte": 10}, True),
        ({"if_sequence_number_lte": 9}, False),
        ({"if_sequence_number_lt": 11}, True),
        ({"if_sequence_number_lt": 10}, False),
        ({"if_sequence_number_eq": 10}, True),
        ({"if_sequence_number_eq": 11}, False),
    ):
        if met:
            disk.upload_page(data, offset=0, length=PAGE, **condition)
        else:
            assert_refused(
                lambda condition=condition: disk.upload_page(data, offset=0, length=PAGE, **condition),
                412,
                "SequenceNumberConditionNotMet",
            )


def test_ranges_come_page_by_page(disk):
    for place in (0, 2, 4, 6):
        disk.upload_page(bytes_of(PAGE), offset=place * PAGE, length=PAGE)
    found = [
        [(item.start, item.end) for item in page] for page in disk.list_page_ranges(results_per_page=3).by_page()
    ]
    assert found == [[pages(0, 0)[:2], pages(2, 2)[:2], pages(4, 4)[:2]], [pages(6, 6)[:2]]]


def test_what_changed_since_a_snapshot(disk):
    data = bytes_of(PAGE)
    for place in (0, 3):
        disk.upload_page(data, offset=place * PAGE, length=PAGE)
    before = disk.create_snapshot()
    disk.upload_page(data[::-1], offset=PAGE, length=PAGE)
    disk.clear_page(offset=3 * PAGE, length=PAGE)
    assert ranges(disk, previous_snapshot=before) == [pages(1, 1), pages(3, 3, True)]
    changed, cleared = disk.get_page_ranges(previous_snapshot_diff=before)
    assert (changed, cleared) == (
        [{"start": PAGE, "end": 2 * PAGE - 1}], [{"start": 3 * PAGE, "end": 4 * PAGE - 1}]
    )
    assert_refused(
        lambda: ranges(disk, previous_snapshot="2020-01-01T00:00:00.0000000Z"), 409, "PreviousSnapshotNotFound"
    )


def test_a_snapshot_keeps_its_pages(container, disk):
    data = bytes_of(2 * PAGE)
    disk.upload_page(data, offset=0, length=2 * PAGE)
    snapshot = container.get_blob_client("disk.vhd", snapshot=disk.create_snapshot()["snapshot"])
    disk.upload_page(data[::-1], offset=0, length=2 * PAGE)
    disk.clear_page(offset=0, length=PAGE)
    assert content(snapshot) == data + bytes(6 * PAGE)
    assert ranges(snapshot) == [pages(0, 1)]
    assert ranges(disk) == [pages(1, 1)]


def test_pages_need_a_page_blob(container):
    block = container.upload_blob("block", b"x" * PAGE)
    assert_refused(lambda: block.upload_page(bytes(PAGE), offset=0, length=PAGE), 409, "InvalidBlobType")
    assert_refused(block.get_page_ranges, 409, "InvalidBlobType")


def test_pages_from_url(container, disk):
    data = bytes_of(4 * PAGE)
    source = container.upload_blob("source", data)
    disk.upload_pages_from_url(source.url, offset=2 * PAGE, length=2 * PAGE, source_offset=PAGE)
    assert content(disk, offset=2 * PAGE, length=2 * PAGE) == data[PAGE : 3 * PAGE]
    assert ranges(disk) == [pages(2, 3)]
    wrong = hashlib.md5(b"x").digest()
    assert_refused(
        lambda: disk.upload_pages_from_url(
            source.url, offset=0, length=PAGE, source_offset=0, source_content_md5=wrong
        ),
        400,
        "Md5Mismatch",
    )
