//! Accounts that live in the engine, for servers without a directory of their own.
//!
//! Promises: a change of an account is one commit, which also moves the row that servers watch: so each of them notices
//! within a second, and two commands at once do not undo each other's changes. No message contains a key.
//! Leaves to others: the seal (`seal`), what a command changes (`account`).

use engine::{
    Budget, Commit, CommitError, Effect, Engine, Expect, Flow, Key, Op, OwnedKey, ReadError, Sink, TableId,
    Version,
};

use catalogue::Setting;

use crate::accounts_file::AccountEntry;
use crate::place::{EngineAddress, KEY_VARIABLE};
use crate::random;
use crate::seal::AccountsKey;

/// An account as it is stored.
pub struct StoredAccount {
    pub entry: AccountEntry,
    pub version: Version,
}

/// Changes with every change of an account; `None`: there never was any.
pub async fn stamp(engine: &dyn Engine) -> Result<Option<Version>, ReadError> {
    let row = engine.get(TableId::SETTINGS, Setting::AccountsChange.key().as_key()).await?;
    Ok(row.map(|row| row.version))
}

/// All accounts. Without a key there may be none.
pub async fn read(engine: &dyn Engine, key: Option<&AccountsKey>) -> Result<Vec<StoredAccount>, String> {
    let mut sealed = Sealed(Vec::new());
    let ranges = [Setting::accounts_range()];
    let scanned = engine.scan(TableId::SETTINGS, &ranges, Budget::UNBOUNDED, &mut sealed).await;
    scanned.map_err(|error| format!("the accounts cannot be read: {error}"))?;
    if sealed.0.is_empty() {
        return Ok(Vec::new());
    }
    let key = key.ok_or_else(|| {
        format!("the engine keeps accounts, and {KEY_VARIABLE} (or accounts-key in the configuration file) is missing")
    })?;
    let open = |(name, version, bytes): (String, Version, Vec<u8>)| {
        let text = key.open(&name, &bytes);
        let entry = text.as_deref().and_then(AccountEntry::from_text).filter(|entry| entry.name == name);
        let wrong = || {
            format!("account '{name}' was sealed with another key than {KEY_VARIABLE}, or its row is damaged")
        };
        entry.map(|entry| StoredAccount { entry, version }).ok_or_else(wrong)
    };
    sealed.0.into_iter().map(open).collect()
}

/// Needed for every change.
pub fn key_of(address: &EngineAddress) -> Result<&AccountsKey, String> {
    address.accounts_key.as_ref().ok_or_else(|| {
        format!(
            "accounts in an engine are sealed with a key of your own: set {KEY_VARIABLE} (or accounts-key in the \
             configuration file) for all servers and commands, to what 'openssl rand -base64 32' prints"
        )
    })
}

/// Stores an account, or removes it. `false`: it is no longer as `seen`.
pub async fn put(
    engine: &dyn Engine,
    key: &AccountsKey,
    name: &str,
    seen: Option<Version>,
    entry: Option<&AccountEntry>,
) -> Result<bool, String> {
    let effect = match entry {
        Some(entry) => Effect::Put(key.seal(name, &entry.to_text())?.into()),
        None => Effect::Delete,
    };
    let expect = seen.map_or(Expect::Absent, Expect::Exactly);
    let OwnedKey { partition, row } = Setting::Account(name.into()).key();
    let changed = Op {
        row: Setting::AccountsChange.key().row,
        expect: Expect::Any,
        effect: Effect::Put(random::bytes::<8>()?.to_vec().into()),
    };
    let ops = vec![Op { row, expect, effect }, changed];
    match engine.commit(Commit { table: TableId::SETTINGS, partition, ops }).await {
        Ok(_) => Ok(true),
        Err(CommitError::Precondition { .. }) => Ok(false),
        Err(error @ CommitError::Unknown(_)) => Err(format!(
            "the account may have been changed or not, because the engine's answer was lost: look with 'lazulite account \
             list', and rotate its keys again if they were to change ({error})"
        )),
        Err(error) => Err(format!("the account was not changed: {error}")),
    }
}

struct Sealed(Vec<(String, Version, Vec<u8>)>);

impl Sink for Sealed {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if let Some(Setting::Account(name)) = Setting::read(key) {
            self.0.push((name.into(), version, value.to_vec()));
        }
        Flow::Continue
    }
}
