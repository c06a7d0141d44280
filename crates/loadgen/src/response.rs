//! Reads responses as cheaply as correctness allows: the status, and where the answer ends.
//!
//! Promises: an answer is complete at its last byte and not before; its bytes stay in the buffer, so that an unexpected
//! answer can be shown. Leaves to others: what an answer says.

use memchr::memmem;

use crate::Error;

const BUFFER_BYTES_MIN: usize = 64 * 1024;
/// A page has at most 4 MiB, so an answer this large is a mistake.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

const EXCERPT_CHARACTERS_MAX: usize = 1000;

pub struct ResponseReader {
    buffer: Vec<u8>,
    filled: usize,
    end: End,
}

/// What is known so far about where the answer ends.
#[derive(Clone, Copy)]
enum End {
    Unknown,
    At(usize),
    /// Chunked: the next chunk's size line starts here.
    NextChunk(usize),
}

impl Default for ResponseReader {
    fn default() -> ResponseReader {
        ResponseReader::new()
    }
}

impl ResponseReader {
    pub fn new() -> ResponseReader {
        ResponseReader { buffer: vec![0; BUFFER_BYTES_MIN], filled: 0, end: End::Unknown }
    }

    /// Forgets the last answer, ready for the next.
    pub fn clear(&mut self) {
        self.filled = 0;
        self.end = End::Unknown;
    }

    /// Free space for the next read. Never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Counts in `count` bytes read into `space`. Returns the status once the answer is complete.
    pub fn advance(&mut self, count: usize) -> Result<Option<u16>, Error> {
        self.filled += count;
        if self.filled > ANSWER_BYTES_MAX {
            return Err("the answer never ends".into());
        }
        let bytes = &self.buffer[..self.filled];
        if let End::Unknown = self.end {
            let Some(head) = memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
            self.end = end_of_answer(&bytes[..head + 2], head + 4)?;
        }
        while let End::NextChunk(start) = self.end {
            let Some(line) = bytes.get(start..).and_then(|rest| memmem::find(rest, b"\r\n")) else {
                return Ok(None);
            };
            let size = chunk_size(&bytes[start..start + line])?;
            let data = start + line + 2;
            self.end = if size == 0 { End::At(data + 2) } else { End::NextChunk(data + size + 2) };
        }
        match self.end {
            End::At(end) if self.filled > end => Err("the server sent more than one answer".into()),
            End::At(end) if self.filled == end => Ok(Some(status(bytes)?)),
            _ => Ok(None),
        }
    }

    /// The bytes of the answer so far.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The answer so far as text, for people and for checks.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer[..self.filled]).into_owned()
    }
}

/// The start of an answer, as much as an error message shows.
pub(crate) fn excerpt(answer: &str) -> String {
    answer.chars().take(EXCERPT_CHARACTERS_MAX).collect()
}

fn status(bytes: &[u8]) -> Result<u16, Error> {
    let digits = bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| "the answer has no status".into())
}

fn end_of_answer(head: &[u8], body: usize) -> Result<End, Error> {
    if matches!(status(head)?, 204 | 304) {
        return Ok(End::At(body));
    }
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|value| value.parse::<usize>().ok());
            return Ok(End::At(body + length.ok_or("the answer's Content-Length is no number")?));
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
            return Ok(End::NextChunk(body));
        }
    }
    Err("the answer has neither Content-Length nor chunks".into())
}

fn chunk_size(line: &[u8]) -> Result<usize, Error> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = std::str::from_utf8(digits)?;
    usize::from_str_radix(text, 16).map_err(|_| format!("'{text}' is no chunk size").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the answer in pieces of every size: it must be complete at its last byte and not before.
    fn check(answer: &str, expected: u16) {
        for piece in 1..=answer.len() {
            let mut reader = ResponseReader::new();
            let mut fed = 0;
            for bytes in answer.as_bytes().chunks(piece) {
                reader.space()[..bytes.len()].copy_from_slice(bytes);
                fed += bytes.len();
                let status = reader.advance(bytes.len()).unwrap();
                assert_eq!(
                    status,
                    (fed == answer.len()).then_some(expected),
                    "after {fed} bytes of {answer:?}"
                );
            }
            assert_eq!(reader.text(), answer);
        }
    }

    #[test]
    fn answers_end_where_they_say() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200);
        check("HTTP/1.1 204 No Content\r\nETag: x\r\n\r\n", 204);
        check("HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n", 404);
        check(
            "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            202,
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        let mut reader = ResponseReader::new();
        let bytes = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n";
        reader.space()[..bytes.len()].copy_from_slice(bytes);
        assert!(reader.advance(bytes.len()).is_err());
    }
}
