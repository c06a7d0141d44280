//! Loads a backup into an engine: all of it, or one table, queue or container, if wanted under another name.
//!
//! Promises: a table, queue or container appears under its name in one step, once all its content is there. A failed load leaves only
//! tables that belong to no account, and the next load drops them. After a load of everything, versions assigned later are
//! greater than any in the backup. A load of one table or queue leaves the store's versions as they are: rows with a
//! greater version get one of the store's own. The expiry rows and the count of a queue are made from its messages.
//! Leaves to others: the check of the file and of its contents (`content.rs`, `rules.rs`).

use std::io::Read;
use std::num::NonZeroU64;
use std::sync::Arc;

use blobs::{BlobImporter, ContentPiece};
use bytes::Bytes;
use catalogue::Setting;
use contents::{ContentError, ContentStore};
use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Family, Flow, Key, KeyRange, Load, Namespace, Op,
    OwnedKey, Row, Sink, TableId, TablePath, TableRecord, Version,
};
use protocol::auth::ServiceKind;
use protocol::blob::ContainerName;
use protocol::common::AccountName;
use protocol::queue::QueueName;
use protocol::table::model::TableName;

use crate::BackupError;
use crate::blob_content::ContainerHead;
use crate::content::{BackupReader, Content, RowIter, TableHead, Totals};
use crate::queue_content::{MessageIter, QueueHead};
use crate::rules::{normal_policies, normal_properties, read_metadata};

/// The owner of a table while it is being loaded. No real account can have this name.
const RESTORING_OWNER: &str = "!restoring";
/// Where tables of each family are while they are being loaded.
const RESTORING: [Namespace<'static>; 3] = [
    Namespace::new(tables::FAMILY, RESTORING_OWNER),
    Namespace::new(queues::FAMILY, RESTORING_OWNER),
    Namespace::new(blobs::FAMILY, RESTORING_OWNER),
];

/// Which part of a backup to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadSelection {
    All,
    /// One table.
    Table(SelectedName),
    /// One queue.
    Queue(SelectedName),
    /// One container of blobs.
    Container(SelectedName),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedName {
    /// Chooses between several of that name.
    pub account: Option<String>,
    pub name: String,
    /// Renames it.
    pub new_name: Option<String>,
}

impl SelectedName {
    fn target(&self, account: &str, name: &str) -> Option<String> {
        let is_wanted = name.eq_ignore_ascii_case(&self.name)
            && self.account.as_ref().is_none_or(|wanted| wanted == account);
        is_wanted.then(|| self.new_name.clone().unwrap_or_else(|| name.to_owned()))
    }
}

impl LoadSelection {
    /// The name under which to load the table; `None` if it is not selected.
    fn table_target(&self, table: &TableHead) -> Option<String> {
        match self {
            LoadSelection::All => Some(table.name.clone()),
            LoadSelection::Table(selected) => selected.target(&table.account, &table.name),
            LoadSelection::Queue(_) | LoadSelection::Container(_) => None,
        }
    }

    fn queue_target(&self, queue: &QueueHead) -> Option<String> {
        match self {
            LoadSelection::All => Some(queue.name.clone()),
            LoadSelection::Queue(selected) => selected.target(&queue.account, &queue.name),
            LoadSelection::Table(_) | LoadSelection::Container(_) => None,
        }
    }

    fn container_target(&self, container: &ContainerHead) -> Option<String> {
        match self {
            LoadSelection::All => Some(container.name.clone()),
            // A deleted one has no name of its own.
            LoadSelection::Container(selected) if ContainerName::parse(&container.name).is_ok() => {
                selected.target(&container.account, &container.name)
            }
            LoadSelection::Container(_) => None,
            LoadSelection::Table(_) | LoadSelection::Queue(_) => None,
        }
    }
}

/// The counts of a finished load.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LoadReport {
    pub counts: Totals,
    /// The accounts of the loaded tables and queues, sorted, without duplicates.
    pub accounts: Vec<String>,
}

