//! Syncs a file in small steps while it is being written, so that no single sync has much to do.
//!
//! A fold writes hundreds of megabytes. If one sync at the end made all of them durable, it would occupy the disk for
//! long, and every commit waits for its own sync on the same disk (docs/decisions/0021-folding.md has the figures).
//!
//! Promises: about [`PacedSync::bytes_max`] bytes at most are written and not synced. Leaves to others: what must be
//! durable when. A sync that nobody asked for is never wrong, because what it makes durable belongs to no transaction
//! yet.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::StorageBackend;

#[derive(Debug)]
pub(crate) struct PacedSync {
    bytes_max: u64,
    unsynced_bytes: AtomicU64,
}

impl PacedSync {
    pub(crate) fn new(bytes_max: u64) -> PacedSync {
        PacedSync { bytes_max, unsynced_bytes: AtomicU64::new(0) }
    }

    /// Hears that this much was written, and syncs the file if it is time.
    pub(crate) fn wrote(&self, file: &impl StorageBackend, size_bytes: usize) -> io::Result<()> {
        let size_bytes = size_bytes as u64;
        if self.unsynced_bytes.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes < self.bytes_max {
            return Ok(());
        }
        self.synced();
        file.sync_data()
    }

    /// Hears that the file is being synced anyway.
    pub(crate) fn synced(&self) {
        self.unsynced_bytes.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    /// A file that counts its syncs.
    #[derive(Debug)]
    struct Counting(InMemoryBackend, AtomicU64);

    impl StorageBackend for Counting {
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
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.0.write(offset, data)
        }
    }

    #[test]
    fn a_file_is_synced_whenever_enough_was_written() {
        let file = Counting(InMemoryBackend::new(), AtomicU64::new(0));
        let paced = PacedSync::new(100);
        let syncs_after = |size_bytes| {
            paced.wrote(&file, size_bytes).unwrap();
            file.1.load(Ordering::Relaxed)
        };
        assert_eq!([40, 40, 20, 99, 1, 500, 60].map(syncs_after), [0, 0, 1, 1, 2, 3, 3]);
        // A sync for another reason counts too.
        paced.synced();
        assert_eq!([60, 40].map(syncs_after), [3, 4]);
    }
}
