//! Makes large payloads take turns: parsing one takes many milliseconds of a processor, and small requests must not
//! wait for all of them.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Smaller payloads are parsed too quickly to matter.
const LARGE_PAYLOAD_BYTES: usize = 64 * 1024;
/// How much is parsed before the worker is given to others.
pub(crate) const TURN_BYTES: usize = 64 * 1024;

pub(crate) struct HeavyLane {
    turns: Semaphore,
}

impl HeavyLane {
    /// Large payloads may use half of the processors.
    pub fn new() -> HeavyLane {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        HeavyLane { turns: Semaphore::new((processors / 2).max(1)) }
    }

    /// To be held while a payload is parsed, not while it is written. A small one needs no turn.
    pub async fn turn(&self, payload_bytes: usize) -> Option<SemaphorePermit<'_>> {
        if payload_bytes < LARGE_PAYLOAD_BYTES {
            return None;
        }
        // The semaphore is never closed.
        self.turns.acquire().await.ok()
    }
}
