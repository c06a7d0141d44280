//! Blocks of the tree's file that wait to be written in the order of their places.
//!
//! redb hands over the pages of a transaction in the order of a hash table. If they are written and synced like that, a
//! few at a time, the disk gets a request for each, even where they lie side by side; in order, neighbours are one request
//! (docs/decisions/0021-folding.md has the figures).
//!
//! Promises: a block is found here from when it is put until it is removed, its newest content counts, and content that was
//! not written is never removed. Nobody waits for the disk here. Leaves to others: how many may wait, and writing them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::checksum_cache::BLOCK_BYTES;

/// The blocks, by number.
type Blocks = BTreeMap<u64, Box<[u8]>>;

#[derive(Default, Debug)]
pub(crate) struct WaitingBlocks {
    blocks: Mutex<Blocks>,
    /// So that a reader need not lock anything when none wait, which is nearly always.
    count: AtomicUsize,
}

impl WaitingBlocks {
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Puts whole blocks, the first with this number.
    pub(crate) fn put(&self, first: u64, data: &[u8]) {
        let mut blocks = self.blocks();
        for (number, block) in (first..).zip(data.chunks_exact(BLOCK_BYTES)) {
            blocks.insert(number, block.into());
        }
        self.count.store(blocks.len(), Ordering::Release);
    }

    /// Whether any of so many blocks waits, the first with this number.
    pub(crate) fn any_in(&self, first: u64, count: usize) -> bool {
        self.count() > 0 && self.blocks().range(first..first + count as u64).next().is_some()
    }

    /// Copies the block, if it waits.
    pub(crate) fn read(&self, number: u64, out: &mut [u8]) -> bool {
        let found = self.blocks();
        let found = found.get(&number);
        if let Some(block) = found {
            out.copy_from_slice(block);
        }
        found.is_some()
    }

    /// Copies the first block and those right behind it, at most so many, in place of what is in `run`. Returns the first
    /// one's number; `None` if no block waits.
    pub(crate) fn first_run(&self, run: &mut Vec<u8>, count_max: usize) -> Option<u64> {
        run.clear();
        let blocks = self.blocks();
        let (first, _) = blocks.first_key_value()?;
        for (number, (found, block)) in (*first..).zip(&*blocks).take(count_max) {
            if number != *found {
                break;
            }
            run.extend_from_slice(block);
        }
        Some(*first)
    }

    /// Forgets the blocks of a run that was written. One that got other content meanwhile still waits.
    pub(crate) fn remove(&self, first: u64, run: &[u8]) {
        let mut blocks = self.blocks();
        for (number, written) in (first..).zip(run.chunks_exact(BLOCK_BYTES)) {
            if blocks.get(&number).is_some_and(|block| **block == *written) {
                blocks.remove(&number);
            }
        }
        self.count.store(blocks.len(), Ordering::Release);
    }

    pub(crate) fn clear(&self) {
        let mut blocks = self.blocks();
        blocks.clear();
        self.count.store(0, Ordering::Release);
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(byte: u8) -> [u8; BLOCK_BYTES] {
        [byte; BLOCK_BYTES]
    }

    #[test]
    fn runs_come_in_order_and_the_newest_content_counts() {
        let waiting = WaitingBlocks::default();
        for number in [9, 3, 4, 20, 5, 3] {
            waiting.put(number, &block(waiting.count() as u8));
        }
        waiting.put(10, &[block(10), block(11)].concat());
        assert_eq!(waiting.count(), 7);
        let mut out = block(0);
        assert!(waiting.read(3, &mut out) && out == block(5), "put twice");
        assert!(!waiting.read(6, &mut out));
        assert!(waiting.any_in(6, 4) && !waiting.any_in(6, 3) && !waiting.any_in(21, 9));
        let mut taken = Vec::new();
        let mut run = vec![1; 10];
        while let Some(first) = waiting.first_run(&mut run, 2) {
            taken.push((first, run.iter().step_by(BLOCK_BYTES).copied().collect::<Vec<u8>>()));
            assert!(waiting.read(first, &mut out), "it is found until it is removed");
            waiting.remove(first, &run);
        }
        let expected = [(3, vec![5, 2]), (5, vec![4]), (9, vec![0, 10]), (11, vec![11]), (20, vec![3])];
        assert_eq!(taken, expected);
        assert_eq!(waiting.count(), 0);
    }

    #[test]
    fn a_block_that_changed_while_it_was_written_still_waits() {
        let waiting = WaitingBlocks::default();
        waiting.put(3, &[block(1), block(2)].concat());
        let mut run = Vec::new();
        let first = waiting.first_run(&mut run, 9).unwrap();
        waiting.put(4, &block(7));
        waiting.remove(first, &run);
        let mut out = block(0);
        assert!(!waiting.read(3, &mut out));
        assert!(waiting.read(4, &mut out) && out == block(7));
    }
}
