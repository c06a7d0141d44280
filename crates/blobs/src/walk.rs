//! Walks the names of a container in order, and seeks over what is not wanted.
//!
//! A walker looks at rows one by one. It may ask to go on somewhere else: behind the snapshots of a blob, behind the blob, or
//! behind all names that begin alike. A few rows are passed faster than sought over, so seeks begin after some.

use catalogue::from_read;
use engine::{Budget, Flow, Key, KeyRange, OwnedKey, Share, Sink, TableId, Version};
use protocol::ServiceError;
use std::ops::Bound;
use std::time::Duration;

use crate::record::BASE_ROW;
use crate::service::{BlobCore, scan_budget};

/// How long a walk may take, all its seeks together: a third of what a request may take. Then it ends where it is.
pub(crate) const WALK_TIME_MAX: Duration = Duration::from_secs(10);
/// So many rows of one blob are passed one by one.
const PASSED_ROW_COUNT_MAX: usize = 8;

pub(crate) enum WalkStep {
    /// Taken, or not wanted.
    Next,
    /// The rest of the snapshots and versions of this blob is not wanted.
    PassMoments,
    /// The rest of this blob's rows is not wanted.
    PassBlob,
    /// No name that begins with this is wanted.
    PassPrefix(String),
    /// The walk ends before this row.
    Stop,
}

pub(crate) trait BlobWalker: Send {
    fn see(&mut self, name: &str, row: &str, value: &[u8]) -> WalkStep;
}

enum WalkSeek {
    Base(Box<str>),
    AfterBlob(Box<str>),
    AfterPrefix(String),
}

struct WalkSink<'w> {
    walker: &'w mut dyn BlobWalker,
    seek: Option<WalkSeek>,
    passed: usize,
    /// The blob that is being passed, and whether all of its rows are.
    passing: Option<(Box<str>, bool)>,
    is_stopped: bool,
}

impl Sink for WalkSink<'_> {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        if let Some((name, passes_all)) = &self.passing {
            if **name == *key.partition && (*passes_all || key.row < BASE_ROW) {
                self.passed += 1;
                if self.passed < PASSED_ROW_COUNT_MAX {
                    return Flow::Continue;
                }
                let name = name.clone();
                self.seek = Some(if *passes_all { WalkSeek::AfterBlob(name) } else { WalkSeek::Base(name) });
                return Flow::Stop;
            }
            self.passing = None;
        }
        self.passed = 0;
        match self.walker.see(key.partition, key.row, value) {
            WalkStep::Next => Flow::Continue,
            WalkStep::PassMoments => {
                self.passing = Some((key.partition.into(), false));
                Flow::Continue
            }
            WalkStep::PassBlob => {
                self.passing = Some((key.partition.into(), true));
                Flow::Continue
            }
            WalkStep::PassPrefix(prefix) => {
                self.seek = Some(WalkSeek::AfterPrefix(prefix));
                // The scan stops before the next row: this one is done.
                Flow::Continue
            }
            WalkStep::Stop => {
                self.is_stopped = true;
                Flow::Stop
            }
        }
    }
}

/// Stops a scan at the first row behind the one that asked to seek.
struct SeekSink<'s, 'w>(&'s mut WalkSink<'w>);

impl Sink for SeekSink<'_, '_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.0.seek.is_some() { Flow::Stop } else { self.0.row(key, version, value) }
    }
}

impl BlobCore {
    /// Walks through names that begin with the prefix, from a key on and up to a name. Returns the key that was not
    /// taken, if the walker or the time ended the walk.
    pub(crate) async fn walk(
        &self,
        table: TableId,
        (start, end_before): (Option<&OwnedKey>, Option<&str>),
        prefix: &str,
        share: Share,
        walker: &mut dyn BlobWalker,
    ) -> Result<Option<OwnedKey>, ServiceError> {
        let end = prefix_end(prefix);
        let low = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
        let high = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let bound = KeyRange::partitions(low, high);
        let before = end_before
            .map_or_else(KeyRange::all, |name| KeyRange::partitions(Bound::Unbounded, Bound::Excluded(name)));
        let Some(bound) = bound.intersect(&before) else { return Ok(None) };
        let first = start.map_or_else(KeyRange::all, |key| KeyRange::from_key(&key.partition, &key.row));
        let mut range = bound.intersect(&first);
        let mut sink = WalkSink { walker, seek: None, passed: 0, passing: None, is_stopped: false };
        let began = self.clock.monotonic();
        while let Some(found) = range {
            // When the time is over, a scan examines one more row and says where it stopped.
            let passed = self.clock.monotonic().saturating_sub(began);
            let budget = Budget { time_max: WALK_TIME_MAX.saturating_sub(passed), ..scan_budget(share) };
            let mut seeking = SeekSink(&mut sink);
            let scanned = self.engine.scan(table, &[found], budget, &mut seeking).await;
            let next = scanned.map_err(from_read)?;
            let Some(next) = next else { return Ok(None) };
            let rest = match sink.seek.take() {
                Some(WalkSeek::Base(name)) => KeyRange::from_key(&name, BASE_ROW),
                Some(WalkSeek::AfterBlob(name)) => {
                    KeyRange::partitions(Bound::Excluded(&name), Bound::Unbounded)
                }
                Some(WalkSeek::AfterPrefix(prefix)) => match prefix_end(&prefix) {
                    Some(end) => KeyRange::partitions(Bound::Included(&end), Bound::Unbounded),
                    None => return Ok(None),
                },
                None => return Ok(Some(next)),
            };
            (sink.passed, sink.passing) = (0, None);
            range = bound.intersect(&rest);
        }
        Ok(None)
    }
}

/// The first text behind all texts that begin with this one, in the engine's order, which is that of UTF-16 units. `None`: there
/// is no text behind them.
pub(crate) fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{10000}'),
            '\u{10FFFF}' => Some('\u{E000}'),
            '\u{FFFF}' => None,
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_behind_everything_that_begins_with_it() {
        for prefix in ["a", "a/", "\u{D7FF}", "x\u{10FFFF}", "x\u{FFFF}", "é", "a\u{FFFE}"] {
            let end = prefix_end(prefix).unwrap();
            for rest in ["", "\0", "z", "\u{10FFFF}", "\u{FFFF}\u{FFFF}"] {
                let name = [prefix, rest].concat();
                assert!(name.encode_utf16().lt(end.encode_utf16()), "{name:?} {end:?}");
            }
            assert!(!end.starts_with(prefix), "{prefix:?}");
        }
        assert_eq!(prefix_end(""), None);
        assert_eq!(prefix_end("\u{FFFF}\u{FFFF}"), None);
        assert_eq!(prefix_end("a/").as_deref(), Some("a0"));
    }
}
