//! Gives the space of forgotten and abandoned chunks back, in one background thread.
//!
//! A forgotten chunk gets a head that says so, which is one small write. Its space is punched out of the file when the
//! thread has nothing else to do (`dead.rs`), unless the whole extent is dead by then and can be removed.
//!
//! Promises: a chunk is touched only if the one that lies there is the one that was named; an extent in which nothing lives
//! any more is removed. What cannot be done now (a failing disk) is left to a sweep. The thread ends with its store.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};

use tokio::sync::oneshot;

use super::dead::DeadRanges;
use super::extents::{ExtentState, Extents};
use super::files::ExtentFile;
use super::format::{ChunkHead, ChunkPlace, ChunkState, UNIT_BYTES};
use super::lane::Placement;
use super::walk::Walk;
use crate::{ContentError, ContentRef};

pub(crate) enum Job {
    Forget {
        contents: Vec<ContentRef>,
        reply: Option<oneshot::Sender<Result<(), ContentError>>>,
    },
    /// A chunk whose writer gave up, and perhaps others behind it that were to be written with it. Or no chunk at all: the
    /// unused end of one.
    Abandon {
        placement: Placement,
        chunks: u64,
    },
    /// A range that is marked as forgotten already.
    Dead {
        extent: u32,
        offset: u64,
        bytes: u64,
    },
    /// Perhaps nothing lives in it.
    Consider(Arc<ExtentState>),
    /// Replies when everything before is done.
    Flush(oneshot::Sender<()>),
}

pub(crate) fn start(extents: Arc<Extents>) -> io::Result<mpsc::Sender<Job>> {
    let (sender, jobs) = mpsc::channel();
    let mut reclaim = Reclaim { extents, dead: DeadRanges::default() };
    let run = move || {
        while let Some(job) = reclaim.next(&jobs) {
            reclaim.run(job);
        }
    };
    std::thread::Builder::new().name("contents-space".to_owned()).spawn(run)?;
    Ok(sender)
}

struct Reclaim {
    extents: Arc<Extents>,
    dead: DeadRanges,
}

impl Reclaim {
    /// The next job; `None` when there will be no more. Punches while there is none.
    fn next(&mut self, jobs: &mpsc::Receiver<Job>) -> Option<Job> {
        while self.dead.has_ready() {
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Empty) => self.punch(),
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        jobs.recv().ok()
    }

    fn run(&mut self, job: Job) {
        match job {
            Job::Forget { contents, reply } => {
                let mut outcome = Ok(());
                for content in &contents {
                    if let Err(error) = self.forget(content) {
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
                if let Err(error) = write_forgotten(&extent, &*file, offset, bytes) {
                    log::warn!("an abandoned content is left to the next sweep: {error}");
                    return;
                }
                extent.subtract_chunks(chunks);
                self.dead.add(extent.number, offset, bytes);
                self.remove_if_dead(&extent);
            }
            Job::Dead { extent, offset, bytes } => self.dead.add(extent, offset, bytes),
            Job::Consider(extent) => {
                if extent.chunks().is_none() && !extent.is_active() {
                    let counted = self.extents.file(extent.number).and_then(|file| count(&extent, file));
                    if let Ok(chunks) = counted {
                        extent.set_chunks(chunks);
                    }
                }
                self.remove_if_dead(&extent);
            }
            Job::Flush(reply) => {
                while self.dead.has_ready() {
                    self.punch();
                }
                let _ = reply.send(());
            }
        }
    }

    fn forget(&mut self, content: &ContentRef) -> Result<(), ContentError> {
        let (place, nonce) = ChunkPlace::of(content);
        let Some(extent) = self.extents.get(place.extent) else { return Ok(()) };
        let file = self.extents.file(place.extent)?;
        let offset = place.offset();
        if offset + UNIT_BYTES > extent.end().min(file.size_bytes()?) {
            return Ok(());
        }
        let mut unit = [0; UNIT_BYTES as usize];
        file.read(offset, &mut unit)?;
        let Some(head) = ChunkHead::read(extent.salt, place, &unit) else { return Ok(()) };
        if head.nonce != nonce || head.state == ChunkState::Forgotten {
            return Ok(());
        }
        write_forgotten(&extent, &*file, offset, head.space.into())?;
        match extent.chunks() {
            Some(_) => extent.subtract_chunks(1),
            None => extent.set_chunks(count(&extent, file)?),
        }
        self.dead.add(extent.number, offset, head.space.into());
        self.remove_if_dead(&extent);
        Ok(())
    }

    fn remove_if_dead(&mut self, extent: &ExtentState) {
        if self.extents.remove_if_dead(extent) {
            self.dead.drop_extent(extent.number);
        }
    }

    fn punch(&mut self) {
        let Some((extent, offset, bytes)) = self.dead.pop_ready() else { return };
        if let Err(error) = self.extents.file(extent).and_then(|file| file.punch(offset, bytes)) {
            log::warn!("{bytes} bytes of extent {extent} are not given back before the next sweep: {error}");
        }
    }
}

/// One head over the whole range, so that a walk steps over it.
fn write_forgotten(extent: &ExtentState, file: &dyn ExtentFile, offset: u64, bytes: u64) -> io::Result<()> {
    let head = ChunkHead {
        state: ChunkState::Forgotten,
        nonce: 0,
        length: 0,
        data_offset: UNIT_BYTES as u32,
        space: bytes as u32,
        written_unix_ms: 0,
        checksums: Vec::new(),
    };
    let mut bytes = [0; 40];
    head.write(extent.salt, ChunkPlace::at(extent.number, offset), &mut bytes);
    file.write(offset, &bytes)
}

/// Gives a range back at once.
pub(crate) fn give_back(
    extent: &ExtentState,
    file: &dyn ExtentFile,
    offset: u64,
    bytes: u64,
) -> io::Result<()> {
    if file.punch(offset, bytes)? { Ok(()) } else { write_forgotten(extent, file, offset, bytes) }
}

/// Counts the chunks that are not forgotten. Anything else that is not zero counts as one that never is: there may have
/// been a chunk before it was damaged, so the extent is not removed.
fn count(extent: &Arc<ExtentState>, file: Arc<dyn ExtentFile>) -> io::Result<u64> {
    let mut walk = Walk::new(extent, file, extent.end())?;
    let mut chunks = 0;
    while let Some((_, head)) = walk.next()? {
        chunks += u64::from(head.state != ChunkState::Forgotten);
    }
    Ok(chunks + u64::from(!walk.gaps.is_empty()))
}
