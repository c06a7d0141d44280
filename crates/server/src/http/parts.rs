//! The head of a request: its text, and where the parts of it stand.
//!
//! Promises: every value is UTF-8. A header is found whatever the case of its name, and the name is there as it was sent.
//! A value of this type is used for all requests of a connection, so a head of usual length allocates nothing.
//! Leaves to others: how bytes become a head, and which heads are refused (`parse`).

use super::body_decoder::BodyKind;

/// What stands on the lines of a request's head.
pub struct RequestParts {
    /// The head as it was sent. Behind it stand names that have an upper-case letter, in lower case; those that are known
    /// need no copy.
    pub(super) text: String,
    pub(super) method: Span,
    /// The host of a request line that has an absolute URL.
    pub(super) authority: Option<Span>,
    /// Empty only for an absolute URL without a path.
    pub(super) path: Span,
    /// Without its question mark.
    pub(super) query: Option<Span>,
    pub(super) lines: Vec<HeaderLine>,
    /// Has the bit of each header's name. So most names that are not there are known by their bit.
    pub(super) seen: u64,
    /// For each bit that is set: no line before this one has a name with that bit.
    pub(super) first: [u8; 64],
    pub(super) is_http_10: bool,
    /// Whether the client wants to use the connection again.
    pub(super) keeps_alive: bool,
    /// Whether the client waits to be asked for the body.
    pub(super) expects_continue: bool,
    pub(super) body: BodyKind,
    pub(super) scan: HeadScan,
}

impl Default for RequestParts {
    fn default() -> RequestParts {
        RequestParts {
            text: String::new(),
            method: Span::default(),
            authority: None,
            path: Span::default(),
            query: None,
            lines: Vec::new(),
            seen: 0,
            first: [0; 64],
            is_http_10: false,
            keeps_alive: false,
            expects_continue: false,
            body: BodyKind::default(),
            scan: HeadScan::default(),
        }
    }
}

/// A part of the text.
#[derive(Clone, Copy, Default)]
pub(super) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// Heads are much shorter than 4 GiB.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }
}

/// One header.
#[derive(Clone, Copy)]
pub(super) struct HeaderLine {
    /// The hint of its name.
    pub hint: u32,
    /// As it was sent.
    pub name: Span,
    /// The name in lower case, if it is one that most requests have.
    pub known: Option<&'static str>,
    /// Where any other name stands in lower case.
    pub lower_start: u32,
    /// Without the blanks around it.
    pub value: Span,
}

/// How far a head was looked at whose end has not arrived.
#[derive(Default)]
pub(super) struct HeadScan {
    /// Where the head begins: behind empty lines.
    pub head_start: usize,
    pub line_start: usize,
    /// Everything before this place was looked at.
    pub done: usize,
    /// Where each line ends, counted from the beginning of the head.
    pub line_ends: Vec<u32>,
}

/// Most names differ in their length, or in their first or last letter. So one comparison of numbers tells most of them
/// apart.
pub(super) const fn hint(name: &[u8]) -> u32 {
    match name {
        [] => 0,
        [first, ..] => {
            let last = name[name.len() - 1].to_ascii_lowercase() as u32;
            (name.len() as u32) << 16 | (first.to_ascii_lowercase() as u32) << 8 | last
        }
    }
}

/// One of 64 slots for a name with this hint. Some names share one, but not the usual ones: the factor was found by trying.
pub(super) const fn slot(hint: u32) -> usize {
    (hint.wrapping_mul(0x7fb7_0af1) >> 26) as usize
}

/// One of 64 bits for a name with this hint.
pub(super) const fn bit(hint: u32) -> u64 {
    1 << slot(hint)
}

impl RequestParts {
    fn of(&self, span: Span) -> &str {
        // A span is always a part of the text.
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    pub fn method(&self) -> &str {
        self.of(self.method)
    }

    /// The host, and perhaps the port, of a request line that has an absolute URL.
    pub(crate) fn authority(&self) -> Option<&str> {
        self.authority.map(|span| self.of(span))
    }

    /// Still percent-encoded.
    pub fn path(&self) -> &str {
        match self.of(self.path) {
            "" => "/",
            path => path,
        }
    }

    /// Without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.query.map(|span| self.of(span))
    }

    /// The value of the first header with this name, which is given in lower case.
    // Most callers name a constant. Inlined, its hint and its bit are constants too.
    #[inline(always)]
    pub fn header(&self, name: &str) -> Option<&str> {
        let hint = hint(name.as_bytes());
        if self.seen & bit(hint) == 0 { None } else { self.find(name, hint) }
    }

    fn find(&self, name: &str, hint: u32) -> Option<&str> {
        let lines = self.lines.get(usize::from(self.first[slot(hint)])..)?;
        let line = lines.iter().find(|line| line.hint == hint && self.lower_name(line) == name)?;
        Some(self.of(line.value))
    }

    /// The values of all headers with this name, which is given in lower case.
    #[inline]
    pub(crate) fn values<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s str> {
        let hint = hint(name.as_bytes());
        let lines = if self.seen & bit(hint) == 0 { &[][..] } else { &self.lines[..] };
        let found = lines.iter().filter(move |line| line.hint == hint && self.lower_name(line) == name);
        found.map(|line| self.of(line.value))
    }

    #[inline(always)]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.header(name).is_some()
    }

    /// Names in lower case, and values, in the order sent.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.iter().map(|line| (self.lower_name(line), self.of(line.value)))
    }

    /// The same, with names as they were sent.
    pub(crate) fn spelt_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines.iter().map(|line| (self.of(line.name), self.of(line.value)))
    }

    /// Whether a request has begun to arrive, in so many bytes of input. Empty lines before it are none.
    pub(super) fn has_begun(&self, input_len: usize) -> bool {
        self.scan.head_start < input_len
    }

    fn lower_name(&self, line: &HeaderLine) -> &str {
        let len = line.name.end - line.name.start;
        line.known.unwrap_or_else(|| self.of(Span { start: line.lower_start, end: line.lower_start + len }))
    }

    /// Whether the request says how long its body is, or sends it in chunks.
    pub(crate) fn announces_body(&self) -> bool {
        self.has("content-length") || self.has("transfer-encoding")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_have_bits_of_their_own() {
        let check = |names: &[&str]| {
            let bits = names.iter().fold(0, |bits, name| bits | bit(hint(name.as_bytes())));
            assert_eq!(bits.count_ones() as usize, names.len(), "{names:?}");
        };
        check(&[
            "host",
            "x-ms-version",
            "x-ms-date",
            "accept",
            "dataserviceversion",
            "authorization",
            "origin",
        ]);
        check(&[
            "server",
            "x-ms-request-id",
            "x-ms-version",
            "cache-control",
            "x-content-type-options",
            "etag",
        ]);
        for other in ["cache-control", "content-type", "date", "etag", "location", "server", "x-ms-version"] {
            check(&["content-length", other]);
        }
    }
}
