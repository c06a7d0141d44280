//! Large payloads take turns: reading one takes many milliseconds of a processor, and callers with small requests
//! must not wait for all of them.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Reading less than this is done before anybody notices.
const LARGE_PAYLOAD_BYTES: usize = 64 * 1024;
/// What is read before others get the worker.
pub const TURN_BYTES: usize = 64 * 1024;

pub struct HeavyLane {
    turns: Semaphore,
}

impl HeavyLane {
    /// Half of the processors for the heavy ones.
    pub fn new() -> HeavyLane {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        HeavyLane { turns: Semaphore::new((processors / 2).max(1)) }
    }

    /// Held while a payload is read, not while it is written. A small one needs none.
    pub async fn turn(&self, payload_bytes: usize) -> Option<SemaphorePermit<'_>> {
        if payload_bytes < LARGE_PAYLOAD_BYTES {
            return None;
        }
        // The lane is never closed.
        self.turns.acquire().await.ok()
    }
}
