//! The parameters of List Blobs and of Find Blobs by Tags, and the markers of their pages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::DateTime;
use crate::common::list::{PAGE_COUNT_USUAL, read_count_max, read_include, read_text};
use crate::common::query::{Query, invalid_parameter, missing_parameter};
use crate::{ErrorCode, ServiceError};

use super::tag_expression::TagExpression;

/// What a list shows beside names and properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Include(u16);

impl Include {
    pub const SNAPSHOTS: Include = Include(1);
    pub const METADATA: Include = Include(1 << 1);
    pub const UNCOMMITTED_BLOBS: Include = Include(1 << 2);
    pub const COPY: Include = Include(1 << 3);
    pub const DELETED: Include = Include(1 << 4);
    pub const TAGS: Include = Include(1 << 5);
    pub const VERSIONS: Include = Include(1 << 6);
    pub const DELETED_WITH_VERSIONS: Include = Include(1 << 7);
    pub const IMMUTABILITY_POLICY: Include = Include(1 << 8);
    pub const LEGAL_HOLD: Include = Include(1 << 9);
    pub const PERMISSIONS: Include = Include(1 << 10);

    const WORDS: [(&str, Include); 11] = [
        ("snapshots", Include::SNAPSHOTS),
        ("metadata", Include::METADATA),
        ("uncommittedblobs", Include::UNCOMMITTED_BLOBS),
        ("copy", Include::COPY),
        ("deleted", Include::DELETED),
        ("tags", Include::TAGS),
        ("versions", Include::VERSIONS),
        ("deletedwithversions", Include::DELETED_WITH_VERSIONS),
        ("immutabilitypolicy", Include::IMMUTABILITY_POLICY),
        ("legalhold", Include::LEGAL_HOLD),
        ("permissions", Include::PERMISSIONS),
    ];

    pub fn has(self, other: Include) -> bool {
        self.0 & other.0 != 0
    }

    fn read(query: &Query<'_>) -> Result<Include, ServiceError> {
        let mut include = Include::default();
        for list in read_include(query)? {
            for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                let found = Include::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
                let (_, found) = found.ok_or_else(|| invalid_parameter("include", &list, ""))?;
                include.0 |= found.0;
            }
        }
        Ok(include)
    }
}

/// The parameters of List Blobs. Those that were sent are repeated in the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListBlobsParameters {
    pub prefix: Option<String>,
    /// Never empty.
    pub delimiter: Option<String>,
    pub(super) marker_text: Option<String>,
    /// Where the page begins.
    pub marker: Option<BlobMarker>,
    pub(super) count_max: Option<usize>,
    pub include: Include,
    /// The first page begins with this name, or with the next one that there is.
    pub start_from: Option<String>,
    /// The list ends before this name.
    pub end_before: Option<String>,
}

impl ListBlobsParameters {
    /// The query's names are in lower case.
    pub fn read(query: &Query<'_>) -> Result<ListBlobsParameters, ServiceError> {
        let not_empty = |name| Ok::<_, ServiceError>(read_text(query, name)?.filter(|text| !text.is_empty()));
        let marker_text = not_empty("marker")?;
        let marker = marker_text.as_deref().map(BlobMarker::read).transpose()?;
        let delimiter = not_empty("delimiter")?;
        let include = Include::read(query)?;
        if delimiter.is_some() && include.has(Include::SNAPSHOTS) {
            return Err(invalid_parameter("include", "snapshots", ""));
        }
        Ok(ListBlobsParameters {
            prefix: read_text(query, "prefix")?,
            delimiter,
            marker_text,
            marker,
            count_max: read_count_max(query)?,
            include,
            start_from: not_empty("startfrom")?,
            end_before: not_empty("endbefore")?,
        })
    }

    /// How many blobs and prefixes a page has at most.
    pub fn page_count(&self) -> usize {
        self.count_max.unwrap_or(PAGE_COUNT_USUAL)
    }
}

/// Where a page of blobs begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobMarker {
    /// With this name, or with the next one that there is.
    pub name: String,
    /// With this snapshot or version of that blob, or with the next one that there is. `None`: with the first.
    pub moment: Option<DateTime>,
}

/// The beginning of every marker. The service's own begin alike, and are as opaque.
const MARKER_VERSION: &str = "2";

impl BlobMarker {
    /// The text that callers send back.
    pub fn write(&self) -> String {
        let mut plain = self.name.clone();
        if let Some(moment) = self.moment {
            // No name has this character.
            plain.push('\0');
            plain.push_str(&moment.to_padded());
        }
        let encoded = STANDARD.encode(plain);
        format!("{MARKER_VERSION}!{}!{encoded}", encoded.len())
    }

    pub(super) fn read(text: &str) -> Result<BlobMarker, ServiceError> {
        BlobMarker::parse(text).ok_or_else(|| ErrorCode::OutOfRangeInput.into())
    }

    fn parse(text: &str) -> Option<BlobMarker> {
        let (version, rest) = text.split_once('!')?;
        let (length, encoded) = rest.split_once('!')?;
        if version != MARKER_VERSION || length.parse() != Ok(encoded.len()) {
            return None;
        }
        let plain = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
        match plain.split_once('\0') {
            Some((name, moment)) => {
                Some(BlobMarker { name: name.to_owned(), moment: Some(DateTime::parse(moment)?) })
            }
            None => Some(BlobMarker { name: plain, moment: None }),
        }
    }
}

