"""Metrics: they parse with Prometheus' own parser, and after a load that the test counts every counter adds up."""

import urllib.request
from collections import Counter
from contextlib import contextmanager

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableMetrics, TableTransactionError, UpdateMode
from azure.storage.queue import Metrics as QueueMetrics
from prometheus_client.parser import text_string_to_metric_families

from own_server import ACCOUNT, KEY, OwnServer
from traffic import Traffic

# The commits of `clients`.
ANALYTICS_COMMIT_COUNT = 2
# Counters of the store and not of requests. Its folds come when it likes.
TIMES_AND_FOLDS = {"commit_sync_seconds_total", "folds_total", "fold_seconds_total"}


class Metrics:
    """One reading. Names are without the prefix."""

    def __init__(self, server):
        with urllib.request.urlopen(f"{server.admin}/metrics") as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            text = answer.read().decode()
        self.samples = []
        self.counters = set()
        for family in text_string_to_metric_families(text):
            assert family.type in ("counter", "gauge", "histogram"), family
            assert family.documentation, family.name
            if family.type == "counter":
                # The parser takes this ending off; a counter that was never used has no sample to tell.
                self.counters.add(family.name.removeprefix("lazulite_") + "_total")
            for sample in family.samples:
                name = sample.name.removeprefix("lazulite_")
                assert name != sample.name, sample
                self.samples.append((name, sample.labels, sample.value))

    def by(self, name, *labels):
        """The samples that are not zero, by these labels, of which they have no others."""
        found = {}
        for sample, its_labels, value in self.samples:
            if sample == name and value:
                assert sorted(its_labels) == sorted(labels)
                found[tuple(its_labels[label] for label in labels)] = value
        return found

    def value(self, name):
        return self.by(name).get((), 0)


@pytest.fixture
def traffic():
    return Traffic()


@contextmanager
def clients(flavour, server, traffic, **options):
    """Of both services, counted. Nothing else asks this server, and Storage Analytics writes nothing at a full hour."""
    key = AzureNamedKeyCredential(ACCOUNT, KEY)
    tables = traffic.transport(flavour, "table")
    queues = traffic.transport(flavour, "queue")
    with (
        flavour.service_at(server.endpoints["Table"], key, transport=tables, **options) as service,
        flavour.queues(server.connection_string, transport=queues) as queue_service,
    ):
        with traffic.of("Set Table Service Properties"):
            service.set_service_properties(hour_metrics=TableMetrics(enabled=False))
        with traffic.of("Set Queue Service Properties"):
            queue_service.set_service_properties(hour_metrics=QueueMetrics(enabled=False))
        yield service, queue_service


def check_requests(metrics, traffic):
    by_operation = dict(traffic.by_operation())
    assert metrics.by("requests_total", "service", "operation", "status", "error") == dict(traffic.requests)
    assert metrics.by("request_duration_seconds_count", "service", "operation") == by_operation
    assert metrics.by("request_duration_seconds_sum", "service", "operation").keys() == by_operation.keys()
    buckets = metrics.by("request_duration_seconds_bucket", "service", "operation", "le")
    assert {key[:2]: count for key, count in buckets.items() if key[2] == "+Inf"} == by_operation
    assert metrics.by("received_bytes_total", "service", "operation") == +traffic.received
    assert metrics.by("sent_bytes_total", "service", "operation") == +traffic.sent


def check_reads(metrics, expected):
    """By plan: reads, entities examined, entities returned."""
    for place, name in enumerate(["reads_total", "rows_examined_total", "rows_returned_total"]):
        found = metrics.by(name, "plan")
        assert found == {(plan,): counts[place] for plan, counts in expected.items() if counts[place]}, name


