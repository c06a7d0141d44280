//! A file that checks every block it reads: damage on the disk becomes an error, never data.
//!
//! redb has checksums of its pages but verifies them only when it repairs a file. Our rows have their own, which find
//! a damaged row but not a missing one. So below redb every block of 4 KiB has a checksum, in the same file and made
//! durable by the same sync (`checksum_cache.rs` keeps those in use in memory):
//!
//! ```text
//! checksums of blocks 0 to 1023 (4 KiB) · blocks 0 to 1023 · checksums of blocks 1024 to 2047 · …
//! ```
//!
//! A checksum is the CRC-32 of the block's number and content; 0 marks a block that was never written. redb reads no such
//! block, so one that is read was written once, and zeros in its place are damage. Block 0 has no checksum: redb
//! overwrites its header in place and checks both halves of it itself.
//!
//! Blocks wait in memory (`waiting_blocks.rs`) until the file is synced, and are written in the order of their places.
//!
//! Promises: a read returns what was written, or an error of the kind `InvalidData` that names the block. A block that was
//! never written cannot be read, nor changed in part. A power cut
//! may leave a block and its checksum from different writes, but only for a block that no transaction had made
//! durable: redb never overwrites a block that is in use, and nobody reads the others.

use std::io;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use redb::{BackendError, StorageBackend};

use crate::checksum_cache::{BLOCK_BYTES, CHECKSUM_BYTES, ChecksumCache, GROUP_BLOCK_COUNT, group_offset};
use crate::paced_sync::PacedSync;
use crate::waiting_blocks::WaitingBlocks;

/// Up to this many blocks the checksums need no allocation.
const SHORT_RUN_BLOCK_COUNT: usize = 32;
const BLOCK: u64 = BLOCK_BYTES as u64;
/// When so many blocks wait, some are written. A transaction of a fold has about half as many.
const WAITING_COUNT_MAX: usize = 16 * 1024 * 1024 / BLOCK_BYTES;
/// Neighbours are written together, up to so many.
const RUN_COUNT_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct ChecksumFile<B> {
    file: B,
    checksums: ChecksumCache,
    paced_sync: PacedSync,
    waiting: WaitingBlocks,
    /// The bytes that are written next; `None` once the file is closed. Held by whoever writes.
    writing: Mutex<Option<Vec<u8>>>,
    /// Grows with every write.
    written_bytes: Arc<AtomicU64>,
}

impl<B: StorageBackend> ChecksumFile<B> {
    pub(crate) fn new(file: B, paced_sync: PacedSync, written_bytes: Arc<AtomicU64>) -> ChecksumFile<B> {
        ChecksumFile {
            file,
            checksums: ChecksumCache::new(),
            paced_sync,
            waiting: WaitingBlocks::default(),
            writing: Mutex::new(Some(Vec::new())),
            written_bytes,
        }
    }

    /// Reads whole blocks of one group.
    fn read_blocks(&self, first: u64, out: &mut [u8]) -> io::Result<()> {
        if !self.waiting.any_in(first, out.len() / BLOCK_BYTES) {
            return self.read_run(first, out);
        }
        for (number, block) in (first..).zip(out.chunks_exact_mut(BLOCK_BYTES)) {
            if !self.waiting.read(number, block) {
                self.read_run(number, block)?;
            }
        }
        Ok(())
    }

