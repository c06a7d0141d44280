//! The payload of Put Message and Update Message: `<QueueMessage><MessageText>TEXT</MessageText></QueueMessage>`.
//!
//! Promises: the text is what an XML parser sees, with its blanks. Reading never panics and takes time linear in the body.
//! A body in the usual form is scanned once and not copied; every other form, and every error, is left to a parser.

use std::borrow::Cow;

use super::versions;
use crate::common::xml::{XmlPieces, invalid_document, is_xml_character, walk};
use crate::common::xml_write::{MARK, XmlWriter, escaped_len, is_plain};
use crate::{ErrorCode, ServiceError};

/// In UTF-8, after unescaping.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
const OLD_TEXT_BYTES_MAX: usize = 8 * 1024;
/// A byte of text takes at most six when it is escaped, as in `&quot;`. The rest is for markup around the text.
const BODY_BYTES_MAX: usize = 8 * TEXT_BYTES_MAX;
/// No reference that stands for a character is longer, unless its number has needless zeros.
const REFERENCE_BYTES_MAX: usize = "&#x10FFFF;".len();

const ROOT: &str = "QueueMessage";
const TEXT: &str = "MessageText";
/// The declarations that clients write.
const DECLARATIONS: [&str; 6] = [
    "<?xml version=\"1.0\" encoding=\"utf-8\"",
    "<?xml version=\"1.0\" encoding=\"UTF-8\"",
    "<?xml version='1.0' encoding='utf-8'",
    "<?xml version='1.0' encoding='UTF-8'",
    "<?xml version=\"1.0\"",
    "<?xml version='1.0'",
];

/// Reads the text of a message. Markup inside the text is removed.
pub fn read_message<'a>(body: &'a [u8], version: &str) -> Result<Cow<'a, str>, ServiceError> {
    let text_bytes_max = if version < versions::LONG_MESSAGES { OLD_TEXT_BYTES_MAX } else { TEXT_BYTES_MAX };
    if body.len() > BODY_BYTES_MAX {
        return Err(too_large(text_bytes_max));
    }
    let body = std::str::from_utf8(body).map_err(invalid_document)?;
    let body = body.strip_prefix(MARK).unwrap_or(body);
    let text = match scan(body) {
        Some(text) => text,
        None => Cow::Owned(parse(body)?),
    };
    if text.len() > text_bytes_max { Err(too_large(text_bytes_max)) } else { Ok(text) }
}

/// Writes the payload, as a client does. Characters that XML does not have are replaced: `is_xml_text` tells whether the
/// text has any.
pub fn write_message(text: &str) -> Vec<u8> {
    let mut out = XmlWriter::begin_unmarked(escaped_len(text.as_bytes()) + 4 * (ROOT.len() + TEXT.len()));
    out.start(ROOT);
    out.leaf(TEXT, text);
    out.end(ROOT);
    out.finish()
}

/// The error for a text, or for a body that could not hold a shorter one.
pub fn too_large(bytes_max: usize) -> ServiceError {
    ServiceError::from(ErrorCode::RequestBodyTooLarge).with_element("MaxLimit", bytes_max.to_string())
}

/// The text of a body in the usual form: no attributes, no comments, no sections, and no markup in the text. `None` for
/// any other body.
fn scan(body: &str) -> Option<Cow<'_, str>> {
    let rest = skip_declaration(body)?;
    let rest = skip_tag(skip_blanks(rest), "<", ROOT, ">")?;
    let rest = skip_blanks(rest);
    let (raw, rest) = match skip_tag(rest, "<", TEXT, ">") {
        Some(rest) => {
            let len = memchr::memchr(b'<', rest.as_bytes())?;
            (&rest[..len], skip_tag(&rest[len..], "</", TEXT, ">")?)
        }
        None => ("", skip_tag(rest, "<", TEXT, "/>").or_else(|| skip_tag(rest, "<", TEXT, " />"))?),
    };
    let rest = skip_tag(skip_blanks(rest), "</", ROOT, ">")?;
    if !skip_blanks(rest).is_empty() {
        return None;
    }
    unescape(raw)
}

fn skip_declaration(body: &str) -> Option<&str> {
    if !body.starts_with("<?") {
        return Some(body);
    }
    let (declaration, rest) = body.split_once("?>")?;
    DECLARATIONS.contains(&declaration).then_some(rest)
}

fn skip_tag<'a>(text: &'a str, start: &str, name: &str, end: &str) -> Option<&'a str> {
    text.strip_prefix(start)?.strip_prefix(name)?.strip_prefix(end)
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\r', '\n'])
}

