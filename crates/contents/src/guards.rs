//! What keeps contents from being forgotten too early: pins, pending contents, and holds.
//!
//! All of it is in memory, because all of it protects callers of this process; a crash ends them too.
//!
//! *Pins* are moments, not lists of contents, so a pin costs the same for a content of one byte and of a terabyte. A
//! forgotten content waits until every pin from before is gone. Beyond [`DEFERRED_COUNT_MAX`] it is left to the next sweep.
//!
//! *Pending* contents are known by their number: numbers increase, and a sweep leaves out every number from the first of
//! the oldest live writer on. So a slow writer delays sweeping what was written after it began, and nothing else.
//!
//! *Holds* are lists. A sweep leaves out what was held at any time since it began, so while one runs, holds that are
//! dropped are remembered, up to [`HELD_COUNT_MAX`].

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::reference::{ContentId, ContentRef};

/// Forgotten contents that wait for pins: 40 MiB of memory at most.
pub(crate) const DEFERRED_COUNT_MAX: usize = 1 << 20;
/// Contents that were held during a sweep: 8 MiB of memory at most.
pub(crate) const HELD_COUNT_MAX: usize = 1 << 18;

/// Forgets contents that no pin protects any more. It must not wait.
type Release = Box<dyn Fn(Vec<ContentRef>) + Send + Sync>;

pub(crate) struct Guards {
    state: Mutex<GuardState>,
    release: Release,
}

#[derive(Default)]
struct GuardState {
    /// The next moment.
    moment: u64,
    /// How many pins each moment has.
    pins: BTreeMap<u64, usize>,
    /// Forgotten contents with the moment of their forgetting, in order.
    deferred: VecDeque<(u64, ContentRef)>,
    left_to_sweep: u64,
    /// The number of the next content.
    number: u64,
    /// How many live writers began at each number.
    writers: BTreeMap<u64, usize>,
    holds: HashMap<ContentId, usize>,
    sweeps: usize,
    /// Holds that were dropped while a sweep ran.
    held: HashSet<ContentId>,
    held_overrun: bool,
}

fn subtract(counts: &mut BTreeMap<u64, usize>, key: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

impl Guards {
    pub(crate) fn new(release: impl Fn(Vec<ContentRef>) + Send + Sync + 'static) -> Arc<Guards> {
        Arc::new(Guards { state: Mutex::default(), release: Box::new(release) })
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn pin(self: &Arc<Guards>) -> Pin {
        let mut state = self.state();
        let moment = state.moment;
        *state.pins.entry(moment).or_default() += 1;
        drop(state);
        Pin(Arc::new(PinGuard { guards: self.clone(), moment }))
    }

    /// Of contents that are to be forgotten, those that no pin protects. The others come when they can.
    pub(crate) fn forget(&self, contents: &[ContentRef]) -> Vec<ContentRef> {
        let mut state = self.state();
        if state.pins.is_empty() {
            return contents.to_vec();
        }
        let moment = state.moment;
        state.moment += 1;
        let room = DEFERRED_COUNT_MAX.saturating_sub(state.deferred.len()).min(contents.len());
        state.deferred.extend(contents[..room].iter().map(|content| (moment, *content)));
        state.left_to_sweep += (contents.len() - room) as u64;
        Vec::new()
    }

    pub(crate) fn begin_writer(self: &Arc<Guards>) -> PendingContent {
        let mut state = self.state();
        let first = state.number;
        *state.writers.entry(first).or_default() += 1;
        drop(state);
        PendingContent { guards: self.clone(), first }
    }

    /// The number of a new content. Its writer is live.
    pub(crate) fn next_number(&self) -> u64 {
        let mut state = self.state();
        state.number += 1;
        state.number - 1
    }

    /// Whether a content has this number.
    pub(crate) fn has_number(&self, number: u64) -> bool {
        number < self.state().number
    }

    pub(crate) fn hold(self: &Arc<Guards>, contents: &[ContentRef]) -> Hold {
        let ids: Vec<ContentId> = contents.iter().map(|content| content.id).collect();
        let mut state = self.state();
        for id in &ids {
            *state.holds.entry(*id).or_default() += 1;
        }
        drop(state);
        Hold { guards: self.clone(), ids }
    }

    pub(crate) fn begin_sweep(self: &Arc<Guards>) -> SweepGuard {
        let mut state = self.state();
        state.sweeps += 1;
        let horizon = state.writers.keys().next().copied().unwrap_or(state.number);
        drop(state);
        SweepGuard { guards: self.clone(), horizon }
    }

    /// Pins, deferred contents, contents left to the next sweep.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let state = self.state();
        let pins = state.pins.values().sum::<usize>() as u64;
        (pins, state.deferred.len() as u64, state.left_to_sweep)
    }
}

/// Keeps contents readable. Clones share one moment.
#[derive(Clone)]
pub struct Pin(Arc<PinGuard>);

struct PinGuard {
    guards: Arc<Guards>,
    moment: u64,
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({})", self.0.moment)
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let mut state = self.guards.state();
        subtract(&mut state.pins, self.moment);
        let oldest = state.pins.keys().next().copied().unwrap_or(u64::MAX);
        let free = state.deferred.partition_point(|(moment, _)| *moment < oldest);
        let free: Vec<ContentRef> = state.deferred.drain(..free).map(|(_, content)| content).collect();
        drop(state);
        if !free.is_empty() {
            (self.guards.release)(free);
        }
    }
}

/// Keeps sweeps away from contents that are about to have a row.
pub struct PendingContent {
    guards: Arc<Guards>,
    first: u64,
}

