//! Decides whether a concurrent history is linearizable: Wing and Gong's search, with Lowe's pruning.
//!
//! At each step the search takes an operation that no waiting operation had to precede: one that was invoked before the
//! first return among those waiting. It asks the sequential model whether the operation could have given its answer,
//! and continues from the new state; at a dead end it takes the last operation back. Lowe's observation: after the same
//! set of operations in the same state the future is the same, so each such pair is tried once.
//!
//! An operation without a known answer may have happened at any moment after its invocation, or never.

use std::collections::HashSet;
use std::hash::Hash;

/// A sequential model: how operations behave one at a time.
pub trait Sequential {
    type State: Clone + Eq + Hash;
    type Operation;

    fn initial(&self) -> Self::State;

    /// The state after the operation; `None` if it could not have given its answer. For an unknown answer, `None` means
    /// that the operation would have changed nothing.
    fn step(&self, state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;
}

/// An operation and when it was in progress, by one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interval<O> {
    pub operation: O,
    pub invoked: u64,
    /// `None` if no answer came: it may take effect at any later moment, or never.
    pub returned: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Linearizable,
    /// At most this many operations fit into one order.
    Violation {
        longest: usize,
    },
    /// The search was given up.
    Undecided,
}

/// The verdict, and how many pairs of operations and state the search visited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    pub verdict: Verdict,
    pub configuration_count: usize,
}

pub fn check<M: Sequential>(
    model: &M,
    history: &[Interval<M::Operation>],
    configuration_count_max: usize,
) -> Checked {
    let mut waiting = Waiting::new(history);
    let mut missing = history.iter().filter(|interval| interval.returned.is_some()).count();
    let mut done = vec![0u64; history.len().div_ceil(64)].into_boxed_slice();
    let mut state = model.initial();
    let mut seen = HashSet::new();
    let mut taken: Vec<(usize, M::State)> = Vec::new();
    let mut longest = 0;
    let mut at = waiting.first();

    while missing > 0 {
        if seen.len() > configuration_count_max {
            return Checked { verdict: Verdict::Undecided, configuration_count: seen.len() };
        }
        let next = waiting.event(at).and_then(|event| match event {
            Event::Invoked(index) => Some(index),
            Event::Returned => None,
        });
        if let Some(index) = next {
            let after = model.step(&state, &history[index].operation).filter(|after| {
                flip(&mut done, index);
                let is_new = seen.insert((done.clone(), after.clone()));
                flip(&mut done, index);
                is_new
            });
            match after {
                Some(after) => {
                    flip(&mut done, index);
                    taken.push((index, std::mem::replace(&mut state, after)));
                    longest = longest.max(taken.len());
                    missing -= usize::from(history[index].returned.is_some());
                    waiting.lift(index);
                    at = waiting.first();
                }
                None => at = waiting.after(at),
            }
            continue;
        }
        // A waiting operation returned here, so later operations cannot come before it.
        let Some((index, before)) = taken.pop() else {
            return Checked { verdict: Verdict::Violation { longest }, configuration_count: seen.len() };
        };
        state = before;
        flip(&mut done, index);
        missing += usize::from(history[index].returned.is_some());
        waiting.put_back(index);
        at = waiting.after(waiting.invocation(index));
    }
    Checked { verdict: Verdict::Linearizable, configuration_count: seen.len() }
}

fn flip(done: &mut [u64], index: usize) {
    done[index / 64] ^= 1 << (index % 64);
}

#[derive(Clone, Copy)]
enum Event {
    Invoked(usize),
    Returned,
}

/// The events of the operations that are not yet in the order, by time: a doubly linked list from which an operation is
/// removed, and to which it is returned, in constant time.
struct Waiting {
    /// The first entry marks both ends of the list.
    events: Vec<Option<Event>>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// The position of each operation's invocation.
    invocations: Vec<usize>,
    returns: Vec<Option<usize>>,
}

const END: usize = 0;

impl Waiting {
    fn new<O>(history: &[Interval<O>]) -> Waiting {
        let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(history.len() * 2);
        for (index, interval) in history.iter().enumerate() {
            moments.push((interval.invoked, false, index));
            // At the same moment invocations come first: the two then count as concurrent, the weaker claim.
            moments.extend(interval.returned.map(|returned| (returned, true, index)));
        }
        moments.sort_unstable();
        let count = moments.len() + 1;
        let mut waiting = Waiting {
            events: vec![None],
            next: (0..count).map(|at| (at + 1) % count).collect(),
            previous: (0..count).map(|at| (at + count - 1) % count).collect(),
            invocations: vec![END; history.len()],
            returns: vec![None; history.len()],
        };
        for (at, (_, is_return, index)) in (1..).zip(moments) {
            if is_return {
                waiting.events.push(Some(Event::Returned));
                waiting.returns[index] = Some(at);
            } else {
                waiting.events.push(Some(Event::Invoked(index)));
                waiting.invocations[index] = at;
            }
        }
        waiting
    }

