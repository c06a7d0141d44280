//! The service SAS of the Table service: the entities of one table, or a range of them.

use crate::auth::sas::text;
use crate::auth::{KeyBounds, MalformedSas, ScopeParameter, ServiceScope};
use crate::common::query::Query;

use super::model::TableName;

/// What a service SAS is for. An empty text is an absent field.
#[derive(Clone, PartialEq, Debug)]
pub struct TableScope {
    /// `tn`.
    pub table: TableName,
    /// `si`: the stored policy that completes the terms.
    pub policy: String,
    /// `spk`.
    pub start_partition_key: String,
    /// `srk`.
    pub start_row_key: String,
    /// `epk`.
    pub end_partition_key: String,
    /// `erk`.
    pub end_row_key: String,
}

impl TableScope {
    /// All of a table.
    pub fn new(table: TableName) -> TableScope {
        TableScope {
            table,
            policy: String::new(),
            start_partition_key: String::new(),
            start_row_key: String::new(),
            end_partition_key: String::new(),
            end_row_key: String::new(),
        }
    }

    /// The scope in the form common to all services. Refused when a row key has no partition key.
    pub fn into_scope(self) -> Result<ServiceScope, MalformedSas> {
        let bounds = KeyBounds {
            start: end_of_range(&self.start_partition_key, &self.start_row_key)?,
            end: end_of_range(&self.end_partition_key, &self.end_row_key)?,
        };
        let parameter = |name, value, is_signed| ScopeParameter { name, value, is_signed };
        Ok(ServiceScope {
            label: super::KIND.label,
            resource: self.table.to_lower(),
            policy: self.policy,
            parameters: vec![
                parameter("tn", self.table.into_string(), false),
                parameter("spk", self.start_partition_key, true),
                parameter("srk", self.start_row_key, true),
                parameter("epk", self.end_partition_key, true),
                parameter("erk", self.end_row_key, true),
            ],
            bounds,
        })
    }
}

fn end_of_range(partition: &str, row: &str) -> Result<Option<(String, Option<String>)>, MalformedSas> {
    if partition.is_empty() && !row.is_empty() {
        return Err(MalformedSas("srk needs spk, and erk needs epk"));
    }
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(given(partition).map(|partition| (partition, given(row))))
}

/// Reads the scope of a token. The table is a query parameter; the path does not matter.
pub(super) fn read_scope(query: &Query<'_>, _path: &str) -> Result<ServiceScope, MalformedSas> {
    let table =
        TableName::parse_addressed(&text(query, "tn")?).map_err(|_| MalformedSas("tn names no table"))?;
    let owned = |name| text(query, name).map(|text| text.into_owned());
    let scope = TableScope {
        table,
        policy: owned("si")?,
        start_partition_key: owned("spk")?,
        start_row_key: owned("srk")?,
        end_partition_key: owned("epk")?,
        end_row_key: owned("erk")?,
    };
    scope.into_scope()
}
