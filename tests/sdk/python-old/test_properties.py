"""Service properties: the XML that the older client writes, read back."""

from azure.cosmosdb.table.common.models import CorsRule, Logging, Metrics, RetentionPolicy


def test_logging_metrics_and_cors_rules_come_back_as_they_were_set(service):
    before = service.get_table_service_properties()
    week = RetentionPolicy(enabled=True, days=7)
    rule = CorsRule(["http://www.example.com"], ["GET", "PUT"], 500, ["*"], ["x-ms-meta-data*", "x-ms-meta-abc"])
    try:
        service.set_table_service_properties(
            logging=Logging(delete=True, write=True, retention_policy=week),
            hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=week),
            minute_metrics=Metrics(enabled=False),
            cors=[rule],
        )
        found = service.get_table_service_properties()
        assert (found.logging.delete, found.logging.read, found.logging.write) == (True, False, True)
        assert found.logging.retention_policy.days == 7
        assert (found.hour_metrics.enabled, found.hour_metrics.include_apis) == (True, True)
        assert not found.minute_metrics.enabled
        [cors] = found.cors
        assert (cors.allowed_origins, cors.allowed_methods) == (["http://www.example.com"], ["GET", "PUT"])
        assert cors.max_age_in_seconds == 500
    finally:
        service.set_table_service_properties(before.logging, before.hour_metrics, before.minute_metrics, before.cors)
