//! The planted bugs that need the inside of this engine, in builds with the feature `seeded-bugs` alone. Which of them a
//! process carries, and why, is told in `engine::seeded`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use engine::seeded::{Bug, is};
use redb::StorageBackend;

use crate::commit_log::{self, Counters};
use crate::directory::DirectoryLock;
use crate::directory_files::{Access, AnyFile, StoreFiles};

/// How late a record of the log is written or synced: so little that a crash seldom falls into it.
const DELAY: Duration = Duration::from_micros(200);

/// The files of a store, whose log is written or synced late.
pub(crate) fn files(files: Arc<dyn StoreFiles>) -> Arc<dyn StoreFiles> {
    let is_late = is(Bug::AnswerBeforeSync) || is(Bug::AnswerBeforeWrite);
    if is_late { Arc::new(LateFiles(files)) } else { files }
}

/// The counters of a store that was just opened.
pub(crate) fn counters(counters: Counters) -> Counters {
    if is(Bug::VersionReuse) { Counters { last_version: 0, ..counters } } else { counters }
}

#[derive(Debug)]
struct LateFiles(Arc<dyn StoreFiles>);

impl StoreFiles for LateFiles {
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        let file = self.0.open(name, access)?;
        Ok(if commit_log::is_ours(name) {
            AnyFile::new(LateFile {
                file: Arc::new(file),
                late: Arc::default(),
                has_record: AtomicBool::new(false),
            })
        } else {
            file
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        self.0.read(name, bytes_max)
    }

    fn try_lock(&self, name: &str) -> io::Result<Option<DirectoryLock>> {
        self.0.try_lock(name)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        self.0.is_in_place()
    }
}

#[derive(Debug)]
struct LateFile {
    file: Arc<AnyFile>,
    late: Arc<Late>,
    /// A record was written and not synced.
    has_record: AtomicBool,
}

/// What is still to be done in the background.
#[derive(Default, Debug)]
struct Late {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Late {
    fn add(&self, change: isize) {
        let mut count = self.count.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *count = count.saturating_add_signed(change);
        self.changed.notify_all();
    }

    fn wait(&self) {
        let count = self.count.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(self.changed.wait_while(count, |count| *count > 0));
    }
}

impl LateFile {
    fn later(&self, work: impl FnOnce(&AnyFile) -> io::Result<()> + Send + 'static) {
        let (file, late) = (self.file.clone(), self.late.clone());
        late.add(1);
        std::thread::spawn(move || {
            std::thread::sleep(DELAY);
            let _ = work(&file);
            late.add(-1);
        });
    }
}

impl Drop for LateFile {
    /// A regular end loses nothing.
    fn drop(&mut self) {
        self.late.wait();
    }
}

impl StorageBackend for LateFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.late.wait();
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    /// The sync of a record comes later; that of anything else comes now.
    fn sync_data(&self) -> io::Result<()> {
        if !self.has_record.swap(false, Ordering::AcqRel) {
            return self.file.sync_data();
        }
        if is(Bug::AnswerBeforeSync) {
            self.later(|file| file.sync_data());
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !commit_log::is_record(data) {
            self.late.wait();
            return self.file.write(offset, data);
        }
        self.has_record.store(true, Ordering::Release);
        if is(Bug::AnswerBeforeSync) {
            return self.file.write(offset, data);
        }
        let data = data.to_vec();
        self.later(move |file| file.write(offset, &data).and_then(|()| file.sync_data()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.late.wait();
        self.file.close()
    }
}
