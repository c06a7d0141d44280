//! `lazulite account`: adds, lists, rotates, removes and purges accounts, whether a server is running or not.
//!
//! Promises: a key is printed once, when it is made. A new account takes over the data of an earlier one only if the
//! operator says so. Accounts from the environment or the configuration file are not
//! touched. `accounts_file` reads and writes the file, `engine_accounts` the rows of an engine; running servers notice
//! changes by themselves.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use engine::Engine;
use engine::env::SystemClock;

use crate::account_data::{self, AccountData, Services};
use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::place::{EngineAddress, StoreChoice};
use crate::{engine_accounts, random, remote, store};

/// As many as a key of the live service has.
const KEY_BYTES: usize = 64;
/// Enough to tell two keys apart, too little to use one.
const FINGERPRINT_CHARACTERS: usize = 4;
/// How often a change starts over because somebody else changed the same account.
const ATTEMPT_COUNT_MAX: usize = 10;

#[derive(Clone, PartialEq, Eq, Debug)]
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

impl AccountCommand {
    fn name(&self) -> &str {
        match self {
            AccountCommand::List => "",
            AccountCommand::Add { name, .. }
            | AccountCommand::Rotate { name, .. }
            | AccountCommand::Remove(name)
            | AccountCommand::Purge(name) => name,
        }
    }
}

pub fn run(command: AccountCommand, place: &StoreChoice) -> Result<(), String> {
    match place {
        StoreChoice::Directory(location) => run_in_directory(command, location),
        StoreChoice::Engine(address) => {
            remote::work_on(address, async |engine| run_in_engine(command, address, engine).await)
        }
    }
}

/// The accounts of a store, without keys.
fn print(accounts: &[AccountEntry]) {
    for account in accounts {
        let key2 = account.key2.as_deref().map_or("none".to_owned(), fingerprint);
        println!("{}  key1 {}  key2 {key2}", account.name, fingerprint(&account.key1));
    }
}

async fn run_in_engine(
    command: AccountCommand,
    address: &EngineAddress,
    engine: Arc<dyn Engine>,
) -> Result<(), String> {
    let key = engine_accounts::key_of(address)?;
    let name = command.name().to_owned();
    let services = Services::new(engine.clone(), Arc::new(SystemClock::new())).sharing_their_engine();
    for _ in 0..ATTEMPT_COUNT_MAX {
        let stored = engine_accounts::read(&*engine, Some(key)).await?;
        let seen = stored.iter().find(|account| account.entry.name == name).map(|account| account.version);
        let mut file = AccountsFile { accounts: stored.into_iter().map(|account| account.entry).collect() };
        match &command {
            AccountCommand::List => {
                print(&file.accounts);
                return Ok(());
            }
            AccountCommand::Purge(_) => {
                refuse_existing(&file, &name)?;
                return print_purged(&name, services.purge(&name).await?);
            }
            AccountCommand::Add { with_data, .. } if !file.has(&name) => {
                let data = services.count(&name).await?;
                refuse_data(&name, if *with_data { AccountData::default() } else { data })?;
            }
            _ => {}
        }
        let words = change(&mut file, command.clone())?;
        let changed = file.accounts.iter().find(|account| account.name == name);
        if engine_accounts::put(&*engine, key, &name, seen, changed).await? {
            // Print new keys only after the row that makes them valid is written.
            println!("{words}");
            return Ok(());
        }
    }
    Err(format!("others are changing account '{name}' at the same time: try again"))
}

fn run_in_directory(command: AccountCommand, location: &Path) -> Result<(), String> {
    if command == AccountCommand::List {
        print(&AccountsFile::read(location)?.accounts);
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
        AccountCommand::Purge(name) => {
            refuse_existing(&file, name)?;
            return print_purged(name, account_data::delete(location, name)?);
        }
        AccountCommand::Add { name, with_data: false } if !file.has(name) => {
            refuse_data(name, account_data::look(location, name)?)?;
        }
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
                "{name} is removed; its tables, queues and containers stay until 'lazulite account purge {name}' deletes them"
            ))
        }
    }
}

/// A new account must not find the data of an earlier one by accident.
fn refuse_data(name: &str, data: AccountData) -> Result<(), String> {
    if data.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the store has {} under the name '{name}': 'lazulite account purge {name}' deletes this, and --with-data gives \
         it to the new account",
        data.described()
    ))
}

fn refuse_existing(file: &AccountsFile, name: &str) -> Result<(), String> {
    account_data::name(name)?;
    match file.has(name) {
        true => Err(format!("account '{name}' exists: 'lazulite account remove {name}' first")),
        false => Ok(()),
    }
}

fn print_purged(name: &str, data: AccountData) -> Result<(), String> {
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
