//! Where requests begin and end on a connection, checked beside hyper, which is lenient where proxies differ.
//!
//! Promises: a head is refused if its lines do not all end with CR LF, or if it has two `Host` or two `Content-Length`
//! headers, both `Content-Length` and `Transfer-Encoding`, or any transfer encoding other than one `chunked`. A proxy in
//! front might see another request in such bytes than we do.
//! It also knows how long heads are, so that the memory for them can be counted.
//! How: the first wrong byte is replaced by a NUL, which no parser accepts, so hyper answers 400 and closes.
//! Leaves to others: everything else that hyper checks (names, values, folded lines, bare CR, chunk sizes).

use super::header_case::HeaderCase;

/// A line of a header that is checked here may have this many bytes: a host name of full length fits easily.
const CHECKED_LINE_BYTES_MAX: usize = 512;
/// More hexadecimal digits than a chunk's size can have.
const CHUNK_SIZE_DIGITS_MAX: u32 = 15;

#[derive(Default)]
pub(crate) struct Framing {
    place: Position,
    /// The beginning of a line whose end has not arrived. Empty for most requests, which arrive in one piece.
    begun_line: Vec<u8>,
    /// Bytes of that line, which may be more than are kept.
    line_len: usize,
    last_byte: u8,
    head: Announced,
    /// Bytes of the current head so far.
    head_len: usize,
    longest_head_len: usize,
    /// Where the spelling of names is noted, if anybody wants it.
    case: Option<HeaderCase>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Position {
    #[default]
    Head,
    /// A body, or the data of a chunk, with this many bytes to come.
    Body(u64),
    ChunkSize {
        size: u64,
        digits: u32,
    },
    /// The rest of a chunk's first line, up to its LF.
    ChunkExtension {
        size: u64,
    },
    ChunkData(u64),
    /// The line end after a chunk's data.
    ChunkEnd,
    Trailers,
    /// Something was wrong: nothing that follows counts.
    Refused,
}

/// What the current head has said so far.
#[derive(Clone, Copy, Default)]
struct Announced {
    has_begun: bool,
    has_host: bool,
    is_chunked: bool,
    content_length: Option<u64>,
}

impl Framing {
    pub fn new(case: Option<HeaderCase>) -> Framing {
        Framing { case, ..Framing::default() }
    }

    /// Bytes of the longest head so far, whether or not it is complete.
    pub(crate) fn longest_head_len(&self) -> usize {
        self.longest_head_len.max(self.head_len)
    }

    /// Looks at the next bytes of the connection.
    pub fn check(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let taken = match self.place {
                Position::Refused => return,
                Position::Head => self.head_line(rest),
                Position::Trailers => self.trailer_line(rest),
                Position::Body(left) => {
                    let taken = take(left, rest);
                    self.place = match left - taken as u64 {
                        0 => Position::Head,
                        left => Position::Body(left),
                    };
                    Ok(taken)
                }
                Position::ChunkData(left) => {
                    let taken = take(left, rest);
                    self.place = match left - taken as u64 {
                        0 => Position::ChunkEnd,
                        left => Position::ChunkData(left),
                    };
                    Ok(taken)
                }
                Position::ChunkSize { .. } | Position::ChunkExtension { .. } | Position::ChunkEnd => {
                    self.chunk_byte(rest[0])
                }
            };
            match taken {
                Ok(taken) => at += taken,
                Err(wrong) => {
                    bytes[at + wrong] = 0;
                    self.place = Position::Refused;
                    self.begun_line = Vec::new();
                    return;
                }
            }
        }
    }

