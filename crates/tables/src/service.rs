//! `TableService`: every operation of the Table service as one call.

use std::sync::Arc;

use bytes::Bytes;
use engine::env::Clock;
use engine::{Commit, CommitError, Engine, Key, Row, TableId, TableRecord, Version};
use protocol::model::{AccountName, TableName};
use protocol::{ErrorCode, ServiceError};

use crate::catalogue::{Catalogue, Ticket};
use crate::error::{expectations, from_commit, from_read, of_table};
use crate::family::namespace;
use crate::transaction::Transaction;

pub struct TableService {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    catalogue: Catalogue,
}

impl TableService {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> TableService {
        TableService { engine, clock, catalogue: Catalogue::default() }
    }

    pub async fn create_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        let key = catalogue_key(account, name);
        let _changing = self.catalogue.changing(&key);
        // The payload keeps the case that was given; the key does not.
        let payload = Bytes::copy_from_slice(name.as_str().as_bytes());
        match self.engine.create_table(namespace(account), &name.to_lower(), payload).await {
            Ok(_) => Ok(()),
            Err(CommitError::Precondition { .. }) => Err(ErrorCode::TableAlreadyExists.into()),
            Err(other) => Err(from_commit(other, &[])),
        }
    }

    pub async fn delete_table(&self, account: &AccountName, name: &TableName) -> Result<(), ServiceError> {
        let key = catalogue_key(account, name);
        let changing = self.catalogue.changing(&key);
        let dropped = self.engine.drop_table(namespace(account), &name.to_lower()).await;
        drop(changing);
        match dropped {
            Ok(id) => {
                self.forget_table_acl(id).await;
                Ok(())
            }
            Err(CommitError::Precondition { .. }) => Err(ErrorCode::ResourceNotFound.into()),
            Err(other) => Err(from_commit(other, &[])),
        }
    }

    /// The name as it was created.
    pub async fn get_table(&self, account: &AccountName, name: &TableName) -> Result<String, ServiceError> {
        let lower = name.to_lower();
        let key = Key { partition: &namespace(account).partition(), row: &lower };
        let row = self.engine.get(TableId::CATALOGUE, key).await.map_err(from_read)?;
        let row = row.ok_or(ErrorCode::ResourceNotFound)?;
        let record = TableRecord::read(&row.value).ok_or_else(damaged_catalogue)?;
        String::from_utf8(record.payload.to_vec()).map_err(|_| damaged_catalogue())
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
            self.catalogue.forget(&catalogue_key(account, table));
        }
        result.map_err(|error| from_commit(error, &expected))
    }

    /// Finishes what was accepted and takes no more writes.
    pub async fn close(&self) {
        self.engine.close().await;
    }

    pub(crate) async fn table_id(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<TableId, ServiceError> {
        let key = catalogue_key(account, table);
        let now = self.clock.monotonic();
        if let Some(id) = self.catalogue.find(&key, now) {
            return Ok(id);
        }
        let ticket = self.catalogue.ticket();
        let id = self.look_up(account, table).await?.ok_or(ErrorCode::TableNotFound)?;
        self.catalogue.remember(&key, id, now, ticket);
        Ok(id)
    }

    /// A moment to show to [`TableService::check_unchanged`] later.
    pub(crate) fn ticket(&self) -> Ticket {
        self.catalogue.ticket()
    }

    /// Whether the table that was read since then is still there. A table that is dropped loses its rows bit by bit,
    /// so what a scan saw of it meanwhile may be a part of it.
    pub(crate) async fn check_unchanged(
        &self,
        account: &AccountName,
        table: &TableName,
        id: TableId,
        since: Ticket,
    ) -> Result<(), ServiceError> {
        if self.catalogue.ticket() == since || self.look_up(account, table).await? == Some(id) {
            return Ok(());
        }
        Err(ErrorCode::TableNotFound.into())
    }

    async fn look_up(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<Option<TableId>, ServiceError> {
        let lower = table.to_lower();
        let key = Key { partition: &namespace(account).partition(), row: &lower };
        let found = self.engine.get(TableId::CATALOGUE, key).await;
        let Some(row) = found.map_err(from_read)? else { return Ok(None) };
        Ok(Some(TableRecord::read(&row.value).ok_or_else(damaged_catalogue)?.id))
    }
}

fn catalogue_key(account: &AccountName, table: &TableName) -> String {
    let mut key = String::with_capacity(account.as_str().len() + 1 + table.as_str().len());
    key.push_str(account.as_str());
    key.push('/');
    key.extend(table.as_str().chars().map(|character| character.to_ascii_lowercase()));
    key
}

pub(crate) fn damaged_catalogue() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "a catalogue record does not decode")
}
