//! A connection's stream with its buffer of input, and the body that is being read from it.
//!
//! Promises: input is read in steps that grow only while they are filled, so a sender costs memory for what it sends.
//! A client that waits to be asked for its body is asked when somebody first wants it. A write that waits too long fails.
//! Once the connection is over, whoever still holds the reader of a body keeps no socket open.
//! Leaves to others: when to read and write what (`connection`), and where a body ends (`body_decoder`).

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::Sleep;

use super::body::BodySource;
use super::body_decoder::{BodyDecoder, BodyKind, BrokenBody, Decoded};

/// The first step, which is enough for most requests. A buffer no longer than that is kept between requests.
const READ_BYTES_MIN: usize = 8 * 1024;
/// The longest step.
const READ_BYTES_MAX: usize = 64 * 1024;
/// After reading this much without having to wait, a connection lets the thread's other connections go on. A short
/// request beside hundreds of long bodies waits for one turn of each of them, so a turn must be short.
const TURN_BYTES_MAX: usize = 256 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A stream that a connection and the reader of a body share. They never wait for each other: both belong to the same
/// request, and mostly to the same task.
pub(super) struct SharedWire<S>(Mutex<Wire<S>>);

impl<S> SharedWire<S> {
    pub fn new(stream: S, write_time_max: Duration) -> SharedWire<S> {
        SharedWire(Mutex::new(Wire {
            stream: Some(stream),
            input: BytesMut::new(),
            input_bytes: 0,
            read_bytes: READ_BYTES_MIN,
            turn_bytes: 0,
            body: BodyDecoder::Done,
            number: 0,
            has_reader: false,
            is_abandoned: false,
            is_asking: false,
            unsent_continue: &[],
            discardable_bytes: 0,
            write_time_max,
            stalled: None,
        }))
    }

    pub fn lock(&self) -> MutexGuard<'_, Wire<S>> {
        // Whatever panics while it holds the lock leaves a stream whose state is as good as after any error.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Wire<S> {
    /// `None` once the connection is over.
    stream: Option<S>,
    /// What has arrived and was not used yet.
    pub input: BytesMut,
    /// How much memory the input may hold. Its capacity counts only what is not used yet.
    input_bytes: usize,
    /// How much is read in the next step.
    read_bytes: usize,
    /// How much was read since the connection last let others go on.
    turn_bytes: usize,
    /// The body of the current request.
    body: BodyDecoder,
    /// Which request of the connection it is.
    number: u64,
    /// Whether somebody may still read the body.
    has_reader: bool,
    /// Whether the rest of the body is not waited for.
    is_abandoned: bool,
    /// Whether its sender waits to be asked for it, and what is still to be sent for that.
    is_asking: bool,
    unsent_continue: &'static [u8],
    /// How much of a body that nobody reads may be read and dropped.
    discardable_bytes: u64,
    write_time_max: Duration,
    /// Runs while a write waits. Most writes never wait.
    stalled: Option<Pin<Box<Sleep>>>,
}

/// A body, as far as it has arrived with its head.
pub(super) enum ArrivedBody {
    Empty,
    Whole(Bytes),
    /// It has to be read, by a reader with this number.
    Begun(u64),
}

