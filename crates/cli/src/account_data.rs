//! What a store has under an account's name, in all services, whether a server is running on it or not: looked at, or
//! purged.
//!
//! Leaves to others: the work itself (`catalogue`), and the connection to a running server (`control`).

use std::path::Path;
use std::sync::Arc;

use blobs::{BlobOptions, BlobService};
use catalogue::{AccountContent, Catalogue};
use contents::ContentStore;
use engine::Engine;
use engine::env::{Clock, SystemClock};
use protocol::ServiceError;
use protocol::common::AccountName;
use queues::QueueService;
use tables::TableService;
use tokio::runtime::Runtime;

use crate::control::{self, ControlRequest};
use crate::store::{self, OpenStore};

/// What an account has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AccountData {
    pub tables: AccountContent,
    pub queues: AccountContent,
    pub containers: AccountContent,
}

impl AccountData {
    pub fn is_empty(self) -> bool {
        self.tables.is_empty() && self.queues.is_empty() && self.containers.is_empty()
    }

    /// In words.
    pub fn described(self) -> String {
        let (tables, queues) = (self.tables.container_count, self.queues.container_count);
        let containers = self.containers.container_count;
        let has_properties =
            [self.tables, self.queues, self.containers].iter().any(|content| content.has_properties);
        match has_properties {
            true => {
                format!("{tables} tables, {queues} queues, {containers} containers and service properties")
            }
            false => format!("{tables} tables, {queues} queues and {containers} containers"),
        }
    }

    /// The form in which a server answers.
    pub fn to_line(self) -> String {
        let AccountData { tables, queues, containers } = self;
        let words = [tables, queues, containers]
            .map(|content| format!("{} {}", content.container_count, u8::from(content.has_properties)));
        words.join(" ")
    }

    fn from_line(line: &str) -> Option<AccountData> {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let content = |pair: usize| {
            let has_properties = *words.get(2 * pair + 1)? == "1";
            Some(AccountContent { container_count: words[2 * pair].parse().ok()?, has_properties })
        };
        let data = AccountData { tables: content(0)?, queues: content(1)?, containers: content(2)? };
        (words.len() == 6).then_some(data)
    }
}

/// All services over one store.
pub struct Services {
    tables: TableService,
    queues: QueueService,
    containers: Catalogue,
    /// What the server has measured.
    system: TableService,
}

impl Services {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Services {
        Services {
            tables: TableService::new(engine.clone(), clock.clone()),
            queues: QueueService::new(engine.clone(), clock.clone()),
            containers: Catalogue::new(engine.clone(), clock.clone(), &protocol::blob::KIND, blobs::FAMILY),
            system: TableService::system(engine, clock),
        }
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_their_engine(self) -> Services {
        Services {
            tables: self.tables.sharing_its_engine(),
            queues: self.queues.sharing_its_engine(),
            containers: self.containers.sharing_its_engine(),
            system: self.system.sharing_its_engine(),
        }
    }

    pub async fn count(&self, account: &str) -> Result<AccountData, String> {
        let account = name(account)?;
        Ok(AccountData {
            tables: self.tables.catalogue().account_content(&account).await.map_err(sentence)?,
            queues: self.queues.catalogue().account_content(&account).await.map_err(sentence)?,
            containers: self.containers.account_content(&account).await.map_err(sentence)?,
        })
    }

    pub async fn purge(&self, account: &str) -> Result<AccountData, String> {
        let account = name(account)?;
        self.system.catalogue().purge_account(&account).await.map_err(sentence)?;
        Ok(AccountData {
            tables: self.tables.catalogue().purge_account(&account).await.map_err(sentence)?,
            queues: self.queues.catalogue().purge_account(&account).await.map_err(sentence)?,
            containers: self.containers.purge_account(&account).await.map_err(sentence)?,
        })
    }
}

/// Gives back the contents that nobody has any more. Nothing is lost when it fails: the next sweep finds them.
pub async fn give_back(engine: Arc<dyn Engine>, contents: Arc<dyn ContentStore>, clock: Arc<dyn Clock>) {
    let service = BlobService::new(engine, contents, clock, BlobOptions::default());
    if let Err(error) = service.sweep().await {
        log::warn!("unused contents of blobs wait to be removed: {}", sentence(error));
    }
}

/// Looks, and changes nothing.
pub fn look(location: &Path, account: &str) -> Result<AccountData, String> {
    let runtime = store::runtime()?;
    match at_rest(location, &runtime)? {
        Some((services, store)) => finish(&store, &runtime, services.count(account)),
        None => ask(location, &ControlRequest::AccountData { account: account.to_owned() }),
    }
}

/// Deletes it, and says what it was.
pub fn delete(location: &Path, account: &str) -> Result<AccountData, String> {
    let runtime = store::runtime()?;
    match at_rest(location, &runtime)? {
        Some((services, store)) => finish(&store, &runtime, async {
            let purged = services.purge(account).await;
            if let Some(contents) = &store.contents {
                give_back(store.engine.clone(), contents.clone(), Arc::new(SystemClock::new())).await;
            }
            purged
        }),
        None => ask(location, &ControlRequest::Purge { account: account.to_owned() }),
    }
}

/// `None` when a server has the store open.
fn at_rest(location: &Path, runtime: &Runtime) -> Result<Option<(Services, OpenStore)>, String> {
    let Some(store) = store::open_whole(location, runtime)? else { return Ok(None) };
    Ok(Some((Services::new(store.engine.clone(), Arc::new(SystemClock::new())), store)))
}

fn finish<T>(
    store: &OpenStore,
    runtime: &Runtime,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    runtime.block_on(async {
        let outcome = work.await;
        store.close().await;
        outcome
    })
}

fn ask(location: &Path, request: &ControlRequest) -> Result<AccountData, String> {
    let answer = control::connect(location, request)?.answer()?;
    let line = std::io::read_to_string(answer);
    let data = line.ok().as_deref().and_then(AccountData::from_line);
    data.ok_or_else(|| "the server's answer is cut short".to_owned())
}

pub fn name(account: &str) -> Result<AccountName, String> {
    AccountName::parse(account)
        .ok_or_else(|| format!("'{account}' is not an account name: 3 to 24 lower-case letters and digits"))
}

pub fn sentence(error: ServiceError) -> String {
    match error.source {
        Some(source) => source.to_string(),
        None => error.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_as_it_was_written() {
        let data = AccountData {
            tables: AccountContent { container_count: 3, has_properties: false },
            queues: AccountContent { container_count: 2, has_properties: true },
            containers: AccountContent { container_count: 7, has_properties: false },
        };
        assert_eq!(AccountData::from_line(&data.to_line()), Some(data));
        assert_eq!(data.described(), "3 tables, 2 queues, 7 containers and service properties");
        for line in ["", "3 0", "3 0 2 1", "3 0 x 1 1 1", "3 0 2 1 7 0 1"] {
            assert_eq!(AccountData::from_line(line), None, "{line}");
        }
    }
}
