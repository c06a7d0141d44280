"""Properties and statistics of the Queue service: stored for the account, each part independent of the others and of
the Table service."""

from datetime import datetime, timezone
from urllib.parse import urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import CorsRule, Metrics, QueueAnalyticsLogging, RetentionPolicy

OFF = RetentionPolicy(enabled=False)
DAYS = RetentionPolicy(enabled=True, days=5)


def retention(found):
    return (found.enabled, found.days)


def logging_values(found):
    return (found.version, found.delete, found.read, found.write, retention(found.retention_policy))


def metrics_values(found):
    return (found.version, found.enabled, found.include_apis, retention(found.retention_policy))


def rule_values(rule):
    return (
        rule.allowed_origins,
        rule.allowed_methods,
        rule.allowed_headers,
        rule.exposed_headers,
        rule.max_age_in_seconds,
    )


@pytest.fixture(autouse=True)
def as_new(queues):
    """Each test starts and ends with everything off."""
    metrics = Metrics(enabled=False, retention_policy=OFF)
    logging = QueueAnalyticsLogging(delete=False, read=False, write=False, retention_policy=OFF)

    def reset():
        queues.set_service_properties(
            analytics_logging=logging, hour_metrics=metrics, minute_metrics=metrics, cors=[]
        )

    reset()
    yield
    reset()


def test_everything_can_be_off(queues):
    found = queues.get_service_properties()
    assert logging_values(found["analytics_logging"]) == ("1.0", False, False, False, (False, None))
    for part in ("hour_metrics", "minute_metrics"):
        assert metrics_values(found[part]) == ("1.0", False, None, (False, None))
    assert found["cors"] == []


def test_logging_comes_back_as_set(queues):
    logging = QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=DAYS)
    queues.set_service_properties(analytics_logging=logging)
    found = queues.get_service_properties()["analytics_logging"]
    assert logging_values(found) == ("1.0", True, True, True, (True, 5))


@pytest.mark.parametrize("part", ["hour_metrics", "minute_metrics"])
@pytest.mark.parametrize("include_apis", [True, False])
def test_metrics_come_back_as_set(queues, part, include_apis):
    metrics = Metrics(enabled=True, include_apis=include_apis, retention_policy=DAYS)
    queues.set_service_properties(**{part: metrics})
    assert metrics_values(queues.get_service_properties()[part]) == ("1.0", True, include_apis, (True, 5))


def test_cors_rules_come_back_as_set_in_order(queues):
    plain = CorsRule(["www.xyz.com"], ["GET"])
    full = CorsRule(
        ["www.xyz.com", "www.ab.com", "www.bc.com"],
        ["GET", "PUT"],
        max_age_in_seconds=500,
        exposed_headers=["x-ms-meta-data*", "x-ms-meta-source*", "x-ms-meta-abc", "x-ms-meta-bcd"],
        allowed_headers=["x-ms-meta-data*", "x-ms-meta-target*", "x-ms-meta-xyz", "x-ms-meta-foo"],
    )
    queues.set_service_properties(cors=[plain, full])
    found = queues.get_service_properties()["cors"]
    assert [rule_values(rule) for rule in found] == [rule_values(plain), rule_values(full)]


def test_a_part_that_is_left_out_stays(queues):
    logging = QueueAnalyticsLogging(read=True, retention_policy=DAYS)
    queues.set_service_properties(analytics_logging=logging)
    queues.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    queues.set_service_properties(hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=DAYS))
    found = queues.get_service_properties()
    assert logging_values(found["analytics_logging"]) == ("1.0", False, True, False, (True, 5))
    assert metrics_values(found["hour_metrics"]) == ("1.0", True, True, (True, 5))
    assert [rule.allowed_origins for rule in found["cors"]] == ["*"]


def test_five_rules_are_accepted_and_six_refused(queues):
    rules = [CorsRule([f"http://{n}.example"], ["GET"]) for n in range(6)]
    queues.set_service_properties(cors=rules[:5])
    with pytest.raises(HttpResponseError) as caught:
        queues.set_service_properties(cors=rules)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidXmlDocument")
    assert len(queues.get_service_properties()["cors"]) == 5


def test_retention_is_one_to_365_days(queues):
    for days in (1, 365):
        retention_policy = RetentionPolicy(enabled=True, days=days)
        queues.set_service_properties(
            minute_metrics=Metrics(enabled=True, include_apis=True, retention_policy=retention_policy)
        )
        assert queues.get_service_properties()["minute_metrics"].retention_policy.days == days
    with pytest.raises(HttpResponseError) as caught:
        queues.set_service_properties(
            minute_metrics=Metrics(
                enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=366)
            )
        )
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidXmlDocument")
    assert queues.get_service_properties()["minute_metrics"].retention_policy.days == 365


def test_tables_and_queues_have_their_own_properties(queues, service):
    before = [rule.allowed_origins for rule in service.get_service_properties()["cors"]]
    queues.set_service_properties(cors=[CorsRule(["http://only-queues.example"], ["GET"])])
    assert [rule.allowed_origins for rule in service.get_service_properties()["cors"]] == before


def test_statistics_come_from_the_secondary(flavour, settings, queues):
    endpoint = settings["QueueEndpoint"].rstrip("/") + "-secondary"
    before = datetime.now(timezone.utc).replace(microsecond=0)
    key = {"account_name": settings["AccountName"], "account_key": settings["AccountKey"]}
    # The SDK derives the secondary of a host, but not that of a path. It replaces only the host and keeps the path.
    with flavour.queues_at(endpoint, key, secondary_hostname=urlsplit(endpoint).netloc) as secondary:
        found = secondary.get_service_stats()["geo_replication"]
    assert found["status"] == "live"
    # There is no replica that could lag behind, so the last sync is now.
    assert before <= found["last_sync_time"] <= datetime.now(timezone.utc)


def test_a_client_of_the_secondary_reads_but_does_not_write(flavour, settings, queue):
    queue.send_message("text")
    key = {"account_name": settings["AccountName"], "account_key": settings["AccountKey"]}
    with flavour.queues_at(settings["QueueEndpoint"].rstrip("/") + "-secondary", key) as secondary:
        other = secondary.get_queue_client(queue.queue_name)
        assert [message.content for message in other.peek_messages()] == ["text"]
        assert other.get_queue_properties().approximate_message_count == 1
        for call in (lambda: other.send_message("more"), other.receive_message, other.clear_messages):
            with pytest.raises(HttpResponseError) as caught:
                call()
            assert (caught.value.status_code, caught.value.error_code) == (403, "InsufficientAccountPermissions")
    assert queue.get_queue_properties().approximate_message_count == 1
