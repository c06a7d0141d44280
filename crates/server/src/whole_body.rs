//! A response's body: whole from the start, sent as one piece.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Unlike the usual types for this, an empty one is not over before it was asked for: only so does hyper write the
/// `Content-Length: 0` that the service sends with every 204.
#[derive(Debug, Default)]
pub struct WholeBody(Option<Bytes>);

impl WholeBody {
    pub fn new(bytes: impl Into<Bytes>) -> WholeBody {
        WholeBody(Some(bytes.into()))
    }

    pub fn empty() -> WholeBody {
        WholeBody(Some(Bytes::new()))
    }
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let rest = self.0.take().filter(|bytes| !bytes.is_empty());
        Poll::Ready(rest.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}
