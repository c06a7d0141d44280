//! Where tables grow: whether new entities come at one end of the key range.
//!
//! For each table a few of the latest inserted keys are kept, and every sampled insert is compared with them. Of keys
//! in no order, two in nine are among the two highest; of keys that follow a clock or a counter, nearly all are.
//! Writers that overtake each other do not hide it. A write that may find its row there already counts only if it is
//! beyond all keys before those few, too: the same keys may be written again and again in their order. Partitions that
//! follow a clock while their rows do not are found by the highest partition so far: it gets all inserts, and moves.
//!
//! Promises: at most [`TABLE_COUNT_MAX`] tables are kept; the one without inserts for longest leaves.

use std::cmp::Ordering;
use std::ops::Add;
use std::time::Duration;

use protocol::common::ordinal::compare_ordinal;

use super::name::{NAME_BYTES_MAX, Name, hash_of};
use super::window::Windowed;

const TABLE_COUNT_MAX: usize = 64;
const RECENT_COUNT: usize = 8;
/// With fewer samples, chance could look like an order.
const SAMPLE_COUNT_MIN: u64 = 24;
/// Fewer inserts harm nobody, in whatever order.
const INSERT_COUNT_MIN: u64 = 200;
/// So many of the sampled keys are above (or below) all but one of those before them.
const END_SHARE_MIN: f64 = 0.75;
/// So many are in the highest (or lowest) partition so far, which has moved so often.
const PARTITION_SHARE_MIN: f64 = 0.9;
const MOVE_COUNT_MIN: u32 = 3;

#[derive(Default)]
pub(super) struct Growth {
    slots: Vec<GrowthSlot>,
    /// The insert that is being looked at. Keys that are cut are compared as such.
    newest: Name,
}

struct GrowthSlot {
    hash: u64,
    last: Duration,
    /// The latest inserts; their account and table are all the same.
    recent: [Name; RECENT_COUNT],
    recent_count: usize,
    next: usize,
    /// The ends of all keys before the recent ones; of no meaning until those are full and one has left.
    high_key: Name,
    low_key: Name,
    has_ends: bool,
    /// Of these only the partition counts.
    highest: Name,
    lowest: Name,
    rises: u32,
    falls: u32,
    counts: Windowed<InsertCount>,
}

#[derive(Clone, Copy, Default)]
struct InsertCount {
    samples: u64,
    inserts: u64,
    above: u64,
    below: u64,
    in_highest: u64,
    in_lowest: u64,
}

impl Add for InsertCount {
    type Output = InsertCount;

