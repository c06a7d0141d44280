//! The properties of containers and blobs that callers set: types, tiers, the headers that reads return, public access,
//! sequence numbers.

use crate::common::headers::{invalid_header, missing_header};
use crate::common::query::Query;
use crate::{ErrorCode, ServiceError};

use super::checksum::{Md5, parse_md5};
use super::header_list::Headers;
use super::limits::{PAGE_BLOB_BYTES_MAX, PAGE_BYTES};
use super::versions;

/// An enumeration that the wire knows by words. Reading ignores case.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$note])* $variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub fn parse(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|found| found.as_str().eq_ignore_ascii_case(text))
            }

            /// As the wire has it.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// The value of this header, if it is there.
            pub fn read(headers: &Headers<'_>, header: &'static str) -> Result<Option<$name>, ServiceError> {
                let Some(sent) = headers.get(header) else { return Ok(None) };
                $name::parse(sent).map(Some).ok_or_else(|| invalid_header(header, sent))
            }
        }
    };
}

words! {
    BlobType { Block = "BlockBlob", Append = "AppendBlob", Page = "PageBlob" }
}

words! {
    /// `x-ms-access-tier`. The tiers with a P are those of page blobs.
    AccessTier {
        Hot = "Hot", Cool = "Cool", Cold = "Cold", Archive = "Archive", Smart = "Smart",
        P4 = "P4", P6 = "P6", P10 = "P10", P15 = "P15", P20 = "P20", P30 = "P30", P40 = "P40", P50 = "P50",
        P60 = "P60", P70 = "P70", P80 = "P80",
    }
}

words! {
    RehydratePriority { High = "High", Standard = "Standard" }
}

words! {
    /// How far anonymous callers may read a container.
    PublicAccess {
        /// Its blobs.
        Blob = "blob",
        /// Its blobs, their list, and the container's properties.
        Container = "container",
    }
}

words! {
    /// `x-ms-delete-snapshots`.
    DeleteSnapshots { Include = "include", Only = "only" }
}

words! {
    /// `x-ms-copy-source-tag-option`.
    TagOption { Replace = "REPLACE", Copy = "COPY" }
}

words! {
    /// `blocklisttype`.
    BlockListType { Committed = "committed", Uncommitted = "uncommitted", All = "all" }
}

impl AccessTier {
    /// The tier of a request, if it is one that its version has.
    pub fn read_sent(headers: &Headers<'_>, version: &str) -> Result<Option<AccessTier>, ServiceError> {
        match AccessTier::read(headers, ACCESS_TIER)? {
            Some(AccessTier::Smart) if version < versions::SMART_TIER => {
                Err(invalid_header(ACCESS_TIER, AccessTier::Smart.as_str()))
            }
            tier => Ok(tier),
        }
    }

    /// The same, for a blob of this type.
    pub fn read_for(
        headers: &Headers<'_>,
        version: &str,
        blob_type: BlobType,
    ) -> Result<Option<AccessTier>, ServiceError> {
        let Some(tier) = AccessTier::read_sent(headers, version)? else { return Ok(None) };
        let is_of_pages = tier >= AccessTier::P4;
        if is_of_pages == (blob_type == BlobType::Page) {
            Ok(Some(tier))
        } else {
            Err(ErrorCode::InvalidBlobTier.into())
        }
    }

    /// The tier of Set Blob Tier, which needs one.
    pub fn read_required(headers: &Headers<'_>, version: &str) -> Result<AccessTier, ServiceError> {
        AccessTier::read_sent(headers, version)?.ok_or_else(|| missing_header(ACCESS_TIER))
    }
}

const ACCESS_TIER: &str = "x-ms-access-tier";
pub const REHYDRATE_PRIORITY: &str = "x-ms-rehydrate-priority";
pub const DELETE_SNAPSHOTS: &str = "x-ms-delete-snapshots";
pub const PUBLIC_ACCESS: &str = "x-ms-blob-public-access";
pub const TAG_OPTION: &str = "x-ms-copy-source-tag-option";

