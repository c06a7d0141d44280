//! The files of a directory of extents: opened, read, written, given room, punched, made durable.
//!
//! Promises: a file's content is durable after [`ExtentFile::sync_data`], its name after [`ExtentFiles::sync`]. Only its
//! owner can read it. The store reaches the operating system through these traits alone, so a test can take its place.
//! On Unix the directory is opened once, and stays the same one wherever it is moved and whatever is mounted over it.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAccess {
    Write,
    /// Creates the file; it is an error if there is one.
    Create,
}

pub trait ExtentFiles: fmt::Debug + Send + Sync + 'static {
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str, access: FileAccess) -> io::Result<Arc<dyn ExtentFile>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations and removals durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file. Bytes that were never written are zero.
pub trait ExtentFile: fmt::Debug + Send + Sync + 'static {
    fn size_bytes(&self) -> io::Result<u64>;
    /// Fills `out`. Reading behind the end is an error.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&self, size_bytes: u64) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;

    /// Fills `out` if that needs no disk; `false` if it does, or if nobody knows.
    fn read_cached(&self, _offset: u64, _out: &mut [u8]) -> io::Result<bool> {
        Ok(false)
    }

    /// Makes room, so that writing there does not fail for want of space, and lengthens the file to hold it. A file system
    /// that cannot promise room only lengthens the file.
    fn allocate(&self, offset: u64, size_bytes: u64) -> io::Result<()> {
        self.set_len(self.size_bytes()?.max(offset + size_bytes))
    }

    /// Turns a range into zeros and gives its space back; `false` if the file system cannot.
    fn punch(&self, _offset: u64, _size_bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// The space that the file takes.
    fn allocated_bytes(&self) -> io::Result<u64> {
        self.size_bytes()
    }
}

/// A real directory.
pub(crate) struct ExtentDirectory {
    #[cfg(unix)]
    directory: File,
    #[cfg(not(unix))]
    directory: std::path::PathBuf,
}

impl fmt::Debug for ExtentDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the extents of {:?}", self.directory)
    }
}

impl ExtentDirectory {
    /// Creates the directory if it is missing, durably and for its owner alone.
    pub(crate) fn open(directory: &Path) -> io::Result<ExtentDirectory> {
        files::create_secret_directory(directory)?;
        #[cfg(unix)]
        let directory = File::open(directory)?;
        #[cfg(not(unix))]
        let directory = directory.to_owned();
        Ok(ExtentDirectory { directory })
    }
}

#[cfg(unix)]
impl ExtentFiles for ExtentDirectory {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            // A name that is not UTF-8 is not one of ours.
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        names.retain(|name| name != "." && name != "..");
        Ok(names)
    }

    fn open(&self, name: &str, access: FileAccess) -> io::Result<Arc<dyn ExtentFile>> {
        use rustix::fs::{Mode, OFlags};
        let how = OFlags::CLOEXEC
            | OFlags::RDWR
            | match access {
                FileAccess::Write => OFlags::empty(),
                FileAccess::Create => OFlags::CREATE | OFlags::EXCL,
            };
        let open = || rustix::fs::openat(&self.directory, name, how, Mode::RUSR | Mode::WUSR);
        let file: File = rustix::io::retry_on_intr(open)?.into();
        Ok(Arc::new(RealFile(file)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, name, rustix::fs::AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Here the directory is a path.
#[cfg(not(unix))]
impl ExtentFiles for ExtentDirectory {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: FileAccess) -> io::Result<Arc<dyn ExtentFile>> {
        let mut how = std::fs::OpenOptions::new();
        how.read(true).write(true).create_new(access == FileAccess::Create);
        Ok(Arc::new(RealFile(how.open(self.directory.join(name))?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.directory.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct RealFile(File);

impl ExtentFile for RealFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, out, offset)
    }

    #[cfg(windows)]
    fn read(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.0, out, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => {
                    offset += count as u64;
                    out = &mut out[count..];
                }
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(windows)]
    fn write(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(&self.0, bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    offset += count as u64;
                    bytes = &bytes[count..];
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        self.0.set_len(size_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn read_cached(&self, offset: u64, out: &mut [u8]) -> io::Result<bool> {
        use rustix::io::{Errno, ReadWriteFlags};
        let mut parts = [io::IoSliceMut::new(out)];
        match rustix::io::preadv2(&self.0, &mut parts, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) => Ok(count == out.len()),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR | Errno::INVAL) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, offset: u64, size_bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.0, FallocateFlags::empty(), offset, size_bytes) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_len(self.size_bytes()?.max(offset + size_bytes)),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn punch(&self, offset: u64, size_bytes: u64) -> io::Result<bool> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.0, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, size_bytes) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(unix)]
    fn allocated_bytes(&self) -> io::Result<u64> {
        Ok(std::os::unix::fs::MetadataExt::blocks(&self.0.metadata()?) * 512)
    }
}
