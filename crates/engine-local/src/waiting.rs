//! Requests that wait for a group, and the pauses of large ones while folding cannot keep up.
//!
//! Promises: a small request joins the next group however many large ones wait, and whatever they wait for. Large
//! requests keep their order among themselves. A pause ends by the clock, or when the commit thread has slept as long.
//! Leaves to others: how long a pause should be (`commit_thread`).

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::group::{Applied, WriteRequest};
use engine::CommitError;

/// With a larger group the first callers would wait too long for the last.
const GROUP_REQUEST_COUNT_MAX: usize = 512;
/// Bytes of large requests per group. With more, small requests would wait for them.
const GROUP_LARGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A group of large requests waits at most this long until there is room for it. Then it takes room that is kept for
/// small ones: if those use it up all the time, large ones would otherwise never get their turn.
const LARGE_ROOM_WAIT_MAX: Duration = Duration::from_secs(3);
/// Up to this size a request is small. A batch of a hundred ordinary rows is large; a single row is usually small.
pub(crate) const SMALL_REQUEST_BYTES_MAX: usize = 16 * 1024;

pub(crate) type RequestOutcome = Result<Applied, CommitError>;

/// A request and the caller who waits for its answer.
pub(crate) struct QueuedRequest {
    pub(crate) request: WriteRequest,
    pub(crate) size_bytes: usize,
    pub(crate) answer: oneshot::Sender<RequestOutcome>,
}

/// Small requests in the order they came, apart from large ones. Callers wait for their answers, so nobody can observe
/// the order of two requests that waited together.
#[derive(Default)]
pub(crate) struct WaitingRequests {
    small: VecDeque<QueuedRequest>,
    large: VecDeque<QueuedRequest>,
    /// After a large request, folding gets time to keep up before the next.
    pause: Pause,
    /// Large requests wait for room in memory.
    for_room: Option<Pause>,
}

/// While it lasts, large requests join no group.
#[derive(Clone, Copy, Default)]
struct Pause {
    /// By the clock.
    begun: Duration,
    length: Duration,
    /// How much of it the commit thread has slept. In a test the clock may stand still.
    slept: Duration,
}

impl Pause {
    fn rest(self, now: Duration) -> Duration {
        self.length.saturating_sub(self.slept.max(now.saturating_sub(self.begun)))
    }
}

/// The requests of a group.
#[derive(Default)]
pub(crate) struct TakenGroup {
    pub(crate) requests: Vec<QueuedRequest>,
    pub(crate) small_bytes: usize,
    pub(crate) large_bytes: usize,
}

impl WaitingRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    pub(crate) fn has_large(&self) -> bool {
        !self.large.is_empty()
    }

    pub(crate) fn push(&mut self, queued: QueuedRequest) {
        let line =
            if queued.size_bytes <= SMALL_REQUEST_BYTES_MAX { &mut self.small } else { &mut self.large };
        line.push_back(queued);
    }

    /// Takes at least one, if any waits that may be taken.
    pub(crate) fn take_group(&mut self, takes_large: bool) -> TakenGroup {
        let small_count = self.small.len().min(GROUP_REQUEST_COUNT_MAX);
        let mut taken =
            TakenGroup { requests: self.small.drain(..small_count).collect(), ..TakenGroup::default() };
        taken.small_bytes = taken.requests.iter().map(|queued| queued.size_bytes).sum();
        while takes_large && let Some(queued) = self.large.front() {
            if taken.large_bytes > 0 && taken.large_bytes + queued.size_bytes > GROUP_LARGE_BYTES_MAX {
                break;
            }
            taken.large_bytes += queued.size_bytes;
            taken.requests.extend(self.large.pop_front());
            self.for_room = None;
        }
        taken
    }

    /// Lets no large request into a group for this long.
    pub(crate) fn pause_large(&mut self, now: Duration, length: Duration) {
        self.pause = Pause { begun: now, length, slept: Duration::ZERO };
    }

    /// How much longer large requests pause.
    pub(crate) fn pause_rest(&self, now: Duration) -> Duration {
        self.pause.rest(now)
    }

    /// There is no room for a large request. Returns whether to go on waiting for it.
    pub(crate) fn waits_for_room(&mut self, now: Duration) -> bool {
        let begun = Pause { begun: now, length: LARGE_ROOM_WAIT_MAX, slept: Duration::ZERO };
        !self.for_room.get_or_insert(begun).rest(now).is_zero()
    }

    /// The commit thread has slept for this long, because only large requests wait.
    pub(crate) fn has_slept(&mut self, slept: Duration) {
        self.pause.slept += slept;
        if let Some(pause) = &mut self.for_room {
            pause.slept += slept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(sizes: &[usize]) -> WaitingRequests {
        let mut waiting = WaitingRequests::default();
        for &size_bytes in sizes {
            let request = WriteRequest::DropTable { key: Vec::new() };
            waiting.push(QueuedRequest { request, size_bytes, answer: oneshot::channel().0 });
        }
        waiting
    }

    fn sizes(taken: &TakenGroup) -> Vec<usize> {
        taken.requests.iter().map(|queued| queued.size_bytes).collect()
    }

    const LARGE: usize = 1_500_000;

    #[test]
    fn small_requests_pass_large_ones() {
        let mut waiting = waiting(&[LARGE, LARGE, 10, LARGE, 20]);
        let first = waiting.take_group(true);
        assert_eq!(sizes(&first), [10, 20, LARGE]);
        assert_eq!((first.small_bytes, first.large_bytes), (30, LARGE));
        assert_eq!(sizes(&waiting.take_group(true)), [LARGE]);
        assert!(!waiting.is_empty());
    }

    #[test]
    fn small_requests_are_taken_although_large_ones_are_held() {
        let mut waiting = waiting(&[LARGE, 10]);
        assert_eq!(sizes(&waiting.take_group(false)), [10]);
        assert!(waiting.take_group(false).requests.is_empty() && waiting.has_large());
        assert_eq!(sizes(&waiting.take_group(true)), [LARGE]);
    }

    #[test]
    fn a_pause_ends_by_the_clock_or_by_sleeping() {
        let ms = Duration::from_millis;
        let mut waiting = waiting(&[LARGE]);
        assert_eq!(waiting.pause_rest(ms(5)), Duration::ZERO);
        waiting.pause_large(ms(5), ms(20));
        assert_eq!(waiting.pause_rest(ms(5)), ms(20));
        assert_eq!(waiting.pause_rest(ms(15)), ms(10));
        waiting.has_slept(ms(12));
        assert_eq!((waiting.pause_rest(ms(15)), waiting.pause_rest(ms(20))), (ms(8), ms(5)));
        waiting.has_slept(ms(12));
        assert_eq!(waiting.pause_rest(ms(5)), Duration::ZERO);
    }

    #[test]
    fn room_is_waited_for_only_so_long_and_anew_after_a_large_request() {
        let mut waiting = waiting(&[LARGE, LARGE]);
        let begun = Duration::from_secs(1);
        assert!(waiting.waits_for_room(begun));
        assert!(waiting.waits_for_room(begun + LARGE_ROOM_WAIT_MAX / 2));
        waiting.has_slept(LARGE_ROOM_WAIT_MAX / 2);
        assert!(waiting.waits_for_room(begun));
        waiting.has_slept(LARGE_ROOM_WAIT_MAX / 2);
        assert!(!waiting.waits_for_room(begun));
        waiting.take_group(true);
        assert!(waiting.waits_for_room(begun + LARGE_ROOM_WAIT_MAX));
        assert!(!waiting.waits_for_room(begun + 2 * LARGE_ROOM_WAIT_MAX));
    }
}
