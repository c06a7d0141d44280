//! Percent-encoding and percent-decoding of URIs.

use std::borrow::Cow;

/// Decodes `%XX` escapes once. `None` when an escape is broken or the result is not UTF-8.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    let bytes = text.as_bytes();
    let Some(first) = memchr::memchr(b'%', bytes) else { return Some(Cow::Borrowed(text)) };
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut at = first;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let (high, low) = (*bytes.get(at + 1)?, *bytes.get(at + 2)?);
            decoded.push(hex_digit(high)? << 4 | hex_digit(low)?);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// Escapes everything except the unreserved characters of a URI, so that no reader can misread it.
pub(crate) fn push_escaped(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
