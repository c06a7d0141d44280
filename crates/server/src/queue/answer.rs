//! A successful answer of the Queue service, before it is written as an HTTP response.

use ::queues::{QueueProperties, UpdatedMessage};
use http::StatusCode;
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::xml_write;

use super::header_names::{APPROXIMATE_COUNT, POP_RECEIPT, TIME_NEXT_VISIBLE};
use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;
use crate::http::header_names::{CACHE_CONTROL, CONTENT_TYPE};
use crate::http::response::HeaderList;

pub struct QueueAnswer {
    status: StatusCode,
    headers: AnswerHeaders,
    body: AnswerBody,
}

/// What the answer tells in its headers.
enum AnswerHeaders {
    /// Nothing: the status says it all.
    Nothing,
    /// An XML document. `Cache-Control` goes with what was read, not with what was made.
    Document {
        is_read: bool,
    },
    Properties(QueueProperties),
    Updated(UpdatedMessage),
}

impl QueueAnswer {
    pub fn empty(status: StatusCode) -> QueueAnswer {
        QueueAnswer { status, headers: AnswerHeaders::Nothing, body: AnswerBody::Empty }
    }

    /// A document that was asked for.
    pub fn read(document: AnswerBody) -> QueueAnswer {
        QueueAnswer {
            status: StatusCode::OK,
            headers: AnswerHeaders::Document { is_read: true },
            body: document,
        }
    }

    /// A document about something new.
    pub fn created(document: Vec<u8>) -> QueueAnswer {
        QueueAnswer {
            status: StatusCode::CREATED,
            headers: AnswerHeaders::Document { is_read: false },
            body: AnswerBody::whole(document),
        }
    }

    pub fn properties(properties: QueueProperties) -> QueueAnswer {
        let headers = AnswerHeaders::Properties(properties);
        QueueAnswer { status: StatusCode::OK, headers, body: AnswerBody::Empty }
    }

    pub fn updated(updated: UpdatedMessage) -> QueueAnswer {
        let headers = AnswerHeaders::Updated(updated);
        QueueAnswer { status: StatusCode::NO_CONTENT, headers, body: AnswerBody::Empty }
    }
}

impl From<ServiceAnswer> for QueueAnswer {
    fn from(answer: ServiceAnswer) -> QueueAnswer {
        match answer.document {
            // No client of this service needs the byte order mark, and some stumble over it.
            Some(document) => QueueAnswer::read(AnswerBody::whole(xml_write::without_mark(document))),
            None => QueueAnswer::empty(StatusCode::ACCEPTED),
        }
    }
}

impl Answer for QueueAnswer {
    fn status(&self) -> u16 {
        self.status.as_u16()
    }

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderList) {
        if matches!(self.headers, AnswerHeaders::Document { is_read: true } | AnswerHeaders::Properties(_)) {
            headers.put(CACHE_CONTROL, "no-cache");
        }
        match &self.headers {
            AnswerHeaders::Nothing => {}
            AnswerHeaders::Document { .. } => headers.put(CONTENT_TYPE, "application/xml"),
            AnswerHeaders::Properties(QueueProperties { metadata, message_count }) => {
                headers.put_number(APPROXIMATE_COUNT, *message_count);
                for (name, value) in metadata.items() {
                    headers.put_chosen(&[HEADER_PREFIX, name].concat(), value);
                }
            }
            AnswerHeaders::Updated(UpdatedMessage { receipt, visible }) => {
                headers.put(POP_RECEIPT, &receipt.to_string());
                headers.put(TIME_NEXT_VISIBLE, &visible.to_http());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::common::{DateTime, Metadata};
    use protocol::queue::PopReceipt;

    /// The status and the headers, sorted by name.
    #[track_caller]
    fn check(mut answer: QueueAnswer, status: u16, expected: &[&str]) {
        let mut headers = HeaderList::default();
        answer.write_headers(&mut headers);
        let mut found: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        found.sort();
        assert_eq!(
            (answer.status(), found),
            (status, expected.iter().map(|line| (*line).to_owned()).collect())
        );
    }

    #[test]
    fn answers_have_the_headers_of_the_service() {
        let (cache, xml) = ("cache-control: no-cache", "content-type: application/xml");
        check(QueueAnswer::empty(StatusCode::NO_CONTENT), 204, &[]);
        check(QueueAnswer::read(AnswerBody::whole(b"<a/>".to_vec())), 200, &[cache, xml]);
        check(QueueAnswer::created(b"<a/>".to_vec()), 201, &[xml]);
        check(ServiceAnswer { status: 202, document: None }.into(), 202, &[]);

        let metadata = Metadata::read([("hello", "world"), ("number", "43")]).unwrap();
        check(
            QueueAnswer::properties(QueueProperties { metadata, message_count: 7 }),
            200,
            &[cache, "x-ms-approximate-messages-count: 7", "x-ms-meta-hello: world", "x-ms-meta-number: 43"],
        );
        let visible = DateTime::parse("2022-10-27T22:04:58.9Z").unwrap();
        let receipt = PopReceipt { visible_ticks: 1, version_ticks: 2 };
        check(
            QueueAnswer::updated(UpdatedMessage { receipt, visible }),
            204,
            &[
                "x-ms-popreceipt: 00000000000000010000000000000002",
                "x-ms-time-next-visible: Thu, 27 Oct 2022 22:04:58 GMT",
            ],
        );
    }

    #[test]
    fn documents_of_the_front_lose_their_byte_order_mark() {
        let document = Some("\u{FEFF}<?xml?>".as_bytes().to_vec());
        let mut answer = QueueAnswer::from(ServiceAnswer { status: 200, document });
        assert_eq!(answer.body().as_bytes(), b"<?xml?>");
    }
}
