//! The client's half of service properties: the document of Set Service Properties, and the answers to the two getters.
//!
//! Promises: an answer may have elements that this code does not know, since services gain some with new versions; they
//! are left out. Whatever is missing is at its default.

use super::read::{read_cors, read_extension, read_logging, read_metrics};
use super::write::{write_cors, write_extension_update, write_logging, write_metrics};
use super::{
    Extension, ExtensionUpdate, Logging, Metrics, PropertiesUpdate, ServiceProperties,
    VERSION_OF_PARTIAL_UPDATES,
};
use crate::ServiceError;
use crate::common::DateTime;
use crate::common::xml::{self, Element};
use crate::common::xml_write::{XmlWriter, without_mark};

/// The state of an account's replica.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceStats {
    /// `live`, `bootstrap` or `unavailable`.
    pub status: String,
    /// Everything written before this instant can be read from the replica. `None` while it is not known.
    pub last_sync: Option<DateTime>,
}

impl PropertiesUpdate {
    /// The document with the elements that are set, as a client of this version sends it.
    pub fn write(&self, version: &str) -> Vec<u8> {
        let mut writer = XmlWriter::begin();
        writer.start("StorageServiceProperties");
        if let Some(logging) = &self.logging {
            write_logging(logging, &mut writer);
        }
        let is_old = version < VERSION_OF_PARTIAL_UPDATES;
        if let Some(metrics) = &self.hour_metrics {
            write_metrics(if is_old { "Metrics" } else { "HourMetrics" }, metrics, &mut writer);
        }
        if let Some(metrics) = self.minute_metrics.as_ref().filter(|_| !is_old) {
            write_metrics("MinuteMetrics", metrics, &mut writer);
        }
        if let Some(rules) = self.cors.as_ref().filter(|_| !is_old) {
            write_cors(rules, &mut writer);
        }
        write_extension_update(&self.extension, &mut writer);
        writer.end("StorageServiceProperties");
        without_mark(writer.finish())
    }
}

/// Reads the answer to Get Service Properties.
pub fn read_answer(body: &[u8]) -> Result<ServiceProperties, ServiceError> {
    let root = xml::read(body, "StorageServiceProperties")?;
    let metrics = |name| find(&root, name).map(read_metrics).transpose();
    let hour_metrics = metrics("HourMetrics")?.or(metrics("Metrics")?);
    let update = read_extension(
        find(&root, "DeleteRetentionPolicy"),
        find(&root, "StaticWebsite"),
        find(&root, "DefaultServiceVersion"),
    )?;
    let mut extension = None;
    if update != ExtensionUpdate::default() {
        extension.get_or_insert_with(Extension::default).apply(update);
    }
    Ok(ServiceProperties {
        logging: find(&root, "Logging").map(read_logging).transpose()?.unwrap_or_else(Logging::default),
        hour_metrics: hour_metrics.unwrap_or_else(Metrics::default),
        minute_metrics: metrics("MinuteMetrics")?.unwrap_or_else(Metrics::default),
        cors: find(&root, "Cors").map(read_cors).transpose()?.unwrap_or_default(),
        extension,
    })
}

/// Reads the answer to Get Service Stats.
pub fn read_stats(body: &[u8]) -> Result<ServiceStats, ServiceError> {
    let root = xml::read(body, "StorageServiceStats")?;
    let replication =
        find(&root, "GeoReplication").ok_or_else(|| xml::invalid_document("no GeoReplication"))?;
    let text = |name| find(replication, name).map(|field| field.text.trim()).unwrap_or_default();
    Ok(ServiceStats {
        status: text("Status").to_owned(),
        last_sync: DateTime::parse_http(text("LastSyncTime")),
    })
}

fn find<'a>(parent: &'a Element, name: &str) -> Option<&'a Element> {
    parent.children.iter().find(|child| child.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::{MetricsLevel, read_update, write_stats};
    use super::*;
    use crate::common::cors::CorsRule;

    const VERSION: &str = "2019-02-02";

    fn rule() -> CorsRule {
        CorsRule {
            allowed_origins: vec!["https://a.example".to_owned(), "https://b.example".to_owned()],
            allowed_methods: vec!["GET".to_owned()],
            allowed_headers: vec!["x-ms-*".to_owned()],
            exposed_headers: Vec::new(),
            max_age_seconds: 5,
        }
    }

    #[test]
    fn what_a_client_writes_is_what_the_server_reads() {
        let check = |update: PropertiesUpdate| {
            let document = update.write(VERSION);
            assert!(document.starts_with(b"<?xml"), "clients send no mark");
            assert_eq!(read_update(&document, VERSION).unwrap(), update);
        };
        let metrics = Metrics { level: MetricsLevel::Service, retention_days: Some(3) };
        check(PropertiesUpdate { cors: Some(vec![rule()]), ..PropertiesUpdate::default() });
        check(PropertiesUpdate { cors: Some(Vec::new()), ..PropertiesUpdate::default() });
        check(PropertiesUpdate { hour_metrics: Some(metrics.clone()), ..PropertiesUpdate::default() });
        check(PropertiesUpdate {
            logging: Some(Logging { read: true, write: false, delete: true, retention_days: Some(7) }),
            hour_metrics: Some(Metrics::default()),
            minute_metrics: Some(metrics),
            cors: Some(vec![rule(); 5]),
            ..PropertiesUpdate::default()
        });
    }

    #[test]
    fn answers_are_read_as_the_server_writes_them_and_with_unknown_elements() {
        let properties = ServiceProperties { cors: vec![rule()], ..ServiceProperties::default() };
        for version in ["2013-08-15", VERSION] {
            assert_eq!(read_answer(&properties.write(version)).unwrap(), properties);
        }
        let old = read_answer(&properties.write("2012-02-12")).unwrap();
        assert_eq!(old, ServiceProperties { cors: Vec::new(), ..properties.clone() });
        let more = "<StorageServiceProperties><Future><X>1</X></Future></StorageServiceProperties>";
        let nothing = read_answer(more.as_bytes()).unwrap();
        assert_eq!((nothing.cors.len(), nothing.hour_metrics.level), (0, MetricsLevel::Off));
        for bad in ["", "x", "<a/>", "<StorageServiceProperties><Cors><x/></Cors></StorageServiceProperties>"]
        {
            assert!(read_answer(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn stats_are_read() {
        let time = DateTime::parse("2022-10-27T22:04:57Z").unwrap();
        let stats = read_stats(&write_stats("live", time)).unwrap();
        assert_eq!(stats, ServiceStats { status: "live".to_owned(), last_sync: Some(time) });
        let starting = "<StorageServiceStats><GeoReplication><Status>bootstrap</Status><LastSyncTime /></GeoReplication></StorageServiceStats>";
        assert_eq!(read_stats(starting.as_bytes()).unwrap().last_sync, None);
        assert!(read_stats(b"<StorageServiceStats/>").is_err());
    }
}
