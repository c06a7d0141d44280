//! An engine that plays tricks on those who use it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use blobs::BlobOptions;
use bytes::Bytes;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{
    Budget, Commit, CommitError, Engine, Expect, Key, KeyRange, OwnedKey, ReadError, Row, Sink, Snapshot,
    TableId, TablePath, TableRows, Version,
};

use crate::support::*;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What happens to a commit.
pub enum Trick {
    Pass,
    Fail,
    /// It happens later, and its caller is told that nobody knows.
    Postpone,
    /// Something else happens first.
    After(Work),
}

/// An engine that plays tricks on its next commits.
#[derive(Clone)]
pub struct TrickEngine {
    inner: Arc<dyn Engine>,
    pub tricks: Arc<Mutex<VecDeque<Trick>>>,
    /// Happens when the next row of a container was read.
    pub after_read: Arc<Mutex<Option<Work>>>,
    /// Happens before the next record of a container is replaced.
    pub before_replacing: Arc<Mutex<Option<Work>>>,
    pub fails_renaming: Arc<AtomicBool>,
    /// Another process has a snapshot.
    pub has_older: Arc<AtomicBool>,
    postponed: Arc<Mutex<Vec<Vec<Commit>>>>,
}

impl TrickEngine {
    fn new(inner: Arc<dyn Engine>) -> TrickEngine {
        TrickEngine {
            inner,
            tricks: Arc::default(),
            after_read: Arc::default(),
            before_replacing: Arc::default(),
            fails_renaming: Arc::default(),
            has_older: Arc::default(),
            postponed: Arc::default(),
        }
    }

    pub fn play(&self, tricks: impl IntoIterator<Item = Trick>) {
        self.tricks.lock().unwrap().extend(tricks);
    }

    /// Lets happen what was postponed.
    pub async fn catch_up(&self) {
        let postponed = std::mem::take(&mut *self.postponed.lock().unwrap());
        for commits in postponed {
            self.inner.commit_all(commits).await.unwrap();
        }
    }
}

#[async_trait]
impl Wrapper for TrickEngine {
    fn inner(&self) -> &dyn Engine {
        &*self.inner
    }

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        let row = self.inner.get(table, key).await;
        let work = match table >= TableId::FIRST {
            true => self.after_read.lock().unwrap().take(),
            false => None,
        };
        if let Some(work) = work {
            work.await;
        }
        row
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        let work = self.before_replacing.lock().unwrap().take();
        if let Some(work) = work {
            work.await;
        }
        self.inner.replace_table(path, expect, payload, rows).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        let inner = self.inner.snapshot().await?;
        Ok(Arc::new(TrickSnapshot { inner, has_older: self.has_older.load(Ordering::Relaxed) }))
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        if self.fails_renaming.load(Ordering::Relaxed) {
            return Err(CommitError::Storage("the disk is tired".to_owned()));
        }
        self.inner.rename_table(from, to, payload).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.commit_all(vec![commit]).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        let trick = self.tricks.lock().unwrap().pop_front();
        match trick {
            None | Some(Trick::Pass) => {}
            Some(Trick::Fail) => return Err(CommitError::Storage("the disk is tired".to_owned())),
            Some(Trick::Postpone) => {
                self.postponed.lock().unwrap().push(commits);
                return Err(CommitError::Unknown("the answer is late".to_owned()));
            }
            Some(Trick::After(work)) => work.await,
        }
        self.inner.commit_all(commits).await
    }
}

struct TrickSnapshot {
    inner: Arc<dyn Snapshot>,
    has_older: bool,
}

#[async_trait]
impl Snapshot for TrickSnapshot {
    fn last_version(&self) -> Option<Version> {
        self.inner.last_version()
    }

    fn may_have_older(&self) -> bool {
        self.has_older
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        self.inner.row_count()
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.inner.scan(table, ranges, budget, sink).await
    }
}

pub async fn tricky_setup(options: BlobOptions) -> (Setup, TrickEngine) {
    let clock = Arc::new(FakeClock::default());
    let inner = Arc::new(MemoryEngine::new(FAMILIES, clock.clone()));
    let engine = TrickEngine::new(inner);
    let setup = setup_on(Arc::new(Wrapped(engine.clone())), memory_contents(), clock, options).await;
    (setup, engine)
}
