//! Writes XML documents, each into one buffer.
//!
//! Owns: how text is escaped. Promises: reading a written text returns it.

use crate::common::DateTime;
use crate::common::decimal::Digits;

/// The byte order mark. Clients may send it, and some services do.
pub(crate) const MARK: &str = "\u{FEFF}";
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

/// Writes one document on one line, as the services do.
pub(crate) struct XmlWriter {
    out: Vec<u8>,
}

impl XmlWriter {
    /// Writes the byte order mark and the declaration.
    pub fn begin() -> XmlWriter {
        XmlWriter { out: [MARK, DECLARATION].concat().into_bytes() }
    }

    /// Writes the declaration alone, and makes room for this many bytes.
    pub(crate) fn begin_unmarked(capacity_bytes: usize) -> XmlWriter {
        let mut out = Vec::with_capacity(DECLARATION.len() + capacity_bytes);
        out.extend_from_slice(DECLARATION.as_bytes());
        XmlWriter { out }
    }

    pub fn start(&mut self, name: &str) {
        self.push(&["<", name, ">"]);
    }

    /// Starts an element with one attribute.
    pub fn start_with(&mut self, name: &str, attribute: &str, value: &str) {
        self.start_with_all(name, &[(attribute, value)]);
    }

    /// Starts an element with attributes.
    pub(crate) fn start_with_all(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.push(&["<", name]);
        for (attribute, value) in attributes {
            self.push(&[" ", attribute, "=\""]);
            let mut pieces = value.split('"');
            escape(pieces.next().unwrap_or_default(), &mut self.out);
            for piece in pieces {
                self.push(&["&quot;"]);
                escape(piece, &mut self.out);
            }
            self.push(&["\""]);
        }
        self.push(&[">"]);
    }

    pub fn end(&mut self, name: &str) {
        self.push(&["</", name, ">"]);
    }

    /// Writes an element with nothing inside.
    pub fn empty(&mut self, name: &str) {
        self.push(&["<", name, " />"]);
    }

    /// Writes an element with text inside, or empty if there is no text.
    pub fn leaf(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return self.empty(name);
        }
        self.start(name);
        escape(text, &mut self.out);
        self.end(name);
    }

    /// Writes an element whose text needs no escaping, as numbers and dates do.
    pub fn plain(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.start(name);
        write(&mut self.out);
        self.end(name);
    }

    pub fn number(&mut self, name: &str, number: u64) {
        self.plain(name, |out| out.extend_from_slice(Digits::new(number).as_bytes()));
    }

    /// Writes text into the element that was started last.
    pub fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    pub fn http_date(&mut self, name: &str, date: DateTime) {
        self.plain(name, |out| date.write_http(out));
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Takes what is written so far.
    pub fn drain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Takes back everything after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    fn push(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.out.extend_from_slice(piece.as_bytes());
        }
    }
}

/// Writes a text so that reading it returns it. Characters that XML does not have are replaced.
pub(crate) fn escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    // Nearly all texts are copied in one piece.
    let mut copied = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if is_plain(*byte) {
            continue;
        }
        let (replacement, len) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            // Written literally, it would be read as a line ending.
            b'\r' => ("&#xD;", 1),
            b'\xEF' if !matches!(bytes[at..], [_, b'\xBF', b'\xBE' | b'\xBF', ..]) => continue,
            b'\xEF' => ("\u{FFFD}", 3),
            _ => ("\u{FFFD}", 1),
        };
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(replacement.as_bytes());
        copied = at + len;
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// Whether XML can hold the text: every character of it is one that XML has.
pub fn is_xml_text(text: &str) -> bool {
    text.chars().all(|character| {
        matches!(character, '\t' | '\n' | '\r' | ' '..) && !matches!(character, '\u{FFFE}' | '\u{FFFF}')
    })
}

/// How long a text becomes by escaping, at most: no replacement is longer than `&#xD;`.
pub(crate) fn escaped_len(text: &[u8]) -> usize {
    let special_count = text.iter().filter(|byte| !is_plain(**byte)).count();
    text.len() + special_count * ("&#xD;".len() - 1)
}

/// Whether a byte always stands for itself: in a text to write, and in the text of an element to read.
pub(crate) fn is_plain(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = byte == b'\t' as usize || byte == b'\n' as usize;
        byte += 1;
    }
    plain[b'&' as usize] = false;
    plain[b'<' as usize] = false;
    plain[b'>' as usize] = false;
    // U+FFFE and U+FFFF begin with it.
    plain[0xEF] = false;
    plain
};

/// The same document without a byte order mark.
pub fn without_mark(mut document: Vec<u8>) -> Vec<u8> {
    if document.starts_with(MARK.as_bytes()) {
        document.drain(..MARK.len());
    }
    document
}

#[cfg(test)]
mod tests {
    use super::super::xml::{is_xml_character, read};
    use super::*;

    #[test]
    fn texts_are_read_as_written() {
        let check = |text: &str, expected: &str| {
            let mut written = Vec::new();
            escape(text, &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{text:?}");
        };
        check("", "");
        check("plain \t\n \"'", "plain \t\n \"'");
        check("<a>&\r\n", "&lt;a&gt;&amp;&#xD;\n");
        check("\u{FEFF}\u{FFFD}\u{FF21}\u{D7FF}\u{1F600}", "\u{FEFF}\u{FFFD}\u{FF21}\u{D7FF}\u{1F600}");
        check("a\u{FFFE}b\u{FFFF}c\0d\u{1f}", "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}");
        let all = (0..0xFFFF_u32).chain(0x1_FFF0..0x2_0010).filter_map(char::from_u32);
        let all: String = all.filter(|found| is_xml_character(*found)).collect();
        for text in all.chars().collect::<Vec<_>>().chunks(8_000) {
            let text: String = text.iter().collect();
            let mut writer = XmlWriter::begin_unmarked(0);
            writer.leaf("a", &text);
            assert_eq!(read(&writer.finish(), "a").unwrap().text, text);
        }
    }

    #[test]
    fn attributes_are_escaped() {
        let mut writer = XmlWriter::begin();
        writer.start_with("a", "b", "\"<&x");
        writer.end("a");
        let document = without_mark(writer.finish());
        assert!(document.ends_with(b"<a b=\"&quot;&lt;&amp;x\"></a>"));
        assert!(document.starts_with(b"<?xml"));
        assert!(read(&document, "a").is_ok());
    }

    #[test]
    fn written_text_is_read_back() {
        for text in ["", " ", "a", "<&>\"'", "]]>", "\r\n\t\r", "é\u{1F600}\u{FFFD}", "<!--", "&amp;"] {
            let mut writer = XmlWriter::begin();
            writer.start("a");
            writer.leaf("b", text);
            writer.end("a");
            let document = writer.finish();
            let element = read(&document, "a").unwrap();
            let [leaf] = element.fields(["b"]).unwrap();
            assert_eq!(leaf.unwrap().leaf().unwrap(), text);
        }
        let mut writer = XmlWriter::begin();
        writer.leaf("a", "\0<&>\"'\r\n");
        let document = String::from_utf8(writer.finish()).unwrap();
        assert_eq!(document, format!("{MARK}{DECLARATION}<a>\u{FFFD}&lt;&amp;&gt;\"'&#xD;\n</a>"));
        assert_eq!(MARK.as_bytes(), b"\xef\xbb\xbf");
    }
}
