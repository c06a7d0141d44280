//! A disk in memory for the local engine: it forgets at a crash what was not synced, fails at a chosen moment, and
//! holds its writer at a gate so that the groups of commits are those that the seed says.
//!
//! A sync costs nothing here, which is what makes millions of operations possible; what real disks do is the business
//! of the power trial.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use fastrand::Rng;
use redb::{BackendError, StorageBackend};

/// What a disk writes as a whole, or not at all.
const SECTOR_BYTES: usize = 512;
/// Far more than any of this takes: a simulation that hangs must end.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Read,
    Write,
    Sync,
}

/// The operation of this kind, after so many others of it, fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub kind: Kind,
    pub after: u32,
    /// From then on nothing is written or synced any more: the machine is gone.
    pub is_last: bool,
}

#[derive(Clone, Debug)]
pub struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    /// In order, what a crash may undo.
    unsynced: Vec<Change>,
    fault: Option<Fault>,
    has_failed: bool,
    is_gone: bool,
    sync_count: u64,
    operation_count: u64,
    gate_is_closed: bool,
    is_held: bool,
    /// Whoever waits for the gate to be reached.
    owner: Thread,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, old: Vec<u8>, new: Vec<u8> },
    Length { old: usize, cut: Vec<u8>, new: usize },
}

impl Disk {
    pub fn new() -> Disk {
        let state = State {
            bytes: Vec::new(),
            unsynced: Vec::new(),
            fault: None,
            has_failed: false,
            is_gone: false,
            sync_count: 0,
            operation_count: 0,
            gate_is_closed: false,
            is_held: false,
            owner: std::thread::current(),
        };
        Disk(Arc::new((Mutex::new(state), Condvar::new())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn plan(&self, fault: Fault) {
        self.state().fault = Some(fault);
    }

    /// Whether a fault has come to pass since the last crash.
    pub fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Nothing reaches the disk from now on.
    pub fn cut_off(&self) {
        let mut state = self.state();
        state.is_gone = true;
        state.fault = None;
    }

    /// What was not synced is kept, lost or torn as chance has it; then the disk works again.
    pub fn crash(&self, random: &mut Rng) {
        let mut state = self.state();
        let unsynced = std::mem::take(&mut state.unsynced);
        for change in unsynced.iter().rev() {
            match change {
                Change::Write { offset, old, .. } => {
                    state.bytes[*offset..offset + old.len()].copy_from_slice(old)
                }
                Change::Length { old, cut, new } => {
                    state.bytes.truncate(*old.min(new));
                    state.bytes.extend_from_slice(cut);
                    state.bytes.resize(*old, 0);
                }
            }
        }
        let kept_of_four = [0, 1, 2, 3, 4, 4][random.usize(..6)];
        // By place, not by turn: redb writes its pages in whatever order it likes.
        let luck = random.u64(..);
        let is_kept = |place: usize| Rng::with_seed(luck.wrapping_add(place as u64)).u8(..4) < kept_of_four;
        for change in &unsynced {
            match change {
                Change::Write { offset, new, .. } => {
                    for (number, sector) in new.chunks(SECTOR_BYTES).enumerate() {
                        let start = offset + number * SECTOR_BYTES;
                        if is_kept(start) && start + sector.len() <= state.bytes.len() {
                            state.bytes[start..start + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
                Change::Length { new, .. } => {
                    if is_kept(*new) {
                        state.bytes.resize(*new, 0);
                    }
                }
            }
        }
        state.fault = None;
        state.has_failed = false;
        state.is_gone = false;
    }

    pub fn close_gate(&self) {
        self.state().gate_is_closed = true;
    }

    pub fn open_gate(&self) {
        let mut state = self.state();
        state.gate_is_closed = false;
        state.is_held = false;
        self.0.1.notify_all();
    }

    /// Whether somebody stands at the gate.
    pub fn is_held(&self) -> bool {
        self.state().is_held
    }

    pub fn sync_count(&self) -> u64 {
        self.state().sync_count
    }

    /// Returns when there were so many syncs since the opening, or the disk has failed.
    pub fn wait_for_syncs(&self, count: u64) {
        let enough = |state: &mut State| state.sync_count < count && !state.has_failed;
        let waited = self.0.1.wait_timeout_while(self.state(), WAIT_MAX, enough);
        drop(waited);
    }

    /// Returns when nothing has happened for a while.
    pub fn settle(&self) {
        let mut seen = self.state().operation_count;
        loop {
            std::thread::sleep(Duration::from_millis(5));
            let now = self.state().operation_count;
            if now == seen {
                return;
            }
            seen = now;
        }
    }

    fn pass(&self, kind: Kind) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if kind != Kind::Read && state.gate_is_closed {
            state.is_held = true;
            state.owner.unpark();
            let waited = self.0.1.wait_timeout_while(state, WAIT_MAX, |state| state.gate_is_closed);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        state.operation_count += 1;
        let fires = match &mut state.fault {
            Some(fault) if fault.kind == kind && fault.after == 0 => true,
            Some(fault) if fault.kind == kind => {
                fault.after -= 1;
                false
            }
            _ => false,
        };
        if fires {
            let is_last = state.fault.take().is_some_and(|fault| fault.is_last);
            state.is_gone |= is_last;
            state.has_failed = true;
            self.0.1.notify_all();
        }
        if fires || (state.is_gone && kind != Kind::Read) {
            return Err(io::Error::other("the disk failed, as the seed says"));
        }
        Ok(state)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.pass(Kind::Read)?;
        let start = offset as usize;
        let bytes = state.bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.pass(Kind::Write)?;
        let (old, new) = (state.bytes.len(), len as usize);
        let cut = state.bytes.get(new..).map(<[u8]>::to_vec).unwrap_or_default();
        state.bytes.resize(new, 0);
        state.unsynced.push(Change::Length { old, cut, new });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.pass(Kind::Sync)?;
        state.unsynced.clear();
        state.sync_count += 1;
        self.0.1.notify_all();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.pass(Kind::Write)?;
        let (start, end) = (offset as usize, offset as usize + data.len());
        let place = state.bytes.get_mut(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        let old = place.to_vec();
        place.copy_from_slice(data);
        state.unsynced.push(Change::Write { offset: start, old, new: data.to_vec() });
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn unlock_range(&self, _start: Bound<u64>, _end: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }
}
