//! A successful answer of the Queue service, before it is written as an HTTP response.

use ::queues::{QueueProperties, UpdatedMessage};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{HeaderName, StatusCode};
use protocol::common::metadata::HEADER_PREFIX;
use protocol::common::xml_write;

use super::header_names::{APPROXIMATE_COUNT, POP_RECEIPT, TIME_NEXT_VISIBLE};
use crate::front::respond::put;
use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;

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

/// How many headers an answer usually has.
const HEADER_COUNT: usize = 8;

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

    fn header_count(&self) -> usize {
        match &self.headers {
            AnswerHeaders::Properties(properties) => HEADER_COUNT + properties.metadata.items().len(),
            _ => HEADER_COUNT,
        }
    }

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderMap) {
        if matches!(self.headers, AnswerHeaders::Document { is_read: true } | AnswerHeaders::Properties(_)) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        match &self.headers {
            AnswerHeaders::Nothing => {}
            AnswerHeaders::Document { .. } => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            }
            AnswerHeaders::Properties(QueueProperties { metadata, message_count }) => {
                headers.insert(APPROXIMATE_COUNT, HeaderValue::from(*message_count));
                for (name, value) in metadata.items() {
                    let name = [HEADER_PREFIX, name].concat();
                    if let Ok(name) = HeaderName::try_from(name) {
                        put(headers, name, value);
                    }
                }
            }
            AnswerHeaders::Updated(UpdatedMessage { receipt, visible }) => {
                put(headers, POP_RECEIPT, &receipt.to_string());
                let mut time = Vec::new();
                visible.write_http(&mut time);
                if let Ok(time) = HeaderValue::from_maybe_shared(Bytes::from(time)) {
                    headers.insert(TIME_NEXT_VISIBLE, time);
                }
            }
        }
    }
}
