//! One file of the commit log: a head that says what it is, then records.
//!
//! ```text
//! "LZLSEGM2" · first sequence, u64 · length of the file, u64 · salt, u64 · store id, u64 · CRC-32 of these, u32   at 0
//! "LZLS" or "LZLC" · CRC-32 of salt, sequence and these letters, u32 · sequence, u64                 at 512: the seal
//! records                                                                                            from 4096
//! ```
//!
//! The file has its full length from the beginning, filled with zeros or with the content of an older segment. A sync
//! then has no blocks to allocate, which makes it cheap. The seal tells up to which record everything was synced. It
//! is written when there is nothing else to do, and not synced itself. With it, a last record that was damaged after
//! it was acknowledged can be told from one that a power cut tore. "LZLC" says that the log continues in another
//! segment.

use std::io;

use redb::StorageBackend;

use super::record::Salt;
use crate::directory_files::{Access, AnyFile, StoreFiles};
use crate::store_id::StoreId;

const MARKER: [u8; 8] = *b"LZLSEGM2";
const HEAD_BYTES: usize = 44;
/// Up to store format 3 a head had no store id.
const MARKER_WITHOUT_ID: [u8; 8] = *b"LZLSEGM1";
const HEAD_BYTES_WITHOUT_ID: usize = 36;
const SEAL_MARKER: [u8; 4] = *b"LZLS";
const CLOSED_MARKER: [u8; 4] = *b"LZLC";
const SEAL_OFFSET: u64 = 512;
const SEAL_BYTES: usize = 16;
pub(crate) const RECORDS_OFFSET: u64 = 4096;
/// Zeros are written and synced in chunks of this size: a commit that comes meanwhile waits for no more than this.
const CHUNK_BYTES: usize = 1024 * 1024;

const PREFIX: &str = "commits-";
const SUFFIX: &str = ".log";
/// Files for the next segments, before they are used. A fold releases about as many segments as are filled while it runs;
/// these are enough for the log that makes a fold due ([`docs/log.md`](../../../../docs/log.md)).
pub(crate) const SPARES: [&str; 4] =
    ["commits.spare", "commits.spare.2", "commits.spare.3", "commits.spare.4"];
/// The name of such a file while it is made.
pub(crate) const SPARE_NEW: &str = "commits.spare.new";
/// The file that the commit thread makes itself when no other is ready. The reserve has this name too once it is taken.
pub(crate) const HASTY: &str = "commits.hasty";
/// A file for a segment that only changes which free space may use, and its name while it is made.
pub(crate) const RESERVE: &str = "commits.reserve";
pub(crate) const RESERVE_NEW: &str = "commits.reserve.new";

/// The name of the segment that begins with this record.
pub(crate) fn name(first: u64) -> String {
    format!("{PREFIX}{first:020}{SUFFIX}")
}

/// The first record of the segment with this name.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

/// Whether a file of this name was being made, or was made for later.
pub(crate) fn is_unused(name: &str) -> bool {
    SPARES.contains(&name) || [SPARE_NEW, HASTY, RESERVE_NEW].contains(&name)
}

/// Whether a file of this name belongs to the log.
pub(crate) fn is_ours(name: &str) -> bool {
    is_unused(name) || name == RESERVE || first_of(name).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) first: u64,
    pub(crate) length: u64,
    pub(crate) salt: Salt,
    /// The store that it belongs to; `None` in a segment from before format 4.
    pub(crate) store: Option<StoreId>,
}

impl Head {
    fn write(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&MARKER);
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.store.map_or(0, StoreId::number).to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..40]);
        bytes[40..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let has_id = bytes[..8] == MARKER;
        if !has_id && bytes[..8] != MARKER_WITHOUT_ID {
            return None;
        }
        let size_bytes = if has_id { HEAD_BYTES } else { HEAD_BYTES_WITHOUT_ID };
        let (content, checksum) = bytes[..size_bytes].split_at(size_bytes - 4);
        if checksum != crc32fast::hash(content).to_le_bytes() {
            return None;
        }
        let store = if has_id { Some(StoreId::from_number(number(32)?)?) } else { None };
        Some(Head { first: number(8)?, length: number(16)?, salt: Salt(number(24)?), store })
    }
}

