//! Ranges of extents in which nothing lives, waiting to be given back to the file system.
//!
//! Punching a hole may take milliseconds, however small it is, so ranges that touch are punched together, and short ones not
//! at all: they wait until their neighbours are forgotten too, or their whole extent is removed. A list that gets too
//! long loses ranges; a sweep finds them again.

use std::collections::{BTreeMap, BTreeSet};

/// Shorter ranges are not worth a hole.
pub(crate) const PUNCH_BYTES_MIN: u64 = 64 * 1024;
/// Ranges that wait: 6 MiB of memory at most.
pub(crate) const DEAD_RANGE_COUNT_MAX: usize = 1 << 16;

/// Extent and offset.
type Start = (u32, u64);

#[derive(Default, Debug)]
pub(crate) struct DeadRanges {
    /// Their lengths. No two of them touch.
    ranges: BTreeMap<Start, u64>,
    /// Those that are long enough.
    ready: BTreeSet<Start>,
}

impl DeadRanges {
    pub(crate) fn add(&mut self, extent: u32, offset: u64, bytes: u64) {
        let (mut start, mut end) = (offset, offset + bytes);
        // All that touch it or overlap with it, from behind.
        while let Some((&found, &length)) = self.ranges.range((extent, 0)..=(extent, end)).next_back() {
            if found.1 + length < start {
                break;
            }
            start = start.min(found.1);
            end = end.max(found.1 + length);
            self.ranges.remove(&found);
            self.ready.remove(&found);
        }
        self.ranges.insert((extent, start), end - start);
        if end - start >= PUNCH_BYTES_MIN {
            self.ready.insert((extent, start));
        }
        if self.ranges.len() > DEAD_RANGE_COUNT_MAX {
            self.ranges.pop_first().map(|(first, _)| self.ready.remove(&first));
        }
    }

    /// A range to punch: extent, offset, length.
    pub(crate) fn pop_ready(&mut self) -> Option<(u32, u64, u64)> {
        let start = self.ready.pop_first()?;
        let bytes = self.ranges.remove(&start)?;
        Some((start.0, start.1, bytes))
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The extent is gone.
    pub(crate) fn drop_extent(&mut self, extent: u32) {
        let starts: Vec<Start> =
            self.ranges.range((extent, 0)..=(extent, u64::MAX)).map(|(start, _)| *start).collect();
        for start in starts {
            self.ranges.remove(&start);
            self.ready.remove(&start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one_and_short_ones_wait() {
        let mut dead = DeadRanges::default();
        let half = PUNCH_BYTES_MIN / 2;
        dead.add(1, 0, half);
        dead.add(1, 2 * half, half);
        dead.add(2, half, half);
        assert_eq!(dead.pop_ready(), None);
        dead.add(1, half, half);
        assert_eq!(dead.pop_ready(), Some((1, 0, 3 * half)));
        assert_eq!(dead.pop_ready(), None);
        // Once more does no harm.
        dead.add(2, half, half);
        dead.add(2, 0, 4 * half);
        dead.add(2, 2 * half, half);
        assert!(dead.has_ready());
        dead.drop_extent(2);
        assert!(!dead.has_ready() && dead.ranges.is_empty());
    }

    #[test]
    fn the_list_is_bounded() {
        let mut dead = DeadRanges::default();
        for number in 0..DEAD_RANGE_COUNT_MAX as u64 + 100 {
            dead.add(1, number * 2 * PUNCH_BYTES_MIN, PUNCH_BYTES_MIN - number % 2);
        }
        assert_eq!(dead.ranges.len(), DEAD_RANGE_COUNT_MAX);
        assert!(dead.ready.len() <= DEAD_RANGE_COUNT_MAX);
    }
}
