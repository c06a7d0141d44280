//! A disk that fails, panics or stalls when told to, between the engine and its real files.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use engine_local::{LocalEngine, LocalOptions};
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// A test that fails while the disk stalls must end, not hang.
const STALL_MAX: Duration = Duration::from_secs(30);

/// Says how the disk behaves from now on.
#[derive(Clone, Default, Debug)]
pub struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Default, Debug)]
struct State {
    syncs: Behaviour,
    writes: Behaviour,
    /// How many syncs stall at the moment.
    stalled: usize,
    /// How many syncs still succeed before this behaviour begins.
    syncs_left: Option<(u32, Behaviour)>,
    /// How many writes still find space.
    writes_left: Option<u32>,
    /// No file may become longer.
    has_no_growth: bool,
    /// Writes that are not of the log, as far as their length tells.
    tree_writes: Behaviour,
    reads: Behaviour,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Behaviour {
    #[default]
    Work,
    Fail,
    /// Fails because there is no space.
    Full,
    Panic,
    /// Waits until the behaviour changes.
    Stall,
}

impl Disk {
    pub fn wrap(&self, file: FileBackend) -> TestBackend {
        TestBackend { file, disk: self.clone() }
    }

    pub fn syncs(&self, behaviour: Behaviour) {
        let mut state = self.state();
        state.syncs = behaviour;
        state.syncs_left = None;
        self.0.1.notify_all();
    }

    pub fn writes(&self, behaviour: Behaviour) {
        let mut state = self.state();
        state.writes = behaviour;
        state.writes_left = None;
        drop(state);
        self.0.1.notify_all();
    }

    /// How whole blocks are written, which only the tree does.
    pub fn tree_writes(&self, behaviour: Behaviour) {
        self.state().tree_writes = behaviour;
        self.0.1.notify_all();
    }

    pub fn reads(&self, behaviour: Behaviour) {
        self.state().reads = behaviour;
    }

    /// Like a full disk: no file may become longer, but what is there can be overwritten.
    pub fn forbid_growth(&self, is_forbidden: bool) {
        self.state().has_no_growth = is_forbidden;
    }

    /// This many writes find space, and none after them.
    pub fn writes_full_after(&self, count: u32) {
        let mut state = self.state();
        state.writes_left = Some(count);
        self.0.1.notify_all();
    }

    /// Lets this many syncs through, stalled ones included; later ones fail.
    pub fn fail_after_syncs(&self, count: u32) {
        let mut state = self.state();
        state.syncs = Behaviour::Work;
        state.syncs_left = Some((count, Behaviour::Fail));
        self.0.1.notify_all();
    }

    fn count_write(&self) {
        let mut state = self.state();
        match state.writes_left {
            Some(0) => state.writes = Behaviour::Full,
            Some(left) => state.writes_left = Some(left - 1),
            None => {}
        }
    }

    pub fn is_stalled(&self) -> bool {
        self.state().stalled > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    /// Counts a sync that was let through; after the last one the other behaviour begins.
    fn count_sync(&self) {
        let mut state = self.state();
        match state.syncs_left {
            None => {}
            Some((1, then)) => (state.syncs, state.syncs_left) = (then, None),
            Some((left, then)) => state.syncs_left = Some((left - 1, then)),
        }
    }

    fn behave(&self, which: impl Fn(&State) -> Behaviour) -> io::Result<()> {
        let mut state = self.state();
        while which(&state) == Behaviour::Stall {
            state.stalled += 1;
            let (woken, waited) = self.0.1.wait_timeout(state, STALL_MAX).unwrap();
            state = woken;
            state.stalled -= 1;
            if waited.timed_out() {
                return Err(io::Error::other("nobody let the disk go on"));
            }
        }
        let behaviour = which(&state);
        // Panic after releasing the lock, which a panic would poison.
        drop(state);
        match behaviour {
            Behaviour::Fail => Err(io::Error::other("the disk failed, as it was told to")),
            Behaviour::Full => Err(io::ErrorKind::StorageFull.into()),
            Behaviour::Panic => panic!("the disk panicked, as it was told to"),
            Behaviour::Work | Behaviour::Stall => Ok(()),
        }
    }
}

pub fn open_failing(directory: &std::path::Path, options: LocalOptions, disk: &Disk) -> LocalEngine {
    let disk = disk.clone();
    LocalEngine::open_wrapped(directory, options, move |file| disk.wrap(file)).unwrap()
}

#[derive(Debug)]
pub struct TestBackend {
    file: FileBackend,
    disk: Disk,
}

impl StorageBackend for TestBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.behave(|state| state.reads)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.behave(|state| state.writes)?;
        if self.disk.state().has_no_growth && len > self.file.len()? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.behave(|state| state.syncs)?;
        self.disk.count_sync();
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.count_write();
        self.disk.behave(|state| state.writes)?;
        if data.len() == 4096 && offset.is_multiple_of(4096) {
            self.disk.behave(|state| state.tree_writes)?;
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}
