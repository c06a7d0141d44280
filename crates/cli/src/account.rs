//! `lazulite account`: adds, lists, rotates and removes accounts, whether a server is running or not.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::common::AccountName;

use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::serve;

/// As long as the live service's keys.
const KEY_BYTES: usize = 64;
/// Enough to tell two keys apart, too little to use one.
const FINGERPRINT_CHARACTERS: usize = 4;

#[derive(PartialEq, Eq, Debug)]
pub enum AccountCommand {
    Add(String),
    List,
    Rotate { name: String, key: u8 },
    Remove(String),
}

pub fn run(command: AccountCommand, location: &Path) -> Result<(), String> {
    if command == AccountCommand::List {
        for account in &AccountsFile::read(location)?.accounts {
            let key2 = account.key2.as_deref().map_or("none".to_owned(), fingerprint);
            println!("{}  key1 {}  key2 {key2}", account.name, fingerprint(&account.key1));
        }
        return Ok(());
    }
    if let AccountCommand::Add(name) = &command {
        AccountName::parse(name).ok_or_else(|| {
            format!("'{name}' is not an account name: 3 to 24 lower-case letters and digits")
        })?;
        // A directory becomes a store before it gets an accounts file, so that no stranger's directory does.
        serve::prepare_location(location)?;
    }
    let _lock = AccountsFile::lock(location)?;
    let mut file = AccountsFile::read(location)?;
    let words = change(&mut file, command)?;
    file.write(location)?;
    // Keys are shown once, and only when they count.
    println!("{words}");
    Ok(())
}

/// Changes the accounts and says what there is to say about it.
fn change(file: &mut AccountsFile, command: AccountCommand) -> Result<String, String> {
    match command {
        AccountCommand::List => Ok(String::new()),
        AccountCommand::Add(name) => {
            if file.accounts.iter().any(|account| account.name == name) {
                return Err(format!("account '{name}' is there already"));
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
            Ok(format!("{name} is removed; its tables stay on the disk"))
        }
    }
}

fn find<'a>(file: &'a mut AccountsFile, name: &str) -> Result<&'a mut AccountEntry, String> {
    let found = file.accounts.iter_mut().find(|account| account.name == name);
    found.ok_or_else(|| format!("there is no account '{name}' among those added by this command"))
}

fn new_key() -> Result<String, String> {
    let mut key = [0u8; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no randomness: {error}"))?;
    Ok(STANDARD.encode(key))
}

fn fingerprint(key: &str) -> String {
    format!("{}…", key.chars().take(FINGERPRINT_CHARACTERS).collect::<String>())
}
