//! Engines around engines: a wrapper changes the calls that it is about and passes on all others.
//!
//! Used by everything that stands between a service and its engine to fail, count, delay or falsify calls. Leaves to others
//! what is done to a call.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    Budget, Commit, CommitError, Engine, EngineGauges, Expect, Key, KeyRange, Load, Namespace, OwnedKey,
    ReadError, Row, Sink, Snapshot, TableId, TablePath, TableRows, Version,
};

/// An engine that passes every call on to another one, except those that its author writes.
#[async_trait]
pub trait Wrapper: Send + Sync + 'static {
    fn inner(&self) -> &dyn Engine;

    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        self.inner().get(table, key).await
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.inner().scan(table, ranges, budget, sink).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.inner().commit(commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.inner().commit_all(commits).await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.inner().create_table(namespace, name, payload).await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        self.inner().drop_table(namespace, name).await
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.inner().rename_table(from, to, payload).await
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        self.inner().replace_table(path, expect, payload, rows).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        self.inner().snapshot().await
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.inner().load(load).await
    }

    async fn close(&self) {
        self.inner().close().await;
    }

    fn gauges(&self) -> EngineGauges {
        self.inner().gauges()
    }
}

/// A wrapper as the engine that it is.
pub struct Wrapped<W>(pub W);

#[async_trait]
impl<W: Wrapper> Engine for Wrapped<W> {
    async fn get(&self, table: TableId, key: Key<'_>) -> Result<Option<Row>, ReadError> {
        self.0.get(table, key).await
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        self.0.scan(table, ranges, budget, sink).await
    }

    async fn commit(&self, commit: Commit) -> Result<Version, CommitError> {
        self.0.commit(commit).await
    }

    async fn commit_all(&self, commits: Vec<Commit>) -> Result<Version, CommitError> {
        self.0.commit_all(commits).await
    }

    async fn create_table(
        &self,
        namespace: Namespace<'_>,
        name: &str,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.0.create_table(namespace, name, payload).await
    }

    async fn drop_table(&self, namespace: Namespace<'_>, name: &str) -> Result<TableId, CommitError> {
        self.0.drop_table(namespace, name).await
    }

    async fn rename_table(
        &self,
        from: TablePath<'_>,
        to: TablePath<'_>,
        payload: Bytes,
    ) -> Result<TableId, CommitError> {
        self.0.rename_table(from, to, payload).await
    }

    async fn replace_table(
        &self,
        path: TablePath<'_>,
        expect: Expect,
        payload: Bytes,
        rows: TableRows,
    ) -> Result<TableId, CommitError> {
        self.0.replace_table(path, expect, payload, rows).await
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>, ReadError> {
        self.0.snapshot().await
    }

    async fn load(&self, load: Load) -> Result<(), CommitError> {
        self.0.load(load).await
    }

    async fn close(&self) {
        self.0.close().await;
    }

    fn gauges(&self) -> EngineGauges {
        self.0.gauges()
    }
}
