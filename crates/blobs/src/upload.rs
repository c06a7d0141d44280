//! Bytes on their way in.
//!
//! Promises: a short body is kept in memory for its row; a longer one goes to the store of contents piece by piece, so memory is
//! bounded by that store. A body that is too long, fails, or does not match its checksums leaves nothing.

use bytes::{Bytes, BytesMut};
use contents::{ContentRef, ContentWriter, PendingContent};
use protocol::ServiceError;
use protocol::blob::checksum::{Checksums, ContentDigest};
use protocol::blob::limits::body_too_large;

use crate::api::UploadBody;
use crate::content::ContentMap;
use crate::service::{BlobCore, from_content};

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
        let mut digest = ContentDigest::new(with_md5 || expected.has_md5(), true);
        let mut length = 0;
        let mut short = ShortBody::default();
        let mut writer: Option<Box<dyn ContentWriter>> = None;
        while let Some(piece) = source.next().await {
            let piece = piece?;
            length += piece.len() as u64;
            if length > bytes_max {
                return Err(body_too_large(bytes_max));
            }
            digest.update(&piece);
            if writer.is_none() && length > inline_bytes_max as u64 {
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
        let checksums = digest.finish();
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
