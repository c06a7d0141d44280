//! The bytes of an extent: its head, its seal, and the heads of its chunks (docs/contents.md).
//!
//! Promises: a head is read only where it was written, because its checksum covers the extent's salt and its place; every
//! length that is returned is within its bound.

use crate::reference::{ContentId, ContentRef};

/// Chunks begin at multiples of this, so that punching one gives back all of its space.
pub(crate) const UNIT_BYTES: u64 = 4096;
/// Each of these has a checksum of its own, so that a small range of a large chunk is checked without reading all of it.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;
/// The longest chunk. Its head still fits into one unit.
pub const CHUNK_BYTES_MAX: u64 = 32 * 1024 * 1024;

const EXTENT_MARKER: [u8; 8] = *b"LZLEXTN1";
const EXTENT_HEAD_BYTES: usize = 40;
/// The head is there twice: without its salt no chunk of the extent can be read.
pub(crate) const EXTENT_HEAD_COPY_OFFSET: usize = 2048;
pub(crate) const SEAL_OFFSET: u64 = 1024;
pub(crate) const SEAL_BYTES: usize = 16;
const SEAL_MARKER: [u8; 4] = *b"LZLS";
/// The first chunk begins behind the head.
pub(crate) const CHUNKS_OFFSET: u64 = UNIT_BYTES;

const CHUNK_HEAD_FIXED_BYTES: usize = 40;
const COMPLETE_MARKER: [u8; 4] = *b"LZLC";
const BEGUN_MARKER: [u8; 4] = *b"LZLB";
const FORGOTTEN_MARKER: [u8; 4] = *b"LZLX";

const PREFIX: &str = "extent-";
const SUFFIX: &str = ".bytes";

pub(crate) fn name(number: u32) -> String {
    format!("{PREFIX}{number:010}{SUFFIX}")
}

/// The number of the extent with this name.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    (digits.len() == 10).then(|| digits.parse().ok())?
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn round_up(bytes: u64, unit: u64) -> u64 {
    bytes.div_ceil(unit) * unit
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExtentHead {
    pub(crate) number: u32,
    pub(crate) store: u64,
    pub(crate) salt: u64,
}

impl ExtentHead {
    /// The first unit of a new extent.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut head = [0; EXTENT_HEAD_BYTES];
        head[..8].copy_from_slice(&EXTENT_MARKER);
        head[8..12].copy_from_slice(&self.number.to_le_bytes());
        head[16..24].copy_from_slice(&self.store.to_le_bytes());
        head[24..32].copy_from_slice(&self.salt.to_le_bytes());
        let checksum = crc32fast::hash(&head[..36]);
        head[36..].copy_from_slice(&checksum.to_le_bytes());
        let mut unit = vec![0; UNIT_BYTES as usize];
        unit[..EXTENT_HEAD_BYTES].copy_from_slice(&head);
        unit[EXTENT_HEAD_COPY_OFFSET..EXTENT_HEAD_COPY_OFFSET + EXTENT_HEAD_BYTES].copy_from_slice(&head);
        unit
    }

    /// From the first unit: the head, or its copy.
    pub(crate) fn read(unit: &[u8]) -> Option<ExtentHead> {
        [0, EXTENT_HEAD_COPY_OFFSET]
            .into_iter()
            .find_map(|at| ExtentHead::read_one(unit.get(at..at + EXTENT_HEAD_BYTES)?))
    }

    fn read_one(head: &[u8]) -> Option<ExtentHead> {
        if head[..8] != EXTENT_MARKER || u32_at(head, 36)? != crc32fast::hash(&head[..36]) {
            return None;
        }
        Some(ExtentHead { number: u32_at(head, 8)?, store: u64_at(head, 16)?, salt: u64_at(head, 24)? })
    }
}

/// Says where the last chunk ends.
pub(crate) fn write_seal(salt: u64, end: u64) -> [u8; SEAL_BYTES] {
    let mut bytes = [0; SEAL_BYTES];
    bytes[..4].copy_from_slice(&SEAL_MARKER);
    bytes[8..].copy_from_slice(&end.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&bytes[8..]);
    bytes[4..8].copy_from_slice(&hasher.finalize().to_le_bytes());
    bytes
}

