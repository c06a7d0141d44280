//! `TableService`: every operation of the Table service as one call.

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
use crate::family::FAMILY;
use crate::transaction::Transaction;

pub struct TableService {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalogue: Catalogue,
}

impl TableService {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> TableService {
        TableService { catalogue: Catalogue::new(engine.clone(), clock, &KIND, FAMILY), engine }
    }

    /// What the service keeps beside its data: names, stored policies, service properties.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub async fn create_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        // The payload keeps the case that was given.
        let payload = Bytes::copy_from_slice(name.as_str().as_bytes());
        let created = self.catalogue.create(account, name.as_str(), payload).await?;
        created.map(|_| ()).ok_or_else(|| ErrorCode::TableAlreadyExists.into())
    }

    pub async fn delete_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        let deleted = self.catalogue.delete(account, name.as_str()).await?;
        deleted.map(|_| ()).ok_or_else(|| ErrorCode::ResourceNotFound.into())
    }

    /// The name as it was created.
    pub async fn get_table(&self, account: &AccountName, name: &TableName) -> Result<String, ServiceError> {
        let container = self.catalogue.get(account, name.as_str()).await?;
        let container = container.ok_or(ErrorCode::ResourceNotFound)?;
        String::from_utf8(container.payload.into()).map_err(|_| damaged_name())
    }

    /// The entity's version and record, to be read with [`EntityView::open`](crate::EntityView::open). `None` when
    /// there is no such entity.
    pub async fn get_entity(
        &self,
        account: &AccountName,
        table: &TableName,
        partition_key: &str,
        row_key: &str,
    ) -> Result<Option<Row>, ServiceError> {
        let id = self.table_id(account, table).await?;
        let key = Key { partition: partition_key, row: row_key };
        self.engine.get(id, key).await.map_err(|error| of_table(table, error))
    }

    /// All changes happen, durably, or none. Each written entity gets the version returned.
    pub async fn commit(
        &self,
        account: &AccountName,
        table: &TableName,
        transaction: Transaction,
    ) -> Result<Version, ServiceError> {
        let expected = expectations(&transaction.ops);
        let partition = transaction.partition_key().into();
        let id = self.table_id(account, table).await?;
        let result = self.engine.commit(Commit { table: id, partition, ops: transaction.ops }).await;
        if matches!(result, Err(CommitError::TableGone)) {
            // Dropped elsewhere: the next caller looks the name up again.
            self.catalogue.forget(account, table.as_str());
        }
        result.map_err(|error| from_commit(error, &expected))
    }

    /// Closes the engine: finishes what was accepted and takes no more writes.
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
