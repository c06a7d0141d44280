//! The engine on PostgreSQL: any number of front ends, none with state of its own, over one database.
//!
//! Promises: everything the contract asks for, as durably as the database keeps its commits. Decided where the rows
//! are, so front ends need not know of each other. No message holds a secret, and no value of a row reaches the
//! server's log.
//!
//! | file | what it knows |
//! |---|---|
//! | `schema.rs`, `schema.sql` | what is in the database, and who creates it |
//! | `connect.rs`, `patroni.rs`, `http_get.rs`, `tls.rs` | which server leads, and how a session with it begins |
//! | `session.rs`, `space.rs` | one session, what it means when it ends, or finds no space |
//! | `leadership.rs`, `etcd.rs` | whether a server still led when it answered |
//! | `pool.rs` | how connections are shared |
//! | `statements.rs` | the statements of one row, and those of scans |
//! | `key_bytes.rs` | keys as columns |
//! | `commit.rs` | commits of one row |
//! | `batch.rs` | commits of several rows, merges |
//! | `tables.rs` | the catalogue, loads |
//! | `outcome.rs` | whether a commit happened whose answer was lost |
//! | `scan.rs`, `snapshot.rs` | views |
//! | `places.rs`, `mover.rs` | which relation a table's rows are in, and how they get there |
//! | `sweep.rs` | how the space of dropped tables comes back |

mod batch;
mod commit;
mod connect;
mod etcd;
mod failure;
mod http_get;
mod key_bytes;
mod leadership;
mod mover;
mod outcome;
mod patroni;
mod places;
mod pool;
mod scan;
mod schema;
mod session;
mod snapshot;
mod space;
mod statements;
mod sweep;
mod tables;
#[cfg(feature = "tls")]
mod tls;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use engine::env::Clock;
use engine::keys::{Key, KeyRange, OwnedKey};
use engine::lane::Lane;
use engine::{
    Budget, Commit, CommitError, Engine, EngineGauges, Expect, Families, Health, Load, Namespace, ReadError,
    Row, Sink, Snapshot, TableId, TablePath, TableRows, Version,
};

pub use crate::pool::PoolSize;
pub use crate::schema::schema_sql;

use crate::batch::MergeLocks;
use crate::connect::Connector;
use crate::failure::Failure;
use crate::key_bytes::KeyBytes;
use crate::leadership::Barrier;
use crate::mover::Mover;
use crate::places::{Places, SHARED};
use crate::pool::{Pool, SessionLease};
use crate::schema::SchemaName;
use crate::session::{DatabaseSession, Params};

#[derive(Clone)]
pub struct PostgresOptions {
    pub families: Families,
    pub clock: Arc<dyn Clock>,
    /// `postgres://user:password@host:port,host:port/database?sslmode=require`, and perhaps
    /// `&etcd=http://host:2379/namespace/scope,…`, where Patroni's keys are: reads are faster with them.
    pub url: String,
    /// `http://host:port` of Patroni's agents, one for each host and in the same order; or `patroni=` in the URL.
    /// Empty: the host that takes writes leads.
    pub patroni: Vec<String>,
    /// Where everything is kept.
    pub schema: String,
    /// Whether the schema is created if it is missing.
    pub creates_schema: bool,
    /// Of one statement. At its end the connection is given up, and the outcome is read back through another one.
    pub deadline: Duration,
    /// Reads are quick, so they share sessions.
    pub reads: PoolSize,
    /// A write waits for the disk, and those behind it in its session wait too, so they share only under load.
    pub writes: PoolSize,
    /// A scan of several slices has a session for itself.
    pub scans: PoolSize,
    /// From so many rows on, a table gets a relation of its own.
    pub own_relation_row_count_min: u64,
}

