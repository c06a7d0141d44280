//! A successful answer of the Blob service, before it is written as an HTTP response.

use protocol::blob::BlobETag;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::{DateTime, Metadata, xml_write};

use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;
use crate::http::header_names::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use crate::http::response::HeaderList;

/// The headers of an answer, by their own names, and its body.
pub struct BlobAnswer {
    status: u16,
    /// Of two with one name, the later one counts.
    headers: HeaderList,
    body: AnswerBody,
}

/// Room for the headers of most answers.
const HEADER_BYTES_USUAL: usize = 512;

impl BlobAnswer {
    pub fn empty(status: u16) -> BlobAnswer {
        BlobAnswer { status, headers: HeaderList::with_capacity(HEADER_BYTES_USUAL), body: AnswerBody::Empty }
    }

    /// An XML document that was asked for.
    pub fn document(document: Vec<u8>) -> BlobAnswer {
        BlobAnswer::read(AnswerBody::whole(document))
    }

    /// The same, in memory that is reserved.
    pub fn read(document: AnswerBody) -> BlobAnswer {
        let mut answer = BlobAnswer { body: document, ..BlobAnswer::empty(200) };
        answer.headers.put(CONTENT_TYPE, "application/xml");
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
        self.headers.put(name, value);
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
        self.headers.put_chosen(name, value);
    }

    /// `ETag` and `Last-Modified`.
    pub fn stamp(mut self, etag: BlobETag, last_modified: DateTime) -> BlobAnswer {
        self.headers.put(ETAG, &etag.quoted());
        self.headers.put("last-modified", &last_modified.to_http());
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
        self.headers.put_number(CONTENT_LENGTH, bytes);
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

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderList) {
        // None of them has the name of a header that every answer has.
        headers.put_lines(&self.headers);
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
        let mut headers = HeaderList::default();
        answer.write_headers(&mut headers);
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("etag", "second"), ("x-ms-other", "true")]);
    }
}
