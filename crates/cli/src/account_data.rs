//! What a store has under an account's name, whether a server is running on it or not: looked at, or purged.
//!
//! Leaves to others: the work itself (the crate `tables`), and the connection to a running server (`control`).

use std::path::Path;
use std::sync::Arc;

use engine::env::SystemClock;
use protocol::ServiceError;
use protocol::common::AccountName;
use tables::{AccountData, TableService};

use crate::control::{self, ControlRequest};
use crate::store;

/// Looks, and changes nothing.
pub fn look(location: &Path, account: &str) -> Result<AccountData, String> {
    match at_rest(location)? {
        Some(service) => finish(&service, count(&service, account)),
        None => ask(location, &ControlRequest::AccountData { account: account.to_owned() }),
    }
}

/// Deletes it, and says what it was.
pub fn delete(location: &Path, account: &str) -> Result<AccountData, String> {
    match at_rest(location)? {
        Some(service) => finish(&service, purge(&service, account)),
        None => ask(location, &ControlRequest::Purge { account: account.to_owned() }),
    }
}

pub async fn count(service: &TableService, account: &str) -> Result<AccountData, String> {
    service.account_data(&name(account)?).await.map_err(sentence)
}

pub async fn purge(service: &TableService, account: &str) -> Result<AccountData, String> {
    service.purge_account(&name(account)?).await.map_err(sentence)
}

/// The form in which a server answers.
pub fn to_line(data: AccountData) -> String {
    format!("{} {}", data.table_count, u8::from(data.has_properties))
}

fn from_line(line: &str) -> Option<AccountData> {
    let (table_count, has_properties) = line.trim_end().split_once(' ')?;
    Some(AccountData { table_count: table_count.parse().ok()?, has_properties: has_properties == "1" })
}

/// `None` when a server has the store open.
fn at_rest(location: &Path) -> Result<Option<TableService>, String> {
    let engine = store::open(location)?;
    Ok(engine.map(|engine| TableService::new(Arc::new(engine), Arc::new(SystemClock::new()))))
}

fn finish<T>(service: &TableService, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    store::wait_for(async {
        let outcome = work.await;
        service.close().await;
        outcome
    })?
}

fn ask(location: &Path, request: &ControlRequest) -> Result<AccountData, String> {
    let answer = control::connect(location, request)?.answer()?;
    let line = std::io::read_to_string(answer);
    let data = line.ok().as_deref().and_then(from_line);
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
