//! Loads a backup into an engine: all of it, or one table, if wanted under another name.
//!
//! Promises: a table appears under its name in one step, once all its rows are there. A failed load leaves only tables
//! that belong to no account, and the next load drops them. Versions assigned later are greater than any in the backup.
//! Leaves to others: the check of the file (`content.rs`).

use std::io::Read;

use bytes::Bytes;
use catalogue::Setting;
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Flow, Key, Load, Namespace, Op, OwnedKey, Row, Sink,
    TableId, TablePath, Version,
};
use protocol::common::AccountName;
use protocol::table::model::TableName;

use crate::BackupError;
use crate::content::{BackupReader, Content, RowIter, TableHead, Totals};

/// Where a table is while its rows are being loaded. No real account can have this name.
pub(crate) const RESTORING: Namespace<'static> = Namespace::new(tables::FAMILY, "!restoring");

/// Which part of a backup to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    All,
    /// One table. `account` chooses between several of that name; `new_name` renames it.
    Table {
        account: Option<String>,
        name: String,
        new_name: Option<String>,
    },
}

impl Selection {
    /// The name under which to load the table; `None` if it is not selected.
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

/// The counts of a finished load.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Loaded {
    pub counts: Totals,
    /// The accounts of the loaded tables, sorted, without duplicates.
    pub accounts: Vec<String>,
}

/// Called with the number of rows read so far and their approximate total.
pub type OnProgress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Reads the backup to its end and loads the selected part. If any table's name is taken, no table appears.
pub async fn load<R: Read + Send>(
    engine: &dyn Engine,
    mut backup: BackupReader<R>,
    selection: &Selection,
    progress: OnProgress<'_>,
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
    open: Option<LoadingTable>,
    /// Tables that are loaded and wait until the whole file proves good.
    ready: Vec<LoadingTable>,
    loaded: Loaded,
}

/// A table that is being loaded.
struct LoadingTable {
    id: TableId,
    /// Its name until then.
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
        let id =
            self.engine.create_table(RESTORING, &temporary, Bytes::new()).await.map_err(
                |error| match error {
                    CommitError::Precondition { .. } => BackupError::Refused(format!(
                        "the table '{name}' of {} is in the backup twice, or another restore is loading it",
                        table.account
                    )),
                    other => engine_error(other),
                },
            )?;
        let (account, policies) = (table.account, table.policies);
        self.open = Some(LoadingTable { id, temporary, account, name: parsed, policies });
        Ok(())
    }

    async fn rows(&mut self, rows: RowIter<'_>) -> Result<(), BackupError> {
        let Some(target) = &self.open else { return Ok(()) };
        if let Some(row) = rows.clone().find(|row| !tables::is_record(row.record)) {
            let (partition, row, name) = (row.partition, row.row, target.name.as_str());
            return Err(BackupError::Refused(format!(
                "the entity of {name} with PartitionKey {partition:?} and RowKey {row:?} cannot be decoded"
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
            self.put_setting(&Setting::Policies(target.id).key(), policies).await?;
        }
        self.ready.push(target);
        Ok(())
    }

    /// Gives the tables their names, once the whole file proved good.
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

/// Drops the tables of earlier loads that did not finish.
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
