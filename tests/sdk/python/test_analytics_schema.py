"""The tables of Storage Analytics as a client sees them: their keys, columns and types, and what the columns say.

The load is counted below the client's retries, apart for each kind of credentials, and each row must agree with it.
"""

import re
import urllib.error
import urllib.request
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    UpdateMode,
    generate_table_sas,
)
from azure.storage.queue import Metrics, RetentionPolicy

from own_server import ACCOUNT, KEY, OwnServer
from traffic import Traffic

OUTCOMES = [
    "Success",
    "ThrottlingError",
    "ClientTimeoutError",
    "ServerTimeoutError",
    "ClientOtherError",
    "ServerOtherError",
    "AuthorizationError",
    "NetworkError",
]
CREDENTIALS = ["", "Anonymous", "SAS"]
COUNTS = [credentials + outcome for outcome in OUTCOMES for credentials in CREDENTIALS]
INT64_COLUMNS = {"TotalIngress", "TotalEgress", "TotalRequests", "TotalBillableRequests", *COUNTS}
DOUBLE_COLUMNS = {
    "Availability",
    "AverageE2ELatency",
    "AverageServerLatency",
    "PercentSuccess",
    "PercentThrottlingError",
    "PercentTimeoutError",
    "PercentServerOtherError",
    "PercentClientOtherError",
    "PercentAuthorizationError",
    "PercentNetworkError",
}