/// Called with the number of rows and messages read so far and their approximate total.
pub type OnProgress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

/// Reads the backup to its end and loads the selected part. If any name is taken, nothing appears. Without a store of
/// contents, a container is an error.
pub async fn load<R: Read + Send>(
    engine: &dyn Engine,
    contents: Option<&Arc<dyn ContentStore>>,
    backup: BackupReader<R>,
    selection: &LoadSelection,
    progress: OnProgress<'_>,
) -> Result<LoadReport, BackupError> {
    clear_leftovers(engine).await?;
    let loaded = load_selected(engine, contents, backup, selection, progress).await;
    if loaded.is_err() {
        // What was loaded names contents, and keeps them until it is gone. The next load tries again.
        let _ = clear_leftovers(engine).await;
    }
    loaded
}

async fn load_selected<R: Read + Send>(
    engine: &dyn Engine,
    contents: Option<&Arc<dyn ContentStore>>,
    mut backup: BackupReader<R>,
    selection: &LoadSelection,
    progress: OnProgress<'_>,
) -> Result<LoadReport, BackupError> {
    let head = backup.head().clone();
    let loads_all = *selection == LoadSelection::All;
    let all_versions_until =
        loads_all.then(|| Version::new(head.last_version).unwrap_or(Version(NonZeroU64::MIN)));
    let importer = match contents {
        Some(contents) => Some(BlobImporter::new(contents.clone()).await.map_err(content_error)?),
        None => None,
    };
    let mut loading = Loading {
        engine,
        importer,
        all_versions_until,
        open: None,
        ready: Vec::new(),
        loaded: LoadReport::default(),
    };
    loop {
        match backup.next_content()? {
            Some(Content::Properties { account, properties }) if loads_all => {
                loading.properties(tables::FAMILY, account, properties).await?;
            }
            Some(Content::QueueProperties { account, properties }) if loads_all => {
                loading.properties(queues::FAMILY, account, properties).await?;
            }
            Some(Content::BlobProperties { account, properties }) if loads_all => {
                loading.properties(blobs::FAMILY, account, properties).await?;
            }
            Some(
                Content::Properties { .. } | Content::QueueProperties { .. } | Content::BlobProperties { .. },
            ) => {}
            Some(Content::Table(table)) => {
                loading.finish().await?;
                if let Some(name) = selection.table_target(&table) {
                    loading.begin(LoadTarget::table(table, &name)?).await?;
                }
            }
            Some(Content::Queue(queue)) => {
                loading.finish().await?;
                if let Some(name) = selection.queue_target(&queue) {
                    loading.begin(LoadTarget::queue(queue, &name)?).await?;
                }
            }
            Some(Content::Container(container)) => {
                loading.finish().await?;
                if let Some(name) = selection.container_target(&container) {
                    loading.begin(LoadTarget::container(container, &name)?).await?;
                    loading.importer()?.begin_container();
                }
            }
            Some(Content::Rows(rows)) => loading.rows(rows).await?,
            Some(Content::Piece(piece)) => loading.piece(piece).await?,
            Some(Content::BlobRows(rows)) => loading.blob_rows(rows).await?,
            Some(Content::Messages(messages)) => loading.messages(messages).await?,
            Some(Content::End(_)) | None => break,
        }
        let seen = backup.seen();
        progress(seen.row_count + seen.message_count + seen.blob_row_count, head.row_count);
    }
    loading.finish().await?;
    if loading.ready.is_empty() {
        match selection {
            LoadSelection::All => {}
            LoadSelection::Table(selected) => return Err(not_there("table", selected)),
            LoadSelection::Queue(selected) => return Err(not_there("queue", selected)),
            LoadSelection::Container(selected) => return Err(not_there("container", selected)),
        }
    }
    loading.publish().await
}

struct Loading<'a> {
    engine: &'a dyn Engine,
    /// Until it is dropped, no sweep forgets what it wrote.
    importer: Option<BlobImporter>,
    /// Set if the whole backup is loaded: the store continues with the versions of the one that was backed up.
    all_versions_until: Option<Version>,
    open: Option<LoadingTable>,
    /// What is loaded and waits until the whole file proves good.
    ready: Vec<LoadingTable>,
    loaded: LoadReport,
}