/// What the segment says was synced.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Seal {
    /// Everything up to this record was synced.
    pub(crate) sequence: u64,
    /// The log continues in another segment.
    pub(crate) is_closed: bool,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) head: Head,
    pub(crate) file: AnyFile,
}

impl Segment {
    /// Turns an open file of this name into the segment that begins with record `head.first`, durably.
    pub(crate) fn begin(
        files: &dyn StoreFiles,
        old_name: &str,
        file: AnyFile,
        head: Head,
    ) -> io::Result<Segment> {
        file.write(SEAL_OFFSET, &[0; SEAL_BYTES])?;
        file.write(0, &head.write())?;
        file.sync_data()?;
        files.rename(old_name, &name(head.first))?;
        files.sync()?;
        Ok(Segment { head, file })
    }

    /// Opens a segment. Damage is an error of the kind `InvalidData`.
    pub(crate) fn open(files: &dyn StoreFiles, first: u64) -> io::Result<Segment> {
        let file = files.open(&name(first), Access::Read)?;
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut head = [0; HEAD_BYTES];
        let length = file.len()?;
        if length < RECORDS_OFFSET {
            return Err(damaged("it is too short"));
        }
        file.read(0, &mut head)?;
        let head = Head::read(&head).ok_or_else(|| damaged("its head is damaged"))?;
        if head.first != first {
            return Err(damaged("its head belongs to another segment"));
        }
        if length < head.length {
            return Err(damaged("it was cut short"));
        }
        Ok(Segment { head, file })
    }

    /// Everything behind the head.
    pub(crate) fn read_records(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (self.head.length.saturating_sub(RECORDS_OFFSET)) as usize];
        self.file.read(RECORDS_OFFSET, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn write_seal(&self, seal: Seal) -> io::Result<()> {
        self.file.write(SEAL_OFFSET, &self.seal_bytes(seal))
    }

    /// The seal; an empty one if it cannot be read.
    pub(crate) fn read_seal(&self) -> io::Result<Seal> {
        let mut bytes = [0; SEAL_BYTES];
        self.file.read(SEAL_OFFSET, &mut bytes)?;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&bytes[8..]);
        let seal = Seal { sequence: u64::from_le_bytes(sequence), is_closed: bytes[..4] == CLOSED_MARKER };
        Ok(if self.seal_bytes(seal) == bytes { seal } else { Seal::default() })
    }

    fn seal_bytes(&self, seal: Seal) -> [u8; SEAL_BYTES] {
        let mut bytes = [0; SEAL_BYTES];
        bytes[..4].copy_from_slice(if seal.is_closed { &CLOSED_MARKER } else { &SEAL_MARKER });
        bytes[8..].copy_from_slice(&seal.sequence.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.head.salt.0.to_le_bytes());
        hasher.update(&bytes[8..]);
        hasher.update(&bytes[..4]);
        bytes[4..8].copy_from_slice(&hasher.finalize().to_le_bytes());
        bytes
    }
}

/// The store that the head of a segment names, if the head can be read and names one. Works while the segment is open.
pub(crate) fn store_of(files: &dyn StoreFiles, first: u64) -> Option<StoreId> {
    let bytes = files.read(&name(first), HEAD_BYTES).ok()?;
    Head::read(bytes.first_chunk()?)?.store
}

/// Creates a file of this length for a segment, fully allocated.
pub(crate) fn create(files: &dyn StoreFiles, name: &str, length: u64, access: Access) -> io::Result<AnyFile> {
    let file = files.open(name, access)?;
    match fill(&file, length) {
        Ok(()) => Ok(file),
        Err(error) => {
            // Give the space back: something else may need it.
            let _ = files.remove(name);
            Err(error)
        }
    }
}

fn fill(file: &AnyFile, length: u64) -> io::Result<()> {
    file.set_len(length)?;
    let zeros = vec![0; CHUNK_BYTES.min(length as usize)];
    let mut offset = 0;
    while offset < length {
        let size = (length - offset).min(zeros.len() as u64);
        file.write(offset, &zeros[..size as usize])?;
        file.sync_data()?;
        offset += size;
    }
    Ok(())
}
