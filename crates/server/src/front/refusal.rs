//! A refusal: what went wrong, and at which stage of the road.
//!
//! Leaves to others: the words and the shape of the answer, which each service chooses.

use protocol::{ErrorCode, ServiceError};

use crate::http::body::PayloadError;

/// What a caller without valid credentials hears about where to obtain them.
pub(crate) const CHALLENGE: &str = "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize \
                                    resource_id=https://storage.azure.com";

#[derive(Debug)]
pub struct Refusal {
    pub error: ServiceError,
    pub stage: Stage,
    /// An additional header of the refusal's answer.
    pub header: Option<Box<(&'static str, String)>>,
}

/// Where on the road a request was refused. Services word their answers differently at each stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Addressing, versions, preflight, payload framing.
    Front,
    /// The caller could not be authenticated.
    Authentication,
    /// Everything after that: the service itself refuses.
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
            PayloadError::TooLarge { bytes_max } => Refusal::front(
                ServiceError::from(ErrorCode::RequestBodyTooLarge)
                    .with_element("MaxLimit", bytes_max.to_string()),
            ),
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