    /// Reads whole blocks of one group from the file into `out` and checks them.
    fn read_run(&self, first: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(block_offset(first), out)?;
        let count = out.len() / BLOCK_BYTES;
        with_checksums(count, |checksums| {
            self.checksums.read(&self.file, first, checksums)?;
            for (number, (block, stored)) in
                (first..).zip(out.chunks_exact(BLOCK_BYTES).zip(checksums.chunks_exact(CHECKSUM_BYTES)))
            {
                if !matches(number, block, stored) {
                    let text = format!("block {number} of the file does not match its checksum");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
            Ok(())
        })
    }

    /// Writes whole blocks of one group, with their checksums.
    fn write_run(&self, first: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(block_offset(first), data)?;
        with_checksums(data.len() / BLOCK_BYTES, |checksums| {
            for (number, (block, stored)) in
                (first..).zip(data.chunks_exact(BLOCK_BYTES).zip(checksums.chunks_exact_mut(CHECKSUM_BYTES)))
            {
                stored.copy_from_slice(&checksum(number, block).to_le_bytes());
            }
            self.checksums.write(&self.file, first, checksums)
        })
    }

    /// Writes all blocks that wait, in the order of their places.
    ///
    /// After a failure they go on waiting: redb does not always treat one as final. A read may make it write pages to make
    /// room in its cache, and then it ignores the error.
    fn write_waiting(&self) -> io::Result<()> {
        let mut writing = self.lock_writing();
        while self.write_next_run(&mut writing)? > 0 {}
        Ok(())
    }

    /// Writes the first neighbours of those that wait, unless another thread writes some just now. Returns the size.
    fn write_some(&self) -> io::Result<usize> {
        let mut writing = match self.writing.try_lock() {
            Ok(writing) => writing,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(0),
        };
        self.write_next_run(&mut writing)
    }

    fn write_next_run(&self, writing: &mut Option<Vec<u8>>) -> io::Result<usize> {
        let Some(run) = writing else {
            return Err(io::Error::other("the file is closed"));
        };
        let Some(first) = self.waiting.first_run(run, RUN_COUNT_MAX) else { return Ok(0) };
        for (first, part) in runs(first * BLOCK, run.len()) {
            self.write_run(first, &run[part.bytes])?;
        }
        self.waiting.remove(first, run);
        // Not below the checksums: those of a run are written while a reader may wait for them.
        self.paced_sync.wrote(&self.file, run.len())?;
        Ok(run.len())
    }

    fn lock_writing(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<B: StorageBackend> StorageBackend for ChecksumFile<B> {
    fn len(&self) -> io::Result<u64> {
        let blocks = self.file.len()?.div_ceil(BLOCK);
        Ok((blocks - blocks.div_ceil(GROUP_BLOCK_COUNT + 1)) * BLOCK)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        for (first, part) in runs(offset, out.len()) {
            let out = &mut out[part.bytes];
            if part.is_header {
                self.file.read(block_offset(0) + part.within as u64, out)?;
            } else if part.is_whole {
                self.read_blocks(first, out)?;
            } else {
                let mut block = [0; BLOCK_BYTES];
                self.read_blocks(first, &mut block)?;
                out.copy_from_slice(&block[part.within..part.within + out.len()]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.write_waiting()?;
        let (old, new) = (self.len()? / BLOCK, len.div_ceil(BLOCK));
        self.file.set_len(if new == 0 { 0 } else { block_offset(new - 1) + BLOCK })?;
        self.checksums.forget_from(new.div_ceil(GROUP_BLOCK_COUNT));
        let group_end = new.next_multiple_of(GROUP_BLOCK_COUNT);
        if new < old && new < group_end {
            // Truncated blocks count as unwritten if the file grows back.
            let zeros = vec![0; (group_end - new) as usize * CHECKSUM_BYTES];
            self.checksums.write(&self.file, new, &zeros)?;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write_waiting()?;
        // A large tree has hundreds of blocks of checksums, and a commit changes nearly all of them.
        self.checksums.flush(&self.file, |size_bytes| self.paced_sync.wrote(&self.file, size_bytes))?;
        self.paced_sync.synced();
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.written_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        for (first, part) in runs(offset, data.len()) {
            let data = &data[part.bytes];
            if part.is_header {
                self.file.write(block_offset(0) + part.within as u64, data)?;
                self.paced_sync.wrote(&self.file, data.len())?;
            } else if part.is_whole {
                self.waiting.put(first, data);
            } else {
                let mut block = [0; BLOCK_BYTES];
                self.read_blocks(first, &mut block)?;
                block[part.within..part.within + data.len()].copy_from_slice(data);
                self.waiting.put(first, &block);
            }
        }
        // Not all that waits: a reader may be the one whose page was too many.
        let mut size_bytes = 0;
        while self.waiting.count() >= WAITING_COUNT_MAX && size_bytes < data.len() {
            match self.write_some()? {
                0 => break,
                written => size_bytes += written,
            }
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        // Another handle is about to write this file, so a reader that writes a page for redb must be done.
        *self.lock_writing() = None;
        // redb syncs what it wants to keep. The rest belongs to no transaction.
        self.waiting.clear();
        let flushed = self.checksums.flush(&self.file, |_| Ok(()));
        self.file.close().and(flushed)
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

/// A piece of a read or write: whole blocks of one group, or a part of one block.
struct Part {
    /// The piece's place in the caller's bytes.
    bytes: Range<usize>,
    /// The offset in its first block.
    within: usize,
    is_whole: bool,
    is_header: bool,
}

/// Cuts a run of bytes into pieces, each with the number of its first block.
fn runs(offset: u64, len: usize) -> impl Iterator<Item = (u64, Part)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let (first, within) = (at / BLOCK, (at % BLOCK) as usize);
        let left = len - done;
        let is_header = first == 0;
        let is_whole = !is_header && within == 0 && left >= BLOCK_BYTES;
        let size = if is_whole {
            let to_group_end = GROUP_BLOCK_COUNT - first % GROUP_BLOCK_COUNT;
            (left / BLOCK_BYTES).min(to_group_end as usize) * BLOCK_BYTES
        } else {
            left.min(BLOCK_BYTES - within)
        };
        let bytes = done..done + size;
        done += size;
        Some((first, Part { bytes, within, is_whole, is_header }))
    })
}

/// The offset of a block in the file.
fn block_offset(number: u64) -> u64 {
    group_offset(number / GROUP_BLOCK_COUNT) + (number % GROUP_BLOCK_COUNT + 1) * BLOCK
}

fn with_checksums<T>(count: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut short = [0; SHORT_RUN_BLOCK_COUNT * CHECKSUM_BYTES];
    match short.get_mut(..count * CHECKSUM_BYTES) {
        Some(checksums) => work(checksums),
        None => work(&mut vec![0; count * CHECKSUM_BYTES]),
    }
}

/// Never 0, because 0 marks a block that was never written.
fn checksum(number: u64, block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(block);
    hasher.finalize().max(1)
}

/// A block that was never written matches nothing.
fn matches(number: u64, block: &[u8], stored: &[u8]) -> bool {
    stored != [0; CHECKSUM_BYTES] && stored == checksum(number, block).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use redb::backends::InMemoryBackend;

    use super::*;

    const GROUP: u64 = GROUP_BLOCK_COUNT * BLOCK;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Done {
        /// Offset and length.
        Write(u64, u64),
        Sync,
    }

    /// A file that remembers what was done to it.
    #[derive(Debug)]
    struct Recording {
        content: InMemoryBackend,
        done: Mutex<Vec<Done>>,
        is_full: AtomicBool,
    }

    impl Default for Recording {
        fn default() -> Recording {
            let (content, done) = (InMemoryBackend::new(), Mutex::default());
            Recording { content, done, is_full: AtomicBool::new(false) }
        }
    }

    impl Recording {
        fn take(&self) -> Vec<Done> {
            std::mem::take(&mut self.done.lock().unwrap())
        }
    }

    impl StorageBackend for Recording {
        fn len(&self) -> io::Result<u64> {
            self.content.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.content.read(offset, out)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.content.set_len(len)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.done.lock().unwrap().push(Done::Sync);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            if self.is_full.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.done.lock().unwrap().push(Done::Write(offset, data.len() as u64));
            self.content.write(offset, data)
        }
    }

    fn checksum_offset(number: u64) -> u64 {
        group_offset(number / GROUP_BLOCK_COUNT) + number % GROUP_BLOCK_COUNT * CHECKSUM_BYTES as u64
    }

    /// It is synced at every write.
    fn checked_file() -> ChecksumFile<InMemoryBackend> {
        ChecksumFile::new(InMemoryBackend::new(), PacedSync::new(1), Default::default())
    }

    /// The file, and a plain vector with the same content.
    struct Both {
        checked: ChecksumFile<InMemoryBackend>,
        plain: Vec<u8>,
    }

    impl Both {
        fn new(len: u64) -> Both {
            let checked = checked_file();
            checked.set_len(len).unwrap();
            assert_eq!(checked.len().unwrap(), len);
            let plain = vec![0; len as usize];
            checked.write(0, &plain).unwrap();
            Both { checked, plain }
        }

        fn write(&mut self, offset: u64, data: &[u8]) {
            self.checked.write(offset, data).unwrap();
            self.plain[offset as usize..][..data.len()].copy_from_slice(data);
        }

        /// Forgets what is in memory, as another process would.
        fn reopen(&mut self) {
            self.checked.sync_data().unwrap();
            self.checked.checksums = ChecksumCache::new();
        }

        fn compare(&self, offset: u64, len: usize) {
            let mut out = vec![7; len];
            self.checked.read(offset, &mut out).unwrap();
            assert!(out == self.plain[offset as usize..][..len], "{offset} {len}");
        }
    }

    #[test]
    fn what_is_written_is_read_wherever_it_begins_and_ends() {
        let mut both = Both::new(2 * GROUP + 5 * BLOCK);
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let len = random.usize(1..40_000);
            // Near the boundary of two groups, or anywhere.
            let start = if random.bool() { GROUP - 20_000 } else { random.u64(0..2 * GROUP - 40_000) };
            let offset = start + random.u64(0..20_000);
            let data: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            both.write(offset, &data);
            both.compare(offset.saturating_sub(5_000), len + 5_000);
            if random.u8(..20) == 0 {
                both.reopen();
            }
        }
        both.compare(0, both.plain.len());
        both.reopen();
        both.compare(0, both.plain.len());
    }

    #[test]
    fn a_file_with_more_groups_than_are_kept_in_memory_is_read_all_the_same() {
        let groups = 11;
        let mut checked = checked_file();
        checked.set_len(groups * GROUP).unwrap();
        let at = |group: u64| group * GROUP + (1 + group % 7) * BLOCK;
        for group in 0..groups {
            checked.write(at(group), &[group as u8; BLOCK_BYTES]).unwrap();
        }
        for _ in 0..2 {
            for group in (0..groups).rev() {
                let mut out = [0; BLOCK_BYTES];
                checked.read(at(group), &mut out).unwrap();
                assert_eq!(out, [group as u8; BLOCK_BYTES], "{group}");
            }
            checked.sync_data().unwrap();
            checked.checksums = ChecksumCache::new();
        }
    }

    #[test]
    fn blocks_and_checksums_are_written_in_order_and_synced_in_small_steps() {
        let file = Recording::default();
        let mut checked = ChecksumFile::new(file, PacedSync::new(2 * BLOCK), Default::default());
        checked.set_len(3 * GROUP).unwrap();
        let block = [1; BLOCK_BYTES];
        for number in [2 * GROUP_BLOCK_COUNT, 7, 2, 6, 1, 5, GROUP_BLOCK_COUNT] {
            checked.write(number * BLOCK, &block).unwrap();
        }
        assert_eq!(checked.file.take(), [], "nothing is written until it has to be");
        checked.sync_data().unwrap();
        let at = block_offset;
        let (written, checksums) =
            (|number, count: u64| Done::Write(at(number), count * BLOCK), group_offset);
        let expected = [
            written(1, 2),
            Done::Sync,
            written(5, 3),
            Done::Sync,
            written(GROUP_BLOCK_COUNT, 1),
            written(2 * GROUP_BLOCK_COUNT, 1),
            Done::Sync,
            Done::Write(checksums(0), BLOCK),
            Done::Write(checksums(1), BLOCK),
            Done::Sync,
            Done::Write(checksums(2), BLOCK),
            Done::Sync,
        ];
        assert_eq!(checked.file.take(), expected);
        checked.sync_data().unwrap();
        assert_eq!(checked.file.take(), [Done::Sync], "nothing has changed");
        checked.checksums = ChecksumCache::new();
        let mut out = [0; BLOCK_BYTES];
        checked.read(6 * BLOCK, &mut out).unwrap();
        assert_eq!(out, block);
    }

    #[test]
    fn blocks_that_wait_are_read_and_changed_as_if_they_were_in_the_file() {
        let checked = ChecksumFile::new(Recording::default(), PacedSync::new(u64::MAX), Default::default());
        checked.set_len(9 * BLOCK).unwrap();
        checked.write(2 * BLOCK, &[1; 2 * BLOCK_BYTES]).unwrap();
        checked.sync_data().unwrap();
        checked.write(3 * BLOCK, &[2; 2 * BLOCK_BYTES]).unwrap();
        checked.write(3 * BLOCK + 5, &[3; 10]).unwrap();
        let mut out = [0; 3 * BLOCK_BYTES];
        for round in 0..2 {
            checked.read(2 * BLOCK, &mut out).unwrap();
            assert_eq!(
                out[BLOCK_BYTES - 1..][..17],
                [1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2],
                "{round}"
            );
            assert_eq!(out[3 * BLOCK_BYTES - 1], 2, "{round}");
            checked.sync_data().unwrap();
        }
    }

    #[test]
    fn what_could_not_be_written_is_read_and_written_later() {
        let checked = ChecksumFile::new(Recording::default(), PacedSync::new(u64::MAX), Default::default());
        let count = WAITING_COUNT_MAX as u64;
        checked.set_len((count + 2) * BLOCK).unwrap();
        checked.file.is_full.store(true, Ordering::Relaxed);
        let numbers: Vec<u64> = (2..count + 1).chain([1]).collect();
        let (last, others) = numbers.split_last().unwrap();
        for number in others {
            checked.write(number * BLOCK, &[*number as u8; BLOCK_BYTES]).unwrap();
        }
        let error = checked.write(last * BLOCK, &[*last as u8; BLOCK_BYTES]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(checked.sync_data().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut out = [0; BLOCK_BYTES];
        for _ in 0..2 {
            for number in &numbers {
                checked.read(number * BLOCK, &mut out).unwrap();
                assert_eq!(out, [*number as u8; BLOCK_BYTES], "{number}");
            }
            checked.file.is_full.store(false, Ordering::Relaxed);
            checked.sync_data().unwrap();
            assert_eq!(checked.waiting.count(), 0);
        }
    }

    #[test]
    fn with_too_many_blocks_as_many_are_written_as_come() {
        let checked = ChecksumFile::new(Recording::default(), PacedSync::new(u64::MAX), Default::default());
        let count = WAITING_COUNT_MAX as u64;
        checked.set_len((count + 3 * RUN_COUNT_MAX as u64) * BLOCK).unwrap();
        for number in (1..=count).rev() {
            assert_eq!(checked.file.take(), []);
            checked.write(number * BLOCK, &[1; BLOCK_BYTES]).unwrap();
        }
        let run_of = |number: u64| Done::Write(block_offset(number), RUN_COUNT_MAX as u64 * BLOCK);
        let run_count = RUN_COUNT_MAX as u64;
        assert_eq!(checked.file.take(), [run_of(1)], "the first neighbours");
        checked.write((count + 1) * BLOCK, &vec![1; 2 * RUN_COUNT_MAX * BLOCK_BYTES]).unwrap();
        assert_eq!(checked.file.take(), [run_of(1 + run_count), run_of(1 + 2 * run_count)]);
        assert_eq!(checked.waiting.count(), WAITING_COUNT_MAX - RUN_COUNT_MAX);
    }

    #[test]
    fn what_nobody_synced_is_forgotten_at_the_end() {
        let checked = ChecksumFile::new(Recording::default(), PacedSync::new(u64::MAX), Default::default());
        checked.set_len(9 * BLOCK).unwrap();
        checked.write(2 * BLOCK, &[1; BLOCK_BYTES]).unwrap();
        checked.close().unwrap();
        // A reader may not know yet.
        checked.write(3 * BLOCK, &[1; BLOCK_BYTES]).unwrap();
        assert!(checked.sync_data().is_err());
        assert_eq!(checked.file.take(), []);
    }

    #[test]
    fn any_flipped_bit_of_a_block_or_its_checksum_is_found_and_harms_no_other() {
        let mut both = Both::new(8 * BLOCK);
        both.write(BLOCK, &vec![9; 6 * BLOCK_BYTES]);
        both.reopen();
        for at in [block_offset(3), block_offset(3) + 4095, checksum_offset(3), checksum_offset(3) + 3] {
            let mut byte = [0];
            both.checked.file.read(at, &mut byte).unwrap();
            both.checked.file.write(at, &[byte[0] ^ 0x10]).unwrap();
            both.checked.checksums = ChecksumCache::new();
            let mut out = vec![0; BLOCK_BYTES];
            let error = both.checked.read(3 * BLOCK, &mut out).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("block 3"), "{error}");
            assert!(both.checked.read(3 * BLOCK + 100, &mut out[..10]).is_err());
            assert!(both.checked.write(3 * BLOCK + 100, &[1]).is_err(), "a part of it is not made right");
            both.compare(2 * BLOCK, BLOCK_BYTES);
            both.compare(4 * BLOCK, BLOCK_BYTES);
            both.checked.file.write(at, &byte).unwrap();
            both.checked.checksums = ChecksumCache::new();
        }
        both.compare(0, 8 * BLOCK_BYTES);
    }

    #[test]
    fn zeros_over_blocks_and_their_checksums_are_found() {
        let mut both = Both::new(8 * BLOCK);
        both.write(BLOCK, &vec![9; 6 * BLOCK_BYTES]);
        both.reopen();
        both.checked.file.write(0, &vec![0; 5 * BLOCK_BYTES]).unwrap();
        both.checked.checksums = ChecksumCache::new();
        let mut out = vec![0; BLOCK_BYTES];
        for number in 1..8 {
            let error = both.checked.read(number * BLOCK, &mut out).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_block_in_anothers_place_is_found() {
        let mut both = Both::new(8 * BLOCK);
        both.write(BLOCK, &vec![9; BLOCK_BYTES]);
        both.write(2 * BLOCK, &vec![5; BLOCK_BYTES]);
        both.reopen();
        let (mut block, mut sum) = (vec![0; BLOCK_BYTES], [0; 4]);
        both.checked.file.read(block_offset(1), &mut block).unwrap();
        both.checked.file.read(checksum_offset(1), &mut sum).unwrap();
        both.checked.file.write(block_offset(2), &block).unwrap();
        both.checked.file.write(checksum_offset(2), &sum).unwrap();
        both.checked.checksums = ChecksumCache::new();
        assert!(both.checked.read(2 * BLOCK, &mut block).is_err());
    }

    #[test]
    fn a_file_grows_and_shrinks_and_what_comes_again_was_never_written() {
        let checked = checked_file();
        let mut out = vec![7; 3 * BLOCK_BYTES];
        for blocks in [4, 1023, 1024, 1025, 2048, 3000, 1024, 1025, 10] {
            let old = checked.len().unwrap();
            checked.set_len(blocks * BLOCK).unwrap();
            assert_eq!(checked.len().unwrap(), blocks * BLOCK);
            if old < blocks * BLOCK {
                let last = blocks * BLOCK - BLOCK;
                let error = checked.read(last, &mut out[..BLOCK_BYTES]).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                assert!(checked.write(last + 1, &[1]).is_err());
            }
            checked.write(blocks * BLOCK - 3 * BLOCK, &vec![blocks as u8; 3 * BLOCK_BYTES]).unwrap();
            checked.read(blocks * BLOCK - 3 * BLOCK, &mut out).unwrap();
            assert!(out.iter().all(|byte| *byte == blocks as u8));
        }
        checked.set_len(0).unwrap();
        assert_eq!(checked.len().unwrap(), 0);
    }
}
