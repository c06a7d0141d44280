//! The frame of a backup file: one line that names the format, then blocks, each compressed and with a checksum.
//!
//! ```text
//! lazulite backup, format 3\n
//! block: kind u8 · raw size u32 · stored size u32 · crc32 u32 · stored bytes      (numbers little-endian)
//! ```
//!
//! The stored bytes are one LZ4 block, or the raw bytes themselves if those are shorter (then the sizes are equal).
//! Promises: the checksum covers the block's number in the file (u64), the kind, both sizes and the stored bytes, so it
//! detects a block that was lost, duplicated or moved as well as a flipped bit.
//! Leaves to others: what is in a block (`content.rs`).

use std::io::{self, Read};

use crate::BackupError;

pub(crate) const FORMAT: u32 = 3;
/// The first format that holds queues. What is older reads as ever.
pub(crate) const FORMAT_WITH_QUEUES: u32 = 2;
/// The first format that holds blobs.
pub(crate) const FORMAT_WITH_BLOBS: u32 = 3;
const LINE_START: &str = "lazulite backup, format ";
/// Enough for any format number.
const LINE_SIZE_BYTES_MAX: usize = LINE_START.len() + 11;
const HEAD_SIZE_BYTES: usize = 13;
/// No block is larger. It holds the largest row, 1 MiB as the service counts it, in its largest stored form with room
/// to spare, and the row of a blob with 50,000 blocks.
pub(crate) const BLOCK_SIZE_BYTES_MAX: usize = 8 * 1024 * 1024;

pub(crate) fn first_line() -> String {
    format!("{LINE_START}{FORMAT}\n")
}

/// Frames blocks, one after the other.
#[derive(Default)]
pub(crate) struct BlockWriter {
    count: u64,
}

impl BlockWriter {
    /// The block's bytes as they go into the file.
    pub(crate) fn block(&mut self, kind: u8, raw: &[u8]) -> Vec<u8> {
        let compressed = lz4_flex::block::compress(raw);
        let stored = if compressed.len() < raw.len() { &compressed[..] } else { raw };
        self.frame(kind, raw, stored)
    }

    fn frame(&mut self, kind: u8, raw: &[u8], stored: &[u8]) -> Vec<u8> {
        debug_assert!(raw.len() <= BLOCK_SIZE_BYTES_MAX);
        let sizes = [raw.len(), stored.len()].map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        let mut block = Vec::with_capacity(HEAD_SIZE_BYTES + stored.len());
        block.push(kind);
        block.extend_from_slice(&sizes[0].to_le_bytes());
        block.extend_from_slice(&sizes[1].to_le_bytes());
        let checksum = checksum(self.count, &block, stored);
        block.extend_from_slice(&checksum.to_le_bytes());
        block.extend_from_slice(stored);
        self.count += 1;
        block
    }
}

/// A file of these blocks with correct framing, whatever their contents. A fuzzer gets past the checksums with it.
#[doc(hidden)]
pub fn framed<'a>(blocks: impl IntoIterator<Item = (u8, &'a [u8])>) -> Vec<u8> {
    let mut writer = BlockWriter::default();
    let mut file = first_line().into_bytes();
    for (kind, raw) in blocks {
        file.extend_from_slice(&writer.frame(kind, raw, raw));
    }
    file
}

/// Reads blocks, one after the other.
pub(crate) struct BlockReader<R> {
    input: R,
    format: u32,
    count: u64,
    /// Where the last block read begins.
    offset: u64,
    next_offset: u64,
    stored: Vec<u8>,
    raw: Vec<u8>,
    is_compressed: bool,
}

impl<R: Read> BlockReader<R> {
    /// Reads the first line.
    pub(crate) fn open(mut input: R) -> Result<BlockReader<R>, BackupError> {
        let mut line = Vec::with_capacity(LINE_SIZE_BYTES_MAX);
        loop {
            let mut byte = [0];
            match input.read_exact(&mut byte) {
                Ok(()) if byte[0] == b'\n' => break,
                Ok(()) if line.len() < LINE_SIZE_BYTES_MAX => line.push(byte[0]),
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error.into()),
                _ => return Err(BackupError::Foreign),
            }
        }
        let number = std::str::from_utf8(&line).ok().and_then(|line| line.strip_prefix(LINE_START));
        let format = match number.and_then(|number| number.parse::<u32>().ok()) {
            Some(format @ 1..=FORMAT) => format,
            Some(format) if format > FORMAT => return Err(BackupError::NewerFormat(format)),
            _ => return Err(BackupError::Foreign),
        };
        let offset = line.len() as u64 + 1;
        let (stored, raw) = (Vec::new(), Vec::new());
        let (count, next_offset, is_compressed) = (0, offset, false);
        Ok(BlockReader { input, format, count, offset, next_offset, stored, raw, is_compressed })
    }

    pub(crate) fn format(&self) -> u32 {
        self.format
    }

    /// The next block's kind and raw bytes. The caller stops at the end block, so reaching the end of the file here is
    /// damage.
    pub(crate) fn next(&mut self) -> Result<(u8, &[u8]), BackupError> {
        self.offset = self.next_offset;
        let mut head = [0; HEAD_SIZE_BYTES];
        self.fill(&mut head)?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (raw_size, stored_size) = (number(1) as usize, number(5) as usize);
        if raw_size > BLOCK_SIZE_BYTES_MAX || stored_size > raw_size {
            return Err(self.damaged("a block has an impossible size"));
        }
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(stored_size, 0);
        let filled = self.fill(&mut stored);
        self.stored = stored;
        filled?;
        if checksum(self.count, &head[..9], &self.stored) != number(9) {
            return Err(self.damaged("a block does not match its checksum"));
        }
        self.count += 1;
        self.next_offset += (HEAD_SIZE_BYTES + stored_size) as u64;
        self.is_compressed = stored_size != raw_size;
        if self.is_compressed {
            self.raw.resize(raw_size, 0);
            match lz4_flex::block::decompress_into(&self.stored, &mut self.raw) {
                Ok(size) if size == raw_size => {}
                _ => return Err(self.damaged("a block does not decompress")),
            }
        }
        Ok((head[0], self.last()))
    }

    /// The raw bytes of the last block read.
    pub(crate) fn last(&self) -> &[u8] {
        if self.is_compressed { &self.raw } else { &self.stored }
    }

    /// An error if anything follows the last block.
    pub(crate) fn expect_end(&mut self) -> Result<(), BackupError> {
        self.offset = self.next_offset;
        match self.input.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("something follows the end")),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn damaged(&self, cause: &'static str) -> BackupError {
        BackupError::Damaged { offset: self.offset, cause }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BackupError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged("the file is cut short"),
            _ => error.into(),
        })
    }
}

fn checksum(number: u64, head: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&number.to_le_bytes());
    hasher.update(head);
    hasher.update(stored);
    hasher.finalize()
}
