//! A directory that one process owns, and whose entries survive a power cut.
//!
//! Promises: a file created, renamed or removed before [`DirectoryHandle::sync`] stays so after a power cut. At most
//! one process holds the [`DirectoryLock`] of a file, and the operating system releases it when that process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// `None` when another process holds the lock.
    pub(crate) fn try_acquire(path: &Path) -> io::Result<Option<DirectoryLock>> {
        // The file is never truncated or removed: it is the lock, whoever created it.
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        let file = files::create_as_secret(&mut how).open(path)?;
        // Whoever can open the file can lock it.
        make_secret(&file, "lock");
        match file.try_lock() {
            Ok(()) => Ok(Some(DirectoryLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Takes a file's permissions away from everybody but its owner. Not every file system and not every user can, and a
/// store must open all the same.
pub(crate) fn make_secret(file: &File, name: &str) {
    if let Err(error) = files::make_secret(file) {
        log::warn!("other users may be able to read {name}: {error}");
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

/// An open directory: syncing it needs no new file handle, and there may be none left.
#[derive(Debug)]
pub(crate) struct DirectoryHandle {
    #[cfg(not(windows))]
    file: File,
}

#[cfg(not(windows))]
impl DirectoryHandle {
    pub(crate) fn open(directory: &Path) -> io::Result<DirectoryHandle> {
        Ok(DirectoryHandle { file: File::open(directory)? })
    }

    /// Makes the directory's entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Windows cannot open a directory as a file, and NTFS journals the entries by itself.
#[cfg(windows)]
impl DirectoryHandle {
    pub(crate) fn open(_directory: &Path) -> io::Result<DirectoryHandle> {
        Ok(DirectoryHandle {})
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_freed_with_its_holder() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = DirectoryLock::try_acquire(&path).unwrap();
        assert!(held.is_some());
        assert!(DirectoryLock::try_acquire(&path).unwrap().is_none());
        drop(held);
        assert!(DirectoryLock::try_acquire(&path).unwrap().is_some());
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
