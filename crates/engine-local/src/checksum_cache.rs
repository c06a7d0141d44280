//! The checksum blocks of a [`ChecksumFile`](crate::checksum_file), those in use kept in memory.
//!
//! Without it, every read or write of a block would need a second system call for four bytes. Changes stay in memory
//! until [`ChecksumCache::flush`], which comes before every sync of the file, so checksums become durable together
//! with their blocks. A block that was not synced may lack its checksum, which does no harm, because no transaction
//! refers to it.
//!
//! Promises: [`ChecksumCache::read`] returns what was written last. [`SLOT_COUNT`] bounds the memory.

use std::io;
use std::sync::{Mutex, MutexGuard};

use redb::StorageBackend;

pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// How many blocks one block of checksums covers.
pub(crate) const GROUP_BLOCK_COUNT: u64 = (BLOCK_BYTES / CHECKSUM_BYTES) as u64;
/// Enough for four gigabytes that are all in use. Few in tests, whose files are small.
const SLOT_COUNT: usize = if cfg!(test) { 4 } else { 1024 };

#[derive(Debug)]
pub(crate) struct ChecksumCache {
    slots: Box<[Mutex<Option<Slot>>]>,
}

#[derive(Debug)]
struct Slot {
    group: u64,
    bytes: Box<[u8; BLOCK_BYTES]>,
    is_changed: bool,
}

impl ChecksumCache {
    pub(crate) fn new() -> ChecksumCache {
        ChecksumCache { slots: (0..SLOT_COUNT).map(|_| Mutex::new(None)).collect() }
    }

    /// Reads the checksums of consecutive blocks of one group, beginning with this block.
    pub(crate) fn read(&self, file: &impl StorageBackend, first: u64, out: &mut [u8]) -> io::Result<()> {
        let mut slot = self.slot(file, first / GROUP_BLOCK_COUNT)?;
        let start = start_in_group(first);
        let slot = slot.as_mut().ok_or(io::ErrorKind::NotFound)?;
        out.copy_from_slice(&slot.bytes[start..start + out.len()]);
        Ok(())
    }

    pub(crate) fn write(&self, file: &impl StorageBackend, first: u64, checksums: &[u8]) -> io::Result<()> {
        let mut slot = self.slot(file, first / GROUP_BLOCK_COUNT)?;
        let start = start_in_group(first);
        let slot = slot.as_mut().ok_or(io::ErrorKind::NotFound)?;
        slot.bytes[start..start + checksums.len()].copy_from_slice(checksums);
        slot.is_changed = true;
        Ok(())
    }

    /// Writes the changed checksums to the file. Calls `wrote` after each block, with its size.
    pub(crate) fn flush(
        &self,
        file: &impl StorageBackend,
        wrote: impl Fn(usize) -> io::Result<()>,
    ) -> io::Result<()> {
        for slot in &self.slots {
            let has_written = match &mut *lock(slot) {
                Some(slot) => slot.flush(file)?,
                None => false,
            };
            // After the lock is given up: a reader may wait for it.
            if has_written {
                wrote(BLOCK_BYTES)?;
            }
        }
        Ok(())
    }

    /// Forgets this group and all later ones: the file now ends before them.
    pub(crate) fn forget_from(&self, group: u64) {
        for slot in &self.slots {
            let mut slot = lock(slot);
            if slot.as_ref().is_some_and(|slot| slot.group >= group) {
                *slot = None;
            }
        }
    }

    /// The slot with the checksums of this group.
    fn slot(&self, file: &impl StorageBackend, group: u64) -> io::Result<MutexGuard<'_, Option<Slot>>> {
        let mut slot = lock(&self.slots[(group % SLOT_COUNT as u64) as usize]);
        if slot.as_ref().is_some_and(|slot| slot.group == group) {
            return Ok(slot);
        }
        if let Some(other) = &mut *slot {
            other.flush(file)?;
        }
        let mut bytes = match slot.take() {
            Some(other) => other.bytes,
            None => Box::new([0; BLOCK_BYTES]),
        };
        file.read(group_offset(group), &mut bytes[..])?;
        *slot = Some(Slot { group, bytes, is_changed: false });
        Ok(slot)
    }
}

impl Slot {
    /// Returns whether there was anything to write.
    fn flush(&mut self, file: &impl StorageBackend) -> io::Result<bool> {
        if self.is_changed {
            file.write(group_offset(self.group), &self.bytes[..])?;
        }
        Ok(std::mem::take(&mut self.is_changed))
    }
}

fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The offset of a group's checksums in the file; the group's blocks follow.
pub(crate) fn group_offset(group: u64) -> u64 {
    group * (GROUP_BLOCK_COUNT + 1) * BLOCK_BYTES as u64
}

/// The offset of a block's checksum within its group.
fn start_in_group(number: u64) -> usize {
    (number % GROUP_BLOCK_COUNT) as usize * CHECKSUM_BYTES
}
