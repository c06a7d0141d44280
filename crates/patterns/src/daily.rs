//! High-volume delete: a table for each day, so that a day is deleted with one request.
//!
//! Promises: a day's table exists before it is handed out. Names are never used twice, since they carry their day. Leaves to
//! others: a query over several days asks several tables.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use lazulite_client::{DateTime, Error, TableClient, TableServiceClient};

/// `20260131`
const DAY_LENGTH: usize = 8;

/// Tables named after their day.
///
/// ```no_run
/// # use lazulite_client::{DateTime, Error, TableServiceClient};
/// use lazulite_patterns::daily::DailyTables;
///
/// # async fn f(service: TableServiceClient, now: DateTime, sixty_days_ago: DateTime) -> Result<(), Error> {
/// let logins = DailyTables::new(service, "Logins");
/// let today = logins.open(now).await?;
/// let gone = logins.delete_before(sixty_days_ago).await?;
/// # Ok(()) }
/// ```
pub struct DailyTables {
    service: TableServiceClient,
    prefix: String,
    /// The tables that exist, as far as this process knows.
    known: Mutex<BTreeSet<String>>,
}

impl DailyTables {
    /// The names of the tables begin with `prefix`, and no other table's name may.
    pub fn new(service: TableServiceClient, prefix: impl Into<String>) -> DailyTables {
        DailyTables { service, prefix: prefix.into(), known: Mutex::default() }
    }

    /// The name of a day's table: `Logins20260131`.
    pub fn name(&self, day: DateTime) -> String {
        format!("{}{}", self.prefix, day_digits(day))
    }

    /// The table of a day. It is created when this process asks for it the first time.
    pub async fn open(&self, day: DateTime) -> Result<TableClient, Error> {
        let name = self.name(day);
        let is_known = || self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&name);
        if !is_known() {
            self.service.create_table_if_absent(&name).await?;
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        }
        self.service.table(&name)
    }

    /// Deletes the tables of all days before this one. Returns their names.
    pub async fn delete_before(&self, day: DateTime) -> Result<Vec<String>, Error> {
        let first_kept = self.name(day);
        let mut gone = Vec::new();
        for name in self.service.list_tables().all().await? {
            let is_ours = name.strip_prefix(self.prefix.as_str()).is_some_and(is_day);
            if is_ours && name < first_kept {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                self.service.delete_table_if_present(&name).await?;
                gone.push(name);
            }
        }
        Ok(gone)
    }
}

fn is_day(text: &str) -> bool {
    text.len() == DAY_LENGTH && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The first eight digits of `2026-01-31T…`.
fn day_digits(day: DateTime) -> String {
    let mut text = Vec::new();
    day.write(&mut text);
    text.into_iter().filter(u8::is_ascii_digit).take(DAY_LENGTH).map(char::from).collect()
}