impl BlockListType {
    pub fn read_query(query: &Query<'_>) -> Result<BlockListType, ServiceError> {
        let sent = crate::common::query::text(query, "blocklisttype")?.filter(|sent| !sent.is_empty());
        let Some(sent) = sent else { return Ok(BlockListType::Committed) };
        let invalid = || crate::common::query::invalid_parameter("blocklisttype", &sent, "");
        BlockListType::parse(&sent).ok_or_else(invalid)
    }
}

/// The six properties that reads return as headers. Each is as it was sent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HttpProperties {
    pub content_type: Option<Box<str>>,
    pub content_encoding: Option<Box<str>>,
    pub content_language: Option<Box<str>>,
    pub content_disposition: Option<Box<str>>,
    pub cache_control: Option<Box<str>>,
    pub content_md5: Option<Md5>,
}

/// The type of a blob that was put without one.
pub const CONTENT_TYPE_USUAL: &str = "application/octet-stream";

const OWN_NAMES: [&str; 6] = [
    "x-ms-blob-content-type",
    "x-ms-blob-content-encoding",
    "x-ms-blob-content-language",
    "x-ms-blob-content-disposition",
    "x-ms-blob-cache-control",
    "x-ms-blob-content-md5",
];

impl HttpProperties {
    /// Those of Put Blob: the plain headers of the request count where the blob's own are absent. The MD5 of a body is
    /// computed, so it is not taken from here.
    pub fn read_put(headers: &Headers<'_>) -> Result<HttpProperties, ServiceError> {
        let own = HttpProperties::read_own(headers)?;
        let plain = |name| headers.get(name).map(Box::from);
        Ok(HttpProperties {
            content_type: own
                .content_type
                .or_else(|| plain("content-type"))
                .or_else(|| Some(CONTENT_TYPE_USUAL.into())),
            content_encoding: own.content_encoding.or_else(|| plain("content-encoding")),
            content_language: own.content_language.or_else(|| plain("content-language")),
            content_disposition: own.content_disposition,
            cache_control: own.cache_control.or_else(|| plain("cache-control")),
            content_md5: own.content_md5,
        })
    }

    /// Those of Put Block List, whose plain headers describe the list.
    pub fn read_block_list(headers: &Headers<'_>) -> Result<HttpProperties, ServiceError> {
        let mut own = HttpProperties::read_own(headers)?;
        own.content_type.get_or_insert_with(|| CONTENT_TYPE_USUAL.into());
        Ok(own)
    }

    /// Only the headers with the blob's own names; what is absent is none.
    pub fn read_own(headers: &Headers<'_>) -> Result<HttpProperties, ServiceError> {
        let [content_type, encoding, language, disposition, cache_control, md5] =
            OWN_NAMES.map(|name| headers.get(name));
        Ok(HttpProperties {
            content_type: content_type.map(Box::from),
            content_encoding: encoding.map(Box::from),
            content_language: language.map(Box::from),
            content_disposition: disposition.map(Box::from),
            cache_control: cache_control.map(Box::from),
            content_md5: md5.map(parse_md5).transpose()?,
        })
    }

    /// The same with what a shared access signature sets for the answer (`rsct` and the like).
    pub fn with_overrides(mut self, query: &Query<'_>) -> HttpProperties {
        let text = |name| crate::common::query::text(query, name).ok().flatten();
        for (name, slot) in [
            ("rsct", &mut self.content_type),
            ("rsce", &mut self.content_encoding),
            ("rscl", &mut self.content_language),
            ("rscd", &mut self.content_disposition),
            ("rscc", &mut self.cache_control),
        ] {
            // A header cannot hold a control character, and no signature has one.
            let sent = text(name).filter(|text| !text.is_empty() && !text.contains(char::is_control));
            if let Some(sent) = sent {
                *slot = Some(sent.into());
            }
        }
        self
    }
}

/// What Set Blob Properties changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PropertiesChange {
    /// All six at once. `None` if the request is only about pages.
    pub http: Option<HttpProperties>,
    /// The new size of a page blob.
    pub page_blob_bytes: Option<u64>,
    pub sequence_number: Option<SequenceNumberChange>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequenceNumberChange {
    /// The greater one of this and the blob's.
    Max(u64),
    Update(u64),
    Increment,
}

