//! A disk in memory for the local engine. In a crash it loses unsynced changes; it fails at a chosen moment; and it
//! stops its writer at a gate, so that the seed decides which commits form a group.
//!
//! A sync costs nothing here, which makes millions of operations possible. Leaves to the trial `power`: real disks, and
//! that names of files must be made durable too.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use engine_local::{Access, AnyFile, StoreFiles};
use fastrand::Rng;
use redb::{BackendError, StorageBackend};

/// The unit that a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;
/// Far longer than any step takes. It ends a simulation that hangs.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskCall {
    Read,
    Write,
    Sync,
}

/// Makes an operation of this kind fail, after a number of others.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub kind: DiskCall,
    pub after: u32,
    /// From then on nothing is written or synced: the machine is down.
    pub is_last: bool,
}

#[derive(Clone, Debug)]
pub struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug)]
struct State {
    /// The content of each name.
    names: BTreeMap<String, usize>,
    contents: Vec<Content>,
    fault: Option<Fault>,
    has_failed: bool,
    is_gone: bool,
    gate_is_closed: bool,
    is_held: bool,
    /// The thread that waits until the gate is reached.
    owner: Thread,
}

#[derive(Default, Debug)]
struct Content {
    bytes: Vec<u8>,
    /// Changes, in order, that a crash may undo.
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, old: Vec<u8>, new: Vec<u8> },
    Length { old: usize, cut: Vec<u8>, new: usize },
}

impl Disk {
    pub fn new() -> Disk {
        let state = State {
            names: BTreeMap::new(),
            contents: Vec::new(),
            fault: None,
            has_failed: false,
            is_gone: false,
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

    /// Whether a fault has occurred since the last crash.
    pub fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// From now on nothing reaches the disk.
    pub fn cut_off(&self) {
        let mut state = self.state();
        state.is_gone = true;
        state.fault = None;
    }

    /// Keeps, loses or tears each unsynced change at random. Then the disk works again.
    pub fn crash(&self, random: &mut Rng) {
        let mut state = self.state();
        let kept_of_four = [0, 1, 2, 3, 4, 4][random.usize(..6)];
        // Depends on the place, not on the order: redb writes its pages in no fixed order.
        let luck = random.u64(..);
        for (number, content) in state.contents.iter_mut().enumerate() {
            let luck = luck.wrapping_add((number as u64) << 40);
            content.crash(|place| Rng::with_seed(luck.wrapping_add(place as u64)).u8(..4) < kept_of_four);
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

    /// Whether a writer waits at the gate.
    pub fn is_held(&self) -> bool {
        self.state().is_held
    }

    fn pass(&self, kind: DiskCall) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if kind != DiskCall::Read && state.gate_is_closed {
            state.is_held = true;
            state.owner.unpark();
            let waited = self.0.1.wait_timeout_while(state, WAIT_MAX, |state| state.gate_is_closed);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
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
        if fires || (state.is_gone && kind != DiskCall::Read) {
            return Err(io::Error::other("the disk failed, as the seed says"));
        }
        Ok(state)
    }
}

impl Content {
    fn crash(&mut self, is_kept: impl Fn(usize) -> bool) {
        let unsynced = std::mem::take(&mut self.unsynced);
        for change in unsynced.iter().rev() {
            match change {
                Change::Write { offset, old, .. } => {
                    self.bytes[*offset..offset + old.len()].copy_from_slice(old)
                }
                Change::Length { old, cut, new } => {
                    self.bytes.truncate(*old.min(new));
                    self.bytes.extend_from_slice(cut);
                    self.bytes.resize(*old, 0);
                }
            }
        }
        for change in &unsynced {
            match change {
                Change::Write { offset, new, .. } => {
                    for (number, sector) in new.chunks(SECTOR_BYTES).enumerate() {
                        let start = offset + number * SECTOR_BYTES;
                        if is_kept(start) && start + sector.len() <= self.bytes.len() {
                            self.bytes[start..start + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
                Change::Length { new, .. } => {
                    if is_kept(*new) {
                        self.bytes.resize(*new, 0);
                    }
                }
            }
        }
    }
}

impl StoreFiles for Disk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        let mut state = self.pass(if matches!(access, Access::Create | Access::CreateLater) {
            DiskCall::Write
        } else {
            DiskCall::Read
        })?;
        let content = match (state.names.get(name), access) {
            (Some(content), Access::Read | Access::Write | Access::CreateOrKeep) => *content,
            (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
            (_, Access::Create | Access::CreateLater | Access::CreateOrKeep) => {
                state.contents.push(Content::default());
                let content = state.contents.len() - 1;
                state.names.insert(name.to_owned(), content);
                content
            }
        };
        Ok(AnyFile::new(DiskFile { disk: self.clone(), content }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.pass(DiskCall::Write)?;
        let content = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = state.names.insert(to.to_owned(), content) {
            state.contents[replaced] = Content::default();
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.pass(DiskCall::Write)?;
        let content = state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.contents[content] = Content::default();
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.pass(DiskCall::Sync).map(|_| ())
    }

    /// Only the marker and the heads of segments are read like this; it needs no faults.
    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let bytes = &state.contents[*state.names.get(name).ok_or(io::ErrorKind::NotFound)?].bytes;
        Ok(bytes[..bytes.len().min(bytes_max)].to_vec())
    }
}

#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    content: usize,
}

impl StorageBackend for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().contents[self.content].bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.pass(DiskCall::Read)?;
        let start = offset as usize;
        let bytes = &state.contents[self.content].bytes;
        out.copy_from_slice(bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.pass(DiskCall::Write)?;
        let content = &mut state.contents[self.content];
        let (old, new) = (content.bytes.len(), len as usize);
        let cut = content.bytes.get(new..).map(<[u8]>::to_vec).unwrap_or_default();
        content.bytes.resize(new, 0);
        content.unsynced.push(Change::Length { old, cut, new });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.pass(DiskCall::Sync)?;
        state.contents[self.content].unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.pass(DiskCall::Write)?;
        let content = &mut state.contents[self.content];
        let (start, end) = (offset as usize, offset as usize + data.len());
        let place = content.bytes.get_mut(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        let old = place.to_vec();
        place.copy_from_slice(data);
        content.unsynced.push(Change::Write { offset: start, old, new: data.to_vec() });
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
