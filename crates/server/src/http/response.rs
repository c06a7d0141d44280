//! The head of a response, written once: headers go straight into the bytes that are sent.
//!
//! Promises: a name stands once. A value that no header can carry is left out, so no value can end its line. Headers are
//! sent in the order in which they were put. The buffer is used for all responses of a connection.
//! Leaves to others: what to say, and the headers that say where the body ends (`connection`).

use http::StatusCode;

use super::body::AnswerBody;
use super::parse::is_control;
use super::parts::{bit, hint};

/// A whole response.
pub struct Response {
    pub head: ResponseHead,
    pub body: AnswerBody,
}

/// Headers as the bytes that are sent: each on a line of its own.
#[derive(Default)]
pub struct HeaderList {
    bytes: Vec<u8>,
    /// Where the first header begins.
    start: usize,
    /// Has a bit for each name, which some names share. So most names that are not there are known by their bit.
    seen: u64,
}

impl HeaderList {
    pub fn with_capacity(bytes: usize) -> HeaderList {
        HeaderList { bytes: Vec::with_capacity(bytes), ..HeaderList::default() }
    }

    /// Puts a header. If there is one with this name, the new value takes its place. What cannot be a value is left out.
    /// The name must be one, in lower case.
    pub fn put(&mut self, name: &str, value: &str) {
        debug_assert!(name.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b':'), "{name}");
        if is_value(value.as_bytes()) {
            self.put_bytes(name, value.as_bytes());
        }
    }

    /// The same, for a name that somebody chose. What cannot be a name is left out.
    pub(crate) fn put_chosen(&mut self, name: &str, value: &str) {
        if !super::parse::is_token(name.as_bytes()) {
            return;
        }
        match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            false => self.put(name, value),
            true => self.put(&name.to_ascii_lowercase(), value),
        }
    }

    /// The same, for a value that we have made or checked ourselves, so that nobody has to look at it again.
    pub(crate) fn put_checked(&mut self, name: &str, value: impl AsRef<[u8]>) {
        debug_assert!(is_value(value.as_ref()), "{name}: {:?}", value.as_ref());
        self.put_bytes(name, value.as_ref());
    }

    /// The same, for a header that is part of the program.
    // Inlined, its pieces are constants, which are copied without a call.
    #[inline(always)]
    pub(crate) fn put_constant(&mut self, name: &'static str, value: &'static str) {
        let bit = bit(hint(name.as_bytes()));
        if self.seen & bit != 0 {
            return self.put_checked(name, value);
        }
        self.seen |= bit;
        self.bytes.reserve(name.len() + value.len() + 4);
        for piece in [name, ": ", value, "\r\n"] {
            self.bytes.extend_from_slice(piece.as_bytes());
        }
    }

    pub(crate) fn put_number(&mut self, name: &str, value: u64) {
        let mut digits = [0; 20];
        self.put_bytes(name, decimal(value, &mut digits));
    }

    /// Puts a header that is new. `write` appends its value.
    pub(crate) fn put_with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(!self.has(name), "{name}");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b": ");
        let value_start = self.bytes.len();
        write(&mut self.bytes);
        if !is_value(self.bytes.get(value_start..).unwrap_or_default()) {
            self.bytes.truncate(start);
            return;
        }
        self.bytes.extend_from_slice(b"\r\n");
        self.seen |= bit(hint(name.as_bytes()));
    }

    /// Appends lines that are known to be right and to be new.
    pub(crate) fn put_lines(&mut self, lines: &HeaderList) {
        self.bytes.extend_from_slice(&lines.bytes[lines.start..]);
        self.seen |= lines.seen;
    }

    fn put_bytes(&mut self, name: &str, value: &[u8]) {
        let bit = bit(hint(name.as_bytes()));
        if self.seen & bit != 0
            && let Some(line) = self.find(name)
        {
            let value_start = line.start + name.len() + 2;
            self.bytes.splice(value_start..line.end - 2, value.iter().copied());
            return;
        }
        self.seen |= bit;
        self.bytes.reserve(name.len() + value.len() + 4);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(line) = self.find(name) {
            self.bytes.drain(line);
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.seen & bit(hint(name.as_bytes())) != 0 && self.find(name).is_some()
    }

    /// The line of a header, with its end.
    fn find(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let mut start = self.start;
        while start < self.bytes.len() {
            let rest = &self.bytes[start..];
            let end = start + memchr::memchr(b'\n', rest)? + 1;
            if rest.get(name.len()) == Some(&b':') && rest.starts_with(name.as_bytes()) {
                return Some(start..end);
            }
            start = end;
        }
        None
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.bytes[self.start..].split_inclusive(|byte| *byte == b'\n');
        lines.filter_map(|line| std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?.split_once(": "))
    }
}

/// Status and headers.
pub struct ResponseHead {
    status: u16,
    headers: HeaderList,
}

/// The status line ends with these two bytes, and so does every header.
const LINE_END: &[u8] = b"\r\n";

