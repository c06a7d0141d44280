//! Replacements for the functions of the C library that change files: each makes the system call and logs it.
//!
//! `open` and its variants take a variable number of arguments in C. On the 64-bit Linux systems this is built for,
//! such an argument is passed like an ordinary third or fourth one, and it is only read when the flags say that it is
//! there.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::slice;

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use crate::log::{Log, State, log};

/// The absolute path that the kernel will use; `None` if it cannot be determined.
///
/// # Safety
/// `path` must be null or end with a zero byte.
unsafe fn absolute(directory: c_int, path: *const c_char) -> Option<Vec<u8>> {
    if path.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller promises the rest.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.starts_with(b"/") {
        return Some(path.to_vec());
    }
    let base = if directory == libc::AT_FDCWD {
        std::env::current_dir().ok()?
    } else {
        std::fs::read_link(format!("/proc/self/fd/{directory}")).ok()?
    };
    let mut whole = base.as_os_str().as_bytes().to_vec();
    if !path.is_empty() && path != b"." {
        whole.push(b'/');
        whole.extend_from_slice(path);
    }
    Some(whole)
}

/// The file's type, length and inode.
fn status(file: c_int) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for a `stat`, and it is only read if the call filled it.
    unsafe { (libc::fstat(file, status.as_mut_ptr()) == 0).then(|| status.assume_init()) }
}

/// The log's state and the file's status, if changes to this file are logged.
fn logged(file: c_int) -> Option<(std::sync::MutexGuard<'static, State>, libc::stat)> {
    let log = log()?;
    let status = status(file)?;
    if !matches!(status.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR) {
        return None;
    }
    let state = log.state();
    if !state.knows(status.st_dev, status.st_ino) {
        return None;
    }
    // Again, under the lock: appending needs the current length, and nothing else changes it now.
    let status = self::status(file)?;
    Some((state, status))
}

/// The log and the path, if the path is covered.
///
/// # Safety
/// `path` must be null or end with a zero byte.
unsafe fn covered(directory: c_int, path: *const c_char) -> Option<(&'static Log, Vec<u8>)> {
    let log = log()?;
    // SAFETY: as the caller promises.
    let path = unsafe { absolute(directory, path) }?;
    log.covers(&path).then_some((log, path))
}

unsafe fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    let open = || unsafe { libc::syscall(libc::SYS_openat, directory, path, flags, mode as c_uint) as c_int };
    // SAFETY: the caller of `open` passes a path that ends with a zero byte.
    let Some((log, name)) = (unsafe { covered(directory, path) }) else { return open() };
    let mut state = log.state();
    // SAFETY: the same path.
    let existed = unsafe { libc::syscall(libc::SYS_faccessat, directory, path, libc::F_OK) } == 0;
    let file = open();
    if file < 0 {
        return file;
    }
    if let Some(status) = status(file) {
        state.know(status.st_dev, status.st_ino);
        if !existed {
            state.created(status.st_ino, &name);
        } else if flags & libc::O_TRUNC != 0 {
            state.set_length(status.st_ino, 0);
        }
    }
    file
}

/// Makes the write and logs the bytes that were actually written.
///
/// # Safety
/// The parts must be readable for their whole length.
unsafe fn write_parts(
    file: c_int,
    parts: &[iovec],
    offset: Option<off_t>,
    write: impl FnOnce() -> c_long,
) -> ssize_t {
    let Some((mut state, status)) = logged(file) else { return write() as ssize_t };
    let offset = match offset {
        Some(offset) => offset,
        // SAFETY: plain numbers.
        None => unsafe {
            if libc::fcntl(file, libc::F_GETFL) & libc::O_APPEND != 0 {
                status.st_size
            } else {
                libc::lseek(file, 0, libc::SEEK_CUR)
            }
        },
    };
    let written = write();
    let mut left = usize::try_from(written).unwrap_or(0);
    let mut bytes = Vec::with_capacity(parts.len());
    for part in parts {
        let length = left.min(part.iov_len);
        if length > 0 {
            // SAFETY: the kernel has just read this many bytes from there.
            bytes.push(unsafe { slice::from_raw_parts(part.iov_base.cast::<u8>(), length) });
        }
        left -= length;
    }
    if written > 0 {
        state.written(status.st_ino, offset as u64, &bytes);
    }
    written as ssize_t
}

