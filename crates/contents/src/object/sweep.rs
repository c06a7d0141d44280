//! Enumerates the objects of a store, as its lists come.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::frame::content_bytes;
use super::{MARKER, ObjectInner, from_object};
use crate::guards::SweepGuard;
use crate::reference::ContentId;
use crate::{ContentError, ContentRef, SWEEP_BATCH_COUNT_MAX, StoredContent, Sweep};

pub(crate) type ResultStream<T> = Pin<Box<dyn Stream<Item = object_store::Result<T>> + Send>>;

/// The next item of a stream.
pub(crate) async fn next<T>(stream: &mut ResultStream<T>) -> Option<object_store::Result<T>> {
    std::future::poll_fn(|context| stream.as_mut().poll_next(context)).await
}

/// Names that are all there.
pub(crate) struct PathStream(VecDeque<Path>);

impl PathStream {
    pub(crate) fn new(paths: Vec<Path>) -> PathStream {
        PathStream(paths.into())
    }
}

impl Stream for PathStream {
    type Item = object_store::Result<Path>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

pub(crate) struct ObjectSweep {
    inner: Arc<ObjectInner>,
    guard: SweepGuard,
    list: ResultStream<ObjectMeta>,
    is_over: bool,
}

impl ObjectSweep {
    pub(crate) fn new(inner: Arc<ObjectInner>) -> ObjectSweep {
        // In this order: what is written from now on is not covered.
        let guard = inner.guards.begin_sweep();
        let list = inner.objects.list(Some(&inner.root));
        ObjectSweep { inner, guard, list, is_over: false }
    }

    fn stored(&self, object: &ObjectMeta) -> Option<StoredContent> {
        let name = object.location.filename().unwrap_or_default();
        let written_unix_ms = u64::try_from(object.last_modified.timestamp_millis()).unwrap_or(0);
        match read_name(name).zip(content_bytes(object.size)) {
            Some((id, length)) if self.inner.covers(&self.guard, id, written_unix_ms) => {
                let content = ContentRef::new(id, length);
                Some(StoredContent { content, written_unix_ms, is_complete: true })
            }
            Some(_) => None,
            None => {
                if name != MARKER {
                    log::warn!("{} is none of our objects", object.location);
                }
                None
            }
        }
    }
}

fn read_name(name: &str) -> Option<ContentId> {
    let is_hex = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(name, 16).ok().filter(|_| is_hex)?;
    Some(ContentId(number.to_be_bytes()))
}

#[async_trait]
impl Sweep for ObjectSweep {
    async fn next(&mut self) -> Result<Vec<StoredContent>, ContentError> {
        let mut batch = Vec::new();
        while !self.is_over && batch.len() < SWEEP_BATCH_COUNT_MAX {
            match next(&mut self.list).await {
                Some(object) => batch.extend(self.stored(&object.map_err(from_object)?)),
                // It must not be asked again.
                None => self.is_over = true,
            }
        }
        Ok(batch)
    }

    async fn forget(&mut self, contents: &[ContentRef]) -> Result<usize, ContentError> {
        let free = self.guard.not_held(contents).ok_or(ContentError::SweepOverrun)?;
        self.inner.delete(&self.inner.guards.forget(&free)).await?;
        Ok(contents.len() - free.len())
    }
}
