//! The community's Rust SDK (`azure_data_tables`), unmodified, against our server.
//!
//! It knows tables, entities, queries and transactions. It has no access policies, no service properties and no
//! statistics, makes no table signatures, and tells of a failed transaction only the status: what it cannot say is
//! left to the other suites.
#![cfg(test)]

mod entities;
mod keys;
mod limits;
mod paging;
mod parallel;
mod queries;
mod retries;
mod sas;
mod support;
mod tables;
mod transactions;
mod types;
