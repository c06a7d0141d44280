//! What a store has under an account's name, in all services, whether a server is running on it or not: looked at, or
//! purged.
//!
//! Leaves to others: the work itself (`catalogue`), and the connection to a running server (`control`).

use std::path::Path;
use std::sync::Arc;

use catalogue::AccountContent;
use engine::Engine;
use engine::env::{Clock, SystemClock};
use protocol::ServiceError;
use protocol::common::AccountName;
use queues::QueueService;
use tables::TableService;

use crate::control::{self, ControlRequest};
use crate::store;

/// What an account has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AccountData {
    pub tables: AccountContent,
    pub queues: AccountContent,
}

impl AccountData {
    pub fn is_empty(self) -> bool {
        self.tables.is_empty() && self.queues.is_empty()
    }

    /// In words.
    pub fn described(self) -> String {
        let (tables, queues) = (self.tables.container_count, self.queues.container_count);
        match self.tables.has_properties || self.queues.has_properties {
            true => format!("{tables} tables, {queues} queues and service properties"),
            false => format!("{tables} tables and {queues} queues"),
        }
    }

    /// The form in which a server answers.
    pub fn to_line(self) -> String {
        let AccountData { tables, queues } = self;
        let has = |has_properties: bool| u8::from(has_properties);
        format!(
            "{} {} {} {}",
            tables.container_count,
            has(tables.has_properties),
            queues.container_count,
            has(queues.has_properties)
        )
    }

    fn from_line(line: &str) -> Option<AccountData> {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let &[tables, table_properties, queues, queue_properties] = words.as_slice() else { return None };
        Some(AccountData {
            tables: AccountContent {
                container_count: tables.parse().ok()?,
                has_properties: table_properties == "1",
            },
            queues: AccountContent {
                container_count: queues.parse().ok()?,
                has_properties: queue_properties == "1",
            },
        })
    }
}

/// All services over one store.
pub struct Services {
    engine: Arc<dyn Engine>,
    tables: TableService,
    queues: QueueService,
    /// What the server has measured.
    system: TableService,
}

impl Services {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> Services {
        Services {
            tables: TableService::new(engine.clone(), clock.clone()),
            queues: QueueService::new(engine.clone(), clock.clone()),
            system: TableService::system(engine.clone(), clock),
            engine,
        }
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_their_engine(self) -> Services {
        Services {
            tables: self.tables.sharing_its_engine(),
            queues: self.queues.sharing_its_engine(),
            system: self.system.sharing_its_engine(),
            ..self
        }
    }

    pub async fn count(&self, account: &str) -> Result<AccountData, String> {
        let account = name(account)?;
        Ok(AccountData {
            tables: self.tables.catalogue().account_content(&account).await.map_err(sentence)?,
            queues: self.queues.catalogue().account_content(&account).await.map_err(sentence)?,
        })
    }

    pub async fn purge(&self, account: &str) -> Result<AccountData, String> {
        let account = name(account)?;
        self.system.catalogue().purge_account(&account).await.map_err(sentence)?;
        Ok(AccountData {
            tables: self.tables.catalogue().purge_account(&account).await.map_err(sentence)?,
            queues: self.queues.catalogue().purge_account(&account).await.map_err(sentence)?,
        })
    }
}

/// Looks, and changes nothing.
pub fn look(location: &Path, account: &str) -> Result<AccountData, String> {
    match at_rest(location)? {
        Some(services) => finish(&services, services.count(account)),
        None => ask(location, &ControlRequest::AccountData { account: account.to_owned() }),
    }
}

/// Deletes it, and says what it was.
pub fn delete(location: &Path, account: &str) -> Result<AccountData, String> {
    match at_rest(location)? {
        Some(services) => finish(&services, services.purge(account)),
        None => ask(location, &ControlRequest::Purge { account: account.to_owned() }),
    }
}

/// `None` when a server has the store open.
fn at_rest(location: &Path) -> Result<Option<Services>, String> {
    let engine = store::open(location)?;
    Ok(engine.map(|engine| Services::new(Arc::new(engine), Arc::new(SystemClock::new()))))
}

fn finish<T>(services: &Services, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    store::wait_for(async {
        let outcome = work.await;
        services.engine.close().await;
        outcome
    })?
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

fn sentence(error: ServiceError) -> String {
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
        };
        assert_eq!(AccountData::from_line(&data.to_line()), Some(data));
        assert_eq!(data.described(), "3 tables, 2 queues and service properties");
        for line in ["", "3 0", "3 0 x 1"] {
            assert_eq!(AccountData::from_line(line), None, "{line}");
        }
    }
}
