//! Judges the answers: the model determines the right answer at the moment of the engine call; it is compared when the
//! answer comes.
//!
//! Owns: the expected answers, the existing and the dropped tables, and the check that versions and table ids only
//! grow.
//! Promises: nothing fails unless the seed broke it; only a client that began before a drop was answered uses the
//! dropped table. Leaves to `compare.rs`: unknown outcomes.

use engine::{CommitError, ReadError, TableId, Version};
use protocol::ErrorCode;

use super::compare::Unknown;
use super::{Checked, Client, World, must};
use crate::simulate::ask::{Answer, Ask};
use crate::simulate::model::{Row, Units};
use crate::simulate::stage::Event;

/// The answer that a client must get.
pub(super) enum Expected {
    Exactly(Answer),
    /// The matching rows from the start of the page, one more than fit.
    Page(Vec<(String, String, Row)>),
    /// A read of a table that was being dropped.
    Anything,
}

impl World {
    /// Judges what the engine just did with the model.
    pub(super) fn witness(&mut self, index: usize, event: Event) -> Checked {
        let Some(mut client) = self.clients[index].take() else { return Ok(()) };
        let outcome = self.judge(&mut client, event);
        let outcome = outcome.map_err(|error| format!("{:?}: {error}", client.ask));
        self.clients[index] = Some(client);
        outcome
    }

    fn judge(&mut self, client: &mut Client, event: Event) -> Checked {
        let refused = |code| Some(Expected::Exactly(Answer::Refused(code, None)));
        match event {
            // Cleaning up after a dropped table, which no client sees.
            Event::Read(TableId::SETTINGS) | Event::Committed(TableId::SETTINGS, _) => {}
            Event::LookedUp(id) => {
                let expected = client.ask.table().and_then(|name| self.ids.get(&name)).copied();
                must(id == expected, || format!("the name stands for {id:?}, not for {expected:?}"))?;
                if id.is_none() || client.read.is_some_and(|read| Some(read) != id) {
                    client.expected = refused(ErrorCode::TableNotFound);
                }
            }
            Event::Read(table) => self.judge_read(client, table)?,
            Event::Committed(table, result) => self.judge_commit(client, table, result)?,
            Event::Created(result) => self.judge_creation(client, result)?,
            Event::Dropped(result) => self.judge_drop(client, result)?,
            Event::ReadFailed(error) => {
                self.may_fail(client, &error.to_string())?;
                let is_tidying = matches!(client.ask, Ask::Delete { .. });
                if !is_tidying {
                    client.expected = refused(match error {
                        ReadError::Busy => ErrorCode::ServerBusy,
                        ReadError::Damaged(what) => return Err(format!("damaged data: {what}")),
                        ReadError::Storage(_) => ErrorCode::InternalError,
                    });
                }
            }
            Event::Told(None) => {}
            Event::Told(Some(error)) => {
                let code = match &error {
                    // These were judged when they happened.
                    CommitError::Precondition { .. } | CommitError::TableGone => return Ok(()),
                    CommitError::Refused { .. } | CommitError::Invalid(_) => {
                        return Err(format!("unexpected: {error}"));
                    }
                    CommitError::Busy => ErrorCode::ServerBusy,
                    CommitError::Unknown(_) => ErrorCode::OperationTimedOut,
                    CommitError::Poisoned | CommitError::Storage(_) => ErrorCode::InternalError,
                };
                self.may_fail(client, &error.to_string())?;
                client.expected = refused(code);
            }
        }
        Ok(())
    }

    /// Only what the seed broke may fail. A broken disk is soon followed by a restart.
    fn may_fail(&mut self, client: &Client, error: &str) -> Checked {
        if client.is_troubled {
            return Ok(());
        }
        must(self.store.has_failed(), || format!("failed without a planned fault: {error}"))?;
        if self.reopen_at.is_none() {
            self.counts.disk_fault_count += 1;
            self.reopen_at = Some(self.now + self.random.u64(..200));
        }
        Ok(())
    }

    /// A client may use a dropped table only if the drop was not yet answered when the client began.
    fn may_be_stale(&self, client: &Client, table: TableId) -> Checked {
        match self.dropped.get(&table) {
            Some(answered) if answered.is_none_or(|at| at >= client.began) => Ok(()),
            other => Err(format!("used {table:?}, which is not a table ({other:?})")),
        }
    }