impl ResponseHead {
    /// `spare` is a buffer to write into. What is in it is forgotten.
    pub fn new(status: u16, mut spare: Vec<u8>) -> ResponseHead {
        spare.clear();
        // Enough for the heads of most answers.
        spare.reserve(512);
        match status {
            200 => spare.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            204 => spare.extend_from_slice(b"HTTP/1.1 204 No Content\r\n"),
            _ => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let phrase = status.canonical_reason().unwrap_or("Unknown");
                for piece in ["HTTP/1.1 ", status.as_str(), " ", phrase, "\r\n"] {
                    spare.extend_from_slice(piece.as_bytes());
                }
            }
        }
        let start = spare.len();
        ResponseHead { status, headers: HeaderList { bytes: spare, start, seen: 0 } }
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    /// What the status line says.
    pub(crate) fn reason(&self) -> &str {
        let line = &self.headers.bytes[..self.headers.start - LINE_END.len()];
        line.get(PHRASE_START..).and_then(|phrase| std::str::from_utf8(phrase).ok()).unwrap_or_default()
    }

    /// Says something else in the status line than the standard phrase. What no status line can carry is left out.
    pub(crate) fn set_reason(&mut self, reason: &str) {
        let HeaderList { bytes, start, .. } = &mut self.headers;
        if !is_value(reason.as_bytes()) {
            return;
        }
        let end = *start - LINE_END.len();
        bytes.splice(PHRASE_START..end, reason.bytes());
        *start = PHRASE_START + reason.len() + LINE_END.len();
    }

    pub fn headers(&self) -> &HeaderList {
        &self.headers
    }

    pub fn headers_mut(&mut self) -> &mut HeaderList {
        &mut self.headers
    }

    /// The bytes, without the empty line at the end. Of the version, the last digit stands at [`VERSION_DIGIT`].
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.headers.bytes
    }
}

pub(super) const VERSION_DIGIT: usize = "HTTP/1.".len();
const PHRASE_START: usize = "HTTP/1.1 200 ".len();

/// Whether a header can carry this.
pub(super) fn is_value(bytes: &[u8]) -> bool {
    // Looking at all of them lets the compiler work on many bytes at once.
    !bytes.iter().fold(false, |any, byte| any | is_control(*byte))
}

/// The digits of a number.
pub(super) fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: ResponseHead) -> String {
        String::from_utf8(head.into_bytes()).unwrap()
    }

    #[test]
    fn headers_stand_in_order_and_of_two_with_one_name_the_later_counts() {
        let mut head = ResponseHead::new(201, b"what was there".to_vec());
        let headers = head.headers_mut();
        headers.put("server", "a");
        headers.put("x-ms-version", "2019-02-02");
        headers.put_number("content-length", 0);
        headers.put("server", "another one");
        headers.put_number("content-length", u64::MAX);
        assert!(headers.has("server") && !headers.has("date") && !headers.has("serve"));
        headers.remove("x-ms-version");
        headers.remove("x-ms-version");
        headers.put("x-ms-version", "");
        assert_eq!(
            text(head),
            "HTTP/1.1 201 Created\r\nserver: another one\r\ncontent-length: 18446744073709551615\r\nx-ms-version: \r\n"
        );
    }

    #[test]
    fn what_no_header_can_carry_is_left_out() {
        let mut head = ResponseHead::new(299, Vec::new());
        let headers = head.headers_mut();
        for value in ["a\r\nb: c", "a\nb", "\r", "\0", "\u{7f}", "\u{1b}"] {
            headers.put("x", value);
            headers.put_chosen("x-ms-meta-a", value);
        }
        for name in ["", "a b", "a:", "a\r\nb", "\u{e4}"] {
            headers.put_chosen(name, "v");
        }
        headers.put_with("y", |out| out.extend_from_slice(b"\r\nz: "));
        headers.put("x", "a\t\u{e4}");
        headers.put_chosen("X-Ms-Meta-A", "b");
        headers.put_with("y", |out| out.extend_from_slice(b"z"));
        assert_eq!(
            headers.iter().collect::<Vec<_>>(),
            [("x", "a\t\u{e4}"), ("x-ms-meta-a", "b"), ("y", "z")]
        );
        head.set_reason("not\r\nthis");
        assert_eq!(head.reason(), "Unknown");
    }

    #[test]
    fn a_status_line_may_say_something_of_its_own() {
        let mut head = ResponseHead::new(404, Vec::new());
        head.headers_mut().put("a", "b");
        assert_eq!(head.reason(), "Not Found");
        for reason in ["The specified resource does not exist.", "", "x"] {
            head.set_reason(reason);
            assert_eq!(head.reason(), reason);
        }
        head.headers_mut().put("a", "c");
        assert_eq!((head.status(), text(head)), (404, "HTTP/1.1 404 x\r\na: c\r\n".to_owned()));
    }

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 7, 10, 12_345, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
