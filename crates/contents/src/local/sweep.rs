//! Enumerates the chunks of a store, extent by extent, in bounded memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::LocalStore;
use super::extents::ExtentState;
use super::format::ChunkState;
use super::reclaim::Job;
use super::walk::Walk;
use crate::guards::SweepGuard;
use crate::{ContentError, ContentRef, SWEEP_BATCH_COUNT_MAX, StoredContent, Sweep};

pub(crate) struct LocalSweep {
    store: Arc<LocalStore>,
    guard: Arc<SweepGuard>,
    /// The next extent.
    next: u32,
    walk: Option<(Arc<ExtentState>, Walk)>,
}

impl LocalSweep {
    pub(crate) fn new(store: Arc<LocalStore>) -> LocalSweep {
        let guard = Arc::new(store.guards.begin_sweep());
        LocalSweep { store, guard, next: 0, walk: None }
    }
}

struct Step {
    batch: Vec<StoredContent>,
    next: u32,
    walk: Option<(Arc<ExtentState>, Walk)>,
}

/// Waits for the disk.
fn step(
    store: &LocalStore,
    guard: &SweepGuard,
    mut next: u32,
    walk: Option<(Arc<ExtentState>, Walk)>,
) -> Result<Step, ContentError> {
    let mut batch = Vec::new();
    let mut current = walk;
    loop {
        let (extent, mut walk) = match current.take() {
            Some(current) => current,
            None => {
                let Some(extent) = store.extents.from(next) else {
                    return Ok(Step { batch, next, walk: None });
                };
                next = extent.number.saturating_add(1);
                match store.extents.file(extent.number) {
                    Ok(file) => {
                        let walk = Walk::new(&extent, file, extent.end())?;
                        (extent, walk)
                    }
                    // Its last content was forgotten a moment ago.
                    Err(_) if store.extents.get(extent.number).is_none() => continue,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        while let Some((place, head)) = walk.next()? {
            if head.state == ChunkState::Forgotten {
                // An earlier process may have had no time to give it back.
                let (offset, bytes) = (place.offset(), head.space.into());
                store.reclaim(Job::Dead { extent: extent.number, offset, bytes });
                continue;
            }
            if !store.covers(guard, head.nonce) {
                continue;
            }
            batch.push(StoredContent {
                content: place.content(head.nonce, head.length.into()),
                written_unix_ms: head.written_unix_ms,
                is_complete: head.state == ChunkState::Complete,
            });
            if batch.len() == SWEEP_BATCH_COUNT_MAX {
                return Ok(Step { batch, next, walk: Some((extent, walk)) });
            }
        }
        if extent.chunks().is_none() {
            store.reclaim(Job::Consider(extent));
        }
    }
}

#[async_trait]
impl Sweep for LocalSweep {
    async fn next(&mut self) -> Result<Vec<StoredContent>, ContentError> {
        let (store, guard, next, walk) =
            (self.store.clone(), self.guard.clone(), self.next, self.walk.take());
        let stepped = tokio::task::spawn_blocking(move || step(&store, &guard, next, walk)).await;
        let stepped = stepped.map_err(|error| ContentError::Io(error.to_string()))??;
        self.next = stepped.next;
        self.walk = stepped.walk;
        Ok(stepped.batch)
    }

    async fn forget(&mut self, contents: &[ContentRef]) -> Result<usize, ContentError> {
        let free = self.guard.not_held(contents).ok_or(ContentError::SweepOverrun)?;
        self.store.forget(&free).await?;
        Ok(contents.len() - free.len())
    }
}
