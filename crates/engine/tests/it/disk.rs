//! A disk that fails, panics or stalls when told to, between redb and the real file.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

/// A redb commit with quick repair: the data, then the switch to it.
const SYNCS_PER_COMMIT: u32 = 2;

/// Says how the disk behaves from now on.
#[derive(Clone, Default, Debug)]
pub struct Disk(Arc<(Mutex<State>, Condvar)>);

#[derive(Default, Debug)]
struct State {
    syncs: Behaviour,
    writes: Behaviour,
    /// Syncs under way that stall.
    stalled: usize,
    /// Syncs that still work before the next ones fail.
    syncs_left: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Behaviour {
    #[default]
    Work,
    Fail,
    Panic,
    /// Waits until it behaves otherwise.
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
        self.state().writes = behaviour;
        self.0.1.notify_all();
    }

    /// The commit that stalls is let through; the next one fails.
    pub fn fail_after_next_commit(&self) {
        let mut state = self.state();
        state.syncs = Behaviour::Work;
        state.syncs_left = Some(SYNCS_PER_COMMIT);
        self.0.1.notify_all();
    }

    pub fn is_stalled(&self) -> bool {
        self.state().stalled > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    fn count_sync(&self) -> io::Result<()> {
        match &mut self.state().syncs_left {
            None => Ok(()),
            Some(0) => Err(io::Error::other("the disk failed, as it was told to")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn behave(&self, which: impl Fn(&State) -> Behaviour) -> io::Result<()> {
        let mut state = self.state();
        while which(&state) == Behaviour::Stall {
            state.stalled += 1;
            state = self.0.1.wait(state).unwrap();
            state.stalled -= 1;
        }
        let behaviour = which(&state);
        // Not while holding the lock, which a panic would poison.
        drop(state);
        match behaviour {
            Behaviour::Fail => Err(io::Error::other("the disk failed, as it was told to")),
            Behaviour::Panic => panic!("the disk panicked, as it was told to"),
            Behaviour::Work | Behaviour::Stall => Ok(()),
        }
    }
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
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.behave(|state| state.writes)?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.behave(|state| state.syncs)?;
        self.disk.count_sync()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.behave(|state| state.writes)?;
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
