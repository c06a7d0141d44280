//! Memory for what is on its way, bounded over all requests: payloads that come in, and answers until their callers
//! have read them, which a caller may take a long time to do.
//!
//! Promises: small things always have room (there are only so many connections); of large ones no more is held than the
//! bound says. Who finds no room is told so, or makes do with less.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one request may hold without asking.
pub const FREE_BYTES: usize = 16 * 1024;
/// Room is asked for in steps, so that a page that grows does not ask at every entity.
const STEP_BYTES: usize = 64 * 1024;

/// A bound that many requests share.
#[derive(Clone)]
pub struct SharedRoom {
    steps: Arc<Semaphore>,
}

impl SharedRoom {
    pub fn new(bytes_max: usize) -> SharedRoom {
        SharedRoom { steps: Arc::new(Semaphore::new(bytes_max / STEP_BYTES)) }
    }

    /// Room for what is small; it may grow.
    pub fn small(&self) -> Room {
        Room { shared: self.clone(), steps: None }
    }
}

/// What one request holds of it; given back when dropped.
pub struct Room {
    shared: SharedRoom,
    steps: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// Makes it large enough for so many bytes. `false`: there is no more room, and it stays as large as it was.
    pub fn grow(&mut self, bytes: usize) -> bool {
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

    /// How many bytes it is large enough for.
    pub fn bytes(&self) -> usize {
        FREE_BYTES + self.steps.as_ref().map_or(0, |steps| steps.num_permits() * STEP_BYTES)
    }

    /// The bytes, with their room kept for as long as anybody holds them.
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

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Room({})", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_always_has_room_and_what_is_large_only_while_there_is_some() {
        let shared = SharedRoom::new(4 * STEP_BYTES);
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
    fn room_is_kept_until_the_last_holder_of_the_bytes_is_gone() {
        let shared = SharedRoom::new(STEP_BYTES);
        let mut room = shared.small();
        assert!(room.grow(2 * FREE_BYTES));
        let bytes = room.keep(vec![7; 2 * FREE_BYTES]);
        let part = bytes.slice(10..20);
        drop(bytes);
        assert!(!shared.small().grow(2 * FREE_BYTES));
        drop(part);
        assert!(shared.small().grow(2 * FREE_BYTES));
    }
}
