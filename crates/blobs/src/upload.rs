//! Bytes on their way in.
//!
//! Promises: a short body is kept in memory for its row; a longer one goes to the store of contents piece by piece, so memory is
//! bounded by that store, and by what waits for its checksums. A body that is too long, fails, or does not match its checksums leaves nothing.

use bytes::{Bytes, BytesMut};
use contents::{ContentRef, ContentWriter, PendingContent};
use protocol::blob::checksum::{Checksums, ContentDigest};
use protocol::blob::limits::body_too_large;
use protocol::{ErrorCode, ServiceError};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use crate::api::UploadBody;
use crate::content::ContentMap;
use crate::service::{BlobCore, from_content};

/// The checksums of shorter bodies are computed where they are received.
const AHEAD_BYTES_MIN: u64 = 1024 * 1024;
/// So much of a body is given to another thread at a time. As much again may wait.
const AHEAD_BYTES: usize = 256 * 1024;
/// Bodies whose checksums are computed by other threads: with the pieces of the socket, 48 MiB at most.
pub(crate) const AHEAD_COUNT_MAX: usize = 32;

/// A body that was received as a whole. If it is not in memory, it is durable.
pub(crate) struct Received {
    pub(crate) length: u64,
    pub(crate) checksums: Checksums,
    pub(crate) data: ReceivedData,
}

pub(crate) enum ReceivedData {
    Inline(Bytes),
    /// The guard is kept until the row is committed.
    Stored(Vec<ContentRef>, PendingContent),
}

impl ReceivedData {
    pub(crate) fn map(&self) -> ContentMap {
        match self {
            ReceivedData::Inline(bytes) => ContentMap::inline(bytes.clone()),
            ReceivedData::Stored(parts, _) => ContentMap::whole(parts.clone()),
        }
    }

    pub(crate) fn parts(&self) -> &[ContentRef] {
        match self {
            ReceivedData::Inline(_) => &[],
            ReceivedData::Stored(parts, _) => parts,
        }
    }
}

impl BlobCore {
    /// Receives a body. Up to `inline_bytes_max` it stays in memory.
    pub(crate) async fn receive(
        &self,
        body: UploadBody<'_>,
        with_md5: bool,
        inline_bytes_max: usize,
    ) -> Result<Received, ServiceError> {
        let with_md5 = with_md5 || body.with_md5;
        let UploadBody { source, expected_bytes, bytes_max, expected, .. } = body;
        if expected_bytes.is_some_and(|bytes| bytes > bytes_max) {
            return Err(body_too_large(bytes_max));
        }
        let with_md5 = with_md5 || expected.has_md5();
        let mut digest = BodyDigest::new(ContentDigest::new(with_md5, true));
        let mut length = 0;
        let mut short = ShortBody::default();
        let mut writer: Option<Box<dyn ContentWriter>> = None;
        while let Some(piece) = source.next().await {
            let piece = piece?;
            length += piece.len() as u64;
            if length > bytes_max {
                return Err(body_too_large(bytes_max));
            }
            digest.update(&piece).await?;
            if writer.is_none() && length > inline_bytes_max as u64 {
                if with_md5 && expected_bytes.is_none_or(|bytes| bytes >= AHEAD_BYTES_MIN) {
                    digest.permit = self.digests.clone().try_acquire_owned().ok();
                }
                let mut new = self.contents.writer(expected_bytes);
                let begin = std::mem::take(&mut short).finish();
                if !begin.is_empty() {
                    new.push(begin).await.map_err(from_content)?;
                }
                writer = Some(new);
            }
            match &mut writer {
                Some(writer) => writer.push(piece).await.map_err(from_content)?,
                None => short.push(piece),
            }
        }
        let checksums = digest.finish().await?;
        expected.check(&checksums)?;
        let data = match writer {
            Some(writer) => {
                let written = writer.finish().await.map_err(from_content)?;
                ReceivedData::Stored(written.contents, written.pending)
            }
            None => ReceivedData::Inline(short.finish()),
        };
        Ok(Received { length, checksums, data })
    }
}

