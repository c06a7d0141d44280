//! A client for the Table and Queue services of Azure Storage, for Cosmos DB's Table API, Azurite and Lazulite.
#![forbid(unsafe_code)]

pub mod encryption;
mod entity;
mod error;
mod field;
mod pipeline;
mod transport;

pub use entity::{Entity, Keys, Row};
pub use error::{EntityError, Error};
pub use field::Field;
pub use lazulite_client_derive::{Entity, EntityKind};
pub use protocol::common::DateTime;
pub use protocol::table::model::{EdmType, Guid, Property, Value};
pub use transport::{Transport, TransportError};
