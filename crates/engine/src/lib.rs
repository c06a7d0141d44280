//! Versioned rows in key order, read in pages, changed by atomic conditional commits on one partition.
//!
//! Owns: the contract that every engine keeps ([`Engine`]) and the few types it uses. A commit is data, not code: it
//! can be queued, grouped, logged, replayed, or sent to a remote engine in one round trip. Nothing above the engine
//! needs a lock, a begin or a rollback.
//!
//! Leaves to others: what a value means. The engine looks into a value only through the rules of the table's family
//! ([`ValueRules`]).

pub mod conformance;
pub mod decide;
pub mod env;
mod families;
pub mod faults;
mod gauges;
pub mod keys;
pub mod lane;
pub mod memory;
pub mod pace;
pub mod scan;
#[cfg(feature = "seeded-bugs")]
pub mod seeded;
pub mod varint;
pub mod wrapper;

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub use families::{
    FAMILY_COUNT_MAX, Families, Family, MergeFn, MergeRefusal, Namespace, TablePath, ValueRules,
};
pub use gauges::{EngineGauges, Health};
pub use keys::{Key, KeyRange, OwnedKey};
pub use lane::Share;

/// The most ops that one [`Commit`] may hold.
pub const COMMIT_OP_COUNT_MAX: usize = 100;
/// The most commits that may happen together: one, and one more for each of its ops.
pub const COMMIT_COUNT_MAX: usize = COMMIT_OP_COUNT_MAX + 1;

/// A table's identity: a counter, with the table's [`Family`] in the top byte. Never reused: a table that is dropped and
/// created again gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TableId(pub u64);

impl TableId {
    /// The catalogue: one row per table, partition = [`Namespace::partition`], row = the table's name in that namespace.
    /// Read like any table; changed only by `create_table`, `drop_table` and `rename_table`. Its values are
    /// [`TableRecord`]s.
    pub const CATALOGUE: TableId = TableId(0);
    /// Small records that belong to no table, read and committed like the rows of any table. No family's rules apply.
    pub const SETTINGS: TableId = TableId(1);
    /// Ids below this one are the engine's own.
    pub const FIRST: TableId = TableId(16);
}

/// When a row was written, in ticks of 100 ns since 0001-01-01T00:00:00Z. Versions only grow, across restarts and
/// clock steps too: no two commits of one engine share a version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version(pub NonZeroU64);

impl Version {
    pub fn new(ticks: u64) -> Option<Version> {
        NonZeroU64::new(ticks).map(Version)
    }

    pub fn ticks(self) -> u64 {
        self.0.get()
    }
}

/// One stored row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub version: Version,
    pub value: Bytes,
}

/// What must be true of a row for its commit to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    Any,
    Absent,
    Present,
    Exactly(Version),
}

/// What a commit does to a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    Put(Bytes),
    /// A patch for the merge function of the table's family; an absent row is merged with nothing.
    Merge(Bytes),
    /// Deleting an absent row (possible only with `Expect::Any`) changes nothing.
    Delete,
    CheckOnly,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    pub row: Box<str>,
    pub expect: Expect,
    pub effect: Effect,
}

/// Ops on distinct rows of one partition: all of them happen, or none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub table: TableId,
    pub partition: Box<str>,
    pub ops: Vec<Op>,
}

impl Commit {
    pub fn one(table: TableId, partition: &str, op: Op) -> Commit {
        Commit { table, partition: partition.into(), ops: vec![op] }
    }
}

/// What an op found where its expectation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Absent,
    Present(Version),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommitError {
    /// The first op whose expectation failed. Nothing changed.
    Precondition { op: usize, found: Found },
    /// The first op that the merge function refused. Nothing changed.
    Refused { op: usize, refusal: MergeRefusal },
    /// The table was dropped, or never existed. Nothing changed.
    TableGone,
    /// The queue of commits is full. Nothing changed; try again later.
    Busy,
    /// The engine refuses writes until it is reopened, because a write to the disk failed. Nothing changed.
    Poisoned,
    /// The commit may or may not have happened.
    Unknown(String),
    /// The storage failed before anything changed.
    Storage(String),
    /// The caller asked for what no engine does: a mistake in the program. Nothing changed.
    Invalid(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// A stored row does not match its checksum, or does not decode: it is never served.
    Damaged(String),
    Storage(String),
    /// The store is being reopened; try again later.
    Busy,
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Precondition { op, found } => write!(f, "op {op} found {found:?}"),
            CommitError::Refused { op, refusal } => write!(f, "op {op} was refused: {}", refusal.0),
            CommitError::TableGone => write!(f, "the table is gone"),
            CommitError::Busy => write!(f, "the commit queue is full"),
            CommitError::Poisoned => {
                write!(f, "an earlier write to the disk failed; restart to reopen the store")
            }
            CommitError::Unknown(cause) => write!(f, "the outcome is unknown: {cause}"),
            CommitError::Storage(cause) => write!(f, "storage: {cause}"),
            CommitError::Invalid(what) => write!(f, "{what}"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Damaged(what) => write!(f, "damaged data: {what}"),
            ReadError::Storage(cause) => write!(f, "storage: {cause}"),
            ReadError::Busy => write!(f, "the store is being reopened"),
        }
    }
}

impl From<keys::KeyDamage> for ReadError {
    fn from(damage: keys::KeyDamage) -> ReadError {
        ReadError::Damaged(damage.to_string())
    }
}

impl std::error::Error for CommitError {}
impl std::error::Error for ReadError {}

