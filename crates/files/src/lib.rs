//! Small files that are replaced atomically, and secrets that only their owner can read.
//!
//! Promises: a reader of the path finds either the old content or the new content in full, even after a power cut; a
//! secret is readable by its owner alone from the moment its file exists. On Windows, which has no Unix permissions, a
//! file inherits the access list of its directory: keep the data where only its owner may look, such as under the
//! user's profile. Leaves to others: large files, and what the files contain.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const SECRET_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;
/// What the group and everybody else may do.
#[cfg(unix)]
const OTHERS_MODE: u32 = 0o077;
const SECRET_DIRECTORY_MODE: u32 = 0o700;

/// A process that died while writing leaves its temporary file behind. If it had our process id, the name is taken, and
/// we try the next one, up to this many times.
const TEMPORARY_NAME_TRIES_MAX: usize = 100;
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Replaces the file at `path`. Only its owner may read it (mode 0600).
pub fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, SECRET_MODE)
}

/// Replaces the file at `path`. Everybody may read it (mode 0644).
pub fn write_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, PUBLIC_MODE)
}

/// Files that these options create can be read by their owner alone (mode 0600).
pub fn create_as_secret(options: &mut OpenOptions) -> &mut OpenOptions {
    set_mode(options, SECRET_MODE);
    options
}

/// Takes the permissions of everybody but the owner away, for a file that an earlier version or another program made
/// readable. The owner's stay as they are.
#[cfg(unix)]
pub fn make_secret(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = file.metadata()?.permissions();
    if permissions.mode() & OTHERS_MODE == 0 {
        return Ok(());
    }
    permissions.set_mode(permissions.mode() & 0o7777 & !OTHERS_MODE);
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
pub fn make_secret(_: &File) -> io::Result<()> {
    Ok(())
}

/// The permissions of a directory, such as 755, if anybody but its owner has some.
#[cfg(unix)]
pub fn mode_for_others(directory: &Path) -> Option<String> {
    let metadata = std::fs::metadata(directory).ok()?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    (mode & OTHERS_MODE != 0).then(|| format!("{mode:03o}"))
}

#[cfg(not(unix))]
pub fn mode_for_others(_: &Path) -> Option<String> {
    None
}

/// Creates the directory, durably, so that only its owner may look inside (mode 0700). A directory that exists keeps
/// its mode. Missing parent directories are created with the usual mode.
pub fn create_secret_directory(directory: &Path) -> io::Result<()> {
    create_directory(directory, Some(SECRET_DIRECTORY_MODE))
}

fn create_directory(directory: &Path, mode: Option<u32>) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory_of(directory);
    create_directory(parent, None)?;
    let mut builder = std::fs::DirBuilder::new();
    if let Some(mode) = mode {
        set_directory_mode(&mut builder, mode);
    }
    match builder.create(directory) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        created => created?,
    }
    sync_directory(parent)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (mut file, temporary) = create_temporary(path, mode)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    // Close the file before renaming it: Windows does not rename open files.
    drop(file);
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
    if renamed.is_err() {
        // Report the first failure, not a failure to clean up after it.
        let _ = std::fs::remove_file(&temporary);
    }
    renamed?;
    sync_directory(directory_of(path))
}

/// Creates a new file in the directory of `path`: a rename from another file system would not be atomic.
fn create_temporary(path: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path does not end in the name of a file",
        ));
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    set_mode(&mut options, mode);
    let mut outcome = Err(io::ErrorKind::AlreadyExists.into());
    for _ in 0..TEMPORARY_NAME_TRIES_MAX {
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        temporary.push(format!(".{}-{number}{TEMPORARY_SUFFIX}", std::process::id()));
        let temporary = directory_of(path).join(temporary);
        outcome = options.open(&temporary).map(|file| (file, temporary));
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    outcome
}

/// Whether a file of this name may be what a process that died while writing `target` left behind.
pub fn is_temporary(name: &str, target: &str) -> bool {
    let rest = name.strip_prefix('.').and_then(|name| name.strip_prefix(target));
    rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(TEMPORARY_SUFFIX))
}

/// The directory that contains `path`.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        // The parent of a bare file name is the empty path, which cannot be opened; it means the current directory.
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
}

#[cfg(not(unix))]
fn set_mode(_: &mut OpenOptions, _: u32) {}

#[cfg(unix)]
fn set_directory_mode(builder: &mut std::fs::DirBuilder, mode: u32) {
    std::os::unix::fs::DirBuilderExt::mode(builder, mode);
}

#[cfg(not(unix))]
fn set_directory_mode(_: &mut std::fs::DirBuilder, _: u32) {}

/// Makes the directory's entries durable: files created, renamed or removed in it stay so after a power cut.
#[cfg(not(windows))]
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Windows cannot open a directory as a file, and its file systems journal renames.
#[cfg(windows)]
pub fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
    }

    #[test]
    fn a_written_file_has_the_new_content_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        for content in [&b"first"[..], b"", b"second, and longer"] {
            write_secret(&path, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        write_public(&path, b"public").unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let (_, temporary) = create_temporary(&path, PUBLIC_MODE).unwrap();
        let temporary = temporary.file_name().unwrap().to_str().unwrap();
        assert!(is_temporary(temporary, "keys"), "{temporary}");
        assert!(!is_temporary(temporary, "key") && !is_temporary("keys", "keys"));
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_is_for_its_owner_alone_even_where_a_public_file_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, "seen by all").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        write_secret(&path, b"mine").unwrap();
        assert_eq!(mode(&path), 0o600);
        let inside = directory.path().join("a/b");
        create_secret_directory(&inside).unwrap();
        create_secret_directory(&inside).unwrap();
        assert_eq!(mode(&inside), 0o700);
        let usual = directory.path().join("usual");
        std::fs::create_dir(&usual).unwrap();
        assert_eq!(mode(&directory.path().join("a")), mode(&usual), "parent directories keep the usual mode");
        assert_eq!(mode_for_others(&inside), None);

        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o664)).unwrap();
        make_secret(&File::open(&path).unwrap()).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&usual, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(mode_for_others(&usual).as_deref(), Some("755"));
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_and_so_does_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        std::fs::create_dir_all(path.join("inside")).unwrap();
        write_secret(&path, b"mine").unwrap_err();
        assert!(path.join("inside").is_dir());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        write_secret(&directory.path().join("absent/keys"), b"mine").unwrap_err();
        write_secret(Path::new("/"), b"mine").unwrap_err();
    }
}
