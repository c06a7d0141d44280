//! The thread that makes the next file of the commit log before it is needed.
//!
//! A segment's file is filled with zeros and synced. The commit thread would keep its callers waiting for that, and the
//! folding thread is busy for seconds at a time, while the log may fill several segments.
//!
//! Promises: a file is made when the log wishes for one, unless folding is stuck just then. When that fails, the commit
//! thread makes the file itself and reports the failure.

use std::sync::Arc;

use crate::commit_log::Segments;
use crate::shared::SharedState;

/// Returns when [`Segments::end_wishes`] was called.
pub(crate) fn run(shared: &SharedState, segments: &Arc<Segments>) {
    while segments.wait_for_wish() {
        // When folding is stuck, the disk is probably full, and folding needs the space more.
        if shared.is_poisoned() || shared.is_folding_stuck() {
            continue;
        }
        if let Err(error) = segments.make_spare() {
            log::warn!("the file for the next segment of the commit log cannot be made: {error}");
        }
    }
}