/// What happens to the part of a body that nobody has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    Nothing,
    /// It is read and dropped.
    Discarded,
    /// The connection ends before it.
    Unread,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Begins to wait for a request. A long buffer is given back: most of the time a connection waits for nothing.
    pub(super) fn begin_head(&mut self) {
        self.read_bytes = READ_BYTES_MIN;
        self.shrink();
    }

    /// Gives a long buffer back. The few bytes that are still in it are copied, but not a long row of requests.
    fn shrink(&mut self) {
        if self.input_bytes > READ_BYTES_MIN && self.input.len() <= READ_BYTES_MIN {
            self.input = BytesMut::from(&self.input[..]);
            self.input_bytes = self.input.capacity();
        }
    }

    /// Reads more input, and returns how much; 0 at its end.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Wire { stream: Some(stream), input, input_bytes, read_bytes, turn_bytes, .. } = self else {
            return Poll::Ready(Ok(0));
        };
        if *turn_bytes >= TURN_BYTES_MAX {
            *turn_bytes = 0;
            // Others, and whatever has arrived for them, come before the next turn of this one.
            let _ = pin!(tokio::task::yield_now()).poll(context);
            return Poll::Pending;
        }
        if input.capacity() - input.len() < *read_bytes / 2 {
            input.reserve(*read_bytes);
            *input_bytes = input.capacity().max(*input_bytes);
        }
        let room = input.capacity() - input.len();
        let Poll::Ready(outcome) = pin!(stream.read_buf(input)).poll(context) else {
            *turn_bytes = 0;
            return Poll::Pending;
        };
        let count = outcome?;
        *turn_bytes += count;
        if count == room {
            *read_bytes = (*read_bytes * 2).min(READ_BYTES_MAX);
        }
        Poll::Ready(Ok(count))
    }

    /// Takes a head out of the input. A long buffer is not needed any more: the head was copied.
    pub(super) fn take_head(&mut self, len: usize) {
        self.input.advance(len);
        if len > READ_BYTES_MIN {
            self.shrink();
        }
    }

    /// Begins the body of the next request.
    pub(super) fn begin_body(&mut self, kind: BodyKind, expects_continue: bool) -> ArrivedBody {
        self.read_bytes = READ_BYTES_MIN;
        self.is_asking = false;
        self.unsent_continue = &[];
        self.is_abandoned = false;
        match kind {
            BodyKind::None => ArrivedBody::Empty,
            BodyKind::Length(len) if !expects_continue && len <= self.input.len() as u64 => {
                ArrivedBody::Whole(self.input.split_to(len as usize).freeze())
            }
            BodyKind::Length(_) | BodyKind::Chunked => {
                self.body = BodyDecoder::new(kind);
                if expects_continue {
                    self.is_asking = true;
                    self.unsent_continue = CONTINUE;
                }
                self.number += 1;
                self.has_reader = true;
                ArrivedBody::Begun(self.number)
            }
        }
    }

    /// Decides what happens to the part of the body that nobody has read, before the answer is sent. A reader may still
    /// be there when the answer is made from what it reads.
    pub(super) fn judge_rest(&mut self, discardable_bytes: u64) -> Rest {
        let was_asked = self.unsent_continue.len() < CONTINUE.len();
        self.discardable_bytes = discardable_bytes;
        let is_discarded = match (self.body, was_asked) {
            (BodyDecoder::Done, _) => return Rest::Nothing,
            (BodyDecoder::Broken, _) => false,
            (BodyDecoder::Length(rest), true) => rest <= discardable_bytes,
            // Whoever waits to be asked sends nothing. This one did not wait.
            (BodyDecoder::Length(rest), false) => rest <= self.input.len() as u64,
            (_, was_asked) => was_asked,
        };
        if is_discarded && !self.is_abandoned { Rest::Discarded } else { Rest::Unread }
    }

    /// The rest of a question for the body that was begun. From now on nobody is asked.
    pub(super) fn take_begun_continue(&mut self) -> &'static [u8] {
        self.is_asking = false;
        let unsent = std::mem::take(&mut self.unsent_continue);
        if unsent.len() < CONTINUE.len() { unsent } else { &[] }
    }

    /// Nobody reads the body any more.
    pub(super) fn end_reading(&mut self) {
        self.has_reader = false;
    }

    /// Reads and drops the rest of the body. Returns whether its end was found.
    pub(super) fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.has_reader {
            return Poll::Pending;
        }
        loop {
            match ready!(self.poll_decode(context)) {
                None => return Poll::Ready(true),
                Some(Err(_)) => return Poll::Ready(false),
                Some(Ok(piece)) => match self.discardable_bytes.checked_sub(piece.len() as u64) {
                    Some(rest) => self.discardable_bytes = rest,
                    None => {
                        self.body = BodyDecoder::Broken;
                        return Poll::Ready(false);
                    }
                },
            }
        }
    }

    /// The next piece of the body.
    fn poll_decode(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match self.body.decode(&mut self.input) {
                Ok(Decoded::Piece(piece)) => return Poll::Ready(Some(Ok(piece))),
                Ok(Decoded::End) => return Poll::Ready(None),
                Err(BrokenBody) => return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into()))),
                Ok(Decoded::More) => {}
            }
            let error = match ready!(self.poll_fill(context)) {
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Ok(_) => continue,
                Err(error) => error,
            };
            self.body = BodyDecoder::Broken;
            return Poll::Ready(Some(Err(error)));
        }
    }

    /// Asks for the body if its sender waits for that, and reads the next piece.
    fn poll_asked_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.is_asking {
            if let Err(error) = ready!(self.poll_ask(context)) {
                self.body = BodyDecoder::Broken;
                return Poll::Ready(Some(Err(error)));
            }
            self.is_asking = false;
        }
        self.poll_decode(context)
    }

    fn poll_ask(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sent = CONTINUE.len() - self.unsent_continue.len();
        let outcome = self.poll_send(context, &[CONTINUE], &mut sent);
        self.unsent_continue = &CONTINUE[sent..];
        outcome
    }

    /// Sends these parts, of which `sent` bytes are on their way already.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        parts: &[&[u8]],
        sent: &mut usize,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut slices = [IoSlice::new(&[]); SENT_PARTS_MAX];
            let (mut count, mut skipped) = (0, *sent);
            for part in parts.iter().take(SENT_PARTS_MAX) {
                let rest = part.get(skipped..).unwrap_or_default();
                skipped = skipped.saturating_sub(part.len());
                if !rest.is_empty() {
                    slices[count] = IoSlice::new(rest);
                    count += 1;
                }
            }
            if count == 0 {
                return self.poll_flush(context);
            }
            match ready!(self.poll_write(context, &slices[..count]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *sent += more,
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else { return gone() };
        let is_vectored = stream.is_write_vectored();
        let stream = Pin::new(stream);
        let outcome = match slices {
            [first, _, ..] if !is_vectored => stream.poll_write(context, first),
            [first] => stream.poll_write(context, first),
            _ => stream.poll_write_vectored(context, slices),
        };
        self.judge(outcome, context)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(stream) = &mut self.stream else { return gone() };
        let outcome = Pin::new(stream).poll_flush(context);
        self.judge(outcome, context)
    }

    /// Says that nothing more will be sent.
    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(stream) = &mut self.stream else { return gone() };
        let outcome = Pin::new(stream).poll_shutdown(context);
        self.judge(outcome, context)
    }

    /// Gives up on a peer that does not read for too long.
    fn judge<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let time_max = self.write_time_max;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(time_max)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S> Wire<S> {
    /// The connection is over.
    pub(super) fn close(&mut self) {
        self.stream = None;
    }
}

