//! How bytes become the head of a request, and which heads are refused.
//!
//! Promises: a head is read once, however slowly it arrives. It is refused if it could be read in two ways, because a
//! proxy in front might see another request in it than we do: if its lines do not all end with CR LF, if it has two `Host`
//! or two `Content-Length` headers, both `Content-Length` and `Transfer-Encoding`, or any transfer encoding other than one
//! `chunked`. Names are tokens, values have no control characters, and no line continues the one before it.
//! Leaves to others: how long a head may take, and the memory for it.

use super::body_decoder::BodyKind;
use super::parts::{HeadScan, HeaderLine, RequestParts, Span, hint};

/// A longer target is refused with its own status.
const TARGET_BYTES_MAX: usize = u16::MAX as usize - 1;
/// Longer ones are not kept for the next request.
const KEPT_TEXT_BYTES_MAX: usize = 16 * 1024;
/// How many times longer than the bytes of its head a text can be.
pub(super) const TEXT_GROWTH_MAX: usize = 2;

/// Why a head is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeadError {
    Malformed,
    TargetTooLong,
    TooLarge,
}

impl HeadError {
    pub fn status(self) -> u16 {
        match self {
            HeadError::Malformed => 400,
            HeadError::TargetTooLong => 414,
            HeadError::TooLarge => 431,
        }
    }
}

/// What may stand where.
const TOKEN: u8 = 1;
const UPPER: u8 = 2;
const PATH: u8 = 4;
const QUERY: u8 = 8;

/// The classes of each byte.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_letter = matches!(byte as u8, b'a'..=b'z' | b'0'..=b'9');
        let is_sign = matches!(
            byte as u8,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        if is_letter || is_sign {
            classes[byte] |= TOKEN;
        }
        if (byte as u8).is_ascii_uppercase() {
            classes[byte] |= TOKEN | UPPER;
        }
        // Some clients send quotes and braces as they are, although they should encode them.
        if matches!(byte as u8, 0x21 | 0x22 | 0x24..=0x3b | 0x3d | 0x40..=0x5f | 0x61..=0x7e | 0x80..=0xff) {
            classes[byte] |= PATH;
        }
        if matches!(byte as u8, 0x21 | 0x24..=0x3b | 0x3d | 0x3f..=0x7e | 0x80..=0xff) {
            classes[byte] |= QUERY;
        }
        byte += 1;
    }
    classes
}

fn has_class(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Whether this can be the name of a header.
pub(super) fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| has_class(*byte, TOKEN))
}

const HOST: u32 = hint(b"host");
const CONTENT_LENGTH: u32 = hint(b"content-length");
const TRANSFER_ENCODING: u32 = hint(b"transfer-encoding");
const CONNECTION: u32 = hint(b"connection");
const EXPECT: u32 = hint(b"expect");

impl RequestParts {
    /// Forgets the request before.
    pub(crate) fn clear(&mut self) {
        if self.text.capacity() > KEPT_TEXT_BYTES_MAX {
            self.text = String::new();
        }
        self.text.clear();
        self.lines.clear();
        self.authority = None;
        self.query = None;
        self.expects_continue = false;
        self.body = BodyKind::None;
        let mut line_ends = std::mem::take(&mut self.scan.line_ends);
        line_ends.clear();
        self.scan = HeadScan { line_ends, ..HeadScan::default() };
    }

    /// Reads a head from the beginning of `bytes`, and returns how many of them it takes; `None` while its end has not
    /// arrived. `bytes` may be longer than at the last call, but must begin with the same bytes.
    pub(crate) fn read(&mut self, bytes: &[u8], header_count_max: usize) -> Result<Option<usize>, HeadError> {
        let Some(end) = self.scan.find_end(bytes, header_count_max)? else { return Ok(None) };
        let head = &bytes[self.scan.head_start..end];
        if control_count(head) != 2 * (self.scan.line_ends.len() + 1) {
            return Err(HeadError::Malformed);
        }
        // Enough for names that are written twice, and for values of two bytes for each of theirs.
        if head.len() > KEPT_TEXT_BYTES_MAX / 2 {
            self.text.reserve_exact(TEXT_GROWTH_MAX * head.len());
        }
        match std::str::from_utf8(head) {
            Ok(text) => self.text.push_str(text),
            Err(_) => self.read_latin(head)?,
        }
        self.read_request_line()?;
        self.read_lines()?;
        Ok(Some(end))
    }

