//! A successful answer of the Blob service, before it is written as an HTTP response.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};
use protocol::blob::BlobETag;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::{DateTime, Metadata, xml_write};

use crate::front::respond::put;
use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;

/// The headers of an answer, by their own names, and its body.
pub struct BlobAnswer {
    status: u16,
    headers: HeaderMap,
    body: AnswerBody,
}

/// How many headers an answer has besides its own.
const COMMON_HEADER_COUNT: usize = 8;

impl BlobAnswer {
    pub fn empty(status: u16) -> BlobAnswer {
        BlobAnswer { status, headers: HeaderMap::new(), body: AnswerBody::Empty }
    }

    /// An XML document that was asked for.
    pub fn document(document: Vec<u8>) -> BlobAnswer {
        BlobAnswer::read(AnswerBody::whole(document))
    }

    /// The same, in memory that is reserved.
    pub fn read(document: AnswerBody) -> BlobAnswer {
        let mut answer = BlobAnswer { status: 200, headers: HeaderMap::new(), body: document };
        answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
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
        put(&mut self.headers, HeaderName::from_static(name), value);
        self
    }

    pub(crate) fn header_if(self, name: &'static str, value: Option<impl AsRef<str>>) -> BlobAnswer {
        match value {
            Some(value) => self.header(name, value.as_ref()),
            None => self,
        }
    }

    /// A header whose name somebody chose.
    pub fn push(&mut self, name: &str, value: &str) {
        if let Ok(name) = HeaderName::try_from(name) {
            put(&mut self.headers, name, value);
        }
    }

    /// `ETag` and `Last-Modified`.
    pub fn stamp(mut self, etag: BlobETag, last_modified: DateTime) -> BlobAnswer {
        put(&mut self.headers, ETAG, &etag.quoted());
        put(&mut self.headers, LAST_MODIFIED, &last_modified.to_http());
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
        self.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
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
        // Every name is there once.
        for (name, value) in self.headers.drain() {
            if let Some(name) = name {
                headers.insert(name, value);
            }
        }
    }
}