    /// Takes a line of a head, or the part of it that has arrived. An error is the place of the wrong byte.
    fn head_line(&mut self, rest: &[u8]) -> Result<usize, usize> {
        let Some(end) = self.line_end(rest)? else {
            self.head_len += rest.len();
            return Ok(rest.len());
        };
        self.head_len += end + 1;
        let is_right = if self.line_len == 0 {
            self.read_line(&rest[..end - 1])
        } else {
            // The line began in an earlier piece. Its CR may have come with that piece too.
            self.keep(&rest[..end]);
            let line_len = self.line_len - 1;
            let mut line = std::mem::take(&mut self.begun_line);
            line.truncate(line_len);
            self.line_len = 0;
            let is_whole = line.len() == line_len;
            self.read_line(&line) && (is_whole || !is_checked(&line))
        };
        if is_right { Ok(end + 1) } else { Err(end) }
    }

    /// The place of the LF that ends the current line, if it has arrived; an error if no CR precedes it.
    fn line_end(&mut self, rest: &[u8]) -> Result<Option<usize>, usize> {
        let Some(end) = memchr::memchr(b'\n', rest) else {
            self.keep(rest);
            self.last_byte = rest.last().copied().unwrap_or_default();
            return Ok(None);
        };
        let before = if end > 0 { rest[end - 1] } else { self.last_byte };
        self.last_byte = b'\n';
        if before == b'\r' { Ok(Some(end)) } else { Err(end) }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = CHECKED_LINE_BYTES_MAX.saturating_sub(self.begun_line.len());
        self.begun_line.extend_from_slice(&part[..part.len().min(room)]);
        self.line_len += part.len();
    }