    /// A head for a request that did not come by itself. `None` if it would be refused.
    pub(crate) fn compose<'h>(
        method: &str,
        target: &str,
        headers: impl Iterator<Item = (&'h str, &'h str)>,
    ) -> Option<RequestParts> {
        let mut text = [method, " ", target, " HTTP/1.1\r\n"].concat();
        let mut count = 0;
        for (name, value) in headers {
            for piece in [name, ": ", value, "\r\n"] {
                text.push_str(piece);
            }
            count += 1;
        }
        text.push_str("\r\n");
        let mut parts = RequestParts::default();
        let end = parts.read(text.as_bytes(), count).ok()??;
        // With a line end within one of its parts, it would be another head.
        (end == text.len() && parts.lines.len() == count).then_some(parts)
    }

    /// Some clients write values in Latin-1 instead of UTF-8. HTTP leaves their meaning open, and all clients sign the
    /// characters as UTF-8. A request line is never written like that.
    fn read_latin(&mut self, head: &[u8]) -> Result<(), HeadError> {
        let mut start = 0;
        for end in &mut self.scan.line_ends {
            let line = &head[start..*end as usize];
            match std::str::from_utf8(line) {
                Ok(line) => self.text.push_str(line),
                Err(_) if start == 0 => return Err(HeadError::Malformed),
                Err(_) => self.text.extend(line.iter().map(|byte| char::from(*byte))),
            }
            start = *end as usize;
            *end = self.text.len() as u32;
        }
        self.text.push_str("\r\n");
        Ok(())
    }

    fn read_request_line(&mut self) -> Result<(), HeadError> {
        let end = self.scan.line_ends.first().copied().unwrap_or_default() as usize;
        let line = self.text.as_bytes().get(..end).and_then(|line| line.strip_suffix(b"\r\n"));
        let line = line.ok_or(HeadError::Malformed)?;
        let method_end = line.iter().position(|byte| !has_class(*byte, TOKEN)).unwrap_or(0);
        let (line, version) = line.split_at(line.len().saturating_sub(b" HTTP/1.1".len()));
        self.is_http_10 = match version {
            b" HTTP/1.1" => false,
            b" HTTP/1.0" => true,
            _ => return Err(HeadError::Malformed),
        };
        self.keeps_alive = !self.is_http_10;
        if method_end == 0 || line.get(method_end) != Some(&b' ') {
            return Err(HeadError::Malformed);
        }
        let target_end = line.len();
        self.method = Span::new(0, method_end);
        self.read_target(method_end + 1, target_end)
    }

    /// Reads a path, an absolute URL, or an asterisk. A fragment is left out.
    fn read_target(&mut self, start: usize, end: usize) -> Result<(), HeadError> {
        let target = &self.text.as_bytes()[start..end];
        if target.len() > TARGET_BYTES_MAX {
            return Err(HeadError::TargetTooLong);
        }
        let mut path_start = 0;
        match target {
            b"*" => {
                self.path = Span::new(start, end);
                return Ok(());
            }
            [b'/', ..] => {}
            _ => {
                let authority_start = authority_start(target).ok_or(HeadError::Malformed)?;
                let authority_len = authority_len(&target[authority_start..]).ok_or(HeadError::Malformed)?;
                path_start = authority_start + authority_len;
                self.authority = Some(Span::new(start + authority_start, start + path_start));
            }
        }
        let rest = &target[path_start..];
        let path_len = rest.iter().position(|byte| !has_class(*byte, PATH)).unwrap_or(rest.len());
        let path_end = path_start + path_len;
        self.path = Span::new(start + path_start, start + path_end);
        let mut end = path_end;
        if target.get(path_end) == Some(&b'?') {
            let query = &target[path_end + 1..];
            let query_len = query.iter().position(|byte| !has_class(*byte, QUERY)).unwrap_or(query.len());
            end = path_end + 1 + query_len;
            self.query = Some(Span::new(start + path_end + 1, start + end));
        }
        match &target[end..] {
            [] => Ok(()),
            [b'#', fragment @ ..] if memchr::memchr2(b' ', b'\t', fragment).is_none() => Ok(()),
            _ => Err(HeadError::Malformed),
        }
    }

    fn read_lines(&mut self) -> Result<(), HeadError> {
        let RequestParts { text, lines, scan, .. } = self;
        let mut announced = Announced::default();
        let mut start = scan.line_ends.first().copied().unwrap_or_default() as usize;
        for end in scan.line_ends.iter().skip(1) {
            let line = &text.as_bytes()[start..*end as usize - 2];
            let mut class = 0;
            let mut name_len = 0;
            for byte in line {
                let of_byte = CLASSES[*byte as usize];
                if of_byte & TOKEN == 0 {
                    break;
                }
                class |= of_byte;
                name_len += 1;
            }
            if name_len == 0 || line.get(name_len) != Some(&b':') {
                return Err(HeadError::Malformed);
            }
            let (name, value) = (&line[..name_len], trim(line, name_len + 1));
            let hint = hint(name);
            announced.take(hint, name, &line[value.clone()])?;
            let name = Span::new(start, start + name_len);
            let value = Span::new(start + value.start, start + value.end);
            let mut lower_start = name.start;
            if class & UPPER != 0 {
                lower_start = text.len() as u32;
                text.extend_from_within(start..start + name_len);
                text[lower_start as usize..].make_ascii_lowercase();
            }
            lines.push(HeaderLine { hint, name, lower_start, value });
            start = *end as usize;
        }
        self.expects_continue = announced.expects_continue && !self.is_http_10;
        if announced.closes {
            self.keeps_alive = false;
        } else {
            self.keeps_alive |= announced.keeps_alive;
        }
        self.body = announced.body(self.is_http_10)?;
        Ok(())
    }
}

