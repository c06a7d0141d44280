"""adlfs: blobs as files of fsspec, and tables of pandas as Parquet in them."""

import os

import numpy
import pandas
import pyarrow.parquet
import pytest
from adlfs import AzureBlobFileSystem
from conftest import FILE_COUNT, LARGE_MIB, MIB, assert_same_file, assert_same_tree


@pytest.fixture(scope="module")
def options():
    return {"connection_string": os.environ["LAZULITE_CONNECTION_STRING"]}


@pytest.fixture
def files(options):
    AzureBlobFileSystem.clear_instance_cache()
    return AzureBlobFileSystem(**options)


def test_a_tree_goes_there_and_back(files, tree, box, tmp_path):
    files.put(str(tree) + "/", f"{box}/tree", recursive=True)
    found = files.find(f"{box}/tree")
    assert len(found) == FILE_COUNT
    files.get(f"{box}/tree/", str(tmp_path / "back"), recursive=True)
    assert_same_tree(tree, tmp_path / "back")


def test_files_are_written_read_moved_and_removed(files, box):
    with files.open(f"{box}/dir/a.txt", "wb") as file:
        file.write(b"hello ")
        file.write(b"world")
    assert files.cat(f"{box}/dir/a.txt") == b"hello world"
    with files.open(f"{box}/dir/a.txt", "rb") as file:
        file.seek(6)
        assert file.read(3) == b"wor"
    assert files.info(f"{box}/dir/a.txt")["size"] == 11
    assert files.isdir(f"{box}/dir") and files.isfile(f"{box}/dir/a.txt")
    files.mv(f"{box}/dir/a.txt", f"{box}/dir/b.txt")
    assert files.ls(f"{box}/dir") == [f"{box}/dir/b.txt"]
    with files.open(f"{box}/log", "ab") as file:
        file.write(b"one")
    with files.open(f"{box}/log", "ab") as file:
        file.write(b"two")
    assert files.cat(f"{box}/log") == b"onetwo"
    files.rm(f"{box}/dir", recursive=True)
    assert not files.exists(f"{box}/dir/b.txt")


@pytest.fixture(scope="module")
def frame():
    rows = FILE_COUNT * 100
    seeded = numpy.random.default_rng(3)
    return pandas.DataFrame(
        {
            "number": numpy.arange(rows),
            "value": seeded.normal(size=rows),
            "name": [f"row {number % 97}" for number in range(rows)],
            "moment": pandas.date_range("2020-01-01", periods=rows, freq="min"),
        }
    )


def test_a_frame_is_parquet(frame, options, box):
    path = f"abfs://{box}/frame.parquet"
    frame.to_parquet(path, storage_options=options)
    pandas.testing.assert_frame_equal(pandas.read_parquet(path, storage_options=options), frame)
    # A column and a filter read parts of the file only.
    some = pandas.read_parquet(
        path, columns=["number"], filters=[("name", "==", "row 5")], storage_options=options
    )
    assert list(some["number"]) == list(frame[frame["name"] == "row 5"]["number"])


def test_a_frame_in_partitions(frame, files, options, box):
    path = f"abfs://{box}/parts"
    parts = frame.assign(part=frame["number"] % 7)
    parts.to_parquet(path, partition_cols=["part"], storage_options=options)
    assert sorted(name.rsplit("/", 1)[1] for name in files.ls(f"{box}/parts")) == [f"part={n}" for n in range(7)]
    found = pandas.read_parquet(path, filters=[("part", "==", 3)], storage_options=options)
    assert sorted(found["number"]) == list(range(3, len(frame), 7))
    footer = pyarrow.parquet.ParquetFile(files.open(files.find(f"{box}/parts/part=3")[0]))
    assert footer.metadata.num_rows == len(found)


def test_a_frame_as_csv(frame, options, box):
    path = f"abfs://{box}/frame.csv"
    frame.to_csv(path, index=False, storage_options=options)
    found = pandas.read_csv(path, parse_dates=["moment"], storage_options=options)
    assert list(found["number"]) == list(frame["number"])


@pytest.mark.skipif(LARGE_MIB > 1024, reason="two other programs carry the largest file")
def test_one_large_file(files, large, box, tmp_path):
    files.put_file(str(large), f"{box}/large.bin")
    assert files.info(f"{box}/large.bin")["size"] == LARGE_MIB * MIB + 7
    files.get_file(f"{box}/large.bin", str(tmp_path / "large.bin"))
    assert_same_file(large, tmp_path / "large.bin")
