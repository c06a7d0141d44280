//! A client for the Table and Queue services of Azure Storage, for Cosmos DB's Table API, Azurite and Lazulite.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// Derived code names the crate, also inside of it.
extern crate self as lazulite_client;

mod account;
mod builder;
mod bulk;
mod clock;
mod column;
mod connection;
mod credential;
mod dynamic;
pub mod encryption;
mod entity;
mod error;
mod field;
mod filter;
mod http_transport;
pub mod json;
mod key_field;
mod kind;
mod limits;
mod literal;
mod lost;
mod multipart;
mod operation_name;
mod page;
mod path;
mod pipeline;
mod plan;
mod policy;
mod query;
mod queue;
mod queue_service;
mod queue_xml;
mod retry;
mod sas;
mod sealing;
mod table;
mod transaction;
mod transport;
mod update;
mod write;

#[doc(hidden)]
#[path = "derived.rs"]
pub mod __private;

pub use account::{TableList, TableServiceClient};
pub use builder::ClientBuilder;
pub use bulk::{Bulk, BulkFailure, BulkMode, BulkReport};
pub use clock::{Environment, SystemEnvironment};
pub use column::Column;
pub use connection::{CONNECTION_STRING_VARIABLE, ConnectionString};
pub use credential::{AccessToken, Credential, TokenError, TokenFuture, TokenProvider};
pub use dynamic::DynamicEntity;
pub use entity::{Entity, Keys, Row};
pub use error::{EntityError, Error, ServiceFailure};
pub use field::Field;
pub use filter::{Filter, FilterError};
pub use http_transport::{HttpOptions, HttpTransport};
pub use key_field::KeyField;
pub use lazulite_client_derive::{Entity, EntityKind, Enumeration};
pub use literal::{ComparesWith, Literal, ToLiteral};
pub use page::{Continuation, Entities, Explanation, Page, Pages};
pub use plan::Plan;
pub use policy::POLICY_COUNT_MAX;
pub use protocol::common::cors::CorsRule;
pub use protocol::common::service_properties::{
    Logging, Metrics, MetricsLevel, PropertiesUpdate, ServiceProperties, ServiceStats,
};
pub use protocol::common::{DateTime, StoredPolicy};
pub use protocol::table::model::{EdmType, Guid, Property, Value};
pub use query::Query;
pub use queue::{
    MESSAGE_COUNT_MAX, Message, MessageHandle, PeekedMessage, PutOptions, QueueClient, QueueProperties,
    SentMessage, UpdatedReceipt, VISIBILITY_MAX,
};
pub use queue_service::{
    QUEUE_PAGE_COUNT_MAX, QueueItem, QueueList, QueuePage, QueuePages, QueueServiceClient,
};
pub use retry::RetryPolicy;
pub use sas::{
    AccountPermissions, AccountResources, AccountSas, AccountServices, QueuePermissions, QueueSas, Sas,
    TablePermissions, TableSas,
};
pub use table::TableClient;
pub use transaction::{Committed, Transaction};
pub use transport::{Progress, Sending, Transport, TransportError};
pub use write::{IfMatch, Written};

/// The page that shows the client task by task. Its pieces of Rust compile, or the doc tests fail. It is not in the
/// package, and nothing but doc tests asks for it.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct ClientPage;
