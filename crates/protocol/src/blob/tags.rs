//! The tags of a blob: up to ten names with values, in a header or as XML. [`Tags`] are always valid.

use crate::common::query::decode;
use crate::common::xml::{self, invalid_document};
use crate::common::xml_write::XmlWriter;
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;

const TAG_COUNT_MAX: usize = 10;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;
/// Of the header, before it is decoded.
const HEADER_BYTES_MAX: usize = 2 * 1024;

/// Keys and values with case, in the order in which they were set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tags {
    items: Vec<(Box<str>, Box<str>)>,
}

impl Tags {
    pub fn read<'t>(items: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Tags, ServiceError> {
        let mut tags = Tags::default();
        for (key, value) in items {
            if key.is_empty() {
                return Err(ErrorCode::EmptyTagName.into());
            }
            if !key.chars().chain(value.chars()).all(is_allowed) {
                return Err(ErrorCode::InvalidTags.into());
            }
            // Allowed characters are one byte each.
            if key.len() > KEY_CHARS_MAX || value.len() > VALUE_CHARS_MAX || tags.items.len() == TAG_COUNT_MAX
            {
                return Err(ErrorCode::TagsTooLarge.into());
            }
            if tags.get(key).is_some() {
                return Err(ErrorCode::DuplicateTagNames.into());
            }
            tags.items.push((key.into(), value.into()));
        }
        Ok(tags)
    }

    /// The header `x-ms-tags`: `key=value&key=value`, each percent-encoded. `None` if there is none.
    pub fn read_header(headers: &Headers<'_>) -> Result<Option<Tags>, ServiceError> {
        let Some(text) = headers.get("x-ms-tags") else { return Ok(None) };
        if text.len() > HEADER_BYTES_MAX {
            return Err(ErrorCode::TagsTooLarge.into());
        }
        let mut decoded = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(key), Some(value)) = (decode(key), decode(value)) else {
                return Err(ErrorCode::InvalidTags.into());
            };
            decoded.push((key, value));
        }
        Tags::read(decoded.iter().map(|(key, value)| (&**key, &**value))).map(Some)
    }

    /// The body of Set Blob Tags.
    pub fn read_document(body: &[u8]) -> Result<Tags, ServiceError> {
        let root = xml::read(body, "Tags")?;
        let [set] = root.fields(["TagSet"])?;
        let set = set.ok_or_else(|| invalid_document("no TagSet"))?;
        let mut items = Vec::new();
        // Too many tags are refused as such, not as too many elements.
        for tag in set.items("Tag", usize::MAX)? {
            let [key, value] = tag.fields(["Key", "Value"])?;
            let key = key.ok_or_else(|| invalid_document("no Key"))?.leaf()?;
            items.push((key, value.map(xml::Element::leaf).transpose()?.unwrap_or_default()));
        }
        Tags::read(items)
    }

    /// The answer to Get Blob Tags.
    pub fn write_document(&self) -> Vec<u8> {
        let mut out = XmlWriter::begin_unmarked(256);
        self.write(|_| true, &mut out);
        out.finish()
    }

    /// The element `Tags` with those tags that `is_shown` picks.
    pub(super) fn write(&self, is_shown: impl Fn(&str) -> bool, out: &mut XmlWriter) {
        out.start("Tags");
        let mut shown = self.items().filter(|(key, _)| is_shown(key)).peekable();
        if shown.peek().is_none() {
            out.empty("TagSet");
        } else {
            out.start("TagSet");
            for (key, value) in shown {
                out.start("Tag");
                out.leaf("Key", key);
                out.leaf("Value", value);
                out.end("Tag");
            }
            out.end("TagSet");
        }
        out.end("Tags");
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.items().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    pub fn items(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.items.iter().map(|(key, value)| (&**key, &**value))
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric() || " +-./:=_".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::xml::hostile::{mutations, truncations};

    fn code(items: &[(&str, &str)]) -> Result<usize, ErrorCode> {
        Tags::read(items.iter().copied()).map(|tags| tags.items().len()).map_err(|error| error.code)
    }

    #[test]
    fn tags_are_few_short_and_of_plain_characters() {
        let key = "k".repeat(128);
        let value = "v".repeat(256);
        assert_eq!(code(&[(&key, &value), ("A b+c-d./:=_9", ""), ("a", "A"), ("A", "a")]), Ok(4));
        assert_eq!(code(&[("", "v")]), Err(ErrorCode::EmptyTagName));
        for bad in ["a&b", "ä", "a'b", "a\"b", "a\n", "a,b", "<"] {
            assert_eq!(code(&[(bad, "v")]), Err(ErrorCode::InvalidTags), "{bad}");
            assert_eq!(code(&[("k", bad)]), Err(ErrorCode::InvalidTags), "{bad}");
        }
        assert_eq!(code(&[(&"k".repeat(129), "")]), Err(ErrorCode::TagsTooLarge));
        assert_eq!(code(&[("k", &"v".repeat(257))]), Err(ErrorCode::TagsTooLarge));
        assert_eq!(code(&[("k", "1"), ("k", "2")]), Err(ErrorCode::DuplicateTagNames));
        let names: Vec<String> = (0..11).map(|at| at.to_string()).collect();
        let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
        assert_eq!((code(&many[..10]), code(&many)), (Ok(10), Err(ErrorCode::TagsTooLarge)));
    }

    #[test]
    fn the_header_is_encoded_like_a_query() {
        let read = |text: &str| {
            let headers: Headers<'_> = [("x-ms-tags", text)].into_iter().collect();
            let tags = Tags::read_header(&headers).map_err(|error| error.code)?;
            Ok(tags.map(|tags| tags.items().map(|(key, value)| format!("{key}|{value}")).collect::<Vec<_>>()))
        };
        assert_eq!(
            read("tag1=val1&tag%202=a%2Bb+c"),
            Ok(Some(vec!["tag1|val1".to_owned(), "tag 2|a+b c".to_owned()]))
        );
        assert_eq!(read("a"), Ok(Some(vec!["a|".to_owned()])));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("a=%zz"), Err(ErrorCode::InvalidTags));
        assert_eq!(read(&"a=b&".repeat(600)), Err(ErrorCode::TagsTooLarge));
    }

    /// The examples of sections 21.2 and 21.3.
    #[test]
    fn documents_are_read_and_written() {
        let sent = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag><Tag><Key>tag2</Key><Value>val2</Value></Tag></TagSet></Tags>";
        assert_eq!(sent.len(), 175);
        let tags = Tags::read_document(sent.as_bytes()).unwrap();
        let written = String::from_utf8(tags.write_document()).unwrap();
        assert_eq!(
            written,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>tag1</Key><Value>val1</Value></Tag><Tag><Key>tag2</Key><Value>val2</Value></Tag></TagSet></Tags>"
        );
        let none = Tags::read_document(b"<Tags><TagSet /></Tags>").unwrap();
        assert!(none.is_empty());
        assert!(none.write_document().ends_with(b"<Tags><TagSet /></Tags>"));
        for bad in [
            "<Tags/>",
            "<TagSet/>",
            "<Tags><TagSet><Tag/></TagSet></Tags>",
            "<Tags><TagSet><x/></TagSet></Tags>",
        ] {
            let error = Tags::read_document(bad.as_bytes()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidXmlDocument, "{bad}");
        }
        let many = format!("<Tags><TagSet>{}</TagSet></Tags>", "<Tag><Key>k</Key><Value/></Tag>".repeat(11));
        assert_eq!(Tags::read_document(many.as_bytes()).unwrap_err().code, ErrorCode::DuplicateTagNames);
    }

    #[test]
    fn no_body_makes_the_reader_panic() {
        let full = Tags::read([("a", "b"), ("c", "")]).unwrap().write_document();
        for truncated in truncations(&full) {
            assert!(Tags::read_document(truncated).is_err());
        }
        for body in mutations(&[&full], 5_000) {
            if let Ok(tags) = Tags::read_document(&body) {
                assert_eq!(Tags::read_document(&tags.write_document()).unwrap(), tags);
            }
        }
    }
}
