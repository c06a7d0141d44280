//! Puts a backup into an engine: all of it, or one table, under another name perhaps.
//!
//! Promises: a table appears under its name when all its rows are there, in one step; what a failure leaves behind is
//! under no account's name and is cleared away by the next load. Versions handed out later are greater than any in the
//! backup.

use std::io::Read;

use bytes::Bytes;
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Flow, Key, Load, Namespace, Op, OwnedKey, Row, Sink,
    TableId, TablePath, Version,
};
use protocol::model::{AccountName, TableName};
use tables::Setting;

use crate::BackupError;
use crate::content::{BackupReader, Content, End, RowIter, TableHead};

/// Where a table is while its rows come in; no account can have this name.
pub(crate) const RESTORING: Namespace<'static> = Namespace::new(tables::FAMILY, "!restoring");

/// What of a backup to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    All,
    /// One table, of this account if there are several of that name; under the new name if there is one.
    Table {
        account: Option<String>,
        name: String,
        new_name: Option<String>,
    },
}

impl Selection {
    /// The name that the table gets; `None`: it is not wanted.
    fn target(&self, table: &TableHead) -> Option<String> {
        match self {
            Selection::All => Some(table.name.clone()),
            Selection::Table { account, name, new_name } => {
                let wanted = table.name.eq_ignore_ascii_case(name)
                    && account.as_ref().is_none_or(|account| *account == table.account);
                wanted.then(|| new_name.clone().unwrap_or_else(|| table.name.clone()))
            }
        }
    }
}

/// What was loaded.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Loaded {
    pub counts: End,
    /// The accounts of the tables, each once, in order.
    pub accounts: Vec<String>,
}

/// Hears how many rows have been read, of about how many.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Reads the backup to its end and loads what was selected. Nothing appears when a table's name is taken.
pub async fn load<R: Read + Send>(
    engine: &dyn Engine,
    mut backup: BackupReader<R>,
    selection: &Selection,
    progress: Progress<'_>,
) -> Result<Loaded, BackupError> {
    clear_leftovers(engine).await?;
    let head = backup.head().clone();
    let versions_until = Version::new(head.last_version.max(1)).unwrap_or(Version(std::num::NonZeroU64::MIN));
    let mut loading =
        Loading { engine, versions_until, open: None, ready: Vec::new(), loaded: Loaded::default() };
    loop {
        match backup.next_content()? {
            Some(Content::Properties { account, properties }) => {
                if *selection == Selection::All {
                    loading.properties(account, properties).await?;
                }
            }
            Some(Content::Table(table)) => {
                loading.finish_table().await?;
                if let Some(name) = selection.target(&table) {
                    loading.begin_table(table, &name).await?;
                }
            }
            Some(Content::Rows(rows)) => loading.rows(rows).await?,
            Some(Content::End(_)) | None => break,
        }
        progress(backup.seen().row_count, head.row_count);
    }
    loading.finish_table().await?;
    if let Selection::Table { name, .. } = selection
        && loading.ready.is_empty()
    {
        return Err(BackupError::Refused(format!("the backup has no table '{name}' of that account")));
    }
    loading.publish().await
}

struct Loading<'a> {
    engine: &'a dyn Engine,
    versions_until: Version,
    open: Option<Target>,
    /// Loaded, and waiting for the file to prove whole.
    ready: Vec<Target>,
    loaded: Loaded,
}

/// A table that is being loaded.
struct Target {
    id: TableId,
    /// Its name meanwhile.
    temporary: String,
    account: String,
    name: TableName,
    policies: Option<Vec<u8>>,
}

