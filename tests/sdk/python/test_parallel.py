"""Parallel use: with threads that share a client, and with asyncio.gather, nothing is lost and nothing is invented."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError
from azure.data.tables import TableServiceClient, UpdateMode
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient

from flavours import CLIENT_OPTIONS

THREADS = 8


@pytest.fixture
def plain_table(connection_string, table_name):
    """A table of the synchronous client, because here threads provide the parallelism."""
    with TableServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
        yield service.create_table(table_name)
        service.delete_table(table_name)


def in_threads(function, inputs):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, inputs))


def with_async_table(connection_string, work):
    async def run():
        async with AsyncTableServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
            table = await service.create_table("t" + uuid.uuid4().hex)
            try:
                return await work(table)
            finally:
                await service.delete_table(table.table_name)

    return asyncio.run(run())


def test_threads_insert_and_read_back_everything(plain_table):
    def insert_and_read(n):
        plain_table.create_entity({"PartitionKey": f"p{n % 7}", "RowKey": f"{n:04}", "n": n})
        return plain_table.get_entity(f"p{n % 7}", f"{n:04}")["n"]

    assert in_threads(insert_and_read, range(400)) == list(range(400))
    assert sorted(entity["n"] for entity in plain_table.list_entities()) == list(range(400))


def test_of_threads_that_insert_the_same_entity_one_wins(plain_table):
    def insert(n):
        try:
            plain_table.create_entity({"PartitionKey": "p", "RowKey": "r", "winner": n})
            return n
        except ResourceExistsError:
            return None

    winners = [n for n in in_threads(insert, range(40)) if n is not None]
    assert len(winners) == 1
    assert plain_table.get_entity("p", "r")["winner"] == winners[0]


def test_threads_that_count_with_etags_lose_no_update(plain_table):
    plain_table.create_entity({"PartitionKey": "p", "RowKey": "r", "count": 0})

    def add_one(_):
        while True:
            entity = plain_table.get_entity("p", "r")
            entity["count"] += 1
            try:
                plain_table.update_entity(entity, UpdateMode.REPLACE, match_condition=MatchConditions.IfNotModified)
                return
            except ResourceModifiedError:
                continue

    in_threads(add_one, range(80))
    assert plain_table.get_entity("p", "r")["count"] == 80


def test_readers_see_all_of_a_transaction_or_nothing(plain_table):
    rows = [f"{row:02}" for row in range(20)]

    def write(n):
        plain_table.submit_transaction(
            [("upsert", {"PartitionKey": "p", "RowKey": row, "n": n}, {"mode": "replace"}) for row in rows]
        )

    def read(_):
        return {entity["n"] for entity in plain_table.query_entities("PartitionKey eq 'p'")}

    write(0)
    jobs = [job for n in range(1, 60) for job in ((write, n), (read, n))]
    seen = in_threads(lambda job: job[0](job[1]), jobs)
    assert all(len(values) == 1 for values in seen if values is not None)


def test_gather_inserts_and_reads_back_everything(connection_string):
    async def work(table):
        async def insert_and_read(n):
            await table.create_entity({"PartitionKey": "p", "RowKey": f"{n:04}", "n": n})
            return (await table.get_entity("p", f"{n:04}"))["n"]

        assert await asyncio.gather(*(insert_and_read(n) for n in range(300))) == list(range(300))
        assert [entity["n"] async for entity in table.list_entities()] == list(range(300))

    with_async_table(connection_string, work)


def test_gather_of_merges_to_one_entity_keeps_every_property(connection_string):
    async def work(table):
        async def merge(n):
            await table.upsert_entity({"PartitionKey": "p", "RowKey": "r", f"p{n}": n}, mode=UpdateMode.MERGE)

        await asyncio.gather(*(merge(n) for n in range(100)))
        found = await table.get_entity("p", "r")
        assert {name: found[name] for name in found if name[0] == "p"} == {f"p{n}": n for n in range(100)}

    with_async_table(connection_string, work)


def test_gather_of_transactions(connection_string):
    async def work(table):
        async def submit(partition):
            rows = [("create", {"PartitionKey": partition, "RowKey": f"{n:02}", "n": n}) for n in range(50)]
            return len(await table.submit_transaction(rows))

        partitions = [f"p{n:02}" for n in range(20)]
        assert await asyncio.gather(*(submit(partition) for partition in partitions)) == [50] * 20
        pages = table.list_entities(results_per_page=300).by_page()
        found = [(e["PartitionKey"], e["n"]) async for page in pages async for e in page]
        assert found == [(partition, n) for partition in partitions for n in range(50)]

    with_async_table(connection_string, work)