/// The parts that are sent at once: the head of a chunk's answer, the chunk's size, its data, and the line end.
const SENT_PARTS_MAX: usize = 4;

fn gone<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> BodySource for SharedWire<S> {
    fn poll_piece(&self, number: u64, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut wire = self.lock();
        match wire.is_read_by(number) {
            true => wire.poll_asked_piece(context),
            false => Poll::Ready(Some(Err(io::ErrorKind::NotConnected.into()))),
        }
    }

    fn rest_len(&self, number: u64) -> Option<u64> {
        let wire = self.lock();
        if wire.is_read_by(number) { wire.body.rest_len() } else { None }
    }

    fn leave(&self, number: u64) {
        let mut wire = self.lock();
        wire.has_reader &= wire.number != number;
    }

    fn abandon(&self, number: u64) {
        let mut wire = self.lock();
        wire.is_abandoned |= wire.number == number;
    }
}

impl<S> Wire<S> {
    fn is_read_by(&self, number: u64) -> bool {
        self.has_reader && self.number == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    fn wire(stream: tokio::io::DuplexStream) -> SharedWire<tokio::io::DuplexStream> {
        SharedWire::new(stream, Duration::from_millis(20))
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let wire = wire(ours);
        let send = async |part: &[u8]| {
            let mut sent = 0;
            poll_fn(|context| wire.lock().poll_send(context, &[part, b"x"], &mut sent)).await
        };
        send(&[0; 15]).await.unwrap();
        assert_eq!(send(&[0; 15]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_that_waits_holds_no_long_buffer() {
        use tokio::io::AsyncWriteExt;
        let (ours, mut theirs) = tokio::io::duplex(1024 * 1024);
        let wire = wire(ours);
        let len = 8 * READ_BYTES_MAX as u64;
        theirs.write_all(&vec![b'x'; len as usize + 3]).await.unwrap();
        let ArrivedBody::Begun(_) = wire.lock().begin_body(BodyKind::Length(len), false) else { panic!() };
        wire.lock().judge_rest(len);
        wire.lock().end_reading();
        assert!(poll_fn(|context| wire.lock().poll_discard(context)).await);
        let mut wire = wire.lock();
        assert!(wire.input_bytes > READ_BYTES_MIN);
        wire.begin_head();
        assert!(wire.input.capacity() <= READ_BYTES_MIN && wire.input_bytes == wire.input.capacity());
        assert!(b"xxx".starts_with(&wire.input));
    }

    /// A peer that always has more to send.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let room = buffer.remaining();
            buffer.initialize_unfilled().fill(b'x');
            buffer.advance(room);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_sender_that_never_pauses_lets_others_go_on() {
        struct Woken(std::sync::atomic::AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let wire = SharedWire::new(Endless, Duration::from_secs(1));
        let woken = std::sync::Arc::new(Woken(Default::default()));
        let waker = woken.clone().into();
        let mut context = Context::from_waker(&waker);
        let ArrivedBody::Begun(body) = wire.lock().begin_body(BodyKind::Length(u64::MAX), false) else {
            panic!()
        };
        for turn in 1..=3 {
            let mut turn_bytes = 0;
            while let Poll::Ready(piece) = wire.poll_piece(body, &mut context) {
                turn_bytes += piece.unwrap().unwrap().len();
                assert!(turn_bytes < TURN_BYTES_MAX + READ_BYTES_MAX * 2, "turn {turn}");
            }
            assert!(turn_bytes >= TURN_BYTES_MAX, "turn {turn}");
            assert_eq!(woken.0.load(std::sync::atomic::Ordering::Relaxed), turn, "it must go on by itself");
        }
    }

    #[tokio::test]
    async fn a_body_is_read_only_while_its_request_is_served() {
        use tokio::io::AsyncWriteExt;
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let wire = wire(ours);
        theirs.write_all(b"abcdef").await.unwrap();
        let ArrivedBody::Begun(first) = wire.lock().begin_body(BodyKind::Length(3), false) else { panic!() };
        let piece = poll_fn(|context| wire.poll_piece(first, context)).await.unwrap().unwrap();
        assert_eq!((&piece[..], wire.rest_len(first)), (&b"abc"[..], Some(0)));
        assert!(poll_fn(|context| wire.poll_piece(first, context)).await.is_none());
        // The next one has arrived whole.
        let next = wire.lock().begin_body(BodyKind::Length(3), false);
        assert!(matches!(next, ArrivedBody::Whole(bytes) if bytes == "def"));
        let ArrivedBody::Begun(second) = wire.lock().begin_body(BodyKind::Chunked, false) else { panic!() };
        assert!(poll_fn(|context| wire.poll_piece(first, context)).await.unwrap().is_err());
        wire.leave(first);
        theirs.write_all(b"1\r\nx\r\n").await.unwrap();
        let piece = poll_fn(|context| wire.poll_piece(second, context)).await.unwrap().unwrap();
        assert_eq!(piece, "x");
        drop(theirs);
        assert!(poll_fn(|context| wire.poll_piece(second, context)).await.unwrap().is_err());
        assert_eq!(wire.lock().judge_rest(u64::MAX), Rest::Unread);
    }
}
