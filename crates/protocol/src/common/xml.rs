//! XML as small trees, for the XML documents that the services read.
//!
//! Owns: the bounds of a document, and which markup is accepted.
//! Promises: reading never panics and takes time linear in the body. Document types and entities that XML does not
//! predefine are refused, so nothing can expand. Reading a written document (`xml_write`) returns it.
//! Leaves to others: which elements a document may have, and what their texts mean.

use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::error::Source;
use super::xml_write::MARK;
use crate::{ErrorCode, ServiceError};

/// The service's largest documents have 2 KiB of text in some fifty elements.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 8;
const ELEMENT_COUNT_MAX: usize = 256;
/// For one element. No attribute has a meaning here, but serializers like to declare namespaces.
const ATTRIBUTES_BYTES_MAX: usize = 1024;

/// An element. Its attributes and its namespace are dropped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    pub name: String,
    /// All text directly inside this element, concatenated.
    pub text: String,
    pub children: Vec<Element>,
}

/// A document that is malformed or does not follow the schema. The reason is for our log.
pub(crate) fn invalid_document(reason: impl Into<Source>) -> ServiceError {
    place(ServiceError::with_source(ErrorCode::InvalidXmlDocument, reason), "")
}

/// A document with a value that the service does not allow. Callers see this reason.
pub(crate) fn refused_document(reason: &'static str) -> ServiceError {
    place(ErrorCode::InvalidXmlDocument.into(), reason)
}

/// The services have elements for the place, but tell it for no document that they can parse.
fn place(error: ServiceError, reason: &'static str) -> ServiceError {
    error.with_element("LineNumber", "0").with_element("LinePosition", "0").with_element("Reason", reason)
}

/// An element whose text does not have the right type.
pub(crate) fn invalid_value(reason: impl Into<Source>) -> ServiceError {
    ServiceError::with_source(ErrorCode::InvalidXmlNodeValue, reason)
}

/// How large a document may be.
#[derive(Clone, Copy, Debug)]
pub struct XmlBounds {
    pub bytes_max: usize,
    pub element_count_max: usize,
}

const REQUEST: XmlBounds = XmlBounds { bytes_max: DOCUMENT_BYTES_MAX, element_count_max: ELEMENT_COUNT_MAX };

/// Reads a document whose outermost element is named `root`, within the bounds of a request.
pub fn read(body: &[u8], root: &str) -> Result<Element, ServiceError> {
    read_within(body, root, REQUEST)
}

/// Reads a document within other bounds: a client reads longer lists than the service does.
pub fn read_within(body: &[u8], root: &str, bounds: XmlBounds) -> Result<Element, ServiceError> {
    if body.len() > bounds.bytes_max {
        return Err(ErrorCode::RequestBodyTooLarge.into());
    }
    let element = read_tree(document_text(body)?, bounds.element_count_max)?;
    if element.name != root {
        return Err(invalid_document("another outermost element"));
    }
    Ok(element)
}

fn read_tree(text: &str, element_count_max: usize) -> Result<Element, ServiceError> {
    let mut tree = Tree { element_count_max, ..Tree::default() };
    walk(text, &mut tree)?;
    tree.root.ok_or_else(|| invalid_document("no element"))
}

/// What reads a document piece by piece, so that a long one needs no tree.
pub(crate) trait XmlPieces {
    /// An element begins. Its attributes are well-formed.
    fn open(&mut self, name: &str) -> Result<(), ServiceError>;
    /// The innermost open element ends.
    fn close(&mut self) -> Result<(), ServiceError>;
    /// Whether text counts here. Where it does not, only white space may stand.
    fn takes_text(&self) -> bool;
    /// Some of the text of the innermost open element.
    fn push_text(&mut self, text: &str) -> Result<(), ServiceError>;
}

/// The text of a document without a byte order mark, if XML has all its characters.
pub(crate) fn document_text(body: &[u8]) -> Result<&str, ServiceError> {
    let text = std::str::from_utf8(body).map_err(invalid_document)?;
    let text = text.strip_prefix(MARK).unwrap_or(text);
    if !text.chars().all(is_xml_character) {
        return Err(invalid_document("a character that XML does not have"));
    }
    Ok(text)
}

