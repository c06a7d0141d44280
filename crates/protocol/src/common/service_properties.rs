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
pub use read::read_update;
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
}

/// The properties of a new account.
impl Default for ServiceProperties {
    fn default() -> ServiceProperties {
        ServiceProperties {
            logging: Logging::default(),
            hour_metrics: Metrics { level: MetricsLevel::ServiceAndApis, retention_days: Some(7) },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
        }
    }
}

impl ServiceProperties {
    pub fn apply(&mut self, update: PropertiesUpdate) {
        let PropertiesUpdate { logging, hour_metrics, minute_metrics, cors } = update;
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
    }

    /// The whole document, as it is stored. [`ServiceProperties::from_stored`] reads it.
    pub fn to_stored(&self) -> Vec<u8> {
        self.write(VERSION_OF_PARTIAL_UPDATES)
    }

    /// `None` if [`ServiceProperties::to_stored`] did not write these bytes.
    pub fn from_stored(stored: &[u8]) -> Option<ServiceProperties> {
        let update = read_update(stored, VERSION_OF_PARTIAL_UPDATES).ok()?;
        Some(ServiceProperties {
            logging: update.logging?,
            hour_metrics: update.hour_metrics?,
            minute_metrics: update.minute_metrics?,
            cors: update.cors?,
        })
    }
}

#[cfg(test)]
mod tests;