/// The text that a parser makes of text without markup. `None` if it may be malformed.
fn unescape(raw: &str) -> Option<Cow<'_, str>> {
    let plain_len = |text: &str| text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
    let mut len = plain_len(raw);
    if len == raw.len() {
        return Some(Cow::Borrowed(raw));
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    loop {
        text.push_str(&rest[..len]);
        rest = &rest[len..];
        let Some(first) = rest.chars().next() else { return Some(Cow::Owned(text)) };
        rest = match first {
            '&' => {
                let end = rest.bytes().take(REFERENCE_BYTES_MAX).position(|byte| byte == b';')?;
                text.push(referred(&rest[1..end])?);
                &rest[end + 1..]
            }
            // All line endings become one character.
            '\r' => {
                text.push('\n');
                rest[1..].strip_prefix('\n').unwrap_or(&rest[1..])
            }
            _ if is_xml_character(first) => {
                text.push(first);
                &rest[first.len_utf8()..]
            }
            _ => return None,
        };
        len = plain_len(rest);
    }
}

/// The character that a reference stands for.
fn referred(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => name.strip_prefix('#')?,
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok()?;
    char::from_u32(code).filter(|character| is_xml_character(*character))
}

/// Reads any body.
fn parse(body: &str) -> Result<String, ServiceError> {
    if !body.chars().all(is_xml_character) {
        return Err(invalid_document("a character that XML does not have"));
    }
    let mut message = Message::default();
    walk(body, &mut message)?;
    message.text.ok_or_else(|| invalid_document("no MessageText"))
}

/// Inside of `QueueMessage` and `MessageText`.
const DEPTH_OF_TEXT: usize = 2;

/// What has been read so far.
#[derive(Default)]
struct Message {
    /// How many elements are open.
    depth: usize,
    has_root: bool,
    text: Option<String>,
}

impl XmlPieces for Message {
    fn open(&mut self, name: &str) -> Result<(), ServiceError> {
        match self.depth {
            0 if name == ROOT && !self.has_root => self.has_root = true,
            1 if name == TEXT && self.text.is_none() => self.text = Some(String::new()),
            0 | 1 => return Err(invalid_document("an element that is not of the schema")),
            // The tags are removed, and the text between them stays.
            _ => {}
        }
        self.depth += 1;
        Ok(())
    }

    /// The walk reports no end without its start.
    fn close(&mut self) -> Result<(), ServiceError> {
        self.depth -= 1;
        Ok(())
    }

    fn takes_text(&self) -> bool {
        self.depth >= DEPTH_OF_TEXT
    }

