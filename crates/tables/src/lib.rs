//! The Table service's rules over an engine: limits, conditions, queries, entity group transactions.
//!
//! Owns: what may be stored, what a write expects and does, which keys a query reads, how an entity looks as
//! stored bytes. Promises: one commit or one scan per operation, so there is nothing to roll back.
//! Leaves to others: HTTP, payload texts, who may do what; and durability, which is the engine's.

mod error;
mod family;
mod limits;
mod plan;
mod query;
mod record;
mod service;
mod transaction;

pub use family::{FAMILIES, FAMILY, VALUE_RULES, namespace};
pub use plan::{Plan, PlanKind, plan};
pub use query::{EntityQuery, EntitySink, Page, TablePage, TableQuery};
pub use record::{EntityView, StoredEntity, is_record, merge};
pub use service::TableService;
pub use transaction::{Action, Change, Transaction};
