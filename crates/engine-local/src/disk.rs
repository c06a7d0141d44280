//! What a disk error means: whether a sync failed, or there was merely no space.
//!
//! A write that finds no space does no harm: what reached the file belongs to no transaction, and reopening the file
//! shows the last one. After a failed sync the content of the disk is unknown, so the engine never continues after
//! one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, StorageBackend};

use crate::checksum_cache::BLOCK_BYTES;

/// Whether a sync of the file failed, however often it was opened. Locked during every sync.
#[derive(Default, Debug)]
pub(crate) struct SyncFailure(Mutex<bool>);

impl SyncFailure {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn has_happened(&self) -> bool {
        *self.lock()
    }
}

/// A file that remembers whether a sync failed. After one that did, every further sync fails: the system reports a
/// failure once, and then takes the pages that it lost for written.
#[derive(Debug)]
pub(crate) struct Watched<B> {
    inner: B,
    sync_failure: Arc<SyncFailure>,
}

impl<B> Watched<B> {
    pub(crate) fn new(inner: B, sync_failure: Arc<SyncFailure>) -> Watched<B> {
        Watched { inner, sync_failure }
    }
}

impl<B: StorageBackend> StorageBackend for Watched<B> {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut has_failed = self.sync_failure.lock();
        if *has_failed {
            return Err(io::Error::other("an earlier sync failed"));
        }
        // Set it first: a sync that panics has failed too.
        *has_failed = true;
        let outcome = self.inner.sync_data();
        *has_failed = outcome.is_err();
        outcome
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }
}

/// A file opened for reading only. Writes stay in memory and are lost with this object: redb writes a few pages when
/// it opens a database.
#[derive(Debug)]
pub(crate) struct Overlay<B> {
    inner: B,
    written: Mutex<OverlayContent>,
}

#[derive(Default, Debug)]
struct OverlayContent {
    /// The written blocks by number.
    blocks: BTreeMap<u64, Box<[u8]>>,
    len: Option<u64>,
}

impl<B: StorageBackend> Overlay<B> {
    pub(crate) fn new(inner: B) -> Overlay<B> {
        Overlay { inner, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, OverlayContent> {
        self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reads the file below; zeros behind its end.
    fn read_file(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.inner.len()?.saturating_sub(offset).min(out.len() as u64) as usize;
        out[there..].fill(0);
        self.inner.read(offset, &mut out[..there])
    }
}

/// The blocks that a run of bytes touches: the block's number, the offset in it, and the part of the bytes.
fn blocks(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK_BYTES as u64) as usize;
        let size = (BLOCK_BYTES - within).min(len - done);
        let part = done..done + size;
        done += size;
        (size > 0).then_some((at / BLOCK_BYTES as u64, within, part))
    })
}

impl<B: StorageBackend> StorageBackend for Overlay<B> {
    fn len(&self) -> io::Result<u64> {
        let len = self.written().len;
        len.map_or_else(|| self.inner.len(), Ok)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_file(offset, out)?;
        let written = self.written();
        for (number, within, part) in blocks(offset, out.len()) {
            if let Some(block) = written.blocks.get(&number) {
                let size = part.len();
                out[part].copy_from_slice(&block[within..within + size]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.written().len = Some(len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        for (number, within, part) in blocks(offset, data.len()) {
            let block = match written.blocks.entry(number) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let mut block = vec![0; BLOCK_BYTES].into_boxed_slice();
                    self.read_file(number * BLOCK_BYTES as u64, &mut block)?;
                    entry.insert(block)
                }
            };
            block[within..within + part.len()].copy_from_slice(&data[part]);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }
}

/// Whether the error says that the file takes no writes for now. That may change: somebody frees space, or makes the
/// file system writable.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem)
}