impl Loading<'_> {
    async fn properties(&mut self, account: &str, properties: &[u8]) -> Result<(), BackupError> {
        let key = Setting::ServiceProperties(account.into()).key();
        self.put_setting(&key, properties).await?;
        self.loaded.counts.properties_count += 1;
        Ok(())
    }

    async fn begin_table(&mut self, table: TableHead, name: &str) -> Result<(), BackupError> {
        let parsed = TableName::parse(name)
            .map_err(|_| BackupError::Refused(format!("'{name}' is not the name of a table")))?;
        let account = AccountName::parse(&table.account)
            .ok_or_else(|| BackupError::Refused(format!("'{}' is not an account", table.account)))?;
        let lower = parsed.to_lower();
        let partition = tables::namespace(&account).partition();
        let found = self.engine.get(TableId::CATALOGUE, Key::new(&partition, &lower)).await;
        if found.map_err(|error| BackupError::Engine(error.to_string()))?.is_some() {
            return Err(taken(&table.account, name));
        }
        let temporary = format!("{}/{lower}", table.account);
        let id = self.engine.create_table(RESTORING, &temporary, Bytes::new()).await.map_err(|error| {
            match error {
                CommitError::Precondition { .. } => BackupError::Refused(format!(
                    "the table '{name}' of {} is in the backup twice, or is being restored by somebody else",
                    table.account
                )),
                other => engine_error(other),
            }
        })?;
        let (account, policies) = (table.account, table.policies);
        self.open = Some(Target { id, temporary, account, name: parsed, policies });
        Ok(())
    }

    async fn rows(&mut self, rows: RowIter<'_>) -> Result<(), BackupError> {
        let Some(target) = &self.open else { return Ok(()) };
        if let Some(row) = rows.clone().find(|row| !tables::is_record(row.record)) {
            let (partition, row, name) = (row.partition, row.row, target.name.as_str());
            return Err(BackupError::Refused(format!(
                "the entity of {name} with PartitionKey {partition:?} and RowKey {row:?} does not read"
            )));
        }
        let rows: Vec<(OwnedKey, Row)> = rows
            .map(|row| {
                let value = Bytes::copy_from_slice(row.record);
                (Key::new(row.partition, row.row).into(), Row { version: row.version, value })
            })
            .collect();
        self.loaded.counts.row_count += rows.len() as u64;
        let load = Load { table: target.id, rows, versions_until: self.versions_until };
        self.engine.load(load).await.map_err(engine_error)
    }

    async fn finish_table(&mut self) -> Result<(), BackupError> {
        let Some(target) = self.open.take() else { return Ok(()) };
        if let Some(policies) = &target.policies {
            self.put_setting(&Setting::TableAcl(target.id).key(), policies).await?;
        }
        self.ready.push(target);
        Ok(())
    }

    /// The file was whole: the tables get their names.
    async fn publish(mut self) -> Result<Loaded, BackupError> {
        for target in &self.ready {
            let payload = Bytes::copy_from_slice(target.name.as_str().as_bytes());
            let lower = target.name.to_lower();
            let from = TablePath::new(RESTORING, &target.temporary);
            let to = TablePath::new(Namespace::new(tables::FAMILY, &target.account), &lower);
            self.engine.rename_table(from, to, payload).await.map_err(|error| match error {
                CommitError::Precondition { op: 1, .. } => taken(&target.account, target.name.as_str()),
                other => engine_error(other),
            })?;
            self.loaded.counts.table_count += 1;
            self.loaded.accounts.push(target.account.clone());
        }
        self.loaded.accounts.sort();
        self.loaded.accounts.dedup();
        Ok(self.loaded)
    }

    async fn put_setting(&self, key: &OwnedKey, value: &[u8]) -> Result<(), BackupError> {
        let effect = Effect::Put(Bytes::copy_from_slice(value));
        let op = Op { row: key.row.clone(), expect: Expect::Any, effect };
        let commit = Commit::one(TableId::SETTINGS, &key.partition, op);
        self.engine.commit(commit).await.map(|_| ()).map_err(engine_error)
    }
}

/// Drops what an earlier load did not finish.
async fn clear_leftovers(engine: &dyn Engine) -> Result<(), BackupError> {
    struct Names(Vec<String>);
    impl Sink for Names {
        fn row(&mut self, key: Key<'_>, _: Version, _: &[u8]) -> Flow {
            self.0.push(key.row.to_owned());
            Flow::Continue
        }
    }
    let mut names = Names(Vec::new());
    let budget = Budget { rows_examined_max: u64::MAX, time_max: std::time::Duration::MAX };
    let scanned = engine.scan(TableId::CATALOGUE, &[RESTORING.names()], budget, &mut names).await;
    scanned.map_err(|error| BackupError::Engine(error.to_string()))?;
    for name in names.0 {
        engine.drop_table(RESTORING, &name).await.map_err(engine_error)?;
    }
    Ok(())
}

fn taken(account: &str, name: &str) -> BackupError {
    BackupError::Refused(format!("{account} has a table '{name}' already"))
}

fn engine_error(error: CommitError) -> BackupError {
    BackupError::Engine(error.to_string())
}