impl PostgresOptions {
    pub fn new(url: &str, families: Families, clock: Arc<dyn Clock>) -> PostgresOptions {
        PostgresOptions {
            families,
            clock,
            url: url.to_owned(),
            patroni: Vec::new(),
            schema: "lazulite".to_owned(),
            creates_schema: true,
            deadline: Duration::from_secs(15),
            reads: PoolSize { session_count_max: 4, depth_max: 32, wait_count_max: 4_000 },
            writes: PoolSize { session_count_max: 24, depth_max: 4, wait_count_max: 4_000 },
            scans: PoolSize { session_count_max: 8, depth_max: 1, wait_count_max: 1_000 },
            own_relation_row_count_min: 500_000,
        }
    }
}

/// Why there is no engine. The sentences hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// An option, or the URL, is wrong.
    Invalid(String),
    /// No server that takes writes answers.
    Unreachable(String),
    /// The server answers and does not let us in.
    Refused(String),
    /// The schema is missing, too new, or not ours to use.
    Schema(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Invalid(cause) | ConnectError::Refused(cause) | ConnectError::Schema(cause) => {
                f.write_str(cause)
            }
            ConnectError::Unreachable(cause) => {
                write!(f, "no PostgreSQL server that takes writes is reachable: {cause}")
            }
        }
    }
}

impl std::error::Error for ConnectError {}

/// One front end's share of the engine.
pub struct PostgresEngine {
    front: Arc<FrontEnd>,
}

pub(crate) struct FrontEnd {
    connector: Arc<Connector>,
    reads: Arc<Pool>,
    writes: Arc<Pool>,
    scans: Arc<Pool>,
    families: Families,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    pause_before_repeating: Duration,
    merge_locks: MergeLocks,
    places: Places,
    mover: Mover,
    barrier: Barrier,
    /// Long scans take turns in it.
    slow_lane: Lane,
    /// The greatest version that this front end has seen.
    last_version: AtomicU64,
    commit_count: AtomicU64,
    is_closed: AtomicBool,
}

impl PostgresEngine {
    /// Connects, and creates the schema if it is missing.
    pub async fn connect(options: PostgresOptions) -> Result<PostgresEngine, ConnectError> {
        let schema = SchemaName::parse(&options.schema)?;
        let connector =
            Arc::new(Connector::new(&options.url, &options.patroni, schema, options.clock.clone())?);
        let (client, _, driver) = connector.client().await?;
        let prepared = schema::prepare(&client, &connector.schema, options.creates_schema).await;
        driver.abort();
        prepared?;
        // Missing rights show here, and not with the first request.
        drop(connector.session().await?);
        let pool = |size| Pool::new(connector.clone(), size, options.deadline);
        let front = Arc::new(FrontEnd {
            reads: pool(options.reads),
            writes: pool(options.writes),
            scans: pool(options.scans),
            families: options.families,
            clock: options.clock.clone(),
            deadline: options.deadline,
            pause_before_repeating: Duration::from_millis(20),
            merge_locks: MergeLocks::new(),
            places: Places::default(),
            mover: Mover::new(options.own_relation_row_count_min),
            barrier: Barrier::start(&connector, &options.clock),
            slow_lane: Lane::with_half_of_the_processors(),
            last_version: AtomicU64::new(0),
            commit_count: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            connector,
        });
        tokio::spawn(sweep::run(Arc::downgrade(&front)));
        Ok(PostgresEngine { front })
    }

    /// Removes rows of dropped tables now, and not with the next round.
    #[doc(hidden)]
    pub async fn sweep(&self) {
        self.front.sweep().await;
    }

    /// Moves a table that is large enough into a relation of its own now, and not with the next round. Whether there
    /// was one.
    #[doc(hidden)]
    pub async fn move_large_table(&self) -> bool {
        self.front.move_large_table().await
    }
}

pub(crate) fn version_of(ticks: u64) -> Option<Version> {
    Version::new(ticks)
}

impl FrontEnd {
    /// Whether the last attempts to connect succeeded.
    fn is_reachable(&self) -> bool {
        self.connector.has_leader()
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.now_ticks()).unwrap_or(i64::MAX)
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn last_version(&self) -> u64 {
        self.last_version.load(Ordering::Acquire)
    }

    /// Remembers a version that a commit got.
    fn note(&self, version: Version) -> Version {
        self.last_version.fetch_max(version.ticks(), Ordering::AcqRel);
        self.commit_count.fetch_add(1, Ordering::Relaxed);
        version
    }

