"""Scalability targets (`--throttle`): the client's own retries get all the work done, at the pace of the target."""

import time

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError

from own_server import ACCOUNT, KEY, OwnServer

TARGET = 40
COUNT = 100
# The default policy with shorter pauses, and more of them in return.
RETRIES = {"retry_total": 10, "retry_status": 10, "retry_backoff_factor": 0.02}


@pytest.fixture
def server(tmp_path):
    with OwnServer(tmp_path, f"--throttle=partition={TARGET}") as server:
        yield server


def client(flavour, server, **options):
    return flavour.service_at(server.endpoints["Table"], AzureNamedKeyCredential(ACCOUNT, KEY), **options)


def entity(row, partition="hot"):
    return {"PartitionKey": partition, "RowKey": f"{row:03}", "n": row}


def test_retries_get_all_the_work_done(flavour, server):
    with client(flavour, server, **RETRIES) as service:
        table = service.create_table("people")
        started = time.monotonic()
        for row in range(COUNT):
            table.create_entity(entity(row))
        took = time.monotonic() - started
        # Some may come at once after a pause; the rest cannot come faster than the target.
        assert took > (COUNT - 10) / TARGET
        found = [row["n"] for row in table.list_entities()]
        assert found == list(range(COUNT))


def test_retries_get_transactions_done(flavour, server):
    with client(flavour, server, **RETRIES) as service:
        table = service.create_table("people")
        for first in range(0, COUNT, 20):
            table.submit_transaction([("create", entity(row)) for row in range(first, first + 20)])
        assert len(list(table.list_entities())) == COUNT


def test_without_retries_the_server_says_that_it_is_busy_and_other_partitions_go_on(flavour, server):
    with client(flavour, server) as service:
        table = service.create_table("people")
        refused = 0
        for row in range(COUNT):
            try:
                table.create_entity(entity(row))
            except HttpResponseError as error:
                assert error.status_code == 503
                assert "ServerBusy" in str(error)
                refused += 1
            if row % 20 == 0:
                table.create_entity(entity(row, "calm"))
        assert refused > 0
