//! Files for the next segments of the log, ready before they are needed.
//!
//! A new file has to be filled with zeros, and the blocks of a removed one have to be freed. Both occupy the disk while
//! commits wait for it. So segments that are not needed any more are kept here, as many as the log uses up between two folds.
//!
//! Promises: every file has a name of its own from before it is made until after it is a segment, and no lock is held while a
//! file is touched. Leaves to others: making, renaming and removing the files.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::segment::SPARES;
use crate::directory_files::AnyFile;

/// Making a file takes a few tenths of a second at most, unless the disk has stopped.
const MAKING_TIME_MAX: Duration = Duration::from_secs(10);

/// The files in waiting, one for each name.
#[derive(Default, Debug)]
pub(super) struct Spares {
    states: Mutex<[SpareState; SPARES.len()]>,
    /// Signals that a file is ready, or will not be.
    made: Condvar,
}

#[derive(Default, Debug)]
enum SpareState {
    #[default]
    Free,
    /// A thread is making the file, or giving it this name.
    Making,
    /// The file was taken and still has this name.
    Taken,
    /// A file for a segment, fully allocated.
    Ready(SpareFile),
}

#[derive(Debug)]
pub(super) struct SpareFile {
    pub(super) file: AnyFile,
    pub(super) length: u64,
}

impl Spares {
    /// Takes a file of at least this length. Its name is free again when the claim is dropped.
    pub(super) fn take(&self, length_min: u64) -> Option<(Claim<'_>, SpareFile)> {
        for (index, state) in self.states().iter_mut().enumerate() {
            match std::mem::replace(state, SpareState::Taken) {
                SpareState::Ready(spare) if spare.length >= length_min => {
                    return Some((Claim { spares: self, index, is_kept: false }, spare));
                }
                other => *state = other,
            }
        }
        None
    }

    /// Reserves a name for a file; `None` if there are enough files.
    pub(super) fn claim(&self) -> Option<Claim<'_>> {
        let mut states = self.states();
        let index = states.iter().position(|state| matches!(state, SpareState::Free))?;
        states[index] = SpareState::Making;
        Some(Claim { spares: self, index, is_kept: false })
    }

    pub(super) fn has_any(&self) -> bool {
        self.states().iter().any(|state| matches!(state, SpareState::Ready(_)))
    }

    /// Waits until no other thread is making a file.
    pub(super) fn wait_until_made(&self) {
        let is_making = |states: &mut [SpareState; SPARES.len()]| {
            states.iter().any(|state| matches!(state, SpareState::Making))
        };
        drop(self.made.wait_timeout_while(self.states(), MAKING_TIME_MAX, is_making));
    }

    /// Never held while a file is made, renamed or removed.
    fn states(&self) -> MutexGuard<'_, [SpareState; SPARES.len()]> {
        self.states.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A name that nobody else uses. Dropping it frees the name.
pub(super) struct Claim<'a> {
    spares: &'a Spares,
    index: usize,
    is_kept: bool,
}

impl Claim<'_> {
    pub(super) fn name(&self) -> &'static str {
        SPARES[self.index]
    }

    /// Puts the file of this name in waiting.
    pub(super) fn keep(mut self, spare: SpareFile) {
        // From here on the name belongs to the file.
        self.is_kept = true;
        self.spares.states()[self.index] = SpareState::Ready(spare);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.spares.states()[self.index] = SpareState::Free;
        }
        self.spares.made.notify_all();
    }
}
