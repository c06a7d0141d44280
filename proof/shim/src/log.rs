//! The log: one record after another, each written by one system call.
//!
//! A record is its length (u32, not counting these four bytes), a kind (u8) and its fields; numbers are little-endian.
//! A path is absolute and follows its length (u16). A file is identified by its inode number.
//!
//! | kind | what happened | fields |
//! |---|---|---|
//! | 1 | a file was created | inode u64, path |
//! | 2 | a directory was created | inode u64, path |
//! | 3 | bytes were written | inode u64, offset u64, the bytes |
//! | 4 | the length was set | inode u64, length u64 |
//! | 5 | renamed | path, path |
//! | 6 | a second name | path, path |
//! | 7 | a name was removed | path |
//! | 8 | a sync began | inode u64, token u64 |
//! | 9 | a sync ended well | token u64 |
//! | 10 | something that this library cannot describe | a sentence, as a path |
//! | 11 | a range was turned into a hole | inode u64, offset u64, length u64 |

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const KIND_CREATE: u8 = 1;
const KIND_MKDIR: u8 = 2;
const KIND_WRITE: u8 = 3;
const KIND_SET_LEN: u8 = 4;
const KIND_RENAME: u8 = 5;
const KIND_LINK: u8 = 6;
const KIND_UNLINK: u8 = 7;
const KIND_SYNC_BEGIN: u8 = 8;
const KIND_SYNC_END: u8 = 9;
const KIND_UNSUPPORTED: u8 = 10;
const KIND_PUNCH: u8 = 11;

pub struct Log {
    root: Vec<u8>,
    state: Mutex<State>,
}

/// Held from before the operating system makes a change until the change is in the log.
pub struct State {
    file: c_int,
    /// The (device, inode) of every file below the root that was opened or created.
    known: BTreeSet<(u64, u64)>,
    token: u64,
}

/// The log; `None` if nothing is logged.
pub fn log() -> Option<&'static Log> {
    static LOG: OnceLock<Option<Log>> = OnceLock::new();
    LOG.get_or_init(open).as_ref()
}

fn open() -> Option<Log> {
    use std::os::unix::ffi::OsStringExt;
    let root = std::env::var_os("LAZULITE_SHIM_ROOT")?.into_vec();
    let mut path = std::env::var_os("LAZULITE_SHIM_LOG")?.into_vec();
    path.push(0);
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte and outlives the call.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
    // Successive processes share a log, so their tokens must differ.
    let token = u64::from(std::process::id()) << 32;
    let state = State { file: c_int::try_from(file).ok()?, known: BTreeSet::new(), token };
    (file >= 0).then_some(Log { root, state: Mutex::new(state) })
}

impl Log {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this absolute path lies at or below the root.
    pub fn covers(&self, path: &[u8]) -> bool {
        path.strip_prefix(&self.root[..]).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }
}

impl State {
    pub fn know(&mut self, device: u64, inode: u64) {
        self.known.insert((device, inode));
    }

    pub fn knows(&self, device: u64, inode: u64) -> bool {
        self.known.contains(&(device, inode))
    }

    pub fn created(&mut self, inode: u64, path: &[u8]) {
        self.record(KIND_CREATE, &[&inode.to_le_bytes(), &length(path), path]);
    }

    pub fn made_directory(&mut self, inode: u64, path: &[u8]) {
        self.record(KIND_MKDIR, &[&inode.to_le_bytes(), &length(path), path]);
    }

    pub fn written(&mut self, inode: u64, offset: u64, bytes: &[&[u8]]) {
        let (inode, offset) = (inode.to_le_bytes(), offset.to_le_bytes());
        let mut parts: Vec<&[u8]> = vec![&inode, &offset];
        parts.extend_from_slice(bytes);
        self.record(KIND_WRITE, &parts);
    }

    pub fn set_length(&mut self, inode: u64, length: u64) {
        self.record(KIND_SET_LEN, &[&inode.to_le_bytes(), &length.to_le_bytes()]);
    }

    pub fn punched(&mut self, inode: u64, offset: u64, length: u64) {
        self.record(KIND_PUNCH, &[&inode.to_le_bytes(), &offset.to_le_bytes(), &length.to_le_bytes()]);
    }

    pub fn renamed(&mut self, from: &[u8], to: &[u8]) {
        self.record(KIND_RENAME, &[&length(from), from, &length(to), to]);
    }

    pub fn linked(&mut self, from: &[u8], to: &[u8]) {
        self.record(KIND_LINK, &[&length(from), from, &length(to), to]);
    }

    pub fn unlinked(&mut self, path: &[u8]) {
        self.record(KIND_UNLINK, &[&length(path), path]);
    }

    /// Returns the token to pass to [`State::sync_ended`].
    pub fn sync_began(&mut self, inode: u64) -> u64 {
        self.token += 1;
        let token = self.token;
        self.record(KIND_SYNC_BEGIN, &[&inode.to_le_bytes(), &token.to_le_bytes()]);
        token
    }

    pub fn sync_ended(&mut self, token: u64) {
        self.record(KIND_SYNC_END, &[&token.to_le_bytes()]);
    }

    pub fn unsupported(&mut self, what: &str) {
        self.record(KIND_UNSUPPORTED, &[&length(what.as_bytes()), what.as_bytes()]);
    }

    fn record(&mut self, kind: u8, parts: &[&[u8]]) {
        let size = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(4 + size);
        bytes.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        bytes.push(kind);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            // SAFETY: the bytes outlive the call.
            let count = unsafe { libc::syscall(libc::SYS_write, self.file, rest.as_ptr(), rest.len()) };
            match usize::try_from(count) {
                Ok(count) if count > 0 => rest = &rest[count..],
                // The reader of the log reports the torn record.
                _ => return,
            }
        }
    }
}

fn length(path: &[u8]) -> [u8; 2] {
    u16::try_from(path.len()).unwrap_or(u16::MAX).to_le_bytes()
}
