//! Sizes: partitions that became large.
//!
//! Nobody counts the rows of a partition when it is written, so its size is concluded: from the entities that were
//! written to it since the server started, told apart from those that were written again by a small estimator of
//! distinct keys, and from scans of it. It is a lower bound.
//!
//! Promises: at most [`PARTITION_COUNT_MAX`] partitions are kept. One that is among the largest is among the kept ones,
//! as with [`super::busiest`].

use std::time::Duration;

use super::MEMORY;
use super::name::{NAME_BYTES_MAX, Name, hash_of};

const PARTITION_COUNT_MAX: usize = 128;
/// An estimate is off by about 1.04 / sqrt(256): 7 %.
const REGISTER_COUNT: usize = 256;
/// Below this share of distinct keys, keys are being written again.
const NEW_SHARE_MIN: f64 = 0.75;

#[derive(Default)]
pub(super) struct Sizes {
    partitions: Vec<PartitionSlot>,
}

struct PartitionSlot {
    hash: u64,
    name: Name,
    /// Entities written, and how many of them may belong to others.
    written: f64,
    error: f64,
    bytes: f64,
    deleted: f64,
    /// Samples of writes, and their distinct keys (HyperLogLog).
    samples: u32,
    registers: [u8; REGISTER_COUNT],
    /// The most rows that one query examined in it, and when.
    examined: u64,
    examined_at: Duration,
}

/// A partition with its least size.
#[derive(Debug)]
pub(super) struct PartitionReport<'a> {
    pub hash: u64,
    pub account: &'a str,
    pub table: &'a str,
    pub partition: &'a str,
    pub entities: f64,
    pub bytes: f64,
}

impl Sizes {
    pub(super) fn bytes_max() -> usize {
        PARTITION_COUNT_MAX * (size_of::<PartitionSlot>() + NAME_BYTES_MAX)
    }

    /// So many entities were written, of so many bytes together; `place` is where the first of them is.
    pub(super) fn wrote(&mut self, place: [&str; 4], entity_count: f64, bytes: f64) {
        let [account, table, partition, row] = place;
        let Some(slot) = self.partition(account, table, partition, entity_count) else { return };
        slot.bytes += bytes;
        slot.samples = slot.samples.saturating_add(1);
        let hash = spread(hash_of("", "", &[row]));
        let register = &mut slot.registers[(hash % REGISTER_COUNT as u64) as usize];
        // The low bits chose the register; the leading zeros of the rest are the estimate.
        *register = (*register).max((hash | 0xff).leading_zeros() as u8 + 1);
    }

    pub(super) fn deleted(&mut self, place: [&str; 3], entity_count: f64) {
        let hash = hash_of(place[0], place[1], &[place[2]]);
        if let Some(slot) = self.partitions.iter_mut().find(|slot| slot.hash == hash) {
            slot.deleted += entity_count;
            slot.examined = 0;
        }
    }

    /// A query looked at so many rows of one partition.
    pub(super) fn examined(&mut self, place: [&str; 3], row_count: u64, now: Duration) {
        let [account, table, partition] = place;
        let Some(slot) = self.partition(account, table, partition, 0.0) else { return };
        if row_count >= slot.examined || now.saturating_sub(slot.examined_at) > MEMORY {
            (slot.examined, slot.examined_at) = (row_count, now);
        }
    }

    /// The counter of a partition; a new one takes over the smallest.
    fn partition(
        &mut self,
        account: &str,
        table: &str,
        partition: &str,
        weight: f64,
    ) -> Option<&mut PartitionSlot> {
        let hash = hash_of(account, table, &[partition]);
        let mut least = (f64::INFINITY, 0);
        let mut found = None;
        for (index, slot) in self.partitions.iter().enumerate() {
            if slot.hash == hash {
                found = Some(index);
                break;
            }
            let size = slot.written.max(slot.examined as f64);
            if size < least.0 {
                least = (size, index);
            }
        }
        if found.is_none() && self.partitions.len() < PARTITION_COUNT_MAX {
            if self.partitions.capacity() == 0 {
                self.partitions.reserve_exact(PARTITION_COUNT_MAX);
            }
            self.partitions.push(PartitionSlot::new(hash, Name::new(&[account, table, partition]), 0.0));
            found = Some(self.partitions.len() - 1);
        }
        let index = match found {
            Some(index) => index,
            None => {
                let slot = self.partitions.get_mut(least.1)?;
                let mut name = std::mem::take(&mut slot.name);
                name.set(&[account, table, partition]);
                *slot = PartitionSlot::new(hash, name, slot.written);
                least.1
            }
        };
        let slot = self.partitions.get_mut(index)?;
        slot.written += weight;
        Some(slot)
    }

