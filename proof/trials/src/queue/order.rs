//! Searches an order for the operations on one message: a moment for each inside its own interval, such that every
//! answer is right.
//!
//! Promises: finds an order if there is one, unless it gives up ([`Found::Undecided`]). Leaves to others: which operations
//! may have touched the message.

use std::collections::HashSet;

use super::CLOCK_SLACK;
use super::event::Time;

/// Beyond it the search is given up.
const CONFIGURATION_COUNT_MAX: usize = 200_000;
/// The steps of an order are the bits of a number.
const STEP_COUNT_MAX: usize = 128;

/// One operation, as far as it concerns one message.
#[derive(Clone, Debug)]
pub struct Step {
    pub began: Time,
    pub ended: Time,
    /// Whether it surely happened. One without an answer may have happened or not.
    pub is_certain: bool,
    pub kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    Put {
        receipt: Option<String>,
        hide: Time,
        live: Option<Time>,
    },
    Take {
        receipt: String,
        count: u32,
        text: String,
        hide: Time,
    },
    Peek {
        count: u32,
        text: String,
    },
    Update {
        used: String,
        receipt: Option<String>,
        text: Option<String>,
        hide: Time,
    },
    Delete {
        used: String,
    },
    /// An update or a deletion with this receipt was refused.
    Refused {
        used: String,
    },
    Clear,
    /// A get without an answer: it may have taken the message.
    LostGet {
        hide: Time,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Order,
    /// So many steps fit into an order at most.
    None {
        longest: usize,
    },
    Undecided,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Absent,
    Here,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State<'a> {
    phase: Phase,
    /// `None`: one that nobody has seen.
    receipt: Option<&'a str>,
    count: u32,
    text: &'a str,
    /// The earliest moment at which it can be visible.
    visible: Time,
    /// The earliest moment of the last step.
    now: Time,
    /// The latest moment at which it can still be there, and the earliest at which it can have expired.
    expires: (Time, Time),
}

struct Search<'a> {
    steps: &'a [Step],
    seen: HashSet<(u128, State<'a>)>,
    longest: usize,
}

/// `text` is what was put.
pub fn find(steps: &[Step], text: &str) -> Found {
    if steps.len() > STEP_COUNT_MAX {
        return Found::Undecided;
    }
    let mut search = Search { steps, seen: HashSet::new(), longest: 0 };
    let start = State {
        phase: Phase::Absent,
        receipt: None,
        count: 0,
        text,
        visible: 0,
        now: 0,
        expires: (Time::MAX, Time::MAX),
    };
    match search.goes_on(0, start) {
        Some(true) => Found::Order,
        Some(false) => Found::None { longest: search.longest },
        None => Found::Undecided,
    }
}

impl<'a> Search<'a> {
    /// Whether the steps that are not `done` fit behind the others; `None` if that would take too long.
    fn goes_on(&mut self, done: u128, state: State<'a>) -> Option<bool> {
        let is_left = |index: usize| done & (1 << index) == 0;
        let steps = self.steps;
        let left = || (0..steps.len()).filter(|index| is_left(*index));
        let Some(deadline) =
            left().filter(|index| steps[*index].is_certain).map(|index| steps[index].ended).min()
        else {
            return Some(true);
        };
        self.longest = self.longest.max(done.count_ones() as usize);
        if !self.seen.insert((done, state)) {
            return Some(false);
        }
        if self.seen.len() > CONFIGURATION_COUNT_MAX {
            return None;
        }
        // What surely happened comes first: most histories need nothing else.
        for is_certain in [true, false] {
            for index in left().filter(|index| steps[*index].is_certain == is_certain) {
                let Some(next) = steps[index].after(&state) else { continue };
                // A step that ended before this moment would come too late.
                if next.now <= deadline && self.goes_on(done | 1 << index, next)? {
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

impl Step {
    /// The state after this step, if the step fits there.
    fn after<'a>(&'a self, state: &State<'a>) -> Option<State<'a>> {
        let is_here = state.phase == Phase::Here;
        let holds = |used: &str| is_here && state.receipt == Some(used);
        let mut next = State { now: state.now.max(self.began), ..*state };
        match &self.kind {
            Kind::Put { receipt, hide, live } => {
                if state.phase != Phase::Absent {
                    return None;
                }
                next.phase = Phase::Here;
                next.receipt = receipt.as_deref();
                next.visible = hidden(self.began, *hide).max(next.now);
                if let Some(live) = live {
                    next.expires = (self.ended.saturating_add(live + CLOCK_SLACK), hidden(self.began, *live));
                }
            }
            Kind::Take { receipt, count, text, hide } => {
                next.now = next.now.max(state.visible);
                let fits = is_here && state.count + 1 == *count && state.text == text;
                if !fits || next.now > state.expires.0 {
                    return None;
                }
                (next.receipt, next.count) = (Some(receipt.as_str()), *count);
                next.visible = hidden(self.began, *hide).max(next.now);
            }
            Kind::LostGet { hide } => {
                next.now = next.now.max(state.visible);
                if !is_here || next.now > state.expires.0 {
                    return None;
                }
                (next.receipt, next.count) = (None, state.count + 1);
                next.visible = hidden(self.began, *hide).max(next.now);
            }
            Kind::Peek { count, text } => {
                next.now = next.now.max(state.visible);
                if !(is_here && state.count == *count && state.text == text) || next.now > state.expires.0 {
                    return None;
                }
            }
            Kind::Update { used, receipt, text, hide } => {
                if !holds(used) || next.now > state.expires.0 {
                    return None;
                }
                next.receipt = receipt.as_deref();
                next.text = text.as_deref().unwrap_or(state.text);
                next.visible = hidden(self.began, *hide).max(next.now);
            }
            Kind::Delete { used } => {
                if !holds(used) || next.now > state.expires.0 {
                    return None;
                }
                next.phase = Phase::Gone;
            }
            Kind::Refused { used } => {
                if holds(used) && self.ended < state.expires.1 {
                    return None;
                }
            }
            Kind::Clear => {
                if is_here {
                    next.phase = Phase::Gone;
                }
            }
        }
        (next.now <= self.ended).then_some(next)
    }
}

/// The earliest moment at which a message can be seen that an operation has hidden. The time counts from some moment
/// between the operation's beginning and its effect, as `TimeNextVisible` tells.
fn hidden(began: Time, hide: Time) -> Time {
    (began + hide).saturating_sub(if hide == 0 { 0 } else { CLOCK_SLACK })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Time = 1_000_000;

    fn step(began: Time, ended: Time, kind: Kind) -> Step {
        Step { began, ended, is_certain: true, kind }
    }

    fn lost(began: Time, ended: Time, kind: Kind) -> Step {
        Step { is_certain: false, ..step(began, ended, kind) }
    }

    fn put(receipt: &str) -> Kind {
        Kind::Put { receipt: Some(receipt.to_owned()), hide: 0, live: None }
    }

    fn take(receipt: &str, count: u32) -> Kind {
        Kind::Take { receipt: receipt.to_owned(), count, text: "text".to_owned(), hide: SECOND }
    }

    fn delete(used: &str) -> Kind {
        Kind::Delete { used: used.to_owned() }
    }

    #[track_caller]
    fn check(steps: &[Step], has_order: bool) {
        let found = find(steps, "text");
        assert_eq!(found == Found::Order, has_order, "{found:?}: {steps:?}");
    }

    #[test]
    fn a_plain_life_has_an_order() {
        check(&[step(0, 1, put("a")), step(5, 6, take("b", 1)), step(7, 8, delete("b"))], true);
        let overlapping = [step(0, 9, delete("b")), step(0, 9, take("b", 1)), step(0, 9, put("a"))];
        check(&overlapping, true);
    }

    #[test]
    fn two_holders_within_the_time_have_none() {
        let again =
            |at: Time| [step(0, 1, put("a")), step(5, 6, take("b", 1)), step(at, at + 1, take("c", 2))];
        check(&again(10), false);
        check(&again(SECOND / 2), false);
        check(&again(SECOND + 6), true);
        let both_first = [step(0, 1, put("a")), step(5, 6, take("b", 1)), step(5, 6, take("c", 1))];
        check(&both_first, false);
    }

    #[test]
    fn nothing_follows_a_deletion_unless_nobody_knows_whether_it_happened() {
        let taken = step(5, 6, take("b", 1));
        let late = step(3 * SECOND, 3 * SECOND + 1, take("c", 2));
        check(&[step(0, 1, put("a")), taken.clone(), step(7, 8, delete("b")), late.clone()], false);
        check(&[step(0, 1, put("a")), taken.clone(), lost(7, 8, delete("b")), late.clone()], true);
        check(&[step(0, 1, put("a")), taken, step(7, 8, Kind::Clear), late], false);
    }

    #[test]
    fn counts_rise_by_one_with_each_take() {
        let late = |count| step(3 * SECOND, 3 * SECOND + 1, take("c", count));
        let first = [step(0, 1, put("a")), step(5, 6, take("b", 1))];
        for (count, has_order) in [(1, false), (2, true), (3, false)] {
            check(&[&first[..], &[late(count)]].concat(), has_order);
        }
        let between = lost(SECOND + 9, SECOND + 99, Kind::LostGet { hide: SECOND });
        check(&[&first[..], &[late(3), between]].concat(), true);
    }

    #[test]
    fn only_the_newest_receipt_works() {
        let update = |used: &str, receipt: &str| Kind::Update {
            used: used.to_owned(),
            receipt: Some(receipt.to_owned()),
            text: None,
            hide: 0,
        };
        let first = [step(0, 1, put("a")), step(2, 3, update("a", "b"))];
        let refused = |used: &str| step(4, 5, Kind::Refused { used: used.to_owned() });
        check(&[&first[..], &[refused("a")]].concat(), true);
        check(&[&first[..], &[refused("b")]].concat(), false);
        check(&[&first[..], &[step(4, 5, delete("a"))]].concat(), false);
        check(&[&first[..], &[step(4, 5, delete("b"))]].concat(), true);
    }

    #[test]
    fn what_has_expired_is_not_seen_again() {
        let put = Kind::Put { receipt: None, hide: 0, live: Some(SECOND) };
        let taken = |at: Time| [step(0, 1, put.clone()), step(at, at + 1, take("b", 1))];
        check(&taken(SECOND / 2), true);
        check(&taken(2 * SECOND), false);
    }
}
