//! `lazulite move`: copies a store from a data directory into an engine elsewhere, or back, while nobody writes to it.
//!
//! Promises: a store with containers of blobs is refused, because their contents are not rows; backup and restore carry them. Else,
//! all tables and queues with their rows, versions, policies and properties, what was measured, and the accounts.
//! Nobody can serve the copy before it is complete and compared with its source, row by row. A move that was interrupted
//! goes on where it was. The source is only read; an engine as the source goes on with its housekeeping. `copy` copies
//! and compares; `unfinished` keeps the note about how far it is.

mod copy;
mod note;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::env::SystemClock;
use engine::{Engine, Snapshot, Version};
use engine_local::{LocalEngine, OpenError};

use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::place::{ENGINE_VARIABLE, EngineAddress, StoreChoice, is_url};
use crate::progress::Progress;
use crate::{config, engine_accounts, remote, store, unfinished};

use copy::Moved;

/// Stands for the engine that the environment or the configuration file names.
const ENGINE_WORD: &str = "engine";

#[derive(PartialEq, Eq, Debug)]
pub struct MoveRequest {
    pub from: String,
    pub to: String,
    pub config: Option<PathBuf>,
}

/// A store that is open.
struct MoveStore {
    place: StoreChoice,
    engine: Arc<dyn Engine>,
}

pub fn run(request: &MoveRequest) -> Result<(), String> {
    let (from, to) = (place_of(&request.from, request)?, place_of(&request.to, request)?);
    let (from_name, to_name) = (from.name(), to.name());
    if from_name == to_name {
        return Err("--from and --to name the same store".to_owned());
    }
    let mut progress = Progress::start();
    let outcome = store::wait_for(async {
        let source = MoveStore::source(from).await?;
        // Before anything is copied: accounts that cannot be stored would make the copy useless.
        let accounts = source.accounts().await?;
        let target = MoveStore::target(to).await?;
        target.check_accounts(&accounts)?;
        let moved = transfer(&source, &target, &accounts, &mut progress).await;
        target.engine.close().await;
        source.engine.close().await;
        moved.map(|moved| (moved, accounts.len()))
    });
    progress.clear();
    let (moved, account_count) = outcome.flatten()?;
    let Moved { table_count, queue_count, row_count } = moved;
    println!(
        "{from_name}: {table_count} tables, {queue_count} queues, {row_count} rows and {account_count} accounts moved to \
         {to_name} and compared, in {:.1} s",
        progress.elapsed().as_secs_f64()
    );
    Ok(())
}

fn place_of(text: &str, request: &MoveRequest) -> Result<StoreChoice, String> {
    let file = request.config.as_deref().map(config::read_store).transpose()?.unwrap_or_default();
    if text == ENGINE_WORD {
        return match StoreChoice::choose(None, None, file)? {
            StoreChoice::Directory(_) => Err(format!(
                "'{ENGINE_WORD}' stands for the engine that {ENGINE_VARIABLE} or the configuration file names, and there is none"
            )),
            engine => Ok(engine),
        };
    }
    match is_url(text) {
        true => {
            let address = EngineAddress::read(text.to_owned(), "move", file.accounts_key)?;
            Ok(StoreChoice::Engine(address))
        }
        false => Ok(StoreChoice::Directory(Path::new(text).to_owned())),
    }
}

impl MoveStore {
    async fn source(place: StoreChoice) -> Result<MoveStore, String> {
        let engine: Arc<dyn Engine> = match &place {
            StoreChoice::Directory(location) => match store::open(location)? {
                Some(engine) => Arc::new(engine),
                None => return Err(in_use(location)),
            },
            StoreChoice::Engine(address) => remote::open(address, Arc::new(SystemClock::new())).await?,
        };
        unfinished::refuse(&*engine, &place.name()).await?;
        Ok(MoveStore { place, engine })
    }

    async fn target(place: StoreChoice) -> Result<MoveStore, String> {
        let engine: Arc<dyn Engine> = match &place {
            StoreChoice::Directory(location) => {
                store::refuse_unfinished(location)?;
                match LocalEngine::open(location, store::options()) {
                    Ok(engine) => Arc::new(engine),
                    Err(OpenError::Locked(_)) => return Err(in_use(location)),
                    Err(error) => return Err(error.to_string()),
                }
            }
            StoreChoice::Engine(address) => remote::open(address, Arc::new(SystemClock::new())).await?,
        };
        Ok(MoveStore { place, engine })
    }

    async fn accounts(&self) -> Result<Vec<AccountEntry>, String> {
        match &self.place {
            StoreChoice::Directory(location) => Ok(AccountsFile::read(location)?.accounts),
            StoreChoice::Engine(address) => {
                let stored = engine_accounts::read(&*self.engine, address.accounts_key.as_ref()).await?;
                Ok(stored.into_iter().map(|account| account.entry).collect())
            }
        }
    }

    fn check_accounts(&self, accounts: &[AccountEntry]) -> Result<(), String> {
        match &self.place {
            StoreChoice::Engine(address) if !accounts.is_empty() => {
                engine_accounts::key_of(address).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Those of the same name are replaced: they come from an earlier attempt.
    async fn put_accounts(&self, accounts: &[AccountEntry]) -> Result<(), String> {
        match &self.place {
            StoreChoice::Directory(location) => {
                if accounts.is_empty() {
                    return Ok(());
                }
                let _lock = AccountsFile::lock(location)?;
                let mut file = AccountsFile::read(location)?;
                file.accounts.retain(|stored| accounts.iter().all(|account| account.name != stored.name));
                file.accounts.extend_from_slice(accounts);
                file.write(location)
            }
            StoreChoice::Engine(address) if !accounts.is_empty() => {
                let key = engine_accounts::key_of(address)?;
                let stored = engine_accounts::read(&*self.engine, Some(key)).await?;
                for account in accounts {
                    let seen = stored.iter().find(|stored| stored.entry.name == account.name);
                    let seen = seen.map(|stored| stored.version);
                    if !engine_accounts::put(&*self.engine, key, &account.name, seen, Some(account)).await? {
                        return Err(format!("somebody else is changing account '{}'", account.name));
                    }
                }
                Ok(())
            }
            StoreChoice::Engine(_) => Ok(()),
        }
    }
}

fn in_use(location: &Path) -> String {
    format!("a server uses {}: stop it first", location.display())
}

async fn transfer(
    source: &MoveStore,
    target: &MoveStore,
    accounts: &[AccountEntry],
    progress: &mut Progress,
) -> Result<Moved, String> {
    let snapshot = source.engine.snapshot().await.map_err(|error| error.to_string())?;
    let moved = copy::run(&*snapshot, &*target.engine, &target.place.name(), progress).await?;
    target.put_accounts(accounts).await?;
    refuse_changed(&*snapshot, source).await?;
    unfinished::remove(&*target.engine).await?;
    Ok(moved)
}

/// A data directory is locked. Servers on an engine elsewhere may go on writing, and then the copy lacks what they wrote.
async fn refuse_changed(snapshot: &dyn Snapshot, source: &MoveStore) -> Result<(), String> {
    let now = source.engine.snapshot().await.map_err(|error| error.to_string())?;
    let ticks = |version: Option<Version>| version.map_or(0, Version::ticks);
    match ticks(now.last_version()) == ticks(snapshot.last_version()) {
        true => Ok(()),
        false => Err(format!(
            "{} was written to meanwhile: stop all servers that use it, and begin anew with an empty target",
            source.place.name()
        )),
    }
}
