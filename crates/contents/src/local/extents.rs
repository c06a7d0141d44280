//! The extents of a store: which there are, how many chunks live in each, and their open files.
//!
//! Promises: at most [`OPEN_FILE_COUNT_MAX`] files are kept open beside those that are in use this moment. An extent
//! is removed only when nothing lives in it and nobody writes to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::files::{ExtentFile, ExtentFiles, FileAccess};
use super::format::{self, SEAL_OFFSET};
use super::sync::{GroupSync, SyncHealth};
use crate::ContentError;

/// Files that are open although nobody reads them this moment.
pub const OPEN_FILE_COUNT_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct ExtentState {
    pub(crate) number: u32,
    pub(crate) salt: u64,
    /// Where the last chunk ends.
    pub(crate) end: AtomicU64,
    pub(crate) group: Arc<GroupSync>,
    life: Mutex<Life>,
}

#[derive(Clone, Copy, Debug)]
struct Life {
    /// Chunks that are not forgotten, those that are being written included; `None` before they were counted.
    chunks: Option<u64>,
    /// New chunks may be placed in it.
    is_active: bool,
}

impl ExtentState {
    pub(crate) fn new(
        number: u32,
        salt: u64,
        end: u64,
        chunks: Option<u64>,
        is_active: bool,
    ) -> Arc<ExtentState> {
        Arc::new(ExtentState {
            number,
            salt,
            end: AtomicU64::new(end),
            group: Arc::new(GroupSync::new()),
            life: Mutex::new(Life { chunks, is_active }),
        })
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn add_chunks(&self, count: u64) {
        if let Some(chunks) = &mut self.life().chunks {
            *chunks += count;
        }
    }

    pub(crate) fn subtract_chunks(&self, count: u64) {
        if let Some(chunks) = &mut self.life().chunks {
            *chunks = chunks.saturating_sub(count);
        }
    }

    pub(crate) fn chunks(&self) -> Option<u64> {
        self.life().chunks
    }

    pub(crate) fn set_chunks(&self, chunks: u64) {
        self.life().chunks = Some(chunks);
    }

    pub(crate) fn retire(&self) {
        self.life().is_active = false;
    }

    pub(crate) fn is_active(&self) -> bool {
        self.life().is_active
    }

    pub(crate) fn is_dead(&self) -> bool {
        let life = *self.life();
        !life.is_active && life.chunks == Some(0)
    }
}

#[derive(Debug)]
pub(crate) struct Extents {
    pub(crate) files: Arc<dyn ExtentFiles>,
    pub(crate) health: Arc<SyncHealth>,
    table: Mutex<BTreeMap<u32, Arc<ExtentState>>>,
    /// The most recently used one is last.
    open: Mutex<VecDeque<(u32, Arc<dyn ExtentFile>)>>,
    next_number: Mutex<u32>,
}

impl Extents {
    pub(crate) fn new(
        files: Arc<dyn ExtentFiles>,
        extents: Vec<Arc<ExtentState>>,
        last_number: u32,
    ) -> Extents {
        Extents {
            files,
            health: Arc::default(),
            table: Mutex::new(extents.into_iter().map(|extent| (extent.number, extent)).collect()),
            open: Mutex::default(),
            next_number: Mutex::new(last_number.saturating_add(1)),
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<ExtentState>>> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<(u32, Arc<dyn ExtentFile>)>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn get(&self, number: u32) -> Option<Arc<ExtentState>> {
        self.table().get(&number).cloned()
    }

    /// The first extent from this number on.
    pub(crate) fn from(&self, number: u32) -> Option<Arc<ExtentState>> {
        self.table().range(number..).next().map(|(_, extent)| extent.clone())
    }

    pub(crate) fn all(&self) -> Vec<Arc<ExtentState>> {
        self.table().values().cloned().collect()
    }

    pub(crate) fn open_file_count(&self) -> usize {
        self.open().len()
    }

    /// The open file, if it is open already.
    pub(crate) fn opened(&self, number: u32) -> Option<Arc<dyn ExtentFile>> {
        let mut open = self.open();
        let at = open.iter().rposition(|(other, _)| *other == number)?;
        let found = open.remove(at)?;
        let file = found.1.clone();
        open.push_back(found);
        Some(file)
    }

    /// Opens the file, if it is not open already.
    pub(crate) fn file(&self, number: u32) -> std::io::Result<Arc<dyn ExtentFile>> {
        if let Some(file) = self.opened(number) {
            return Ok(file);
        }
        let file = self.files.open(&format::name(number), FileAccess::Write)?;
        self.keep(number, &file);
        Ok(file)
    }

    fn keep(&self, number: u32, file: &Arc<dyn ExtentFile>) {
        let mut open = self.open();
        // Two may have opened it at the same time.
        open.retain(|(other, _)| *other != number);
        open.push_back((number, file.clone()));
        let closed = if open.len() > OPEN_FILE_COUNT_MAX { open.pop_front() } else { None };
        drop(open);
        drop(closed);
    }

    /// Creates an extent, durably.
    pub(crate) fn create(
        &self,
        store: u64,
        salt: u64,
    ) -> Result<(Arc<ExtentState>, Arc<dyn ExtentFile>), ContentError> {
        let mut next_number = self.next_number.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let number = *next_number;
        let next =
            number.checked_add(1).ok_or_else(|| ContentError::NoRoom("all numbers are used".to_owned()))?;
        let name = format::name(number);
        let file = self.files.open(&name, FileAccess::Create)?;
        let prepared = file
            .allocate(0, format::UNIT_BYTES)
            .and_then(|()| file.write(0, &format::ExtentHead { number, store, salt }.write()));
        let created = match prepared {
            Ok(()) => self.health.sync(&*file).and_then(|()| self.health.sync_directory(&*self.files)),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = created {
            // Nothing is in it. The number is used again, unless its file stays.
            if self.files.remove(&name).is_err() {
                *next_number = next;
            }
            return Err(error);
        }
        *next_number = next;
        let extent = ExtentState::new(number, salt, format::CHUNKS_OFFSET, Some(0), true);
        self.table().insert(number, extent.clone());
        self.keep(number, &file);
        Ok((extent, file))
    }

    /// No further chunk will be placed in this extent. Says so in the file, and gives the room behind its end back. None of
    /// this must happen: without it the next start looks for the end.
    pub(crate) fn seal(&self, extent: &ExtentState, file: &dyn ExtentFile) {
        let end = extent.end();
        let sealed =
            file.write(SEAL_OFFSET, &format::write_seal(extent.salt, end)).and_then(|()| file.set_len(end));
        if let Err(error) = sealed {
            log::warn!("{} could not be sealed: {error}", format::name(extent.number));
        }
        extent.retire();
    }

    /// Removes the extent if nothing lives in it.
    pub(crate) fn remove_if_dead(&self, extent: &ExtentState) -> bool {
        if !extent.is_dead() || self.table().remove(&extent.number).is_none() {
            return false;
        }
        self.open().retain(|(number, _)| *number != extent.number);
        if let Err(error) = self.files.remove(&format::name(extent.number)) {
            // It is empty, so the next start finds it and the next sweep removes it.
            log::warn!("{} could not be removed: {error}", format::name(extent.number));
        }
        true
    }
}
