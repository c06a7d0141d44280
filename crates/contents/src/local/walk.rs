//! Walks over the chunks of an extent, in the order in which they lie.
//!
//! A chunk's head tells where the chunk ends. Where there is no head (a write that failed or that a crash tore, or damage),
//! the next one is looked for at every unit. Memory is one window, and a few bytes for each gap.

use std::io;
use std::sync::Arc;

use super::extents::ExtentState;
use super::files::ExtentFile;
use super::format::{CHUNKS_OFFSET, ChunkHead, ChunkPlace, UNIT_BYTES, resembles_head};

/// How much of the file is read at a time.
const WINDOW_BYTES: u64 = 64 * 1024;

pub(crate) struct Walk {
    extent: Arc<ExtentState>,
    file: Arc<dyn ExtentFile>,
    position: u64,
    end: u64,
    window: Vec<u8>,
    window_offset: u64,
    /// The gap that the walk is in.
    gap: Option<Gap>,
    /// What lies between chunks and is not zero.
    pub(crate) gaps: Vec<Gap>,
}

/// A range that belongs to no chunk, and has bytes that are not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    /// There may have been a chunk in it.
    pub(crate) resembles_chunk: bool,
}

impl Walk {
    /// Walks until `end`, or the end of the file.
    pub(crate) fn new(extent: &Arc<ExtentState>, file: Arc<dyn ExtentFile>, end: u64) -> io::Result<Walk> {
        let end = end.min(file.size_bytes()?);
        let (extent, position) = (extent.clone(), CHUNKS_OFFSET);
        Ok(Walk {
            extent,
            file,
            position,
            end,
            window: Vec::new(),
            window_offset: 0,
            gap: None,
            gaps: Vec::new(),
        })
    }

    /// The next chunk, also if it is forgotten; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<(ChunkPlace, ChunkHead)>> {
        while self.position + UNIT_BYTES <= self.end {
            if !self.fill()? {
                break;
            }
            let rest = &self.window[(self.position - self.window_offset) as usize..];
            let place = ChunkPlace::at(self.extent.number, self.position);
            // The longest head fits into one unit.
            if let Some(head) = ChunkHead::read(self.extent.salt, place, rest) {
                self.position += u64::from(head.space);
                self.gaps.extend(self.gap.take());
                return Ok(Some((place, head)));
            }
            if is_zero(rest) {
                self.position += rest.len() as u64 / UNIT_BYTES * UNIT_BYTES;
                continue;
            }
            let unit = &rest[..UNIT_BYTES as usize];
            let offset = self.position;
            self.position += UNIT_BYTES;
            if !is_zero(unit) {
                let gap = self.gap.get_or_insert(Gap { offset, end: offset, resembles_chunk: false });
                gap.end = self.position;
                gap.resembles_chunk |= resembles_head(unit);
            }
        }
        self.gaps.extend(self.gap.take());
        Ok(None)
    }

    /// Makes the window contain the unit at the present position. `false` if there is none.
    fn fill(&mut self) -> io::Result<bool> {
        let window_end = self.window_offset + self.window.len() as u64;
        if self.window_offset <= self.position && self.position + UNIT_BYTES <= window_end {
            return Ok(true);
        }
        self.window_offset = self.position;
        self.window.resize(WINDOW_BYTES.min(self.end - self.position) as usize, 0);
        let is_short = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        match self.file.read(self.position, &mut self.window) {
            // The file gets shorter when its last chunk has given space back and the extent is sealed.
            Err(error) if is_short(&error) => self.end = self.end.min(self.file.size_bytes()?),
            outcome => return outcome.map(|()| true),
        }
        self.window.truncate(self.end.saturating_sub(self.position) as usize);
        if self.window.len() < UNIT_BYTES as usize {
            self.window.clear();
            return Ok(false);
        }
        self.file.read(self.position, &mut self.window).map(|()| true)
    }
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}