def entity(partition, row="r", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


class Load:
    """Everything that the server was asked, by credentials."""

    def __init__(self, flavour, server):
        self.flavour, self.server = flavour, server
        self.traffic = {credentials: Traffic() for credentials in CREDENTIALS}

    def tables(self, kind, credential):
        transport = self.traffic[kind].transport(self.flavour, "Table")
        return self.flavour.service_at(self.server.endpoints["Table"], credential, transport=transport)

    def by_account(self):
        traffic = self.traffic[""]
        with self.tables("", AzureNamedKeyCredential(ACCOUNT, KEY)) as service:
            forever = TableRetentionPolicy(enabled=False)
            with traffic.of("SetTableServiceProperties"):
                metrics = TableMetrics(enabled=True, include_apis=True, retention_policy=forever)
                service.set_service_properties(hour_metrics=metrics, minute_metrics=metrics)
            with traffic.of("GetTableServiceProperties"):
                service.get_service_properties()
            with traffic.of("CreateTable"):
                table = service.create_table("people")
                service.create_table("others")
                with pytest.raises(HttpResponseError):
                    service.create_table("people")
            with traffic.of("QueryTables"):
                assert len(list(service.list_tables())) == 2
            with traffic.of("DeleteTable"):
                service.delete_table("others")
            with traffic.of("InsertEntity"):
                for row in ["a", "b", "c", "d"]:
                    table.create_entity(entity("p", row, Text="grün"))
                with pytest.raises(HttpResponseError):
                    table.create_entity(entity("p", "a"))
            with traffic.of("UpdateEntity"):
                table.update_entity(entity("p", "a", n=1), mode=UpdateMode.REPLACE)
            with traffic.of("MergeEntity"):
                table.update_entity(entity("p", "a", n=2), mode=UpdateMode.MERGE)
            with traffic.of("InsertOrReplaceEntity"):
                table.upsert_entity(entity("p", "e"), mode=UpdateMode.REPLACE)
            with traffic.of("InsertOrMergeEntity"):
                table.upsert_entity(entity("p", "e"), mode=UpdateMode.MERGE)
            with traffic.of("DeleteEntity"):
                table.delete_entity("p", "e")
            with traffic.of("QueryEntity"):
                table.get_entity("p", "a")
                with pytest.raises(HttpResponseError):
                    table.get_entity("p", "missing")
            with traffic.of("QueryEntities"):
                assert len(list(table.list_entities(results_per_page=3))) == 4
            # A hundred entities take half a second of the target, so soon some come too early.
            hot = [("upsert", entity("hot", f"{row:02}")) for row in range(100)]
            with traffic.of("EntityGroupTransaction"):
                with pytest.raises(HttpResponseError):
                    # On a busy machine the first few may take as long.
                    for _ in range(20):
                        table.submit_transaction(hot)
            with traffic.of("EntityGroupTransaction", refused_part="EntityAlreadyExists"):
                with pytest.raises(HttpResponseError):
                    table.submit_transaction([("create", entity("p", "z")), ("create", entity("p", "a"))])

    def by_signature(self):
        traffic = self.traffic["SAS"]
        expiry = datetime.now(timezone.utc) + timedelta(hours=1)
        key = AzureNamedKeyCredential(ACCOUNT, KEY)
        signature = generate_table_sas(key, "people", permission=TableSasPermissions(read=True), expiry=expiry)
        with self.tables("SAS", AzureSasCredential(signature)) as service:
            table = service.get_table_client("people")
            with traffic.of("QueryEntity"):
                table.get_entity("p", "a")
                table.get_entity("p", "b")
            with traffic.of("InsertEntity"):
                with pytest.raises(HttpResponseError):
                    table.create_entity(entity("p", "forbidden"))
            # The refusal comes before the payload is read.
            traffic.received["Table", "InsertEntity"] = 0

    def by_nobody(self):
        url = f"{self.server.endpoints['Table']}/people()"
        request = urllib.request.Request(url, headers={"Accept": "application/json", "x-ms-version": "2019-02-02"})
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        status, body = caught.value.code, caught.value.read()
        assert status in (401, 403, 404)
        traffic = self.traffic["Anonymous"]
        # Where only the account's own requests are welcome, a stranger's is a failure to prove himself.
        traffic.requests["Table", "Unknown", "403", ""] += 1
        traffic.received["Table", "Unknown"] += 0
        traffic.sent["Table", "Unknown"] += len(body)

    def queues(self):
        traffic = self.traffic[""]
        transport = traffic.transport(self.flavour, "Queue")
        with self.flavour.queues(self.server.connection_string, transport=transport) as queues:
            with traffic.of("SetQueueServiceProperties"):
                forever = RetentionPolicy(enabled=False)
                metrics = Metrics(enabled=True, include_apis=True, retention_policy=forever)
                queues.set_service_properties(hour_metrics=metrics, minute_metrics=metrics)
            with traffic.of("CreateQueue"):
                queue = queues.create_queue("work")
            with traffic.of("ListQueues"):
                assert len(list(queues.list_queues())) == 1
            with traffic.of("PutMessage"):
                queue.send_message("one")
                queue.send_message("two")
            with traffic.of("PeekMessages"):
                assert len(list(queue.peek_messages(max_messages=5))) == 2
            with traffic.of("GetMessages"):
                message = queue.receive_message()
            with traffic.of("DeleteMessage"):
                queue.delete_message(message)
            with traffic.of("GetQueueMetadata"):
                queue.get_queue_properties()
            with traffic.of("ClearMessages"):
                queue.clear_messages()
            with traffic.of("DeleteQueue"):
                queue.delete_queue()

    def expected(self, service):
        """Counts by RowKey, as the documentation says how requests are counted."""
        rows = {}
        for credentials, traffic in self.traffic.items():
            for (its_service, operation, status, error), count in traffic.requests.items():
                if its_service == service:
                    for row in [f"user;{operation}", "user;All"]:
                        counts = rows.setdefault(row, Counter())
                        counts[credentials + outcome(int(status), error)] += count
                        counts["TotalRequests"] += count
            for sums, column in [(traffic.received, "TotalIngress"), (traffic.sent, "TotalEgress")]:
                for (its_service, operation), count in sums.items():
                    if its_service == service:
                        rows[f"user;{operation}"][column] += count
                        rows["user;All"][column] += count
        return rows


def outcome(status, error):
    if status == 503:
        return "ThrottlingError"
    if status in (401, 403):
        return "AuthorizationError"
    return "ClientOtherError" if status >= 400 or error else "Success"


@pytest.fixture(scope="module")
def measured(flavour, tmp_path_factory):
    """The load, all rows by table, and the time in which they must lie."""
    location = tmp_path_factory.mktemp("analytics")
    begin = datetime.now(timezone.utc)
    with OwnServer(location, "--throttle=partition=200") as server:
        load = Load(flavour, server)
        load.by_account()
        load.by_signature()
        load.by_nobody()
        load.queues()
    end = datetime.now(timezone.utc)
    rows = {}
    with OwnServer(location) as server, flavour.service(server.connection_string) as service:
        for interval in ["Hour", "Minute"]:
            for kind in ["Table", "Queue"]:
                name = f"$Metrics{interval}PrimaryTransactions{kind}"
                rows[interval, kind] = list(service.get_table_client(name).list_entities())
        old = list(service.get_table_client("$MetricsTransactionsTable").list_entities())
        assert old == rows["Hour", "Table"]
        # What reads such a table on the live service asks for one row of each interval.
        wanted = f"PartitionKey ge '{begin:%Y%m%dT%H}00' and RowKey eq 'user;All'"
        found = service.get_table_client("$MetricsHourPrimaryTransactionsTable").query_entities(wanted)
        assert list(found) == [row for row in old if row["RowKey"] == "user;All"]
        for missing in ["$MetricsCapacityBlob", "$MetricsHourPrimaryTransactionsBlob"]:
            with pytest.raises(HttpResponseError) as caught:
                list(service.get_table_client(missing).list_entities())
            assert caught.value.status_code == 404
    return load, rows, (begin, end)


def plain(row):
    return {name: value.value if isinstance(value, EntityProperty) else value for name, value in row.items()}


def test_every_row_has_the_documented_columns_with_their_types(measured):
    _, tables, _ = measured
    for rows in tables.values():
        assert rows
        for row in rows:
            assert row.keys() == {"PartitionKey", "RowKey", *INT64_COLUMNS, *DOUBLE_COLUMNS}
            for name in INT64_COLUMNS:
                assert row[name].edm_type == EdmType.INT64, name
            for name in DOUBLE_COLUMNS:
                assert type(row[name]) is float, name
            assert row.metadata["etag"] and row.metadata["timestamp"]


def test_keys_are_the_interval_and_the_operation(measured):
    load, tables, (begin, end) = measured
    for (interval, kind), rows in tables.items():
        step = {"Hour": timedelta(hours=1), "Minute": timedelta(minutes=1)}[interval]
        for row in rows:
            assert re.fullmatch(r"\d{8}T\d{4}", row["PartitionKey"])
            start = datetime.strptime(row["PartitionKey"], "%Y%m%dT%H%M").replace(tzinfo=timezone.utc)
            assert interval == "Minute" or start.minute == 0
            assert begin - step < start <= end
        expected = load.expected(kind).keys()
        assert {row["RowKey"] for row in rows} - {"system;All"} == set(expected)
        for row in rows:
            if row["RowKey"] == "system;All":
                assert interval == "Hour"
                assert plain(row)["TotalRequests"] == 0


def test_counts_and_bytes_are_those_of_the_load(measured):
    load, tables, _ = measured
    for (interval, kind), rows in tables.items():
        found = {}
        for row in map(plain, rows):
            counts = found.setdefault(row["RowKey"], Counter())
            for name in INT64_COLUMNS - {"TotalBillableRequests"}:
                counts[name] += row[name]
        expected = load.expected(kind)
        for row_key, counts in expected.items():
            assert +found[row_key] == +counts, (interval, row_key)
    totals = load.expected("Table")["user;All"]
    for column in ["ThrottlingError", "SASSuccess", "SASAuthorizationError", "AnonymousAuthorizationError"]:
        assert totals[column] > 0, column


def test_percentages_and_averages_follow_from_the_counts(measured):
    _, tables, _ = measured
    for rows in tables.values():
        for row in map(plain, rows):
            total = sum(row[name] for name in COUNTS)
            assert row["TotalRequests"] == total

            def all_of(*outcomes):
                return sum(row[credentials + outcome] for outcome in outcomes for credentials in CREDENTIALS)

            for column, outcomes in [
                ("PercentSuccess", ["Success"]),
                ("PercentThrottlingError", ["ThrottlingError"]),
                ("PercentTimeoutError", ["ClientTimeoutError", "ServerTimeoutError"]),
                ("PercentServerOtherError", ["ServerOtherError"]),
                ("PercentClientOtherError", ["ClientOtherError"]),
                ("PercentAuthorizationError", ["AuthorizationError"]),
                ("PercentNetworkError", ["NetworkError"]),
            ]:
                assert row[column] == pytest.approx(100 * all_of(*outcomes) / max(total, 1)), column
            applicable = total - all_of("ThrottlingError") - row["AnonymousAuthorizationError"]
            assert row["TotalBillableRequests"] == applicable - all_of("ServerTimeoutError", "ServerOtherError")
            if applicable:
                availability = 100 * row["TotalBillableRequests"] / applicable
                assert row["Availability"] == pytest.approx(availability)
            has_latency = all_of("Success") > 0
            assert (row["AverageE2ELatency"] > 0) == has_latency
            assert (row["AverageServerLatency"] > 0) == has_latency
            assert row["AverageServerLatency"] <= row["AverageE2ELatency"] < 10_000
