//! What an operation has to say, before it is dressed as an HTTP response or as a part of a batch.

use protocol::model::DateTime;
use protocol::wire::MetadataLevel;
use protocol::wire::cors::PreflightAnswer;
use protocol::wire::negotiate::Preference;
use protocol::{ErrorCode, ServiceError};

use crate::room::Room;

/// A success.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub body: Body,
    pub etag: Option<DateTime>,
    /// The absolute URL of what was made.
    pub location: Option<String>,
    pub preference: Option<Preference>,
    pub next: Option<Next>,
    /// What the query did to find its rows, for a caller who asked to see it.
    pub explanation: Option<String>,
    /// From the front end, which does not add the headers of the OData path.
    pub is_front_end: bool,
    /// The answer to a preflight request.
    pub preflight: Option<PreflightAnswer>,
    /// Where a large body is until it is read.
    pub room: Option<Room>,
}

#[derive(Debug, Default)]
pub enum Body {
    #[default]
    Empty,
    Json(MetadataLevel, Vec<u8>),
    Multipart {
        content_type: String,
        bytes: Vec<u8>,
    },
    Xml(Vec<u8>),
}

impl Body {
    pub fn len(&self) -> usize {
        match self {
            Body::Empty => 0,
            Body::Json(_, bytes) | Body::Multipart { bytes, .. } | Body::Xml(bytes) => bytes.len(),
        }
    }
}

/// Where a query goes on: continuation tokens, ready to send.
#[derive(Debug)]
pub enum Next {
    Entity { partition_key: String, row_key: String },
    Table(String),
}

impl Answer {
    pub fn no_content() -> Answer {
        Answer { status: 204, ..Answer::default() }
    }

    pub fn front_end(status: u16) -> Answer {
        Answer { status, is_front_end: true, ..Answer::default() }
    }

    pub fn xml(document: Vec<u8>) -> Answer {
        Answer { body: Body::Xml(document), ..Answer::front_end(200) }
    }

    pub fn json(status: u16, level: MetadataLevel, json: Vec<u8>) -> Answer {
        Answer { status, body: Body::Json(level, json), ..Answer::default() }
    }
}

/// A refusal, and which of the service's two code paths it comes from.
#[derive(Debug)]
pub struct Refusal {
    pub error: ServiceError,
    pub shape: Shape,
    pub preference: Option<Preference>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Tables, entities, batches.
    OData,
    /// Addressing, versions, XML resources.
    FrontEnd,
    /// As the front end, and without the headers that only a known caller gets.
    Authentication,
}

impl Refusal {
    pub fn new(shape: Shape, error: impl Into<ServiceError>) -> Refusal {
        Refusal { error: error.into(), shape, preference: None }
    }
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Refusal {
        Refusal::new(Shape::OData, error)
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Refusal {
        Refusal::new(Shape::OData, code)
    }
}
