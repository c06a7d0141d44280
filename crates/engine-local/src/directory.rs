//! A directory that one process owns, and whose entries survive a power cut.
//!
//! Promises: a file created, renamed or removed before [`DirectoryHandle::sync`] stays so after a power cut. At most
//! one process holds the [`DirectoryLock`] of a file, and the operating system releases it when that process ends. On
//! Unix an open directory stays the same directory, wherever it is moved and whatever is mounted over it: a name given
//! to a [`DirectoryHandle`] never leads into another one. On other systems a handle is a path.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::directory_files::Access;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: Option<File>,
}

impl DirectoryLock {
    /// For files that only this process can reach.
    pub(crate) fn unneeded() -> DirectoryLock {
        DirectoryLock { _file: None }
    }

    /// `None` when another process holds the lock.
    pub(crate) fn try_acquire(directory: &DirectoryHandle, name: &str) -> io::Result<Option<DirectoryLock>> {
        // The file is never truncated or removed: it is the lock, whoever created it.
        let file = directory.open_file(name, Access::CreateOrKeep)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DirectoryLock { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Creates the directory and its missing parents, durably.
pub(crate) fn create_all(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = parent(directory);
    if let Some(parent) = parent {
        create_all(parent)?;
    }
    match create_private(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        Err(error) => return Err(error),
    }
    match parent {
        Some(parent) => files::sync_directory(parent),
        None => Ok(()),
    }
}

/// Only the owner may look into a store. On systems other than Unix the parent directory decides who may.
fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn parent(directory: &Path) -> Option<&Path> {
    match directory.parent() {
        // The parent of `data` is the current directory, but its path is empty.
        Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
        parent => parent,
    }
}

/// An open directory. Using it needs no new handle for the directory itself, and there may be none left. Windows cannot
/// open a directory as a file, and NTFS journals the entries by itself.
#[derive(Debug)]
pub(crate) struct DirectoryHandle {
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

#[cfg(unix)]
impl DirectoryHandle {
    pub(crate) fn open(directory: &Path) -> io::Result<DirectoryHandle> {
        Ok(DirectoryHandle { file: File::open(directory)? })
    }

    /// Files are created for their owner alone.
    pub(crate) fn open_file(&self, name: &str, access: Access) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        let how = OFlags::CLOEXEC
            | match access {
                Access::Read => OFlags::RDONLY,
                Access::Write => OFlags::RDWR,
                Access::Create | Access::CreateLater => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
                Access::CreateOrKeep => OFlags::RDWR | OFlags::CREATE,
            };
        let open = || rustix::fs::openat(&self.file, name, how, Mode::RUSR | Mode::WUSR);
        Ok(rustix::io::retry_on_intr(open)?.into())
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?)
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.file, name, rustix::fs::AtFlags::empty())?)
    }

    /// The names of its entries. `None` stands for a name that is not UTF-8.
    pub(crate) fn names(&self) -> io::Result<Vec<Option<String>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(std::str::from_utf8(name).ok().map(str::to_owned));
            }
        }
        Ok(names)
    }

    /// Makes the directory's entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Whether this path leads to this directory.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let own = self.file.metadata()?;
        match std::fs::metadata(path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A second handle, which takes a file descriptor and nothing else.
    pub(crate) fn duplicate(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

#[cfg(not(unix))]
impl DirectoryHandle {
    pub(crate) fn open(directory: &Path) -> io::Result<DirectoryHandle> {
        Ok(DirectoryHandle { path: directory.to_owned() })
    }

    pub(crate) fn open_file(&self, name: &str, access: Access) -> io::Result<File> {
        let mut how = std::fs::OpenOptions::new();
        how.read(true);
        match access {
            Access::Read => &mut how,
            Access::Write => how.write(true),
            Access::Create | Access::CreateLater => how.write(true).create(true).truncate(true),
            Access::CreateOrKeep => how.write(true).create(true).truncate(false),
        };
        how.open(self.path.join(name))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    pub(crate) fn names(&self) -> io::Result<Vec<Option<String>>> {
        std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok())).collect()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether there is a directory at all. Which one it is, its marker tells.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(found.is_dir()),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn duplicate(&self) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_freed_with_its_holder() {
        let directory = tempfile::tempdir().unwrap();
        let handle = DirectoryHandle::open(directory.path()).unwrap();
        let held = DirectoryLock::try_acquire(&handle, "lock").unwrap();
        assert!(held.is_some());
        assert!(DirectoryLock::try_acquire(&handle, "lock").unwrap().is_none());
        drop(held);
        assert!(DirectoryLock::try_acquire(&handle, "lock").unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_handle_follows_its_directory_and_not_the_path() {
        let parent = tempfile::tempdir().unwrap();
        let (path, moved) = (parent.path().join("d"), parent.path().join("moved"));
        std::fs::create_dir(&path).unwrap();
        let handle = DirectoryHandle::open(&path).unwrap();
        assert!(handle.is_at(&path).unwrap());
        std::fs::rename(&path, &moved).unwrap();
        assert!(!handle.is_at(&path).unwrap() && handle.is_at(&moved).unwrap());
        std::fs::create_dir(&path).unwrap();
        assert!(!handle.is_at(&path).unwrap());
        drop(handle.open_file("a", Access::Create).unwrap());
        handle.rename("a", "b").unwrap();
        assert_eq!(handle.names().unwrap(), [Some("b".to_owned())]);
        assert!(moved.join("b").exists() && std::fs::read_dir(&path).unwrap().next().is_none());
        handle.remove("b").unwrap();
        handle.sync().unwrap();
        assert!(handle.names().unwrap().is_empty());
    }

    #[test]
    fn missing_directories_are_created_down_to_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("a/b/c");
        create_all(&deep).unwrap();
        create_all(&deep).unwrap();
        assert!(deep.is_dir());
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert!(create_all(&directory.path().join("file/below")).is_err());
    }
}
