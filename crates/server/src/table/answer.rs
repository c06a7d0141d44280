//! A successful answer of the Table service, before it is written as an HTTP response or as a part of a batch.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, LOCATION};
use protocol::common::DateTime;
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::json_write::etag_text;
use protocol::table::wire::negotiate::Preference;

use super::header_names::{
    CONTINUATION_NEXT_PARTITION_KEY, CONTINUATION_NEXT_ROW_KEY, CONTINUATION_NEXT_TABLE_NAME,
    DATA_SERVICE_ID, EXPLANATION, NO_SNIFF, PREFERENCE_APPLIED,
};
use crate::front::respond::put;
use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;

#[derive(Default)]
pub struct TableAnswer {
    pub status: u16,
    pub content: ContentKind,
    pub body: AnswerBody,
    pub etag: Option<DateTime>,
    /// The absolute URL of the created resource.
    pub location: Option<String>,
    pub preference: Option<Preference>,
    pub next: Option<Continuation>,
    /// How the query found its rows, if the caller asked for it.
    pub explanation: Option<String>,
}

/// What kind of content the body has.
#[derive(Default)]
pub enum ContentKind {
    #[default]
    Nothing,
    Json(MetadataLevel),
    Multipart {
        content_type: String,
    },
    /// A resource of the front end, with or without a document. It does not get the headers of the OData path.
    Xml,
}

/// Where a query continues: continuation tokens, ready to send.
pub enum Continuation {
    Entity { partition_key: String, row_key: String },
    Table(String),
}

/// How many headers an answer usually has, and how many when it creates something.
const HEADER_COUNT: usize = 8;
const CREATION_HEADER_COUNT: usize = 12;

impl TableAnswer {
    pub(crate) fn no_content() -> TableAnswer {
        TableAnswer { status: 204, ..TableAnswer::default() }
    }

    pub fn json(status: u16, level: MetadataLevel, json: Vec<u8>) -> TableAnswer {
        let (content, body) = (ContentKind::Json(level), AnswerBody::whole(json));
        TableAnswer { status, content, body, ..TableAnswer::default() }
    }
}

impl From<ServiceAnswer> for TableAnswer {
    fn from(answer: ServiceAnswer) -> TableAnswer {
        let body = answer.document.map(AnswerBody::whole).unwrap_or_default();
        TableAnswer { status: answer.status, content: ContentKind::Xml, body, ..TableAnswer::default() }
    }
}

impl Answer for TableAnswer {
    fn status(&self) -> u16 {
        self.status
    }

    fn header_count(&self) -> usize {
        if self.location.is_some() { CREATION_HEADER_COUNT } else { HEADER_COUNT }
    }

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderMap) {
        if !matches!(self.content, ContentKind::Xml) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
        }
        if let Some(timestamp) = self.etag
            && let Ok(etag) = HeaderValue::from_maybe_shared(Bytes::from(etag_text(timestamp)))
        {
            headers.insert(ETAG, etag);
        }
        let location = self.location.take().map(Bytes::from);
        if let Some(location) = location.and_then(|url| HeaderValue::from_maybe_shared(url).ok()) {
            headers.insert(LOCATION, location.clone());
            if self.preference == Some(Preference::ReturnNoContent) {
                headers.insert(DATA_SERVICE_ID, location);
            }
        }
        if let Some(preference) = self.preference {
            headers.insert(PREFERENCE_APPLIED, HeaderValue::from_static(preference.name()));
        }
        match &self.next {
            Some(Continuation::Entity { partition_key, row_key }) => {
                put(headers, CONTINUATION_NEXT_PARTITION_KEY, partition_key);
                put(headers, CONTINUATION_NEXT_ROW_KEY, row_key);
            }
            Some(Continuation::Table(name)) => put(headers, CONTINUATION_NEXT_TABLE_NAME, name),
            None => {}
        }
        if let Some(explanation) = &self.explanation {
            put(headers, EXPLANATION, explanation);
        }
        match &self.content {
            ContentKind::Json(level) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(level.content_type()));
            }
            ContentKind::Multipart { content_type } => put(headers, CONTENT_TYPE, content_type),
            ContentKind::Xml if !matches!(self.body, AnswerBody::Empty) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            }
            ContentKind::Xml | ContentKind::Nothing => {}
        }
    }
}
