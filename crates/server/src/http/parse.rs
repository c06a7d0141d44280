//! How bytes become the head of a request, and which heads are refused.
//!
//! Promises: a head is read once, however slowly it arrives. It is refused if it could be read in two ways, because a
//! proxy in front might see another request in it than we do: if its lines do not all end with CR LF, if it has two `Host`
//! or two `Content-Length` headers, both `Content-Length` and `Transfer-Encoding`, or any transfer encoding other than one
//! `chunked`. Names are tokens, values have no control characters, and no line continues the one before it.
//! Leaves to others: how long a head may take, and the memory for it.

use super::body_decoder::BodyKind;
use super::known_names;
use super::parts::{HeadScan, HeaderLine, RequestParts, Span, bit, hint, slot};

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
const QUERY: u8 = 2;

/// The classes of each byte.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_letter = matches!(byte as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9');
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

/// Whether a path can have these bytes, none of which begins a query or a fragment. Some clients send quotes and braces as
/// they are, although they should encode them.
fn is_path(bytes: &[u8]) -> bool {
    let is_wrong = |byte: u8| byte <= b' ' || matches!(byte, b'<' | b'>' | b'`' | 0x7f);
    // Looking at all of them lets the compiler work on many bytes at once.
    !bytes.iter().fold(false, |any, byte| any | is_wrong(*byte))
}

/// Where the name of a header ends. Names are short, and a search that is made for long texts costs twice as much here.
fn colon_in(line: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = line.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        // A byte that is zero here is a colon. The lowest one is found right; borrows can set wrong bits only above it.
        let differing = u64::from_le_bytes(*word) ^ (ONES * b':' as u64);
        let found = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        if found != 0 {
            return Some(8 * index + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte == b':')?;
    Some(line.len() - rest.len() + at)
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
        self.seen = 0;
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
        if !has_controls_only_at_ends(head, self.scan.line_ends.len() + 1) {
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
        let path_len = memchr::memchr2(b'?', b'#', rest).unwrap_or(rest.len());
        if !is_path(&rest[..path_len]) {
            return Err(HeadError::Malformed);
        }
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
        let RequestParts { text, lines, seen, first, scan, .. } = self;
        let mut announced = Announced::default();
        let mut start = scan.line_ends.first().copied().unwrap_or_default() as usize;
        for end in scan.line_ends.iter().skip(1) {
            let line = &text.as_bytes()[start..*end as usize - 2];
            let name_len = colon_in(line).ok_or(HeadError::Malformed)?;
            let (name, value) = (&line[..name_len], trim(line, name_len + 1));
            let hint = hint(name);
            let known = known_names::find(hint, name);
            if known.is_none() && !is_token(name) {
                return Err(HeadError::Malformed);
            }
            let has_upper = known.is_none() && name.iter().any(u8::is_ascii_uppercase);
            announced.take(hint, name, &line[value.clone()])?;
            let name = Span::new(start, start + name_len);
            let value = Span::new(start + value.start, start + value.end);
            let mut lower_start = name.start;
            if has_upper {
                lower_start = text.len() as u32;
                text.extend_from_within(start..start + name_len);
                text[lower_start as usize..].make_ascii_lowercase();
            }
            if *seen & bit(hint) == 0 {
                *seen |= bit(hint);
                first[slot(hint)] = u8::try_from(lines.len()).unwrap_or(u8::MAX);
            }
            lines.push(HeaderLine { hint, name, known, lower_start, value });
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

/// Whether only line ends have control characters. Each of them has two.
fn has_controls_only_at_ends(head: &[u8], line_count: usize) -> bool {
    // Taking tabs and bytes beyond ASCII for control characters needs one comparison less for each byte. Few heads have any,
    // and then the exact count decides.
    let may_be_control = |byte: u8| (byte as i8) < 0x20 || byte == 0x7f;
    count(head, may_be_control) == 2 * line_count || count(head, is_control) == 2 * line_count
}

fn count(bytes: &[u8], is_meant: impl Fn(u8) -> bool) -> usize {
    // Sums that fit into a byte let the compiler work on many bytes at once.
    let of_few = |few: &[u8]| usize::from(few.iter().map(|byte| u8::from(is_meant(*byte))).sum::<u8>());
    bytes.chunks(240).map(of_few).sum()
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
