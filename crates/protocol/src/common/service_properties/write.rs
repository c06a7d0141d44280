//! Writes the documents that the service answers with: the account's properties, and the statistics of its replica.
//!
//! Promises: elements come in the service's order, in the form that the client's version expects.

use super::{
    ANALYTICS_VERSION, Logging, Metrics, MetricsLevel, ServiceProperties, VERSION_OF_PARTIAL_UPDATES,
};
use crate::common::DateTime;
use crate::common::cors::CorsRule;
use crate::common::xml_write::XmlWriter;

impl ServiceProperties {
    /// The document as a client of this version expects it.
    pub fn write(&self, version: &str) -> Vec<u8> {
        let mut writer = XmlWriter::begin();
        writer.start("StorageServiceProperties");
        write_logging(&self.logging, &mut writer);
        if version < VERSION_OF_PARTIAL_UPDATES {
            write_metrics("Metrics", &self.hour_metrics, &mut writer);
        } else {
            write_metrics("HourMetrics", &self.hour_metrics, &mut writer);
            write_metrics("MinuteMetrics", &self.minute_metrics, &mut writer);
            write_cors(&self.cors, &mut writer);
        }
        writer.end("StorageServiceProperties");
        writer.finish()
    }
}

pub(super) fn write_logging(logging: &Logging, writer: &mut XmlWriter) {
    writer.start("Logging");
    writer.leaf("Version", ANALYTICS_VERSION);
    write_boolean("Read", logging.read, writer);
    write_boolean("Write", logging.write, writer);
    write_boolean("Delete", logging.delete, writer);
    write_retention(logging.retention_days, writer);
    writer.end("Logging");
}

pub(super) fn write_metrics(name: &str, metrics: &Metrics, writer: &mut XmlWriter) {
    writer.start(name);
    writer.leaf("Version", ANALYTICS_VERSION);
    write_boolean("Enabled", metrics.level != MetricsLevel::Off, writer);
    if metrics.level != MetricsLevel::Off {
        write_boolean("IncludeAPIs", metrics.level == MetricsLevel::ServiceAndApis, writer);
    }
    write_retention(metrics.retention_days, writer);
    writer.end(name);
}

fn write_retention(days: Option<u16>, writer: &mut XmlWriter) {
    writer.start("RetentionPolicy");
    write_boolean("Enabled", days.is_some(), writer);
    if let Some(days) = days {
        writer.leaf("Days", &days.to_string());
    }
    writer.end("RetentionPolicy");
}

pub(super) fn write_cors(rules: &[CorsRule], writer: &mut XmlWriter) {
    if rules.is_empty() {
        return writer.empty("Cors");
    }
    writer.start("Cors");
    for rule in rules {
        writer.start("CorsRule");
        writer.leaf("AllowedMethods", &rule.allowed_methods.join(","));
        writer.leaf("AllowedOrigins", &rule.allowed_origins.join(","));
        writer.leaf("AllowedHeaders", &rule.allowed_headers.join(","));
        writer.leaf("ExposedHeaders", &rule.exposed_headers.join(","));
        writer.leaf("MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        writer.end("CorsRule");
    }
    writer.end("Cors");
}

fn write_boolean(name: &str, value: bool, writer: &mut XmlWriter) {
    writer.leaf(name, if value { "true" } else { "false" });
}

/// The document of Get Service Stats. The status is `live`, `bootstrap` or `unavailable`.
pub fn write_stats(status: &str, last_sync: DateTime) -> Vec<u8> {
    let mut writer = XmlWriter::begin();
    writer.start("StorageServiceStats");
    writer.start("GeoReplication");
    writer.leaf("Status", status);
    writer.http_date("LastSyncTime", last_sync);
    writer.end("GeoReplication");
    writer.end("StorageServiceStats");
    writer.finish()
}
