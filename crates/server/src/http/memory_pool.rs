//! Memory for incoming payloads, and for answers until they are read, bounded over all requests and shared fairly.
//!
//! Promises: a small body always gets memory, which the number of connections bounds. Large ones together never hold
//! more than the pool. A request that gets no memory is refused, or manages with less. However greedy some accounts and
//! callers are, a part of the pool stays free for others: see [`Ledger::admits`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fairness::{account_may_hold, caller_may_hold};

/// How much a request may hold without a reservation.
pub(crate) const FREE_BYTES: usize = 16 * 1024;
/// Reservations grow in steps, so that a growing body does not ask for memory with every piece.
const STEP_BYTES: usize = 64 * 1024;

/// An amount of memory that many requests share.
#[derive(Clone)]
pub(crate) struct MemoryPool {
    ledger: Arc<Mutex<Ledger>>,
}

/// Whose memory a reservation is. Both numbers are hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub account: u64,
    /// One of the account's callers.
    pub caller: u64,
}

/// Who holds how many steps. Only holders of large bodies have an entry, so there are never more than steps.
struct Ledger {
    total: usize,
    free: usize,
    by_account: HashMap<u64, usize>,
    by_caller: HashMap<u64, usize>,
}

impl Ledger {
    /// Whether the holder may take this many further steps.
    fn admits(&self, holder: Holder, steps: usize) -> bool {
        let Some(free) = self.free.checked_sub(steps) else { return false };
        let held = |by: &HashMap<u64, usize>, key: u64| by.get(&key).copied().unwrap_or(0) + steps;
        account_may_hold(held(&self.by_account, holder.account), free)
            && caller_may_hold(held(&self.by_caller, holder.caller), free)
    }

    fn take(&mut self, holder: Holder, steps: usize) -> bool {
        if !self.admits(holder, steps) {
            return false;
        }
        self.free -= steps;
        *self.by_account.entry(holder.account).or_default() += steps;
        *self.by_caller.entry(holder.caller).or_default() += steps;
        true
    }

    fn give_back(&mut self, holder: Holder, steps: usize) {
        self.free += steps;
        for (by, key) in [(&mut self.by_account, holder.account), (&mut self.by_caller, holder.caller)] {
            if let Some(held) = by.get_mut(&key) {
                *held = held.saturating_sub(steps);
                if *held == 0 {
                    by.remove(&key);
                }
            }
        }
    }
}

impl MemoryPool {
    pub fn new(bytes_max: usize) -> MemoryPool {
        let (by_account, by_caller) = (HashMap::new(), HashMap::new());
        let total = bytes_max / STEP_BYTES;
        let ledger = Ledger { total, free: total, by_account, by_caller };
        MemoryPool { ledger: Arc::new(Mutex::new(ledger)) }
    }

    /// A reservation for a small body. It may grow.
    pub fn small(&self, holder: Holder) -> Reservation {
        Reservation { pool: self.clone(), holder, steps: 0 }
    }

    /// How much is reserved.
    pub fn held_bytes(&self) -> usize {
        let ledger = self.ledger();
        (ledger.total - ledger.free) * STEP_BYTES
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request's share of the pool. Dropping it returns the memory.
pub struct Reservation {
    pool: MemoryPool,
    holder: Holder,
    steps: usize,
}

impl Reservation {
    /// Makes it large enough for this many bytes. Returns `false` and changes nothing if the pool has too little left
    /// for its holder.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes() {
            return true;
        }
        let steps = steps_for(bytes) - self.steps;
        let is_taken = self.pool.ledger().take(self.holder, steps);
        self.steps += if is_taken { steps } else { 0 };
        is_taken
    }

    /// Returns the memory that this many bytes do not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let excess = self.steps.saturating_sub(steps_for(bytes));
        if excess > 0 {
            self.steps -= excess;
            self.pool.ledger().give_back(self.holder, excess);
        }
    }

    /// How many bytes it is good for.
    pub fn bytes(&self) -> usize {
        FREE_BYTES + self.steps * STEP_BYTES
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.steps > 0 {
            self.pool.ledger().give_back(self.holder, self.steps);
        }
    }
}

fn steps_for(bytes: usize) -> usize {
    bytes.saturating_sub(FREE_BYTES).div_ceil(STEP_BYTES)
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({})", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(account: u64, caller: u64) -> Holder {
        Holder { account, caller: account * 1000 + caller }
    }

    fn bytes(steps: usize) -> usize {
        FREE_BYTES + steps * STEP_BYTES
    }

    #[test]
    fn small_bodies_always_have_memory_and_large_ones_only_while_there_is_some() {
        let pool = MemoryPool::new(8 * STEP_BYTES);
        let mut first = pool.small(holder(1, 1));
        assert!(first.grow(FREE_BYTES) && first.bytes() == FREE_BYTES);
        assert!(first.grow(FREE_BYTES + 1) && first.grow(bytes(4)));
        assert!(!first.grow(bytes(5)), "one caller gets half");
        assert_eq!(first.bytes(), bytes(4));
        let mut second = pool.small(holder(2, 1));
        assert!(!second.grow(bytes(3)) && second.grow(bytes(2)));
        assert!(pool.small(holder(1, 1)).grow(100));
        first.shrink(bytes(1) - 10);
        assert_eq!(first.bytes(), bytes(1));
        assert!(second.grow(bytes(3)));
        drop((first, second));
        assert!(pool.small(holder(3, 1)).grow(bytes(4)));
    }

    #[test]
    fn some_memory_is_left_for_other_callers_and_other_accounts() {
        let pool = MemoryPool::new(600 * STEP_BYTES);
        // Takes what it can get, step by step, in many requests.
        let greed = |account, caller| {
            let mut held = Vec::new();
            loop {
                let mut one = pool.small(holder(account, caller));
                if !one.grow(bytes(1)) {
                    return held;
                }
                held.push(one);
            }
        };
        let first = greed(1, 1);
        assert_eq!(first.len(), 300);
        let second = greed(1, 2);
        assert_eq!(second.len(), 100, "another caller of the same account");
        assert_eq!(greed(1, 3).len(), 0, "an account gets two thirds");
        let third = greed(2, 1);
        assert_eq!(third.len(), 100, "another account");
        assert_eq!(greed(3, 1).len(), 50, "and yet another");
        drop((first, second, third));
        let ledger = pool.ledger();
        assert!(ledger.free == 600 && ledger.by_account.is_empty() && ledger.by_caller.is_empty());
    }
}
