//! The account's properties as XML (logging, metrics, CORS rules), and the statistics of its replica.
//!
//! Promises: properties that were read are within the service's limits. Written properties have the service's order of
//! elements, and reading them back returns them. Logging has no effect: it is only kept and shown.
//! This file has the values, `read.rs` the limits and the reading of a request, `write.rs` the documents of the
//! answers, `answer.rs` the client's half: the document of a request, and the reading of answers.

mod answer;
mod read;
mod write;

pub use answer::{ServiceStats, read_answer, read_stats};
pub use read::{read_extended_update, read_update};
pub use write::write_stats;

use super::cors::CorsRule;

/// The first version with hour and minute metrics, CORS, and updates that may leave elements out.
const VERSION_OF_PARTIAL_UPDATES: &str = "2013-08-15";
/// The version that logging and metrics give for themselves.
const ANALYTICS_VERSION: &str = "1.0";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceProperties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
    /// What only some services have. `None` as long as nothing of it was set.
    pub extension: Option<Extension>,
}

/// The properties of services whose objects can be deleted softly and served as a website.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Extension {
    pub delete_retention: DeleteRetention,
    pub static_website: StaticWebsite,
    /// The protocol version of requests that name none.
    pub default_version: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DeleteRetention {
    /// How long deleted objects can be restored. `None`: they are gone at once.
    pub days: Option<u16>,
    /// Whether they may be deleted for good before that time.
    pub allow_permanent_delete: bool,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StaticWebsite {
    pub is_enabled: bool,
    pub index_document: Option<String>,
    pub default_index_document_path: Option<String>,
    pub error_document_404_path: Option<String>,
}

/// Changes to the properties that only some services have. Fields that are `None` stay as they are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ExtensionUpdate {
    pub delete_retention: Option<DeleteRetention>,
    pub static_website: Option<StaticWebsite>,
    pub default_version: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Logging {
    pub read: bool,
    pub write: bool,
    pub delete: bool,
    /// `None`: logs are kept forever.
    pub retention_days: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Metrics {
    pub level: MetricsLevel,
    /// `None`: metrics are kept forever.
    pub retention_days: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MetricsLevel {
    #[default]
    Off,
    Service,
    ServiceAndApis,
}

/// The changes in a request. Fields that are `None` stay as they are.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PropertiesUpdate {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    pub cors: Option<Vec<CorsRule>>,
    pub extension: ExtensionUpdate,
}

/// The properties of a new account.
impl Default for ServiceProperties {
    fn default() -> ServiceProperties {
        ServiceProperties {
            logging: Logging::default(),
            hour_metrics: Metrics { level: MetricsLevel::ServiceAndApis, retention_days: Some(7) },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
            extension: None,
        }
    }
}

impl ServiceProperties {
    pub fn apply(&mut self, update: PropertiesUpdate) {
        let PropertiesUpdate { logging, hour_metrics, minute_metrics, cors, extension } = update;
        if let Some(logging) = logging {
            self.logging = logging;
        }
        if let Some(metrics) = hour_metrics {
            self.hour_metrics = metrics;
        }
        if let Some(metrics) = minute_metrics {
            self.minute_metrics = metrics;
        }
        if let Some(rules) = cors {
            self.cors = rules;
        }
        if extension != ExtensionUpdate::default() {
            self.extension.get_or_insert_default().apply(extension);
        }
    }

    /// The whole document, as it is stored. [`ServiceProperties::from_stored`] reads it.
    pub fn to_stored(&self) -> Vec<u8> {
        match &self.extension {
            Some(_) => self.write_extended(VERSION_OF_PARTIAL_UPDATES),
            None => self.write(VERSION_OF_PARTIAL_UPDATES),
        }
    }

    /// `None` if [`ServiceProperties::to_stored`] did not write these bytes.
    pub fn from_stored(stored: &[u8]) -> Option<ServiceProperties> {
        let update = read_extended_update(stored, VERSION_OF_PARTIAL_UPDATES).ok()?;
        let mut extension = None;
        if update.extension != ExtensionUpdate::default() {
            extension.get_or_insert_with(Extension::default).apply(update.extension);
        }
        Some(ServiceProperties {
            logging: update.logging?,
            hour_metrics: update.hour_metrics?,
            minute_metrics: update.minute_metrics?,
            cors: update.cors?,
            extension,
        })
    }
}

impl Extension {
    fn apply(&mut self, update: ExtensionUpdate) {
        let ExtensionUpdate { delete_retention, static_website, default_version } = update;
        if let Some(retention) = delete_retention {
            self.delete_retention = retention;
        }
        if let Some(website) = static_website {
            self.static_website = website;
        }
        if default_version.is_some() {
            self.default_version = default_version;
        }
    }
}

#[cfg(test)]
mod tests;