impl HeadScan {
    /// Where the head ends, if its end has arrived. The first line that does not end with CR LF is an error.
    fn find_end(&mut self, bytes: &[u8], header_count_max: usize) -> Result<Option<usize>, HeadError> {
        while let Some(at) = memchr::memchr(b'\n', bytes.get(self.done..).unwrap_or_default()) {
            let end = self.done + at;
            let start = std::mem::replace(&mut self.line_start, end + 1);
            self.done = end + 1;
            if end == start || bytes[end - 1] != b'\r' {
                return Err(HeadError::Malformed);
            }
            if end - 1 > start {
                // The first line is no header.
                if self.line_ends.len() > header_count_max {
                    return Err(HeadError::TooLarge);
                }
                // Who speaks another protocol may wait for our answer before it says more.
                if self.line_ends.is_empty() && !may_be_request_line(&bytes[start..end - 1]) {
                    return Err(HeadError::Malformed);
                }
                self.line_ends.push((end + 1 - self.head_start) as u32);
            } else if self.line_ends.is_empty() {
                // Empty lines before a request are ignored.
                self.head_start = end + 1;
            } else {
                return Ok(Some(end + 1));
            }
        }
        self.done = bytes.len();
        // A method begins like this. A client that tries TLS on a port without it does not send a line end soon.
        let may_begin = |first: &u8| *first == b'\r' || has_class(*first, TOKEN);
        if self.line_ends.is_empty() && !bytes.get(self.head_start).is_none_or(may_begin) {
            return Err(HeadError::Malformed);
        }
        Ok(None)
    }
}

