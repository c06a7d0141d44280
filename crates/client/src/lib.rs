//! A client for the Table and Queue services of Azure Storage, for Cosmos DB's Table API, Azurite and Lazulite.
#![forbid(unsafe_code)]

// Derived code names the crate, also inside of it.
extern crate self as lazulite_client;

mod column;
mod dynamic;
mod entity;
mod error;
mod field;
mod filter;
pub mod json;
mod key_field;
mod kind;
mod literal;
mod pipeline;
mod plan;
mod transport;

#[doc(hidden)]
#[path = "derived.rs"]
pub mod __private;

pub use column::Column;
pub use dynamic::DynamicEntity;

pub use entity::{Entity, Keys, Row};
pub use error::{EntityError, Error};
pub use field::Field;
pub use filter::{Filter, FilterError};
pub use key_field::KeyField;
pub use lazulite_client_derive::{Entity, EntityKind, Enumeration};
pub use literal::{ComparesWith, Literal, ToLiteral};
pub use plan::Plan;
pub use protocol::common::DateTime;
pub use protocol::table::model::{EdmType, Guid, Property, Value};
pub use transport::{Transport, TransportError};
