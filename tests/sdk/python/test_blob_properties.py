"""Properties and statistics of the Blob service: stored for the account, each part independent of the others."""

from datetime import datetime, timezone
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobAnalyticsLogging, CorsRule, Metrics, RetentionPolicy, StaticWebsite

from blob_support import assert_refused, content

OFF = RetentionPolicy(enabled=False)
DAYS = RetentionPolicy(enabled=True, days=5)


def retention(found):
    return (found.enabled, found.days)


def logging_values(found):
    return (found.version, found.delete, found.read, found.write, retention(found.retention_policy))


def metrics_values(found):
    return (found.version, found.enabled, found.include_apis, retention(found.retention_policy))


@pytest.fixture(autouse=True)
def as_new(blobs):
    """Each test starts and ends with everything off."""
    metrics = Metrics(enabled=False, retention_policy=OFF)
    logging = BlobAnalyticsLogging(delete=False, read=False, write=False, retention_policy=OFF)

    def reset():
        blobs.set_service_properties(
            analytics_logging=logging,
            hour_metrics=metrics,
            minute_metrics=metrics,
            cors=[],
            delete_retention_policy=OFF,
            static_website=StaticWebsite(enabled=False),
        )

    reset()
    yield
    reset()


def test_everything_can_be_off(blobs):
    found = blobs.get_service_properties()
    assert logging_values(found["analytics_logging"]) == ("1.0", False, False, False, (False, None))
    for part in ("hour_metrics", "minute_metrics"):
        assert metrics_values(found[part]) == ("1.0", False, None, (False, None))
    assert found["cors"] == []
    assert retention(found["delete_retention_policy"]) == (False, None)
    assert found["static_website"].enabled is False


def test_logging_and_metrics_come_back_as_set(blobs):
    logging = BlobAnalyticsLogging(read=True, write=True, delete=True, retention_policy=DAYS)
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=DAYS)
    blobs.set_service_properties(analytics_logging=logging, hour_metrics=metrics)
    found = blobs.get_service_properties()
    assert logging_values(found["analytics_logging"]) == ("1.0", True, True, True, (True, 5))
    assert metrics_values(found["hour_metrics"]) == ("1.0", True, True, (True, 5))
    assert metrics_values(found["minute_metrics"]) == ("1.0", False, None, (False, None))


def test_retention_of_deleted_blobs_comes_back_as_set(blobs):
    blobs.set_service_properties(delete_retention_policy=DAYS)
    assert retention(blobs.get_service_properties()["delete_retention_policy"]) == (True, 5)
    for days in (0, 366):
        policy = RetentionPolicy(enabled=True, days=1)
        policy.days = days
        assert_refused(
            lambda policy=policy: blobs.set_service_properties(delete_retention_policy=policy),
            400,
            "InvalidXmlDocument",
        )
    assert retention(blobs.get_service_properties()["delete_retention_policy"]) == (True, 5)


def test_the_static_website_comes_back_as_set(blobs):
    website = StaticWebsite(enabled=True, index_document="index.html", error_document404_path="errors/404.html")
    blobs.set_service_properties(static_website=website)
    found = blobs.get_service_properties()["static_website"]
    assert (found.enabled, found.index_document, found.error_document404_path) == (
        True, "index.html", "errors/404.html"
    )
    website = StaticWebsite(enabled=True, default_index_document_path="start.html")
    blobs.set_service_properties(static_website=website)
    found = blobs.get_service_properties()["static_website"]
    assert (found.enabled, found.index_document, found.default_index_document_path) == (True, None, "start.html")


def test_cors_rules_come_back_as_set_in_order(blobs):
    rules = [
        CorsRule(["www.xyz.com"], ["GET"]),
        CorsRule(
            ["www.xyz.com", "www.ab.com"],
            ["GET", "PUT"],
            max_age_in_seconds=500,
            exposed_headers=["x-ms-meta-data*", "x-ms-meta-abc"],
            allowed_headers=["x-ms-meta-target*", "x-ms-meta-foo"],
        ),
    ]
    blobs.set_service_properties(cors=rules)

    def values(rule):
        return (rule.allowed_origins, rule.allowed_methods, rule.allowed_headers, rule.exposed_headers)

    assert [values(rule) for rule in blobs.get_service_properties()["cors"]] == [values(rule) for rule in rules]


def test_a_part_that_is_left_out_stays(blobs):
    blobs.set_service_properties(delete_retention_policy=DAYS)
    blobs.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    found = blobs.get_service_properties()
    assert retention(found["delete_retention_policy"]) == (True, 5)
    assert [rule.allowed_origins for rule in found["cors"]] == ["*"]


def test_five_rules_are_accepted_and_six_refused(blobs):
    rules = [CorsRule([f"http://{n}.example"], ["GET"]) for n in range(6)]
    blobs.set_service_properties(cors=rules[:5])
    assert_refused(lambda: blobs.set_service_properties(cors=rules), 400, "InvalidXmlDocument")
    assert len(blobs.get_service_properties()["cors"]) == 5


def test_a_version_that_is_set_comes_back(blobs):
    blobs.set_service_properties(target_version="2019-12-12")
    assert blobs.get_service_properties()["target_version"] == "2019-12-12"


def test_blobs_and_queues_have_their_own_properties(blobs, queues):
    before = [rule.allowed_origins for rule in queues.get_service_properties()["cors"]]
    blobs.set_service_properties(cors=[CorsRule(["http://only-blobs.example"], ["GET"])])
    assert [rule.allowed_origins for rule in queues.get_service_properties()["cors"]] == before


def test_statistics_come_from_the_secondary(flavour, settings):
    endpoint = settings["BlobEndpoint"].rstrip("/") + "-secondary"
    before = datetime.now(timezone.utc).replace(microsecond=0)
    key = {"account_name": settings["AccountName"], "account_key": settings["AccountKey"]}
    with flavour.blobs_at(endpoint, key, secondary_hostname=urlsplit(endpoint).netloc) as secondary:
        found = secondary.get_service_stats()["geo_replication"]
    assert found["status"] == "live"
    assert before <= found["last_sync_time"] <= datetime.now(timezone.utc)


def test_a_client_of_the_secondary_reads_but_does_not_write(flavour, settings, container):
    container.upload_blob("b", b"x")
    key = {"account_name": settings["AccountName"], "account_key": settings["AccountKey"]}
    with flavour.blobs_at(settings["BlobEndpoint"].rstrip("/") + "-secondary", key) as secondary:
        other = secondary.get_container_client(container.container_name)
        assert content(other.get_blob_client("b")) == b"x"
        assert [item.name for item in other.list_blobs()] == ["b"]
        for call in (lambda: other.upload_blob("c", b"y"), lambda: other.delete_blob("b"), other.delete_container):
            assert_refused(call, 403, "InsufficientAccountPermissions")
