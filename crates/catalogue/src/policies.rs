//! Stored access policies of containers: looked up for every signature that names one, read once.
//!
//! Promises: a policy that was changed or removed counts from the next request on, because the row is asked for each time;
//! only its text is not read again while the row is the same.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use engine::{CommitError, Effect, Expect, TableId, Version};
use protocol::ServiceError;
use protocol::common::acl::{read_acl, write_acl};
use protocol::common::{AccountName, StoredPolicy};

use crate::Catalogue;
use crate::error::{damaged_setting, from_commit, from_read};
use crate::setting::{self, Setting};

/// Containers whose policies are kept as values.
const REMEMBERED_COUNT_MAX: usize = 1_000;

/// Policies as values, by container, with the version of the row that they were read from.
#[derive(Default)]
pub struct PolicyCache(RwLock<HashMap<TableId, (Version, Arc<[StoredPolicy]>)>>);

impl PolicyCache {
    fn find(&self, id: TableId, version: Version) -> Option<Arc<[StoredPolicy]>> {
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        remembered.get(&id).filter(|(of, _)| *of == version).map(|(_, policies)| policies.clone())
    }

    fn remember(&self, id: TableId, version: Version, policies: Arc<[StoredPolicy]>) {
        let mut remembered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_COUNT_MAX {
            remembered.clear();
        }
        remembered.insert(id, (version, policies));
    }
}

impl Catalogue {
    /// `None` when there is no such container.
    pub async fn policies(
        &self,
        account: &AccountName,
        container: &str,
    ) -> Result<Option<Arc<[StoredPolicy]>>, ServiceError> {
        let Some(id) = self.id_of(account, container).await? else { return Ok(None) };
        let key = Setting::Policies(id).key();
        let row = self.engine.get(TableId::SETTINGS, key.as_key()).await.map_err(from_read)?;
        let Some(row) = row else { return Ok(Some(Arc::default())) };
        if let Some(policies) = self.policies.find(id, row.version) {
            return Ok(Some(policies));
        }
        let policies = read_acl(&row.value, self.kind.policy_letters).map_err(|_| damaged_setting())?;
        let policies: Arc<[StoredPolicy]> = policies.into();
        self.policies.remember(id, row.version, policies.clone());
        Ok(Some(policies))
    }

    /// Replaces the policies of a container. `false` when there is no such container.
    pub async fn set_policies(
        &self,
        account: &AccountName,
        container: &str,
        policies: &[StoredPolicy],
    ) -> Result<bool, ServiceError> {
        let since = self.ticket();
        let Some(id) = self.id_of(account, container).await? else { return Ok(false) };
        let document = Effect::Put(write_acl(policies).into());
        let written = setting::write(&*self.engine, &Setting::Policies(id), Expect::Any, document).await;
        written.map_err(from_commit)?;
        let unchanged = self.is_unchanged(account, container, id, since).await;
        if !matches!(unchanged, Ok(true)) {
            self.forget_policies(id).await;
        }
        unchanged
    }

    /// Tidies up after a container is gone. Nobody can see its policies any more, so a failure harms nobody.
    pub(crate) async fn forget_policies(&self, id: TableId) {
        let setting = Setting::Policies(id);
        let found = self.engine.get(TableId::SETTINGS, setting.key().as_key()).await;
        if !matches!(found, Ok(Some(_))) {
            return;
        }
        let removed: Result<(), CommitError> =
            setting::write(&*self.engine, &setting, Expect::Any, Effect::Delete).await;
        if let Err(error) = removed {
            log::warn!("the policies of a deleted container stay behind: {error}");
        }
    }
}
