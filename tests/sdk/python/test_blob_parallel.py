"""Parallel use of blobs: one winner of each race, nothing lost, no reader sees half of a write."""

import asyncio
import hashlib
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobBlock, BlobServiceClient
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from blob_support import KIB, bytes_of
from flavours import CLIENT_OPTIONS

THREADS = 8


@pytest.fixture
def box(connection_string, container_name):
    """A container of the synchronous client, because here threads provide the parallelism."""
    with BlobServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
        yield service.create_container(container_name)
        service.delete_container(container_name)


def in_threads(function, inputs):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, inputs))


def test_of_those_who_create_the_same_blob_one_creates_it(box):
    def create(number):
        try:
            box.upload_blob("b", f"{number}")
            return number
        except ResourceExistsError:
            return None

    winners = [number for number in in_threads(create, range(30)) if number is not None]
    assert len(winners) == 1
    assert box.download_blob("b").readall() == f"{winners[0]}".encode()


def test_a_counter_with_etags_loses_no_step(box):
    blob = box.upload_blob("counter", b"0")

    def step(_):
        while True:
            found = blob.download_blob()
            value = int(found.readall())
            try:
                blob.upload_blob(
                    f"{value + 1}",
                    overwrite=True,
                    etag=found.properties.etag,
                    match_condition=MatchConditions.IfNotModified,
                )
                return
            except ResourceModifiedError:
                continue

    in_threads(step, range(60))
    assert blob.download_blob().readall() == b"60"


def test_appends_of_many_are_all_there(box):
    log = box.get_blob_client("log")
    log.create_append_blob()
    lines = [f"{number:04}\n".encode() for number in range(160)]
    places = in_threads(lambda line: (int(log.append_block(line)["blob_append_offset"]), line), lines)
    found = log.download_blob().readall()
    assert len(found) == 160 * 5
    assert all(found[place : place + 5] == line for place, line in places)


def test_readers_see_whole_contents_only(box):
    """Every content begins with the hash of the rest."""

    def make(number):
        rest = bytes_of(64 * KIB + number, seed=number)
        return hashlib.sha256(rest).digest() + rest

    blob = box.upload_blob("b", make(0))

    def work(number):
        if number % 3 == 0:
            blob.upload_blob(make(number), overwrite=True)
            return True
        found = blob.download_blob().readall()
        return hashlib.sha256(found[32:]).digest() == found[:32]

    assert all(in_threads(work, range(90)))


def test_one_of_many_gets_the_lease(box):
    blob = box.upload_blob("lock", b"")

    def acquire(_):
        try:
            return blob.acquire_lease(lease_duration=15)
        except HttpResponseError as error:
            assert (error.status_code, error.error_code) == (409, "LeaseAlreadyPresent")
            return None

    assert len([lease for lease in in_threads(acquire, range(20)) if lease]) == 1


def test_blocks_staged_by_many_are_committed_by_one(box):
    blob = box.get_blob_client("b")
    in_threads(lambda number: blob.stage_block(f"{number:03}", bytes([number]) * 1000), range(100))
    blob.commit_block_list([BlobBlock(f"{number:03}") for number in range(100)])
    assert blob.download_blob().readall() == b"".join(bytes([number]) * 1000 for number in range(100))


def test_gathered_uploads_and_downloads(connection_string):
    async def run():
        async with AsyncBlobServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
            box = await service.create_container("c" + uuid.uuid4().hex)
            await asyncio.gather(*(box.upload_blob(f"{number}", bytes_of(5000, number)) for number in range(100)))

            async def read(number):
                return await (await box.download_blob(f"{number}")).readall() == bytes_of(5000, number)

            found = await asyncio.gather(*(read(number) for number in range(100)))
            listed = [name async for name in box.list_blob_names()]
            await service.delete_container(box.container_name)
            return all(found) and len(listed) == 100

    assert asyncio.run(run())
