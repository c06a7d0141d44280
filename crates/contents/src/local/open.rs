//! Opening a store: which extents there are, and where those that were being filled go on.
//!
//! Promises: nothing that was ever written is overwritten. A new chunk is placed behind the last chunk and behind
//! everything that is not zero. What a crash left half written is given back, unless it looks like a chunk that was damaged.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::extents::ExtentState;
use super::files::{ExtentFile, ExtentFiles, FileAccess};
use super::format::{self, CHUNKS_OFFSET, ChunkState, ExtentHead, SEAL_OFFSET, UNIT_BYTES, round_up};
use super::lane::Active;
use super::walk::{Walk, is_zero};
use super::{ContentsOptions, LANE_COUNT, reclaim};

#[derive(Debug)]
pub enum ContentsOpenError {
    Io(io::Error),
    /// An extent belongs to another store: the name of its file, and the id in it.
    OtherStore {
        name: String,
        store: u64,
    },
    /// An extent's head cannot be read, and so nothing in it can.
    Damaged {
        name: String,
    },
}

impl fmt::Display for ContentsOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentsOpenError::Io(error) => write!(f, "the contents could not be opened: {error}"),
            ContentsOpenError::OtherStore { name, store } => {
                write!(f, "{name} belongs to store {store:016x}")
            }
            ContentsOpenError::Damaged { name } => write!(f, "the head of {name} is damaged"),
        }
    }
}

impl std::error::Error for ContentsOpenError {}

impl From<io::Error> for ContentsOpenError {
    fn from(error: io::Error) -> ContentsOpenError {
        ContentsOpenError::Io(error)
    }
}

pub(crate) struct FoundExtents {
    pub(crate) extents: Vec<Arc<ExtentState>>,
    /// Those that are filled further.
    pub(crate) active: Vec<Active>,
    pub(crate) last_number: u32,
}

pub(crate) fn open(
    files: &Arc<dyn ExtentFiles>,
    options: &ContentsOptions,
    extent_bytes: u64,
) -> Result<FoundExtents, ContentsOpenError> {
    let mut numbers: Vec<u32> = files.names()?.iter().filter_map(|name| format::number_of(name)).collect();
    numbers.sort_unstable();
    let mut found = FoundExtents {
        extents: Vec::new(),
        active: Vec::new(),
        last_number: numbers.last().copied().unwrap_or(0),
    };
    for number in numbers {
        let name = format::name(number);
        let file = files.open(&name, FileAccess::Write)?;
        let Some((head, unit)) = read_head(&*file)? else {
            if is_unused(&*file)? {
                // Its creation did not come to its end, so it has no content.
                drop(file);
                files.remove(&name)?;
                continue;
            }
            return Err(ContentsOpenError::Damaged { name });
        };
        if head.store != options.store {
            return Err(ContentsOpenError::OtherStore { name, store: head.store });
        }
        if head.number != number {
            return Err(ContentsOpenError::Damaged { name });
        }
        if let Some(end) = format::read_seal(&unit, head.salt) {
            found.extents.push(ExtentState::new(number, head.salt, end, None, false));
            continue;
        }
        let extent = find_end(&head, &file)?;
        let is_roomy = extent.end() < extent_bytes / 2 && found.active.len() <= LANE_COUNT;
        let end = extent.end();
        if is_roomy {
            let extent = ExtentState::new(number, head.salt, end, extent.chunks(), true);
            found.extents.push(extent.clone());
            found.active.push(Active { extent, file, allocated: end });
            continue;
        }
        file.write(SEAL_OFFSET, &format::write_seal(head.salt, end))?;
        file.set_len(end)?;
        found.extents.push(extent);
    }
    Ok(found)
}

fn read_head(file: &dyn ExtentFile) -> io::Result<Option<(ExtentHead, Vec<u8>)>> {
    if file.size_bytes()? < UNIT_BYTES {
        return Ok(None);
    }
    let mut unit = vec![0; UNIT_BYTES as usize];
    file.read(0, &mut unit)?;
    Ok(ExtentHead::read(&unit).map(|head| (head, unit)))
}

/// Whether there is nothing behind the head. Chunks are written only after the head is durable.
fn is_unused(file: &dyn ExtentFile) -> io::Result<bool> {
    let mut rest = vec![0; UNIT_BYTES as usize];
    let size_bytes = file.size_bytes()?;
    let mut offset = CHUNKS_OFFSET;
    while offset < size_bytes {
        let size = (size_bytes - offset).min(UNIT_BYTES) as usize;
        file.read(offset, &mut rest[..size])?;
        if !is_zero(&rest[..size]) {
            return Ok(false);
        }
        offset += size as u64;
    }
    Ok(true)
}

/// Walks over an extent that was being filled. What a crash left half written is given back.
fn find_end(head: &ExtentHead, file: &Arc<dyn ExtentFile>) -> io::Result<Arc<ExtentState>> {
    let extent = ExtentState::new(head.number, head.salt, CHUNKS_OFFSET, None, false);
    let mut walk = Walk::new(&extent, file.clone(), u64::MAX)?;
    // A file that a crash cut short may have chunks that claim more than there is.
    let mut end = CHUNKS_OFFSET;
    let mut chunks = 0;
    while let Some((place, head)) = walk.next()? {
        end = end.max(place.offset() + u64::from(head.space));
        chunks += u64::from(head.state != ChunkState::Forgotten);
    }
    for gap in &walk.gaps {
        end = end.max(gap.end);
        if gap.resembles_chunk {
            log::warn!(
                "{} has a damaged chunk between {} and {}",
                format::name(head.number),
                gap.offset,
                gap.end
            );
            // It is never removed.
            chunks += 1;
        } else if let Err(error) = reclaim::give_back(&extent, &**file, gap.offset, gap.end - gap.offset) {
            log::warn!("{} keeps what a crash left: {error}", format::name(head.number));
            chunks += 1;
        }
    }
    extent.end.store(round_up(end, UNIT_BYTES), Ordering::Release);
    extent.set_chunks(chunks);
    Ok(extent)
}
