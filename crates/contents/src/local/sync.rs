//! One sync for all who wait for the same file.
//!
//! Promises: whoever asks for a sync and waits for it knows that everything written before asking is durable. While one
//! sync runs, those who ask share the next one. A sync goes on when those who asked for it give up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;

use super::files::{ExtentFile, ExtentFiles};
use crate::ContentError;

/// Whether a sync failed, and how many there were; one for the whole store.
#[derive(Default, Debug)]
pub(crate) struct SyncHealth {
    sync_failed: AtomicBool,
    pub(crate) sync_count: AtomicU64,
}

impl SyncHealth {
    pub(crate) fn check(&self) -> Result<(), ContentError> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(ContentError::Unavailable(
                "a sync failed; the store must be opened again".to_owned(),
            ));
        }
        Ok(())
    }

    /// Syncs. A failure is for good: what it leaves on the disk is unknown.
    pub(crate) fn sync(&self, file: &dyn ExtentFile) -> Result<(), ContentError> {
        self.check()?;
        self.sync_count.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "seeded-bugs")]
        if crate::seeded::leaves_out_syncs() {
            return Ok(());
        }
        file.sync_data().map_err(|error| self.failed(&error))
    }

    /// Makes the names of files durable. A failure is for good, too.
    pub(crate) fn sync_directory(&self, files: &dyn ExtentFiles) -> Result<(), ContentError> {
        files.sync().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> ContentError {
        self.sync_failed.store(true, Ordering::Release);
        ContentError::Unavailable(format!("a sync failed: {error}"))
    }
}

#[derive(Debug)]
pub(crate) struct GroupSync {
    asked: Mutex<SyncRequests>,
    /// The last request that is done, and whether a sync failed.
    done: watch::Sender<(u64, Option<ContentError>)>,
}

#[derive(Default, Debug)]
struct SyncRequests {
    last: u64,
    is_running: bool,
}

impl GroupSync {
    pub(crate) fn new() -> GroupSync {
        GroupSync { asked: Mutex::default(), done: watch::Sender::new((0, None)) }
    }

    fn asked(&self) -> MutexGuard<'_, SyncRequests> {
        self.asked.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Asks for a sync of everything written so far; returns a ticket to wait with.
    pub(crate) fn ask(self: &Arc<GroupSync>, file: &Arc<dyn ExtentFile>, health: &Arc<SyncHealth>) -> u64 {
        let mut asked = self.asked();
        asked.last += 1;
        if !asked.is_running {
            asked.is_running = true;
            let (group, file, health) = (self.clone(), file.clone(), health.clone());
            tokio::task::spawn_blocking(move || group.run(&*file, &health));
        }
        asked.last
    }

    fn run(&self, file: &dyn ExtentFile, health: &SyncHealth) {
        let mut upto = self.asked().last;
        loop {
            let outcome = health.sync(file).err();
            self.done.send_modify(|done| *done = (upto, outcome.or(done.1.take())));
            let mut asked = self.asked();
            if asked.last == upto {
                asked.is_running = false;
                return;
            }
            upto = asked.last;
        }
    }

    pub(crate) async fn wait(&self, ticket: u64) -> Result<(), ContentError> {
        let mut done = self.done.subscribe();
        let done = done.wait_for(|(upto, error)| *upto >= ticket || error.is_some()).await;
        match done.as_deref() {
            Ok((_, None)) => Ok(()),
            Ok((_, Some(error))) => Err(error.clone()),
            Err(_) => Err(ContentError::Unavailable("the sync ended without an outcome".to_owned())),
        }
    }
}
