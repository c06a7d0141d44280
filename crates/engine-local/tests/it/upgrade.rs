//! A power cut at every step of an upgrade: the store opens afterwards, and nothing is missing.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::env::FakeClock;
use engine::{Engine, TableId};
use engine_local::{Access, AnyFile, LocalEngine, StoreFiles};
use redb::{BackendError, StorageBackend};

use crate::support::*;

/// A disk in memory. It remembers what would survive a power cut, and fails after a number of changes.
#[derive(Clone, Debug)]
struct PowerDisk(Arc<Mutex<State>>);

#[derive(Default, Debug)]
struct State {
    now: Names,
    durable: Names,
    contents: Vec<Content>,
    /// How many changes and syncs happened.
    steps: usize,
    steps_max: usize,
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, Default, Debug)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// What a power cut keeps beside what was synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Nothing,
    Names,
    Contents,
    Everything,
}

impl PowerDisk {
    fn of(files: &BTreeMap<String, Vec<u8>>, steps_max: usize) -> PowerDisk {
        let mut state = State { steps_max, ..State::default() };
        for (name, bytes) in files {
            state.now.insert(name.clone(), state.contents.len());
            state.contents.push(Content { now: bytes.clone(), durable: bytes.clone() });
        }
        state.durable = state.now.clone();
        PowerDisk(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.steps += 1;
        if state.steps > state.steps_max {
            return Err(io::Error::other("the power is gone"));
        }
        Ok(state)
    }

    fn after_the_cut(&self, kept: Kept) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let names = match kept {
            Kept::Names | Kept::Everything => &state.now,
            Kept::Nothing | Kept::Contents => &state.durable,
        };
        let content = |number: &usize| match kept {
            Kept::Contents | Kept::Everything => state.contents[*number].now.clone(),
            Kept::Nothing | Kept::Names => state.contents[*number].durable.clone(),
        };
        names.iter().map(|(name, number)| (name.clone(), content(number))).collect()
    }
}

impl StoreFiles for PowerDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().now.keys().cloned().collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        let known = self.state().now.get(name).copied();
        let number = match (known, access) {
            (Some(number), Access::Read | Access::Write | Access::CreateOrKeep) => number,
            (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
            (_, Access::Create | Access::CreateLater | Access::CreateOrKeep) => {
                let mut state = self.step()?;
                let number = state.contents.len();
                state.contents.push(Content::default());
                state.now.insert(name.to_owned(), number);
                number
            }
        };
        Ok(AnyFile::new(PowerFile { disk: self.clone(), number }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.step()?;
        let number = state.now.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.now.insert(to.to_owned(), number);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step()?.now.remove(name).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.step()?;
        state.durable = state.now.clone();
        Ok(())
    }

    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let bytes = &state.contents[*state.now.get(name).ok_or(io::ErrorKind::NotFound)?].now;
        Ok(bytes[..bytes.len().min(bytes_max)].to_vec())
    }
}

#[derive(Debug)]
struct PowerFile {
    disk: PowerDisk,
    number: usize,
}

impl StorageBackend for PowerFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().contents[self.number].now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let bytes = state.contents[self.number].now.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.step()?.contents[self.number].now.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.step()?;
        let content = &mut state.contents[self.number];
        content.durable = content.now.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.step()?;
        let bytes = state.contents[self.number].now.get_mut(offset as usize..offset as usize + data.len());
        bytes.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock_range(&self, _: std::ops::Bound<u64>, _: std::ops::Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn unlock_range(&self, _: std::ops::Bound<u64>, _: std::ops::Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }
}

fn fixture(name: &str) -> BTreeMap<String, Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

/// Many cuts leave the same disk behind; one of them is enough.
fn hash_of(files: &BTreeMap<String, Vec<u8>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

/// Opens the store. The directory is a place for messages alone.
fn open_on(disk: &PowerDisk) -> Result<LocalEngine, engine_local::OpenError> {
    let mut options = options(&Arc::new(FakeClock::default()));
    options.folds_between_groups = true;
    LocalEngine::open_on(Path::new("."), options, Arc::new(disk.clone()))
}

/// The table with entities in the fixtures, and its rows.
async fn rows(engine: &dyn Engine) -> Rows {
    let tables = all(engine, TableId::CATALOGUE).await.unwrap();
    let every = tables.iter().find(|row| row.1 == "every").unwrap();
    all(engine, engine::TableRecord::read(&every.3).unwrap().id).await.unwrap()
}

#[tokio::test]
async fn an_upgrade_survives_a_power_cut_at_every_step() {
    for name in
        ["store-format-2-closed", "store-format-2-killed", "store-format-3-closed", "store-format-3-killed"]
    {
        let old = fixture(name);
        let whole = PowerDisk::of(&old, usize::MAX);
        let engine = open_on(&whole).unwrap();
        let expected = rows(&engine).await;
        assert_eq!(expected.len(), 6, "{name}");
        let step_count = whole.state().steps;
        drop(engine);
        assert!((20..2_000).contains(&step_count), "{name}: {step_count}");

        let mut tried = HashSet::new();
        for steps in 0..step_count {
            let disk = PowerDisk::of(&old, steps);
            drop(open_on(&disk));
            for kept in [Kept::Nothing, Kept::Names, Kept::Contents, Kept::Everything] {
                let files = disk.after_the_cut(kept);
                if !tried.insert(hash_of(&files)) {
                    continue;
                }
                let left = PowerDisk::of(&files, usize::MAX);
                let context = format!("{name}, cut after {steps} of {step_count} steps, {kept:?} kept");
                let engine = open_on(&left).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(rows(&engine).await, expected, "{context}");
                engine.create_table(N, "new", "".into()).await.unwrap();
                let id = engine.store_id();
                drop(engine);
                let engine = open_on(&left).unwrap_or_else(|error| panic!("{context}, again: {error}"));
                assert_eq!(engine.store_id(), id, "{context}");
            }
        }
    }
}
