//! Scalability targets, enforced the way the live services do: what goes over a target is answered 503 `ServerBusy`.
//!
//! Every request is one operation of its account. A service says which partition a request touches, and how many rows
//! of it ([`Session::spend`]). Each partition and each account has a token bucket, so a target holds for any span of
//! time, and what one partition uses up no other one misses.
//! Promises: memory is bounded, whatever partitions are named. Without targets a request pays for one comparison.
//! Leaves to others: what a partition is, and what counts as a row.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use observe::Targets;
use protocol::common::AccountName;
use protocol::{ErrorCode, ServiceError};

use super::service::Session;

/// How much of a target may come at once after a pause: a tenth of a second's worth. Small, so that a client that
/// sends without pause gets the target and hardly more; large enough for what a page of a program sends in one go.
const BURST: Duration = Duration::from_millis(100);
/// Buckets that are looked through for a name.
const WAY_COUNT: usize = 8;
/// Partitions that have a bucket at the same time: 8,192 in 128 KiB.
const PARTITION_SET_COUNT: usize = 1024;
const ACCOUNT_SET_COUNT: usize = 32;

/// A partition, by its names.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    /// Two services may have containers of the same name.
    pub service: &'static str,
    /// The case of its letters does not matter.
    pub container: &'a str,
    pub key: &'a str,
}

pub(crate) struct Throttle {
    accounts: Buckets,
    partitions: Buckets,
    /// Makes numbers from names that nobody else can predict, so nobody can share a bucket with somebody on purpose.
    names: RandomState,
    account_refused_count: AtomicU64,
    partition_refused_count: AtomicU64,
}

impl Throttle {
    pub fn new(targets: Targets) -> Throttle {
        Throttle {
            accounts: Buckets::new(targets.account_operations_per_second, ACCOUNT_SET_COUNT),
            partitions: Buckets::new(targets.partition_rows_per_second, PARTITION_SET_COUNT),
            names: RandomState::new(),
            account_refused_count: AtomicU64::new(0),
            partition_refused_count: AtomicU64::new(0),
        }
    }

    /// How many requests went over the target of their account, and over that of their partition.
    pub(crate) fn refused_counts(&self) -> [u64; 2] {
        [&self.account_refused_count, &self.partition_refused_count]
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts one operation of the account.
    pub fn operation(&self, account: &AccountName, now: Duration) -> Result<(), ServiceError> {
        if self.accounts.take(self.names.hash_one(account.as_str()), 1, now) {
            return Ok(());
        }
        self.account_refused_count.fetch_add(1, Ordering::Relaxed);
        let detail = "Operations per second is over the account limit.";
        Err(ServiceError::with_detail(ErrorCode::ServerBusy, detail))
    }

    fn tag(&self, account: &AccountName, partition: Partition<'_>) -> u64 {
        /// Stands in no text, so it parts names.
        const END: u8 = 0xFF;
        let mut hasher = self.names.build_hasher();
        for name in [account.as_str(), partition.service, partition.key] {
            hasher.write(name.as_bytes());
            hasher.write_u8(END);
        }
        for byte in partition.container.bytes() {
            hasher.write_u8(byte.to_ascii_lowercase());
        }
        hasher.finish()
    }
}

impl Session<'_> {
    /// Whether partitions have a target. A service asks before it finds out what costs time to find out.
    pub(crate) fn is_throttled(&self) -> bool {
        self.front.throttle.is_some()
    }

    /// Counts rows of a partition that the request is going to touch. They are counted in full or not at all: a
    /// request is let in as long as anything is left, and later ones wait until it is paid for.
    pub(crate) fn spend(&self, partition: Partition<'_>, row_count: u64) -> Result<(), ErrorCode> {
        let Some(throttle) = &self.front.throttle else { return Ok(()) };
        let tag = throttle.tag(self.account, partition);
        let is_free = throttle.partitions.take(tag, row_count, self.front.clock.monotonic());
        if !is_free {
            throttle.partition_refused_count.fetch_add(1, Ordering::Relaxed);
            return Err(ErrorCode::ServerBusy);
        }
        Ok(())
    }

    /// Counts rows that the request turned out to touch besides those that it was let in with.
    pub(crate) fn spend_further(&self, partition: Partition<'_>, row_count: u64) {
        if let Some(throttle) = &self.front.throttle {
            let tag = throttle.tag(self.account, partition);
            throttle.partitions.owe(tag, row_count, self.front.clock.monotonic());
        }
    }
}