const SEQUENCE_NUMBER: &str = "x-ms-blob-sequence-number";
const SEQUENCE_NUMBER_ACTION: &str = "x-ms-sequence-number-action";
const CONTENT_LENGTH: &str = "x-ms-blob-content-length";
const SEQUENCE_NUMBER_MAX: u64 = i64::MAX as u64;

impl PropertiesChange {
    pub fn read(headers: &Headers<'_>) -> Result<PropertiesChange, ServiceError> {
        let page_blob_bytes = read_page_blob_bytes(headers)?;
        let sequence_number = SequenceNumberChange::read(headers)?;
        let is_about_pages = page_blob_bytes.is_some() || sequence_number.is_some();
        let has_http = OWN_NAMES.iter().any(|name| headers.has(name));
        let http = if has_http || !is_about_pages { Some(HttpProperties::read_own(headers)?) } else { None };
        Ok(PropertiesChange { http, page_blob_bytes, sequence_number })
    }
}

impl SequenceNumberChange {
    fn read(headers: &Headers<'_>) -> Result<Option<SequenceNumberChange>, ServiceError> {
        let Some(action) = headers.get(SEQUENCE_NUMBER_ACTION) else { return Ok(None) };
        let number = read_sequence_number(headers)?;
        let needed = || number.ok_or_else(|| missing_header(SEQUENCE_NUMBER));
        match &*action.to_ascii_lowercase() {
            "max" => Ok(Some(SequenceNumberChange::Max(needed()?))),
            "update" => Ok(Some(SequenceNumberChange::Update(needed()?))),
            "increment" => match headers.get(SEQUENCE_NUMBER) {
                None => Ok(Some(SequenceNumberChange::Increment)),
                Some(sent) => Err(invalid_header(SEQUENCE_NUMBER, sent)),
            },
            _ => Err(invalid_header(SEQUENCE_NUMBER_ACTION, action)),
        }
    }

    /// The new number of a blob with this one.
    pub fn apply(self, number: u64) -> Result<u64, ErrorCode> {
        match self {
            SequenceNumberChange::Max(other) => Ok(number.max(other)),
            SequenceNumberChange::Update(other) => Ok(other),
            SequenceNumberChange::Increment if number < SEQUENCE_NUMBER_MAX => Ok(number + 1),
            SequenceNumberChange::Increment => Err(ErrorCode::SequenceNumberIncrementTooLarge),
        }
    }
}

/// The sequence number with which a page blob is put.
pub fn read_sequence_number(headers: &Headers<'_>) -> Result<Option<u64>, ServiceError> {
    match headers.number(SEQUENCE_NUMBER)? {
        Some(number) if number > SEQUENCE_NUMBER_MAX => {
            Err(invalid_header(SEQUENCE_NUMBER, &number.to_string()))
        }
        number => Ok(number),
    }
}

/// The size of a page blob: whole pages.
fn read_page_blob_bytes(headers: &Headers<'_>) -> Result<Option<u64>, ServiceError> {
    match headers.number(CONTENT_LENGTH)? {
        Some(bytes) if !bytes.is_multiple_of(PAGE_BYTES) || bytes > PAGE_BLOB_BYTES_MAX => {
            Err(invalid_header(CONTENT_LENGTH, &bytes.to_string()))
        }
        bytes => Ok(bytes),
    }
}

