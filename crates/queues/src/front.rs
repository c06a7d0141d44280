//! The front of one queue, as far as this process knows it: where its visible messages begin, which of them are being
//! taken, and which are on their way into it.
//!
//! Without it, every taker would read the same first messages, all but one would fail, and each would walk again over the
//! rows that the takers before it have left behind. It holds no data: it is made anew when it is missing.
//!
//! Promises: a message is claimed by one taker at a time. A message that can be taken is never below the start. For that,
//! a commit that gives messages a place announces the place before it begins: until it ends, the start stays below.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use engine::TableId;

use crate::rows::MessageKey;
use crate::time::QueueTime;

/// A commit that nobody waits for any more has ended after this time.
const LOST_COMMIT_TIME_MAX: Duration = Duration::from_secs(60);
/// With more, those that nobody uses are forgotten.
const FRONT_COUNT_MAX: usize = 10_000;

pub(crate) struct QueueFront {
    time: Arc<QueueTime>,
    /// How often to begin anew: messages of other processes may be below the start.
    look_back: Duration,
    state: Mutex<FrontState>,
}

#[derive(Default)]
struct FrontState {
    /// No message below can be taken.
    start: MessageKey,
    /// Every message below is claimed, or cannot be taken. Never below the start.
    known_until: MessageKey,
    /// Messages that are being taken.
    held: BTreeSet<MessageKey>,
    /// Messages that were taken and are gone. They are remembered because a scan that began earlier may still see them.
    gone: BTreeSet<MessageKey>,
    /// Places that messages are about to get, with the number of commits that are under way for each.
    arriving: BTreeMap<u64, u32>,
    /// Places of commits whose end nobody saw, and until when they may still happen.
    lost: BTreeMap<u64, Duration>,
    /// Counts the events after which a scan that was under way has learnt nothing.
    setback_count: u64,
    looked_back: Duration,
}

/// Where a scan for visible messages begins and ends.
#[derive(Clone, Copy)]
pub(crate) struct Visible {
    pub(crate) start: MessageKey,
    pub(crate) now: u64,
    /// What the scan learns is certain only up to here: from here on, messages may be arriving.
    certain_until: MessageKey,
    setback_count: u64,
}

impl QueueFront {
    fn new(time: Arc<QueueTime>, look_back: Duration) -> QueueFront {
        QueueFront { time, look_back, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, FrontState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a place, `delay` ticks from now, that a commit is about to give to messages.
    pub(crate) fn announce(self: &Arc<QueueFront>, delay: u64) -> Arrival {
        let mut state = self.state();
        // Told under the lock, so that no scan of a later moment misses the announcement.
        let now = self.time.next();
        let visible = now.saturating_add(delay);
        *state.arriving.entry(visible).or_default() += 1;
        Arrival { front: self.clone(), now, visible, has_ended: false }
    }

    /// What a scan that begins now must read. Call it before the scan takes its view.
    pub(crate) fn visible(&self) -> Visible {
        let monotonic = self.time.monotonic();
        let mut state = self.state();
        let now = self.time.now();
        if monotonic.saturating_sub(state.looked_back) >= self.look_back {
            state.look_back(monotonic);
        }
        state.forget_lost(monotonic);
        let lost = state.lost.keys().next().copied();
        let arriving = state.arriving.keys().next().copied();
        let first_arriving = lost.into_iter().chain(arriving).min().unwrap_or(u64::MAX);
        #[cfg(feature = "seeded-bugs")]
        let first_arriving = crate::seeded::first_arriving(first_arriving);
        Visible {
            start: state.start,
            now,
            certain_until: MessageKey::first_at(first_arriving.min(now.saturating_add(1))),
            setback_count: state.setback_count,
        }
    }

    /// Makes the next scan begin at the beginning.
    pub(crate) fn look_back(&self) {
        let monotonic = self.time.monotonic();
        self.state().look_back(monotonic);
    }

    /// Tells what a scan has learnt: every message below `end` is claimed, or cannot be taken.
    pub(crate) fn learn(&self, scanned: &Visible, end: MessageKey) {
        let mut state = self.state();
        if state.setback_count != scanned.setback_count {
            return;
        }
        state.known_until = state.known_until.max(end.min(scanned.certain_until));
        state.advance();
    }

    /// Whether nobody uses it: then it can be made anew when it is needed.
    fn is_idle(&self) -> bool {
        let mut state = self.state();
        state.forget_lost(self.time.monotonic());
        state.held.is_empty() && state.arriving.is_empty() && state.lost.is_empty()
    }
}

impl FrontState {
    fn advance(&mut self) {
        let start = self.held.first().map_or(self.known_until, |held| self.known_until.min(*held));
        if self.start < start {
            self.start = start;
            self.gone = self.gone.split_off(&start);
        }
    }

    fn is_claimed(&self, key: MessageKey) -> bool {
        key < self.start || self.held.contains(&key) || self.gone.contains(&key)
    }

    /// Forgets the commits that have ended by now.
    fn forget_lost(&mut self, now: Duration) {
        self.lost.retain(|_, until| *until > now);
    }

    fn look_back(&mut self, now: Duration) {
        self.set_back(MessageKey::default());
        self.start = MessageKey::default();
        self.looked_back = now;
    }

    /// Messages from there on may be takeable.
    fn set_back(&mut self, key: MessageKey) {
        self.known_until = self.known_until.min(key);
        self.setback_count += 1;
    }
}

/// A place that a commit is about to give to messages.
pub(crate) struct Arrival {
    front: Arc<QueueFront>,
    /// The moment of the announcement: no other has the same.
    pub(crate) now: u64,
    pub(crate) visible: u64,
    has_ended: bool,
}

impl Arrival {
    /// The commit has ended, one way or the other.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut state = self.front.state();
        if let Some(count) = state.arriving.get_mut(&self.visible) {
            *count -= 1;
            if *count == 0 {
                state.arriving.remove(&self.visible);
            }
        }
        if !self.has_ended {
            // Whoever waited has gone, but the commit may still happen.
            let now = self.front.time.monotonic();
            state.forget_lost(now);
            state.lost.insert(self.visible, now + LOST_COMMIT_TIME_MAX);
        }
    }
}

/// The messages that one taker has claimed. Those that it does not take, others may.
pub(crate) struct Claims {
    front: Arc<QueueFront>,
    keys: Vec<MessageKey>,
}

impl Claims {
    pub(crate) fn new(front: &Arc<QueueFront>) -> Claims {
        Claims { front: front.clone(), keys: Vec::new() }
    }

