//! What all storage services share: errors, versions, query strings, XML, service properties, CORS rules, stored access
//! policies, account names, times.

pub mod acl;
mod base_url;
pub mod cors;
mod datetime;
pub mod decimal;
pub mod error;
mod fnv;
pub mod guid;
pub mod headers;
pub(crate) mod list;
pub mod metadata;
pub(crate) mod multipart;
pub(crate) mod names;
pub mod ordinal;
pub mod percent;
mod policy;
pub mod query;
pub mod service_properties;
pub mod version;
pub mod xml;
pub mod xml_error;
pub mod xml_write;

pub use base_url::BaseUrl;
pub use datetime::{DateText, DateTime, DateTimeError};
pub use fnv::Fnv;
pub use metadata::Metadata;
pub use names::AccountName;
pub use policy::StoredPolicy;
pub(crate) use policy::parse_policy_time;