    fn check_open(&self) -> Result<(), CommitError> {
        match self.is_closed() {
            true => Err(CommitError::Storage("the engine is closed".to_owned())),
            false => Ok(()),
        }
    }

    /// Returns when what was read through the session may be given out. Others may use the session meanwhile.
    async fn prove(&self, lease: SessionLease) -> Result<(), Failure> {
        let session = lease.session.clone();
        drop(lease);
        self.prove_session(&session).await
    }

    async fn prove_session(&self, session: &DatabaseSession) -> Result<(), Failure> {
        let confirmed = tokio::time::timeout(self.deadline, self.barrier.confirm(session)).await;
        confirmed.unwrap_or(Err(Failure::Unproven))
    }

    /// Whether a read is to be repeated, after a moment, as long as the deadline permits. A session may have ended
    /// long ago without anybody noticing, and a server that no longer leads has a successor that knows more.
    async fn repeats_read(&self, started: Duration, failure: &Failure) -> bool {
        let is_passing = matches!(
            failure,
            Failure::Lost { .. } | Failure::Unproven | Failure::Rejected { retries: true, .. }
        );
        let repeats = is_passing && self.clock.monotonic().saturating_sub(started) < self.deadline;
        if repeats {
            tokio::time::sleep(self.pause_before_repeating).await;
        }
        repeats
    }

    async fn get(&self, table: TableId, key: &KeyBytes) -> Result<Option<Row>, Failure> {
        loop {
            let place = if key.is_long() { SHARED } else { self.places.of(table) };
            let lease = self.reads.lease().await?;
            let at_place = lease.session.at(place, self.deadline / 2).await?;
            let statements = if key.is_long() { &lease.session.statements.long } else { &at_place.row };
            let params: Params<'_> = &[&(table.0 as i64), &key.pk, &key.rk];
            let rows = lease.session.query(&statements.get, params, self.deadline / 2).await?;
            if let Some(elsewhere) = rows.first().map(|row| row.get::<_, i64>(0))
                && elsewhere != place
                && !key.is_long()
            {
                self.places.learn(table, elsewhere);
                continue;
            }
            self.prove(lease).await?;
            return Ok(rows.first().and_then(|row| {
                let version = version_of(row.get::<_, Option<i64>>(1)? as u64)?;
                Some(Row { version, value: Bytes::copy_from_slice(row.get(2)) })
            }));
        }
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        let key = KeyBytes::of(key);
        let started = self.front.clock.monotonic();
        loop {
            match self.front.get(table, &key).await {
                Err(failure) => {
                    // Perhaps the relation went with its table.
                    self.front.places.forget(table);
                    if !self.front.repeats_read(started, &failure).await {
                        return Err(failure.into_read_error());
                    }
                }
                Ok(row) => return Ok(row),
            }
        }
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.front.scan(table, ranges, budget, sink).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.front.check_open()?;
        self.front.commit(commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.front.check_open()?;
        self.front.commit_all(commits).await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.front.check_open()?;
        self.front.create_table(namespace, name, &payload).await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        self.front.check_open()?;
        self.front.drop_table(namespace, name).await
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.front.check_open()?;
        self.front.rename_table(from, to, &payload).await
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        self.front.check_open()?;
        self.front.replace_table(path, expect, &payload, rows).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        Ok(Arc::new(self.front.snapshot().await?))
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.front.check_open()?;
        self.front.load(load).await
    }

    async fn close(&self) {
        self.front.is_closed.store(true, Ordering::Release);
    }

    fn gauges(&self) -> EngineGauges {
        EngineGauges {
            health: match (self.front.is_closed(), self.front.is_reachable()) {
                (true, _) => Health::Closed,
                (_, true) if self.front.connector.space.is_full() => Health::Full,
                (_, true) => Health::Ready,
                (_, false) => Health::NoLeader,
            },
            commit_count: self.front.commit_count.load(Ordering::Relaxed),
            queue_count: self.front.writes.waiting_count() as u64,
            ..EngineGauges::default()
        }
    }
}
