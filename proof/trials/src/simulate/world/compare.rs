//! Compares the whole store with the model, after each opening and at the end, and resolves unknown outcomes.
//!
//! Promises: every table, row and version is the model's. A write with an unknown outcome happened as a whole or not at
//! all, and from then on the model knows which.

use std::collections::BTreeMap;

use engine::{Key, TableId, TableRecord};

use super::{Checked, World, block_on, must};
use crate::simulate::ask::{Answer, Ask};
use crate::simulate::model::{Change, Row, Units};
use crate::simulate::random::TABLES;

/// A change with an unknown outcome, to be resolved at the next opening.
pub(super) enum Unknown {
    Commit { table: String, changes: Vec<Change> },
    Create { table: &'static str },
    Delete { table: String },
}

/// The version of a row whose commit was never answered. No real version is this small.
const VERSION_UNKNOWN: u64 = 0;

type Found = BTreeMap<String, BTreeMap<(Units, Units), Row>>;

impl World {
    /// Compares the whole store with the model, and finds out which unknown changes happened: all or none.
    pub(super) fn compare(&mut self) -> Checked {
        let found = self.everything()?;
        if !self.unknown.is_empty() {
            let count = self.unknown.len() as u64;
            let unknown = std::mem::take(&mut self.unknown);
            if self.differences(&found).is_empty() {
                self.counts.unknown_lost_count += count;
            } else {
                self.counts.unknown_kept_count += count;
                self.suppose(unknown)?;
            }
        }
        let differences = self.differences(&found);
        must(differences.is_empty(), || format!("the store differs from the model:\n{differences}"))?;
        for (name, rows) in found {
            let id = self.table_id(&name)?;
            match self.ids.get(&name) {
                Some(known) => must(*known == id, || format!("{name} is {id:?}, not {known:?}"))?,
                None => self.know_table(&name, id)?,
            }
            let table = self.model.tables.get_mut(&name).ok_or("compared before")?;
            for (place, row) in rows {
                self.last_version = self.last_version.max(row.version);
                table.rows.insert(place, row);
            }
        }
        Ok(())
    }

    /// Applies the unknown changes to the model, in the engine's order.
    fn suppose(&mut self, unknown: Vec<Unknown>) -> Checked {
        for unknown in unknown {
            match unknown {
                Unknown::Commit { table, changes } => {
                    let judged = self.model.judge(&table, &changes);
                    must(judged.is_ok(), || format!("unknown, but it could not have happened: {judged:?}"))?;
                    self.model.apply(&table, &changes, VERSION_UNKNOWN);
                }
                Unknown::Create { table } => {
                    let created = self.model.create_table(table);
                    must(created.is_ok(), || {
                        format!("unknown, but it could not have happened: {created:?}")
                    })?;
                }
                Unknown::Delete { table } => {
                    let deleted = self.model.delete_table(&table);
                    must(deleted.is_ok(), || {
                        format!("unknown, but it could not have happened: {deleted:?}")
                    })?;
                    if let Some(id) = self.forget_table(&table) {
                        self.dropped.insert(id, Some(self.now));
                    }
                }
            }
        }
        Ok(())
    }

    /// Describes the differences; empty if there are none.
    fn differences(&self, found: &Found) -> String {
        let names: Vec<_> = found.keys().collect();
        let expected: Vec<_> = self.model.tables.keys().collect();
        if names != expected {
            return format!("tables {names:?} instead of {expected:?}\n");
        }
        let mut differences = String::new();
        for (name, rows) in found {
            let model = &self.model.tables[name].rows;
            let mut places: Vec<_> = rows.keys().chain(model.keys()).collect();
            places.sort();
            places.dedup();
            for place in places {
                let (found, expected) = (rows.get(place), model.get(place));
                let is_same = match (found, expected) {
                    (Some(found), Some(expected)) if expected.version == VERSION_UNKNOWN => {
                        found.properties == expected.properties && found.version > self.last_version
                    }
                    (found, expected) => found == expected,
                };
                if !is_same {
                    differences.push_str(&format!("{name} {place:?}: {found:?} instead of {expected:?}\n"));
                }
            }
        }
        differences
    }

    fn everything(&mut self) -> Result<Found, String> {
        let ask = Ask::List { table_count_max: 1000 };
        let Answer::Names(names, false) = self.answer(&ask)? else { return Err("no list of tables".into()) };
        let mut found = Found::new();
        for name in names {
            let table = TABLES
                .into_iter()
                .find(|table| table.eq_ignore_ascii_case(&name))
                .ok_or_else(|| format!("a table {name}"))?;
            let ask = Ask::Query { table, filter: None, resume: None, entity_count_max: 1000 };
            let Answer::Page(page, None) = self.answer(&ask)? else {
                return Err(format!("no page of all of {name}"));
            };
            let rows = page
                .into_iter()
                .map(|(partition, row_key, row)| ((Units::of(&partition), Units::of(&row_key)), row));
            found.insert(name.to_ascii_lowercase(), rows.collect());
        }
        Ok(found)
    }

    fn answer(&mut self, ask: &Ask) -> Result<Answer, String> {
        let service = self.service.as_ref().ok_or("no service")?;
        let answering = ask.begin(service, &self.account).map_err(|answer| format!("{answer:?}"))?;
        let answer = block_on(&self.waker, answering);
        self.log.take();
        match answer {
            Answer::Refused(code, _) => Err(format!("{ask:?} after opening: {code:?}")),
            answer => Ok(answer),
        }
    }

    /// The table's id in the catalogue.
    fn table_id(&mut self, lower: &str) -> Result<TableId, String> {
        let engine = self.engine.as_ref().ok_or("no engine")?;
        let key = Key { partition: self.account.as_str(), row: lower };
        let row = block_on(&self.waker, engine.get(TableId::CATALOGUE, key));
        self.log.take();
        let row = row.map_err(|error| error.to_string())?;
        let record = row.as_ref().and_then(|row| TableRecord::read(&row.value));
        record.map(|record| record.id).ok_or_else(|| format!("{lower} is listed but cannot be found"))
    }
}
