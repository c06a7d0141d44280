//! The bytes of a request's body, cut out of the bytes of its connection: of a known length, or in chunks.
//!
//! Promises: pieces are cut out without copying. Every line between chunks ends with CR LF, and what stands on it beside
//! the size is bounded, and so are the lines behind the last chunk. After an error nothing more is read.

use bytes::{Buf, Bytes, BytesMut};

use super::parse::is_token;

/// More hexadecimal digits than a chunk's size can have.
const CHUNK_SIZE_DIGITS_MAX: usize = 15;
/// What may stand behind the sizes of all chunks of a body, and on the lines behind its last chunk.
const EXTENSION_BYTES_MAX: usize = 16 * 1024;
const TRAILER_BYTES_MAX: usize = 16 * 1024;

/// How a request says where its body ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum BodyKind {
    #[default]
    None,
    Length(u64),
    Chunked,
}

/// The body ends before its end, or is not framed as it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BrokenBody;

#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Decoded {
    /// Never empty.
    Piece(Bytes),
    /// More bytes of the connection are needed.
    More,
    End,
}

/// Where in a body the connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum BodyDecoder {
    #[default]
    Done,
    /// So many bytes are still to come.
    Length(u64),
    ChunkSize {
        extension_bytes: usize,
    },
    ChunkData {
        rest: u64,
        extension_bytes: usize,
    },
    /// The line end after a chunk's data.
    ChunkEnd {
        extension_bytes: usize,
    },
    Trailers {
        bytes: usize,
    },
    Broken,
}

impl BodyDecoder {
    pub fn new(kind: BodyKind) -> BodyDecoder {
        match kind {
            BodyKind::None | BodyKind::Length(0) => BodyDecoder::Done,
            BodyKind::Length(len) => BodyDecoder::Length(len),
            BodyKind::Chunked => BodyDecoder::ChunkSize { extension_bytes: 0 },
        }
    }

    /// How many bytes are still to come, if that is known.
    pub fn rest_len(&self) -> Option<u64> {
        match self {
            BodyDecoder::Done => Some(0),
            BodyDecoder::Length(rest) => Some(*rest),
            _ => None,
        }
    }

    /// Takes the next piece out of `input`.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Decoded, BrokenBody> {
        let decoded = self.step(input);
        if decoded.is_err() {
            *self = BodyDecoder::Broken;
        }
        decoded
    }

    fn step(&mut self, input: &mut BytesMut) -> Result<Decoded, BrokenBody> {
        loop {
            match *self {
                BodyDecoder::Done => return Ok(Decoded::End),
                BodyDecoder::Broken => return Err(BrokenBody),
                BodyDecoder::Length(rest) => {
                    let Some(piece) = take(input, rest) else { return Ok(Decoded::More) };
                    *self = BodyDecoder::new(BodyKind::Length(rest - piece.len() as u64));
                    return Ok(Decoded::Piece(piece));
                }
                BodyDecoder::ChunkData { rest, extension_bytes } => {
                    let Some(piece) = take(input, rest) else { return Ok(Decoded::More) };
                    *self = match rest - piece.len() as u64 {
                        0 => BodyDecoder::ChunkEnd { extension_bytes },
                        rest => BodyDecoder::ChunkData { rest, extension_bytes },
                    };
                    return Ok(Decoded::Piece(piece));
                }
                BodyDecoder::ChunkEnd { extension_bytes } => match input.as_ref() {
                    [b'\r', b'\n', ..] => {
                        input.advance(2);
                        *self = BodyDecoder::ChunkSize { extension_bytes };
                    }
                    [] | [b'\r'] => return Ok(Decoded::More),
                    _ => return Err(BrokenBody),
                },
                BodyDecoder::ChunkSize { extension_bytes } => {
                    let line_bytes_max = CHUNK_SIZE_DIGITS_MAX + EXTENSION_BYTES_MAX - extension_bytes;
                    let Some(len) = line_len(input, line_bytes_max)? else { return Ok(Decoded::More) };
                    let (size, extension_len) = chunk_size(&input[..len])?;
                    input.advance(len + 2);
                    let extension_bytes = extension_bytes + extension_len;
                    *self = match size {
                        0 => BodyDecoder::Trailers { bytes: 0 },
                        rest => BodyDecoder::ChunkData { rest, extension_bytes },
                    };
                }
                BodyDecoder::Trailers { bytes } => {
                    let Some(len) = line_len(input, TRAILER_BYTES_MAX - bytes)? else {
                        return Ok(Decoded::More);
                    };
                    let is_right = len == 0 || is_trailer(&input[..len]);
                    input.advance(len + 2);
                    let bytes = bytes + len;
                    if !is_right || bytes > TRAILER_BYTES_MAX {
                        return Err(BrokenBody);
                    }
                    *self = if len == 0 { BodyDecoder::Done } else { BodyDecoder::Trailers { bytes } };
                }
            }
        }
    }
}

/// At most so many bytes; `None` if none has arrived.
fn take(input: &mut BytesMut, rest: u64) -> Option<Bytes> {
    let len = input.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
    (len > 0).then(|| input.split_to(len).freeze())
}

/// The length of the first line, without its CR LF; `None` if its end has not arrived. A longer one is an error.
fn line_len(input: &[u8], bytes_max: usize) -> Result<Option<usize>, BrokenBody> {
    match memchr::memchr(b'\n', input) {
        None if input.len() > bytes_max + 1 => Err(BrokenBody),
        None => Ok(None),
        Some(end) => match input[..end].strip_suffix(b"\r") {
            Some(line) if line.len() <= bytes_max && !line.iter().any(is_control) => Ok(Some(line.len())),
            _ => Err(BrokenBody),
        },
    }
}

fn is_control(byte: &u8) -> bool {
    (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f
}

/// The size of a chunk, and how long the rest of the line is.
fn chunk_size(line: &[u8]) -> Result<(u64, usize), BrokenBody> {
    let digit_count = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extension) = line.split_at(digit_count);
    let is_right = matches!(extension.trim_ascii_start(), [] | [b';', ..]);
    if digits.is_empty() || digits.len() > CHUNK_SIZE_DIGITS_MAX || !is_right {
        return Err(BrokenBody);
    }
    let digit = |byte: &u8| u64::from((*byte as char).to_digit(16).unwrap_or_default());
    Ok((digits.iter().fold(0, |size, byte| size * 16 + digit(byte)), extension.len()))
}

/// Whether the line is a header. Nobody reads it.
fn is_trailer(line: &[u8]) -> bool {
    memchr::memchr(b':', line).is_some_and(|end| is_token(&line[..end]))
}