/// Whether a line begins and ends like a request line.
fn may_be_request_line(line: &[u8]) -> bool {
    let ends_with_version = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
    ends_with_version && line.first().is_some_and(|first| has_class(*first, TOKEN))
}

/// What the headers say about the body and the connection.
#[derive(Default)]
struct Announced {
    has_host: bool,
    is_chunked: bool,
    content_length: Option<u64>,
    closes: bool,
    keeps_alive: bool,
    expects_continue: bool,
}

impl Announced {
    fn take(&mut self, hint: u32, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let is_right = match hint {
            HOST if is(b"host") => !std::mem::replace(&mut self.has_host, true),
            CONTENT_LENGTH if is(b"content-length") => {
                self.content_length.is_none() && {
                    self.content_length = decimal(value);
                    self.content_length.is_some()
                }
            }
            TRANSFER_ENCODING if is(b"transfer-encoding") => {
                !std::mem::replace(&mut self.is_chunked, true) && value.eq_ignore_ascii_case(b"chunked")
            }
            CONNECTION if is(b"connection") => {
                for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.closes |= word.eq_ignore_ascii_case(b"close");
                    self.keeps_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
                true
            }
            EXPECT if is(b"expect") => {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
                true
            }
            _ => true,
        };
        if is_right { Ok(()) } else { Err(HeadError::Malformed) }
    }

    fn body(&self, is_http_10: bool) -> Result<BodyKind, HeadError> {
        match (self.is_chunked, self.content_length) {
            (true, None) if !is_http_10 => Ok(BodyKind::Chunked),
            (true, _) => Err(HeadError::Malformed),
            (false, None | Some(0)) => Ok(BodyKind::None),
            (false, Some(len)) => Ok(BodyKind::Length(len)),
        }
    }
}

/// Whether no value of a header can contain this byte. A tab may stand in one.
#[inline]
pub(super) fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// How many control characters there are. Only line ends may contain some, and every line has two.
fn control_count(bytes: &[u8]) -> usize {
    // Sums that fit into a byte let the compiler work on many bytes at once.
    let of_few = |few: &[u8]| usize::from(few.iter().map(|byte| u8::from(is_control(*byte))).sum::<u8>());
    bytes.chunks(128).map(of_few).sum()
}

/// Where the value is that begins at `start`, without the blanks around it.
fn trim(line: &[u8], start: usize) -> std::ops::Range<usize> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let value = &line[start..];
    let Some(first) = value.iter().position(|byte| !is_blank(byte)) else { return start..start };
    let last = value.iter().rposition(|byte| !is_blank(byte)).unwrap_or(first);
    start + first..start + last + 1
}

/// Where the host of an absolute URL begins.
fn authority_start(target: &[u8]) -> Option<usize> {
    let scheme_len = memchr::memchr(b':', target)?;
    let is_in_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_scheme = scheme_len > 0 && target[..scheme_len].iter().all(is_in_scheme);
    (is_scheme && target[scheme_len..].starts_with(b"://")).then_some(scheme_len + 3)
}

/// How long the host of an absolute URL is, with its port. It may be a name, an address, or an IPv6 address in brackets.
fn authority_len(rest: &[u8]) -> Option<usize> {
    let len = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let authority = &rest[..len];
    let (host, port) = match authority.strip_prefix(b"[") {
        Some(after) => {
            let host_len = memchr::memchr(b']', after)?;
            (&after[..host_len], &after[host_len + 1..])
        }
        None => authority.split_at(memchr::memchr(b':', authority).unwrap_or(len)),
    };
    let is_in_address = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let is_in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte);
    let is_host = match authority.first() {
        Some(b'[') => host.iter().all(is_in_address),
        _ => host.iter().all(is_in_name),
    };
    let is_port = match port.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    };
    (!host.is_empty() && is_host && is_port).then_some(len)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests;
