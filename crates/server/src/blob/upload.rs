//! Payloads on their way to the rules: piece by piece, or as a whole where a document is longer than others.

use async_trait::async_trait;
use blobs::{Upload, UploadBody};
use bytes::{Bytes, BytesMut};
use protocol::ServiceError;
use protocol::blob::checksum::ExpectedChecksums;
use protocol::blob::limits::body_too_large;

use crate::front::refusal::Refusal;
use crate::front::service::Session;
use crate::http::body::{Payload, PayloadError};
use crate::http::memory_pool::Reservation;

/// A payload as the rules take it. What they do not take stays in it, so that its sender is heard to the end.
pub(crate) struct PayloadUpload<'p> {
    payload: &'p mut Payload,
    pub received_bytes: u64,
}

impl<'p> PayloadUpload<'p> {
    pub fn new(payload: &'p mut Payload) -> PayloadUpload<'p> {
        PayloadUpload { payload, received_bytes: 0 }
    }

    /// The upload with everything that the rules want to know about it. A payload that says that it is too long is
    /// refused before it is sent.
    pub fn body(
        &mut self,
        bytes_max: u64,
        expected: ExpectedChecksums,
        with_md5: bool,
    ) -> Result<UploadBody<'_>, ServiceError> {
        let expected_bytes = match &*self.payload {
            Payload::Whole(bytes) => Some(bytes.len() as u64),
            Payload::Stream(stream) => stream.rest_len(),
        };
        if expected_bytes.is_some_and(|bytes| bytes > bytes_max) {
            return Err(body_too_large(bytes_max));
        }
        Ok(UploadBody { source: self, expected_bytes, bytes_max, expected, with_md5 })
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, PayloadError> {
        match self.payload {
            Payload::Stream(stream) => stream.next().await,
            Payload::Whole(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
        }
    }
}

#[async_trait]
impl Upload for PayloadUpload<'_> {
    async fn next(&mut self) -> Option<Result<Bytes, ServiceError>> {
        match self.next_piece().await {
            Ok(piece) => {
                let piece = piece?;
                self.received_bytes += piece.len() as u64;
                Some(Ok(piece))
            }
            Err(error) => Some(Err(Refusal::from(error).error)),
        }
    }
}

/// Reads a payload of at most this many bytes into memory, which stays reserved as long as the second value lives.
pub async fn collect(
    session: &Session<'_>,
    payload: &mut Payload,
    bytes_max: usize,
) -> Result<(Bytes, Reservation), ServiceError> {
    let mut upload = PayloadUpload::new(payload);
    upload.body(bytes_max as u64, ExpectedChecksums::default(), false)?;
    let mut reservation = session.reserve_payload();
    let mut all = BytesMut::new();
    loop {
        let piece = upload.next_piece().await.map_err(|error| Refusal::from(error).error)?;
        let Some(piece) = piece else { break };
        let len = all.len() + piece.len();
        if len > bytes_max {
            return Err(body_too_large(bytes_max as u64));
        }
        if !reservation.grow(len) {
            return Err(Refusal::from(PayloadError::NoMemory).error);
        }
        all.extend_from_slice(&piece);
    }
    session.notes.payload(all.len() as u64);
    Ok((all.freeze(), reservation))
}
