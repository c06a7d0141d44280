//! One connection: requests are read, handed to the handler and answered, one after the other.
//!
//! Promises: every request that was read is answered, also one whose client has stopped sending. A body that nobody reads
//! is read and dropped, within bounds, so that its sender hears the answer. A response says where its body ends, and one
//! that cannot be sent whole ends the connection. Short responses are sent with one write.
//! Leaves to others: accepting connections (`listener`), reading heads (`parse`) and bodies (`wire`).

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{AnswerBody, AnswerStream, BodyReader, IncomingBody, discarded_bytes_max};
use super::deadline::within;
use super::head_timer::HeadTimer;
use super::listener::{Handler, Incoming};
use super::memory_pool::Reservation;
use super::parse::{HeadError, TEXT_GROWTH_MAX};
use super::parts::RequestParts;
use super::response::{Response, ResponseHead, VERSION_DIGIT, decimal};
use super::wire::{ArrivedBody, Rest, SharedWire};

/// A shorter body is copied behind its head. Sending both from where they are would cost more.
const COPIED_BYTES_MAX: usize = 4 * 1024;
/// A longer buffer for responses is not kept for the next one.
const KEPT_SPARE_BYTES_MAX: usize = 16 * 1024;

/// Serves a connection until it ends. When `is_closing`, the current request is the last one.
pub(super) async fn serve<H: Handler, S>(
    stream: S,
    peer: IpAddr,
    handler: &H,
    is_closing: &AtomicBool,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut serving = Serving {
        wire: Arc::new(SharedWire::new(stream, handler.limits().write_time_max)),
        handler,
        head_memory: handler.head_memory(peer),
        parts: RequestParts::default(),
        spare: Vec::new(),
        timer: HeadTimer::default(),
        is_closing,
    };
    loop {
        match serving.next_head().await? {
            NextHead::Arrived => {}
            NextHead::Refused(error) => {
                serving.refuse(error).await?;
                break;
            }
            NextHead::Nothing => break,
        }
        let body = serving.begin_body();
        let spare = std::mem::take(&mut serving.spare);
        let request = Incoming { parts: &serving.parts, body, spare, is_https: None };
        // Pinned in place: moving it would copy its whole state.
        let response = pin!(handler.handle(peer, request)).await;
        if !serving.answer(response).await? {
            break;
        }
    }
    poll_fn(|context| serving.wire.lock().poll_shutdown(context)).await
}

struct Serving<'h, H, S> {
    wire: Arc<SharedWire<S>>,
    handler: &'h H,
    /// Memory for long heads. It is held as long as the connection: who sends one long head sends others.
    head_memory: Reservation,
    /// The head of the current request.
    parts: RequestParts,
    /// A buffer for the next response.
    spare: Vec<u8>,
    timer: HeadTimer,
    is_closing: &'h AtomicBool,
}

impl<H, S> Drop for Serving<'_, H, S> {
    fn drop(&mut self) {
        self.wire.lock().close();
    }
}

/// What comes next on a connection.
enum NextHead {
    /// A request, whose head was read.
    Arrived,
    Refused(HeadError),
    /// The client is gone, or too slow, or the server stops.
    Nothing,
}

/// How a response says where its body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Length(u64),
    Chunks,
    /// With the connection: an old client cannot read chunks.
    Close,
}

