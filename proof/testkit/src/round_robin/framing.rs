//! Where the messages on an HTTP/1.1 connection end.
//!
//! Promises: whatever is not plainly of the published form is not cut ([`Head::request_body`] says `None`).

/// The first lines of a message, with the empty line behind them.
pub(super) struct Head {
    pub bytes: Vec<u8>,
    first_line: String,
    headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Body {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

impl Head {
    /// Takes a complete head from these bytes.
    pub fn cut_from(bytes: &mut Vec<u8>) -> Option<Head> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let bytes: Vec<u8> = bytes.drain(..end).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = text.split("\r\n");
        let first_line = lines.next().unwrap_or_default().to_owned();
        let header =
            |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Some(Head { bytes, first_line, headers: lines.filter_map(header).collect() })
    }

    fn values(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(present, _)| present.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.values(name).iter().any(|value| value.eq_ignore_ascii_case(word))
    }

    pub fn closes(&self) -> bool {
        self.says("Connection", "close") || self.first_line.contains("HTTP/1.0")
    }

    /// The body of a request; `None` if nobody but a server should judge it.
    pub fn request_body(&self) -> Option<Body> {
        if !self.first_line.ends_with(" HTTP/1.1") || self.first_line.split(' ').count() != 3 {
            return None;
        }
        let (lengths, encodings) = (self.values("Content-Length"), self.values("Transfer-Encoding"));
        match (&lengths[..], &encodings[..]) {
            _ if !self.values("Upgrade").is_empty() => None,
            ([], []) => Some(Body::None),
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().ok().map(|length| if length == 0 { Body::None } else { Body::Length(length) })
            }
            ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Some(Body::Chunked),
            _ => None,
        }
    }

    fn status(&self) -> u16 {
        self.first_line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub fn is_interim(&self) -> bool {
        self.status() / 100 == 1
    }

    /// The body of an answer to this request.
    pub fn answer_body(&self, request: &Head) -> Body {
        if request.first_line.starts_with("HEAD ") || matches!(self.status(), 204 | 304) {
            return Body::None;
        }
        if self.says("Transfer-Encoding", "chunked") {
            return Body::Chunked;
        }
        match self.values("Content-Length").first().and_then(|length| length.parse().ok()) {
            Some(0) => Body::None,
            Some(length) => Body::Length(length),
            None => Body::UntilClose,
        }
    }

    /// The tokens in an answer that ask for the next page.
    pub fn given_continuations(&self) -> Vec<String> {
        let is_token = |name: &str| name.to_ascii_lowercase().starts_with("x-ms-continuation-");
        let named = self.headers.iter().filter(|(name, _)| is_token(name));
        named.map(|(_, value)| decoded(value)).collect()
    }

    /// The tokens in a request for the next page.
    pub fn continuations(&self) -> Vec<String> {
        let target = self.first_line.split(' ').nth(1).unwrap_or_default();
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let is_token = |name: &str| name.to_ascii_lowercase().starts_with("next");
        pairs.filter(|(name, _)| is_token(name)).map(|(_, value)| decoded(value)).collect()
    }
}

/// Percent-encoding undone, as far as it is one.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Counts the bytes of a body until its end. A body that is not of the published form has none: all further bytes
/// belong to it, so that the front end sees and judges them.
pub(super) struct BodyEnd(State);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Plain(usize),
    /// In the line with a chunk's size: the size so far, and the last byte.
    Size(usize, Last),
    /// In a chunk: how many bytes are left.
    Chunk(usize),
    /// In the line end behind a chunk.
    ChunkEnd(Last),
    /// In a line behind the last chunk: whether it has any bytes, and the last one.
    Trailer(bool, Last),
    Endless,
    Reached,
}

/// The byte before, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Digit,
    CarriageReturn,
    Other,
}

impl BodyEnd {
    pub fn new(body: Body) -> BodyEnd {
        BodyEnd(match body {
            Body::None => State::Reached,
            Body::Length(length) => State::Plain(length),
            Body::Chunked => State::Size(0, Last::Digit),
            Body::UntilClose => State::Endless,
        })
    }

    pub fn is_reached(&self) -> bool {
        self.0 == State::Reached
    }

    /// How many of these bytes belong to the body.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && !self.is_reached() {
            let left = bytes.len() - at;
            let (used, next) = match self.0 {
                State::Endless => (left, State::Endless),
                State::Plain(rest) if rest <= left => (rest, State::Reached),
                State::Plain(rest) => (left, State::Plain(rest - left)),
                State::Chunk(rest) if rest <= left => (rest, State::ChunkEnd(Last::Other)),
                State::Chunk(rest) => (left, State::Chunk(rest - left)),
                State::ChunkEnd(last) => (1, in_chunk_end(last, bytes[at])),
                State::Size(size, last) => (1, in_size(size, last, bytes[at])),
                State::Trailer(has_bytes, last) => (1, in_trailer(has_bytes, last, bytes[at])),
                State::Reached => break,
            };
            at += used;
            self.0 = next;
        }
        at
    }
}

