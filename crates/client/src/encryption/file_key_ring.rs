//! A key ring whose keys are in a small text file.
//!
//! Promises: on Unix, a file that other users can read or write is refused, since its keys would protect nothing.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::local_keys::{KeyList, SharedKeys, refused};
use super::{ContentKey, EncryptionError, KeyAnswer, KeyRing, WrappedKey};

const FILE_BYTES_MAX: u64 = 64 * 1024;

/// A key ring in a text file: one `id=BASE64` per line, the current key first. Lines that begin with `#` are comments.
///
/// To exchange keys while programs run: append the new key and [`reload`](FileKeyRing::reload) everywhere; then move
/// its line to the top and reload again. `docs/encryption.md` has the steps.
///
/// ```
/// use lazulite_client::encryption::FileKeyRing;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("keys");
/// FileKeyRing::create(&path, "2026")?;
/// let ring = FileKeyRing::open(&path)?;
/// assert_eq!(ring.key_ids(), ["2026"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileKeyRing {
    path: PathBuf,
    keys: SharedKeys,
}

impl FileKeyRing {
    /// Reads the file. Fails if other users can read or write it.
    pub fn open(path: impl Into<PathBuf>) -> Result<FileKeyRing, EncryptionError> {
        let path = path.into();
        let keys = SharedKeys::new(read(&path)?);
        Ok(FileKeyRing { path, keys })
    }

    /// Writes a new file with one new key, readable for its owner alone, and opens it. An existing file is left alone,
    /// and is an error.
    pub fn create(path: impl Into<PathBuf>, key_id: &str) -> Result<FileKeyRing, EncryptionError> {
        let path = path.into();
        let line = KeyList::generate_line(key_id)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(|error| failed(&path, &error))?;
        file.write_all(line.as_bytes()).map_err(|error| failed(&path, &error))?;
        file.sync_all().map_err(|error| failed(&path, &error))?;
        FileKeyRing::open(path)
    }

    /// Reads the file again. If that fails, the ring keeps the keys that it has.
    pub fn reload(&self) -> Result<(), EncryptionError> {
        self.keys.set(read(&self.path)?);
        Ok(())
    }

    /// The ids of all keys, the current one first.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys.get().ids()
    }
}

fn read(path: &Path) -> Result<KeyList, EncryptionError> {
    let file = File::open(path).map_err(|error| failed(path, &error))?;
    // Asked of the open file, so nobody can exchange it in between.
    let about = file.metadata().map_err(|error| failed(path, &error))?;
    if !about.is_file() {
        return Err(refused("it is not a file"));
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
        if mode & 0o077 != 0 {
            let path = path.display();
            let reason = format!("other users can read or write {path}; allow only its owner (chmod 600)");
            return Err(EncryptionError::KeyRing(reason.into()));
        }
    }
    if about.len() > FILE_BYTES_MAX {
        return Err(refused("its file has more than 64 KiB"));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| failed(path, &error))?;
    KeyList::parse(&text)
}

fn failed(path: &Path, error: &std::io::Error) -> EncryptionError {
    EncryptionError::KeyRing(format!("{}: {error}", path.display()).into())
}

impl KeyRing for FileKeyRing {
    fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey> {
        KeyAnswer::ready(self.keys.get().wrap(content_key))
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey> {
        KeyAnswer::ready(self.keys.get().unwrap(wrapped))
    }
}

impl std::fmt::Debug for FileKeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileKeyRing").field("path", &self.path).field("keys", &self.key_ids()).finish()
    }
}