/// Reads a document from its first to its last piece. Promises that every element that was opened was closed.
pub(crate) fn walk(text: &str, pieces: &mut impl XmlPieces) -> Result<(), ServiceError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().enable_all_checks(true);
    let mut depth = 0_usize;
    loop {
        let at_start = reader.buffer_position() == 0;
        match reader.read_event().map_err(invalid_document)? {
            Event::Decl(declaration) if at_start => check_declaration(&declaration)?,
            Event::Decl(_) => return Err(invalid_document("a declaration that is not at the start")),
            Event::DocType(_) => return Err(invalid_document("a document type")),
            Event::Start(tag) => {
                open(&tag, pieces)?;
                depth += 1;
            }
            Event::Empty(tag) => {
                open(&tag, pieces)?;
                pieces.close()?;
            }
            Event::End(_) => {
                depth = depth.checked_sub(1).ok_or_else(|| invalid_document("an end without a start"))?;
                pieces.close()?;
            }
            Event::Text(text) if !pieces.takes_text() => {
                if !is_blank(&text) {
                    return Err(invalid_document("text where none may be"));
                }
            }
            Event::Text(text) => pieces.push_text(&text.xml10_content())?,
            Event::CData(text) => pieces.push_text(&text.xml10_content())?,
            Event::GeneralRef(reference) => {
                let character = resolve(&reference)?;
                pieces.push_text(character.encode_utf8(&mut [0; 4]))?;
            }
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if depth > 0 => return Err(invalid_document("an element that is not closed")),
            Event::Eof => return Ok(()),
        }
    }
}

fn open(tag: &BytesStart<'_>, pieces: &mut impl XmlPieces) -> Result<(), ServiceError> {
    check_attributes(tag)?;
    pieces.open(tag.local_name().as_ref())
}

/// The elements read so far.
#[derive(Default)]
struct Tree {
    /// The elements that are still open, outermost first.
    path: Vec<Element>,
    /// The outermost element, once it is closed.
    root: Option<Element>,
    element_count: usize,
    element_count_max: usize,
}