/// The checksums of a body. MD5 takes longer than everything else that happens to a long body, so other threads compute them
/// while more of it is received, if there are not too many of them already.
struct BodyDigest {
    /// `None` while another thread has it.
    here: Option<ContentDigest>,
    there: Option<JoinHandle<ContentDigest>>,
    /// Lets other threads compute.
    permit: Option<OwnedSemaphorePermit>,
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
}

impl BodyDigest {
    fn new(digest: ContentDigest) -> BodyDigest {
        BodyDigest { here: Some(digest), there: None, permit: None, waiting: Vec::new(), waiting_bytes: 0 }
    }

    async fn update(&mut self, piece: &Bytes) -> Result<(), ServiceError> {
        if let (Some(digest), None) = (&mut self.here, &self.permit) {
            digest.update(piece);
            return Ok(());
        }
        self.waiting_bytes += piece.len();
        self.waiting.push(piece.clone());
        if self.waiting_bytes >= AHEAD_BYTES {
            self.send().await?;
        }
        Ok(())
    }

    /// Gives what waits to another thread, when that is done with what it got before.
    async fn send(&mut self) -> Result<(), ServiceError> {
        let mut digest = self.take().await?;
        let pieces = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.there = Some(tokio::task::spawn_blocking(move || {
            pieces.iter().for_each(|piece| digest.update(piece));
            digest
        }));
        Ok(())
    }

    async fn take(&mut self) -> Result<ContentDigest, ServiceError> {
        let taken = match (self.here.take(), self.there.take()) {
            (None, Some(there)) => there.await.ok(),
            (here, _) => here,
        };
        // Only if the other thread has panicked.
        let lost = || ServiceError::with_source(ErrorCode::InternalError, "the checksums of a body are lost");
        taken.ok_or_else(lost)
    }

    async fn finish(mut self) -> Result<Checksums, ServiceError> {
        let mut digest = self.take().await?;
        self.waiting.iter().for_each(|piece| digest.update(piece));
        Ok(digest.finish())
    }
}

/// Pieces of a short body. Most have one, which is not copied.
#[derive(Default)]
enum ShortBody {
    #[default]
    Empty,
    One(Bytes),
    Many(BytesMut),
}

impl ShortBody {
    fn push(&mut self, piece: Bytes) {
        *self = match std::mem::take(self) {
            ShortBody::Empty => ShortBody::One(piece),
            ShortBody::One(first) => {
                let mut all = BytesMut::with_capacity(first.len() + piece.len());
                all.extend_from_slice(&first);
                all.extend_from_slice(&piece);
                ShortBody::Many(all)
            }
            ShortBody::Many(mut all) => {
                all.extend_from_slice(&piece);
                ShortBody::Many(all)
            }
        };
    }

    fn finish(self) -> Bytes {
        match self {
            ShortBody::Empty => Bytes::new(),
            ShortBody::One(bytes) => bytes,
            ShortBody::Many(bytes) => bytes.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn checksums_do_not_depend_on_who_computes_them() {
        let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number ^ number >> 9) as u8).collect();
        let expected = ContentDigest::of(&content, true, true);
        let threads = Arc::new(Semaphore::new(1));
        for piece_bytes in [1000, 100_000, AHEAD_BYTES, 1_000_000, 3_000_000] {
            for (with_threads, from) in [(false, 0), (true, 0), (true, 1_500_000)] {
                let mut digest = BodyDigest::new(ContentDigest::new(true, true));
                let mut received = 0;
                for piece in content.chunks(piece_bytes) {
                    if with_threads && digest.permit.is_none() && received >= from {
                        digest.permit = threads.clone().try_acquire_owned().ok();
                        assert!(digest.permit.is_some());
                    }
                    digest.update(&Bytes::copy_from_slice(piece)).await.unwrap();
                    received += piece.len();
                }
                let found = digest.finish().await.unwrap();
                assert_eq!(
                    (found.md5, found.crc64),
                    (expected.md5, expected.crc64),
                    "{piece_bytes}, from {from}"
                );
            }
        }
        assert_eq!(threads.available_permits(), 1);
    }
}
