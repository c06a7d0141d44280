//! Memory for incoming payloads, and for answers until they are read, bounded over all requests.
//!
//! Promises: a small body always gets memory, which the number of connections bounds. Large ones together never hold
//! more than the pool. A request that gets no memory is refused, or manages with less.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much a request may hold without a reservation.
pub(crate) const FREE_BYTES: usize = 16 * 1024;
/// Reservations grow in steps, so that a growing answer does not ask for memory with every row.
const STEP_BYTES: usize = 64 * 1024;

/// An amount of memory that many requests share.
#[derive(Clone)]
pub(crate) struct MemoryPool {
    steps: Arc<Semaphore>,
}

impl MemoryPool {
    pub fn new(bytes_max: usize) -> MemoryPool {
        MemoryPool { steps: Arc::new(Semaphore::new(bytes_max / STEP_BYTES)) }
    }

    /// A reservation for a small body. It may grow.
    pub fn small(&self) -> Reservation {
        Reservation { shared: self.clone(), steps: None }
    }
}

/// One request's share of the pool. Dropping it returns the memory.
pub struct Reservation {
    shared: MemoryPool,
    steps: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Makes it large enough for this many bytes. Returns `false` and changes nothing if the pool has too little left.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes() {
            return true;
        }
        let steps = (bytes - self.bytes()).div_ceil(STEP_BYTES);
        let more = u32::try_from(steps)
            .ok()
            .and_then(|steps| self.shared.steps.clone().try_acquire_many_owned(steps).ok());
        let Some(more) = more else { return false };
        match &mut self.steps {
            Some(held) => held.merge(more),
            None => self.steps = Some(more),
        }
        true
    }

    /// How many bytes it is good for.
    pub fn bytes(&self) -> usize {
        FREE_BYTES + self.steps.as_ref().map_or(0, |steps| steps.num_permits() * STEP_BYTES)
    }

    /// The same bytes. Their memory stays reserved until the last reference to them is dropped.
    pub fn keep(self, bytes: Vec<u8>) -> Bytes {
        match self.steps {
            None => Bytes::from(bytes),
            Some(steps) => Bytes::from_owner(Kept { bytes, _steps: steps }),
        }
    }
}

struct Kept {
    bytes: Vec<u8>,
    _steps: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({})", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_bodies_always_have_memory_and_large_ones_only_while_there_is_some() {
        let shared = MemoryPool::new(4 * STEP_BYTES);
        let mut first = shared.small();
        assert!(first.grow(FREE_BYTES) && first.bytes() == FREE_BYTES);
        assert!(first.grow(FREE_BYTES + 1) && first.grow(FREE_BYTES + 3 * STEP_BYTES));
        let mut second = shared.small();
        assert!(!second.grow(FREE_BYTES + 2 * STEP_BYTES), "one step is left");
        assert_eq!(second.bytes(), FREE_BYTES);
        assert!(second.grow(FREE_BYTES + STEP_BYTES));
        assert!(shared.small().grow(100));
        drop(first);
        assert!(second.grow(FREE_BYTES + 4 * STEP_BYTES));
    }

    #[test]
    fn memory_stays_reserved_until_the_last_holder_of_the_bytes_is_gone() {
        let shared = MemoryPool::new(STEP_BYTES);
        let mut reservation = shared.small();
        assert!(reservation.grow(2 * FREE_BYTES));
        let bytes = reservation.keep(vec![7; 2 * FREE_BYTES]);
        let part = bytes.slice(10..20);
        drop(bytes);
        assert!(!shared.small().grow(2 * FREE_BYTES));
        drop(part);
        assert!(shared.small().grow(2 * FREE_BYTES));
    }
}