/// The end that the seal in the first unit tells, if there is a seal.
pub(crate) fn read_seal(unit: &[u8], salt: u64) -> Option<u64> {
    let bytes = unit.get(SEAL_OFFSET as usize..SEAL_OFFSET as usize + SEAL_BYTES)?;
    let end = u64_at(bytes, 8)?;
    (write_seal(salt, end) == bytes).then_some(end)
}

/// Where a chunk lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkPlace {
    pub(crate) extent: u32,
    /// In units from the beginning of the extent.
    pub(crate) unit: u32,
}

impl ChunkPlace {
    pub(crate) fn at(extent: u32, offset: u64) -> ChunkPlace {
        debug_assert_eq!(offset % UNIT_BYTES, 0);
        ChunkPlace { extent, unit: (offset / UNIT_BYTES) as u32 }
    }

    pub(crate) fn offset(self) -> u64 {
        u64::from(self.unit) * UNIT_BYTES
    }

    pub(crate) fn content(self, nonce: u64, length: u64) -> ContentRef {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.extent.to_le_bytes());
        id[4..8].copy_from_slice(&self.unit.to_le_bytes());
        id[8..].copy_from_slice(&nonce.to_le_bytes());
        ContentRef::new(ContentId(id), length)
    }

    /// The place and the nonce that a reference names.
    pub(crate) fn of(content: &ContentRef) -> (ChunkPlace, u64) {
        let id = &content.id.0;
        let [a, b, c, d, e, f, g, h, nonce @ ..] = *id;
        let place =
            ChunkPlace { extent: u32::from_le_bytes([a, b, c, d]), unit: u32::from_le_bytes([e, f, g, h]) };
        (place, u64::from_le_bytes(nonce))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// Its writer has not finished it, and may be dead.
    Begun,
    Complete,
    /// Forgotten, on a file system that cannot give its space back.
    Forgotten,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ChunkHead {
    pub(crate) state: ChunkState,
    /// Tells this chunk from every other that ever lay here.
    pub(crate) nonce: u64,
    /// Bytes of content.
    pub(crate) length: u32,
    /// Where the content begins, from the head.
    pub(crate) data_offset: u32,
    /// The space of the chunk, from the head, in bytes.
    pub(crate) space: u32,
    pub(crate) written_unix_ms: u64,
    /// Of each block. The checksum of a block covers the nonce and the number of the block too.
    pub(crate) checksums: Vec<u32>,
}

pub(crate) fn block_count(length: u64) -> usize {
    length.div_ceil(BLOCK_BYTES as u64) as usize
}

/// How long the head of a chunk of this length is.
pub(crate) fn head_bytes(length: u64) -> usize {
    CHUNK_HEAD_FIXED_BYTES + 4 * block_count(length)
}

pub(crate) fn block_checksum(nonce: u64, number: usize, block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&nonce.to_le_bytes());
    hasher.update(&(number as u32).to_le_bytes());
    hasher.update(block);
    hasher.finalize()
}

fn head_checksum(salt: u64, place: ChunkPlace, head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&place.extent.to_le_bytes());
    hasher.update(&place.unit.to_le_bytes());
    hasher.update(&head[..4]);
    hasher.update(&head[8..]);
    hasher.finalize()
}

/// Whether a unit that is no head may have been one, before it was damaged. What a crash left half written does not begin
/// like a head, except by chance.
pub(crate) fn resembles_head(unit: &[u8]) -> bool {
    let is_near =
        |marker: [u8; 4]| unit.iter().zip(marker).filter(|(found, byte)| *found == byte).count() >= 3;
    [COMPLETE_MARKER, BEGUN_MARKER, FORGOTTEN_MARKER].into_iter().any(is_near)
}

impl ChunkHead {
    pub(crate) fn write(&self, salt: u64, place: ChunkPlace, out: &mut [u8]) {
        let marker = match self.state {
            ChunkState::Begun => BEGUN_MARKER,
            ChunkState::Complete => COMPLETE_MARKER,
            ChunkState::Forgotten => FORGOTTEN_MARKER,
        };
        let out = &mut out[..CHUNK_HEAD_FIXED_BYTES + 4 * self.checksums.len()];
        out[..4].copy_from_slice(&marker);
        out[8..16].copy_from_slice(&self.nonce.to_le_bytes());
        out[16..20].copy_from_slice(&self.length.to_le_bytes());
        out[20..24].copy_from_slice(&self.data_offset.to_le_bytes());
        out[24..28].copy_from_slice(&self.space.to_le_bytes());
        out[28..32].fill(0);
        out[32..40].copy_from_slice(&self.written_unix_ms.to_le_bytes());
        for (checksum, out) in self.checksums.iter().zip(out[CHUNK_HEAD_FIXED_BYTES..].chunks_exact_mut(4)) {
            out.copy_from_slice(&checksum.to_le_bytes());
        }
        let checksum = head_checksum(salt, place, out);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
    }