impl XmlPieces for Tree {
    fn open(&mut self, name: &str) -> Result<(), ServiceError> {
        self.element_count += 1;
        if self.root.is_some() {
            return Err(invalid_document("two outermost elements"));
        }
        if self.path.len() >= DEPTH_MAX || self.element_count > self.element_count_max {
            return Err(invalid_document("too many elements"));
        }
        self.path.push(Element { name: name.to_owned(), text: String::new(), children: Vec::new() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ServiceError> {
        let element = self.path.pop().ok_or_else(|| invalid_document("an end without a start"))?;
        match self.path.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn takes_text(&self) -> bool {
        !self.path.is_empty()
    }

    fn push_text(&mut self, text: &str) -> Result<(), ServiceError> {
        let element =
            self.path.last_mut().ok_or_else(|| invalid_document("text outside of the outermost element"))?;
        element.text.push_str(text);
        Ok(())
    }
}

fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), ServiceError> {
    if declaration.version().map_err(invalid_document)? != "1.0" {
        return Err(invalid_document("another version of XML"));
    }
    let Some(encoding) = declaration.encoding() else { return Ok(()) };
    let encoding = encoding.map_err(invalid_document)?;
    if !encoding.eq_ignore_ascii_case("utf-8") && !encoding.eq_ignore_ascii_case("us-ascii") {
        return Err(invalid_document("an encoding other than UTF-8"));
    }
    Ok(())
}

/// Attributes have no meaning here, but malformed ones make the document malformed.
fn check_attributes(tag: &BytesStart<'_>) -> Result<(), ServiceError> {
    // Finding duplicates takes time quadratic in the number of attributes, so their length is bounded.
    if tag.attributes_raw().len() > ATTRIBUTES_BYTES_MAX {
        return Err(invalid_document("too many attributes"));
    }
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(invalid_document)?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(invalid_document)?;
        if attribute.value.contains('<') || !value.chars().all(is_xml_character) {
            return Err(invalid_document("an attribute with a character that it cannot have"));
        }
    }
    Ok(())
}

/// Resolves the five entities that XML predefines, and character references. Without a document type there are no
/// others.
fn resolve(reference: &BytesRef<'_>) -> Result<char, ServiceError> {
    match reference.as_ref() {
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "gt" => Ok('>'),
        "lt" => Ok('<'),
        "quot" => Ok('"'),
        _ => reference
            .resolve_char_ref()
            .map_err(invalid_document)?
            .filter(|character| is_xml_character(*character))
            .ok_or_else(|| invalid_document("an unknown entity")),
    }
}

/// The production `Char` of XML 1.0.
pub(crate) fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

impl Element {
    /// The first child with this name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of an element that has no children.
    pub fn leaf(&self) -> Result<&str, ServiceError> {
        if self.children.is_empty() { Ok(&self.text) } else { Err(invalid_document("an element for text")) }
    }

    /// The children with these names, in any order. Each may occur at most once, and no others may.
    pub fn fields<const N: usize>(&self, names: [&str; N]) -> Result<[Option<&Element>; N], ServiceError> {
        self.check_no_text()?;
        let mut fields = [None; N];
        for child in &self.children {
            let at = names
                .iter()
                .position(|name| *name == child.name)
                .ok_or_else(|| invalid_document("an unknown element"))?;
            if fields[at].replace(child).is_some() {
                return Err(invalid_document("an element twice"));
            }
        }
        Ok(fields)
    }

    /// The children of a list element: all with this name, and at most `count_max` of them.
    pub fn items(&self, name: &str, count_max: usize) -> Result<&[Element], ServiceError> {
        self.check_no_text()?;
        if self.children.len() > count_max {
            return Err(invalid_document("too many of an element"));
        }
        if self.children.iter().any(|child| child.name != name) {
            return Err(invalid_document("an unknown element"));
        }
        Ok(&self.children)
    }

    fn check_no_text(&self) -> Result<(), ServiceError> {
        if is_blank(&self.text) { Ok(()) } else { Err(invalid_document("text between elements")) }
    }
}

/// Hostile documents for the tests of every reader.
#[cfg(test)]
pub(crate) mod hostile {
    use super::*;

    /// Reading must not panic, and must fail with no codes other than these.
    #[track_caller]
    pub fn check_refusal(error: &ServiceError) {
        assert!(
            matches!(
                error.code,
                ErrorCode::InvalidXmlDocument
                    | ErrorCode::InvalidXmlNodeValue
                    | ErrorCode::RequestBodyTooLarge
            ),
            "{error}"
        );
    }

    /// Every proper prefix of a document.
    pub fn truncations(document: &[u8]) -> impl Iterator<Item = &[u8]> {
        (0..document.len()).map(|length| &document[..length])
    }

    /// Documents made from the given ones by cutting, doubling, mixing and inserting odd bytes; the same on every run.
    pub fn mutations(corpus: &[&[u8]], count: usize) -> impl Iterator<Item = Vec<u8>> {
        const PIECES: [&[u8]; 28] = [
            b"<",
            b">",
            b"/>",
            b"</",
            b"&",
            b"&amp;",
            b"&#x0;",
            b"&#65;",
            b"&x;",
            b"<!--",
            b"-->",
            b"<![CDATA[",
            b"]]>",
            b"<?",
            b"?>",
            b"<!DOCTYPE a>",
            b" a='b'",
            b"\"",
            b"\0",
            b"\xff",
            b"\xef\xbb\xbf",
            b"true",
            b"-1",
            b"366",
            b"*",
            b",",
            b" ",
            b"\r\n",
        ];
        // Xorshift from a fixed seed.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = move |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound.max(1) as u64) as usize
        };
        (0..count).map(move |_| {
            let mut bytes = corpus[below(corpus.len())].to_vec();
            for _ in 0..=below(3) {
                // Small changes leave more of the document readable than large ones.
                let at = below(bytes.len() + 1);
                let far = below(4) == 0;
                let to = if far { below(bytes.len() + 1) } else { (at + below(8)).min(bytes.len()) };
                match below(5) {
                    0 => drop(bytes.drain(at.min(to)..at.max(to))),
                    1 => drop(bytes.splice(at..at, PIECES[below(PIECES.len())].iter().copied())),
                    2 => {
                        let copy = bytes[at.min(to)..at.max(to)].to_vec();
                        bytes.splice(at..at, copy);
                    }
                    3 => {
                        let other = corpus[below(corpus.len())];
                        bytes.splice(at.., other[below(other.len())..].iter().copied());
                    }
                    _ if at < bytes.len() => bytes[at] = below(256) as u8,
                    _ => {}
                }
            }
            bytes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::hostile::{check_refusal, mutations, truncations};
    use super::*;

    /// The tree on one line: `name{children}` or `name=text`.
    fn shown(element: &Element) -> String {
        if element.children.is_empty() {
            return format!("{}={}", element.name, element.text);
        }
        let children: Vec<String> = element.children.iter().map(shown).collect();
        format!("{}{{{}}}", element.name, children.join(","))
    }

    #[track_caller]
    fn check(document: &str, expected: Result<&str, ErrorCode>) {
        let found = read(document.as_bytes(), "a").map(|element| shown(&element)).map_err(|error| error.code);
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{document}");
    }

    #[track_caller]
    fn check_refused(document: &str) {
        check(document, Err(ErrorCode::InvalidXmlDocument));
    }

    #[test]
    fn small_documents_become_trees() {
        check("<a/>", Ok("a="));
        check("<a></a >", Ok("a="));
        check("<a>x</a>", Ok("a=x"));
        check("<a><b>1</b><c/><b> 2 </b></a>", Ok("a{b=1,c=,b= 2 }"));
        check("\u{FEFF}<a/>", Ok("a="));
        check("<?xml version='1.0' encoding='utf-8'?>\n<a/>\n", Ok("a="));
        check("\u{FEFF}<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><a/>", Ok("a="));
        check("<?xml version='1.0' encoding='us-ascii'?><a/>", Ok("a="));
        check("<!-- x --><a>1<!-- y -->2</a><!-- z -->", Ok("a=12"));
        check("<?style x?><a>1<?y?>2</a>", Ok("a=12"));
        check("<a>1<![CDATA[<b>&amp;]]>2</a>", Ok("a=1<b>&amp;2"));
        check("<a>&lt;&gt;&amp;&apos;&quot;&#65;&#x42;&#x1F600;</a>", Ok("a=<>&'\"AB\u{1F600}"));
        check("<a>1\r\n2\r3&#xD;</a>", Ok("a=1\n2\n3\r"));
        check("<a xmlns='u' xmlns:i=\"v\" i:b='&lt;1'><c/></a>", Ok("a{c=}"));
        check("<n:a xmlns:n='u'><n:b>1</n:b></n:a>", Ok("a{b=1}"));
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        for document in [
            "",
            "\u{FEFF}",
            " ",
            "x",
            "<?xml version='1.0'?>",
            "<!-- -->",
            "<a>",
            "</a>",
            "<a></b>",
            "<a><b></a></b>",
            "<a/><a/>",
            "<a/>x",
            "x<a/>",
            "<a/>&amp;",
            "<a/><![CDATA[]]>",
            "<a>&</a>",
            "<a>& </a>",
            "<a>&amp</a>",
            "<a>\0</a>",
            "<a>\u{1}</a>",
            "<a>\u{FFFF}</a>",
            "<a b/>",
            "<a b=1/>",
            "<a b='1' b='2'/>",
            "<a b='<'/>",
            "<a b='&x;'/>",
            "<a b='&#1;'/>",
            "<a b='1/>",
            "<a><!-- -- --></a>",
            "<a><!x></a>",
            "<a><![CDATA[</a>",
            "<a",
            "<",
            "<>",
            "<!",
            "<!-",
            "<!-->",
            "<!--->",
            "<?",
            "<?>",
            "<??>",
            "<?x",
            " <?xml version='1.0'?><a/>",
            "<?xml version='1.0'?><?xml version='1.0'?><a/>",
            "<?xml?><a/>",
            "<?xml encoding='utf-8'?><a/>",
            "<?xml version='1.1'?><a/>",
            "<?xml version='1.0' encoding='utf-16'?><a/>",
            "<b/>",
            "<A/>",
        ] {
            check_refused(document);
        }
        assert_eq!(read(b"<a>\xff</a>", "a").unwrap_err().code, ErrorCode::InvalidXmlDocument);
        assert_eq!(read(b"\xff\xfe<\0a\0/\0>\0", "a").unwrap_err().code, ErrorCode::InvalidXmlDocument);
    }

    #[test]
    fn nothing_expands() {
        for document in [
            "<!DOCTYPE a><a/>",
            "<!doctype a><a/>",
            "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
            "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
            "<a>&x;</a>",
            "<a>&nbsp;</a>",
            "<a>&AMP;</a>",
            "<a>&;</a>",
            "<a>&#;</a>",
            "<a>&#x;</a>",
            "<a>&#0;</a>",
            "<a>&#xB;</a>",
            "<a>&#xD800;</a>",
            "<a>&#xFFFE;</a>",
            "<a>&#x110000;</a>",
            "<a>&#99999999999999999999;</a>",
            "<a>&#+65;</a>",
            "<a>&#-65;</a>",
            "<a>&#X41;</a>",
        ] {
            check_refused(document);
        }
        let laughs: String = (1..10)
            .map(|at| format!("<!ENTITY l{at} \"{}\">", format!("&l{};", at - 1).repeat(10)))
            .collect();
        check_refused(&format!("<!DOCTYPE a [<!ENTITY l0 \"lol\">{laughs}]><a>&l9;</a>"));
    }

    #[test]
    fn depth_elements_attributes_and_size_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
        assert!(read(nested(DEPTH_MAX).as_bytes(), "a").is_ok());
        check_refused(&nested(DEPTH_MAX + 1));
        check_refused(&nested(9_000));
        check_refused(&"<a>".repeat(20_000));
        check_refused(&format!("{}<a/>", "<a>".repeat(DEPTH_MAX)));

        let wide = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        assert!(read(wide(ELEMENT_COUNT_MAX - 1).as_bytes(), "a").is_ok());
        check_refused(&wide(ELEMENT_COUNT_MAX));
        check_refused(&wide(16_000));

        let attribute = |length: usize| format!("<a b='{}'/>", "x".repeat(length));
        assert!(read(attribute(1_000).as_bytes(), "a").is_ok());
        check_refused(&attribute(60_000));
        let attributes: String = (0..6_000).map(|at| format!(" b{at}=''")).collect();
        check_refused(&format!("<a{attributes}/>"));
        check_refused(&format!("<a>{}", "<".repeat(60_000)));
        check_refused(&format!("<a>{}", "&".repeat(60_000)));
        check_refused(&format!("<a>{}", "<!--".repeat(15_000)));
        assert!(read(format!("<a>{}</a>", "&lt;".repeat(16_000)).as_bytes(), "a").is_ok());

        let long = |length: usize| format!("<a>{}</a>", "x".repeat(length - 7));
        assert!(read(long(DOCUMENT_BYTES_MAX).as_bytes(), "a").is_ok());
        check(&long(DOCUMENT_BYTES_MAX + 1), Err(ErrorCode::RequestBodyTooLarge));
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        let corpus: [&[u8]; 4] = [
            b"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><a><b>1</b><c /></a>",
            b"<a x='1' xmlns:y=\"2\"><!-- c --><b><![CDATA[d]]>&lt;&#65;</b><?e f?></a>",
            b"<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
            "<a>é\u{1F600}\r\n</a>".as_bytes(),
        ];
        for document in corpus {
            for truncated in truncations(document) {
                check_refusal(&read(truncated, "a").map(|_| document).unwrap_err());
            }
        }
        let (mut taken, mut refused) = (0, 0);
        for document in mutations(&corpus, 20_000) {
            match read(&document, "a") {
                Ok(_) => taken += 1,
                Err(error) => {
                    check_refusal(&error);
                    refused += 1;
                }
            }
        }
        assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
    }

    #[test]
    fn schemas_are_strict() {
        let read = |text: &str| read(text.as_bytes(), "a").unwrap();
        assert!(read("<a> <b/>\n<c/> </a>").fields(["c", "b", "d"]).is_ok_and(|fields| fields[2].is_none()));
        assert!(read("<a><b/><b/></a>").fields(["b"]).is_err());
        assert!(read("<a><e/></a>").fields(["b"]).is_err());
        assert!(read("<a>x<b/></a>").fields(["b"]).is_err());
        assert!(read("<a><b/><b/></a>").items("b", 2).is_ok_and(|items| items.len() == 2));
        assert!(read("<a><b/><b/></a>").items("b", 1).is_err());
        assert!(read("<a><c/></a>").items("b", 1).is_err());
        assert!(read("<a>x</a>").items("b", 1).is_err());
        assert!(read("<a>x</a>").leaf().is_ok_and(|text| text == "x"));
        assert!(read("<a><b/></a>").leaf().is_err());
    }
}
