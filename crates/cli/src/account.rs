//! `lazulite account`: adds, lists, rotates, removes and purges accounts, whether a server is running or not.
//!
//! Promises: a key is printed once, when it is made. A new account takes over the data of an earlier one only if the
//! operator says so. Accounts from the environment or the configuration file are not
//! touched. `accounts_file` reads and writes the file; a running server notices changes by itself.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::{account_data, random, store};

/// As many as a key of the live service has.
const KEY_BYTES: usize = 64;
/// Enough to tell two keys apart, too little to use one.
const FINGERPRINT_CHARACTERS: usize = 4;

#[derive(PartialEq, Eq, Debug)]
pub enum AccountCommand {
    Add {
        name: String,
        /// Take over what the store has under this name.
        with_data: bool,
    },
    List,
    Rotate {
        name: String,
        key: u8,
    },
    Remove(String),
    /// Delete what the store has under this name.
    Purge(String),
}

pub fn run(command: AccountCommand, location: &Path) -> Result<(), String> {
    if command == AccountCommand::List {
        for account in &AccountsFile::read(location)?.accounts {
            let key2 = account.key2.as_deref().map_or("none".to_owned(), fingerprint);
            println!("{}  key1 {}  key2 {key2}", account.name, fingerprint(&account.key1));
        }
        return Ok(());
    }
    if let AccountCommand::Add { name, .. } = &command {
        account_data::name(name)?;
        // Only a store gets an accounts file. Making the store first refuses directories that hold something else.
        store::prepare(location)?;
    } else {
        store::require(location)?;
    }
    let _lock = AccountsFile::lock(location)?;
    let mut file = AccountsFile::read(location)?;
    match &command {
        AccountCommand::Purge(name) => return purge(&file, name, location),
        AccountCommand::Add { name, with_data: false } if !file.has(name) => refuse_data(name, location)?,
        _ => {}
    }
    let words = change(&mut file, command)?;
    file.write(location)?;
    // Print new keys only after the file that makes them valid is written.
    println!("{words}");
    Ok(())
}

/// Changes the accounts and returns the text to print.
fn change(file: &mut AccountsFile, command: AccountCommand) -> Result<String, String> {
    match command {
        AccountCommand::List | AccountCommand::Purge(_) => Ok(String::new()),
        AccountCommand::Add { name, .. } => {
            if file.has(&name) {
                return Err(format!("account '{name}' already exists"));
            }
            let (key1, key2) = (new_key()?, new_key()?);
            let words = format!("account {name}\nkey1: {key1}\nkey2: {key2}");
            file.accounts.push(AccountEntry { name, key1, key2: Some(key2) });
            Ok(words)
        }
        AccountCommand::Rotate { name, key } => {
            let account = find(file, &name)?;
            let slot = if key == 1 { &mut account.key1 } else { account.key2.get_or_insert_default() };
            *slot = new_key()?;
            Ok(format!("key{key} of {name}: {slot}"))
        }
        AccountCommand::Remove(name) => {
            find(file, &name)?;
            file.accounts.retain(|account| account.name != name);
            Ok(format!(
                "{name} is removed; its tables, queues and containers stay on the disk until 'lazulite account purge {name}' deletes them"
            ))
        }
    }
}

/// A new account must not find the data of an earlier one by accident.
fn refuse_data(name: &str, location: &Path) -> Result<(), String> {
    let data = account_data::look(location, name)?;
    if data.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the store has {} under the name '{name}': 'lazulite account purge {name}' deletes this, and --with-data gives \
         it to the new account",
        data.described()
    ))
}

fn purge(file: &AccountsFile, name: &str, location: &Path) -> Result<(), String> {
    account_data::name(name)?;
    if file.has(name) {
        return Err(format!("account '{name}' exists: 'lazulite account remove {name}' first"));
    }
    let data = account_data::delete(location, name)?;
    println!("{name}: {} deleted", data.described());
    Ok(())
}

fn find<'a>(file: &'a mut AccountsFile, name: &str) -> Result<&'a mut AccountEntry, String> {
    let found = file.accounts.iter_mut().find(|account| account.name == name);
    found.ok_or_else(|| format!("no account '{name}' was made by 'lazulite account add'"))
}

fn new_key() -> Result<String, String> {
    Ok(STANDARD.encode(random::bytes::<KEY_BYTES>()?))
}

fn fingerprint(key: &str) -> String {
    format!("{}…", key.chars().take(FINGERPRINT_CHARACTERS).collect::<String>())
}
