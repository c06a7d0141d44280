//! The checksum blocks of a checked file, the ones in use kept in memory.
//!
//! Without this every block read or written would cost a second call to the operating system for its four bytes. Changes
//! stay here until [`ChecksumCache::flush`], which whoever syncs the file calls first: checksums become durable with the blocks
//! they belong to, and a block that was not synced may have none, which is no harm, as no commit has it.
//!
//! Promises: what [`ChecksumCache::read`] returns is what was written last. Memory is bounded by [`SLOT_COUNT`] blocks.

use std::io;
use std::sync::{Mutex, MutexGuard};

use redb::StorageBackend;

pub(crate) const BLOCK_BYTES: usize = 4096;
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// Blocks of the file that one block of checksums is for.
pub(crate) const GROUP_BLOCK_COUNT: u64 = (BLOCK_BYTES / CHECKSUM_BYTES) as u64;
/// For four gigabytes of a file that is used all over. Few in tests, whose files are small.
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

    /// The checksums of consecutive blocks of one group, from the block with this number on.
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

    /// Writes what was changed into the file.
    pub(crate) fn flush(&self, file: &impl StorageBackend) -> io::Result<()> {
        for slot in &self.slots {
            if let Some(slot) = &mut *lock(slot) {
                slot.flush(file)?;
            }
        }
        Ok(())
    }

    /// Forgets the groups from this one on: the file ends before them.
    pub(crate) fn forget_from(&self, group: u64) {
        for slot in &self.slots {
            let mut slot = lock(slot);
            if slot.as_ref().is_some_and(|slot| slot.group >= group) {
                *slot = None;
            }
        }
    }

    /// The slot of this group, filled.
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
    fn flush(&mut self, file: &impl StorageBackend) -> io::Result<()> {
        if self.is_changed {
            file.write(group_offset(self.group), &self.bytes[..])?;
            self.is_changed = false;
        }
        Ok(())
    }
}

fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Where a group's checksums are in the file; its blocks follow.
pub(crate) fn group_offset(group: u64) -> u64 {
    group * (GROUP_BLOCK_COUNT + 1) * BLOCK_BYTES as u64
}

/// Where a block's checksum is among those of its group.
fn start_in_group(number: u64) -> usize {
    (number % GROUP_BLOCK_COUNT) as usize * CHECKSUM_BYTES
}
