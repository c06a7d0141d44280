//! A client's stream between the socket and hyper: it refuses ambiguous requests, counts the memory that long heads take,
//! and closes the connection when its peer stops reading for too long.
//!
//! Promises: hyper's buffer for this stream stays small, except for a long head, which has a reservation.
//! Leaves to others: what makes a request ambiguous (`framing`).

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};
use tokio::time::Sleep;

use super::framing::Framing;
use super::header_case::HeaderCase;
use super::memory_pool::Reservation;

/// hyper doubles its buffer after each read that fills it. Reads just short of this power of two keep it there.
const READ_BYTES_MAX: u64 = 32 * 1024 - 1;

pub(crate) struct GuardedStream<S> {
    stream: Take<S>,
    framing: Framing,
    /// Memory for long heads. hyper keeps its buffer as long as the connection, and so is this.
    head_memory: Reservation,
    time_max: Duration,
    /// Runs while a write waits. Most writes never wait.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead> GuardedStream<S> {
    /// `case` is where the spelling of names is noted, if anybody wants it.
    pub fn new(
        stream: S,
        time_max: Duration,
        head_memory: Reservation,
        case: Option<HeaderCase>,
    ) -> GuardedStream<S> {
        let (stream, framing) = (stream.take(READ_BYTES_MAX), Framing::new(case));
        GuardedStream { stream, framing, head_memory, time_max, stalled: None }
    }

    fn judge<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let time_max = self.time_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_max)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        self.stream.set_limit(READ_BYTES_MAX);
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.framing.check(&mut buffer.filled_mut()[before..]);
        let head_len = self.framing.longest_head_len();
        if head_len > self.head_memory.bytes() && !self.head_memory.grow(head_len) {
            // Without an answer, clients try again. None of those we could give says that.
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        outcome
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(self.stream.get_mut()).poll_write(context, bytes);
        self.judge(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(self.stream.get_mut()).poll_write_vectored(context, slices);
        self.judge(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(self.stream.get_mut()).poll_flush(context);
        self.judge(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(self.stream.get_mut()).poll_shutdown(context);
        self.judge(outcome, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::memory_pool::{Holder, MemoryPool};
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let memory = MemoryPool::new(0).small(Holder { account: 1, caller: 1 });
        let mut stream = GuardedStream::new(ours, Duration::from_millis(20), memory, None);
        stream.write_all(&[0; 16]).await.unwrap();
        let error = stream.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
