//! The planted bugs that need the inside of this crate, in builds with the feature `seeded-bugs` alone. Which of them a
//! process carries, and why, is told in `engine::seeded`. Without its bug, each function changes nothing.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use engine::seeded::{Bug, is};
use engine::{Expect, Op, TableRows};

/// One take of so many is not counted, and one clearing of so many clears nothing.
const INTERVAL: u32 = 4;

fn is_due(bug: Bug) -> bool {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    is(bug) && COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(INTERVAL)
}

/// A taker's ops, which no longer check that the messages are as they were seen.
pub(crate) fn loosen(ops: &mut [Op]) {
    if is(Bug::UncheckedTake) {
        ops.iter_mut().for_each(|op| op.expect = Expect::Any);
    }
}

/// How long a taken message is hidden.
pub(crate) fn shorten(visibility: Duration) -> Duration {
    if is(Bug::ShortHiding) { visibility / 2 } else { visibility }
}

pub(crate) fn dequeue_count(old: u32, new: u32) -> u32 {
    if is_due(Bug::UncountedTake) { old } else { new }
}

/// A deletion's ops, of which the first deletes the message. With an expiry row there are three.
pub(crate) fn keep_message(ops: &mut Vec<Op>) {
    if is(Bug::HalfDeletion) && ops.len() == 3 {
        ops.remove(0);
    }
}

/// The first place at which messages are arriving.
pub(crate) fn first_arriving(place: u64) -> u64 {
    if is(Bug::PassingFront) { u64::MAX } else { place }
}

/// What becomes of the messages of a queue that is cleared.
pub(crate) fn cleared_rows() -> TableRows {
    if is_due(Bug::EmptyClearing) { TableRows::Keep } else { TableRows::Drop }
}