impl PendingContent {
    /// The row is committed. The same as dropping it.
    pub fn adopt(self) {}

    /// Another guard of the same contents.
    pub(crate) fn again(&self) -> PendingContent {
        *self.guards.state().writers.entry(self.first).or_default() += 1;
        PendingContent { guards: self.guards.clone(), first: self.first }
    }

    /// Protects what the other one protects too. So one guard is enough for any number of contents, at the price of
    /// protecting everything that was written after the first of them.
    pub fn include(&mut self, mut other: PendingContent) {
        debug_assert!(Arc::ptr_eq(&self.guards, &other.guards));
        if other.first < self.first {
            std::mem::swap(&mut self.first, &mut other.first);
        }
    }
}

impl fmt::Debug for PendingContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({})", self.first)
    }
}

impl Drop for PendingContent {
    fn drop(&mut self) {
        subtract(&mut self.guards.state().writers, self.first);
    }
}

/// Keeps sweeps away from contents that are about to have a second row.
pub struct Hold {
    guards: Arc<Guards>,
    ids: Vec<ContentId>,
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hold({:?})", self.ids)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.guards.state();
        for id in &self.ids {
            if let Some(count) = state.holds.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    state.holds.remove(id);
                }
            }
            if state.sweeps == 0 {
                continue;
            }
            if state.held.len() < HELD_COUNT_MAX {
                state.held.insert(*id);
            } else {
                state.held_overrun = true;
            }
        }
    }
}

/// A sweep that runs.
pub(crate) struct SweepGuard {
    guards: Arc<Guards>,
    horizon: u64,
}

impl SweepGuard {
    /// Whether a content of this process was stored, and not pending, when the sweep began.
    pub(crate) fn covers(&self, number: u64) -> bool {
        number < self.horizon
    }

    /// Those that were not held since the sweep began; `None` when nobody remembers.
    pub(crate) fn not_held(&self, contents: &[ContentRef]) -> Option<Vec<ContentRef>> {
        let state = self.guards.state();
        let is_held = |id: &ContentId| state.holds.contains_key(id) || state.held.contains(id);
        let free = || contents.iter().filter(|content| !is_held(&content.id)).copied().collect();
        (!state.held_overrun).then(free)
    }
}

impl Drop for SweepGuard {
    fn drop(&mut self) {
        let mut state = self.guards.state();
        state.sweeps -= 1;
        if state.sweeps == 0 {
            state.held = HashSet::new();
            state.held_overrun = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(number: u8) -> ContentRef {
        ContentRef::new(ContentId([number; 16]), 1)
    }

    fn guards() -> (Arc<Guards>, Arc<Mutex<Vec<ContentRef>>>) {
        let released = Arc::new(Mutex::new(Vec::new()));
        let list = released.clone();
        (Guards::new(move |contents| list.lock().unwrap().extend(contents)), released)
    }

    #[test]
    fn a_pin_defers_what_is_forgotten_after_it_and_a_later_pin_does_not() {
        let (guards, released) = guards();
        assert_eq!(guards.forget(&[content(0)]), [content(0)]);
        let old = guards.pin();
        assert!(guards.forget(&[content(1)]).is_empty());
        let new = guards.pin();
        assert!(guards.forget(&[content(2)]).is_empty());
        let second = old.clone();
        drop(old);
        assert!(released.lock().unwrap().is_empty());
        drop(second);
        assert_eq!(*released.lock().unwrap(), [content(1)]);
        drop(new);
        assert_eq!(*released.lock().unwrap(), [content(1), content(2)]);
    }

    #[test]
    fn a_sweep_leaves_out_what_a_live_writer_may_have_written() {
        let (guards, _) = guards();
        let first = guards.begin_writer();
        let before = guards.next_number();
        drop(first);
        let second = guards.begin_writer();
        let (its, other) = (guards.next_number(), guards.next_number());
        let sweep = guards.begin_sweep();
        assert!(sweep.covers(before) && !sweep.covers(its) && !sweep.covers(other));
        second.adopt();
        assert!(!sweep.covers(its));
        assert!(guards.begin_sweep().covers(other));
    }

    #[test]
    fn a_guard_that_includes_another_protects_what_both_did() {
        for swapped in [false, true] {
            let (guards, _) = guards();
            let first = guards.begin_writer();
            let number = guards.next_number();
            let second = guards.begin_writer();
            guards.next_number();
            let (mut one, other) = if swapped { (second, first) } else { (first, second) };
            one.include(other);
            assert!(!guards.begin_sweep().covers(number));
            drop(one);
            assert!(guards.begin_sweep().covers(number + 1));
        }
    }

    #[test]
    fn a_sweep_remembers_what_was_held_since_it_began() {
        let (guards, _) = guards();
        drop(guards.hold(&[content(1)]));
        let hold = guards.hold(&[content(2)]);
        let sweep = guards.begin_sweep();
        drop(hold);
        drop(guards.hold(&[content(3)]));
        let all = [content(1), content(2), content(3), content(4)];
        assert_eq!(sweep.not_held(&all).unwrap(), [content(1), content(4)]);
        drop(sweep);
        assert_eq!(guards.begin_sweep().not_held(&all).unwrap(), all);
    }

    #[test]
    fn a_sweep_that_cannot_remember_all_holds_forgets_nothing() {
        let (guards, _) = guards();
        let sweep = guards.begin_sweep();
        let many: Vec<ContentRef> = (0..=HELD_COUNT_MAX as u128)
            .map(|number| ContentRef::new(ContentId(number.to_le_bytes()), 1))
            .collect();
        drop(guards.hold(&many));
        assert_eq!(sweep.not_held(&[content(9)]), None);
    }
}