    fn first(&self) -> usize {
        self.next[END]
    }

    fn after(&self, at: usize) -> usize {
        self.next[at]
    }

    fn event(&self, at: usize) -> Option<Event> {
        self.events[at]
    }

    fn invocation(&self, index: usize) -> usize {
        self.invocations[index]
    }

    fn lift(&mut self, index: usize) {
        self.unlink(self.invocations[index]);
        if let Some(at) = self.returns[index] {
            self.unlink(at);
        }
    }

    /// Only for the operation that was removed last, because its neighbours are those of that time.
    fn put_back(&mut self, index: usize) {
        if let Some(at) = self.returns[index] {
            self.link(at);
        }
        self.link(self.invocations[index]);
    }

    fn unlink(&mut self, at: usize) {
        let (previous, next) = (self.previous[at], self.next[at]);
        self.next[previous] = next;
        self.previous[next] = previous;
    }

    fn link(&mut self, at: usize) {
        let (previous, next) = (self.previous[at], self.next[at]);
        self.next[previous] = at;
        self.previous[next] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: a write fits any state, a read only the state with its value.
    struct Register;

    #[derive(Clone, Copy)]
    enum Call {
        Write(u8),
        Read(u8),
    }
    use Call::{Read, Write};

    impl Sequential for Register {
        type State = u8;
        type Operation = Call;

        fn initial(&self) -> u8 {
            0
        }

        fn step(&self, state: &u8, call: &Call) -> Option<u8> {
            match call {
                Write(value) => Some(*value),
                Read(value) => (value == state).then_some(*value),
            }
        }
    }

    #[track_caller]
    fn check_all(history: &[(Call, u64, Option<u64>)], linearizable: bool) {
        let history: Vec<_> = history
            .iter()
            .map(|&(operation, invoked, returned)| Interval { operation, invoked, returned })
            .collect();
        let verdict = check(&Register, &history, 10_000).verdict;
        assert_eq!(verdict == Verdict::Linearizable, linearizable, "{verdict:?}");
        assert_ne!(verdict, Verdict::Undecided);
    }

    #[test]
    fn what_happened_one_after_the_other_is_held_to_that_order() {
        check_all(&[], true);
        check_all(&[(Write(1), 0, Some(1)), (Read(1), 2, Some(3))], true);
        check_all(&[(Write(1), 0, Some(1)), (Read(0), 2, Some(3))], false);
        check_all(&[(Read(7), 0, Some(1))], false);
    }

    #[test]
    fn what_overlaps_may_have_any_order() {
        check_all(&[(Write(1), 0, Some(5)), (Read(0), 1, Some(2)), (Read(1), 3, Some(4))], true);
        // Once a read has seen a write, later reads see it too.
        check_all(&[(Write(1), 0, Some(5)), (Read(1), 1, Some(2)), (Read(0), 3, Some(4))], false);
        check_all(&[(Write(1), 0, Some(1)), (Read(0), 1, Some(2))], true);
    }

    #[test]
    fn the_search_takes_wrong_turns_back() {
        let history = [
            (Write(1), 0, Some(10)),
            (Write(2), 0, Some(10)),
            (Write(3), 0, Some(10)),
            (Read(2), 11, Some(12)),
            (Read(2), 13, Some(14)),
        ];
        check_all(&history, true);
        check_all(&[history[0], history[1], history[2], history[3], (Read(1), 13, Some(14))], false);
    }

    #[test]
    fn an_unknown_outcome_may_come_late_or_never() {
        check_all(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(0), 4, Some(5))], true);
        check_all(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(1), 4, Some(5))], true);
        check_all(&[(Write(1), 0, None), (Read(1), 2, Some(3)), (Read(0), 4, Some(5))], false);
        // It cannot be seen before it was invoked.
        check_all(&[(Read(1), 2, Some(3)), (Write(1), 4, None)], false);
    }

    #[test]
    fn a_search_that_grows_too_large_is_given_up_and_says_so() {
        let history: Vec<_> = (0..20)
            .map(|value| Interval { operation: Write(value), invoked: 0, returned: Some(100) })
            .chain([Interval { operation: Read(99), invoked: 200, returned: Some(201) }])
            .collect();
        let checked = check(&Register, &history, 1_000);
        assert_eq!(checked.verdict, Verdict::Undecided);
        assert!(checked.configuration_count > 1_000);
    }
}
