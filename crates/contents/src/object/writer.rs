//! Writes one content: its bytes are gathered into objects, and those are put while the next ones are gathered.
//!
//! Promises: all writers together hold no more than [`POOL_BYTES`], and a block each. When memory is short, objects get shorter,
//! so that no writer waits for another one's client. But a content has few objects whatever its length: after the first
//! [`SHORT_OBJECT_COUNT_MAX`], a writer waits for the memory of a long one. What a writer that is dropped has put is deleted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use super::frame::{BLOCK_BYTES, FrameBuffer};
use super::{ObjectInner, from_object};
use crate::guards::PendingContent;
use crate::{ContentError, ContentRef, ContentWriter, Written};

/// An object has no more bytes of content.
pub const OBJECT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Bytes that all writers hold together, and a block of 64 KiB each.
pub const POOL_BYTES: u64 = 128 * 1024 * 1024;
/// So many objects of a content may be short. A content of 5000 MiB has 2250 objects at most.
pub const SHORT_OBJECT_COUNT_MAX: usize = 1000;
/// Further ones have this many bytes, except the last.
pub const LONG_OBJECT_BYTES: u64 = 4 * 1024 * 1024;
/// Memory is taken in blocks.
pub(crate) const POOL_UNIT_COUNT: usize = (POOL_BYTES / BLOCK_BYTES) as usize;
/// Objects of one content that are on their way at the same time.
const PUT_COUNT_MAX: usize = 4;

type ObjectPut = JoinHandle<Result<ContentRef, ContentError>>;

pub(crate) struct ObjectWriter {
    inner: Arc<ObjectInner>,
    /// `None` once the content is handed over.
    pending: Option<PendingContent>,
    buffer: Option<FrameBuffer>,
    /// Memory of the buffer, beside its first block.
    memory: Option<OwnedSemaphorePermit>,
    /// In the order of the content.
    puts: VecDeque<ObjectPut>,
    done: Vec<ContentRef>,
}

impl ObjectWriter {
    pub(crate) fn new(inner: Arc<ObjectInner>) -> ObjectWriter {
        let pending = Some(inner.guards.begin_writer());
        ObjectWriter { inner, pending, buffer: None, memory: None, puts: VecDeque::new(), done: Vec::new() }
    }

    /// Makes room for another block, if the buffer is full.
    async fn make_room(&mut self) -> Result<(), ContentError> {
        let Some(buffer) = &self.buffer else { return self.wait_for_memory().await };
        if buffer.length >= OBJECT_BYTES_MAX {
            self.put().await?;
            return self.wait_for_memory().await;
        }
        let taken = 1 + self.memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) as u64;
        if buffer.length == 0 || buffer.length < taken * BLOCK_BYTES {
            return Ok(());
        }
        match self.inner.pool.clone().try_acquire_owned() {
            Ok(more) => {
                match &mut self.memory {
                    Some(memory) => memory.merge(more),
                    None => self.memory = Some(more),
                }
                Ok(())
            }
            // Others need the memory: put what is there. The next block is the first of a new object, which is free.
            Err(_) => {
                self.put().await?;
                self.wait_for_memory().await
            }
        }
    }

    /// Before a new object of a content that has many: waits for its memory. Who waits holds no memory except that of objects
    /// on their way, so writers never wait for each other in a circle.
    async fn wait_for_memory(&mut self) -> Result<(), ContentError> {
        if self.done.len() + self.puts.len() < SHORT_OBJECT_COUNT_MAX || self.memory.is_some() {
            return Ok(());
        }
        let closed = |_| ContentError::Unavailable("the store is closed".to_owned());
        let blocks = (LONG_OBJECT_BYTES / BLOCK_BYTES) as u32;
        // The first block is free.
        self.memory = Some(self.inner.pool.clone().acquire_many_owned(blocks - 1).await.map_err(closed)?);
        Ok(())
    }

    /// Begins to put the buffer.
    async fn put(&mut self) -> Result<(), ContentError> {
        let Some(buffer) = self.buffer.take() else { return Ok(()) };
        while self.puts.len() >= PUT_COUNT_MAX {
            self.take_first().await?;
        }
        let (inner, memory) = (self.inner.clone(), self.memory.take());
        let content = ContentRef::new(buffer.id(), buffer.length);
        let path = inner.path(content.id);
        // A task of its own, so that a caller that goes away does not leave it half done.
        self.puts.push_back(self.inner.runtime.spawn(async move {
            let put = inner.objects.put(&path, PutPayload::from_iter(buffer.finish())).await;
            drop(memory);
            put.map_err(from_object)?;
            inner.written.fetch_add(content.length, Ordering::Relaxed);
            Ok(content)
        }));
        Ok(())
    }

    async fn take_first(&mut self) -> Result<(), ContentError> {
        let Some(put) = self.puts.front_mut() else { return Ok(()) };
        let outcome = put.await;
        self.puts.pop_front();
        self.done.push(outcome.map_err(|error| ContentError::Io(error.to_string()))??);
        Ok(())
    }
}

#[async_trait]
impl ContentWriter for ObjectWriter {
    async fn push(&mut self, bytes: Bytes) -> Result<(), ContentError> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            self.make_room().await?;
            let buffer = self.buffer.get_or_insert_with(|| FrameBuffer::new(self.inner.next_id()));
            let size = buffer.add(rest);
            rest = &rest[size..];
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Written, ContentError> {
        self.put().await?;
        while !self.puts.is_empty() {
            self.take_first().await?;
        }
        let pending = self.pending.take().expect("a writer finishes once");
        Ok(Written { contents: std::mem::take(&mut self.done), pending })
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let (inner, puts) = (self.inner.clone(), std::mem::take(&mut self.puts));
        let mut gone = std::mem::take(&mut self.done);
        if puts.is_empty() && gone.is_empty() {
            return;
        }
        self.inner.spawn(async move {
            for put in puts {
                gone.extend(put.await.ok().and_then(Result::ok));
            }
            drop(pending);
            if let Err(error) = inner.delete(&gone).await {
                log::debug!("objects of a content that was given up are left to the next sweep: {error}");
            }
        });
    }
}
