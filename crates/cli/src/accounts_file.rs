//! `accounts.toml` in the data directory: the accounts that `lazulite account` manages, with their keys.
//!
//! ```text
//! # checksum 89abcdef (delete this line if you edit the file)
//! [[account]]
//! …
//! ```
//!
//! Promises: only the file's owner can read it, writers take turns, and no error message quotes a key. A file that does
//! not match its checksum (CRC-32 of everything after the first line) is refused: one flipped bit in a key would lock an
//! account out, or let another key in. A file without that line was written by hand and is taken as it is. A running
//! server polls the file (`serve`), so a change takes effect without a restart.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use engine_local::LocalEngine;
use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "accounts.toml";
const LOCK_NAME: &str = "accounts.lock";
/// Enough for a hundred thousand accounts.
const BYTES_MAX: usize = 32 * 1024 * 1024;
const CHECKSUM_START: &str = "# checksum ";
const CHECKSUM_END: &str = " (delete this line if you edit the file)";

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
    /// `None`: not of the form that `to_text` has.
    pub fn from_text(text: &str) -> Option<AccountEntry> {
        let mut fields = text.split(':').map(str::to_owned);
        let (name, key1, key2) = (fields.next()?, fields.next()?, fields.next());
        fields.next().is_none().then_some(AccountEntry { name, key1, key2 })
    }

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
        AccountsFile::take(std::fs::read(AccountsFile::path(location)), location)
    }

    /// Reads the file of a store that is open, even if another directory is at its path by now: that one's accounts have
    /// no business with this store.
    pub fn read_beside(store: &LocalEngine, location: &Path) -> Result<AccountsFile, String> {
        AccountsFile::take(store.read_beside(FILE_NAME, BYTES_MAX), location)
    }

    /// A number that changes with the file of an open store; `None` if there is no file.
    pub fn stamp(store: &LocalEngine) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        store.read_beside(FILE_NAME, BYTES_MAX).ok()?.hash(&mut hasher);
        Some(hasher.finish())
    }

    fn take(read: io::Result<Vec<u8>>, location: &Path) -> Result<AccountsFile, String> {
        let path = AccountsFile::path(location);
        match read {
            Ok(bytes) => AccountsFile::parse(&bytes).map_err(|words| format!("{} {words}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AccountsFile::default()),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    /// The error continues a sentence that begins with the file's name.
    fn parse(bytes: &[u8]) -> Result<AccountsFile, &'static str> {
        let foreign = "is not an accounts file";
        let text = std::str::from_utf8(bytes).map_err(|_| foreign)?;
        let is_whole = || text.split_once('\n').is_some_and(|(_, rest)| with_checksum(rest) == text);
        if text.starts_with(CHECKSUM_START) && !is_whole() {
            return Err(
                "does not match its checksum: if you edited it, delete its first line; if not, it is damaged, \
                        so replace it by a copy",
            );
        }
        // The parser's own message may quote a line, and a line may contain a key.
        toml::from_str(text).map_err(|_| foreign)
    }

    pub fn write(&self, location: &Path) -> Result<(), String> {
        let path = AccountsFile::path(location);
        files::write_secret(&path, self.to_text()?.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn to_text(&self) -> Result<String, String> {
        toml::to_string(self).map(|text| with_checksum(&text)).map_err(|error| error.to_string())
    }
}

fn with_checksum(text: &str) -> String {
    format!("{CHECKSUM_START}{:08x}{CHECKSUM_END}\n{text}", crc32fast::hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_found_or_changes_nothing() {
        let entry = |name: &str| AccountEntry {
            name: name.to_owned(),
            key1: "c2VjcmV0".to_owned(),
            key2: Some("bW9yZSBzZWNyZXQ=".to_owned()),
        };
        let file = AccountsFile { accounts: vec![entry("first"), entry("second")] };
        let whole = file.to_text().unwrap();
        let mut refused_count = 0;
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                match AccountsFile::parse(&bytes) {
                    Ok(read) => assert!(read == file, "byte {at}, bit {bit}"),
                    Err(_) => refused_count += 1,
                }
            }
        }
        assert!(refused_count > whole.len() * 6, "{refused_count}");
        for length in CHECKSUM_START.len()..whole.len() {
            assert!(AccountsFile::parse(&whole.as_bytes()[..length]).is_err(), "cut at {length}");
        }
        // Edited by hand: refused until the first line is deleted.
        let edited = whole.replace("second", "other0");
        assert!(
            AccountsFile::parse(edited.as_bytes())
                .is_err_and(|words| words.contains("delete its first line"))
        );
        let accepted = AccountsFile::parse(edited.split_once('\n').unwrap().1.as_bytes());
        assert!(accepted.is_ok_and(|read| read.has("other0")));
    }
}
