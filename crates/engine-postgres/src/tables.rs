//! The verbs of the catalogue, and loads: one call of one function in the database each.
//!
//! Promises: a verb that lost its connection is explained like any commit (`outcome.rs`): the catalogue's row carries
//! its stamp, and so does the list of dropped tables.

use bytes::Bytes;
use engine::{CommitError, Expect, Found, Load, Namespace, TableId, TablePath, TableRecord, TableRows};
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::batch::numbers_of;
use crate::commit::{ATTEMPT_COUNT_MAX, new_stamp, pause};
use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::pool::SessionLease;
use crate::session::Params;
use crate::statements::Statements;
use crate::{FrontEnd, version_of};

/// The place of a family's number in a table id.
const FAMILY_SHIFT: u32 = 56;

/// What the rows prove about a lost call.
enum CallTruth {
    Happened(TableId),
    DidNot,
    Unknown,
}

/// One verb as a call.
struct Call<'a> {
    statement: fn(&Statements) -> &Statement,
    /// Those after the time and the stamp.
    params: Params<'a>,
    /// The row that carries the stamp afterwards.
    key: &'a KeyBytes,
    drops: bool,
}

enum CallAnswer {
    Done(TableId),
    Failed { op: usize, found: Found },
    Again,
}

impl FrontEnd {
    pub(crate) async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: &Bytes,
    ) -> Result<TableId, CommitError> {
        let key = &path_key(TablePath::new(namespace, name))?;
        let family = i64::from(namespace.family.0) << FAMILY_SHIFT;
        let params: Params<'_> = &[&key.pk, &key.rk, &family, &&payload[..]];
        self.run(Call { statement: |all| &all.create_table, params, key, drops: false }).await
    }

    pub(crate) async fn drop_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
    ) -> Result<TableId, CommitError> {
        let key = &path_key(TablePath::new(namespace, name))?;
        self.run(Call { statement: |all| &all.drop_table, params: &[&key.pk, &key.rk], key, drops: true })
            .await
    }

    pub(crate) async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: &Bytes,
    ) -> Result<TableId, CommitError> {
        let (from, to) = TablePath::encode_renaming(from, to)?;
        let (from, key) = (&checked(KeyBytes::of_encoded(&from))?, &checked(KeyBytes::of_encoded(&to))?);
        let params: Params<'_> = &[&from.pk, &from.rk, &key.pk, &key.rk, &&payload[..]];
        self.run(Call { statement: |all| &all.rename_table, params, key, drops: false }).await
    }

    pub(crate) async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: &Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        let key = &path_key(path)?;
        let (expect, version) = numbers_of(expect);
        let drops = rows == TableRows::Drop;
        let params: Params<'_> = &[&key.pk, &key.rk, &expect, &version, &&payload[..], &drops];
        self.run(Call { statement: |all| &all.replace_table, params, key, drops }).await
    }

    async fn run(&self, call: Call<'_>) -> Result<TableId, CommitError> {
        for attempt in 0..ATTEMPT_COUNT_MAX {
            pause(attempt).await;
            let stamp = new_stamp();
            match self.send_call(&call, stamp).await {
                Ok(CallAnswer::Done(id)) => return Ok(id),
                Ok(CallAnswer::Failed { op, found }) => return Err(CommitError::Precondition { op, found }),
                Ok(CallAnswer::Again) | Err(Failure::Rejected { retries: true, .. } | Failure::Unproven) => {}
                Err(Failure::Lost { cause, session_key }) => {
                    match self.explain_call(&call, session_key, stamp).await {
                        CallTruth::Happened(id) => return Ok(id),
                        CallTruth::DidNot => {}
                        CallTruth::Unknown => return Err(CommitError::Unknown(cause)),
                    }
                }
                Err(failure) => return Err(failure.into_commit_error()),
            }
        }
        Err(CommitError::Busy)
    }

    async fn send_call(&self, call: &Call<'_>, stamp: i64) -> Result<CallAnswer, Failure> {
        let lease = self.writes.lease().await?;
        let now = self.now();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&now, &stamp];
        params.extend_from_slice(call.params);
        let statement = (call.statement)(&lease.session.statements);
        let rows = lease.session.query(statement, &params, self.deadline).await?;
        let Some(row) = rows.first() else {
            return Err(Failure::Rejected {
                cause: "the database gave no answer".to_owned(),
                retries: false,
            });
        };
        if row.get::<_, i32>(0) == 1 {
            // Without a write, no standby has confirmed anything yet.
            self.prove(lease).await?;
        }
        Ok(match row.get::<_, i32>(0) {
            0 => CallAnswer::Done(TableId(row.get::<_, i64>(3) as u64)),
            1 => {
                let found = row.get::<_, Option<i64>>(2).and_then(|ticks| version_of(ticks as u64));
                let op = row.get::<_, Option<i32>>(1).unwrap_or(0) as usize;
                CallAnswer::Failed { op, found: found.map_or(Found::Absent, Found::Present) }
            }
            _ => CallAnswer::Again,
        })
    }

    async fn explain_call(&self, call: &Call<'_>, session_key: i64, stamp: i64) -> CallTruth {
        let read = async {
            let started = self.clock.monotonic();
            loop {
                match self.read_back_call(call, session_key, stamp).await {
                    Err(failure) if self.repeats_read(started, &failure).await => {}
                    outcome => return outcome,
                }
            }
        };
        let explained = tokio::time::timeout(self.deadline, read).await;
        match explained {
            Ok(Ok(truth)) => truth,
            Ok(Err(failure)) => {
                log::warn!("the outcome of a change of the catalogue cannot be read back: {failure:?}");
                CallTruth::Unknown
            }
            Err(_) => {
                log::warn!(
                    "the outcome of a change of the catalogue is unknown: the database did not say in time"
                );
                CallTruth::Unknown
            }
        }
    }

    async fn read_back_call(
        &self,
        call: &Call<'_>,
        session_key: i64,
        stamp: i64,
    ) -> Result<CallTruth, Failure> {
        let lease = self.wait_for_end(session_key).await?;
        let truth = self.read_call(call, &lease, stamp).await?;
        self.prove(lease).await?;
        Ok(truth)
    }

    async fn read_call(
        &self,
        call: &Call<'_>,
        lease: &SessionLease,
        stamp: i64,
    ) -> Result<CallTruth, Failure> {
        let (session, catalogue) = (&lease.session, TableId::CATALOGUE.0 as i64);
        let key: Params<'_> = &[&catalogue, &call.key.pk, &call.key.rk];
        // The catalogue never moves.
        let statements = &session.statements.shared.row;
        let marks = session.query(&statements.read_back, key, self.deadline).await?;
        if marks.first().is_some_and(|row| row.get::<_, i64>(1) == stamp) {
            let rows = session.query(&statements.get, key, self.deadline).await?;
            let body = rows.first().and_then(|row| row.get::<_, Option<&[u8]>>(2));
            let id = body.and_then(|body| TableRecord::read(body).map(|record| record.id));
            return Ok(id.map_or(CallTruth::Unknown, CallTruth::Happened));
        }
        if !call.drops {
            return Ok(CallTruth::Unknown);
        }
        // The list of dropped tables keeps its entries for longer than any deadline, so it knows all of them.
        let dropped = session.query(&session.statements.dropped_by, &[&stamp], self.deadline).await?;
        Ok(match dropped.first() {
            None => CallTruth::DidNot,
            Some(row) if marks.is_empty() => CallTruth::Happened(TableId(row.get::<_, i64>(0) as u64)),
            // Somebody replaced the record since, so the new id is not known any more.
            Some(_) => CallTruth::Unknown,
        })
    }

    pub(crate) async fn load(&self, load: Load) -> Result<(), CommitError> {
        if load.table == TableId::CATALOGUE {
            return Err(CommitError::TableGone);
        }
        let keys: Vec<KeyBytes> = load.rows.iter().map(|(key, _)| KeyBytes::of(key.as_key())).collect();
        let pks: Vec<&[u8]> = keys.iter().map(|key| &key.pk[..]).collect();
        let rks: Vec<&[u8]> = keys.iter().map(|key| &key.rk[..]).collect();
        let versions: Vec<i64> = load.rows.iter().map(|(_, row)| row.version.ticks() as i64).collect();
        let bodies: Vec<&[u8]> = load.rows.iter().map(|(_, row)| &row.value[..]).collect();
        let highest = load.rows.iter().map(|(_, row)| row.version).max();
        let until =
            highest.map_or(load.versions_until, |highest| highest.max(load.versions_until)).ticks() as i64;
        let table = load.table.0 as i64;
        for attempt in 0..ATTEMPT_COUNT_MAX {
            pause(attempt).await;
            let send = async {
                let lease = self.writes.lease().await?;
                let statement = &lease.session.statements.load_rows;
                let params: Params<'_> = &[&table, &until, &pks, &rks, &versions, &bodies];
                lease.session.query(statement, params, self.deadline).await
            };
            match send.await {
                Ok(rows) => match rows.first().map(|row| row.get::<_, i32>(0)) {
                    Some(0) => return Ok(()),
                    Some(4) => self.wait_for_moves(&[load.table]).await?,
                    _ => return Err(CommitError::TableGone),
                },
                Err(Failure::Rejected { retries: true, .. }) => {}
                // The same rows with the same versions, in a table that nobody uses yet: twice is as good as once,
                // but not at the same time.
                Err(Failure::Lost { session_key, cause }) => {
                    let ended = tokio::time::timeout(self.deadline, self.wait_for_end(session_key)).await;
                    if !matches!(ended, Ok(Ok(_))) {
                        return Err(CommitError::Unknown(cause));
                    }
                }
                Err(failure) => return Err(failure.into_commit_error()),
            }
        }
        Err(CommitError::Busy)
    }
}

fn path_key(path: TablePath<'_>) -> Result<KeyBytes, CommitError> {
    checked(KeyBytes::of_encoded(&path.namespace.encode(path.name)?))
}

/// Names are short in every service, so the catalogue has no long keys.
fn checked(key: KeyBytes) -> Result<KeyBytes, CommitError> {
    match key.is_long() {
        true => Err(CommitError::Invalid("the name of a table is too long".to_owned())),
        false => Ok(key),
    }
}
