//! A successful answer of the Blob service, before it is written as an HTTP response.

use http::header::{self, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use protocol::blob::BlobETag;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::{DateTime, Metadata, xml_write};

use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;

/// The headers of an answer, by their own names, and its body.
pub struct BlobAnswer {
    status: u16,
    /// Not a map: they are put into that of the response soon. Of two with one name, the later one counts.
    headers: Vec<(HeaderName, HeaderValue)>,
    body: AnswerBody,
}

/// Room for the headers of most answers.
const HEADER_COUNT_USUAL: usize = 20;

/// The names and values of most answers. A new name costs more than finding it here, and so does a new value.
static NAMES: [HeaderName; 19] = [
    header::ETAG,
    header::LAST_MODIFIED,
    header::ACCEPT_RANGES,
    header::CONTENT_TYPE,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("x-ms-creation-time"),
    HeaderName::from_static("x-ms-blob-type"),
    HeaderName::from_static("x-ms-lease-state"),
    HeaderName::from_static("x-ms-lease-status"),
    HeaderName::from_static("x-ms-server-encrypted"),
    HeaderName::from_static("x-ms-content-crc64"),
    HeaderName::from_static("x-ms-request-server-encrypted"),
    HeaderName::from_static("x-ms-version-id"),
    HeaderName::from_static("x-ms-access-tier"),
    HeaderName::from_static("x-ms-access-tier-inferred"),
    HeaderName::from_static("x-ms-is-current-version"),
    HeaderName::from_static("x-ms-blob-content-md5"),
    header::CONTENT_RANGE,
    header::CACHE_CONTROL,
];
static VALUES: [HeaderValue; 6] = [
    HeaderValue::from_static("true"),
    HeaderValue::from_static("bytes"),
    HeaderValue::from_static("BlockBlob"),
    HeaderValue::from_static("available"),
    HeaderValue::from_static("unlocked"),
    HeaderValue::from_static("application/octet-stream"),
];

/// How many headers an answer has besides its own.
const COMMON_HEADER_COUNT: usize = 8;

impl BlobAnswer {
    pub fn empty(status: u16) -> BlobAnswer {
        BlobAnswer { status, headers: Vec::with_capacity(HEADER_COUNT_USUAL), body: AnswerBody::Empty }
    }

    /// An XML document that was asked for.
    pub fn document(document: Vec<u8>) -> BlobAnswer {
        BlobAnswer::read(AnswerBody::whole(document))
    }

    /// The same, in memory that is reserved.
    pub fn read(document: AnswerBody) -> BlobAnswer {
        let mut answer = BlobAnswer { body: document, ..BlobAnswer::empty(200) };
        answer.headers.push((CONTENT_TYPE, HeaderValue::from_static("application/xml")));
        answer
    }

    /// A body of another kind, whose headers are the caller's business.
    pub(crate) fn with_body(mut self, body: AnswerBody) -> BlobAnswer {
        self.body = body;
        self
    }

    /// The same answer with another status.
    pub(crate) fn with_status(mut self, status: u16) -> BlobAnswer {
        self.status = status;
        self
    }

    /// A header with a name that is known to be right. A value that no header can carry is left out.
    pub fn header(mut self, name: &'static str, value: &str) -> BlobAnswer {
        self.push(name, value);
        self
    }

    pub(crate) fn header_if(self, name: &'static str, value: Option<impl AsRef<str>>) -> BlobAnswer {
        match value {
            Some(value) => self.header(name, value.as_ref()),
            None => self,
        }
    }

    /// A header whose name somebody chose. What cannot be a name, or a value, is left out.
    pub fn push(&mut self, name: &str, value: &str) {
        let known = NAMES.iter().find(|known| known.as_str() == name).cloned();
        let name = known.or_else(|| HeaderName::try_from(name).ok());
        let known = VALUES.iter().find(|known| known.as_bytes() == value.as_bytes()).cloned();
        let value = known.or_else(|| HeaderValue::from_str(value).ok());
        self.headers.extend(name.zip(value));
    }

    /// `ETag` and `Last-Modified`.
    pub fn stamp(mut self, etag: BlobETag, last_modified: DateTime) -> BlobAnswer {
        self.push(header::ETAG.as_str(), &etag.quoted());
        self.push(header::LAST_MODIFIED.as_str(), &last_modified.to_http());
        self
    }

    pub fn metadata(mut self, metadata: &Metadata) -> BlobAnswer {
        for (name, value) in metadata.items() {
            self.push(&[HEADER_PREFIX, name].concat(), value);
        }
        self
    }

    /// What a write says about encryption.
    pub fn encrypted(self) -> BlobAnswer {
        self.header("x-ms-request-server-encrypted", "true")
    }

    /// The length of a body that is not sent: that of an answer to HEAD.
    pub(crate) fn unsent_len(mut self, bytes: u64) -> BlobAnswer {
        self.headers.push((CONTENT_LENGTH, HeaderValue::from(bytes)));
        self
    }
}

impl From<ServiceAnswer> for BlobAnswer {
    fn from(answer: ServiceAnswer) -> BlobAnswer {
        match answer.document {
            Some(document) => BlobAnswer::document(xml_write::without_mark(document)),
            None => BlobAnswer::empty(answer.status),
        }
    }
}

impl Answer for BlobAnswer {
    fn status(&self) -> u16 {
        self.status
    }

    fn header_count(&self) -> usize {
        COMMON_HEADER_COUNT + self.headers.len()
    }

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderMap) {
        for (name, value) in self.headers.drain(..) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_headers_with_one_name_the_later_counts_and_what_is_none_is_left_out() {
        let mut answer = BlobAnswer::empty(200).header("etag", "first").header("x-ms-other", "true");
        answer.push("etag", "second");
        answer.push("no name", "value");
        answer.push("x-ms-meta-a", "no\nvalue");
        let mut headers = HeaderMap::new();
        answer.write_headers(&mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (headers["etag"].as_bytes(), headers["x-ms-other"].as_bytes()),
            (&b"second"[..], &b"true"[..])
        );
    }
}