/// What is about to be loaded: a table, a queue, or a container.
struct LoadTarget {
    family: Family,
    /// What people call it.
    noun: &'static str,
    kind: &'static ServiceKind,
    account: String,
    /// As its creator wrote it.
    name: String,
    /// As the catalogue knows it.
    key: String,
    /// The catalogue's payload.
    payload: Bytes,
    policies: Option<Vec<u8>>,
}

impl LoadTarget {
    fn table(table: TableHead, name: &str) -> Result<LoadTarget, BackupError> {
        let parsed = TableName::parse(name)
            .map_err(|_| BackupError::Refused(format!("'{name}' is not the name of a table")))?;
        Ok(LoadTarget {
            family: tables::FAMILY,
            noun: "table",
            kind: &protocol::table::KIND,
            account: table.account,
            key: parsed.to_lower(),
            payload: Bytes::copy_from_slice(parsed.as_str().as_bytes()),
            name: name.to_owned(),
            policies: table.policies,
        })
    }

    fn queue(queue: QueueHead, name: &str) -> Result<LoadTarget, BackupError> {
        let parsed = QueueName::parse(name)
            .map_err(|_| BackupError::Refused(format!("'{name}' is not the name of a queue")))?;
        let metadata = read_metadata(&queue.metadata)
            .ok_or_else(|| BackupError::Forbidden(format!("metadata of the queue '{}'", queue.name)))?;
        Ok(LoadTarget {
            family: queues::FAMILY,
            noun: "queue",
            kind: &protocol::queue::KIND,
            account: queue.account,
            key: parsed.as_str().to_owned(),
            payload: catalogue::record::of_new(queues::FAMILY, queues::write_payload(&metadata)),
            name: name.to_owned(),
            policies: queue.policies,
        })
    }

    fn container(container: ContainerHead, name: &str) -> Result<LoadTarget, BackupError> {
        if name != container.name {
            ContainerName::parse(name)
                .map_err(|_| BackupError::Refused(format!("'{name}' is not the name of a container")))?;
        }
        Ok(LoadTarget {
            family: blobs::FAMILY,
            noun: "container",
            kind: &protocol::blob::KIND,
            account: container.account,
            key: name.to_owned(),
            payload: catalogue::record::of_new(blobs::FAMILY, container.record.into()),
            name: name.to_owned(),
            policies: container.policies,
        })
    }

    /// Its name while it is being loaded.
    fn temporary(&self) -> String {
        format!("{}/{}", self.account, self.key)
    }

    fn restoring(&self) -> Namespace<'static> {
        Namespace::new(self.family, RESTORING_OWNER)
    }

    fn taken(&self) -> BackupError {
        BackupError::Refused(format!("{} has a {} '{}' already", self.account, self.noun, self.name))
    }
}

/// A table, queue or container that is being loaded.
struct LoadingTable {
    id: TableId,
    /// No row gets a greater version.
    versions_until: Version,
    target: LoadTarget,
    message_count: u64,
}

