//! Bodies: incoming payloads and outgoing answers, whole or piece by piece, in bounded memory.
//!
//! Promises: a small body is one buffer and is not copied; a stream holds one piece at a time; a payload in memory is
//! never longer than the limit; a body that nobody reads is taken all the same, so that its sender hears the answer.
//! Leaves to others: how long a stream may be.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::deadline::within;
use super::limits::Limits;
use super::memory_pool::{FREE_BYTES, Reservation};

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
    pub fn stream(
        body: Option<Incoming>,
        headers: &HeaderMap,
        limits: &Limits,
    ) -> Result<Payload, PayloadError> {
        if !is_announced(headers) {
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
    body: Option<Incoming>,
    /// How long the sender may take for the next piece.
    piece_time_max: Duration,
}

impl PayloadStream {
    /// The part that nobody has read.
    pub(crate) fn into_rest(self) -> Option<Incoming> {
        self.body
    }

    /// How many bytes are still to come, if the sender said so.
    pub fn rest_len(&self) -> Option<u64> {
        self.body.as_ref().map_or(Some(0), |body| body.size_hint().exact())
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PayloadError> {
        let Some(body) = &mut self.body else { return Ok(None) };
        match within(self.piece_time_max, pin!(next_data(body))).await {
            Some(Some(Ok(piece))) => Ok(Some(piece)),
            Some(Some(Err(_))) => Err(PayloadError::Broken),
            Some(None) => Ok(None),
            None => Err(PayloadError::TooSlow),
        }
    }
}

fn is_announced(headers: &HeaderMap) -> bool {
    headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING)
}

/// The next piece of data; trailers are skipped.
async fn next_data(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

/// A body that is too large is still read up to this multiple of the limit, because a client does not read the answer
/// while it is sending.
const DISCARDED_BODIES_MAX: usize = 4;

/// Reads and drops the body of a request that is answered without it. The client goes on sending, and closing the
/// connection early would lose the answer. A client that sent `Expect` waits to be asked, so it sends no body.
pub(crate) fn discard(body: Option<Incoming>, headers: &HeaderMap, limits: &Limits) {
    let Some(mut body) = body.filter(|body| !body.is_end_stream()) else { return };
    let bytes_max = limits.body_bytes_max as u64 * DISCARDED_BODIES_MAX as u64;
    if headers.contains_key(EXPECT) || body.size_hint().lower() > bytes_max {
        return;
    }
    let time_max = limits.body_time_max;
    tokio::spawn(async move {
        let take = async {
            let mut rest_bytes = bytes_max;
            while let Some(Ok(data)) = next_data(&mut body).await {
                let len = data.len() as u64;
                if len > rest_bytes {
                    break;
                }
                rest_bytes -= len;
            }
        };
        // Slower senders are disconnected.
        let _ = tokio::time::timeout(time_max, take).await;
    });
}

/// Reads a payload into memory, and returns its reservation of that memory if it is large. `reserve` makes an empty one.
pub(crate) async fn read_whole(
    body: &mut Option<Incoming>,
    headers: &HeaderMap,
    limits: &Limits,
    reserve: impl Fn() -> Reservation,
    may_be_absent: bool,
) -> Result<(Payload, Option<Reservation>), PayloadError> {
    if !is_announced(headers) {
        if may_be_absent {
            return Ok((Payload::none(), None));
        }
        return Err(PayloadError::NoLength);
    }
    // A client that waits to be asked, or that would send far too much, gets its answer at once.
    let is_waiting = headers.contains_key(EXPECT);
    let announced = body.as_ref().map_or(0, |body| body.size_hint().lower());
    let discarded_max =
        if is_waiting { limits.body_bytes_max } else { limits.body_bytes_max * DISCARDED_BODIES_MAX };
    if announced > discarded_max as u64 {
        return Err(PayloadError::TooLarge { bytes_max: limits.body_bytes_max });
    }
    let Some(mut incoming) = body.take() else { return Ok((Payload::none(), None)) };
    let outcome = {
        let collected = pin!(collect(&mut incoming, limits.body_bytes_max, reserve));
        within(limits.body_time_max, collected).await.unwrap_or(Err(PayloadError::TooSlow))
    };
    if outcome.as_ref().is_err_and(|error| *error == PayloadError::NoMemory) {
        // The sender is still sending. The rest is taken so that it hears the answer.
        *body = Some(incoming);
    }
    outcome.map(|(bytes, reservation)| (Payload::Whole(bytes), reservation))
}

/// Memory is taken for what has arrived, not for what is announced: an announcement costs its sender nothing.
async fn collect(
    body: &mut Incoming,
    bytes_max: usize,
    reserve: impl Fn() -> Reservation,
) -> Result<(Bytes, Option<Reservation>), PayloadError> {
    let announced = body.size_hint().lower();
    if announced > bytes_max as u64 {
        while let Some(Ok(_)) = next_data(body).await {}
        return Err(PayloadError::TooLarge { bytes_max });
    }
    let mut reservation: Option<Reservation> = None;
    // A small payload arrives in one piece and is not copied.
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(data) = next_data(body).await {
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
    Stream(AnswerStream),
}

impl AnswerBody {
    pub fn whole(bytes: Vec<u8>) -> AnswerBody {
        AnswerBody::Whole { bytes, reservation: None }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            AnswerBody::Whole { bytes, .. } => bytes,
            AnswerBody::Empty | AnswerBody::Stream(_) => &[],
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
            AnswerBody::Empty | AnswerBody::Stream(_) => None,
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

/// The body of a response in the form that hyper expects.
pub enum ResponseBody {
    /// `None` once it is sent.
    Whole(Option<Bytes>),
    Stream(AnswerStream),
}

impl ResponseBody {
    pub fn empty() -> ResponseBody {
        ResponseBody::Whole(Some(Bytes::new()))
    }

    pub fn new(body: AnswerBody) -> ResponseBody {
        match body {
            AnswerBody::Empty => ResponseBody::empty(),
            AnswerBody::Whole { bytes, reservation: None } => ResponseBody::Whole(Some(bytes.into())),
            AnswerBody::Whole { bytes, reservation: Some(held) } => {
                ResponseBody::Whole(Some(held.keep(bytes)))
            }
            AnswerBody::Stream(stream) => ResponseBody::Stream(stream),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            ResponseBody::Whole(bytes) => {
                let rest = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(rest.map(|bytes| Ok(Frame::data(bytes))))
            }
            ResponseBody::Stream(stream) => stream
                .pieces
                .as_mut()
                .poll_next(context)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    /// Unlike the usual body types, an empty body is not at its end before it was polled. Only then does hyper write
    /// the `Content-Length: 0` that the service sends with every 204.
    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            ResponseBody::Stream(stream) => stream.len.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
