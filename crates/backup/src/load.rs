//! Loads a backup into an engine: all of it, or one table, if wanted under another name.
//!
//! Promises: a table appears under its name in one step, once all its rows are there. A failed load leaves only tables
//! that belong to no account, and the next load drops them. After a load of everything, versions assigned later are
//! greater than any in the backup. A load of one table leaves the store's versions as they are: rows with a greater
//! version get one of the store's own.
//! Leaves to others: the check of the file and of its contents (`content.rs`, `rules.rs`).

use std::io::Read;
use std::num::NonZeroU64;

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
use crate::rules::{normal_policies, normal_properties};

/// Where a table is while its rows are being loaded. No real account can have this name.
pub(crate) const RESTORING: Namespace<'static> = Namespace::new(tables::FAMILY, "!restoring");

/// Which part of a backup to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadSelection {
    All,
    /// One table. `account` chooses between several of that name; `new_name` renames it.
    Table {
        account: Option<String>,
        name: String,
        new_name: Option<String>,
    },
}

impl LoadSelection {
    /// The name under which to load the table; `None` if it is not selected.
    fn target(&self, table: &TableHead) -> Option<String> {
        match self {
            LoadSelection::All => Some(table.name.clone()),
            LoadSelection::Table { account, name, new_name } => {
                let wanted = table.name.eq_ignore_ascii_case(name)
                    && account.as_ref().is_none_or(|account| *account == table.account);
                wanted.then(|| new_name.clone().unwrap_or_else(|| table.name.clone()))
            }
        }
    }
}

/// The counts of a finished load.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LoadReport {
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
    selection: &LoadSelection,
    progress: OnProgress<'_>,
) -> Result<LoadReport, BackupError> {
    clear_leftovers(engine).await?;
    let head = backup.head().clone();
    let all_versions_until = match selection {
        LoadSelection::All => Some(Version::new(head.last_version).unwrap_or(Version(NonZeroU64::MIN))),
        LoadSelection::Table { .. } => None,
    };
    let mut loading =
        Loading { engine, all_versions_until, open: None, ready: Vec::new(), loaded: LoadReport::default() };
    loop {
        match backup.next_content()? {
            Some(Content::Properties { account, properties }) => {
                if *selection == LoadSelection::All {
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
    if let LoadSelection::Table { name, .. } = selection
        && loading.ready.is_empty()
    {
        return Err(BackupError::Refused(format!("the backup has no table '{name}' of that account")));
    }
    loading.publish().await
}

struct Loading<'a> {
    engine: &'a dyn Engine,
    /// Set if the whole backup is loaded: the store continues with the versions of the one that was backed up.
    all_versions_until: Option<Version>,
    open: Option<LoadingTable>,
    /// Tables that are loaded and wait until the whole file proves good.
    ready: Vec<LoadingTable>,
    loaded: LoadReport,
}

/// A table that is being loaded.
struct LoadingTable {
    id: TableId,
    /// No row gets a greater version.
    versions_until: Version,
    /// Its name until then.
    temporary: String,
    account: String,
    name: TableName,
    policies: Option<Vec<u8>>,
}

impl Loading<'_> {
    async fn properties(&mut self, account: &str, properties: &[u8]) -> Result<(), BackupError> {
        let key = Setting::ServiceProperties(account.into()).key();
        self.put_setting(&key, normal_properties(properties)).await?;
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
        let versions_until = match self.all_versions_until {
            Some(version) => version,
            None => self.version_of(&temporary).await?,
        };
        let (account, policies) = (table.account, table.policies);
        self.open = Some(LoadingTable { id, versions_until, temporary, account, name: parsed, policies });
        Ok(())
    }

    async fn rows(&mut self, rows: RowIter<'_>) -> Result<(), BackupError> {
        let Some(target) = &self.open else { return Ok(()) };
        let rows: Vec<(OwnedKey, Row)> = rows
            .map(|row| {
                let value = Bytes::copy_from_slice(row.record);
                let version = row.version.min(target.versions_until);
                (Key::new(row.partition, row.row).into(), Row { version, value })
            })
            .collect();
        self.loaded.counts.row_count += rows.len() as u64;
        let load = Load { table: target.id, rows, versions_until: target.versions_until };
        self.engine.load(load).await.map_err(engine_error)
    }

    async fn finish_table(&mut self) -> Result<(), BackupError> {
        let Some(target) = self.open.take() else { return Ok(()) };
        if let Some(policies) = &target.policies {
            self.put_setting(&Setting::Policies(target.id).key(), normal_policies(policies)).await?;
        }
        self.ready.push(target);
        Ok(())
    }

    /// Gives the tables their names, once the whole file proved good.
    async fn publish(mut self) -> Result<LoadReport, BackupError> {
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

    /// The version that the engine gave to the creation of a table: one of its own, and greater than all before.
    async fn version_of(&self, temporary: &str) -> Result<Version, BackupError> {
        let partition = RESTORING.partition();
        let found = self.engine.get(TableId::CATALOGUE, Key::new(&partition, temporary)).await;
        let found = found.map_err(|error| BackupError::Engine(error.to_string()))?;
        let gone =
            || BackupError::Refused("another restore dropped the table that was being loaded".to_owned());
        found.map(|row| row.version).ok_or_else(gone)
    }

    /// `document` is `None` if it does not follow the rules, which the reader has checked.
    async fn put_setting(&self, key: &OwnedKey, document: Option<Vec<u8>>) -> Result<(), BackupError> {
        let Some(document) = document else {
            return Err(BackupError::Forbidden("a document that cannot be read".to_owned()));
        };
        let effect = Effect::Put(document.into());
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
    let scanned = engine.scan(TableId::CATALOGUE, &[RESTORING.names()], Budget::UNBOUNDED, &mut names).await;
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