impl Loading<'_> {
    async fn properties(
        &mut self,
        family: Family,
        account: &str,
        properties: &[u8],
    ) -> Result<(), BackupError> {
        let namespace = Namespace::new(family, account).partition();
        let key = Setting::ServiceProperties(namespace.into()).key();
        self.put_setting(&key, normal_properties(properties)).await?;
        self.loaded.counts.properties_count += 1;
        Ok(())
    }

    async fn begin(&mut self, target: LoadTarget) -> Result<(), BackupError> {
        let account = AccountName::parse(&target.account)
            .ok_or_else(|| BackupError::Refused(format!("'{}' is not an account", target.account)))?;
        let partition = Namespace::new(target.family, account.as_str()).partition();
        let found = self.engine.get(TableId::CATALOGUE, Key::new(&partition, &target.key)).await;
        if found.map_err(|error| BackupError::Engine(error.to_string()))?.is_some() {
            return Err(target.taken());
        }
        let temporary = target.temporary();
        let created = self.engine.create_table(target.restoring(), &temporary, Bytes::new()).await;
        let id = created.map_err(|error| match error {
            CommitError::Precondition { .. } => BackupError::Refused(format!(
                "the {} '{}' of {} is in the backup twice, or another restore is loading it",
                target.noun, target.name, target.account
            )),
            other => engine_error(other),
        })?;
        let versions_until = match self.all_versions_until {
            Some(version) => version,
            None => self.version_of(&target).await?,
        };
        self.open = Some(LoadingTable { id, versions_until, target, message_count: 0 });
        Ok(())
    }

    async fn rows(&mut self, rows: RowIter<'_>) -> Result<(), BackupError> {
        let Some(open) = &self.open else { return Ok(()) };
        let rows: Vec<(OwnedKey, Row)> = rows
            .map(|row| {
                let value = Bytes::copy_from_slice(row.record);
                let version = row.version.min(open.versions_until);
                (Key::new(row.partition, row.row).into(), Row { version, value })
            })
            .collect();
        self.loaded.counts.row_count += rows.len() as u64;
        let load = Load { table: open.id, rows, versions_until: open.versions_until };
        self.engine.load(load).await.map_err(engine_error)
    }

    async fn messages(&mut self, messages: MessageIter<'_>) -> Result<(), BackupError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut rows: Vec<(OwnedKey, Row)> = Vec::new();
        for (version, message) in messages {
            let version = version.min(open.versions_until);
            rows.extend(message.rows().map(|(key, value)| (key, Row { version, value })));
            open.message_count += 1;
        }
        let load = Load { table: open.id, rows, versions_until: open.versions_until };
        self.engine.load(load).await.map_err(engine_error)
    }

    fn importer(&mut self) -> Result<&mut BlobImporter, BackupError> {
        let without = || {
            BackupError::Refused(
                "the contents of blobs have no place here: a server that serves blobs makes one, or a restore of everything \
                 with --contents"
                    .to_owned(),
            )
        };
        self.importer.as_mut().ok_or_else(without)
    }

    async fn piece(&mut self, piece: ContentPiece<'_>) -> Result<(), BackupError> {
        if self.open.is_none() {
            return Ok(());
        }
        self.loaded.counts.content_count += u64::from(piece.is_last);
        self.loaded.counts.content_bytes += piece.bytes.len() as u64;
        self.importer()?.take(piece).await.map_err(content_error)
    }

    async fn blob_rows(&mut self, rows: RowIter<'_>) -> Result<(), BackupError> {
        let Some(open) = &self.open else { return Ok(()) };
        let (table, versions_until) = (open.id, open.versions_until);
        let mut loaded: Vec<(OwnedKey, Row)> = Vec::new();
        for row in rows {
            let failed = |cause: String| BackupError::Engine(format!("{:?}: {cause}", row.partition));
            let value = self.importer()?.import(row.row, row.record).await.map_err(failed)?;
            let version = row.version.min(versions_until);
            loaded.push((Key::new(row.partition, row.row).into(), Row { version, value }));
            self.loaded.counts.blob_count += u64::from(row.row == blobs::BLOB_ROW);
        }
        self.loaded.counts.blob_row_count += loaded.len() as u64;
        let load = Load { table, rows: loaded, versions_until };
        self.engine.load(load).await.map_err(engine_error)
    }

    async fn finish(&mut self) -> Result<(), BackupError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if let Some(policies) = &open.target.policies {
            let document = normal_policies(policies, open.target.kind);
            self.put_setting(&Setting::Policies(open.id).key(), document).await?;
        }
        if open.target.family == queues::FAMILY {
            self.finish_queue(&open).await?;
        }
        self.ready.push(open);
        Ok(())
    }

    /// Counts the messages, and makes sure that they make a queue: two with the same id would share an expiry row.
    async fn finish_queue(&mut self, open: &LoadingTable) -> Result<(), BackupError> {
        // Added, not put: a sweep may have taken expired messages out already, and counted them.
        let count = queues::count_commit(open.id, open.message_count);
        self.engine.commit(count).await.map_err(engine_error)?;
        let read_error = |error: engine::ReadError| BackupError::Engine(error.to_string());
        let snapshot = self.engine.snapshot().await.map_err(read_error)?;
        let checked = queues::check_queue(&*snapshot, open.id).await.map_err(read_error)?;
        if let Some(finding) = checked.findings.first() {
            let LoadTarget { account, name, .. } = &open.target;
            return Err(BackupError::Forbidden(format!("the queue '{name}' of {account}: {finding}")));
        }
        self.loaded.counts.message_count += open.message_count;
        Ok(())
    }

    /// Gives everything its name, once the whole file proved good.
    async fn publish(mut self) -> Result<LoadReport, BackupError> {
        for LoadingTable { target, .. } in &self.ready {
            let temporary = target.temporary();
            let from = TablePath::new(target.restoring(), &temporary);
            let to = TablePath::new(Namespace::new(target.family, &target.account), &target.key);
            let renamed = self.engine.rename_table(from, to, target.payload.clone()).await;
            renamed.map_err(|error| match error {
                CommitError::Precondition { op: 1, .. } => target.taken(),
                other => engine_error(other),
            })?;
            let counts = &mut self.loaded.counts;
            match target.family {
                tables::FAMILY => counts.table_count += 1,
                queues::FAMILY => counts.queue_count += 1,
                _ => counts.container_count += 1,
            }
            self.loaded.accounts.push(target.account.clone());
        }
        self.loaded.accounts.sort();
        self.loaded.accounts.dedup();
        Ok(self.loaded)
    }

    /// The version that the engine gave to the creation of a table: one of its own, and greater than all before.
    async fn version_of(&self, target: &LoadTarget) -> Result<Version, BackupError> {
        let (namespace, temporary) = (target.restoring().partition(), target.temporary());
        let found = self.engine.get(TableId::CATALOGUE, Key::new(&namespace, &temporary)).await;
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

/// Whether nobody has a table or a queue. What servers have measured and what restores have left behind does not count.
pub async fn is_empty(engine: &dyn Engine) -> Result<bool, BackupError> {
    struct Found(bool);
    impl Sink for Found {
        fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
            let is_system =
                TableRecord::read(value).is_some_and(|record| record.id.family() == tables::SYSTEM_FAMILY);
            self.0 |= !is_system && !is_restoring(key);
            if self.0 { Flow::Stop } else { Flow::Continue }
        }
    }
    let mut found = Found(false);
    let scanned = engine.scan(TableId::CATALOGUE, &[KeyRange::all()], Budget::UNBOUNDED, &mut found).await;
    scanned.map(|_| !found.0).map_err(|error| BackupError::Engine(error.to_string()))
}

/// Whether the catalogue's entry is of a restore that goes on, or went wrong.
pub fn is_restoring(key: Key<'_>) -> bool {
    RESTORING.iter().any(|namespace| *key.partition == *namespace.partition())
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
    for namespace in RESTORING {
        let mut names = Names(Vec::new());
        let scanned =
            engine.scan(TableId::CATALOGUE, &[namespace.names()], Budget::UNBOUNDED, &mut names).await;
        scanned.map_err(|error| BackupError::Engine(error.to_string()))?;
        for name in names.0 {
            engine.drop_table(namespace, &name).await.map_err(engine_error)?;
        }
    }
    Ok(())
}

fn not_there(noun: &str, selected: &SelectedName) -> BackupError {
    BackupError::Refused(format!("the backup has no {noun} '{}' of that account", selected.name))
}

fn content_error(error: ContentError) -> BackupError {
    BackupError::Engine(error.to_string())
}

fn engine_error(error: CommitError) -> BackupError {
    BackupError::Engine(error.to_string())
}
