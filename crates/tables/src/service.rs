//! `TableService`: each operation of the Table service is one call.
//!
//! Owns: the steps of an operation, from a table's name to the engine's answer. Leaves to others: the rules for keys
//! and values (`limits`), writes (`transaction`), queries (`query`), and authorization.

use std::sync::Arc;

use bytes::Bytes;
use catalogue::Catalogue;
use engine::env::Clock;
use engine::{Commit, CommitError, Engine, Key, Row, TableId, Version};
use protocol::common::AccountName;
use protocol::table::KIND;
use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};

use crate::error::{expectations, from_commit, of_table};
use crate::family::{FAMILY, SYSTEM_FAMILY};
use crate::transaction::Transaction;

/// A request that finds its table replaced under its hands tries again, so often at most.
pub(crate) const ATTEMPT_COUNT_MAX: usize = 10;

pub struct TableService {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalogue: Catalogue,
}

impl TableService {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> TableService {
        TableService { catalogue: Catalogue::new(engine.clone(), clock, &KIND, FAMILY), engine }
    }

    /// The same rules, over the tables that the server itself writes.
    pub fn system(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> TableService {
        TableService { catalogue: Catalogue::new(engine.clone(), clock, &KIND, SYSTEM_FAMILY), engine }
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_its_engine(self) -> TableService {
        TableService { catalogue: self.catalogue.sharing_its_engine(), ..self }
    }

    /// What the service keeps beside its data: names, stored policies, service properties.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub async fn create_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        // The payload keeps the name in the case in which it was given.
        let payload = Bytes::copy_from_slice(name.as_str().as_bytes());
        let created = self.catalogue.create(account, name.as_str(), payload).await?;
        created.map(|_| ()).ok_or_else(|| ErrorCode::TableAlreadyExists.into())
    }

    pub async fn delete_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        let deleted = self.catalogue.delete(account, name.as_str()).await?;
        deleted.map(|_| ()).ok_or_else(|| ErrorCode::ResourceNotFound.into())
    }

    /// The name in the case in which the table was created.
    pub async fn get_table(&self, account: &AccountName, name: &TableName) -> Result<String, ServiceError> {
        let container = self.catalogue.get(account, name.as_str()).await?;
        let container = container.ok_or(ErrorCode::ResourceNotFound)?;
        String::from_utf8(container.payload.into()).map_err(|_| damaged_name())
    }

    /// The entity's version and record, for [`EntityView::open`](crate::EntityView::open). `None` when the entity does
    /// not exist.
    pub async fn get_entity(
        &self,
        account: &AccountName,
        table: &TableName,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Row>, ServiceError> {
        let id = self.table_id(account, table).await?;
        let key = Key { partition: partition_key, row: row_key };
        let found = self.engine.row(id, key).await.map_err(|error| of_table(table, error))?;
        if found.is_none() && self.catalogue.is_shared() {
            return self.get_again(account, table, id, key).await;
        }
        Ok(found)
    }

    /// For a table in which there was nothing: perhaps it is another one by now.
    async fn get_again(
        &self,
        account: &AccountName,
        table: &TableName,
        mut id: TableId,
        key: Key<'_>,
    ) -> Result<Option<Row>, ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let now = self.catalogue.current_id(account, table.as_str(), id).await?;
            let now = now.ok_or(ErrorCode::TableNotFound)?;
            if now == id {
                return Ok(None);
            }
            id = now;
            let found = self.engine.row(id, key).await.map_err(|error| of_table(table, error))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Applies all changes durably, or none. Every written entity gets the returned version.
    pub async fn commit(
        &self,
        account: &AccountName,
        table: &TableName,
        transaction: Transaction,
    ) -> Result<Version, ServiceError> {
        self.commit_with(account, table, transaction, Vec::new()).await
    }

    /// The same, together with commits to elsewhere: all of them happen, or none.
    pub async fn commit_with(
        &self,
        account: &AccountName,
        table: &TableName,
        transaction: Transaction,
        others: Vec<Commit>,
    ) -> Result<Version, ServiceError> {
        let expected = expectations(&transaction.ops);
        let partition: Box<str> = transaction.partition_key().into();
        let mut id = self.table_id(account, table).await?;
        let mut commits = (Commit { table: id, partition, ops: transaction.ops }, others);
        for _ in 0..ATTEMPT_COUNT_MAX {
            let spare = self.catalogue.is_shared().then(|| commits.clone());
            let (commit, others) = commits;
            let result = match others.is_empty() {
                true => self.engine.commit(commit).await,
                false => self.engine.commit_all([vec![commit], others].concat()).await,
            };
            if !matches!(result, Err(CommitError::TableGone)) {
                return result.map_err(|error| from_commit(error, &expected));
            }
            // The table was dropped through another process. The next caller must look its name up again.
            self.catalogue.forget(account, table.as_str());
            // There may be a new one of its name, which whoever created it expects everybody to know.
            let now = self.catalogue.current_id(account, table.as_str(), id).await?;
            let (Some(mut spare), Some(now)) = (spare, now.filter(|now| *now != id)) else {
                return Err(from_commit(CommitError::TableGone, &expected));
            };
            id = now;
            spare.0.table = id;
            commits = spare;
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Whether there is such a table.
    pub async fn check_table(&self, account: &AccountName, table: &TableName) -> Result<(), ServiceError> {
        self.table_id(account, table).await.map(|_| ())
    }

    /// Closes the engine: it finishes accepted writes and refuses further ones.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    pub(crate) async fn table_id(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<TableId, ServiceError> {
        let found = self.catalogue.id_of(account, table.as_str()).await?;
        found.ok_or_else(|| ErrorCode::TableNotFound.into())
    }
}

pub(crate) fn damaged_name() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "the stored name of a table is not text")
}
