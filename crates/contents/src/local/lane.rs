//! Where new chunks are placed: each lane fills one extent after the other.
//!
//! Several lanes are filled at once, so that long contents do not wait for each other's writes and syncs, and short ones
//! not for long ones. Promises: no two placements overlap, and no place is used twice while an extent is open; where a
//! write failed, nothing else is written.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use super::LocalStore;
use super::extents::ExtentState;
use super::files::ExtentFile;
use super::format::ChunkPlace;
use crate::ContentError;
use crate::error::is_full;

/// Room is made in steps of this size.
const ALLOCATE_BYTES: u64 = 8 * 1024 * 1024;

#[derive(Default, Debug)]
pub(crate) struct ExtentLane(Mutex<Option<Active>>);

/// The extent that a lane fills.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) extent: Arc<ExtentState>,
    pub(crate) file: Arc<dyn ExtentFile>,
    /// Room was made up to here.
    pub(crate) allocated: u64,
}

/// Space for one chunk, or for several.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) extent: Arc<ExtentState>,
    pub(crate) file: Arc<dyn ExtentFile>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Placement {
    pub(crate) fn place(&self) -> ChunkPlace {
        ChunkPlace::at(self.extent.number, self.offset)
    }
}

impl ExtentLane {
    pub(crate) fn resume(active: Active) -> ExtentLane {
        ExtentLane(Mutex::new(Some(active)))
    }

    fn active(&self) -> MutexGuard<'_, Option<Active>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Finds space for some chunks. Waits for the disk.
    pub(crate) fn reserve(
        &self,
        store: &LocalStore,
        bytes: u64,
        chunks: u64,
    ) -> Result<Placement, ContentError> {
        store.extents.health.check()?;
        let mut guard = self.active();
        if let Some(active) = guard.take_if(|active| active.extent.end() + bytes > store.extent_bytes) {
            store.extents.seal(&active.extent, &*active.file);
            store.consider(&active.extent);
        }
        let active = match &mut *guard {
            Some(active) => active,
            none => {
                let (extent, file) = store.extents.create(store.options.store, (store.options.random)())?;
                none.insert(Active { extent, file, allocated: 0 })
            }
        };
        let offset = active.extent.end();
        let end = offset + bytes;
        if end > active.allocated {
            let generous = (end + ALLOCATE_BYTES).min(store.extent_bytes);
            let allocate = |upto: u64| active.file.allocate(offset, upto - offset).map(|()| upto);
            active.allocated = allocate(generous).or_else(|error| match is_full(&error) {
                true => allocate(end),
                false => Err(error),
            })?;
        }
        active.extent.add_chunks(chunks);
        active.extent.end.store(end, Ordering::Release);
        Ok(Placement { extent: active.extent.clone(), file: active.file.clone(), offset, bytes })
    }

    /// Uses the end of a placement for the next one, if that comes right behind it. The head of its chunk must say already
    /// that it does not reach so far.
    pub(crate) fn give_back(&self, placement: &Placement, used: u64) -> bool {
        let guard = self.active();
        let end = placement.offset + placement.bytes;
        let is_last =
            |active: &&Active| Arc::ptr_eq(&active.extent, &placement.extent) && active.extent.end() == end;
        let Some(active) = guard.as_ref().filter(is_last) else { return false };
        active.extent.end.store(placement.offset + used, Ordering::Release);
        true
    }

    /// After a failed write: goes on in another extent.
    pub(crate) fn leave(&self, store: &LocalStore, extent: &Arc<ExtentState>) {
        if let Some(active) = self.active().take_if(|active| Arc::ptr_eq(&active.extent, extent)) {
            // Its end is not marked: that would be another write.
            active.extent.retire();
            store.consider(&active.extent);
        }
    }
}
