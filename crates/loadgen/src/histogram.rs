//! Latencies in logarithmic buckets.
//!
//! Promises: constant memory, a resolution better than 1 %, and a few instructions to record a latency.

use std::time::Duration;

/// Buckets per power of two. 128 of them keep the error of a percentile below 1/128.
const STEPS: u64 = 128;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS as usize;

#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0, longest: Duration::ZERO }
    }

    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.longest = self.longest.max(latency);
    }

    /// Adds everything that `other` recorded.
    pub fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// The longest latency, exactly.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
        self.longest = Duration::ZERO;
    }

    /// The latency that `fraction` of all requests did not exceed, in microseconds.
    pub fn percentile_us(&self, fraction: f64) -> f64 {
        let wanted = ((self.total as f64 * fraction).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                // The bucket may end beyond the longest latency; a percentile may not.
                return (upper_bound(index) as f64 / 1000.0).min(self.longest.as_secs_f64() * 1e6);
            }
        }
        0.0
    }
}

/// Values below `STEPS` have a bucket each; above, each power of two is cut into `STEPS` equal parts.
fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - STEP_BITS;
    let step = (value >> shift) - STEPS;
    ((u64::from(shift) + 1) * STEPS + step) as usize
}

/// The largest value that falls into bucket `index`.
fn upper_bound(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let step = index % STEPS + STEPS;
    (step << shift) + ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_the_bucket_that_claims_it() {
        for value in (0..2000).chain([4095, 4096, 1 << 20, (1 << 20) + 12345, u64::MAX / 3, u64::MAX]) {
            let index = bucket(value);
            assert!(value <= upper_bound(index), "{value}");
            assert!(index == 0 || value > upper_bound(index - 1), "{value}");
            assert!((upper_bound(index) - value) as f64 <= value as f64 / STEPS as f64, "{value}");
        }
    }

    #[test]
    fn percentiles_of_a_known_distribution() {
        let mut histogram = Histogram::new();
        for microseconds in 1..=1000 {
            histogram.record(Duration::from_micros(microseconds));
        }
        assert!((histogram.percentile_us(0.5) / 500.0 - 1.0).abs() < 0.01);
        assert!((histogram.percentile_us(0.99) / 990.0 - 1.0).abs() < 0.01);
        assert_eq!(histogram.total(), 1000);
        assert_eq!(histogram.longest(), Duration::from_millis(1));
        assert_eq!(histogram.percentile_us(1.0), 1000.0);
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.total(), twice.percentile_us(0.5)), (2000, histogram.percentile_us(0.5)));
        histogram.clear();
        assert_eq!(histogram.percentile_us(0.5), 0.0);
    }
}
