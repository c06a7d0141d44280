"""Storage Analytics: a known load gives exactly its counts, in the tables that the service documents."""

from collections import Counter

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableMetrics, TableRetentionPolicy
from azure.storage.queue import Metrics, RetentionPolicy

from own_server import OwnServer

INTERVALS = ["Hour", "Minute"]


def sums(service, interval, kind):
    """The counts of each row, over all intervals: a load may begin in one and end in the next."""
    table = service.get_table_client(f"$Metrics{interval}PrimaryTransactions{kind}")
    counted = {}
    for row in table.list_entities():
        counts = counted.setdefault(row["RowKey"], Counter())
        for name, value in row.items():
            if hasattr(value, "value"):  # An Int64 keeps its type.
                value = value.value
            if isinstance(value, int) and not isinstance(value, bool):
                counts[name] += value
    return counted


def measure_minutes(service, queues):
    service.set_service_properties(
        minute_metrics=TableMetrics(
            version="1.0", enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=False)
        )
    )
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=False))
    queues.set_service_properties(hour_metrics=metrics, minute_metrics=metrics)


def load(service, queues):
    table = service.create_table("people")
    for row in range(7):
        table.create_entity({"PartitionKey": "p", "RowKey": str(row)})
    with pytest.raises(ResourceExistsError):
        table.create_entity({"PartitionKey": "p", "RowKey": "0"})
    for row in range(3):
        table.get_entity("p", str(row))
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "missing")
    table.submit_transaction([("upsert", {"PartitionKey": "q", "RowKey": str(row)}) for row in range(5)])
    assert len(list(table.list_entities())) == 12
    queue = queues.create_queue("work")
    for text in ["a", "b", "c"]:
        queue.send_message(text)
    assert len(list(queue.peek_messages(max_messages=5))) == 3


def test_a_known_load_gives_exactly_its_counts(flavour, tmp_path):
    with OwnServer(tmp_path) as server:
        with flavour.service(server.connection_string) as service, flavour.queues(server.connection_string) as queues:
            measure_minutes(service, queues)
            load(service, queues)
    with OwnServer(tmp_path) as server, flavour.service(server.connection_string) as service:
        tables_of = [(interval, kind) for interval in INTERVALS for kind in ["Table", "Queue"]]
        found = {(interval, kind): sums(service, interval, kind) for interval, kind in tables_of}
        assert "people" in [table.name for table in service.list_tables()]
        assert not [table.name for table in service.list_tables() if table.name.startswith("$")]
    for interval in INTERVALS:
        tables, queues = found[interval, "Table"], found[interval, "Queue"]
        expected = {
            "user;SetTableServiceProperties": 1,
            "user;CreateTable": 1,
            "user;InsertEntity": 8,
            "user;QueryEntity": 4,
            "user;EntityGroupTransaction": 1,
            "user;QueryEntities": 1,
        }
        for row, count in expected.items():
            assert tables[row]["TotalRequests"] == count, (interval, row)
        assert tables["user;InsertEntity"]["Success"] == 7
        assert tables["user;InsertEntity"]["ClientOtherError"] == 1
        assert tables["user;QueryEntity"]["ClientOtherError"] == 1
        assert tables["user;All"]["TotalRequests"] == sum(expected.values())
        assert tables["user;All"]["Success"] == sum(expected.values()) - 2
        assert queues["user;PutMessage"]["Success"] == 3
        assert queues["user;All"]["TotalRequests"] == 1 + 1 + 3 + 1


def test_nobody_writes_these_tables(flavour, tmp_path):
    with OwnServer(tmp_path) as server, flavour.service(server.connection_string) as service:
        list(service.list_tables())
        server_table = service.get_table_client("$MetricsHourPrimaryTransactionsTable")
        with pytest.raises(HttpResponseError) as caught:
            server_table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert caught.value.status_code == 403
