//! A client for the Table and Queue services of Azure Storage, for Cosmos DB's Table API, Azurite and Lazulite.
#![forbid(unsafe_code)]

mod account;
mod builder;
mod clock;
mod connection;
mod credential;
pub mod encryption;
mod entity;
mod error;
mod field;
mod http_transport;
mod operation_name;
mod pipeline;
mod queue;
mod queue_service;
mod queue_xml;
mod retry;
mod transport;

pub use account::{TableList, TableServiceClient};
pub use builder::ClientBuilder;
pub use clock::{Environment, SystemEnvironment};
pub use connection::{CONNECTION_STRING_VARIABLE, ConnectionString};
pub use credential::{AccessToken, Credential, TokenError, TokenFuture, TokenProvider};
pub use entity::{Entity, Keys, Row};
pub use error::{EntityError, Error, ServiceFailure};
pub use field::Field;
pub use http_transport::{HttpOptions, HttpTransport};
pub use lazulite_client_derive::{Entity, EntityKind};
pub use protocol::common::cors::CorsRule;
pub use protocol::common::service_properties::{
    Logging, Metrics, MetricsLevel, PropertiesUpdate, ServiceProperties, ServiceStats,
};
pub use protocol::common::{DateTime, StoredPolicy};
pub use protocol::table::model::{EdmType, Guid, Property, Value};
pub use queue::{
    MESSAGE_COUNT_MAX, Message, MessageHandle, PeekedMessage, PutOptions, QueueClient, QueueProperties, SentMessage,
    UpdatedReceipt, VISIBILITY_MAX,
};
pub use queue_service::{
    ListQueues, QUEUE_PAGE_COUNT_MAX, QueueItem, QueuePage, QueuePages, QueueServiceClient,
};
pub use retry::RetryPolicy;
pub use transport::{Sending, Transport, TransportError};