/// Token buckets by name, in sets. A bucket that has refilled is like one that does not exist, so its place goes to
/// another name without loss.
struct Buckets {
    /// How long one unit takes to refill.
    unit_ns: u64,
    sets: Box<[Mutex<[Bucket; WAY_COUNT]>]>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    tag: u64,
    /// When it will be full again, in nanoseconds of the monotonic clock. What is missing until then has been taken.
    full_at_ns: u64,
}

impl Buckets {
    fn new(per_second: u32, set_count: usize) -> Buckets {
        let unit_ns = 1_000_000_000 / u64::from(per_second.max(1));
        Buckets { unit_ns, sets: (0..set_count).map(|_| Mutex::default()).collect() }
    }

    /// Takes the units if anything is left in the bucket.
    fn take(&self, tag: u64, units: u64, now: Duration) -> bool {
        let now_ns = nanoseconds(now);
        let mut set = self.set(tag);
        let bucket = find(&mut set, tag);
        if bucket.full_at_ns > now_ns.saturating_add(nanoseconds(BURST)) {
            return false;
        }
        bucket.take(units.saturating_mul(self.unit_ns), now_ns);
        true
    }

    /// Takes the units, whether they are there or not.
    fn owe(&self, tag: u64, units: u64, now: Duration) {
        find(&mut self.set(tag), tag).take(units.saturating_mul(self.unit_ns), nanoseconds(now));
    }

    fn set(&self, tag: u64) -> MutexGuard<'_, [Bucket; WAY_COUNT]> {
        // Plain numbers cannot be left half changed by a panic.
        self.sets[tag as usize % self.sets.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    fn take(&mut self, span_ns: u64, now_ns: u64) {
        self.full_at_ns = self.full_at_ns.max(now_ns).saturating_add(span_ns);
    }
}

/// The bucket of this name; a new one takes the place of the one that is full first.
fn find(set: &mut [Bucket; WAY_COUNT], tag: u64) -> &mut Bucket {
    let known = set.iter().position(|bucket| bucket.tag == tag);
    let place = known.unwrap_or_else(|| {
        let fullest = (0..WAY_COUNT).min_by_key(|way| set[*way].full_at_ns).unwrap_or(0);
        set[fullest] = Bucket { tag, full_at_ns: 0 };
        fullest
    });
    &mut set[place]
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: u32 = 2000;

    fn buckets() -> Buckets {
        Buckets::new(TARGET, PARTITION_SET_COUNT)
    }

    /// How many units are let in within ten seconds when requests of `units` come at `factor` times the target.
    fn admitted(buckets: &Buckets, tag: u64, units: u64, factor: f64) -> u64 {
        let interval = units as f64 / (factor * f64::from(TARGET));
        let request_count = (10.0 / interval) as u64;
        let at = |n: u64| Duration::from_secs_f64(n as f64 * interval);
        (0..request_count).filter(|n| buckets.take(tag, units, at(*n))).count() as u64 * units
    }

    #[test]
    fn twice_the_target_gets_the_target_within_five_percent() {
        for units in [1, 7, 100] {
            let got = admitted(&buckets(), 1, units, 2.0);
            assert!((20_000..=21_000).contains(&got), "{got} in requests of {units}");
        }
    }

    #[test]
    fn below_the_target_everything_is_let_in() {
        for units in [1, 100] {
            let asked = (10.0 * 0.95 * f64::from(TARGET)) as u64 / units * units;
            let got = admitted(&buckets(), 1, units, 0.95);
            assert!(got.abs_diff(asked) <= units, "{got} of {asked}");
        }
    }

    #[test]
    fn a_request_larger_than_the_burst_is_let_in_and_paid_for_afterwards() {
        let buckets = buckets();
        let second = Duration::from_secs(1);
        assert!(buckets.take(1, 1000, second));
        assert!(!buckets.take(1, 1, second));
        assert!(!buckets.take(1, 1, second + Duration::from_millis(399)));
        assert!(buckets.take(1, 1, second + Duration::from_millis(401)));
        buckets.owe(2, 1000, second);
        assert!(!buckets.take(2, 1, second));
    }

    #[test]
    fn busy_partitions_keep_their_buckets_while_strangers_come_and_go() {
        let buckets = buckets();
        let mut now = Duration::from_secs(1);
        let mut got = 0;
        for n in 0..40_000u64 {
            now += Duration::from_micros(250);
            got += u64::from(buckets.take(77, 1, now));
            // Names that are used once, many of them in the same set.
            assert!(buckets.take(1_000_000 + n, 1, now));
            assert!(buckets.take(77 + (n + 1) * PARTITION_SET_COUNT as u64, 1, now), "{n}");
        }
        assert!((20_000..=21_000).contains(&got), "{got}");
    }
}