    pub(super) fn forget(&mut self, account: &str, table: &str) {
        let is_other = |name: &Name| name.account() != account || !name.table().eq_ignore_ascii_case(table);
        self.partitions.retain(|slot| is_other(&slot.name));
    }

    pub(super) fn partitions(&self, now: Duration) -> impl Iterator<Item = PartitionReport<'_>> {
        self.partitions.iter().map(move |slot| {
            let written = slot.distinct_written();
            let share = if slot.written > 0.0 { written / slot.written } else { 0.0 };
            let is_fresh = now.saturating_sub(slot.examined_at) <= MEMORY;
            let examined = if is_fresh { slot.examined as f64 } else { 0.0 };
            PartitionReport {
                hash: slot.hash,
                account: slot.name.account(),
                table: slot.name.table(),
                partition: slot.name.partition(),
                entities: written.max(examined),
                bytes: slot.bytes * share.min(1.0),
            }
        })
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let names: usize = self.partitions.iter().map(|slot| slot.name.held_bytes()).sum();
        self.partitions.capacity() * size_of::<PartitionSlot>() + names
    }
}

impl PartitionSlot {
    fn new(hash: u64, name: Name, error: f64) -> PartitionSlot {
        PartitionSlot {
            hash,
            name,
            written: error,
            error,
            bytes: 0.0,
            deleted: 0.0,
            samples: 0,
            registers: [0; REGISTER_COUNT],
            examined: 0,
            examined_at: Duration::ZERO,
        }
    }

    /// At least so many different entities were written and not deleted.
    fn distinct_written(&self) -> f64 {
        let samples = f64::from(self.samples);
        let distinct = self.distinct_samples().min(samples);
        // As long as nearly all samples are new, so are nearly all that they stand for.
        let written = if distinct >= NEW_SHARE_MIN * samples { self.written - self.error } else { distinct };
        (written - self.deleted).max(0.0)
    }

    fn distinct_samples(&self) -> f64 {
        let count = REGISTER_COUNT as f64;
        let sum: f64 = self.registers.iter().map(|register| (-f64::from(*register)).exp2()).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.registers.iter().filter(|register| **register == 0).count();
        if estimate <= 2.5 * count && empty > 0 { count * (count / empty as f64).ln() } else { estimate }
    }
}

/// FNV leaves the high bits of short texts alike; this does not.
fn spread(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(sizes: &Sizes) -> (String, f64) {
        let reports = sizes.partitions(Duration::ZERO);
        let largest = reports.max_by(|a, b| a.entities.total_cmp(&b.entities)).unwrap();
        (largest.partition.to_owned(), largest.entities)
    }

    #[test]
    fn a_large_partition_is_told_from_one_that_is_written_again_and_again() {
        let mut sizes = Sizes::default();
        let mut random = fastrand::Rng::with_seed(3);
        for number in 0..40_000u32 {
            sizes.wrote(["a", "t", "large", &number.to_string()], 8.0, 800.0);
            sizes.wrote(["a", "t", "hot", &(number % 500).to_string()], 24.0, 1.0);
            sizes.wrote(["a", "t", &random.u32(..100_000).to_string(), "row"], 8.0, 1.0);
        }
        let (partition, entities) = largest(&sizes);
        assert_eq!(partition, "large");
        assert!((300_000.0..330_000.0).contains(&entities), "{entities}");
        let hot = sizes.partitions(Duration::ZERO).find(|report| report.partition == "hot").unwrap();
        assert!(hot.entities < 700.0, "{hot:?}");
        assert!(sizes.held_bytes() <= Sizes::bytes_max());

        sizes.deleted(["a", "t", "large"], 319_000.0);
        assert!(largest(&sizes).1 < 20_000.0);
        sizes.forget("a", "T");
        assert_eq!(sizes.partitions(Duration::ZERO).count(), 0);
    }

    #[test]
    fn a_scan_tells_the_size_too_and_is_believed_for_a_while() {
        let mut sizes = Sizes::default();
        sizes.examined(["a", "t", "p"], 200_000, Duration::ZERO);
        sizes.examined(["a", "t", "p"], 150_000, Duration::ZERO);
        assert_eq!(largest(&sizes), ("p".to_owned(), 200_000.0));
        assert_eq!(sizes.partitions(2 * MEMORY).map(|report| report.entities).sum::<f64>(), 0.0);
    }
}
