//! A successful answer of the Table service, before it is written as an HTTP response or as a part of a batch.

use protocol::common::DateText;
use protocol::table::model::ETag;
use protocol::table::wire::MetadataLevel;
use protocol::table::wire::negotiate::Preference;

use super::header_names::{
    CONTINUATION_NEXT_PARTITION_KEY, CONTINUATION_NEXT_ROW_KEY, CONTINUATION_NEXT_TABLE_NAME,
    DATA_SERVICE_ID, EXPLANATION, PREFERENCE_APPLIED,
};
use crate::front::service::Answer;
use crate::front::service_operations::ServiceAnswer;
use crate::http::body::AnswerBody;
use crate::http::header_names::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, NO_SNIFF};
use crate::http::response::HeaderList;

#[derive(Default)]
pub struct TableAnswer {
    pub status: u16,
    pub content: ContentKind,
    pub body: AnswerBody,
    /// The Timestamp that the ETag is made of.
    pub etag: Option<DateText>,
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

    fn body(&mut self) -> &mut AnswerBody {
        &mut self.body
    }

    fn write_headers(&mut self, headers: &mut HeaderList) {
        if !matches!(self.content, ContentKind::Xml) {
            headers.put_constant(CACHE_CONTROL, "no-cache");
            headers.put_constant(NO_SNIFF, "nosniff");
        }
        if let Some(timestamp) = &self.etag {
            headers.put_with(ETAG, |out| ETag::write(timestamp, out));
        }
        if let Some(location) = &self.location {
            headers.put(LOCATION, location);
            if self.preference == Some(Preference::ReturnNoContent) {
                headers.put(DATA_SERVICE_ID, location);
            }
        }
        if let Some(preference) = self.preference {
            headers.put(PREFERENCE_APPLIED, preference.name());
        }
        match &self.next {
            Some(Continuation::Entity { partition_key, row_key }) => {
                headers.put(CONTINUATION_NEXT_PARTITION_KEY, partition_key);
                headers.put(CONTINUATION_NEXT_ROW_KEY, row_key);
            }
            Some(Continuation::Table(name)) => headers.put(CONTINUATION_NEXT_TABLE_NAME, name),
            None => {}
        }
        if let Some(explanation) = &self.explanation {
            headers.put(EXPLANATION, explanation);
        }
        match &self.content {
            ContentKind::Json(level) => headers.put_checked(CONTENT_TYPE, level.content_type()),
            ContentKind::Multipart { content_type } => headers.put(CONTENT_TYPE, content_type),
            ContentKind::Xml if !matches!(self.body, AnswerBody::Empty) => {
                headers.put(CONTENT_TYPE, "application/xml");
            }
            ContentKind::Xml | ContentKind::Nothing => {}
        }
    }
}
