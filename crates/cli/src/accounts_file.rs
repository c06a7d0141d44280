//! `accounts.toml` in the data directory: the accounts that `lazulite account` manages, with their keys.
//!
//! Promises: only the file's owner can read it, writers take turns, and no error message quotes a key. A running server
//! polls the file (`serve`), so a change takes effect without a restart.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "accounts.toml";
const LOCK_NAME: &str = "accounts.lock";

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountsFile {
    #[serde(default, rename = "account")]
    pub accounts: Vec<AccountEntry>,
}

/// One account, as this file and the configuration file write it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountEntry {
    pub name: String,
    pub key1: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key2: Option<String>,
}

impl AccountEntry {
    /// `name:key1[:key2]`, the form of the environment variables.
    pub fn to_text(&self) -> String {
        match &self.key2 {
            Some(key2) => format!("{}:{}:{key2}", self.name, self.key1),
            None => format!("{}:{}", self.name, self.key1),
        }
    }
}

impl AccountsFile {
    pub fn path(location: &Path) -> PathBuf {
        location.join(FILE_NAME)
    }

    /// Hold this while reading, changing and writing the file, so that two commands do not undo each other's changes.
    pub fn lock(location: &Path) -> Result<File, String> {
        let path = location.join(LOCK_NAME);
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(false);
        let locked = files::create_as_secret(&mut how).open(&path).and_then(|file| {
            // Whoever can open the file can lock it.
            files::make_secret(&file)?;
            file.lock().map(|()| file)
        });
        locked.map_err(|error| format!("cannot lock {}: {error}", path.display()))
    }

    pub fn has(&self, name: &str) -> bool {
        self.accounts.iter().any(|account| account.name == name)
    }

    /// No file means no accounts.
    pub fn read(location: &Path) -> Result<AccountsFile, String> {
        let path = AccountsFile::path(location);
        match std::fs::read_to_string(&path) {
            // The parser's own message may quote a line, and a line may contain a key.
            Ok(text) => {
                toml::from_str(&text).map_err(|_| format!("{} is not an accounts file", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(AccountsFile::default()),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    pub fn write(&self, location: &Path) -> Result<(), String> {
        let path = AccountsFile::path(location);
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        files::write_secret(&path, text.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}