def check_the_rest(metrics, commit_count, throttled_count=0):
    assert metrics.value("commits_total") == commit_count
    # One caller that waits for each answer: nothing is made durable together with something else.
    assert metrics.value("commit_groups_total") == commit_count
    of_requests = {"requests_total", "received_bytes_total", "sent_bytes_total"}
    of_reads = {"reads_total", "rows_examined_total", "rows_returned_total"}
    of_commits = {"commits_total", "commit_groups_total"}
    known = of_requests | of_reads | of_commits | TIMES_AND_FOLDS
    assert metrics.counters == known | {"connections_refused_total", "throttled_total"}
    assert metrics.by("throttled_total", "target") == +Counter({("partition",): throttled_count})
    assert metrics.value("connections_refused_total") == 0
    for gauge in ["requests_in_flight", "commit_queue", "commit_queue_bytes"]:
        assert metrics.value(gauge) == 0, gauge
    assert metrics.by("pool_bytes", "pool") == {}
    assert metrics.value("ready") == 1
    assert list(metrics.by("build_info", "version").values()) == [1]
    assert metrics.value("resident_memory_bytes") > 1 << 20
    assert metrics.value("uptime_seconds") > 0


def entity(partition, row, **properties):
    return {"PartitionKey": partition, "RowKey": row, "Text": "grün", **properties}


def load_tables(traffic, service):
    """Returns how many writes succeeded."""
    with traffic.of("Create Table"):
        table = service.create_table("people")
        with pytest.raises(HttpResponseError):
            service.create_table("people")
    with traffic.of("Query Tables"):
        assert len(list(service.list_tables())) == 1
    with traffic.of("Insert Entity"):
        for number in range(12):
            table.create_entity(entity(f"p{number % 3}", f"{number:02}", n=number))
        with pytest.raises(HttpResponseError):
            table.create_entity(entity("p0", "00"))
        with pytest.raises(HttpResponseError):
            table.create_entity(entity("p0", "x" * 2000))
    with traffic.of("Update Entity"):
        table.update_entity(entity("p0", "00", n=7), mode=UpdateMode.REPLACE)
    with traffic.of("Merge Entity"):
        table.update_entity(entity("p0", "00", n=8), mode=UpdateMode.MERGE)
        with pytest.raises(HttpResponseError):
            table.update_entity(entity("p0", "missing"), mode=UpdateMode.MERGE)
    with traffic.of("Insert Or Replace Entity"):
        table.upsert_entity(entity("p0", "00", n=9), mode=UpdateMode.REPLACE)
    with traffic.of("Insert Or Merge Entity"):
        table.upsert_entity(entity("p0", "00", n=0), mode=UpdateMode.MERGE)
    batch = [("create", entity("batch", f"{number:02}")) for number in range(5)]
    with traffic.of("Entity Group Transaction"):
        table.submit_transaction(batch)
    with traffic.of("Entity Group Transaction", refused_part="EntityAlreadyExists"):
        with pytest.raises(TableTransactionError):
            table.submit_transaction(batch)
    with traffic.of("Delete Entity"):
        table.delete_entity("batch", "04")
    with traffic.of("Get Table Service Properties"):
        service.get_service_properties()
    return 1 + 12 + 4 + 1 + 1


def read_tables(traffic, service):
    """Sixteen entities: four in each of p0, p1, p2 and batch. Returns reads, examined and returned by plan."""
    table = service.get_table_client("people")
    with traffic.of("Get Entity"):
        for number in range(4):
            table.get_entity("p1", f"{1 + 3 * number:02}")
        with pytest.raises(HttpResponseError):
            table.get_entity("p1", "missing")

    def query(filter, count):
        with traffic.of("Query Entities"):
            assert len(list(table.query_entities(filter))) == count

    query("PartitionKey eq 'p1' and RowKey eq '04'", 1)
    query("PartitionKey eq 'p1' and RowKey ge '04' and RowKey lt '10'", 2)
    query("PartitionKey eq 'p1'", 4)
    query("PartitionKey eq 'p1' and n gt 5", 2)
    query("PartitionKey ge 'p1'", 8)
    query("n lt 6", 6)
    with traffic.of("Query Entities"):
        pages = [len(list(page)) for page in table.list_entities(results_per_page=6).by_page()]
    assert pages == [6, 6, 4]
    return {
        "point": (6, 6, 5),
        "row_range": (1, 2, 2),
        "partition_scan": (2, 8, 6),
        "partition_range": (1, 8, 8),
        "table_scan": (4, 32, 22),
    }


