//! A directory that one process owns, and whose entries survive a power cut.
//!
//! Promises: a file created, renamed or removed before [`DirectoryHandle::sync`] stays so after a power cut; at most one
//! [`DirectoryLock`] of a file is held at any time, and the operating system lets go of it when its process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// TreeFile for as long as it lives.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// `None` when somebody else holds it.
    pub(crate) fn try_acquire(path: &Path) -> io::Result<Option<DirectoryLock>> {
        // Never truncated and never removed: the file is the lock, whoever created it.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(DirectoryLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Creates the directory and those above it that are missing, durably.
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

/// What a store holds is its owner's. Elsewhere than on Unix, the directory above decides who may look.
fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn parent(directory: &Path) -> Option<&Path> {
    match directory.parent() {
        // `data` lies in the current directory, whose name is not empty.
        Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
        parent => parent,
    }
}

/// An open directory: syncing it needs no new file handle, which may be wanting.
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

    /// Makes its entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Windows cannot open a directory as a file; NTFS journals its entries by itself.
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
