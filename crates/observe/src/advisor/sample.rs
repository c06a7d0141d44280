//! Which requests the advisor looks at: all of the rare kinds, one in many of the frequent ones.
//!
//! Promises: a request that is passed over costs a counter of its thread and a comparison. A request that is looked
//! at stands for all of its kind since the last one on its thread, so the weights of all that were looked at add up
//! to all requests. The gaps are random, so a program that repeats itself is seen as it is.

use std::cell::Cell;

use crate::operation::{Operation, Service};

/// Requests that are looked at equally often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestKind {
    /// Reads of one entity by its keys.
    Read,
    /// Writes of one entity.
    Write,
    /// Transactions: all of them, since one may be a hundred writes.
    Batch,
    /// Queries of entities: all of them, since each may be a scan.
    Query,
    /// Queries whose partition is found out, which costs parsing their filter again.
    QueryPartition,
    /// Operations on tables and on the service.
    Other,
    /// Everything of the Queue service.
    Queue,
}

pub(super) const KIND_COUNT: usize = 7;

impl RequestKind {
    /// `None` for requests that say nothing about tables, or were refused before they were understood.
    pub(super) fn of(operation: Operation) -> Option<RequestKind> {
        match operation {
            Operation::GetEntity => Some(RequestKind::Read),
            Operation::QueryEntities => Some(RequestKind::Query),
            Operation::InsertEntity
            | Operation::UpdateEntity
            | Operation::InsertOrReplaceEntity
            | Operation::MergeEntity
            | Operation::InsertOrMergeEntity
            | Operation::DeleteEntity => Some(RequestKind::Write),
            Operation::EntityGroupTransaction => Some(RequestKind::Batch),
            Operation::TableUnread | Operation::TablePreflight => None,
            Operation::QueueUnread | Operation::QueuePreflight => None,
            other => match other.service() {
                Service::Table => Some(RequestKind::Other),
                Service::Queue => Some(RequestKind::Queue),
                Service::Blob | Service::Other => None,
            },
        }
    }

    /// One in so many is looked at, on average.
    fn one_in(self) -> u32 {
        match self {
            RequestKind::Read | RequestKind::Queue => 64,
            RequestKind::Write | RequestKind::QueryPartition => 8,
            RequestKind::Query | RequestKind::Batch | RequestKind::Other => 1,
        }
    }
}

/// How one thread counts one kind.
struct SampleTurn {
    /// Requests since the last one that was looked at, this one included.
    passed: Cell<u32>,
    /// The next one is looked at when so many have passed.
    due: Cell<u32>,
}

thread_local! {
    static TURNS: [SampleTurn; KIND_COUNT] =
        const { [const { SampleTurn { passed: Cell::new(0), due: Cell::new(0) } }; KIND_COUNT] };
    static SEED: Cell<u64> = const { Cell::new(0x9e37_79b9_7f4a_7c15) };
}

/// Counts a request, and says whether it is to be looked at.
pub(super) fn pass(kind: RequestKind) -> bool {
    TURNS.with(|turns| {
        let turn = &turns[kind as usize];
        let passed = turn.passed.get().saturating_add(1);
        turn.passed.set(passed);
        passed >= turn.due.get()
    })
}

/// How many requests this one stands for. Begins the next gap.
pub(super) fn take(kind: RequestKind) -> u32 {
    let one_in = kind.one_in();
    let gap = if one_in == 1 { 1 } else { 1 + random() % (2 * one_in - 1) };
    TURNS.with(|turns| {
        let turn = &turns[kind as usize];
        turn.due.set(gap);
        turn.passed.replace(0)
    })
}

/// How many requests of this thread nobody stands for yet.
#[cfg(test)]
pub(super) fn untaken(kind: RequestKind) -> u32 {
    TURNS.with(|turns| turns[kind as usize].passed.get())
}

/// Xorshift: gaps need to be irregular, not secret.
fn random() -> u32 {
    SEED.with(|seed| {
        let mut state = seed.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        seed.set(state);
        (state >> 32) as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_to_all_requests() {
        let kinds = [(RequestKind::Read, 64.0), (RequestKind::Write, 8.0), (RequestKind::Query, 1.0)];
        for (kind, one_in) in kinds {
            let (mut taken, mut weights, mut rest) = (0u32, 0u32, 0u32);
            for _ in 0..100_000 {
                rest += 1;
                if pass(kind) {
                    let weight = take(kind);
                    assert_eq!(weight, rest);
                    (taken, weights, rest) = (taken + 1, weights + weight, 0);
                }
            }
            assert_eq!(weights + rest, 100_000);
            let gap = 100_000.0 / f64::from(taken);
            assert!((gap / one_in - 1.0).abs() < 0.1, "{kind:?}: one in {gap}");
        }
    }

    #[test]
    fn a_request_that_found_the_advisor_busy_is_made_up_for_by_the_next() {
        assert!(pass(RequestKind::Other) && pass(RequestKind::Other) && pass(RequestKind::Other));
        assert_eq!(take(RequestKind::Other), 3);
    }
}
