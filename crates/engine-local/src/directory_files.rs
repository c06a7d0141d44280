//! The files of a store's directory: opened, renamed, removed, made durable.
//!
//! Promises: a file's content is durable after its `sync_data`, its name after [`StoreFiles::sync`]. Only its owner can
//! read it. The engine reaches the operating system through this trait alone, so a test can take its place.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::directory::DirectoryHandle;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    /// Creates the file, or empties it.
    Create,
}

pub trait StoreFiles: fmt::Debug + Send + Sync + 'static {
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile>;
    /// Replaces the file `to`, if there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync(&self) -> io::Result<()>;
}

/// The files of a real directory, each wrapped in a layer of the caller's choice.
pub struct DirectoryFiles<W> {
    directory: PathBuf,
    wrap: W,
    /// A spare file descriptor. Clients may use up all that the process has, and a commit must not fail for that:
    /// then the spare is closed to open the file that is needed.
    reserve: Mutex<Option<File>>,
    /// The directory, kept open for the same reason.
    handle: OnceLock<DirectoryHandle>,
}

impl DirectoryFiles<fn(FileBackend) -> FileBackend> {
    pub fn new(directory: &Path) -> Self {
        DirectoryFiles::wrapped(directory, |file| file)
    }
}

impl<W> DirectoryFiles<W> {
    pub fn wrapped(directory: &Path, wrap: W) -> DirectoryFiles<W> {
        DirectoryFiles {
            directory: directory.to_owned(),
            wrap,
            reserve: Mutex::new(None),
            handle: OnceLock::new(),
        }
    }

    fn handle(&self) -> io::Result<&DirectoryHandle> {
        if let Some(handle) = self.handle.get() {
            return Ok(handle);
        }
        let handle = DirectoryHandle::open(&self.directory)?;
        Ok(self.handle.get_or_init(|| handle))
    }

    /// Opens a file, and gives up the spare descriptor if there is no other.
    fn with_reserve<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let mut reserve = self.reserve.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut opened = open();
        if opened.as_ref().is_err_and(is_out_of_handles) && reserve.take().is_some() {
            opened = open();
        } else if opened.is_ok() && reserve.is_none() {
            // On systems other than Unix a directory cannot be opened, so there is no spare.
            *reserve = File::open(&self.directory).ok();
        }
        opened
    }
}

impl<W> fmt::Debug for DirectoryFiles<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the files of {}", self.directory.display())
    }
}

impl<B: StorageBackend, W: Fn(FileBackend) -> B + Send + Sync + 'static> StoreFiles for DirectoryFiles<W> {
    fn names(&self) -> io::Result<Vec<String>> {
        self.handle()?;
        let names = std::fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.file_name()));
        // A name that is not UTF-8 is not one of ours.
        Ok(names
            .collect::<io::Result<Vec<_>>>()?
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        let mut how = OpenOptions::new();
        how.read(true);
        match access {
            Access::Read => &mut how,
            Access::Write => how.write(true),
            Access::Create => files::create_as_secret(how.write(true).create(true).truncate(true)),
        };
        let file: File = self.with_reserve(|| how.open(self.directory.join(name)))?;
        if access != Access::Read {
            crate::directory::make_secret(&file, name);
        }
        let file = FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(AnyFile::new((self.wrap)(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.directory.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle()?.sync()
    }
}

/// Whether the process, or the system, has no file descriptor left.
fn is_out_of_handles(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// An open file of any kind.
#[derive(Debug)]
pub struct AnyFile(Box<dyn StorageBackend>);

impl AnyFile {
    pub fn new(file: impl StorageBackend) -> AnyFile {
        AnyFile(Box::new(file))
    }
}

impl StorageBackend for AnyFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }
}