    /// Whether nobody has the message, as far as can be told without claiming it.
    pub(crate) fn is_free(&self, key: MessageKey) -> bool {
        !self.front.state().is_claimed(key)
    }

    /// Claims a message, unless another taker has it.
    pub(crate) fn add(&mut self, key: MessageKey) -> bool {
        let mut state = self.front.state();
        if state.is_claimed(key) {
            return false;
        }
        state.held.insert(key);
        drop(state);
        self.keys.push(key);
        true
    }

    /// All of them were taken.
    pub(crate) fn taken(mut self) {
        let keys = std::mem::take(&mut self.keys);
        let mut state = self.front.state();
        for key in keys {
            state.held.remove(&key);
            state.gone.insert(key);
        }
        state.advance();
    }

    /// This one is gone, by this taker's hand or another's.
    pub(crate) fn gone(&mut self, key: MessageKey) {
        if let Some(index) = self.keys.iter().position(|claimed| *claimed == key) {
            self.keys.swap_remove(index);
            let mut state = self.front.state();
            state.held.remove(&key);
            state.gone.insert(key);
            state.advance();
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let mut state = self.front.state();
        for key in &self.keys {
            state.held.remove(key);
            state.set_back(*key);
        }
    }
}

/// The fronts of all queues that are in use.
pub(crate) struct Fronts {
    time: Arc<QueueTime>,
    look_back: Duration,
    by_queue: RwLock<HashMap<TableId, Arc<QueueFront>>>,
}

impl Fronts {
    pub(crate) fn new(time: Arc<QueueTime>, look_back: Duration) -> Fronts {
        Fronts { time, look_back, by_queue: RwLock::default() }
    }

    pub(crate) fn of(&self, queue: TableId) -> Arc<QueueFront> {
        if let Some(front) = self.by_queue.read().unwrap_or_else(PoisonError::into_inner).get(&queue) {
            return front.clone();
        }
        let mut fronts = self.by_queue.write().unwrap_or_else(PoisonError::into_inner);
        if fronts.len() >= FRONT_COUNT_MAX {
            // With two fronts of one queue, one would not know what arrives in the other.
            fronts.retain(|_, front| Arc::strong_count(front) > 1 || !front.is_idle());
        }
        let new = || Arc::new(QueueFront::new(self.time.clone(), self.look_back));
        fronts.entry(queue).or_insert_with(new).clone()
    }

    /// Forgets the front of a queue that is gone.
    pub(crate) fn forget(&self, queue: TableId) {
        self.by_queue.write().unwrap_or_else(PoisonError::into_inner).remove(&queue);
    }

