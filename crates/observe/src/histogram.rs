//! A histogram of durations: buckets of about a fifth, from a microsecond to two minutes.
//!
//! Promises: counting is one atomic addition; reading is not a snapshot, but every count is seen by the next reading.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Each power of two has four buckets; the last one also counts everything longer.
pub const BUCKET_COUNT: usize = 104;

pub struct Histogram {
    counts: [AtomicU64; BUCKET_COUNT],
    sum_nanos: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [const { AtomicU64::new(0) }; BUCKET_COUNT], sum_nanos: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(micros)].fetch_add(1, Relaxed);
        self.sum_nanos.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    pub fn add_to(&self, counts: &mut Counts) {
        for (sum, count) in counts.buckets.iter_mut().zip(&self.counts) {
            *sum += count.load(Relaxed);
        }
        counts.sum_nanos = counts.sum_nanos.wrapping_add(self.sum_nanos.load(Relaxed));
    }
}

/// What a histogram, or several together, have counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    pub buckets: [u64; BUCKET_COUNT],
    pub sum_nanos: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { buckets: [0; BUCKET_COUNT], sum_nanos: 0 }
    }
}

impl Counts {
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Counts) -> Counts {
        let mut since = self.clone();
        for (count, before) in since.buckets.iter_mut().zip(&before.buckets) {
            *count = count.saturating_sub(*before);
        }
        since.sum_nanos = since.sum_nanos.wrapping_sub(before.sum_nanos);
        since
    }

    /// How many took less than this. Exact for powers of two.
    pub fn below(&self, micros: u64) -> u64 {
        self.buckets[..bucket_of(micros)].iter().sum()
    }

    /// The time in microseconds within which this share was done (`0.99`): the middle of its bucket. 0 when there is
    /// nothing to count.
    pub fn quantile(&self, share: f64) -> u64 {
        let total = self.total();
        if total == 0 {
            return 0;
        }
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (lowest_of(index) + lowest_of(index + 1)) / 2;
            }
        }
        lowest_of(BUCKET_COUNT - 1)
    }
}

fn bucket_of(micros: u64) -> usize {
    if micros < 4 {
        return micros as usize;
    }
    let exponent = 63 - micros.leading_zeros() as usize;
    let quarter = (micros >> (exponent - 2)) as usize & 3;
    ((exponent - 1) * 4 + quarter).min(BUCKET_COUNT - 1)
}

/// The least number of microseconds that belongs to this bucket.
fn lowest_of(bucket: usize) -> u64 {
    match bucket {
        0..4 => bucket as u64,
        _ => (4 + bucket as u64 % 4) << (bucket / 4 - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gaps() {
        for bucket in 0..BUCKET_COUNT {
            assert_eq!(bucket_of(lowest_of(bucket)), bucket);
            assert_eq!(bucket_of(lowest_of(bucket + 1) - 1), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
        assert!(lowest_of(BUCKET_COUNT - 1) > 100_000_000, "two minutes");
    }

    #[test]
    fn quantiles_are_right_within_a_bucket() {
        let histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.count(Duration::from_micros(micros));
        }
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        assert_eq!(counts.total(), 1000);
        assert_eq!(counts.sum_nanos, 500_500_000);
        assert_eq!(counts.below(64), 63);
        for (share, exact) in [(0.5, 500.0), (0.99, 990.0), (0.01, 10.0)] {
            let found = counts.quantile(share) as f64;
            assert!((found / exact - 1.0).abs() < 0.15, "{share}: {found}");
        }
        assert_eq!(counts.since(&counts).quantile(0.5), 0);
    }
}
