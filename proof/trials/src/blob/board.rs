//! Which bodies a blob can have: everybody who writes says so before and after, and readers ask.
//!
//! Promises: a reader is told that a body is possible only if some moment between the beginning and the end of its
//! read may have had it. A few old bodies of each blob are kept; a reader that took longer than those is told
//! nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use testkit::Stopwatch;

use super::body::Body;

/// The bodies that are kept of each blob.
const BODY_COUNT_MAX: usize = 12;

pub struct Board {
    clock: Stopwatch,
    blobs: Mutex<BTreeMap<String, PossibleBodies>>,
}

#[derive(Default)]
struct PossibleBodies {
    bodies: Vec<PossibleBody>,
    /// What was possible until this moment is no longer known.
    dropped_until: u64,
}

/// A body that a blob may have had for some time, in microseconds; `None` while there is no blob.
struct PossibleBody {
    body: Option<Body>,
    from: u64,
    until: u64,
}

impl Board {
    pub fn new() -> Board {
        Board { clock: Stopwatch::start(), blobs: Mutex::default() }
    }

    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_micros() as u64
    }

    fn blobs(&self) -> MutexGuard<'_, BTreeMap<String, PossibleBodies>> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn clear(&self) {
        self.blobs().clear();
    }

    /// From now on the blob at this path may have this body.
    pub fn begin(&self, path: &str, body: Option<Body>) {
        let from = self.now();
        let possible = PossibleBody { body, from, until: u64::MAX };
        let mut blobs = self.blobs();
        let blob = blobs.entry(path.to_owned()).or_default();
        if blob.bodies.is_empty() {
            // Until now there was nothing.
            blob.bodies.push(PossibleBody { body: None, from: 0, until: u64::MAX });
        }
        if blob.bodies.len() == BODY_COUNT_MAX {
            blob.dropped_until = blob.bodies.remove(0).until;
        }
        blob.bodies.push(possible);
    }

    /// The newest body is the only one from now on.
    pub fn settle(&self, path: &str) {
        let now = self.now();
        if let Some((_, older)) = self.blobs().get_mut(path).and_then(|blob| blob.bodies.split_last_mut()) {
            older.iter_mut().for_each(|possible| possible.until = possible.until.min(now));
        }
    }

    /// Some path, if there is one.
    pub fn any_path(&self, random: &mut Rng) -> Option<String> {
        let blobs = self.blobs();
        let at = random.usize(..blobs.len().max(1));
        blobs.keys().nth(at).cloned()
    }

    /// The bodies that the blob may have had between these moments; `None` if they are not known.
    pub fn possible(&self, path: &str, from: u64, until: u64) -> Option<Vec<Option<Body>>> {
        let blobs = self.blobs();
        let blob = blobs.get(path).filter(|blob| blob.dropped_until < from)?;
        let is_possible = |possible: &&PossibleBody| possible.from <= until && possible.until >= from;
        Some(blob.bodies.iter().filter(is_possible).map(|possible| possible.body.clone()).collect())
    }
}
