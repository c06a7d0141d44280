//! `lazulite account`: adds, lists, rotates and removes accounts, whether a server is running or not.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::model::AccountName;

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
    let mut file = AccountsFile::read(location)?;
    match command {
        AccountCommand::List => {
            for account in &file.accounts {
                let key2 = account.key2.as_deref().map_or("none".to_owned(), fingerprint);
                println!("{}  key1 {}  key2 {key2}", account.name, fingerprint(&account.key1));
            }
            return Ok(());
        }
        AccountCommand::Add(name) => {
            AccountName::parse(&name).ok_or_else(|| {
                format!("'{name}' is not an account name: 3 to 24 lower-case letters and digits")
            })?;
            if file.accounts.iter().any(|account| account.name == name) {
                return Err(format!("account '{name}' is there already"));
            }
            // A directory becomes a store before it gets an accounts file, so that no stranger's directory does.
            serve::prepare_location(location)?;
            let entry = AccountEntry { name, key1: new_key()?, key2: Some(new_key()?) };
            print_keys(&entry);
            file.accounts.push(entry);
        }
        AccountCommand::Rotate { name, key } => {
            let account = find(&mut file, &name)?;
            let slot = if key == 1 { &mut account.key1 } else { account.key2.get_or_insert_default() };
            *slot = new_key()?;
            println!("key{key} of {name}: {slot}");
        }
        AccountCommand::Remove(name) => {
            find(&mut file, &name)?;
            file.accounts.retain(|account| account.name != name);
            println!("{name} is removed; its tables stay on the disk");
        }
    }
    file.write(location)
}

fn find<'a>(file: &'a mut AccountsFile, name: &str) -> Result<&'a mut AccountEntry, String> {
    let found = file.accounts.iter_mut().find(|account| account.name == name);
    found.ok_or_else(|| format!("there is no account '{name}' among those added by this command"))
}

fn print_keys(account: &AccountEntry) {
    println!("account {}", account.name);
    println!("key1: {}", account.key1);
    println!("key2: {}", account.key2.as_deref().unwrap_or_default());
}

fn new_key() -> Result<String, String> {
    let mut key = [0u8; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no randomness: {error}"))?;
    Ok(STANDARD.encode(key))
}

fn fingerprint(key: &str) -> String {
    format!("{}…", key.chars().take(FINGERPRINT_CHARACTERS).collect::<String>())
}
