//! An episode's store, and the layers with which it is opened: stage, faults, witness, engine.

use std::sync::Arc;

use engine::Engine;
use engine::env::{Clock, FakeClock};
use engine::faults::{FaultEngine, Faults};
use engine::memory::MemoryEngine;
use engine::wrapper::Wrapped;
use engine_local::{LocalEngine, LocalOptions};
use tables::TableService;

use super::disk::Disk;
use super::stage::{Log, Stage, Witness};

/// Small, so that the engine must read from its disk, and folds in several transactions.
const CACHE_BYTES_MAX: usize = 256 * 1024;
/// Small, so that the tree's file is synced in the middle of a transaction.
const UNSYNCED_BYTES_MAX: u64 = 32 * 1024;
/// Small, so that the engine folds now and then.
const RECENT_BYTES_MAX: usize = 64 * 1024;

/// Makes an engine that lasts as long as the process.
pub type Make = fn(Arc<dyn Clock>) -> Arc<dyn Engine>;

pub enum Store {
    /// Made by this function.
    Memory(Make),
    /// All files are on the in-memory disk; the directory stays empty.
    Local { directory: tempfile::TempDir, disk: Disk },
}

pub struct Opened {
    pub service: Arc<TableService>,
    pub engine: Arc<dyn Engine>,
    pub faults: Faults,
}

impl Store {
    pub fn memory() -> Store {
        Store::Memory(|clock| Arc::new(MemoryEngine::new(tables::FAMILIES, clock)))
    }

    pub fn local() -> Result<Store, String> {
        let directory = tempfile::Builder::new().prefix("lazulite-simulate-").tempdir();
        Ok(Store::Local { directory: directory.map_err(|error| error.to_string())?, disk: Disk::new() })
    }

    pub fn is_local(&self) -> bool {
        matches!(self, Store::Local { .. })
    }

    /// Whether the disk has failed since the store was opened.
    pub fn has_failed(&self) -> bool {
        match self {
            Store::Memory(_) => false,
            Store::Local { disk, .. } => disk.has_failed(),
        }
    }

    pub fn open(&self, clock: &Arc<FakeClock>, log: &Log) -> Result<Opened, String> {
        let clock: Arc<dyn Clock> = clock.clone();
        let engine: Arc<dyn Engine> = match self {
            Store::Memory(make) => make(clock.clone()),
            Store::Local { directory, disk } => {
                let mut options = LocalOptions::new(tables::FAMILIES, clock.clone());
                options.cache_bytes_max = CACHE_BYTES_MAX;
                options.recent_bytes_max = RECENT_BYTES_MAX;
                options.unsynced_bytes_max = UNSYNCED_BYTES_MAX;
                options.folds_between_groups = true;
                let opened = LocalEngine::open_on(directory.path(), options, Arc::new(disk.clone()));
                Arc::new(opened.map_err(|error| error.to_string())?)
            }
        };
        #[cfg(feature = "seeded-bugs")]
        let engine = engine::seeded::wrap(engine);
        let witness = Wrapped(Witness { engine, log: log.clone() });
        let (engine, faults) = FaultEngine::new(Arc::new(witness));
        let engine: Arc<dyn Engine> = Arc::new(Wrapped(Stage { engine: Arc::new(engine), log: log.clone() }));
        Ok(Opened { service: Arc::new(TableService::new(engine.clone(), clock)), engine, faults })
    }
}
