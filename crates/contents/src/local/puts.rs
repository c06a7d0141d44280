//! Short contents: all that wait are written side by side with one write and one sync.
//!
//! While one group syncs, the next one forms. A group is bounded, and so is what waits: by the memory of the writers.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use tokio::sync::oneshot;

use super::LocalStore;
use super::format::{self, BLOCK_BYTES, ChunkHead, ChunkPlace, ChunkState, UNIT_BYTES, round_up};
use super::memory::Piece;
use super::reclaim::Job;
use crate::error::is_full;
use crate::guards::PendingContent;
use crate::{ContentError, ContentRef};

/// A content of one chunk that is written together with others.
pub(crate) struct Put {
    pub(crate) piece: Piece,
    pub(crate) nonce: u64,
    pub(crate) written_unix_ms: u64,
    pub(crate) reply: oneshot::Sender<Result<ContentRef, ContentError>>,
    /// The put may outlive its writer.
    pub(crate) _pending: PendingContent,
}

impl Put {
    fn data_offset(&self) -> usize {
        round_up(format::head_bytes(self.piece.bytes.len() as u64) as u64, 8) as usize
    }

    fn space(&self) -> usize {
        round_up((self.data_offset() + self.piece.bytes.len()) as u64, UNIT_BYTES) as usize
    }
}

#[derive(Default)]
pub(crate) struct PutQueue {
    queue: Mutex<Queue>,
    /// Nothing is being written.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Put>,
    is_running: bool,
}

impl PutQueue {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next group; none ends the run.
    fn take(&self, bytes_max: usize) -> Vec<Put> {
        let mut queue = self.queue();
        let mut bytes = 0;
        let mut group = Vec::new();
        while let Some(space) = queue.waiting.front().map(Put::space) {
            if bytes > 0 && bytes + space > bytes_max {
                break;
            }
            bytes += space;
            group.extend(queue.waiting.pop_front());
        }
        if group.is_empty() {
            queue.is_running = false;
            self.idle.notify_all();
        }
        group
    }

    pub(crate) fn wait_until_idle(&self) {
        drop(self.idle.wait_while(self.queue(), |queue| queue.is_running));
    }
}

pub(crate) fn add(store: &Arc<LocalStore>, put: Put) {
    let mut queue = store.puts.queue();
    queue.waiting.push_back(put);
    if !queue.is_running {
        queue.is_running = true;
        let store = store.clone();
        tokio::task::spawn_blocking(move || run(&store));
    }
}

/// If a write panics, those who wait are told, and the next put starts anew.
struct Running<'a>(&'a PutQueue);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut queue = self.0.queue();
            queue.is_running = false;
            queue.waiting.clear();
            self.0.idle.notify_all();
        }
    }
}

fn run(store: &Arc<LocalStore>) {
    let _running = Running(&store.puts);
    loop {
        let group = store.puts.take(store.put_group_bytes);
        if group.is_empty() {
            return;
        }
        match write(store, &group) {
            Ok(contents) => {
                for (put, content) in group.into_iter().zip(contents) {
                    // Free memory before the writer goes on.
                    let Put { piece, reply, _pending: pending, .. } = put;
                    drop((piece, pending));
                    if reply.send(Ok(content)).is_err() {
                        store.reclaim(Job::Forget { contents: vec![content], reply: None });
                    }
                }
            }
            Err(error) => group.into_iter().for_each(|put| drop(put.reply.send(Err(error.clone())))),
        }
    }
}

fn write(store: &Arc<LocalStore>, group: &[Put]) -> Result<Vec<ContentRef>, ContentError> {
    let total: usize = group.iter().map(Put::space).sum();
    let placement = store.put_lane.reserve(store, total as u64, group.len() as u64)?;
    let mut bytes = vec![0; total];
    let mut contents = Vec::with_capacity(group.len());
    let mut at = 0;
    for put in group {
        let data = &put.piece.bytes;
        let place = ChunkPlace::at(placement.extent.number, placement.offset + at as u64);
        let checksum = |(number, block): (usize, &[u8])| format::block_checksum(put.nonce, number, block);
        let head = ChunkHead {
            state: ChunkState::Complete,
            nonce: put.nonce,
            length: data.len() as u32,
            data_offset: put.data_offset() as u32,
            space: put.space() as u32,
            written_unix_ms: put.written_unix_ms,
            checksums: data.chunks(BLOCK_BYTES).enumerate().map(checksum).collect(),
        };
        let out = &mut bytes[at..at + put.space()];
        head.write(placement.extent.salt, place, out);
        out[put.data_offset()..put.data_offset() + data.len()].copy_from_slice(data);
        contents.push(place.content(put.nonce, data.len() as u64));
        at += put.space();
    }
    if let Err(error) = placement.file.write(placement.offset, &bytes) {
        if !is_full(&error) {
            store.put_lane.leave(store, &placement.extent);
        }
        store.reclaim(Job::Abandon { placement, chunks: group.len() as u64 });
        return Err(error.into());
    }
    store.extents.health.sync(&*placement.file)?;
    store.written.fetch_add(group.iter().map(|put| put.piece.bytes.len() as u64).sum(), Ordering::Relaxed);
    Ok(contents)
}