/// How much work one scan may do before it must say where to resume.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub rows_examined_max: u64,
    pub time_max: Duration,
    /// With whom it shares the turns of long scans.
    pub share: Share,
}

impl Budget {
    /// For work of the program's own that must see everything.
    pub const UNBOUNDED: Budget =
        Budget { rows_examined_max: u64::MAX, time_max: Duration::MAX, share: Share::COMMON };
}

/// What the sink of a scan says to each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Taken, or rejected by a filter: continue.
    Continue,
    /// Not taken: end the scan here, and resume with this very row.
    Stop,
}

/// Sees the rows as borrowed bytes, in key order. A row that it does not keep is never copied.
pub trait Sink: Send {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow;

    /// Whether the row is not wanted, whatever its key. Then it counts as examined, and [`Sink::row`] does not see it;
    /// otherwise it sees it next. An engine need not ask, but where many rows are not wanted, it saves decoding their keys.
    fn passes_over(&mut self, _version: Version, _value: &[u8]) -> bool {
        false
    }
}

/// A catalogue row's value: the table's id, and bytes the creator chose.
pub struct TableRecord<'a> {
    pub id: TableId,
    pub payload: &'a [u8],
}

impl<'a> TableRecord<'a> {
    pub fn read(value: &'a [u8]) -> Option<TableRecord<'a>> {
        let (id, payload) = value.split_first_chunk::<8>()?;
        Some(TableRecord { id: TableId(u64::from_be_bytes(*id)), payload })
    }

    pub fn write(&self) -> Bytes {
        [&self.id.0.to_be_bytes()[..], self.payload].concat().into()
    }
}

/// What becomes of a table's rows when its record is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableRows {
    Keep,
    /// The table gets a fresh id, so its rows are gone at once; their space comes back later.
    Drop,
}

/// Rows with the versions they had elsewhere: how a backup is restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    pub table: TableId,
    pub rows: Vec<(OwnedKey, Row)>,
    /// All later versions are greater than this one.
    pub versions_until: Version,
}

/// All rows as of one moment, for as long as it is held. It may keep an engine from reusing space, so it is meant for
/// readers that must see everything at once, such as a backup.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// No row has a greater version, and no row deleted before had one. `None`: nothing was ever written.
    fn last_version(&self) -> Option<Version>;

    /// Whether another process may hold a snapshot that is older than this one, and read in it what rows of before have named. For
    /// callers that keep things beside the engine, and would remove what no row of this snapshot names.
    fn may_have_older(&self) -> bool {
        false
    }

    /// Roughly how many rows there are, including rows that nobody can see: good enough for a progress bar.
    fn row_count(&self) -> Result<u64, ReadError>;

    /// As [`Engine::scan`].
    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError>;
}

impl dyn Engine {
    /// [`Engine::get`], without a future where the engine need not wait.
    pub async fn row(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        match self.get_now(table, key) {
            Some(found) => found,
            None => self.get(table, key).await,
        }
    }
}

#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The row as of the latest acknowledged commit.
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError>;

    /// The same, from an engine that never has to wait for a row. `None`: this one has to, or something stands before it that
    /// wants to see every read. Saves the allocation of a future.
    fn get_now(&self, _table: TableId, _key: Key<'_>) -> Option<Result<Option<Row>, ReadError>> {
        None
    }

    /// Shows the sink the rows of `ranges` (sorted, disjoint) in key order, from one consistent view, until the sink
    /// says stop or the budget is used up. Returns the first key that was not delivered, to resume with; `None` when
    /// everything was delivered. At least one row is examined whatever the budget, so a caller that resumes always
    /// makes progress.
    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError>;

    /// Checks every expectation, then applies every effect, durably, or does nothing. Returns the version of every
    /// row written, which is greater than any version before. A commit that wrote nothing gets a version too, but
    /// since no row has it, it may be given again after a restart.
    async fn commit(&self, commit: Commit) -> Result<Version, CommitError>;

    /// Several commits, perhaps to several tables: all of them happen, durably and with one version, or none. They are
    /// decided in order, and each sees what the ones before it do. In an error, ops are counted through all commits.
    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError>;

    /// Gives `name` in `namespace` a fresh id of the namespace's family and records `payload` beside it, durably.
    /// `Precondition { op: 0, .. }` when the name is taken.
    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError>;

    /// Removes the name in one quick durable step; the space of the rows comes back later. `Precondition { op: 0,
    /// found: Absent }` when there is no such name.
    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError>;

    /// Gives a table another name, perhaps another owner, and another payload, in one durable step. Its family stays.
    /// `Precondition`: `op: 0` when there is no table `from`, `op: 1` when the name `to` is taken.
    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError>;

    /// Gives a table another payload, and drops its rows if asked to, in one quick durable step. `expect` is about the
    /// table's row in the catalogue. `Precondition { op: 0, .. }` when it does not hold, or when there is no such table.
    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError>;

    /// Everything as of the latest acknowledged commit.
    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError>;

    /// Puts rows with the versions they had elsewhere, all of them or none, durably. Rows with the same keys are
    /// replaced. Meant for a table that nobody uses yet: the versions may be older than those handed out here.
    async fn load(&self, load: Load) -> Result<(), CommitError>;

    /// Finishes the accepted writes, makes them durable, and takes no more.
    async fn close(&self);

    /// What the engine says about itself.
    fn gauges(&self) -> EngineGauges {
        EngineGauges::default()
    }
}
