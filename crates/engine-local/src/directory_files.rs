//! The files of a store's directory: opened, renamed, removed, made durable.
//!
//! Promises: a file's content is durable after its `sync_data`, its name after [`StoreFiles::sync`]. Only its owner can
//! read it. The engine reaches the operating system through this trait alone, so a test can take its place. All files
//! are those of the directory that was found at the path when the first of them was needed, even if the path leads
//! elsewhere later.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::directory::make_secret;
use crate::directory::{DirectoryHandle, DirectoryLock};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Write,
    /// Creates the file, or empties it.
    Create,
    /// Like `Create`, for a file that can wait: the last file descriptor is not spent on it.
    CreateLater,
    /// Creates the file, or leaves its content.
    CreateOrKeep,
}

pub trait StoreFiles: fmt::Debug + Send + Sync + 'static {
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile>;
    /// Replaces the file `to`, if there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync(&self) -> io::Result<()>;

    /// The beginning of a small file, without locking it.
    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>>;

    /// How long a file is, as far as that is known.
    fn size_bytes(&self, _name: &str) -> io::Result<u64> {
        Ok(0)
    }

    /// Takes the lock that this file is; `None` when another process holds it.
    fn try_lock(&self, _name: &str) -> io::Result<Option<DirectoryLock>> {
        Ok(Some(DirectoryLock::unneeded()))
    }

    /// Whether the path at which these files were found still leads to them.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// For the moment right after a file was closed: if the spare file descriptor was spent, another is kept.
    fn renew_reserve(&self) {}
}

/// Replaces a small file, durably: a reader finds the old content or the new one.
pub(crate) fn replace(files: &dyn StoreFiles, name: &str, temporary: &str, bytes: &[u8]) -> io::Result<()> {
    let file = files.open(temporary, Access::Create)?;
    file.set_len(bytes.len() as u64)?;
    file.write(0, bytes)?;
    file.sync_data()?;
    // Windows does not rename open files.
    drop(file);
    files.rename(temporary, name)?;
    files.sync()
}

/// The files of a real directory, each wrapped in a layer of the caller's choice.
pub struct DirectoryFiles<W> {
    directory: PathBuf,
    wrap: W,
    /// A spare file descriptor. Others in the process may use up all that it has, and a commit must not fail for that:
    /// then the spare is closed to open the file that is needed.
    reserve: Mutex<Option<File>>,
    opened: OnceLock<OpenDirectory>,
}

/// The directory, kept open.
struct OpenDirectory {
    handle: DirectoryHandle,
    /// Whether the path led to the open directory right after it was opened. Some file systems over a network give a
    /// directory a new number every time; there a later comparison says nothing.
    is_comparable: bool,
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
            opened: OnceLock::new(),
        }
    }

    fn opened(&self) -> io::Result<&OpenDirectory> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let handle = DirectoryHandle::open(&self.directory)?;
        let is_comparable = handle.is_at(&self.directory)?;
        Ok(self.opened.get_or_init(|| OpenDirectory { handle, is_comparable }))
    }

    fn handle(&self) -> io::Result<&DirectoryHandle> {
        Ok(&self.opened()?.handle)
    }

    fn reserve(&self) -> MutexGuard<'_, Option<File>> {
        self.reserve.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Opens a file, and gives up the spare descriptor if there is no other.
    fn open_file(&self, name: &str, access: Access) -> io::Result<File> {
        let handle = self.handle()?;
        let open = || handle.open_file(name, access);
        if access == Access::CreateLater {
            return open();
        }
        let mut reserve = self.reserve();
        let mut opened = open();
        if opened.as_ref().is_err_and(is_out_of_handles) && reserve.take().is_some() {
            opened = open();
        } else if opened.is_ok() && reserve.is_none() {
            // On systems other than Unix a directory cannot be opened, so there is no spare.
            *reserve = handle.duplicate().ok();
        }
        drop(reserve);
        // An earlier version may have made the file readable for others.
        opened.inspect(|file| make_secret(file, name))
    }
}

impl<W> fmt::Debug for DirectoryFiles<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the files of {}", self.directory.display())
    }
}

impl<B: StorageBackend, W: Fn(FileBackend) -> B + Send + Sync + 'static> StoreFiles for DirectoryFiles<W> {
    fn names(&self) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is not one of ours, but it is there.
        let name = |name: Option<String>| name.unwrap_or_else(|| char::REPLACEMENT_CHARACTER.to_string());
        Ok(self.handle()?.names()?.into_iter().map(name).collect())
    }

    fn open(&self, name: &str, access: Access) -> io::Result<AnyFile> {
        let file = self.open_file(name, access)?;
        let file = FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(AnyFile::new((self.wrap)(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.handle()?.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.handle()?.remove(name)
    }

    fn read(&self, name: &str, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // It can wait: the spare descriptor is not for it.
        let file = self.handle()?.open_file(name, Access::Read)?;
        make_secret(&file, name);
        file.take(bytes_max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn size_bytes(&self, name: &str) -> io::Result<u64> {
        // As above, it can wait. The file is not locked, so it is no trouble to those who use it.
        Ok(self.handle()?.open_file(name, Access::Read)?.metadata()?.len())
    }

    fn try_lock(&self, name: &str) -> io::Result<Option<DirectoryLock>> {
        DirectoryLock::try_acquire(self.handle()?, name)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        let opened = self.opened()?;
        Ok(!opened.is_comparable || opened.handle.is_at(&self.directory)?)
    }

    fn renew_reserve(&self) {
        let mut reserve = self.reserve();
        if reserve.is_none() {
            *reserve = self.handle().and_then(DirectoryHandle::duplicate).ok();
        }
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
