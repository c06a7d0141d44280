//! The busiest partitions and accounts among any number of them, in constant memory.
//!
//! The sketch is Space-Saving (Metwally, Agrawal, El Abbadi, 2005): a fixed number of counters; somebody new takes
//! over the smallest one, and remembers its count as a possible error. What is shown is the count without that error,
//! so nobody is accused of another's requests. Counts halve every [`HALF_LIFE`]: a count is a rate.
//!
//! Promises: whoever has more than one request in [`PARTITION_COUNT_MAX`] is among the counted. Adding looks at every
//! counter once, and allocates only when a longer name than before takes one over.

use std::time::Duration;

use super::name::{NAME_BYTES_MAX, Name};

pub(super) const PARTITION_COUNT_MAX: usize = 256;
pub(super) const ACCOUNT_COUNT_MAX: usize = 16;
/// A peak of a few seconds is no finding, a minute of load is.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// Counts are kept as of `base`, so that time passing changes none of them. After so many half-lives the base moves on,
/// before numbers become too large to be exact.
const HALVINGS_MAX: f64 = 40.0;

pub(super) struct Busiest {
    slots: Vec<BusySlot>,
    slot_count_max: usize,
    base: Duration,
}

struct BusySlot {
    hash: u64,
    /// As of `base`: a request that comes a half-life later counts twice.
    weight: f64,
    /// How much of it may belong to others.
    error: f64,
    name: Name,
}

/// A name with its rate.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rate<'a> {
    pub hash: u64,
    pub account: &'a str,
    pub table: &'a str,
    pub partition: &'a str,
    pub per_second: f64,
}

impl Busiest {
    pub(super) fn new(slot_count_max: usize) -> Busiest {
        Busiest { slots: Vec::new(), slot_count_max, base: Duration::ZERO }
    }

    pub(super) fn bytes_max(slot_count_max: usize) -> usize {
        slot_count_max * (size_of::<BusySlot>() + NAME_BYTES_MAX)
    }

    pub(super) fn add(&mut self, hash: u64, parts: &[&str], weight: f64, now: Duration) {
        let weight = weight * self.scale(now);
        let mut least = (f64::INFINITY, 0);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.hash == hash {
                slot.weight += weight;
                return;
            }
            if slot.weight < least.0 {
                least = (slot.weight, index);
            }
        }
        if self.slots.len() < self.slot_count_max {
            if self.slots.capacity() == 0 {
                self.slots.reserve_exact(self.slot_count_max);
            }
            self.slots.push(BusySlot { hash, weight, error: 0.0, name: Name::new(parts) });
        } else if let Some(slot) = self.slots.get_mut(least.1) {
            slot.error = slot.weight;
            slot.weight += weight;
            slot.hash = hash;
            slot.name.set(parts);
        }
    }

    /// What a request that comes now counts, as of `base`.
    fn scale(&mut self, now: Duration) -> f64 {
        let halvings = halvings(now.saturating_sub(self.base));
        if halvings <= HALVINGS_MAX {
            return halvings.exp2();
        }
        let factor = (-halvings).exp2();
        for slot in &mut self.slots {
            slot.weight *= factor;
            slot.error *= factor;
        }
        self.base = now;
        1.0
    }

    /// The busiest first; only those with at least this rate.
    pub(super) fn rates(&self, now: Duration, per_second_min: f64) -> Vec<Rate<'_>> {
        // A steady rate r adds up to r * HALF_LIFE / ln 2.
        let elapsed = halvings(now.saturating_sub(self.base));
        let factor = (-elapsed).exp2() * std::f64::consts::LN_2 / HALF_LIFE.as_secs_f64();
        let rates = self.slots.iter().map(|slot| Rate {
            hash: slot.hash,
            account: slot.name.account(),
            table: slot.name.table(),
            partition: slot.name.partition(),
            per_second: (slot.weight - slot.error) * factor,
        });
        let mut rates: Vec<Rate<'_>> = rates.filter(|rate| rate.per_second >= per_second_min).collect();
        rates.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
        rates
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let names: usize = self.slots.iter().map(|slot| slot.name.held_bytes()).sum();
        self.slots.capacity() * size_of::<BusySlot>() + names
    }
}

fn halvings(time: Duration) -> f64 {
    time.as_secs_f64() / HALF_LIFE.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::name::hash_of;

    fn add(busiest: &mut Busiest, partition: &str, weight: f64, now: Duration) {
        busiest.add(hash_of("a", "t", &[partition]), &["a", "t", partition], weight, now);
    }

    /// `seconds` of 3,000/s on one partition, among 20,000/s on a million others.
    fn mixed(busiest: &mut Busiest, from: u64, seconds: u64) {
        let mut random = fastrand::Rng::with_seed(7);
        for milli in from * 1000..(from + seconds) * 1000 {
            let now = Duration::from_millis(milli);
            add(busiest, "hot", 3.0, now);
            for _ in 0..2 {
                add(busiest, &random.u32(..1_000_000).to_string(), 10.0, now);
            }
        }
    }

    #[test]
    fn the_hot_one_is_found_among_a_million_and_forgotten_afterwards() {
        let mut busiest = Busiest::new(PARTITION_COUNT_MAX);
        mixed(&mut busiest, 5, 60);
        let now = Duration::from_secs(65);
        let rates = busiest.rates(now, 500.0);
        assert_eq!(rates.len(), 1, "{rates:?}");
        assert_eq!(rates[0].partition, "hot");
        assert!((2700.0..3100.0).contains(&rates[0].per_second), "{rates:?}");
        assert!(busiest.rates(now + Duration::from_secs(60), 500.0).is_empty());
        assert!(busiest.held_bytes() <= Busiest::bytes_max(PARTITION_COUNT_MAX));
    }

    #[test]
    fn numbers_stay_numbers_however_long_the_server_runs() {
        let mut busiest = Busiest::new(PARTITION_COUNT_MAX);
        for day in [0, 1, 400, 100_000] {
            mixed(&mut busiest, day * 86_400, 30);
            let rates = busiest.rates(Duration::from_secs(day * 86_400 + 30), 500.0);
            assert_eq!(rates.len(), 1, "day {day}: {rates:?}");
            assert!((2300.0..3100.0).contains(&rates[0].per_second), "day {day}: {rates:?}");
        }
    }
}
