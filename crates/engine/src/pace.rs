//! How far a scan may go: its budget, and its turns on the worker thread that it shares with other requests.
//!
//! Promises: at least one row is examined whatever the budget. A turn lasts at most [`TURN_ROW_COUNT_MAX`] rows or
//! about [`TURN_TIME_MAX`]. A scan that needs more than a few turns or rows continues in the slow lane, where long scans take
//! turns among themselves: together they keep at most half of the processors busy, and a short scan never waits
//! behind a long one. However many long scans one share has, those of others get as many turns (`lane`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use crate::Budget;
use crate::env::Clock;
use crate::lane::{Lane, Turn};

const TURN_ROW_COUNT_MAX: u32 = 4096;
const TURN_TIME_MAX: Duration = Duration::from_micros(500);
/// A scan that has had so many turns, or examined so many rows by the end of a turn, is a long one. A page of a thousand
/// ordinary rows needs less of both.
const FAST_TURN_COUNT: u32 = 8;
const FAST_ROW_COUNT: u64 = 8192;
/// Reading the clock costs as much as a small row, so it is read once per this many rows, or this many bytes.
const CLOCK_ROW_COUNT: u32 = 16;
const CLOCK_BYTES: usize = 64 * 1024;

pub struct Pace<'a> {
    clock: &'a dyn Clock,
    /// `None`: no request waits for this scan's worker thread.
    slow_lane: Option<&'a Lane>,
    slow_turn: Option<Turn<'a>>,
    turn_count: u32,
    budget: Budget,
    started: Duration,
    rows_examined: u64,
    out_of_time: bool,
    turn_started: Duration,
    turn_rows: u32,
    turn_over: bool,
    unclocked_rows: u32,
    unclocked_bytes: usize,
    /// Rows between two readings of the clock: one where a row takes long, as under a costly filter.
    clock_row_count: u32,
    looked_at: Duration,
}

impl<'a> Pace<'a> {
    pub fn new(clock: &'a dyn Clock, budget: Budget, slow_lane: Option<&'a Lane>) -> Pace<'a> {
        let now = clock.monotonic();
        Pace {
            clock,
            slow_lane,
            slow_turn: None,
            turn_count: 0,
            budget,
            started: now,
            rows_examined: 0,
            out_of_time: false,
            turn_started: now,
            turn_rows: 0,
            turn_over: false,
            unclocked_rows: 0,
            unclocked_bytes: 0,
            clock_row_count: CLOCK_ROW_COUNT,
            looked_at: now,
        }
    }

    /// Whether the budget has room for one more row.
    pub fn has_room(&self) -> bool {
        self.rows_examined == 0 || (self.rows_examined < self.budget.rows_examined_max && !self.out_of_time)
    }

    /// Counts one row that was examined, and its bytes.
    pub fn count_row(&mut self, value_size_bytes: usize) {
        self.rows_examined += 1;
        self.step(value_size_bytes);
        // Without any time, examine one row, not as many as pass before the clock is read.
        if self.rows_examined == 1 {
            self.look_at_clock();
        }
    }

    /// Rows that the budget has room for: for those who fetch rows ahead.
    pub fn rows_left(&self) -> u64 {
        self.budget.rows_examined_max.max(1).saturating_sub(self.rows_examined)
    }

    /// Counts work that is not a row: the seek to a range.
    pub(crate) fn count_seek(&mut self) {
        self.step(0);
    }

    fn step(&mut self, bytes: usize) {
        self.turn_rows += 1;
        self.turn_over |= self.turn_rows >= TURN_ROW_COUNT_MAX;
        self.unclocked_rows += 1;
        self.unclocked_bytes += bytes;
        if self.unclocked_rows >= self.clock_row_count || self.unclocked_bytes >= CLOCK_BYTES {
            self.look_at_clock();
        }
    }

    fn look_at_clock(&mut self) {
        self.unclocked_rows = 0;
        self.unclocked_bytes = 0;
        let now = self.clock.monotonic();
        let is_slow = now.saturating_sub(self.looked_at) >= TURN_TIME_MAX / 4;
        self.clock_row_count = if is_slow { 1 } else { CLOCK_ROW_COUNT };
        self.looked_at = now;
        self.out_of_time |= now.saturating_sub(self.started) >= self.budget.time_max;
        self.turn_over |= now.saturating_sub(self.turn_started) >= TURN_TIME_MAX;
    }

    pub(crate) fn is_turn_over(&self) -> bool {
        self.turn_over
    }

    fn is_long(&self) -> bool {
        self.turn_count >= FAST_TURN_COUNT || self.rows_examined >= FAST_ROW_COUNT
    }

    /// Yields the worker thread when the turn is over.
    pub async fn yield_if_due(&mut self) {
        if !self.turn_over {
            return;
        }
        self.turn_count = self.turn_count.saturating_add(1);
        // Give the slow lane up first, so that another long scan goes before this one.
        self.slow_turn = None;
        match self.slow_lane.filter(|_| self.is_long()) {
            None => tokio::task::yield_now().await,
            Some(slow_lane) => {
                // Not after a yield: tokio wakes a task that yields later than one that waited for a turn, so it would
                // be in line too rarely.
                let (turn, has_waited) = wait_for(slow_lane.turn(self.budget.share)).await;
                self.slow_turn = turn;
                if !has_waited {
                    tokio::task::yield_now().await;
                }
            }
        }
        self.turn_over = false;
        self.turn_rows = 0;
        self.turn_started = self.clock.monotonic();
        self.looked_at = self.turn_started;
        self.out_of_time |= self.turn_started.saturating_sub(self.started) >= self.budget.time_max;
    }
}

