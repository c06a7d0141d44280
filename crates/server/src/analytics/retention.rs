//! Retention: rows of metrics that are older than the account wants to keep are removed, once an hour.
//!
//! Leaves to others: what is written in the first place.

use std::borrow::Cow;

use engine::Share;
use protocol::common::AccountName;
use protocol::table::filter::{self, Schema};
use protocol::table::model::{ETag, EntitySource, TableName};
use protocol::{ErrorCode, ServiceError};
use tables::{Action, Change, EntityQuery, EntitySink, EntityView, Transaction};

use super::schema;
use super::{Analytics, PropertiesRead, metrics_of};

const MINUTES_PER_DAY: u64 = 24 * 60;
/// Rows that are looked for at once.
const ROW_COUNT_MAX: u32 = 1000;
/// Rounds in one hour for one table. What is left then is removed in the next one.
const ROUND_COUNT_MAX: usize = 100;

impl Analytics {
    /// Removes what is too old, of all accounts. `now` is the minute.
    pub(super) async fn remove_old(&self, now: u64, known: &mut PropertiesRead) {
        let accounts = self.accounts.get();
        for account in accounts.names() {
            for (index, (service, _)) in self.services.iter().enumerate() {
                let Some(properties) = self.properties(account.as_str(), index, known).await else {
                    continue;
                };
                for (interval, metrics) in metrics_of(&properties) {
                    let Some(days) = metrics.retention_days else { continue };
                    let first_kept = now.saturating_sub(u64::from(days) * MINUTES_PER_DAY);
                    for is_secondary in [false, true] {
                        let Some(table) = schema::table_name(interval, is_secondary, *service) else {
                            continue;
                        };
                        if let Err(error) = self.remove_before(account, &table, first_kept).await {
                            log::debug!("old metrics of {account} wait to be removed: {error}");
                        }
                    }
                }
            }
        }
    }

    async fn remove_before(
        &self,
        account: &AccountName,
        table: &TableName,
        first_kept: u64,
    ) -> Result<(), ServiceError> {
        let filter = format!("PartitionKey lt '{}'", schema::partition_key(first_kept));
        for _ in 0..ROUND_COUNT_MAX {
            let query = EntityQuery {
                filter: filter::parse(&filter, Schema::Entities)?,
                within: None,
                resume: None,
                entity_count_max: ROW_COUNT_MAX,
                share: Share::COMMON,
            };
            let mut found = Keys::default();
            match self.system.query_entities(account, table, query, &mut found).await {
                Ok(_) => {}
                // Nothing was ever written.
                Err(error) if error.code == ErrorCode::TableNotFound => return Ok(()),
                Err(error) => return Err(error),
            }
            if found.0.is_empty() {
                return Ok(());
            }
            // Rows come in the order of their keys, so a partition's rows are together. It has fewer than a
            // transaction may have.
            for rows in found.0.chunk_by(|one, other| one.0 == other.0) {
                let mut transaction = Transaction::new();
                for (partition_key, row_key) in rows {
                    transaction.push(Change {
                        partition_key: Cow::Borrowed(partition_key),
                        row_key: Cow::Borrowed(row_key),
                        action: Action::Delete { condition: ETag::Any },
                    })?;
                }
                match self.system.commit(account, table, transaction).await {
                    Ok(_) => {}
                    // Somebody else has deleted one of them meanwhile: the next round looks again.
                    Err(error) if error.code == ErrorCode::ResourceNotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Keys(Vec<(String, String)>);

impl EntitySink for Keys {
    fn entity(&mut self, entity: &EntityView<'_>) -> Option<usize> {
        self.0.push((entity.partition_key().to_owned(), entity.row_key().to_owned()));
        Some(self.0.len())
    }
}
