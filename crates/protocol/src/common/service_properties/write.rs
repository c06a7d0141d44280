//! Writes the documents that the service answers with: the account's properties, and the statistics of its replica.
//!
//! Promises: elements come in the service's order, in the form that the client's version expects.

use super::{
    ANALYTICS_VERSION, DeleteRetention, Extension, ExtensionUpdate, Logging, Metrics, MetricsLevel,
    ServiceProperties, StaticWebsite, VERSION_OF_PARTIAL_UPDATES,
};
use crate::common::DateTime;
use crate::common::cors::CorsRule;
use crate::common::xml_write::XmlWriter;

impl ServiceProperties {
    /// The document as a client of this version expects it.
    pub fn write(&self, version: &str) -> Vec<u8> {
        let mut writer = XmlWriter::begin();
        writer.start("StorageServiceProperties");
        self.write_common(version, &mut writer);
        writer.end("StorageServiceProperties");
        writer.finish()
    }

    /// The document of a service that has an [`Extension`]. What was never set is at its default.
    pub fn write_extended(&self, version: &str) -> Vec<u8> {
        let mut writer = XmlWriter::begin();
        writer.start("StorageServiceProperties");
        self.write_common(version, &mut writer);
        let unset = Extension::default();
        let extension = self.extension.as_ref().unwrap_or(&unset);
        if version >= VERSION_OF_PARTIAL_UPDATES {
            write_delete_retention(&extension.delete_retention, &mut writer);
            write_static_website(&extension.static_website, &mut writer);
        }
        if let Some(version) = &extension.default_version {
            writer.leaf("DefaultServiceVersion", version);
        }
        writer.end("StorageServiceProperties");
        writer.finish()
    }

    fn write_common(&self, version: &str, writer: &mut XmlWriter) {
        write_logging(&self.logging, writer);
        if version < VERSION_OF_PARTIAL_UPDATES {
            write_metrics("Metrics", &self.hour_metrics, writer);
        } else {
            write_metrics("HourMetrics", &self.hour_metrics, writer);
            write_metrics("MinuteMetrics", &self.minute_metrics, writer);
            write_cors(&self.cors, writer);
        }
    }
}

/// The elements that are set, as a client sends them.
pub(super) fn write_extension_update(update: &ExtensionUpdate, writer: &mut XmlWriter) {
    if let Some(retention) = &update.delete_retention {
        write_delete_retention(retention, writer);
    }
    if let Some(website) = &update.static_website {
        write_static_website(website, writer);
    }
    if let Some(version) = &update.default_version {
        writer.leaf("DefaultServiceVersion", version);
    }
}

fn write_delete_retention(retention: &DeleteRetention, writer: &mut XmlWriter) {
    writer.start("DeleteRetentionPolicy");
    write_boolean("Enabled", retention.days.is_some(), writer);
    if let Some(days) = retention.days {
        writer.leaf("Days", &days.to_string());
    }
    if retention.allow_permanent_delete {
        write_boolean("AllowPermanentDelete", true, writer);
    }
    writer.end("DeleteRetentionPolicy");
}

fn write_static_website(website: &StaticWebsite, writer: &mut XmlWriter) {
    writer.start("StaticWebsite");
    write_boolean("Enabled", website.is_enabled, writer);
    for (name, text) in [
        ("IndexDocument", &website.index_document),
        ("DefaultIndexDocumentPath", &website.default_index_document_path),
        ("ErrorDocument404Path", &website.error_document_404_path),
    ] {
        if let Some(text) = text {
            writer.leaf(name, text);
        }
    }
    writer.end("StaticWebsite");
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
