//! The body of an answer, with a limit on the time between its pieces.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Sleep;

use crate::OutboundError;

pub struct OutboundBody {
    inner: Incoming,
    pause: Duration,
    /// Runs while the body is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl OutboundBody {
    pub(crate) fn new(inner: Incoming, pause: Duration) -> OutboundBody {
        OutboundBody { inner, pause, timer: None }
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, OutboundError>> {
        loop {
            match std::future::poll_fn(|context| Pin::new(&mut *self).poll_frame(context)).await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(Ok(data)),
                    // Trailers say nothing that anybody asks for.
                    Err(_) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Body for OutboundBody {
    type Data = Bytes;
    type Error = OutboundError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OutboundError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            self.timer = None;
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| OutboundError::Broken(error.to_string()))),
            );
        }
        let pause = self.pause;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Some(Err(OutboundError::TimedOut))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a request that has none.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoBody;

impl Body for NoBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