    /// `None` unless a head was written at this place. `bytes` are those that lie there, enough of them.
    pub(crate) fn read(salt: u64, place: ChunkPlace, bytes: &[u8]) -> Option<ChunkHead> {
        let state = match *bytes.first_chunk::<4>()? {
            COMPLETE_MARKER => ChunkState::Complete,
            BEGUN_MARKER => ChunkState::Begun,
            FORGOTTEN_MARKER => ChunkState::Forgotten,
            _ => return None,
        };
        let length = u32_at(bytes, 16)?;
        // Bounded before it says how much to read.
        if u64::from(length) > CHUNK_BYTES_MAX {
            return None;
        }
        let checksum_count = if state == ChunkState::Complete { block_count(length.into()) } else { 0 };
        let head = bytes.get(..CHUNK_HEAD_FIXED_BYTES + 4 * checksum_count)?;
        if u32_at(head, 4)? != head_checksum(salt, place, head) {
            return None;
        }
        let (data_offset, space) = (u32_at(head, 20)?, u32_at(head, 24)?);
        let is_within = u64::from(data_offset) + u64::from(length) <= u64::from(space);
        if !is_within
            || !u64::from(space).is_multiple_of(UNIT_BYTES)
            || space == 0
            || (data_offset as usize) < head.len()
        {
            return None;
        }
        let checksums =
            head[CHUNK_HEAD_FIXED_BYTES..].chunks_exact(4).filter_map(|four| u32_at(four, 0)).collect();
        let written_unix_ms = u64_at(head, 32)?;
        Some(ChunkHead {
            state,
            nonce: u64_at(head, 8)?,
            length,
            data_offset,
            space,
            written_unix_ms,
            checksums,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        assert_eq!(name(7), "extent-0000000007.bytes");
        assert_eq!(number_of(&name(u32::MAX)), Some(u32::MAX));
        for other in ["extent-7.bytes", "extent-9999999999.bytes", "extent-0000000007.bytes.tmp", "x"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn an_extent_head_survives_damage_of_one_copy() {
        let head = ExtentHead { number: 3, store: 4, salt: 5 };
        let unit = head.write();
        for at in [0, 12, 39, EXTENT_HEAD_COPY_OFFSET + 25] {
            let mut damaged = unit.clone();
            damaged[at] ^= 1;
            assert_eq!(ExtentHead::read(&damaged), Some(head));
            damaged[(at + EXTENT_HEAD_COPY_OFFSET) % UNIT_BYTES as usize] ^= 1;
            assert_eq!(ExtentHead::read(&damaged), None);
        }
    }

    #[test]
    fn a_chunk_head_is_read_where_it_was_written_and_undamaged() {
        let head = ChunkHead {
            state: ChunkState::Complete,
            nonce: 99,
            length: 3 * BLOCK_BYTES as u32 + 1,
            data_offset: 64,
            space: 4 * BLOCK_BYTES as u32,
            written_unix_ms: 12345,
            checksums: vec![1, 2, 3, 4],
        };
        let place = ChunkPlace { extent: 1, unit: 2 };
        let mut bytes = vec![0; UNIT_BYTES as usize];
        head.write(7, place, &mut bytes);
        assert_eq!(ChunkHead::read(7, place, &bytes), Some(head.clone()));
        assert_eq!(ChunkHead::read(8, place, &bytes), None);
        assert_eq!(ChunkHead::read(7, ChunkPlace { extent: 1, unit: 3 }, &bytes), None);
        for bit in 0..head_bytes(head.length.into()) * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ChunkHead::read(7, place, &damaged), None, "bit {bit}");
        }
        for length in 0..head_bytes(head.length.into()) {
            assert_eq!(ChunkHead::read(7, place, &bytes[..length]), None);
        }
        let content = place.content(99, 5);
        assert_eq!(ChunkPlace::of(&content), (place, 99));
    }

    #[test]
    fn the_longest_head_fits_into_a_unit() {
        assert!(head_bytes(CHUNK_BYTES_MAX) <= UNIT_BYTES as usize);
    }
}
