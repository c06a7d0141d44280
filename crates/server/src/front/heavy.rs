//! Makes large payloads take turns: parsing one takes many milliseconds of a processor, and small requests must not
//! wait for all of them, nor one account's for those of another.

use engine::lane::{Lane, Share, Turn};

/// Smaller payloads are parsed too quickly to matter.
const LARGE_PAYLOAD_BYTES: usize = 64 * 1024;
/// How much is parsed before the worker is given to others.
pub(crate) const TURN_BYTES: usize = 64 * 1024;

pub(crate) struct HeavyLane {
    lane: Lane,
}

impl HeavyLane {
    /// Large payloads may use half of the processors.
    pub fn new() -> HeavyLane {
        HeavyLane { lane: Lane::with_half_of_the_processors() }
    }

    /// To be held while a payload is parsed, not while it is written. A small one needs no turn.
    pub async fn turn(&self, payload_bytes: usize, share: impl FnOnce() -> Share) -> Option<Turn<'_>> {
        if payload_bytes < LARGE_PAYLOAD_BYTES {
            return None;
        }
        self.lane.turn(share()).await
    }
}
