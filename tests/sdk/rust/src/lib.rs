//! The community's Rust SDK (`azure_data_tables`), unmodified, against our server.
//!
//! It supports tables, entities, queries and transactions. It has no access policies, service properties, statistics or
//! table signatures, and reports only the status of a failed transaction. The other suites cover the rest.
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
