//! Gives the space of forgotten and abandoned chunks back, in one background thread.
//!
//! Promises: a chunk is touched only if the one that lies there is the one that was named; an extent in which nothing lives
//! any more is removed. What cannot be done now (a failing disk) is left to a sweep. The thread ends with its store.

use std::io;
use std::sync::{Arc, mpsc};

use tokio::sync::oneshot;

use super::extents::{Extent, Extents};
use super::files::ExtentFile;
use super::format::{ChunkHead, ChunkState, Place, UNIT_BYTES};
use super::lane::Placement;
use super::walk::Walk;
use crate::{ContentError, ContentRef};

pub(crate) enum Job {
    Forget {
        contents: Vec<ContentRef>,
        reply: Option<oneshot::Sender<Result<(), ContentError>>>,
    },
    /// A chunk whose writer gave up, and perhaps others behind it that were to be written with it.
    Abandon {
        placement: Placement,
        chunks: u64,
    },
    /// The unused rest of a chunk's space.
    Punch {
        file: Arc<dyn ExtentFile>,
        offset: u64,
        bytes: u64,
    },
    /// Perhaps nothing lives in it.
    Consider(Arc<Extent>),
    /// Replies when everything before is done.
    Flush(oneshot::Sender<()>),
}

pub(crate) fn start(extents: Arc<Extents>) -> io::Result<mpsc::Sender<Job>> {
    let (sender, jobs) = mpsc::channel();
    std::thread::Builder::new().name("contents-space".to_owned()).spawn(move || run(&extents, &jobs))?;
    Ok(sender)
}

fn run(extents: &Extents, jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Forget { contents, reply } => {
                let mut outcome = Ok(());
                for content in &contents {
                    if let Err(error) = forget(extents, content) {
                        outcome = Err(error);
                    }
                }
                match (reply, outcome) {
                    (Some(reply), outcome) => drop(reply.send(outcome)),
                    (None, Err(error)) => {
                        log::warn!("a forgotten content is left to the next sweep: {error}")
                    }
                    (None, Ok(())) => {}
                }
            }
            Job::Abandon { placement, chunks } => {
                let Placement { extent, file, offset, bytes } = placement;
                if let Err(error) = abandon(&extent, &*file, offset, bytes) {
                    log::warn!("an abandoned content is left to the next sweep: {error}");
                    continue;
                }
                (0..chunks).for_each(|_| extent.subtract_chunk());
                extents.remove_if_dead(&extent);
            }
            Job::Punch { file, offset, bytes } => drop(file.punch(offset, bytes)),
            Job::Consider(extent) => {
                if extent.chunks().is_none() && !extent.is_active() {
                    let counted = extents.file(extent.number).and_then(|file| count(&extent, file));
                    if let Ok(chunks) = counted {
                        extent.set_chunks(chunks);
                    }
                }
                extents.remove_if_dead(&extent);
            }
            Job::Flush(reply) => drop(reply.send(())),
        }
    }
}

fn forget(extents: &Extents, content: &ContentRef) -> Result<(), ContentError> {
    let (place, nonce) = Place::of(content);
    let Some(extent) = extents.get(place.extent) else { return Ok(()) };
    let file = extents.file(place.extent)?;
    let offset = place.offset();
    if offset + UNIT_BYTES > file.size_bytes()? {
        return Ok(());
    }
    let mut unit = vec![0; UNIT_BYTES as usize];
    file.read(offset, &mut unit)?;
    let Some(head) = ChunkHead::read(extent.salt, place, &unit) else { return Ok(()) };
    if head.nonce != nonce || head.state == ChunkState::Forgotten {
        return Ok(());
    }
    give_back(&extent, &*file, offset, head.space.into(), &head)?;
    match extent.chunks() {
        Some(_) => extent.subtract_chunk(),
        None => extent.set_chunks(count(&extent, file)?),
    }
    extents.remove_if_dead(&extent);
    Ok(())
}

fn give_back(
    extent: &Extent,
    file: &dyn ExtentFile,
    offset: u64,
    bytes: u64,
    head: &ChunkHead,
) -> io::Result<()> {
    if file.punch(offset, bytes)? {
        return Ok(());
    }
    let forgotten = ChunkHead { state: ChunkState::Forgotten, checksums: Vec::new(), ..head.clone() };
    let mut bytes = [0; 40];
    forgotten.write(extent.salt, Place::at(extent.number, offset), &mut bytes);
    file.write(offset, &bytes)
}

/// Gives a range back in which no chunk was completed.
pub(crate) fn abandon(extent: &Extent, file: &dyn ExtentFile, offset: u64, bytes: u64) -> io::Result<()> {
    if file.punch(offset, bytes)? {
        return Ok(());
    }
    // One head over all of it: a walk steps over what may lie there.
    let head = ChunkHead {
        state: ChunkState::Forgotten,
        nonce: 0,
        length: 0,
        data_offset: UNIT_BYTES as u32,
        space: bytes as u32,
        written_unix_ms: 0,
        checksums: Vec::new(),
    };
    give_back(extent, file, offset, bytes, &head)
}

/// Counts the chunks that are not forgotten. Anything else that is not zero counts as one that never is: there may have
/// been a chunk before it was damaged, so the extent is not removed.
fn count(extent: &Arc<Extent>, file: Arc<dyn ExtentFile>) -> io::Result<u64> {
    let mut walk = Walk::new(extent, file, extent.end())?;
    let mut chunks = 0;
    while let Some((_, head)) = walk.next()? {
        chunks += u64::from(head.state != ChunkState::Forgotten);
    }
    Ok(chunks + u64::from(!walk.gaps.is_empty()))
}