    fn judge_read(&mut self, client: &mut Client, table: TableId) -> Checked {
        client.read = Some(table);
        if table == TableId::CATALOGUE {
            let Ask::List { table_count_max } = client.ask else { return Err("read the catalogue".into()) };
            let names = self.model.tables.values().map(|table| table.name.clone());
            let names = names.take(table_count_max as usize).collect::<Vec<_>>();
            let more = names.len() < self.model.tables.len();
            client.expected = Some(Expected::Exactly(Answer::Names(names, more)));
            return Ok(());
        }
        let Some(name) = self.names.get(&table) else {
            self.may_be_stale(client, table)?;
            client.expected = Some(Expected::Anything);
            return Ok(());
        };
        let rows = &self.model.tables.get(name).ok_or("the model lost a table")?.rows;
        client.expected = Some(match &client.ask {
            Ask::Get { place, .. } => {
                let found = rows.get(&(Units::of(&place.0), Units::of(&place.1)));
                Expected::Exactly(Answer::Row(found.cloned()))
            }
            Ask::Query { filter, resume, entity_count_max, .. } => {
                let (partition, row) = resume.clone().unwrap_or_default();
                let matching = rows
                    .range((Units::of(&partition), Units::of(&row))..)
                    .map(|((partition, key), row)| (partition.text(), key.text(), row))
                    .filter(|(partition, key, row)| {
                        filter.as_ref().is_none_or(|filter| filter.holds(partition, key, row))
                    })
                    .map(|(partition, key, row)| (partition, key, row.clone()));
                Expected::Page(matching.take(*entity_count_max as usize + 1).collect())
            }
            other => return Err(format!("{other:?} read entities")),
        });
        Ok(())
    }

    fn judge_commit(
        &mut self,
        client: &mut Client,
        table: TableId,
        result: Result<Version, CommitError>,
    ) -> Checked {
        let Ask::Commit { changes, .. } = &client.ask else { return Err("committed".into()) };
        let Some(name) = self.names.get(&table).cloned() else {
            self.may_be_stale(client, table)?;
            let is_fit = match &result {
                Err(CommitError::Poisoned | CommitError::Storage(_) | CommitError::Busy) => {
                    self.store.has_failed()
                }
                other => matches!(other, Err(CommitError::TableGone)),
            };
            must(is_fit, || format!("a commit to a dropped table: {result:?}"))?;
            client.expected = Some(Expected::Exactly(Answer::Refused(ErrorCode::TableNotFound, None)));
            return Ok(());
        };
        let judged = self.model.judge(&name, changes);
        match (&result, judged) {
            (Ok(version), Ok(())) => {
                let (version, last) = (version.ticks(), self.last_version);
                must(version > last, || format!("version {version} was assigned after {last}"))?;
                self.last_version = version;
                self.model.apply(&name, changes, version);
                self.counts.committed_count += 1;
                client.expected = Some(Expected::Exactly(Answer::Version(version)));
            }
            (Err(CommitError::Precondition { op, .. }), Err((code, Some(at)))) if *op == at => {
                client.expected = Some(Expected::Exactly(Answer::Refused(code, Some(at))));
            }
            (Err(CommitError::Unknown(_)), _) => {
                self.unknown.push(Unknown::Commit { table: name, changes: changes.clone() });
            }
            (Err(CommitError::Poisoned | CommitError::Storage(_) | CommitError::Busy), _) => {}
            (result, judged) => return Err(format!("{result:?}, but {judged:?}")),
        }
        Ok(())
    }

    fn judge_creation(&mut self, client: &mut Client, result: Result<TableId, CommitError>) -> Checked {
        let Ask::Create { table } = client.ask else { return Err("created a table".into()) };
        let lower = table.to_ascii_lowercase();
        match result {
            Ok(id) => {
                let created = self.model.create_table(table);
                must(created.is_ok(), || format!("created, but {created:?}"))?;
                self.know_table(&lower, id)?;
                client.expected = Some(Expected::Exactly(Answer::Done));
            }
            Err(CommitError::Precondition { .. }) => {
                must(self.ids.contains_key(&lower), || "refused, but there is no such table".to_owned())?;
                let answer = Answer::Refused(ErrorCode::TableAlreadyExists, None);
                client.expected = Some(Expected::Exactly(answer));
            }
            Err(CommitError::Unknown(_)) => self.unknown.push(Unknown::Create { table }),
            Err(_) => {}
        }
        Ok(())
    }