    /// The queues in use.
    pub(crate) fn queues(&self) -> Vec<TableId> {
        self.by_queue.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::env::FakeClock;
    use protocol::queue::MessageId;

    struct Setup {
        clock: Arc<FakeClock>,
        front: Arc<QueueFront>,
    }

    fn setup(look_back: Duration) -> Setup {
        let clock = Arc::new(FakeClock::new(1_000));
        let time = Arc::new(QueueTime::new(clock.clone(), 0));
        Setup { clock, front: Arc::new(QueueFront::new(time, look_back)) }
    }

    fn key(visible: u64) -> MessageKey {
        MessageKey { visible, id: MessageId(9) }
    }

    #[test]
    fn a_message_is_claimed_once_until_it_is_let_go() {
        let Setup { front, .. } = setup(Duration::MAX);
        let (mut one, mut other) = (Claims::new(&front), Claims::new(&front));
        assert!(one.add(key(5)) && !one.add(key(5)) && !other.add(key(5)));
        drop(one);
        assert!(other.add(key(5)));
        other.taken();
        assert!(!Claims::new(&front).add(key(5)), "an earlier view may still show it");
    }

    #[test]
    fn the_start_passes_what_is_gone_but_not_what_is_held() {
        let Setup { front, .. } = setup(Duration::MAX);
        let scanned = front.visible();
        let (mut slow, mut quick) = (Claims::new(&front), Claims::new(&front));
        assert!(slow.add(key(5)) && quick.add(key(6)));
        front.learn(&scanned, key(6).after());
        quick.taken();
        assert_eq!(front.visible().start, key(5));
        slow.taken();
        assert_eq!(front.visible().start, key(6).after());
        assert!(!Claims::new(&front).add(key(6)));
        assert!(front.is_idle());
    }

    #[test]
    fn what_is_let_go_is_never_passed() {
        let Setup { front, .. } = setup(Duration::MAX);
        let mut holder = Claims::new(&front);
        assert!(holder.add(key(5)));
        // Another scan passes over it, and hears of nothing until it has ended.
        let scanned = front.visible();
        assert!(!Claims::new(&front).add(key(5)));
        drop(holder);
        front.learn(&scanned, key(7));
        assert!(front.visible().start <= key(5));
        assert!(Claims::new(&front).add(key(5)));
    }

    #[test]
    fn the_start_stays_below_what_is_arriving() {
        let Setup { clock, front } = setup(Duration::MAX);
        let arrival = front.announce(0);
        clock.advance(Duration::from_secs(1));
        let scanned = front.visible();
        front.learn(&scanned, MessageKey::first_at(scanned.now));
        assert!(front.visible().start <= MessageKey::first_at(arrival.visible));
        // A scan that began before the commit ended may have missed it.
        let scanned = front.visible();
        arrival.end();
        front.learn(&scanned, MessageKey::first_at(scanned.now));
        assert!(front.visible().start < MessageKey::first_at(scanned.now));
        let scanned = front.visible();
        front.learn(&scanned, MessageKey::first_at(scanned.now));
        assert_eq!(front.visible().start, MessageKey::first_at(scanned.now));
    }

    #[test]
    fn a_commit_that_nobody_waits_for_may_still_happen_for_a_while() {
        let Setup { clock, front } = setup(Duration::MAX);
        let arrival = front.announce(0);
        let visible = arrival.visible;
        drop(arrival);
        let learn = || {
            let scanned = front.visible();
            front.learn(&scanned, MessageKey::first_at(scanned.now));
            front.visible().start
        };
        clock.advance(Duration::from_secs(1));
        assert!(learn() <= MessageKey::first_at(visible) && !front.is_idle());
        clock.advance(LOST_COMMIT_TIME_MAX);
        assert!(learn() > MessageKey::first_at(visible) && front.is_idle());
    }

    #[test]
    fn a_shared_front_looks_back_now_and_then() {
        let Setup { clock, front } = setup(Duration::from_secs(1));
        let scanned = front.visible();
        front.learn(&scanned, key(500));
        assert_eq!(front.visible().start, key(500));
        clock.advance(Duration::from_secs(1));
        assert_eq!(front.visible().start, MessageKey::default());
        front.learn(&scanned, key(600));
        assert_eq!(front.visible().start, MessageKey::default(), "an older scan has learnt nothing");
    }

    #[test]
    fn fronts_in_use_are_kept() {
        let time = Arc::new(QueueTime::new(Arc::new(FakeClock::new(1_000)), 0));
        let fronts = Fronts::new(time, Duration::MAX);
        let kept = fronts.of(TableId(0));
        let _arrival = fronts.of(TableId(1)).announce(0);
        for id in 2..FRONT_COUNT_MAX as u64 + 10 {
            fronts.of(TableId(id));
        }
        assert!(Arc::ptr_eq(&kept, &fronts.of(TableId(0))));
        assert!(!fronts.of(TableId(1)).is_idle());
        assert!(fronts.queues().len() < 20);
    }
}