    /// Reads a whole line of a head, without its end. Returns `false` if it makes the head ambiguous.
    fn read_line(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            // Empty lines before a request are ignored.
            if self.head.has_begun {
                self.longest_head_len = self.longest_head_len();
                self.head_len = 0;
                if let Some(case) = &self.case {
                    case.end();
                }
                let Announced { is_chunked, content_length, .. } = std::mem::take(&mut self.head);
                self.place = match content_length {
                    _ if is_chunked => Position::ChunkSize { size: 0, digits: 0 },
                    Some(1..) => Position::Body(content_length.unwrap_or_default()),
                    _ => Position::Head,
                };
                return !(is_chunked && content_length.is_some());
            }
            return true;
        }
        let head = &mut self.head;
        if !head.has_begun {
            head.has_begun = true;
            return true;
        }
        if let Some(case) = &self.case {
            case.line(line);
        }
        match line[0] | 0x20 {
            b'h' if value_of(line, b"host").is_some() => !std::mem::replace(&mut head.has_host, true),
            b'c' => match value_of(line, b"content-length") {
                None => true,
                Some(_) if head.content_length.is_some() => false,
                Some(value) => {
                    head.content_length = decimal(value);
                    head.content_length.is_some()
                }
            },
            b't' => match value_of(line, b"transfer-encoding") {
                None => true,
                Some(value) => {
                    !std::mem::replace(&mut head.is_chunked, true) && value.eq_ignore_ascii_case(b"chunked")
                }
            },
            _ => true,
        }
    }

    fn trailer_line(&mut self, rest: &[u8]) -> Result<usize, usize> {
        let Some(end) = self.line_end(rest)? else { return Ok(rest.len()) };
        let is_empty = self.line_len + end == 1;
        self.begun_line.clear();
        self.line_len = 0;
        if is_empty {
            self.place = Position::Head;
        }
        Ok(end + 1)
    }

    fn chunk_byte(&mut self, byte: u8) -> Result<usize, usize> {
        let after_cr = self.last_byte == b'\r';
        self.last_byte = byte;
        self.place = match (self.place, byte) {
            (Position::ChunkEnd, b'\r') if !after_cr => Position::ChunkEnd,
            (Position::ChunkEnd, b'\n') if after_cr => Position::ChunkSize { size: 0, digits: 0 },
            (Position::ChunkSize { size, digits }, _)
                if byte.is_ascii_hexdigit() && digits < CHUNK_SIZE_DIGITS_MAX =>
            {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                Position::ChunkSize { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (Position::ChunkSize { size, digits: 1.. }, b'\r' | b';' | b' ' | b'\t') => {
                Position::ChunkExtension { size }
            }
            (Position::ChunkExtension { size }, b'\n') if after_cr => match size {
                0 => Position::Trailers,
                _ => Position::ChunkData(size),
            },
            (Position::ChunkExtension { size }, _) if byte != b'\n' => Position::ChunkExtension { size },
            _ => return Err(0),
        };
        if matches!(self.place, Position::ChunkData(_)) {
            self.last_byte = 0;
        }
        Ok(1)
    }
}

fn take(left: u64, rest: &[u8]) -> usize {
    rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// The value of the header on this line, without the blanks around it, if it has this name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn is_checked(line: &[u8]) -> bool {
    ["host", "content-length", "transfer-encoding"]
        .iter()
        .any(|name| value_of(line, name.as_bytes()).is_some())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the bytes as a whole, and in two pieces cut at every place.
    #[track_caller]
    fn check(text: &str, is_right: bool) {
        for cut in 0..=text.len() {
            let mut bytes = text.as_bytes().to_vec();
            let mut framing = Framing::default();
            let (first, second) = bytes.split_at_mut(cut);
            framing.check(first);
            framing.check(second);
            assert_eq!(bytes == text.as_bytes(), is_right, "{text:?} cut at {cut}");
            assert_eq!(framing.place == Position::Refused, !is_right, "{text:?} cut at {cut}");
            if is_right {
                assert_eq!(framing.place, Position::Head, "{text:?} cut at {cut}");
            }
        }
    }

    const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\n";

    #[test]
    fn plain_requests_pass_one_after_the_other() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n";
        let sized = format!("{HEAD}Content-Length: 5\r\n\r\na\nb\n\n");
        let empty = format!("{HEAD}content-length:0\r\n\r\n");
        let chunks = "5;x=y\r\na\nb\n\n\r\n00A\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\nx: y\r\n\r\n";
        let chunked = format!("{HEAD}Transfer-Encoding: Chunked\r\n\r\n{chunks}");
        let bare = format!("{HEAD}transfer-encoding:chunked\r\n\r\n0\r\n\r\n");
        for text in [get, &sized, &empty, &chunked, &bare] {
            check(text, true);
            check(&format!("\r\n{text}{get}"), true);
        }
        check(&[get, &sized, &empty, &chunked, &bare, &sized, get].concat(), true);
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_refused() {
        for text in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\r\n\n".to_owned(),
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            format!("{HEAD}Host: a\r\n\r\n"),
            format!("{HEAD}hOST:b\r\n\r\n"),
            format!("{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\na"),
            format!("{HEAD}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"),
            format!("{HEAD}Content-Length: 1, 1\r\n\r\na"),
            format!("{HEAD}Content-Length: +1\r\n\r\na"),
            format!("{HEAD}Content-Length:\r\n\r\n"),
            format!("{HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: identity\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\nx: y\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n1;x\ny\r\na\r\n0\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na"),
            format!("{HEAD}Content-Length: 2\r\n\r\n{{}}GET / HTTP/1.1\nHost: a\r\n\r\n"),
            format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\nHost: a\r\n\r\n"),
        ] {
            check(&text, false);
        }
    }

    #[test]
    fn a_long_line_takes_little_memory_and_cannot_hide_a_second_host() {
        let mut framing = Framing::default();
        let mut bytes = format!("{HEAD}x: {}", "y".repeat(100_000)).into_bytes();
        framing.check(&mut bytes);
        assert!(framing.begun_line.len() <= CHECKED_LINE_BYTES_MAX && framing.place == Position::Head);
        assert_eq!(framing.longest_head_len(), bytes.len());
        framing.check(&mut b"\r\n".to_owned());
        assert_eq!(framing.place, Position::Head);
        for part in ["Host: ".to_owned(), " ".repeat(1000)] {
            framing.check(&mut part.into_bytes());
        }
        framing.check(&mut b"b\r\n".to_owned());
        assert_eq!(framing.place, Position::Refused);
    }
}