    fn add(self, other: InsertCount) -> InsertCount {
        InsertCount {
            samples: self.samples + other.samples,
            inserts: self.inserts + other.inserts,
            above: self.above + other.above,
            below: self.below + other.below,
            in_highest: self.in_highest + other.in_highest,
            in_lowest: self.in_lowest + other.in_lowest,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GrowthEnd {
    /// New keys are the highest.
    Append,
    /// New keys are the lowest.
    Prepend,
}

/// A table that grows at one end.
#[derive(Debug)]
pub(super) struct GrowthReport<'a> {
    pub hash: u64,
    pub account: &'a str,
    pub table: &'a str,
    /// Where the latest insert went.
    pub partition: &'a str,
    pub end: GrowthEnd,
    /// How many of the inserts went there.
    pub share: f64,
    pub inserts: u64,
}

impl Growth {
    pub(super) fn bytes_max() -> usize {
        TABLE_COUNT_MAX * (size_of::<GrowthSlot>() + (RECENT_COUNT + 4) * NAME_BYTES_MAX) + NAME_BYTES_MAX
    }

    /// `insert_count` is how many inserts this one stands for. `is_new`: there was no such row before.
    pub(super) fn insert(&mut self, place: [&str; 4], is_new: bool, insert_count: u64, now: Duration) {
        let hash = hash_of(place[0], place[1], &[]);
        let found = self.slots.iter().position(|slot| slot.hash == hash);
        let Some(index) = found.or_else(|| self.add(hash, now)) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.last = now;

        self.newest.set(&place);
        let partition = self.newest.partition();
        let (mut above, mut below) = (0, 0);
        for other in &slot.recent[..slot.recent_count] {
            match compare_keys(&self.newest, other) {
                Ordering::Greater => above += 1,
                Ordering::Less => below += 1,
                Ordering::Equal => {}
            }
        }
        let is_full = slot.recent_count == RECENT_COUNT;
        let is_first = slot.recent_count == 0;
        if is_first || compare_ordinal(partition, slot.highest.partition()).is_gt() {
            slot.highest.set(&["", "", partition]);
            slot.rises += u32::from(!is_first);
        }
        if is_first || compare_ordinal(partition, slot.lowest.partition()).is_lt() {
            slot.lowest.set(&["", "", partition]);
            slot.falls += u32::from(!is_first);
        }
        let count = slot.counts.at(now);
        count.inserts += insert_count;
        if is_full {
            let knows_no_end = is_new || !slot.has_ends;
            let is_beyond = knows_no_end || compare_keys(&self.newest, &slot.high_key).is_gt();
            let is_before = knows_no_end || compare_keys(&self.newest, &slot.low_key).is_lt();
            count.samples += 1;
            count.above += u64::from(is_beyond && above + 1 >= RECENT_COUNT);
            count.below += u64::from(is_before && below + 1 >= RECENT_COUNT);
            count.in_highest += u64::from(partition == slot.highest.partition());
            count.in_lowest += u64::from(partition == slot.lowest.partition());
        }
        std::mem::swap(&mut slot.recent[slot.next], &mut self.newest);
        if is_full {
            // The one that has left.
            let left = &self.newest;
            if !slot.has_ends || compare_keys(left, &slot.high_key).is_gt() {
                slot.high_key.set(&["", "", left.partition(), left.row()]);
            }
            if !slot.has_ends || compare_keys(left, &slot.low_key).is_lt() {
                slot.low_key.set(&["", "", left.partition(), left.row()]);
            }
            slot.has_ends = true;
        }
        slot.next = (slot.next + 1) % RECENT_COUNT;
        slot.recent_count = (slot.recent_count + 1).min(RECENT_COUNT);
    }

    fn add(&mut self, hash: u64, now: Duration) -> Option<usize> {
        let slot = GrowthSlot {
            hash,
            last: now,
            recent: Default::default(),
            recent_count: 0,
            next: 0,
            high_key: Name::default(),
            low_key: Name::default(),
            has_ends: false,
            highest: Name::default(),
            lowest: Name::default(),
            rises: 0,
            falls: 0,
            counts: Windowed::default(),
        };
        if self.slots.len() < TABLE_COUNT_MAX {
            if self.slots.capacity() == 0 {
                self.slots.reserve_exact(TABLE_COUNT_MAX);
            }
            self.slots.push(slot);
            return Some(self.slots.len() - 1);
        }
        let oldest = (0..self.slots.len()).min_by_key(|index| self.slots[*index].last)?;
        self.slots[oldest] = slot;
        Some(oldest)
    }

    /// A deleted table grows no more, and another one of its name begins anew.
    pub(super) fn forget(&mut self, account: &str, table: &str) {
        let hash = hash_of(account, table, &[]);
        self.slots.retain(|slot| slot.hash != hash);
    }

    /// The tables that grow at one end.
    pub(super) fn report(&self, now: Duration) -> impl Iterator<Item = GrowthReport<'_>> {
        self.slots.iter().filter_map(move |slot| {
            let count = slot.counts.sum(now);
            if count.samples < SAMPLE_COUNT_MIN || count.inserts < INSERT_COUNT_MIN {
                return None;
            }
            let share = |part: u64| part as f64 / count.samples as f64;
            let is_one_sided = |at_end: u64, in_partition: u64, moves: u32| {
                share(at_end) >= END_SHARE_MIN
                    || (share(in_partition) >= PARTITION_SHARE_MIN && moves >= MOVE_COUNT_MIN)
            };
            let (end, share) = if is_one_sided(count.above, count.in_highest, slot.rises) {
                (GrowthEnd::Append, share(count.above.max(count.in_highest)))
            } else if is_one_sided(count.below, count.in_lowest, slot.falls) {
                (GrowthEnd::Prepend, share(count.below.max(count.in_lowest)))
            } else {
                return None;
            };
            let latest = &slot.recent[(slot.next + RECENT_COUNT - 1) % RECENT_COUNT];
            Some(GrowthReport {
                hash: slot.hash,
                account: latest.account(),
                table: latest.table(),
                partition: latest.partition(),
                end,
                share,
                inserts: count.inserts,
            })
        })
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let of_slot = |slot: &GrowthSlot| {
            let ends = [&slot.highest, &slot.lowest, &slot.high_key, &slot.low_key];
            ends.into_iter().chain(&slot.recent).map(Name::held_bytes).sum::<usize>()
        };
        let names: usize = self.slots.iter().map(of_slot).sum();
        self.slots.capacity() * size_of::<GrowthSlot>() + names + self.newest.held_bytes()
    }
}

fn compare_keys(left: &Name, right: &Name) -> Ordering {
    match compare_ordinal(left.partition(), right.partition()) {
        // They may differ in what was cut off, and then their rows say nothing.
        Ordering::Equal if left.is_partition_cut() => Ordering::Equal,
        Ordering::Equal => compare_ordinal(left.row(), right.row()),
        order => order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2,000 writes, a hundred a second, with these keys.
    #[track_caller]
    fn found(is_new: bool, mut keys: impl FnMut(u64) -> (String, String)) -> Option<GrowthEnd> {
        let mut growth = Growth::default();
        for number in 0..2000 {
            let (partition, row) = keys(number);
            growth.insert(["a", "t", &partition, &row], is_new, 8, Duration::from_millis(number * 10));
        }
        assert!(growth.held_bytes() <= Growth::bytes_max());
        growth.report(Duration::from_secs(20)).map(|report| report.end).next()
    }

    /// The same for inserts and for upserts.
    #[track_caller]
    fn check(expected: Option<GrowthEnd>, mut keys: impl FnMut(u64) -> (String, String)) {
        assert_eq!(found(true, &mut keys), expected);
        assert_eq!(found(false, &mut keys), expected);
    }

    #[test]
    fn both_ends_are_noticed_and_keys_that_spread_are_not() {
        let mut random = fastrand::Rng::with_seed(1);
        let padded = |number: u64| format!("{number:09}");
        let (append, prepend) = (Some(GrowthEnd::Append), Some(GrowthEnd::Prepend));
        check(append, |number| (padded(number), "r".into()));
        check(prepend, |number| (padded(1_000_000 - number), "r".into()));
        check(append, |number| ("only".into(), padded(number)));
        // A partition for each second, and rows in no order.
        check(append, |number| (padded(number / 100), random.u64(..).to_string()));
        // Sixteen writers that overtake each other, one in eight inserts sampled.
        check(append, |number| (padded(8 * number + random.u64(..16)), "r".into()));

        // Upserts of the same keys, in their order or in the opposite one. Inserts of them would be new rows.
        assert_eq!(found(false, |number| (padded(number % 200), "r".into())), None);
        assert_eq!(found(false, |number| ("only".into(), padded(1000 - number % 200))), None);

        check(None, |number| (random.u64(..).to_string(), padded(number)));
        check(None, |number| (format!("{}", number % 7), padded(number)));
        check(None, |_| ("only".into(), random.u64(..).to_string()));
        check(None, |_| ("counter".into(), "row".into()));
        check(None, |number| (format!("{}{}", "long".repeat(100), random.u64(..)), padded(number)));
    }

    #[test]
    fn memory_is_bounded_and_a_deleted_table_is_forgotten() {
        let mut growth = Growth::default();
        let long = "k".repeat(2000);
        for number in 0..20 * TABLE_COUNT_MAX {
            for _ in 0..2 * RECENT_COUNT {
                growth.insert(["a", &format!("t{number}"), &long, &long], true, 1, Duration::ZERO);
            }
        }
        assert_eq!(growth.slots.len(), TABLE_COUNT_MAX);
        assert!(growth.held_bytes() <= Growth::bytes_max(), "{}", growth.held_bytes());
        growth.forget("a", &format!("T{}", 20 * TABLE_COUNT_MAX - 1));
        assert_eq!(growth.slots.len(), TABLE_COUNT_MAX - 1);
    }
}
