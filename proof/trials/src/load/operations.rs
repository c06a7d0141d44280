//! Generates a change of one row from the seed and from the rows that the writer knows.
//!
//! Promises: an operation made here must succeed, because no other writer touches these rows. Leaves to others:
//! sending.

use std::collections::BTreeSet;

use testkit::{entity_json, entity_path};

use super::Writer;
use crate::ledger::{Change, Key, MAIN_TABLE, Properties, etag_of};

const PARTITION_COUNT: u64 = 3;

/// One operation on one row, alone or in a batch.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) json: Option<String>,
    pub(super) change: Change,
}

impl Writer {
    pub(super) fn operation_somewhere(&mut self) -> Operation {
        let (table, partition) = self.somewhere();
        self.operation(&table, &partition, &BTreeSet::new())
    }

    /// A random table and partition of this writer.
    pub(super) fn somewhere(&mut self) -> (String, String) {
        let tables: Vec<&String> = self.known.tables.keys().collect();
        let table = if self.random.bool() {
            MAIN_TABLE.to_owned()
        } else {
            tables[self.random.usize(0..tables.len())].clone()
        };
        (table, format!("w{}p{}", self.number, self.random.u64(0..PARTITION_COUNT)))
    }

    /// A change of a row that is not in `taken`.
    pub(super) fn operation(&mut self, table: &str, partition: &str, taken: &BTreeSet<String>) -> Operation {
        let crowded = self.known.row_count() > self.shape.row_count_max;
        let existing = self.existing(table, partition, taken);
        let Some(key) = existing else { return self.insert(table, partition) };
        match self.random.u32(0..100) {
            0..30 if !crowded => self.insert(table, partition),
            30..36 if !crowded => self.upsert_new(table, partition),
            0..50 if crowded => self.delete(table, key),
            36..50 => self.delete(table, key),
            50..75 => self.merge(table, key),
            _ => self.replace(table, key),
        }
    }

    pub(super) fn existing(&mut self, table: &str, partition: &str, taken: &BTreeSet<String>) -> Option<Key> {
        let rows = self.known.tables.get(table)?;
        let start = (partition.to_owned(), format!("r{:08}", self.random.u64(0..=self.last_number)));
        let here = |key: &&Key| key.0 == partition && !taken.contains(&key.1);
        rows.range(start..).map(|(key, _)| key).take_while(|key| key.0 == partition).find(here).cloned()
    }

    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn properties(&mut self) -> Properties {
        let number = self.number();
        let length = match self.random.u32(0..30) {
            0 => self.random.usize(0..=self.shape.text_length_max),
            _ => self.random.usize(0..=self.shape.text_length_usual),
        };
        let text: String = format!("{number} ").chars().cycle().take(length).collect();
        let mut properties =
            Properties::from([("n".to_owned(), number.into()), ("t".to_owned(), text.into())]);
        if self.random.bool() {
            properties.insert(format!("p{}", self.random.u32(0..8)), number.is_multiple_of(2).into());
        }
        properties
    }

    pub(super) fn insert(&mut self, table: &str, partition: &str) -> Operation {
        let key = (partition.to_owned(), format!("r{:08}", self.number()));
        let properties = self.properties();
        let mut headers = Vec::new();
        if self.random.bool() {
            headers.push(("Prefer", "return-no-content".to_owned()));
        }
        Operation {
            method: "POST",
            target: format!("/{table}"),
            headers,
            json: Some(entity_json(&key.0, &key.1, &members(&properties))),
            change: Change::Put { table: table.to_owned(), key, properties },
        }
    }

    fn upsert_new(&mut self, table: &str, partition: &str) -> Operation {
        let key = (partition.to_owned(), format!("r{:08}", self.number()));
        let method = if self.random.bool() { "PUT" } else { "MERGE" };
        let properties = self.properties();
        put(method, table, key, Vec::new(), &properties.clone(), properties)
    }

    fn merge(&mut self, table: &str, key: Key) -> Operation {
        let patch = self.properties();
        let mut merged = self.known.tables[table][&key].properties.clone();
        merged.extend(patch.clone());
        let method = if self.random.bool() { "MERGE" } else { "PATCH" };
        let condition = self.condition(table, &key);
        put(method, table, key, condition, &patch, merged)
    }

    fn replace(&mut self, table: &str, key: Key) -> Operation {
        let properties = self.properties();
        let condition = self.condition(table, &key);
        put("PUT", table, key, condition, &properties.clone(), properties)
    }

    fn delete(&mut self, table: &str, key: Key) -> Operation {
        let mut headers = self.condition(table, &key);
        if headers.is_empty() {
            headers.push(("If-Match", "*".to_owned()));
        }
        let target = entity_path(table, &key.0, &key.1);
        let change = Change::Delete { table: table.to_owned(), key };
        Operation { method: "DELETE", target, headers, json: None, change }
    }

    /// No condition, any ETag (`*`), or the row's own ETag.
    fn condition(&mut self, table: &str, key: &Key) -> Vec<(&'static str, String)> {
        match (self.random.u32(0..3), self.known.tables[table][key].version) {
            (0, _) => Vec::new(),
            (1, Some(version)) => vec![("If-Match", etag_of(version))],
            _ => vec![("If-Match", "*".to_owned())],
        }
    }
}

fn put(
    method: &'static str,
    table: &str,
    key: Key,
    headers: Vec<(&'static str, String)>,
    sent: &Properties,
    properties: Properties,
) -> Operation {
    Operation {
        method,
        target: entity_path(table, &key.0, &key.1),
        headers,
        json: Some(format!("{{{}}}", members(sent))),
        change: Change::Put { table: table.to_owned(), key, properties },
    }
}

/// The members of a JSON object, without its braces.
fn members(properties: &Properties) -> String {
    let object = serde_json::to_string(properties).expect("plain values have a JSON form");
    object[1..object.len() - 1].to_owned()
}
