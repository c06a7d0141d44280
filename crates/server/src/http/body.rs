//! Bodies: incoming payloads and outgoing answers, whole or piece by piece, in bounded memory.
//!
//! Promises: a small body is one buffer and is not copied; a stream holds one piece at a time; a payload in memory is
//! never longer than the limit.
//! Leaves to others: how long a stream may be, and a body that nobody reads (`connection`).

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::deadline::within;
use super::limits::Limits;
use super::memory_pool::{FREE_BYTES, Reservation};
use super::parts::RequestParts;

/// The body of a request, or what is left of it. Whoever does not want it drops it.
#[derive(Default)]
pub enum IncomingBody {
    #[default]
    Empty,
    /// It came together with its head.
    Whole(Bytes),
    Stream(BodyReader),
}

impl IncomingBody {
    /// How many bytes are still to come, if the sender said so.
    pub(crate) fn rest_len(&self) -> Option<u64> {
        match self {
            IncomingBody::Empty => Some(0),
            IncomingBody::Whole(bytes) => Some(bytes.len() as u64),
            IncomingBody::Stream(reader) => reader.source.rest_len(reader.number),
        }
    }

    /// The next piece; `None` at the end. An error means that the sender is gone or broke the framing.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self {
            IncomingBody::Empty => None,
            IncomingBody::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = IncomingBody::Empty;
                Some(Ok(bytes))
            }
            IncomingBody::Stream(reader) => {
                poll_fn(|context| reader.source.poll_piece(reader.number, context)).await
            }
        }
    }

    /// The sender is too slow: the rest is not waited for.
    fn abandon(self) {
        if let IncomingBody::Stream(reader) = self {
            reader.source.abandon(reader.number);
        }
    }
}

/// A body that arrives piece by piece. It reads from its connection, when it is asked for the next piece.
pub struct BodyReader {
    source: Arc<dyn BodySource>,
    /// Which request of the connection it belongs to.
    number: u64,
}

impl BodyReader {
    pub(super) fn new(source: Arc<dyn BodySource>, number: u64) -> BodyReader {
        BodyReader { source, number }
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        self.source.leave(self.number);
    }
}

/// A connection, as the reader of a body sees it. `number` says which request the reader belongs to: once that one is
/// answered, there is nothing to read any more.
pub(super) trait BodySource: Send + Sync {
    fn poll_piece(&self, number: u64, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;

    fn rest_len(&self, number: u64) -> Option<u64>;

    /// Nobody reads the rest.
    fn leave(&self, number: u64);

    /// The rest is not even waited for.
    fn abandon(&self, number: u64);
}

/// Why a payload cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadError {
    /// The request announces neither a length nor chunks.
    NoLength,
    TooLarge {
        bytes_max: usize,
    },
    /// Other large payloads hold all the memory reserved for them.
    NoMemory,
    /// The caller is gone or broke the framing. Nobody will read the answer.
    Broken,
    TooSlow,
}

/// The payload of a request.
pub enum Payload {
    Whole(Bytes),
    Stream(PayloadStream),
}

impl Payload {
    pub fn none() -> Payload {
        Payload::Whole(Bytes::new())
    }

    /// A payload to be read piece by piece. The request must announce its length or send it in chunks.
    pub(crate) fn stream(
        body: IncomingBody,
        parts: &RequestParts,
        limits: &Limits,
    ) -> Result<Payload, PayloadError> {
        if !parts.announces_body() {
            return Err(PayloadError::NoLength);
        }
        Ok(Payload::Stream(PayloadStream { body, piece_time_max: limits.body_time_max }))
    }

    /// Takes the stream out of a payload that was requested as one, and leaves an empty payload.
    pub fn take_stream(&mut self) -> Option<PayloadStream> {
        match std::mem::replace(self, Payload::none()) {
            Payload::Whole(_) => None,
            Payload::Stream(stream) => Some(stream),
        }
    }

    /// The bytes of a payload that was requested whole.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Whole(bytes) => bytes,
            Payload::Stream(_) => &[],
        }
    }
}

/// A payload as it arrives.
pub struct PayloadStream {
    body: IncomingBody,
    /// How long the sender may take for the next piece.
    piece_time_max: Duration,
}

