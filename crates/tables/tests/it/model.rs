//! The model: the Table service as a BTreeMap of BTreeMaps. It is slow, small and obviously right.

use std::collections::BTreeMap;

use protocol::ErrorCode;
use protocol::table::model::Value;

/// A string that sorts the way the service lists: by UTF-16 code unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Units(Vec<u16>);

impl Units {
    pub fn of(text: &str) -> Units {
        Units(text.encode_utf16().collect())
    }

    pub fn text(&self) -> String {
        String::from_utf16(&self.0).unwrap()
    }
}

pub type Properties = BTreeMap<String, Value<'static>>;

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub version: u64,
    pub properties: Properties,
}

#[derive(Default)]
pub struct Table {
    /// The name in the case it was created with.
    pub name: String,
    pub rows: BTreeMap<(Units, Units), Row>,
}

#[derive(Default)]
pub struct Model {
    /// Tables by lower-case name.
    pub tables: BTreeMap<String, Table>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    None,
    Any,
    Version(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verb {
    Insert,
    Replace,
    Merge,
    Delete,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub partition: String,
    pub row: String,
    pub verb: Verb,
    pub condition: Condition,
    pub properties: Properties,
}

/// The refusal that the service must give: the code, and the index of the operation when the engine found the failure.
pub type Refusal = (ErrorCode, Option<usize>);

impl Model {
    pub fn create_table(&mut self, name: &str) -> Result<(), ErrorCode> {
        let key = name.to_ascii_lowercase();
        if self.tables.contains_key(&key) {
            return Err(ErrorCode::TableAlreadyExists);
        }
        self.tables.insert(key, Table { name: name.to_owned(), rows: BTreeMap::new() });
        Ok(())
    }

    pub fn delete_table(&mut self, name: &str) -> Result<(), ErrorCode> {
        self.tables.remove(&name.to_ascii_lowercase()).map(drop).ok_or(ErrorCode::ResourceNotFound)
    }

    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(&name.to_ascii_lowercase())
    }

    /// The mistake in the changes themselves, if any, whatever the table holds.
    pub fn validate(changes: &[Change]) -> Result<(), (ErrorCode, usize)> {
        for (index, change) in changes.iter().enumerate() {
            if change.partition != changes[0].partition {
                return Err((ErrorCode::CommandsInBatchActOnDifferentPartitions, index));
            }
            if changes[..index].iter().any(|earlier| earlier.row == change.row) {
                return Err((ErrorCode::InvalidDuplicateRow, index));
            }
        }
        Ok(())
    }

    /// The answer that the commit must give. Changes nothing.
    pub fn judge(&self, table: &str, changes: &[Change]) -> Result<(), Refusal> {
        let table = self.table(table).ok_or((ErrorCode::TableNotFound, None))?;
        for (index, change) in changes.iter().enumerate() {
            let found = table.rows.get(&(Units::of(&change.partition), Units::of(&change.row)));
            let code = match (change.verb, change.condition, found) {
                (Verb::Insert, _, Some(_)) => ErrorCode::EntityAlreadyExists,
                (Verb::Insert, _, None) | (_, Condition::None, _) => continue,
                (_, _, None) => ErrorCode::ResourceNotFound,
                (_, Condition::Version(version), Some(row)) if row.version != version => {
                    ErrorCode::UpdateConditionNotSatisfied
                }
                (_, _, Some(_)) => continue,
            };
            return Err((code, Some(index)));
        }
        Ok(())
    }

    /// Applies changes that were judged right, with the version that the service assigned.
    pub fn apply(&mut self, table: &str, changes: &[Change], version: u64) {
        let table = self.tables.get_mut(&table.to_ascii_lowercase()).expect("judged");
        for change in changes {
            let key = (Units::of(&change.partition), Units::of(&change.row));
            match change.verb {
                Verb::Delete => drop(table.rows.remove(&key)),
                Verb::Insert | Verb::Replace => {
                    table.rows.insert(key, Row { version, properties: change.properties.clone() });
                }
                Verb::Merge => {
                    let row =
                        table.rows.entry(key).or_insert_with(|| Row { version, properties: BTreeMap::new() });
                    row.version = version;
                    row.properties.extend(change.properties.clone());
                }
            }
        }
    }
}
