//! How a running server learns of accounts that `lazulite account` has changed, without a restart.
//!
//! Promises: a change counts within a second. A source that cannot be read leaves the accounts as they were, and is complained
//! of once. Leaves to others: the file (`accounts_file`), the rows (`engine_accounts`), the rules (`account_source`).

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use engine_local::LocalEngine;
use server::{Accounts, Current};

use crate::account_source::{self, AccountSource};
use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::engine_accounts;
use crate::seal::AccountsKey;

/// How often a server looks. Reading and applying a change takes part of the second, too.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

pub struct AccountWatch {
    source: AccountSource,
    store: WatchedStore,
    /// The stamp of what was read last.
    seen: Option<u64>,
}

enum WatchedStore {
    Nowhere,
    Directory(Arc<LocalEngine>),
    Engine { engine: Arc<dyn Engine>, key: Option<AccountsKey> },
}

impl AccountWatch {
    /// Returns the accounts as they are now. Without a store they never change.
    pub fn of_directory(
        source: AccountSource,
        store: Option<Arc<LocalEngine>>,
    ) -> Result<(AccountWatch, Accounts), String> {
        // Take the stamp before reading the file, so that a change in between is noticed on the next check.
        let seen = store.as_deref().and_then(AccountsFile::stamp);
        let accounts = source.read(store.as_deref())?;
        let store = store.map_or(WatchedStore::Nowhere, WatchedStore::Directory);
        Ok((AccountWatch { source, store, seen }, accounts))
    }

    pub async fn of_engine(
        source: AccountSource,
        engine: Arc<dyn Engine>,
        key: Option<AccountsKey>,
    ) -> Result<(AccountWatch, Accounts), String> {
        let mut watch = AccountWatch { source, store: WatchedStore::Engine { engine, key }, seen: None };
        watch.seen = watch.stamp().await?;
        let accounts = watch.read().await?;
        account_source::require_any(&accounts)?;
        Ok((watch, accounts))
    }

    /// Never ends, unless there is nothing to watch.
    pub async fn run(mut self, accounts: Arc<Current<Accounts>>) {
        if matches!(self.store, WatchedStore::Nowhere) {
            return;
        }
        let mut complained_of = None;
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            // An engine that does not answer says so itself.
            let Ok(now) = self.stamp().await else { continue };
            if now == self.seen {
                continue;
            }
            match self.read().await {
                Ok(read) => {
                    accounts.replace(read);
                    self.seen = now;
                }
                // Say it once for each change, but keep trying: the cause may be elsewhere.
                Err(error) if complained_of != Some(now) => {
                    log::error!("the accounts stay as they were: {error}");
                    complained_of = Some(now);
                }
                Err(_) => {}
            }
        }
    }

    async fn stamp(&self) -> Result<Option<u64>, String> {
        match &self.store {
            WatchedStore::Nowhere => Ok(None),
            WatchedStore::Directory(store) => Ok(AccountsFile::stamp(store)),
            WatchedStore::Engine { engine, .. } => {
                let stamp = engine_accounts::stamp(&**engine).await;
                stamp.map(|stamp| stamp.map(|version| version.ticks())).map_err(|error| error.to_string())
            }
        }
    }

    async fn read(&self) -> Result<Accounts, String> {
        match &self.store {
            WatchedStore::Nowhere => self.source.read(None),
            WatchedStore::Directory(store) => self.source.read(Some(store)),
            WatchedStore::Engine { engine, key } => {
                let stored = engine_accounts::read(&**engine, key.as_ref()).await?;
                let entries: Vec<AccountEntry> = stored.into_iter().map(|account| account.entry).collect();
                self.source.with_stored(&entries)
            }
        }
    }
}