def load_queues(traffic, queues):
    """Returns how many commits the store made for it."""
    with traffic.of("Create Queue"):
        queue = queues.create_queue("work")
        with pytest.raises(HttpResponseError):
            queues.create_queue("work", metadata={"a": "b"})
    with traffic.of("List Queues"):
        assert len(list(queues.list_queues())) == 1
    with traffic.of("Put Message"):
        for number in range(3):
            queue.send_message(f"message {number}")
    with traffic.of("Peek Messages"):
        assert len(list(queue.peek_messages(max_messages=5))) == 3
    with traffic.of("Get Messages"):
        message = queue.receive_message()
        with pytest.raises(HttpResponseError):
            queues.get_queue_client("missing").receive_message()
    with traffic.of("Update Message"):
        message = queue.update_message(message, content="changed")
    with traffic.of("Delete Message"):
        queue.delete_message(message)
    with traffic.of("Get Queue Metadata"):
        assert queue.get_queue_properties().approximate_message_count == 2
    return 1 + 3 + 1 + 1 + 1


def test_every_counter_adds_up_after_a_known_load(flavour, tmp_path, traffic):
    with OwnServer(tmp_path, with_admin=True) as server:
        check_the_rest(Metrics(server), 0)
        with clients(flavour, server, traffic) as (service, queues):
            commit_count = load_tables(traffic, service)
            reads = read_tables(traffic, service)
            commit_count += load_queues(traffic, queues)
            metrics = Metrics(server)
        assert sum(traffic.requests.values()) == 2 + 26 + 14 + 12
        check_requests(metrics, traffic)
        check_reads(metrics, reads)
        check_the_rest(metrics, ANALYTICS_COMMIT_COUNT + commit_count)
        # A reading is no request of a service.
        check_requests(Metrics(server), traffic)


def test_throttled_requests_are_counted_retries_included(flavour, tmp_path, traffic):
    retries = {"retry_total": 10, "retry_status": 10, "retry_backoff_factor": 0.02}
    with OwnServer(tmp_path, "--throttle=partition=20", with_admin=True) as server:
        with clients(flavour, server, traffic, **retries) as (service, _):
            with traffic.of("Create Table"):
                table = service.create_table("people")
            with traffic.of("Insert Entity"):
                for number in range(30):
                    table.create_entity(entity("hot", f"{number:02}"))
            metrics = Metrics(server)
        inserts = Counter({key[2:]: count for key, count in traffic.requests.items() if key[1] == "Insert Entity"})
        assert inserts["201", ""] == 30
        assert inserts["503", "ServerBusy"] > 0
        check_requests(metrics, traffic)
        check_reads(metrics, {})
        check_the_rest(metrics, ANALYTICS_COMMIT_COUNT + 31, inserts["503", "ServerBusy"])


def test_refused_requests_are_counted(flavour, tmp_path, traffic):
    with OwnServer(tmp_path, "--fail-on-scan", with_admin=True) as server:
        with clients(flavour, server, traffic) as (service, _):
            with traffic.of("Create Table"):
                table = service.create_table("people")
            with traffic.of("Query Entities"):
                for _ in range(3):
                    with pytest.raises(HttpResponseError):
                        list(table.list_entities())
        wrong_key = AzureNamedKeyCredential(ACCOUNT, "d3Jvbmc=")
        transport = traffic.transport(flavour, "table")
        with flavour.service_at(server.endpoints["Table"], wrong_key, transport=transport) as stranger:
            # Nobody asks what a stranger wants.
            with traffic.of("Unknown"):
                with pytest.raises(HttpResponseError):
                    list(stranger.list_tables())
        metrics = Metrics(server)
        assert traffic.requests["table", "Query Entities", "400", "ScanRefused"] == 3
        check_requests(metrics, traffic)
        check_the_rest(metrics, ANALYTICS_COMMIT_COUNT + 1)
