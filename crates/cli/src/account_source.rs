//! Where the server's accounts come from: the environment, the configuration file, the store, the emulator.
//!
//! Promises: the first source that names an account decides its keys, and no error message contains a key. Owns the
//! names of the environment variables. Reading the accounts file itself is the work of `accounts_file`.

use std::path::PathBuf;

use engine_local::LocalEngine;
use protocol::auth::KEY_BYTES_MIN;
use server::Accounts;

use crate::accounts_file::{AccountEntry, AccountsFile};

/// Our own environment variable for accounts.
pub const OWN_VARIABLE: &str = "LAZULITE_ACCOUNTS";
/// Both variables that are read; ours wins over Azurite's.
const VARIABLES: [&str; 2] = [OWN_VARIABLE, "AZURITE_ACCOUNTS"];

/// The variables that are set, each with its text, in order of precedence.
pub fn from_environment() -> impl Iterator<Item = (&'static str, String)> {
    VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
}

/// The emulator's account with its published key, in the form of `LAZULITE_ACCOUNTS`.
pub fn emulator() -> String {
    format!("{}:{}", server::EMULATOR_ACCOUNT, server::EMULATOR_KEY)
}

/// A server without any account is of no use.
pub fn require_any(accounts: &Accounts) -> Result<(), String> {
    match accounts.names().is_empty() {
        true => Err("the server profile needs an account: 'lazulite account add NAME' makes one".into()),
        false => Ok(()),
    }
}

/// The fixed accounts, and those in the store, which may change while the server runs.
#[derive(Clone)]
pub struct AccountSource {
    fixed: Vec<String>,
    /// The data directory, if there is one.
    pub location: Option<PathBuf>,
    rules: AccountRules,
}

/// Which accounts a server accepts, at its start and later.
#[derive(Clone)]
pub struct AccountRules {
    /// The server profile: no emulator's account, and no key that is easy to guess.
    pub is_server: bool,
    /// Why the emulator's published key is refused; `None` if it is not.
    pub well_known_refusal: Option<String>,
}

impl AccountSource {
    /// The environment first, then `configured`, then the store. Without either of the first two, the
    /// emulator's account counts too, except in the server profile.
    pub fn new(
        configured: &[AccountEntry],
        location: Option<PathBuf>,
        rules: AccountRules,
    ) -> Result<AccountSource, String> {
        let mut fixed = Vec::new();
        if let Some((name, text)) = from_environment().next() {
            Accounts::parse(&text).map_err(|error| format!("{name}: {error}"))?;
            fixed.push(text);
        }
        fixed.extend(configured.iter().map(AccountEntry::to_text));
        Ok(AccountSource { fixed, location, rules })
    }

    /// The accounts as they are now. An account that several sources name gets its keys from the first of them. An
    /// account that breaks a rule is an error. `store` is the one in the data directory, if it is open.
    pub fn read(&self, store: Option<&LocalEngine>) -> Result<Accounts, String> {
        let file = match (&self.location, store) {
            (None, _) => AccountsFile::default(),
            (Some(location), Some(store)) => AccountsFile::read_beside(store, location)?,
            (Some(location), None) => AccountsFile::read(location)?,
        };
        self.with_stored(&file.accounts)
    }

    /// The same, with these as the accounts of the store.
    pub fn with_stored(&self, stored: &[AccountEntry]) -> Result<Accounts, String> {
        let mut entries = self.fixed.clone();
        entries.extend(stored.iter().map(AccountEntry::to_text));
        if !self.rules.is_server && self.fixed.is_empty() {
            entries.push(emulator());
        }
        let read = Accounts::read(entries.iter().flat_map(|entry| entry.split(';')));
        read.and_then(|accounts| self.check(accounts)).map_err(|error| {
            match self.location.as_deref().map(AccountsFile::path).filter(|path| path.exists()) {
                Some(path) => format!("{error} (accounts come from {} too)", path.display()),
                None => error,
            }
        })
    }

    fn check(&self, accounts: Accounts) -> Result<Accounts, String> {
        if let Some(refusal) =
            self.rules.well_known_refusal.as_ref().filter(|_| accounts.have_well_known_key())
        {
            return Err(refusal.clone());
        }
        match accounts.weak() {
            Some(name) if self.rules.is_server => Err(format!(
                "the server profile refuses a key of account '{name}': it has fewer than {KEY_BYTES_MIN} bytes or is one \
                 byte repeated; 'lazulite account' makes good ones"
            )),
            _ => Ok(accounts),
        }
    }
}
