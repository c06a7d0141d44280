//! A scan of a view that contains panics inside redb. Blocks are checked before redb sees them, so it should never panic.
//! If it does, a page is broken in a way that no check noticed, and other requests must not suffer.
//!
//! Promises: a panic inside redb is an error like other damage. A panic of the sink, which belongs to the caller, is
//! passed on to the caller.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use engine::keys::{Key, KeyRange, OwnedKey};
use engine::pace::Pace;
use engine::scan::scan;
use engine::{Flow, Sink, TableId, Version};

use crate::tree_error::TreeError;
use crate::view::View;

/// As [`scan`].
pub(crate) async fn contained_scan(
    view: &View,
    table: TableId,
    ranges: &[KeyRange],
    pace: Pace<'_>,
    sink: &mut dyn Sink,
) -> Result<Option<OwnedKey>, TreeError> {
    let is_in_sink = AtomicBool::new(false);
    let mut sink = WatchedSink { sink, is_in_sink: &is_in_sink };
    let mut scanning = pin!(scan(view, table, ranges, pace, &mut sink));
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| scanning.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| {
            if is_in_sink.load(Ordering::Relaxed) {
                resume_unwind(panic);
            }
            Poll::Ready(Err(TreeError::panicked()))
        })
    })
    .await
}

struct WatchedSink<'a> {
    sink: &'a mut dyn Sink,
    is_in_sink: &'a AtomicBool,
}

impl Sink for WatchedSink<'_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        self.is_in_sink.store(true, Ordering::Relaxed);
        let flow = self.sink.row(key, version, value);
        self.is_in_sink.store(false, Ordering::Relaxed);
        flow
    }

    fn passes_over(&mut self, version: Version, value: &[u8]) -> bool {
        self.is_in_sink.store(true, Ordering::Relaxed);
        let passes = self.sink.passes_over(version, value);
        self.is_in_sink.store(false, Ordering::Relaxed);
        passes
    }
}