/// The parameters of Find Blobs by Tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindBlobsParameters {
    pub expression: TagExpression,
    pub(super) marker_text: Option<String>,
    /// Where the page begins: in this container, with this blob.
    pub marker: Option<FindMarker>,
    pub(super) count_max: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindMarker {
    pub container: String,
    pub blob: String,
}

impl FindBlobsParameters {
    pub fn read(query: &Query<'_>) -> Result<FindBlobsParameters, ServiceError> {
        let text = read_text(query, "where")?.ok_or_else(|| missing_parameter("where"))?;
        let marker_text = read_text(query, "marker")?.filter(|text| !text.is_empty());
        let marker = marker_text.as_deref().map(FindMarker::read).transpose()?;
        let expression = TagExpression::read_where(&text)?;
        Ok(FindBlobsParameters { expression, marker_text, marker, count_max: read_count_max(query)? })
    }

    pub fn page_count(&self) -> usize {
        self.count_max.unwrap_or(PAGE_COUNT_USUAL)
    }
}

impl FindMarker {
    /// The text that callers send back. No name of a container has a slash.
    pub fn write(&self) -> String {
        BlobMarker { name: [&*self.container, "/", &self.blob].concat(), moment: None }.write()
    }

    fn read(text: &str) -> Result<FindMarker, ServiceError> {
        let BlobMarker { name, .. } = BlobMarker::read(text)?;
        let (container, blob) = name.split_once('/').ok_or(ErrorCode::OutOfRangeInput)?;
        Ok(FindMarker { container: container.to_owned(), blob: blob.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<ListBlobsParameters, ErrorCode> {
        ListBlobsParameters::read(&Query::split(query).with_lower_names()).map_err(|error| error.code)
    }

    #[test]
    fn includes_come_as_a_list_or_one_by_one() {
        let words: Vec<&str> = Include::WORDS.iter().map(|(word, _)| *word).collect();
        let all = read(&format!("include={}", words.join(","))).unwrap().include;
        assert!(Include::WORDS.iter().all(|(_, include)| all.has(*include)));
        let some = read("include=Metadata&include=tags%2Ccopy&include=").unwrap().include;
        assert!(some.has(Include::METADATA) && some.has(Include::TAGS) && some.has(Include::COPY));
        assert!(!some.has(Include::SNAPSHOTS));
        for bad in ["include=x", "include=metadata,x", "include=snapshots&delimiter=/", "include=%zz"] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidQueryParameterValue), "{bad}");
        }
        assert!(read("include=versions&delimiter=/").is_ok());
    }

    #[test]
    fn pages_have_a_size_and_a_beginning() {
        let plain = read("").unwrap();
        assert_eq!((plain.page_count(), plain.delimiter, plain.marker), (5000, None, None));
        let full = read("prefix=a%2F&delimiter=%2F&maxresults=7&startFrom=a/blob2").unwrap();
        assert_eq!((full.prefix.as_deref(), full.delimiter.as_deref()), (Some("a/"), Some("/")));
        assert_eq!((full.page_count(), full.start_from.as_deref()), (7, Some("a/blob2")));
        assert_eq!(read("delimiter=&marker=").unwrap().delimiter, None);
        assert_eq!(read("maxresults=5001").unwrap().page_count(), 5000);
        for bad in ["maxresults=0", "maxresults=-1"] {
            assert_eq!(read(bad), Err(ErrorCode::OutOfRangeQueryParameterValue), "{bad}");
        }
    }

    #[test]
    fn markers_are_read_as_they_were_written() {
        let moment = DateTime::parse("2019-08-28T17:07:35.2821851Z");
        for name in ["a", "ä/b!c", "\u{FFFF}", &"x".repeat(1024)] {
            for moment in [None, moment] {
                let marker = BlobMarker { name: name.to_owned(), moment };
                assert!(marker.write().starts_with("2!"));
                let mut query = "marker=".to_owned();
                crate::common::percent::push_escaped(&marker.write(), &mut query);
                assert_eq!(read(&query).unwrap().marker, Some(marker));
            }
        }
        for bad in ["x", "2!4!YWJj!", "2!3!YWJj", "1!4!YWJj", "2!4!!!!!", "2!4!gICA"] {
            assert_eq!(read(&format!("marker={bad}")), Err(ErrorCode::OutOfRangeInput), "{bad}");
        }
    }

    #[test]
    fn find_needs_an_expression() {
        let read = |query: &str| FindBlobsParameters::read(&Query::split(query)).map_err(|error| error.code);
        assert_eq!(read(""), Err(ErrorCode::MissingRequiredQueryParameter));
        assert_eq!(read("where=x"), Err(ErrorCode::InvalidQueryParameterValue));
        let marker = FindMarker { container: "abc".to_owned(), blob: "d/e".to_owned() };
        let query = format!("where=%22tag1%22%3D%27val1%27&maxresults=2&marker={}", marker.write());
        let found = read(&query).unwrap();
        assert_eq!((found.marker.as_ref(), found.page_count()), (Some(&marker), 2));
        assert_eq!(found.expression.text(), "\"tag1\"='val1'");
    }
}