fn sync(file: c_int, sync: impl FnOnce() -> c_long) -> c_int {
    let token = logged(file).map(|(mut state, status)| state.sync_began(status.st_ino));
    let result = sync();
    if let (Some(token), Some(log), 0) = (token, log(), result) {
        log.state().sync_ended(token);
    }
    result as c_int
}

fn set_length(file: c_int, set: impl FnOnce() -> c_long) -> c_int {
    let Some((mut state, before)) = logged(file) else { return set() as c_int };
    let result = set();
    if result == 0
        && let Some(after) = status(file)
        && after.st_size != before.st_size
    {
        state.set_length(before.st_ino, after.st_size as u64);
    }
    result as c_int
}

fn punch(file: c_int, offset: off_t, length: off_t, punch: impl FnOnce() -> c_long) -> c_int {
    let Some((mut state, status)) = logged(file) else { return punch() as c_int };
    let result = punch();
    if result == 0 {
        state.punched(status.st_ino, offset as u64, length as u64);
    }
    result as c_int
}

unsafe fn rename_at(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    let rename = || unsafe {
        libc::syscall(libc::SYS_renameat2, from_directory, from, to_directory, to, flags) as c_int
    };
    // SAFETY: the caller of `rename` passes paths that end with a zero byte.
    let names = unsafe { covered(from_directory, from).zip(covered(to_directory, to)) };
    let Some(((log, from_name), (_, to_name))) = names else { return rename() };
    let mut state = log.state();
    let result = rename();
    match result {
        0 if flags & !libc::RENAME_NOREPLACE != 0 => state.unsupported("a rename that exchanges"),
        0 => state.renamed(&from_name, &to_name),
        _ => {}
    }
    result
}

unsafe fn link_at(
    from_directory: c_int,
    from: *const c_char,
    to_directory: c_int,
    to: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    let link =
        || unsafe { libc::syscall(libc::SYS_linkat, from_directory, from, to_directory, to, flags) as c_int };
    // SAFETY: the caller of `link` passes paths that end with a zero byte.
    let names = unsafe { covered(from_directory, from).zip(covered(to_directory, to)) };
    let Some(((log, from_name), (_, to_name))) = names else { return link() };
    let mut state = log.state();
    let result = link();
    if result == 0 {
        state.linked(&from_name, &to_name);
    }
    result
}

unsafe fn unlink_at(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    let unlink = || unsafe { libc::syscall(libc::SYS_unlinkat, directory, path, flags) as c_int };
    // SAFETY: the caller of `unlink` passes a path that ends with a zero byte.
    let Some((log, name)) = (unsafe { covered(directory, path) }) else { return unlink() };
    let mut state = log.state();
    let result = unlink();
    if result == 0 {
        state.unlinked(&name);
    }
    result
}

unsafe fn mkdir_at(directory: c_int, path: *const c_char, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments, passed on.
    let make = || unsafe { libc::syscall(libc::SYS_mkdirat, directory, path, mode as c_uint) as c_int };
    // SAFETY: the caller of `mkdir` passes a path that ends with a zero byte.
    let Some((log, name)) = (unsafe { covered(directory, path) }) else { return make() };
    let mut state = log.state();
    let result = make();
    if result == 0 {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: there is room for a `stat`, and it is only read if the call filled it.
        let status = unsafe {
            (libc::fstatat(directory, path, status.as_mut_ptr(), 0) == 0).then(|| status.assume_init())
        };
        if let Some(status) = status {
            state.know(status.st_dev, status.st_ino);
            state.made_directory(status.st_ino, &name);
        }
    }
    result
}

fn one(buffer: *const c_void, count: size_t) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: count }]
}

/// Defines functions; all names in one pair of brackets do the same on a 64-bit system.
macro_rules! stand_ins {
    ($(fn [$($name:ident),+] $arguments:tt -> $result:ty $body:block)*) => {
        $($(
            /// # Safety
            /// As for the function of this name in the C library.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name $arguments -> $result $body
        )+)*
    };
}

