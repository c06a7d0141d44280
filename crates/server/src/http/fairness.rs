//! How a bounded resource is shared between accounts that do not know of each other: requests in progress, memory, and
//! connections, which are shared between addresses.
//!
//! Promises: nobody may hold more than a multiple of what would remain free. So one greedy account gets most of an idle
//! server, several greedy ones share, and a newcomer always finds something. Nothing is set aside per account, and
//! nobody needs to know how many accounts there are.

use std::sync::atomic::{AtomicUsize, Ordering};

/// An account alone gets two thirds, two get two fifths each, and so on.
const ACCOUNT_FACTOR: usize = 2;
/// A caller alone gets half.
const CALLER_FACTOR: usize = 1;

/// `free` is what remains once `held` is held.
pub(crate) fn account_may_hold(held: usize, free: usize) -> bool {
    held <= ACCOUNT_FACTOR * free
}

pub(crate) fn caller_may_hold(held: usize, free: usize) -> bool {
    held <= CALLER_FACTOR * free
}

/// An address alone gets nine tenths: everybody on this machine, or behind one proxy, has the same one.
const ADDRESS_FACTOR: usize = 9;

/// The first connection is for everybody.
pub(crate) fn address_may_hold(held: usize, free: usize) -> bool {
    held <= 1 || held <= ADDRESS_FACTOR * free
}

/// Accounts beyond this number share counters with others.
const SLOT_COUNT: usize = 256;

/// Counts the requests in progress, without a lock.
pub(crate) struct InFlight {
    count_max: usize,
    total: AtomicUsize,
    by_slot: Box<[AtomicUsize]>,
}

impl InFlight {
    pub fn new(count_max: usize) -> InFlight {
        let by_slot = (0..SLOT_COUNT).map(|_| AtomicUsize::new(0)).collect();
        InFlight { count_max, total: AtomicUsize::new(0), by_slot }
    }

    /// How many are in progress.
    pub(crate) fn count(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Lets a request in, unless there are too many of them, or too many of its account. `account` is the account's
    /// number.
    pub(crate) fn admit(&self, account: usize) -> Option<Admitted<'_>> {
        let slot = &self.by_slot[account % SLOT_COUNT];
        // Counted first and checked then: dropping the value takes a refused request off again.
        let admitted = Admitted { total: &self.total, slot };
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let held = slot.fetch_add(1, Ordering::Relaxed) + 1;
        let free = self.count_max.checked_sub(total)?;
        account_may_hold(held, free).then_some(admitted)
    }
}

/// A request in progress.
pub(crate) struct Admitted<'a> {
    total: &'a AtomicUsize,
    slot: &'a AtomicUsize,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        self.slot.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_account_leaves_room_for_others() {
        let in_flight = InFlight::new(60);
        let greed = |account| std::iter::from_fn(|| in_flight.admit(account)).collect::<Vec<_>>();
        let first = greed(1);
        assert_eq!(first.len(), 40);
        let second = greed(2);
        assert_eq!(second.len(), 13);
        let third = greed(3);
        assert_eq!(third.len(), 4);
        assert_eq!(greed(1).len(), 0);
        drop((first, second, third));
        assert_eq!(in_flight.total.load(Ordering::Relaxed), 0);
        assert_eq!(greed(3).len(), 40);
    }
}
