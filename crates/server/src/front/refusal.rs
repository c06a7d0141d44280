//! A refusal: what went wrong, and at which stage of the road.

use http::{HeaderName, HeaderValue};
use protocol::{ErrorCode, ServiceError};

use crate::http::body::PayloadError;

#[derive(Debug)]
pub struct Refusal {
    pub error: ServiceError,
    pub stage: Stage,
    /// A header that goes with the refusal, whatever its code.
    pub header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// Where on the road a request was refused. Services answer differently from each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Addressing, versions, preflight, payload framing.
    Front,
    /// The caller is not known.
    Authentication,
    /// Everything that the service itself says.
    Service,
}

impl Refusal {
    pub fn new(stage: Stage, error: impl Into<ServiceError>) -> Refusal {
        Refusal { error: error.into(), stage, header: None }
    }

    pub fn front(error: impl Into<ServiceError>) -> Refusal {
        Refusal::new(Stage::Front, error)
    }
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Refusal {
        Refusal::new(Stage::Service, error)
    }
}

impl From<PayloadError> for Refusal {
    fn from(error: PayloadError) -> Refusal {
        match error {
            PayloadError::NoLength => Refusal::front(ErrorCode::MissingContentLengthHeader),
            PayloadError::TooLarge => ErrorCode::RequestBodyTooLarge.into(),
            PayloadError::NoMemory => ErrorCode::ServerBusy.into(),
            PayloadError::Broken => ErrorCode::InvalidInput.into(),
            PayloadError::TooSlow => ErrorCode::OperationTimedOut.into(),
        }
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Refusal {
        Refusal::new(Stage::Service, code)
    }
}