/// Whether it had to wait for the work, beside what the work returned.
async fn wait_for<F: Future>(work: F) -> (F::Output, bool) {
    let (mut work, mut has_waited) = (pin!(work), false);
    let done = poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        has_waited |= polled.is_pending();
        polled
    });
    (done.await, has_waited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::FakeClock;
    use crate::lane::Share;

    fn budget(rows: u64, time: Duration) -> Budget {
        Budget { rows_examined_max: rows, time_max: time, share: Share::COMMON }
    }

    #[test]
    fn the_row_budget_is_exact_and_never_below_one() {
        for (rows, expected) in [(0, 1), (1, 1), (7, 7), (300, 300)] {
            let clock = FakeClock::default();
            let mut pace = Pace::new(&clock, budget(rows, Duration::MAX), None);
            let mut examined = 0;
            while pace.has_room() {
                pace.count_row(10);
                examined += 1;
            }
            assert_eq!(examined, expected);
        }
    }

    #[test]
    fn slow_rows_are_clocked_one_by_one() {
        let clock = FakeClock::default();
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::from_millis(35)), None);
        let mut examined = 0;
        while pace.has_room() {
            clock.advance(Duration::from_millis(10));
            pace.count_row(10);
            examined += 1;
        }
        assert_eq!(examined, 4);
    }

    #[test]
    fn no_time_means_one_row() {
        let clock = FakeClock::default();
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::ZERO), None);
        assert!(pace.has_room());
        pace.count_row(10);
        assert!(!pace.has_room());
    }

    #[test]
    fn the_time_budget_ends_a_scan_soon_after_it_is_used_up() {
        let clock = FakeClock::default();
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::from_millis(5)), None);
        let mut examined = 0;
        while pace.has_room() {
            clock.advance(Duration::from_millis(1));
            pace.count_row(10);
            examined += 1;
        }
        assert!((5..=CLOCK_ROW_COUNT + 1).contains(&examined), "{examined}");
    }

    #[test]
    fn big_rows_make_the_clock_be_asked_sooner() {
        let clock = FakeClock::default();
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::from_millis(5)), None);
        pace.count_row(10);
        clock.advance(Duration::from_millis(6));
        pace.count_row(1024 * 1024);
        assert!(!pace.has_room());
    }

    #[test]
    fn a_turn_ends_after_many_rows_or_much_time() {
        let clock = FakeClock::default();
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::MAX), None);
        for _ in 1..TURN_ROW_COUNT_MAX {
            pace.count_row(10);
        }
        assert!(!pace.turn_over);
        pace.count_row(10);
        assert!(pace.turn_over);

        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::MAX), None);
        clock.advance(TURN_TIME_MAX);
        for _ in 0..CLOCK_ROW_COUNT {
            pace.count_seek();
        }
        assert!(pace.turn_over);
    }

    #[tokio::test]
    async fn long_scans_take_turns_and_short_ones_do_not_wait_for_them() {
        let turns = Turns::default();
        tokio::join!(turns.scan("a", 1, 40), turns.scan("b", 1, 40), turns.scan("short", 1, 2));
        let turns = turns.had.into_inner().unwrap();
        let end_of = |name| turns.iter().rposition(|(who, _)| *who == name).unwrap();
        assert!(end_of("short") < 10, "{turns:?}");
        let slow: Vec<_> = turns.iter().filter(|(_, slow)| *slow).map(|(name, _)| *name).collect();
        assert_eq!(slow.len(), 2 * (40 - FAST_TURNS_OF_ROWS));
        // By turns, until one of them is done.
        for some in slow[..60].windows(6) {
            assert_eq!(some.iter().filter(|name| **name == "a").count(), 3, "{slow:?}");
        }
    }

    #[tokio::test]
    async fn a_long_scan_waits_for_other_shares_and_not_for_all_their_scans() {
        let turns = std::sync::Arc::new(Turns::default());
        let shares = std::iter::repeat_n(("greedy", 1), 100).chain([("modest", 2)]);
        let scans: Vec<_> = shares
            .map(|(name, group)| {
                let turns = turns.clone();
                tokio::spawn(async move { turns.scan(name, group, 40).await })
            })
            .collect();
        for scan in scans {
            scan.await.unwrap();
        }
        let turns = turns.had.lock().unwrap();
        let is_modest = |(name, slow): &(&str, bool)| *name == "modest" && *slow;
        let (first, last) = (turns.iter().position(is_modest), turns.iter().rposition(is_modest));
        let meanwhile = &turns[first.unwrap()..=last.unwrap()];
        let modest = meanwhile.iter().filter(|turn| is_modest(turn)).count();
        assert_eq!(modest, 40 - FAST_TURNS_OF_ROWS);
        let greedy = meanwhile.iter().filter(|(name, slow)| *name == "greedy" && *slow).count();
        assert!(greedy <= modest, "{greedy} turns of the others");
    }

    #[tokio::test]
    async fn a_scan_that_is_slow_for_few_rows_is_long_too() {
        let (clock, lane) = (FakeClock::default(), Lane::new(1));
        let mut pace = Pace::new(&clock, budget(u64::MAX, Duration::MAX), Some(&lane));
        for turn in 1..=FAST_TURN_COUNT {
            assert!(pace.slow_turn.is_none(), "turn {turn}");
            clock.advance(TURN_TIME_MAX);
            pace.count_row(CLOCK_BYTES);
            pace.yield_if_due().await;
        }
        assert!(pace.slow_turn.is_some());
    }

    /// Turns that are full of rows, before a scan is long.
    const FAST_TURNS_OF_ROWS: usize = (FAST_ROW_COUNT / TURN_ROW_COUNT_MAX as u64) as usize;

    /// Scans that share one slow lane, and who had which turn, in the slow lane or not.
    struct Turns {
        clock: FakeClock,
        lane: Lane,
        had: std::sync::Mutex<Vec<(&'static str, bool)>>,
    }

    impl Default for Turns {
        fn default() -> Turns {
            Turns { clock: FakeClock::default(), lane: Lane::new(1), had: Default::default() }
        }
    }

    impl Turns {
        async fn scan(&self, name: &'static str, group: u64, turn_count: u32) {
            let share = Share { group, member: group };
            let budget = Budget { share, ..budget(u64::MAX, Duration::MAX) };
            let mut pace = Pace::new(&self.clock, budget, Some(&self.lane));
            for _ in 0..turn_count {
                for _ in 0..TURN_ROW_COUNT_MAX {
                    pace.count_row(10);
                }
                self.had.lock().unwrap().push((name, pace.slow_turn.is_some()));
                pace.yield_if_due().await;
            }
        }
    }
}
