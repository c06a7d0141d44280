//! A disk in memory that loses unsynced changes in a crash, fails when told to, and counts what is read.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use contents::local::{ExtentFile, ExtentFiles, FileAccess};
use fastrand::Rng;

/// The unit that a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Default, Debug)]
struct State {
    /// The files by name, and as of the last sync of the directory.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    files: Vec<Content>,
    /// After this many changes the machine is down.
    changes_left: Option<u64>,
    changes: u64,
    fails_syncs: bool,
    fails_writes: bool,
    holds_writes: bool,
    cannot_punch: bool,
    cannot_allocate: bool,
    capacity: Option<u64>,
    read_bytes: u64,
    sync_count: u64,
    open: usize,
    open_most: usize,
}

#[derive(Default, Debug)]
struct Content {
    bytes: Vec<u8>,
    /// Units that take space.
    taken: std::collections::BTreeSet<u64>,
    /// As of the last sync, and the changes since.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Disk {
    pub fn new() -> Arc<Disk> {
        Arc::new(Disk(Arc::default()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn fail_after(&self, changes: u64) {
        self.state().changes_left = Some(changes);
    }

    pub fn fail_syncs(&self, fails: bool) {
        self.state().fails_syncs = fails;
    }

    pub fn fail_writes(&self, fails: bool) {
        self.state().fails_writes = fails;
    }

    /// Writes of more than a unit hang.
    pub fn hold_writes(&self, holds: bool) {
        self.state().holds_writes = holds;
    }

    pub fn cannot_punch(&self) {
        self.state().cannot_punch = true;
    }

    pub fn can_punch(&self) {
        self.state().cannot_punch = false;
    }

    pub fn used(&self) -> u64 {
        self.state().used()
    }

    pub fn cannot_allocate(&self) {
        self.state().cannot_allocate = true;
    }

    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = Some(bytes);
    }

    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    pub fn sync_count(&self) -> u64 {
        self.state().sync_count
    }

    pub fn open_most(&self) -> usize {
        self.state().open_most
    }

    /// Bytes read since the last call.
    pub fn take_read_bytes(&self) -> u64 {
        std::mem::take(&mut self.state().read_bytes)
    }

    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Changes a byte; returns whether there is one.
    pub fn damage(&self, name: &str, offset: usize, mask: u8) -> bool {
        let mut state = self.state();
        let file = state.names[name];
        let byte = state.files[file].bytes.get_mut(offset);
        byte.map(|byte| *byte ^= mask).is_some()
    }

    pub fn size(&self, name: &str) -> usize {
        let state = self.state();
        state.files[state.names[name]].bytes.len()
    }

    /// What a power cut leaves: of every unsynced change, each sector is kept or lost. What the dead process still does
    /// has no effect.
    pub fn crash(&self, random: &mut Rng) -> Arc<Disk> {
        let state = self.state();
        let kept_of_four = random.u8(0..=4);
        // The names of the directory are old or new.
        let names = if random.bool() { &state.names } else { &state.durable_names };
        let mut after = State { cannot_punch: state.cannot_punch, ..State::default() };
        for (name, file) in names {
            let content = &state.files[*file];
            let mut bytes = content.durable.clone();
            for change in &content.unsynced {
                match change {
                    Change::Length(length) if random.u8(..4) < kept_of_four => bytes.resize(*length, 0),
                    Change::Length(_) => {}
                    Change::Write { offset, bytes: new } => {
                        for (number, sector) in new.chunks(SECTOR_BYTES).enumerate() {
                            let start = offset + number * SECTOR_BYTES;
                            if random.u8(..4) < kept_of_four && start + sector.len() <= bytes.len() {
                                bytes[start..start + sector.len()].copy_from_slice(sector);
                            }
                        }
                    }
                }
            }
            let content = Content { durable: bytes.clone(), bytes, ..Content::default() };
            after.names.insert(name.clone(), after.files.len());
            after.files.push(content);
        }
        after.durable_names = after.names.clone();
        Arc::new(Disk(Arc::new(Mutex::new(after))))
    }
}

impl State {
    fn used(&self) -> u64 {
        let named: std::collections::BTreeSet<&usize> = self.names.values().collect();
        named.into_iter().map(|file| self.files[*file].taken.len() as u64 * 4096).sum()
    }

    fn change(&mut self) -> io::Result<()> {
        self.changes += 1;
        match &mut self.changes_left {
            Some(0) => return Err(io::Error::other("the machine is down")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    /// Takes space for a range.
    fn take(&mut self, file: usize, offset: u64, bytes: u64) -> io::Result<()> {
        let units = offset / 4096..(offset + bytes).div_ceil(4096);
        let new = units.clone().filter(|unit| !self.files[file].taken.contains(unit)).count() as u64;
        if self.capacity.is_some_and(|capacity| self.used() + new * 4096 > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files[file].taken.extend(units);
        Ok(())
    }
}

impl ExtentFiles for Disk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Disk::names(self))
    }

    fn open(&self, name: &str, access: FileAccess) -> io::Result<Arc<dyn ExtentFile>> {
        let mut state = self.state();
        let file = match access {
            FileAccess::Write => *state.names.get(name).ok_or(io::ErrorKind::NotFound)?,
            FileAccess::Create => {
                state.change()?;
                if state.names.contains_key(name) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let file = state.files.len();
                state.files.push(Content::default());
                state.names.insert(name.to_owned(), file);
                file
            }
        };
        state.open += 1;
        state.open_most = state.open_most.max(state.open);
        Ok(Arc::new(DiskFile { disk: self.clone(), file }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.names.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.change()?;
        state.durable_names = state.names.clone();
        Ok(())
    }
}

#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    file: usize,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.disk.state().open -= 1;
    }
}

impl ExtentFile for DiskFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.read_bytes += out.len() as u64;
        let bytes = &state.files[self.file].bytes;
        let found =
            bytes.get(offset as usize..offset as usize + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        while bytes.len() > 4096 && self.disk.state().holds_writes {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut state = self.disk.state();
        state.change()?;
        if state.fails_writes {
            return Err(io::Error::other("the disk does not write"));
        }
        state.take(self.file, offset, bytes.len() as u64)?;
        let content = &mut state.files[self.file];
        let (offset, end) = (offset as usize, offset as usize + bytes.len());
        if content.bytes.len() < end {
            content.bytes.resize(end, 0);
            content.unsynced.push(Change::Length(end));
        }
        content.bytes[offset..end].copy_from_slice(bytes);
        content.unsynced.push(Change::Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        let content = &mut state.files[self.file];
        content.bytes.resize(size_bytes as usize, 0);
        content.taken.retain(|unit| unit * 4096 < size_bytes);
        content.unsynced.push(Change::Length(size_bytes as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.change()?;
        state.sync_count += 1;
        if state.fails_syncs {
            return Err(io::Error::other("the disk does not sync"));
        }
        let content = &mut state.files[self.file];
        content.unsynced.clear();
        content.durable = content.bytes.clone();
        Ok(())
    }

    fn allocate(&self, offset: u64, size_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        if !state.cannot_allocate {
            state.take(self.file, offset, size_bytes)?;
        }
        drop(state);
        let size_bytes = self.size_bytes()?.max(offset + size_bytes);
        self.set_len(size_bytes)
    }

    fn punch(&self, offset: u64, size_bytes: u64) -> io::Result<bool> {
        let mut state = self.disk.state();
        if state.cannot_punch {
            return Ok(false);
        }
        state.change()?;
        let content = &mut state.files[self.file];
        let end = (offset + size_bytes).min(content.bytes.len() as u64) as usize;
        let offset = (offset as usize).min(end);
        content.bytes[offset..end].fill(0);
        content.unsynced.push(Change::Write { offset, bytes: vec![0; end - offset] });
        let units = (offset as u64).div_ceil(4096)..end as u64 / 4096;
        content.taken.retain(|unit| !units.contains(unit));
        Ok(true)
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].taken.len() as u64 * 4096)
    }
}
