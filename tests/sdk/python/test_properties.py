"""Service properties and statistics: stored for the account, returned as set, each part independent of the others."""

from datetime import datetime, timezone

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

OFF = TableRetentionPolicy(enabled=False)
DAYS = TableRetentionPolicy(enabled=True, days=5)


def same_retention(found, expected):
    return (found.enabled, found.days) == (expected.enabled, expected.days)


def assert_logging(found, expected):
    assert (found.version, found.delete, found.read, found.write) == (
        expected.version,
        expected.delete,
        expected.read,
        expected.write,
    )
    assert same_retention(found.retention_policy, expected.retention_policy)


def assert_metrics(found, expected):
    assert (found.version, found.enabled, found.include_apis) == (
        expected.version,
        expected.enabled,
        expected.include_apis,
    )
    assert same_retention(found.retention_policy, expected.retention_policy)


def rule_values(rule):
    return (
        rule.allowed_origins,
        rule.allowed_methods,
        rule.allowed_headers,
        rule.exposed_headers,
        rule.max_age_in_seconds,
    )


@pytest.fixture(autouse=True)
def as_new(service):
    """Each test starts and ends with everything off."""
    metrics = TableMetrics(version="1.0", enabled=False, include_apis=None, retention_policy=OFF)
    logging = TableAnalyticsLogging(version="1.0", delete=False, read=False, write=False, retention_policy=OFF)

    def reset():
        service.set_service_properties(
            analytics_logging=logging, hour_metrics=metrics, minute_metrics=metrics, cors=[]
        )

    reset()
    yield
    reset()


def test_everything_can_be_off(service):
    found = service.get_service_properties()
    assert set(found) == {"analytics_logging", "hour_metrics", "minute_metrics", "cors"}
    assert_logging(found["analytics_logging"], TableAnalyticsLogging(version="1.0", retention_policy=OFF))
    for part in ("hour_metrics", "minute_metrics"):
        assert found[part].enabled is False
    assert found["cors"] == []


def test_logging_comes_back_as_set(service):
    logging = TableAnalyticsLogging(version="1.0", read=True, write=True, delete=True, retention_policy=DAYS)
    service.set_service_properties(analytics_logging=logging)
    assert_logging(service.get_service_properties()["analytics_logging"], logging)


@pytest.mark.parametrize("part", ["hour_metrics", "minute_metrics"])
@pytest.mark.parametrize("include_apis", [True, False])
def test_metrics_come_back_as_set(service, part, include_apis):
    metrics = TableMetrics(version="1.0", enabled=True, include_apis=include_apis, retention_policy=DAYS)
    service.set_service_properties(**{part: metrics})
    assert_metrics(service.get_service_properties()[part], metrics)


def test_cors_rules_come_back_as_set_in_order(service):
    plain = TableCorsRule(["www.xyz.com"], ["GET"])
    full = TableCorsRule(
        ["www.xyz.com", "www.ab.com", "www.bc.com"],
        ["GET", "PUT"],
        max_age_in_seconds=500,
        exposed_headers=["x-ms-meta-data*", "x-ms-meta-source*", "x-ms-meta-abc", "x-ms-meta-bcd"],
        allowed_headers=["x-ms-meta-data*", "x-ms-meta-target*", "x-ms-meta-xyz", "x-ms-meta-foo"],
    )
    service.set_service_properties(cors=[plain, full])
    found = service.get_service_properties()["cors"]
    assert [rule_values(rule) for rule in found] == [rule_values(plain), rule_values(full)]


def test_a_part_that_is_left_out_stays(service):
    logging = TableAnalyticsLogging(version="1.0", read=True, retention_policy=DAYS)
    service.set_service_properties(analytics_logging=logging)
    service.set_service_properties(cors=[TableCorsRule(["*"], ["GET"])])
    metrics = TableMetrics(version="1.0", enabled=True, include_apis=True, retention_policy=DAYS)
    service.set_service_properties(hour_metrics=metrics)
    found = service.get_service_properties()
    assert_logging(found["analytics_logging"], logging)
    assert_metrics(found["hour_metrics"], metrics)
    assert [rule.allowed_origins for rule in found["cors"]] == [["*"]]


def test_an_empty_list_deletes_the_rules(service):
    service.set_service_properties(cors=[TableCorsRule(["*"], ["GET"])])
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []


def test_five_rules_are_accepted_and_six_refused(service):
    rules = [TableCorsRule([f"http://{n}.example"], ["GET"]) for n in range(6)]
    service.set_service_properties(cors=rules[:5])
    assert len(service.get_service_properties()["cors"]) == 5
    with pytest.raises(HttpResponseError) as caught:
        service.set_service_properties(cors=rules)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidXmlDocument")
    assert "XML specified is not syntactically valid." in caught.value.message
    assert len(service.get_service_properties()["cors"]) == 5


def test_retention_is_one_to_365_days(service):
    for days in (1, 365):
        retention = TableRetentionPolicy(enabled=True, days=days)
        service.set_service_properties(
            minute_metrics=TableMetrics(version="1.0", enabled=True, include_apis=True, retention_policy=retention)
        )
        assert service.get_service_properties()["minute_metrics"].retention_policy.days == days
    for days in (0, 366):
        retention = TableRetentionPolicy(enabled=True, days=1)
        retention.days = days  # The SDK's constructor would refuse.
        with pytest.raises(HttpResponseError) as caught:
            service.set_service_properties(
                minute_metrics=TableMetrics(version="1.0", enabled=True, include_apis=True, retention_policy=retention)
            )
        assert caught.value.status_code == 400
        assert caught.value.error_code in ("InvalidXmlDocument", "InvalidXmlNodeValue")
    assert service.get_service_properties()["minute_metrics"].retention_policy.days == 365


def test_statistics_come_from_the_secondary(service):
    before = datetime.now(timezone.utc).replace(microsecond=0)
    found = service.get_service_stats()["geo_replication"]
    assert found["status"] == "live"
    # There is no replica that could lag behind, so the last sync is now.
    assert before <= found["last_sync_time"] <= datetime.now(timezone.utc)


def test_a_client_of_the_secondary_reads_but_does_not_write(service, flavour, settings, table):
    from azure.core.credentials import AzureNamedKeyCredential

    table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 1})
    key = AzureNamedKeyCredential(settings["AccountName"], settings["AccountKey"])
    endpoint = settings["TableEndpoint"].rstrip("/") + "-secondary"
    with flavour.service_at(endpoint, key) as secondary:
        other = secondary.get_table_client(table.table_name)
        assert other.get_entity("p", "r")["n"] == 1
        with pytest.raises(HttpResponseError) as caught:
            other.create_entity({"PartitionKey": "p", "RowKey": "s"})
    assert caught.value.status_code == 403
    assert "InsufficientAccountPermissions" in str(caught.value)
    assert "Write operations are not allowed." in str(caught.value)
    assert len(list(table.list_entities())) == 1
