//! One state of the store, held for as long as somebody copies it.
//!
//! It pins that state's pages: what is overwritten meanwhile takes new space, so the file grows by about what is
//! written while the snapshot is held, and shrinks in use afterwards.

use std::sync::Arc;

use async_trait::async_trait;
use redb::ReadableTableMetadata;

use super::scan_view;
use super::shared::{Shared, View};
use super::store::{META, META_LAST_VERSION, ROWS};
use super::trouble::Trouble;
use crate::env::Clock;
use crate::keys::{KeyRange, OwnedKey};
use crate::pace::Pace;
use crate::{Budget, ReadError, Sink, Snapshot, TableId, Version};

pub(super) struct LocalSnapshot {
    rows: View,
    last_version: Option<Version>,
    clock: Arc<dyn Clock>,
}

impl LocalSnapshot {
    /// The latest durable state.
    pub(super) fn take(shared: &Shared, clock: Arc<dyn Clock>) -> Result<LocalSnapshot, ReadError> {
        let open = || -> Result<(View, u64), redb::Error> {
            let transaction = shared.begin_read()?;
            let meta = transaction.open_table(META)?;
            let last_version = meta.get(META_LAST_VERSION)?.map_or(0, |ticks| ticks.value());
            Ok((transaction.open_table(ROWS)?, last_version))
        };
        let (rows, last_version) = open().map_err(|error| ReadError::Storage(error.to_string()))?;
        Ok(LocalSnapshot { rows, last_version: Version::new(last_version), clock })
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn last_version(&self) -> Option<Version> {
        self.last_version
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        self.rows.len().map_err(|error| Trouble::from(error).into_read_error(TableId::CATALOGUE))
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let pace = Pace::new(&*self.clock, budget, None);
        let scanned = scan_view(&self.rows, table, ranges, pace, sink).await;
        scanned.map_err(|trouble| trouble.into_read_error(table))
    }
}
