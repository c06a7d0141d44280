//! Multipart bodies with requests or responses inside, as batches have them.
//!
//! Promises: reads every client's and every server's dialect, including CRLF or LF, delimiters without their final
//! dashes, extra blank lines, and header names in any case. Reading takes time linear in the body.
//! Leaves to others: what the parts mean.

use memchr::memmem;

use crate::{ErrorCode, ServiceError};

pub(crate) fn is_multipart(content_type: &str) -> bool {
    let start = content_type.trim_start().get(.."multipart/".len());
    start.is_some_and(|start| start.eq_ignore_ascii_case("multipart/"))
}

/// The boundary of a multipart type; `None` if the type is another one.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    parameter(content_type, "boundary").filter(|boundary| is_multipart(content_type) && !boundary.is_empty())
}

/// A parameter of a media type. Its quotes are removed.
pub(crate) fn parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (found, value) = parameter.split_once('=')?;
        found.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
    })
}

/// The contents between delimiter lines, at most `count_max` of them. Old clients leave out the closing delimiter, so
/// anything but white space after the last one counts as a part too.
pub(crate) fn split<'a>(
    body: &'a [u8],
    boundary: &str,
    count_max: usize,
) -> Result<Vec<&'a [u8]>, ServiceError> {
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut content_start = None;
    for at in memmem::find_iter(body, delimiter.as_bytes()) {
        // Checked first, so that the end of a line is searched once per line and not once per delimiter in it.
        if at > 0 && body[at - 1] != b'\n' {
            continue;
        }
        let rest = &body[at + delimiter.len()..];
        let line_len = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        let tail = rest[..line_len].trim_ascii();
        // Another, longer boundary may begin with this one.
        if !(tail.is_empty() || tail == b"--") {
            continue;
        }
        if let Some(start) = content_start {
            parts.push(trim_line_end(&body[start..at.max(start)]));
        }
        content_start = (tail != b"--").then_some(at + delimiter.len() + line_len);
        if content_start.is_none() || parts.len() == count_max {
            return Ok(parts);
        }
    }
    match content_start {
        Some(start) if !body[start..].trim_ascii().is_empty() => parts.push(&body[start..]),
        Some(_) => {}
        None => return Err(ErrorCode::InvalidInput.into()),
    }
    Ok(parts)
}

/// The line ending before a delimiter belongs to the delimiter.
fn trim_line_end(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

/// More headers than any client sends; a part with more is refused.
const PART_HEADER_COUNT_MAX: usize = 64;

/// Visits the header lines up to a blank line, and returns the rest.
pub(crate) fn read_headers<'a>(
    part: &'a [u8],
    mut visit: impl FnMut(&'a str, &'a str),
) -> Result<&'a [u8], ServiceError> {
    let mut count = 0;
    let mut rest = part;
    loop {
        let (line, after) = next_line(rest);
        rest = after;
        if line.trim_ascii().is_empty() {
            return Ok(rest);
        }
        if count == PART_HEADER_COUNT_MAX {
            return Err(ErrorCode::InvalidInput.into());
        }
        count += 1;
        let line = std::str::from_utf8(line).map_err(|_| ErrorCode::InvalidInput)?;
        let colon = memchr::memchr(b':', line.as_bytes()).ok_or(ErrorCode::InvalidInput)?;
        visit(trim(&line[..colon]), trim(&line[colon + 1..]));
    }
}

/// Like [`str::trim`], but fast when there is at most one space in front and one `\r` behind.
fn trim(text: &str) -> &str {
    let bare = text.strip_prefix(' ').unwrap_or(text);
    let bare = bare.strip_suffix('\r').unwrap_or(bare);
    match bare.as_bytes() {
        [0x21..=0x7E] | [0x21..=0x7E, .., 0x21..=0x7E] => bare,
        _ => bare.trim(),
    }
}

pub(crate) fn next_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', text) {
        Some(newline) => (&text[..newline], &text[newline + 1..]),
        None => (text, &[]),
    }
}
