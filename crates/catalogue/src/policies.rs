//! Stored access policies of containers. Every signature that names one looks it up.
//!
//! Promises: a changed or removed policy takes effect with the next request, because the row is read each time. Only
//! the parsed policies are cached, for as long as the row's version stays the same.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use engine::{CommitError, Effect, Expect, TableId, Version};
use protocol::ServiceError;
use protocol::common::acl::{read_acl, write_acl};
use protocol::common::{AccountName, StoredPolicy};

use crate::Catalogue;
use crate::error::{damaged_setting, from_commit, from_read};
use crate::name_cache::Ticket;
use crate::setting::{self, Setting};

/// Containers whose parsed policies are cached.
const REMEMBERED_COUNT_MAX: usize = 1_000;

/// Parsed policies by container.
#[derive(Default)]
pub(crate) struct PolicyCache(RwLock<HashMap<TableId, RememberedPolicies>>);

struct RememberedPolicies {
    /// The version of the row that they were parsed from.
    version: Version,
    policies: Arc<[StoredPolicy]>,
}

impl PolicyCache {
    fn find(&self, id: TableId, version: Version) -> Option<Arc<[StoredPolicy]>> {
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        remembered.get(&id).filter(|found| found.version == version).map(|found| found.policies.clone())
    }

    fn remember(&self, id: TableId, version: Version, policies: Arc<[StoredPolicy]>) {
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_COUNT_MAX {
            remembered.clear();
        }
        remembered.insert(id, RememberedPolicies { version, policies });
    }
}

impl Catalogue {
    /// `None` when the container does not exist.
    pub async fn policies(
        &self,
        account: &AccountName,
        container: &str,
    ) -> Result<Option<Arc<[StoredPolicy]>>, ServiceError> {
        let Some(id) = self.certain_ids_of(account, container).await?.map(|ids| ids.identity) else {
            return Ok(None);
        };
        let key = Setting::Policies(id).key();
        let row = self.engine.row(TableId::SETTINGS, key.as_key()).await.map_err(from_read)?;
        let Some(row) = row else { return Ok(Some(Arc::default())) };
        if let Some(policies) = self.policies.find(id, row.version) {
            return Ok(Some(policies));
        }
        let policies = read_acl(&row.value, self.kind.policy_letters).map_err(|_| damaged_setting())?;
        let policies: Arc<[StoredPolicy]> = policies.into();
        self.policies.remember(id, row.version, policies.clone());
        Ok(Some(policies))
    }

    /// Replaces the policies of a container. `false` when the container does not exist.
    pub async fn set_policies(
        &self,
        account: &AccountName,
        container: &str,
        policies: &[StoredPolicy],
    ) -> Result<bool, ServiceError> {
        let since = self.ticket();
        let Some(ids) = self.certain_ids_of(account, container).await? else { return Ok(false) };
        let id = ids.identity;
        let document = Effect::Put(write_acl(policies).into());
        let written = setting::write(&*self.engine, &Setting::Policies(id), Expect::Any, document).await;
        written.map_err(from_commit)?;
        let remains = self.is_same(account, container, id, since).await;
        if !matches!(remains, Ok(true)) {
            self.forget_policies(id).await;
        }
        remains
    }

    /// Whether the name still belongs to the container of this identity.
    async fn is_same(
        &self,
        account: &AccountName,
        container: &str,
        identity: TableId,
        since: Ticket,
    ) -> Result<bool, ServiceError> {
        if !self.is_shared && self.ticket() == since {
            return Ok(true);
        }
        Ok(self.get(account, container).await?.is_some_and(|container| container.ids.identity == identity))
    }

    /// Removes the policies of a deleted container. Nobody can see them any more, so a failure is harmless.
    pub(crate) async fn forget_policies(&self, id: TableId) {
        let setting = Setting::Policies(id);
        let found = self.engine.row(TableId::SETTINGS, setting.key().as_key()).await;
        if !matches!(found, Ok(Some(_))) {
            return;
        }
        let removed: Result<(), CommitError> =
            setting::write(&*self.engine, &setting, Expect::Any, Effect::Delete).await;
        if let Err(error) = removed {
            log::warn!("cannot remove the policies of a deleted container: {error}");
        }
    }
}
