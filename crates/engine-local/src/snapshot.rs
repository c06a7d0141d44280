//! One state of the store, held for as long as it takes to copy it.
//!
//! It keeps that state's pages and recent rows from being freed. What is overwritten in the meantime takes new space,
//! so the file grows by about as much as is written. That space is reused afterwards.

use std::sync::Arc;

use async_trait::async_trait;

use crate::contained_scan::contained_scan;
use crate::view::View;
use engine::env::Clock;
use engine::keys::{KeyRange, OwnedKey};
use engine::pace::Pace;
use engine::{Budget, ReadError, Sink, Snapshot, TableId, Version};

pub(crate) struct LocalSnapshot {
    pub(crate) view: Arc<View>,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn last_version(&self) -> Option<Version> {
        Version::new(self.view.counters.last_version)
    }

    fn row_count(&self) -> Result<u64, ReadError> {
        self.view.row_count().map_err(|error| error.into_read_error(TableId::CATALOGUE))
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let pace = Pace::new(&*self.clock, budget, None);
        let scanned = contained_scan(&self.view, table, ranges, pace, sink).await;
        scanned.map_err(|error| error.into_read_error(table))
    }
}