impl<H: Handler, S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Serving<'_, H, S> {
    async fn next_head(&mut self) -> io::Result<NextHead> {
        let Serving { wire, parts, timer, head_memory, is_closing, handler, .. } = self;
        let limits = handler.limits();
        parts.clear();
        timer.restart();
        wire.lock().begin_head();
        poll_fn(|context| {
            let mut wire = wire.lock();
            loop {
                match parts.read(&wire.input, limits.header_count_max) {
                    Ok(Some(len)) if len <= limits.header_bytes_max => {
                        wire.take_head(len);
                        return Poll::Ready(Ok(NextHead::Arrived));
                    }
                    Ok(None) if wire.input.len() < limits.header_bytes_max => {}
                    Ok(_) => return Poll::Ready(Ok(NextHead::Refused(HeadError::TooLarge))),
                    Err(error) => return Poll::Ready(Ok(NextHead::Refused(error))),
                }
                // The text replaces the input when it is read.
                let held = TEXT_GROWTH_MAX * wire.input.len();
                if held > head_memory.bytes() && !head_memory.grow(held) {
                    // Without an answer, clients try again. None of those we could give says that.
                    return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
                }
                match wire.poll_fill(context) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Ok(NextHead::Nothing)),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending
                        if !parts.has_begun(wire.input.len()) && is_closing.load(Ordering::Relaxed) =>
                    {
                        return Poll::Ready(Ok(NextHead::Nothing));
                    }
                    Poll::Pending => {
                        let over = timer.poll_over(limits.header_time_max, context);
                        return over.map(|()| Ok(NextHead::Nothing));
                    }
                }
            }
        })
        .await
    }

    fn begin_body(&mut self) -> IncomingBody {
        match self.wire.lock().begin_body(self.parts.body, self.parts.expects_continue) {
            ArrivedBody::Empty => IncomingBody::Empty,
            ArrivedBody::Whole(bytes) => IncomingBody::Whole(bytes),
            ArrivedBody::Begun(number) => IncomingBody::Stream(BodyReader::new(self.wire.clone(), number)),
        }
    }

    /// Answers what is no request.
    async fn refuse(&mut self, error: HeadError) -> io::Result<()> {
        let mut head = ResponseHead::new(error.status(), std::mem::take(&mut self.spare));
        let headers = head.headers_mut();
        headers.put("connection", "close");
        headers.put_number("content-length", 0);
        self.handler.add_date(headers);
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(b"\r\n");
        self.send(&[&bytes], false).await
    }

    /// Sends the response. Returns whether the connection can be used again.
    async fn answer(&mut self, response: Response) -> io::Result<bool> {
        let Response { head, body } = response;
        let limits = self.handler.limits();
        let (rest, begun_continue) = {
            let mut wire = self.wire.lock();
            (wire.judge_rest(discarded_bytes_max(limits)), wire.take_begun_continue())
        };
        let is_head = self.parts.method() == "HEAD";
        let may_have_len = !matches!(head.status(), 204 | 304);
        let may_have_body = may_have_len && !is_head;
        let ending = match body.len() {
            Some(len) => Ending::Length(len),
            None if self.parts.is_http_10 => Ending::Close,
            None => Ending::Chunks,
        };
        let keeps_alive = self.parts.keeps_alive
            && rest != Rest::Unread
            && !self.is_closing.load(Ordering::Relaxed)
            && !(ending == Ending::Close && may_have_body);
        let says_len = head.headers().has("content-length");
        debug_assert!(
            !(says_len && may_have_body) || matches!(ending, Ending::Length(_)),
            "a stream has no length"
        );
        let mut bytes = head.into_bytes();
        match (self.parts.is_http_10, keeps_alive) {
            (false, true) => {}
            (false, false) => bytes.extend_from_slice(b"connection: close\r\n"),
            (true, keeps_alive) => {
                bytes[VERSION_DIGIT] = b'0';
                if keeps_alive {
                    bytes.extend_from_slice(b"connection: keep-alive\r\n");
                }
            }
        }
        match ending {
            _ if says_len || !may_have_len => {}
            // Nobody knows how long the body would be.
            Ending::Length(0) | Ending::Chunks if is_head => {}
            Ending::Length(len) => {
                bytes.extend_from_slice(b"content-length: ");
                bytes.extend_from_slice(decimal(len, &mut [0; 20]));
                bytes.extend_from_slice(b"\r\n");
            }
            Ending::Chunks => bytes.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Ending::Close => {}
        }
        bytes.extend_from_slice(b"\r\n");
        let is_discarding = rest == Rest::Discarded;
        match body {
            _ if !may_have_body => self.send(&[begun_continue, &bytes], is_discarding).await?,
            AnswerBody::Stream(stream) => {
                if !begun_continue.is_empty() {
                    self.send(&[begun_continue], false).await?;
                }
                self.send_stream(&bytes, stream, ending, is_discarding).await?;
            }
            body if body.as_bytes().len() <= COPIED_BYTES_MAX => {
                bytes.extend_from_slice(body.as_bytes());
                self.send(&[begun_continue, &bytes], is_discarding).await?;
            }
            body => self.send(&[begun_continue, &bytes, body.as_bytes()], is_discarding).await?,
        }
        if bytes.capacity() <= KEPT_SPARE_BYTES_MAX {
            self.spare = bytes;
        }
        Ok(self.end_body(rest).await && keeps_alive)
    }

    /// Reads and drops what nobody has read of the body. Returns whether the next request follows.
    async fn end_body(&mut self, rest: Rest) -> bool {
        if rest == Rest::Nothing {
            return true;
        }
        self.wire.lock().end_reading();
        let discarded = pin!(poll_fn(|context| self.wire.lock().poll_discard(context)));
        // Slower senders are disconnected.
        rest == Rest::Discarded && within(self.handler.limits().body_time_max, discarded).await == Some(true)
    }

    /// Sends all parts. Meanwhile, what nobody has read of the body may be read and dropped: some clients do not read while
    /// they send.
    async fn send(&self, parts: &[&[u8]], is_discarding: bool) -> io::Result<()> {
        let mut sent = 0;
        poll_fn(|context| {
            let mut wire = self.wire.lock();
            let outcome = wire.poll_send(context, parts, &mut sent);
            if outcome.is_pending() && is_discarding {
                // How it ends is seen later.
                let _ = wire.poll_discard(context);
            }
            outcome
        })
        .await
    }

    /// Sends a body as it is made, behind its head.
    async fn send_stream(
        &self,
        head: &[u8],
        stream: AnswerStream,
        ending: Ending,
        is_discarding: bool,
    ) -> io::Result<()> {
        let mut pieces = stream.pieces;
        let mut rest = match ending {
            Ending::Length(len) => len,
            Ending::Chunks | Ending::Close => u64::MAX,
        };
        let mut head = head;
        while rest > 0 {
            let mut sent = 0;
            // While the first piece is being made, the head is on its way.
            let piece = poll_fn(|context| match pieces.as_mut().poll_next(context) {
                Poll::Ready(piece) => Poll::Ready(piece.transpose()),
                Poll::Pending => match self.wire.lock().poll_send(context, &[head], &mut sent) {
                    Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                    Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
                },
            })
            .await?;
            head = head.get(sent..).unwrap_or_default();
            let Some(piece) = piece else { break };
            let piece = &piece[..piece.len().min(usize::try_from(rest).unwrap_or(usize::MAX))];
            if piece.is_empty() {
                continue;
            }
            if ending == Ending::Chunks {
                let size = format!("{:x}\r\n", piece.len());
                self.send(&[head, size.as_bytes(), piece, b"\r\n"], is_discarding).await?;
            } else {
                self.send(&[head, piece], is_discarding).await?;
            }
            if matches!(ending, Ending::Length(_)) {
                rest -= piece.len() as u64;
            }
            head = &[];
        }
        match ending {
            // The reader must not take this for the whole.
            Ending::Length(_) if rest > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            Ending::Chunks => self.send(&[head, b"0\r\n\r\n"], is_discarding).await,
            Ending::Length(_) | Ending::Close => self.send(&[head], is_discarding).await,
        }
    }
}

#[cfg(test)]
mod tests;