    pub(super) fn know_table(&mut self, lower: &str, id: TableId) -> Checked {
        must(id.0 > self.last_table, || format!("{id:?} was assigned after {}", self.last_table))?;
        self.last_table = id.0;
        self.ids.insert(lower.to_owned(), id);
        self.names.insert(id, lower.to_owned());
        Ok(())
    }

    pub(super) fn forget_table(&mut self, lower: &str) -> Option<TableId> {
        let id = self.ids.remove(lower)?;
        self.names.remove(&id);
        Some(id)
    }

    fn judge_drop(&mut self, client: &mut Client, result: Result<TableId, CommitError>) -> Checked {
        let Ask::Delete { table } = client.ask else { return Err("dropped a table".into()) };
        let lower = table.to_ascii_lowercase();
        match result {
            Ok(id) => {
                let deleted = self.model.delete_table(table);
                must(deleted.is_ok(), || format!("dropped, but {deleted:?}"))?;
                let known = self.forget_table(&lower);
                must(known == Some(id), || format!("dropped {id:?} instead of {known:?}"))?;
                self.dropped.insert(id, None);
                client.read = Some(id);
                client.expected = Some(Expected::Exactly(Answer::Done));
            }
            Err(CommitError::Precondition { .. }) => {
                must(!self.ids.contains_key(&lower), || "refused, but there is such a table".to_owned())?;
                let answer = Answer::Refused(ErrorCode::ResourceNotFound, None);
                client.expected = Some(Expected::Exactly(answer));
            }
            Err(CommitError::Unknown(_)) => self.unknown.push(Unknown::Delete { table: lower }),
            Err(_) => {}
        }
        Ok(())
    }

    /// From now on no client may use the table that this client dropped.
    pub(super) fn settle_drop(&mut self, client: &Client) {
        if let (Ask::Delete { .. }, Some(table)) = (&client.ask, client.read) {
            self.dropped.insert(table, Some(self.now));
        }
    }

    /// Compares the answer with the expected one.
    pub(super) fn hear(&mut self, index: usize, answer: Answer) -> Checked {
        let Some(client) = self.clients[index].take() else { return Ok(()) };
        self.settle_drop(&client);
        self.counts.operation_count += 1;
        match &answer {
            Answer::Refused(..) => self.counts.refused_count += 1,
            Answer::Row(_) | Answer::Page(..) | Answer::Names(..) => self.counts.read_count += 1,
            Answer::Version(_) | Answer::Done => {}
        }
        let Client { ask, expected, .. } = client;
        match expected {
            None => Err(format!("{ask:?}: {answer:?}, without asking the engine")),
            Some(Expected::Anything) => Ok(()),
            Some(Expected::Exactly(expected)) => {
                must(answer == expected, || format!("{ask:?}: {answer:?}, but {expected:?}"))
            }
            Some(Expected::Page(matching)) => {
                let Ask::Query { entity_count_max, .. } = &ask else { return Err("a page".into()) };
                check_page(&answer, &matching, *entity_count_max as usize)
                    .map_err(|error| format!("{ask:?}: {error}"))
            }
        }
    }
}

fn check_page(answer: &Answer, matching: &[(String, String, Row)], entity_count_max: usize) -> Checked {
    let Answer::Page(rows, next) = answer else { return Err(format!("{answer:?} instead of a page")) };
    let expected = &matching[..matching.len().min(entity_count_max)];
    must(rows[..] == *expected, || format!("{rows:?} instead of {expected:?}"))?;
    let units = |partition: &str, row: &str| (Units::of(partition), Units::of(row));
    let more = matching.get(entity_count_max).map(|(partition, row, _)| units(partition, row));
    match next {
        None => must(more.is_none(), || "a page claims to be the last, and is not".to_owned()),
        Some((partition, row)) => {
            let next = units(partition, row);
            let last = rows.last().map(|(partition, row, _)| units(partition, row));
            must(rows.len() == entity_count_max, || "a page that ends too soon".to_owned())?;
            must(last.is_none_or(|last| last < next), || "a page that goes back".to_owned())?;
            must(more.is_none_or(|more| next <= more), || "a page that leaves something out".to_owned())
        }
    }
}