    fn push_text(&mut self, piece: &str) -> Result<(), ServiceError> {
        let text = self.text.as_mut().filter(|_| self.depth >= DEPTH_OF_TEXT);
        text.ok_or_else(|| invalid_document("text outside of MessageText"))?.push_str(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::xml::hostile::{check_refusal, mutations, truncations};

    const NEW: &str = "2025-11-05";

    fn body(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[track_caller]
    fn check(body: &str, expected: Result<&str, ErrorCode>) {
        let found = read_message(body.as_bytes(), NEW).map_err(|error| error.code);
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{body}");
    }

    #[test]
    fn the_usual_form_is_not_copied() {
        let declared =
            ["<?xml version='1.0' encoding='utf-8'?>\n", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"];
        for head in ["", "\u{FEFF}", declared[0], declared[1], "\u{FEFF}<?xml version=\"1.0\"?>\r\n "] {
            for text in ["aGVsbG8=", "{\"a\": 'b'}", "  kept \t\n ", "\u{e4}\u{1F600}", ""] {
                let body = [head, &body(text), "\n"].concat();
                let found = read_message(body.as_bytes(), NEW).unwrap();
                assert!(matches!(found, Cow::Borrowed(_)), "{body}");
                assert_eq!(found, text);
            }
        }
        check("<QueueMessage>\r\n  <MessageText>a</MessageText>\r\n</QueueMessage>", Ok("a"));
    }

    #[test]
    fn what_a_client_writes_is_read_back() {
        for text in ["", " ", "aGVsbG8=", "<a b='c'>&amp;</a>\r\n\t", "]]>", "\u{e4}\u{1F600}\u{FEFF}"] {
            assert_eq!(read_message(&write_message(text), NEW).unwrap(), text);
        }
    }

    #[test]
    fn an_empty_text_is_a_text() {
        for empty in ["<MessageText/>", "<MessageText />", "<MessageText></MessageText>", "<MessageText\n/>"]
        {
            check(&format!("<QueueMessage>{empty}</QueueMessage>"), Ok(""));
        }
    }

    #[test]
    fn text_is_unescaped_and_line_endings_are_one_character() {
        check(&body("&lt;a b=&quot;1&quot;&gt;&amp;&apos;"), Ok("<a b=\"1\">&'"));
        check(&body("&#65;&#x42;&#x1F600;&#xD;&#10;"), Ok("AB\u{1F600}\r\n"));
        check(&body("&#x000000000000041;"), Ok("A"));
        check(&body("1\r\n2\r3\n4\r\r\n"), Ok("1\n2\n3\n4\n\n"));
        check(&body("a > b \u{FEFF}\u{FFFD}"), Ok("a > b \u{FEFF}\u{FFFD}"));
        check(&body("a<![CDATA[<b>&amp;]]>c"), Ok("a<b>&amp;c"));
    }

    #[test]
    fn markup_in_the_text_is_removed() {
        check(&body("a<b x='1'>c<i/></b> d<!-- e --><?f?>"), Ok("ac d"));
        check("<QueueMessage xmlns='u'><MessageText a='b'>x</MessageText></QueueMessage>", Ok("x"));
        check("<q:QueueMessage xmlns:q='u'><q:MessageText>x</q:MessageText></q:QueueMessage>", Ok("x"));
        check("<!-- a --><QueueMessage><!-- b --><MessageText>x</MessageText></QueueMessage>", Ok("x"));
    }

    #[test]
    fn other_documents_are_refused() {
        let text = "<MessageText>a</MessageText>";
        for bad in [
            "",
            " ",
            "x",
            "<QueueMessage/>",
            "<QueueMessage></QueueMessage>",
            "<MessageText>a</MessageText>",
            &format!("<Message>{text}</Message>"),
            &format!("<queuemessage>{text}</queuemessage>"),
            &format!("<QueueMessage>{text}{text}</QueueMessage>"),
            &format!("<QueueMessage>{text}<Other/></QueueMessage>"),
            &format!("<QueueMessage>x{text}</QueueMessage>"),
            &format!("<QueueMessage>&amp;{text}</QueueMessage>"),
            &format!("<QueueMessage>{text}"),
            &format!("{}{}", body("a"), body("b")),
            &format!("{}x", body("a")),
            &format!("x{}", body("a")),
            &format!("<!DOCTYPE a>{}", body("a")),
            &format!("<?xml version='1.1'?>{}", body("a")),
            &format!("<?xml version='1.0' encoding='utf-16'?>{}", body("a")),
            &body("&"),
            &body("&x;"),
            &body("&#0;"),
            &body("&#x1F;"),
            &body("&#xD800;"),
            &body("&#xFFFE;"),
            &body("&#+65;"),
            &body("<b>"),
            &body("</b>"),
            &body("\0"),
            &body("a\u{1}"),
            &body("\u{FFFF}"),
            &body("<b>\u{1f}</b>"),
        ] {
            check(bad, Err(ErrorCode::InvalidXmlDocument));
        }
        let error = read_message(b"<a>\xff</a>", NEW).unwrap_err();
        let elements: Vec<_> = error.elements().collect();
        assert_eq!(elements, [("LineNumber", "0"), ("LinePosition", "0"), ("Reason", "")]);
    }

    #[test]
    fn the_limit_is_on_the_unescaped_text() {
        let check_limit = |text: &str, version: &str, limit: Option<&str>| {
            let read = read_message(text.as_bytes(), version).map(|_| ());
            let found = read.map_err(|error| {
                assert_eq!(error.code, ErrorCode::RequestBodyTooLarge);
                error.elements().map(|(name, value)| format!("{name} {value}")).collect::<String>()
            });
            assert_eq!(found.err().as_deref(), limit);
        };
        let most = "x".repeat(TEXT_BYTES_MAX);
        check_limit(&body(&most), NEW, None);
        check_limit(&body(&"&quot;".repeat(TEXT_BYTES_MAX)), NEW, None);
        check_limit(&body(&format!("{most}x")), NEW, Some("MaxLimit 65536"));
        check_limit(&body(&"\u{e4}".repeat(TEXT_BYTES_MAX / 2 + 1)), NEW, Some("MaxLimit 65536"));
        check_limit(&" ".repeat(BODY_BYTES_MAX + 1), NEW, Some("MaxLimit 65536"));
        check_limit(&body(&"x".repeat(OLD_TEXT_BYTES_MAX)), "2009-09-19", None);
        check_limit(&body(&"x".repeat(OLD_TEXT_BYTES_MAX + 1)), "2009-09-19", Some("MaxLimit 8192"));
    }

    #[test]
    fn the_scan_and_the_parser_agree_on_hostile_bodies() {
        let corpus = [
            body("aGVsbG8="),
            body("&lt;a&gt; &#65; \r\n x"),
            body("a<b>c</b><![CDATA[d]]>"),
            format!("\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{}\n", body(" x ")),
            "<QueueMessage> <MessageText /> </QueueMessage>".to_owned(),
        ];
        for truncated in truncations(corpus[1].as_bytes()) {
            check_refusal(&read_message(truncated, NEW).unwrap_err());
        }
        let corpus: Vec<&[u8]> = corpus.iter().map(|body| body.as_bytes()).collect();
        let (mut scanned, mut parsed) = (0, 0);
        for bytes in mutations(&corpus, 30_000) {
            if let Err(error) = read_message(&bytes, NEW) {
                check_refusal(&error);
            }
            let Ok(text) = std::str::from_utf8(&bytes) else { continue };
            let whole = parse(text).ok();
            parsed += usize::from(whole.is_some());
            if let Some(found) = scan(text) {
                scanned += 1;
                assert_eq!(Some(&*found), whole.as_deref(), "{text:?}");
            }
        }
        assert!(scanned > 500 && parsed > scanned, "{scanned} scanned, {parsed} parsed");
    }
}
