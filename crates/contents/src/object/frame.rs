//! The bytes of an object: blocks of 64 KiB, each with a checksum behind it (docs/contents.md).
//!
//! Promises: a range of a content is one range of its object. A block passes for no other block, of this or of another content.

use bytes::{Bytes, BytesMut};

use crate::reference::ContentId;

pub(crate) const BLOCK_BYTES: u64 = 64 * 1024;
const CHECKSUM_BYTES: u64 = 4;
const FRAME_BYTES: u64 = BLOCK_BYTES + CHECKSUM_BYTES;

/// The size of the object that has a content of this length.
pub(crate) fn object_bytes(length: u64) -> u64 {
    length + length.div_ceil(BLOCK_BYTES) * CHECKSUM_BYTES
}

/// The length of the content in an object of this size. `None` if no content makes such an object.
pub(crate) fn content_bytes(object_bytes: u64) -> Option<u64> {
    let (whole, rest) = (object_bytes / FRAME_BYTES, object_bytes % FRAME_BYTES);
    match rest {
        0 => Some(whole * BLOCK_BYTES),
        _ => Some(whole * BLOCK_BYTES + rest.checked_sub(CHECKSUM_BYTES).filter(|bytes| *bytes > 0)?),
    }
}

/// Where the frame of a block begins in its object.
pub(crate) fn frame_offset(block: u64) -> u64 {
    block * FRAME_BYTES
}

/// How many bytes the block has, and its frame.
pub(crate) fn block_sizes(block: u64, length: u64) -> (usize, usize) {
    let bytes = (length - block * BLOCK_BYTES).min(BLOCK_BYTES);
    (bytes as usize, (bytes + CHECKSUM_BYTES) as usize)
}

fn checksum(id: ContentId, block: u64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES as usize] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.0);
    hasher.update(&block.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize().to_le_bytes()
}

/// The bytes of a block from its frame; `None` if they do not match their checksum.
pub(crate) fn read_frame(id: ContentId, block: u64, frame: &[u8]) -> Option<&[u8]> {
    let (bytes, found) = frame.split_last_chunk::<{ CHECKSUM_BYTES as usize }>()?;
    (checksum(id, block, bytes) == *found).then_some(bytes)
}

/// An object that is being put together, block by block, so that it takes no more memory than it has bytes.
pub(crate) struct FrameBuffer {
    id: ContentId,
    frames: Vec<Bytes>,
    current: BytesMut,
    pub(crate) length: u64,
}

impl FrameBuffer {
    pub(crate) fn new(id: ContentId) -> FrameBuffer {
        FrameBuffer { id, frames: Vec::new(), current: BytesMut::new(), length: 0 }
    }

    pub(crate) fn id(&self) -> ContentId {
        self.id
    }

    /// Adds some of these bytes, up to the end of the block. Returns how many.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> usize {
        if self.current.is_empty() && !self.frames.is_empty() {
            self.current.reserve(FRAME_BYTES as usize);
        }
        let room = BLOCK_BYTES as usize - self.current.len();
        let size = room.min(bytes.len());
        self.current.extend_from_slice(&bytes[..size]);
        self.length += size as u64;
        if size == room {
            self.end_block();
        }
        size
    }

    fn end_block(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let checksum = checksum(self.id, self.frames.len() as u64, &self.current);
        self.current.extend_from_slice(&checksum);
        self.frames.push(std::mem::take(&mut self.current).freeze());
    }

    pub(crate) fn finish(mut self) -> Vec<Bytes> {
        self.end_block();
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_both_ways() {
        for length in [1, 2, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES, 8 << 20] {
            assert_eq!(content_bytes(object_bytes(length)), Some(length));
        }
        for size in [1, 4, FRAME_BYTES + 1, FRAME_BYTES + 4] {
            assert_eq!(content_bytes(size), None, "{size}");
        }
    }

    #[test]
    fn a_block_passes_for_no_other() {
        let id = ContentId([7; 16]);
        let mut buffer = FrameBuffer::new(id);
        let bytes = vec![5; 3 * BLOCK_BYTES as usize + 10];
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = &rest[buffer.add(rest)..];
        }
        assert_eq!(buffer.length, bytes.len() as u64);
        let object = buffer.finish().concat();
        assert_eq!(object.len() as u64, object_bytes(bytes.len() as u64));
        let frame = |block: u64| {
            let (_, size) = block_sizes(block, bytes.len() as u64);
            &object[frame_offset(block) as usize..][..size]
        };
        for block in 0..4 {
            let found = read_frame(id, block, frame(block));
            assert_eq!(found.map(<[u8]>::len), Some(block_sizes(block, bytes.len() as u64).0));
            assert_eq!(read_frame(id, block + 1, frame(block)), None);
            assert_eq!(read_frame(ContentId([8; 16]), block, frame(block)), None);
        }
        let mut changed = frame(1).to_vec();
        changed[100] ^= 1;
        assert_eq!(read_frame(id, 1, &changed), None);
    }
}