// SAFETY, for all functions below: the caller keeps the C library's contract, and the arguments go unchanged to the
// system call of the same name.
stand_ins! {
    fn [open, open64] (path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
    }
    fn [openat, openat64] (directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        unsafe { open_at(directory, path, flags, mode) }
    }
    fn [creat, creat64] (path: *const c_char, mode: mode_t) -> c_int {
        unsafe { open_at(libc::AT_FDCWD, path, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode) }
    }
    fn [write] (file: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
        let write = || unsafe { libc::syscall(libc::SYS_write, file, buffer, count) };
        unsafe { write_parts(file, &one(buffer, count), None, write) }
    }
    fn [writev] (file: c_int, parts: *const iovec, count: c_int) -> ssize_t {
        let write = || unsafe { libc::syscall(libc::SYS_writev, file, parts, count) };
        let parts = unsafe { slice::from_raw_parts(parts, count.max(0) as usize) };
        unsafe { write_parts(file, parts, None, write) }
    }
    fn [pwrite, pwrite64] (file: c_int, buffer: *const c_void, count: size_t, offset: off_t) -> ssize_t {
        let write = || unsafe { libc::syscall(libc::SYS_pwrite64, file, buffer, count, offset) };
        unsafe { write_parts(file, &one(buffer, count), Some(offset), write) }
    }
    fn [pwritev, pwritev64] (file: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t {
        let write = || unsafe { libc::syscall(libc::SYS_pwritev, file, parts, count, offset, 0) };
        let parts = unsafe { slice::from_raw_parts(parts, count.max(0) as usize) };
        unsafe { write_parts(file, parts, Some(offset), write) }
    }
    fn [ftruncate, ftruncate64] (file: c_int, length: off_t) -> c_int {
        set_length(file, || unsafe { libc::syscall(libc::SYS_ftruncate, file, length) })
    }
    fn [fallocate, fallocate64] (file: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
        let allocate = || unsafe { libc::syscall(libc::SYS_fallocate, file, mode, offset, length) };
        match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => set_length(file, allocate),
            libc::FALLOC_FL_PUNCH_HOLE => punch(file, offset, length, allocate),
            _ => {
                if let Some((mut state, _)) = logged(file) {
                    state.unsupported("fallocate that does more than make room or a hole");
                }
                allocate() as c_int
            }
        }
    }
    fn [fsync] (file: c_int) -> c_int {
        sync(file, || unsafe { libc::syscall(libc::SYS_fsync, file) })
    }
    fn [fdatasync] (file: c_int) -> c_int {
        sync(file, || unsafe { libc::syscall(libc::SYS_fdatasync, file) })
    }
    fn [rename] (from: *const c_char, to: *const c_char) -> c_int {
        unsafe { rename_at(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) }
    }
    fn [renameat] (from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char) -> c_int {
        unsafe { rename_at(from_at, from, to_at, to, 0) }
    }
    fn [renameat2] (from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_uint) -> c_int {
        unsafe { rename_at(from_at, from, to_at, to, flags) }
    }
    fn [link] (from: *const c_char, to: *const c_char) -> c_int {
        unsafe { link_at(libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) }
    }
    fn [linkat] (from_at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_int) -> c_int {
        unsafe { link_at(from_at, from, to_at, to, flags) }
    }
    fn [unlink] (path: *const c_char) -> c_int {
        unsafe { unlink_at(libc::AT_FDCWD, path, 0) }
    }
    fn [unlinkat] (directory: c_int, path: *const c_char, flags: c_int) -> c_int {
        unsafe { unlink_at(directory, path, flags) }
    }
    fn [rmdir] (path: *const c_char) -> c_int {
        unsafe { unlink_at(libc::AT_FDCWD, path, libc::AT_REMOVEDIR) }
    }
    fn [mkdir] (path: *const c_char, mode: mode_t) -> c_int {
        unsafe { mkdir_at(libc::AT_FDCWD, path, mode) }
    }
    fn [mkdirat] (directory: c_int, path: *const c_char, mode: mode_t) -> c_int {
        unsafe { mkdir_at(directory, path, mode) }
    }
}
