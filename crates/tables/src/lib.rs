//! The Table service's rules over an engine: limits, conditions, queries, entity group transactions.
//!
//! Owns: what may be stored, what a write expects and does, which keys a query reads, and how an entity is encoded in
//! stored bytes.
//! Promises: one commit or one scan per operation, so there is nothing to roll back.
//! Leaves to others: HTTP, payload texts and authorization to the server, durability to the engine.

mod error;
mod family;
mod limits;
mod plan;
mod property_path;
mod query;
mod record;
mod service;
mod transaction;

pub use family::{FAMILIES, FAMILY, SYSTEM_FAMILY, VALUE_RULES, namespace};
pub use plan::{Plan, PlanKind, plan};
pub use query::{EntityQuery, EntitySink, Page, Search, TablePage, TableQuery};
pub use record::{EntityView, StoredEntity, check_stored, is_record, merge};
pub use service::TableService;
pub use transaction::{Action, Change, RowWrite, Transaction, WriteKind};
