//! An account's service properties, and a cache of its CORS rules, which most requests need.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use engine::{CommitError, Effect, Expect, TableId};
use protocol::common::AccountName;
use protocol::common::cors::CorsRule;
use protocol::common::service_properties::{PropertiesUpdate, ServiceProperties};
use protocol::{ErrorCode, ServiceError};

use crate::error::{damaged_setting, from_commit, from_read};
use crate::setting::{self, Setting};
use crate::{CACHE_AGE_MAX, Catalogue};

/// How often an update is tried again when another writer was faster.
const UPDATE_TRIES_MAX: usize = 16;

/// Each account's CORS rules: at most one entry per account.
#[derive(Default)]
pub(crate) struct RuleCache(RwLock<BTreeMap<AccountName, RememberedRules>>);

struct RememberedRules {
    at: Duration,
    rules: Arc<[CorsRule]>,
}

impl RuleCache {
    fn find(&self, account: &AccountName, now: Duration) -> Option<Arc<[CorsRule]>> {
        let accounts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let RememberedRules { at, rules } = accounts.get(account)?;
        (now.saturating_sub(*at) <= CACHE_AGE_MAX).then(|| rules.clone())
    }

    fn remember(&self, account: &AccountName, rules: Arc<[CorsRule]>, now: Duration) {
        let mut accounts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Rules that were read before a change must not replace those that the change brought.
        if accounts.get(account).is_some_and(|remembered| remembered.at > now) {
            return;
        }
        accounts.insert(account.clone(), RememberedRules { at: now, rules });
    }
}

impl Catalogue {
    pub async fn properties(&self, account: &AccountName) -> Result<ServiceProperties, ServiceError> {
        let key = self.properties_setting(account).key();
        let row = self.engine.get(TableId::SETTINGS, key.as_key()).await.map_err(from_read)?;
        decode(row.as_ref().map(|row| &row.value[..]))
    }

    /// Changes the properties that the update names, in one atomic step.
    pub async fn update_properties(
        &self,
        account: &AccountName,
        update: PropertiesUpdate,
    ) -> Result<(), ServiceError> {
        let setting = self.properties_setting(account);
        let key = setting.key();
        for _ in 0..UPDATE_TRIES_MAX {
            let old = self.engine.get(TableId::SETTINGS, key.as_key()).await.map_err(from_read)?;
            let mut properties = decode(old.as_ref().map(|row| &row.value[..]))?;
            properties.apply(update.clone());
            let expect = old.map_or(Expect::Absent, |row| Expect::Exactly(row.version));
            let document = Effect::Put(properties.to_stored().into());
            match setting::write(&*self.engine, &setting, expect, document).await {
                Ok(()) => {
                    self.rules.remember(account, properties.cors.into(), self.clock.monotonic());
                    return Ok(());
                }
                // Another writer was faster: start over from the current properties.
                Err(CommitError::Precondition { .. }) => {}
                Err(other) => return Err(from_commit(other)),
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Whether the account has set its properties.
    pub async fn has_properties(&self, account: &AccountName) -> Result<bool, ServiceError> {
        let key = self.properties_setting(account).key();
        let row = self.engine.get(TableId::SETTINGS, key.as_key()).await.map_err(from_read)?;
        Ok(row.is_some())
    }

    /// Gives the account the properties of a new one.
    pub(crate) async fn delete_properties(&self, account: &AccountName) -> Result<(), ServiceError> {
        let setting = self.properties_setting(account);
        setting::write(&*self.engine, &setting, Expect::Any, Effect::Delete).await.map_err(from_commit)
    }

    /// The account's CORS rules, from the cache if they were read recently.
    pub async fn cors_rules(&self, account: &AccountName) -> Result<Arc<[CorsRule]>, ServiceError> {
        let now = self.clock.monotonic();
        if let Some(rules) = self.rules.find(account, now) {
            return Ok(rules);
        }
        let rules: Arc<[CorsRule]> = self.properties(account).await?.cors.into();
        self.rules.remember(account, rules.clone(), now);
        Ok(rules)
    }

    fn properties_setting(&self, account: &AccountName) -> Setting {
        Setting::ServiceProperties(self.namespace(account).partition().into())
    }
}

fn decode(stored: Option<&[u8]>) -> Result<ServiceProperties, ServiceError> {
    match stored {
        None => Ok(ServiceProperties::default()),
        Some(stored) => ServiceProperties::from_stored(stored).ok_or_else(damaged_setting),
    }
}
