//! Settings: a table's access policies and an account's service properties, as bytes that only the caller reads.
//!
//! They are rows of the engine's settings table. Policies are kept by table id, so a table that is created again
//! starts without any; what a crash between a table's end and its policies' end leaves behind is never seen.

use bytes::Bytes;
use engine::{Commit, CommitError, Effect, Expect, Key, Op, OwnedKey, TableId};
use protocol::model::{AccountName, TableName};
use protocol::{ErrorCode, ServiceError};

use crate::error::{from_commit, from_read};
use crate::service::TableService;

const ACL_PARTITION: &str = "table acl";
const PROPERTIES_PARTITION: &str = "service properties";
/// Writers of the same properties that may get in between before one gives up.
const UPDATE_TRIES_MAX: usize = 16;

/// What a row of the settings table is about: for whoever moves settings from one store to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    TableAcl(TableId),
    /// By account name.
    ServiceProperties(Box<str>),
}

impl Setting {
    /// `None`: no row of ours.
    pub fn read(key: Key<'_>) -> Option<Setting> {
        match key.partition {
            ACL_PARTITION => u64::from_str_radix(key.row, 16).ok().map(|id| Setting::TableAcl(TableId(id))),
            PROPERTIES_PARTITION => Some(Setting::ServiceProperties(key.row.into())),
            _ => None,
        }
    }

    pub fn key(&self) -> OwnedKey {
        match self {
            Setting::TableAcl(id) => Key::new(ACL_PARTITION, &acl_row(*id)).into(),
            Setting::ServiceProperties(account) => Key::new(PROPERTIES_PARTITION, account).into(),
        }
    }
}

impl TableService {
    /// `None` when none were ever set.
    pub async fn table_acl(
        &self,
        account: &AccountName,
        table: &TableName,
    ) -> Result<Option<Bytes>, ServiceError> {
        let id = self.table_id(account, table).await?;
        let row =
            self.engine.get(TableId::SETTINGS, Key { partition: ACL_PARTITION, row: &acl_row(id) }).await;
        Ok(row.map_err(from_read)?.map(|row| row.value))
    }

    pub async fn set_table_acl(
        &self,
        account: &AccountName,
        table: &TableName,
        acl: Bytes,
    ) -> Result<(), ServiceError> {
        let since = self.ticket();
        let id = self.table_id(account, table).await?;
        self.put_setting(ACL_PARTITION, &acl_row(id), Expect::Any, Effect::Put(acl)).await?;
        let unchanged = self.check_unchanged(account, table, id, since).await;
        if unchanged.is_err() {
            self.forget_table_acl(id).await;
        }
        unchanged
    }

    /// Tidies up after a table is gone. Nobody can see its policies any more, so a failure harms nobody.
    pub(crate) async fn forget_table_acl(&self, id: TableId) {
        let row = acl_row(id);
        let found = self.engine.get(TableId::SETTINGS, Key { partition: ACL_PARTITION, row: &row }).await;
        if let Ok(Some(_)) = found
            && let Err(error) = self.put_setting(ACL_PARTITION, &row, Expect::Any, Effect::Delete).await
        {
            log::warn!("the policies of a deleted table stay behind: {error}");
        }
    }

    /// `None` when none were ever set.
    pub async fn service_properties(&self, account: &AccountName) -> Result<Option<Bytes>, ServiceError> {
        let key = Key { partition: PROPERTIES_PARTITION, row: account.as_str() };
        Ok(self.engine.get(TableId::SETTINGS, key).await.map_err(from_read)?.map(|row| row.value))
    }

    /// Changes what is there into what `change` makes of it, as one step.
    pub async fn update_service_properties(
        &self,
        account: &AccountName,
        change: impl Fn(Option<&[u8]>) -> Result<Bytes, ServiceError> + Send,
    ) -> Result<Bytes, ServiceError> {
        let key = Key { partition: PROPERTIES_PARTITION, row: account.as_str() };
        for _ in 0..UPDATE_TRIES_MAX {
            let old = self.engine.get(TableId::SETTINGS, key).await.map_err(from_read)?;
            let new = change(old.as_ref().map(|row| &row.value[..]))?;
            let expect = old.map_or(Expect::Absent, |row| Expect::Exactly(row.version));
            match self.put_setting(key.partition, key.row, expect, Effect::Put(new.clone())).await {
                Err(error) if error.operation.is_some() => continue,
                outcome => return outcome.map(|()| new),
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// An error with an operation's index is a condition that failed.
    async fn put_setting(
        &self,
        partition: &str,
        row: &str,
        expect: Expect,
        effect: Effect,
    ) -> Result<(), ServiceError> {
        let op = Op { row: row.into(), expect, effect };
        let outcome: Result<_, CommitError> =
            self.engine.commit(Commit::one(TableId::SETTINGS, partition, op)).await;
        outcome.map(|_| ()).map_err(|error| from_commit(error, &[expect]))
    }
}

fn acl_row(id: TableId) -> String {
    format!("{:016x}", id.0)
}