/// The size with which a blob of this type is put. Page blobs need one, the others cannot have one.
pub fn read_put_bytes(headers: &Headers<'_>, blob_type: BlobType) -> Result<Option<u64>, ServiceError> {
    match (blob_type, headers.get(CONTENT_LENGTH)) {
        (BlobType::Page, None) => Err(missing_header(CONTENT_LENGTH)),
        (BlobType::Page, Some(_)) => read_page_blob_bytes(headers),
        (_, None) => Ok(None),
        (_, Some(sent)) => Err(invalid_header(CONTENT_LENGTH, sent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: Pairs) -> Headers<'static> {
        pairs.iter().copied().collect()
    }

    #[test]
    fn words_have_no_case_when_they_are_read() {
        assert_eq!(BlobType::parse("blockblob"), Some(BlobType::Block));
        assert_eq!(BlobType::Page.as_str(), "PageBlob");
        for tier in AccessTier::ALL {
            assert_eq!(AccessTier::parse(tier.as_str()), Some(*tier));
        }
        let code = |pairs| PublicAccess::read(&headers(pairs), PUBLIC_ACCESS).map_err(|error| error.code);
        assert_eq!(code(&[(PUBLIC_ACCESS, "Container")]), Ok(Some(PublicAccess::Container)));
        assert_eq!(code(&[]), Ok(None));
        assert_eq!(code(&[(PUBLIC_ACCESS, "all")]), Err(ErrorCode::InvalidHeaderValue));
        let list = |query| BlockListType::read_query(&Query::split(query)).map_err(|error| error.code);
        assert_eq!(list(""), Ok(BlockListType::Committed));
        assert_eq!(list("blocklisttype=All"), Ok(BlockListType::All));
        assert_eq!(list("blocklisttype=x"), Err(ErrorCode::InvalidQueryParameterValue));
    }

    #[test]
    fn tiers_are_for_types() {
        let read = |tier: &'static str, blob_type| {
            let headers: Headers<'_> = [("x-ms-access-tier", tier)].into_iter().collect();
            AccessTier::read_for(&headers, "2026-06-06", blob_type).map_err(|error| error.code)
        };
        assert_eq!(read("cool", BlobType::Block), Ok(Some(AccessTier::Cool)));
        assert_eq!(read("P10", BlobType::Page), Ok(Some(AccessTier::P10)));
        assert_eq!(read("P10", BlobType::Block), Err(ErrorCode::InvalidBlobTier));
        assert_eq!(read("Hot", BlobType::Page), Err(ErrorCode::InvalidBlobTier));
        assert_eq!(read("Warm", BlobType::Block), Err(ErrorCode::InvalidHeaderValue));
        let missing = AccessTier::read_required(&Headers::default(), "2026-06-06").unwrap_err();
        assert_eq!(missing.elements().next(), Some(("HeaderName", "x-ms-access-tier")));
        let smart = [("x-ms-access-tier", "smart")].into_iter().collect();
        assert_eq!(AccessTier::read_required(&smart, "2026-06-06").unwrap(), AccessTier::Smart);
        let refused = AccessTier::read_required(&smart, "2026-04-06").unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidHeaderValue);
    }

    #[test]
    fn plain_headers_count_for_put_blob_only() {
        let sent = headers(&[
            ("Content-Type", "text/plain"),
            ("Cache-Control", "no-cache"),
            ("x-ms-blob-cache-control", "max-age=1"),
            ("Content-Language", "de"),
        ]);
        let put = HttpProperties::read_put(&sent).unwrap();
        assert_eq!(put.content_type.as_deref(), Some("text/plain"));
        assert_eq!(put.cache_control.as_deref(), Some("max-age=1"));
        assert_eq!(put.content_language.as_deref(), Some("de"));
        let list = HttpProperties::read_block_list(&sent).unwrap();
        assert_eq!(list.content_type.as_deref(), Some("application/octet-stream"));
        assert_eq!((list.cache_control.as_deref(), list.content_language), (Some("max-age=1"), None));
        let plain = HttpProperties::read_put(&Headers::default()).unwrap();
        assert_eq!(plain.content_type.as_deref(), Some(CONTENT_TYPE_USUAL));
    }

    #[test]
    fn a_signature_overrides_what_answers_say() {
        let query = Query::split("rscd=attachment;%20filename=a.txt&rsct=text/plain&rscl=&rscc=a%0Ab");
        let stored = HttpProperties { content_language: Some("de".into()), ..HttpProperties::default() };
        let shown = stored.with_overrides(&query);
        assert_eq!(shown.content_disposition.as_deref(), Some("attachment; filename=a.txt"));
        assert_eq!(shown.content_type.as_deref(), Some("text/plain"));
        assert_eq!((shown.content_language.as_deref(), shown.cache_control), (Some("de"), None));
    }

    #[test]
    fn properties_are_replaced_together_unless_the_request_is_about_pages() {
        let read = |pairs| PropertiesChange::read(&headers(pairs));
        assert_eq!(read(&[]).unwrap().http, Some(HttpProperties::default()));
        let both = read(&[("x-ms-blob-content-type", "a/b"), ("x-ms-blob-content-length", "1024")]).unwrap();
        assert!(both.http.is_some_and(|http| http.content_type.as_deref() == Some("a/b")));
        assert_eq!(both.page_blob_bytes, Some(1024));
        let resize = read(&[("x-ms-blob-content-length", "0")]).unwrap();
        assert_eq!((resize.http, resize.page_blob_bytes), (None, Some(0)));
        let code = |pairs| read(pairs).map(|_| ()).map_err(|error| error.code);
        assert_eq!(code(&[("x-ms-blob-content-length", "513")]), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(code(&[("x-ms-blob-content-md5", "513")]), Err(ErrorCode::InvalidMd5));
        let huge = [("x-ms-blob-content-length", "8796093022720")];
        assert_eq!(
            PropertiesChange::read(&huge.into_iter().collect()).unwrap_err().code,
            ErrorCode::InvalidHeaderValue
        );
    }

    #[test]
    fn sequence_numbers_grow() {
        let read = |pairs| PropertiesChange::read(&headers(pairs)).map(|change| change.sequence_number);
        assert_eq!(
            read(&[(SEQUENCE_NUMBER_ACTION, "Max"), (SEQUENCE_NUMBER, "7")]).unwrap(),
            Some(SequenceNumberChange::Max(7))
        );
        assert_eq!(
            read(&[(SEQUENCE_NUMBER_ACTION, "update"), (SEQUENCE_NUMBER, "7")]).unwrap(),
            Some(SequenceNumberChange::Update(7))
        );
        assert_eq!(
            read(&[(SEQUENCE_NUMBER_ACTION, "increment")]).unwrap(),
            Some(SequenceNumberChange::Increment)
        );
        let code = |pairs| read(pairs).map_err(|error| error.code);
        assert_eq!(
            code(&[(SEQUENCE_NUMBER_ACTION, "increment"), (SEQUENCE_NUMBER, "7")]),
            Err(ErrorCode::InvalidHeaderValue)
        );
        assert_eq!(code(&[(SEQUENCE_NUMBER_ACTION, "max")]), Err(ErrorCode::MissingRequiredHeader));
        assert_eq!(code(&[(SEQUENCE_NUMBER_ACTION, "x")]), Err(ErrorCode::InvalidHeaderValue));
        assert_eq!(
            code(&[(SEQUENCE_NUMBER_ACTION, "max"), (SEQUENCE_NUMBER, "9223372036854775808")]),
            Err(ErrorCode::InvalidHeaderValue)
        );
        assert_eq!(SequenceNumberChange::Max(7).apply(9), Ok(9));
        assert_eq!(SequenceNumberChange::Update(7).apply(9), Ok(7));
        assert_eq!(SequenceNumberChange::Increment.apply(9), Ok(10));
        let overflow = SequenceNumberChange::Increment.apply(i64::MAX as u64);
        assert_eq!(overflow, Err(ErrorCode::SequenceNumberIncrementTooLarge));
    }

    #[test]
    fn only_page_blobs_are_put_with_a_size() {
        let read = |pairs, blob_type| read_put_bytes(&headers(pairs), blob_type).map_err(|error| error.code);
        assert_eq!(read(&[("x-ms-blob-content-length", "2048")], BlobType::Page), Ok(Some(2048)));
        assert_eq!(read(&[], BlobType::Page), Err(ErrorCode::MissingRequiredHeader));
        assert_eq!(
            read(&[("x-ms-blob-content-length", "1")], BlobType::Page),
            Err(ErrorCode::InvalidHeaderValue)
        );
        assert_eq!(
            read(&[("x-ms-blob-content-length", "512")], BlobType::Block),
            Err(ErrorCode::InvalidHeaderValue)
        );
        assert_eq!(read(&[], BlobType::Append), Ok(None));
    }
}
