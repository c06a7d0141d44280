//! Counts on a machine that is too busy to read them in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Budget, Engine, KeyRange, OwnedKey, ReadError, Sink, TableId};

use crate::support::{FAMILIES, setup_on};

/// The next scan ends after three rows.
struct Hurried {
    engine: MemoryEngine,
    is_hurried: Arc<AtomicBool>,
}

#[async_trait]
impl Wrapper for Hurried {
    fn inner(&self) -> &dyn Engine {
        &self.engine
    }

    async fn scan(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        budget: Budget,
        sink: &mut dyn Sink,
    ) -> Result<Option<OwnedKey>, ReadError> {
        let is_hurried = self.is_hurried.swap(false, Ordering::Relaxed);
        let budget = if is_hurried { Budget { rows_examined_max: 3, ..budget } } else { budget };
        self.engine.scan(table, ranges, budget, sink).await
    }
}

#[tokio::test]
async fn a_count_is_whole_or_read_again() {
    let clock = Arc::new(FakeClock::default());
    let is_hurried = Arc::new(AtomicBool::new(false));
    let engine = MemoryEngine::new(FAMILIES, clock.clone());
    let engine = Hurried { engine, is_hurried: is_hurried.clone() };
    let setup = setup_on(Arc::new(Wrapped(engine)), clock).await;
    for _ in 0..100 {
        setup.put("text").await;
    }
    is_hurried.store(true, Ordering::Relaxed);
    assert_eq!(setup.count().await, 100);
}
