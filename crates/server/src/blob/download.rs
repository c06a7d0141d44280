//! Content on its way to the caller.
//!
//! Promises: a stream holds one piece, and reads the next one when the previous one is sent. So a slow reader costs no
//! more than its buffers. A content that turns out to be damaged breaks the connection: its reader sees that it is not
//! whole.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use blobs::BlobStream;
use bytes::Bytes;
use protocol::ServiceError;

use crate::http::body::{AnswerBody, AnswerStream, Pieces};

/// Shorter content is sent in one piece with the head of its answer.
const WHOLE_BYTES_MAX: u64 = 16 * 1024;

pub async fn body(stream: BlobStream) -> Result<AnswerBody, ServiceError> {
    if stream.length() <= WHOLE_BYTES_MAX {
        return Ok(AnswerBody::whole(stream.collect().await?.into()));
    }
    let len = Some(stream.length());
    Ok(AnswerBody::Stream(AnswerStream { len, pieces: Box::pin(ContentPieces(Box::pin(next(stream)))) }))
}

type NextPiece = (BlobStream, Option<Result<Bytes, ServiceError>>);

async fn next(mut stream: BlobStream) -> NextPiece {
    let piece = stream.next().await;
    (stream, piece)
}

/// The piece that is being read.
struct ContentPieces(Pin<Box<dyn Future<Output = NextPiece> + Send>>);

impl Pieces for ContentPieces {
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Poll::Ready((stream, piece)) = self.0.as_mut().poll(context) else { return Poll::Pending };
        self.0 = Box::pin(next(stream));
        Poll::Ready(piece.map(|piece| {
            piece.map_err(|error| {
                log::error!("a content cannot be read to its end: {}", cause(&error));
                io::Error::other("the content cannot be read")
            })
        }))
    }
}

fn cause(error: &ServiceError) -> String {
    match &error.source {
        Some(source) => source.to_string(),
        None => error.message().to_owned(),
    }
}