fn in_size(size: usize, last: Last, byte: u8) -> State {
    match (byte, last, char::from(byte).to_digit(16)) {
        (b'\n', Last::CarriageReturn, _) if size == 0 => State::Trailer(false, Last::Other),
        (b'\n', Last::CarriageReturn, _) => State::Chunk(size),
        (b'\n', ..) | (_, Last::CarriageReturn, _) => State::Endless,
        (b'\r', ..) => State::Size(size, Last::CarriageReturn),
        (_, Last::Digit, Some(digit)) => {
            State::Size(size.saturating_mul(16).saturating_add(digit as usize), Last::Digit)
        }
        _ => State::Size(size, Last::Other),
    }
}

fn in_chunk_end(last: Last, byte: u8) -> State {
    match (byte, last) {
        (b'\r', Last::Other) => State::ChunkEnd(Last::CarriageReturn),
        (b'\n', Last::CarriageReturn) => State::Size(0, Last::Digit),
        _ => State::Endless,
    }
}

fn in_trailer(has_bytes: bool, last: Last, byte: u8) -> State {
    match (byte, last) {
        (b'\n', Last::CarriageReturn) if !has_bytes => State::Reached,
        (b'\n', Last::CarriageReturn) => State::Trailer(false, Last::Other),
        (b'\n', _) | (_, Last::CarriageReturn) => State::Endless,
        (b'\r', _) => State::Trailer(has_bytes, Last::CarriageReturn),
        _ => State::Trailer(true, Last::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, body: Option<Body>) {
        let mut bytes = format!("{head}\r\n\r\nrest").into_bytes();
        let head = Head::cut_from(&mut bytes).unwrap();
        assert_eq!(bytes, b"rest");
        assert_eq!(head.request_body(), body);
    }

    #[test]
    fn only_plain_requests_are_cut() {
        check("GET / HTTP/1.1\r\nHost: a", Some(Body::None));
        check("POST / HTTP/1.1\r\nContent-Length: 12", Some(Body::Length(12)));
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked", Some(Body::Chunked));
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3", None);
        check("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3", None);
        check("POST / HTTP/1.1\r\nContent-Length: -1", None);
        check("GET /a b HTTP/1.1", None);
        check("GET / HTTP/1.0", None);
        check("nonsense", None);
    }

    #[test]
    fn bodies_end_where_they_should() {
        let end = |body: Body, bytes: &str| {
            let mut end = BodyEnd::new(body);
            // Byte by byte must be the same as at once.
            let at_once = BodyEnd::new(body).take(bytes.as_bytes());
            let one_by_one: usize = bytes.bytes().map(|byte| end.take(&[byte])).sum();
            assert_eq!(at_once, one_by_one);
            (at_once, end.is_reached())
        };
        assert_eq!(end(Body::None, "abc"), (0, true));
        assert_eq!(end(Body::Length(2), "abc"), (2, true));
        assert_eq!(end(Body::Length(4), "abc"), (3, false));
        assert_eq!(end(Body::Chunked, "3\r\nabc\r\n0\r\n\r\nGET"), (13, true));
        assert_eq!(end(Body::Chunked, "A;x=1\r\n0123456789\r\n0\r\nT: v\r\n\r\nGET"), (30, true));
        assert_eq!(end(Body::Chunked, "3\r\nabc\r\n0\r\n"), (11, false));
        for odd in [
            "3\nabc\r\n0\r\n\r\nGET",
            "3\r\nabc\n0\r\n\r\nGET",
            "3\r\nabc\r\n0\n\r\nGET",
            "0\r\n\nGET",
            "0\r\nT\n\r\nG",
        ] {
            assert_eq!(end(Body::Chunked, odd), (odd.len(), false), "{odd:?}");
        }
    }

    #[test]
    fn a_token_is_the_same_in_any_encoding() {
        let mut answer = b"HTTP/1.1 200 OK\r\nx-ms-continuation-NextRowKey: 1!8!cjE-\r\n\r\n".to_vec();
        let mut request = b"GET /t()?$top=1&NextRowKey=1%218%21cjE- HTTP/1.1\r\n\r\n".to_vec();
        let given = Head::cut_from(&mut answer).unwrap().given_continuations();
        assert_eq!(given, ["1!8!cjE-"]);
        assert_eq!(Head::cut_from(&mut request).unwrap().continuations(), given);
    }
}
