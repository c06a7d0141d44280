//! Bodies: that of a request, which is there from the beginning, and that of an answer, which comes in pieces.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};

/// The whole body of a request.
pub(super) struct Whole(Bytes);

impl Whole {
    pub(super) fn new(bytes: Bytes) -> Whole {
        Whole(bytes)
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// The pieces of a body. Most bodies come in one, which is not copied.
#[derive(Default)]
pub(super) struct Pieces {
    first: Bytes,
    more: BytesMut,
}

impl Pieces {
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.more.len()
    }

    pub(super) fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.more.is_empty() {
            self.more = BytesMut::with_capacity((self.first.len() + data.len()) * 2);
            self.more.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&data);
    }

    pub(super) fn finish(self) -> Bytes {
        if self.more.is_empty() { self.first } else { self.more.freeze() }
    }
}