impl PayloadStream {
    /// How many bytes are still to come, if the sender said so.
    pub fn rest_len(&self) -> Option<u64> {
        self.body.rest_len()
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PayloadError> {
        let piece = {
            let next = pin!(self.body.next());
            within(self.piece_time_max, next).await
        };
        match piece {
            Some(Some(Ok(piece))) => Ok(Some(piece)),
            Some(Some(Err(_))) => Err(PayloadError::Broken),
            Some(None) => Ok(None),
            None => {
                std::mem::take(&mut self.body).abandon();
                Err(PayloadError::TooSlow)
            }
        }
    }
}

/// A body that is too large is still read up to this multiple of the limit, because a client does not read the answer
/// while it is sending.
const DISCARDED_BODIES_MAX: usize = 4;

/// How much of a body that nobody reads is read and dropped. The client goes on sending, and closing the connection early
/// would lose the answer.
pub(super) fn discarded_bytes_max(limits: &Limits) -> u64 {
    limits.body_bytes_max as u64 * DISCARDED_BODIES_MAX as u64
}

/// Reads a payload into memory, and returns its reservation of that memory if it is large. `reserve` makes an empty one.
pub(crate) async fn read_whole(
    mut body: IncomingBody,
    parts: &RequestParts,
    limits: &Limits,
    reserve: impl Fn() -> Reservation,
    may_be_absent: bool,
) -> Result<(Payload, Option<Reservation>), PayloadError> {
    if !parts.announces_body() {
        if may_be_absent {
            return Ok((Payload::none(), None));
        }
        return Err(PayloadError::NoLength);
    }
    // A client that waits to be asked, or that would send far too much, gets its answer at once.
    let discarded_max =
        if parts.has("expect") { limits.body_bytes_max as u64 } else { discarded_bytes_max(limits) };
    if body.rest_len().unwrap_or(0) > discarded_max {
        return Err(PayloadError::TooLarge { bytes_max: limits.body_bytes_max });
    }
    let outcome = {
        let collected = pin!(collect(&mut body, limits.body_bytes_max, reserve));
        within(limits.body_time_max, collected).await
    };
    let Some(outcome) = outcome else {
        body.abandon();
        return Err(PayloadError::TooSlow);
    };
    outcome.map(|(bytes, reservation)| (Payload::Whole(bytes), reservation))
}

/// Memory is taken for what has arrived, not for what is announced: an announcement costs its sender nothing.
async fn collect(
    body: &mut IncomingBody,
    bytes_max: usize,
    reserve: impl Fn() -> Reservation,
) -> Result<(Bytes, Option<Reservation>), PayloadError> {
    let announced = body.rest_len().unwrap_or(0);
    if announced > bytes_max as u64 {
        while let Some(Ok(_)) = body.next().await {}
        return Err(PayloadError::TooLarge { bytes_max });
    }
    let mut reservation: Option<Reservation> = None;
    // A small payload arrives in one piece and is not copied.
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(data) = body.next().await {
        let data = data.map_err(|_| PayloadError::Broken)?;
        let len = first.len() + rest.len() + data.len();
        if len > bytes_max {
            return Err(PayloadError::TooLarge { bytes_max });
        }
        if len > FREE_BYTES && !reservation.get_or_insert_with(&reserve).grow(len) {
            return Err(PayloadError::NoMemory);
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.reserve((announced as usize).max(first.len() + data.len()));
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok((if rest.is_empty() { first } else { rest.freeze() }, reservation))
}

/// The body of an answer.
#[derive(Default)]
pub enum AnswerBody {
    #[default]
    Empty,
    Whole {
        bytes: Vec<u8>,
        /// The memory reserved for it until it is read, if any.
        reservation: Option<Reservation>,
    },
    /// Bytes that others have, too.
    Shared(Bytes),
    Stream(AnswerStream),
}

impl AnswerBody {
    pub fn whole(bytes: Vec<u8>) -> AnswerBody {
        AnswerBody::Whole { bytes, reservation: None }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            AnswerBody::Whole { bytes, .. } => bytes,
            AnswerBody::Shared(bytes) => bytes,
            AnswerBody::Empty | AnswerBody::Stream(_) => &[],
        }
    }

    /// Its length, if that is known before it is sent.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            AnswerBody::Stream(stream) => stream.len,
            _ => Some(self.as_bytes().len() as u64),
        }
    }

    /// Whether it is large and has no memory reserved yet.
    pub(crate) fn wants_reservation(&self) -> bool {
        matches!(self, AnswerBody::Whole { bytes, reservation: None } if bytes.len() > FREE_BYTES)
    }

    /// Takes its reservation, for a caller that copies the body.
    pub fn release(&mut self) -> Option<Reservation> {
        match self {
            AnswerBody::Whole { reservation, .. } => reservation.take(),
            AnswerBody::Empty | AnswerBody::Shared(_) | AnswerBody::Stream(_) => None,
        }
    }

    /// Keeps the part of this reservation that the body needs until it is read.
    pub fn hold(&mut self, mut held: Reservation) {
        if let AnswerBody::Whole { bytes, reservation } = self {
            held.shrink(bytes.len());
            *reservation = Some(held);
        }
    }
}

/// A body that is produced while it is sent. The next piece is requested once the previous one is sent.
pub struct AnswerStream {
    /// The total length, if it is known.
    pub len: Option<u64>,
    pub pieces: Pin<Box<dyn Pieces>>,
}

/// The source of a streamed answer's pieces.
pub trait Pieces: Send {
    /// The next piece; `None` at the end. An error closes the connection, so that the reader knows that the body is
    /// incomplete.
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;
}
