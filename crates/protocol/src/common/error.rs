//! Every error that a service can answer with: one table of codes, and the value that carries one up the road.
//!
//! Leaves to others: the shape of an error on the wire. The code that writes the response chooses JSON or XML.

use std::borrow::Cow;
use std::fmt;

macro_rules! error_codes {
    ($($name:ident $(as $wire:literal)? $status:literal $message:literal)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ErrorCode { $($name),* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name),*];

            /// The code as written on the wire.
            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => error_codes!(@wire $name $($wire)?)),* }
            }

            pub fn status(self) -> u16 {
                match self { $(ErrorCode::$name => $status),* }
            }

            /// The message, unless the error carries a better one.
            pub fn message(self) -> &'static str {
                match self { $(ErrorCode::$name => $message),* }
            }
        }
    };
    (@wire $name:ident) => { stringify!($name) };
    (@wire $name:ident $wire:literal) => { $wire };
}

error_codes! {
    // name                        status  message, unless the caller has a better one

    // Used by the Table service only.
    AtomFormatNotSupported         415 "Atom format is not supported."
    CommandsInBatchActOnDifferentPartitions 400 "All commands in a batch must operate on same entity group."
    DuplicateKeyPropertySpecified  400 "A key property is specified more than once."
    DuplicatePropertiesSpecified   400 "A property is specified more than once."
    EntityAlreadyExists            409 "The specified entity already exists."
    EntityTooLarge                 400 "The entity is larger than the maximum allowed size (1MB)."
    HostInformationNotPresent      400 "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
    InvalidDuplicateRow            400 "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    InvalidInput                   400 "One of the request inputs is not valid."
    JsonVerboseFormatNotSupported  415 "Verbose JSON format is not supported."
    MediaTypeNotSupported          415 "None of the provided media types are supported"
    MethodNotAllowed               405 "The requested method is not allowed on the specified resource."
    NotImplemented                 501 "The requested operation is not implemented on the specified resource."
    OutOfRangeInput                400 "One of the request inputs is out of range."
    PropertiesNeedValue            400 "The values are not specified for all properties in the entity."
    PropertyNameInvalid            400 "The property name is invalid."
    PropertyNameTooLong            400 "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge          400 "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    ResourceNotFound               404 "The specified resource does not exist."
    TableAlreadyExists             409 "The table specified already exists."
    TableNotFound                  404 "The table specified does not exist."
    TooManyProperties              400 "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
    UpdateConditionNotSatisfied    412 "The update condition specified in the request was not satisfied."
    XMethodIncorrectCount          400 "More than one X-HTTP-Method is specified."
    XMethodIncorrectValue          400 "The specified X-HTTP-Method is invalid."
    XMethodNotUsingPost            400 "The request uses X-HTTP-Method with a Http Verb that is not POST."

    // Common to the storage services.
    AuthenticationFailed           403 "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure           403 "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch 403 "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch  403 "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch 403 "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch   403 "This request is not authorized to perform this operation using this service."
    // The code that raises this one adds the address to the message.
    AuthorizationSourceIPMismatch  403 "This request is not authorized to perform this operation using this source IP."
    CorsPreflightFailure           403 "CORS not enabled or no matching rule found for this request."
    InsufficientAccountPermissions 403 "The account being accessed does not have sufficient permissions to execute this operation."
    InternalError                  500 "Server encountered an internal error. Please try again after some time."
    InvalidAuthenticationInfo      400 "Authentication information is not given in the correct format. Check the value of Authorization header."
    // On the wire this is `InvalidAuthenticationInfo` too: 401 for a token that does not validate, 400 for a header
    // that cannot be read.
    InvalidBearerToken as "InvalidAuthenticationInfo" 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    InvalidHeaderValue             400 "The value for one of the HTTP headers is not in the correct format."
    InvalidHttpVerb                400 "The HTTP verb specified is invalid."
    InvalidQueryParameterValue     400 "Value for one of the query parameters specified in the request URI is invalid."
    InvalidResourceName            400 "The specifed resource name contains invalid characters."
    InvalidUri                     400 "The requested URI does not represent any resource on the server."
    InvalidXmlDocument             400 "XML specified is not syntactically valid."
    InvalidXmlNodeValue            400 "The value for one of the XML nodes is not in the correct format."
    MissingContentLengthHeader     411 "The Content-Length header was not specified."
    NoAuthenticationInformation    401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    OperationTimedOut              500 "Operation could not be completed within the specified time."
    RequestBodyTooLarge            413 "The request body is too large and exceeds the maximum permissible limit."
    ServerBusy                     503 "The server is busy."
    UnsupportedHttpVerb            405 "The resource doesn't support specified Http Verb."
}

impl ErrorCode {
    /// Whether an operation raises this error while it runs, rather than in the checks before. The difference shows in
    /// two places: answers to these errors carry `Cache-Control`, and in a change set of one operation their message
    /// has no index in front.
    pub fn is_raised_by_execution(self) -> bool {
        matches!(
            self,
            ErrorCode::EntityAlreadyExists
                | ErrorCode::EntityTooLarge
                | ErrorCode::InvalidDuplicateRow
                | ErrorCode::PropertyValueTooLarge
                | ErrorCode::ResourceNotFound
                | ErrorCode::TableAlreadyExists
                | ErrorCode::TooManyProperties
                | ErrorCode::UpdateConditionNotSatisfied
        )
    }
}

/// The underlying cause: logged, never sent.
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// What the caller sees, plus the cause that only our log sees.
#[derive(Debug)]
pub struct ServiceError {
    pub code: ErrorCode,
    /// Replaces the code's usual message.
    pub detail: Option<Cow<'static, str>>,
    /// Which operation of a batch failed.
    pub operation: Option<usize>,
    pub source: Option<Source>,
}

impl ServiceError {
    pub fn with_detail(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> ServiceError {
        ServiceError { detail: Some(detail.into()), ..ServiceError::from(code) }
    }

    pub fn with_source(code: ErrorCode, source: impl Into<Source>) -> ServiceError {
        ServiceError { source: Some(source.into()), ..ServiceError::from(code) }
    }

    /// The same error, attributed to one operation of a batch.
    pub fn of_operation(self, index: usize) -> ServiceError {
        ServiceError { operation: Some(index), ..self }
    }

    pub fn message(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.code.message())
    }

    /// A payload that the service cannot read.
    pub(crate) fn unreadable_payload() -> ServiceError {
        ServiceError::with_detail(ErrorCode::InvalidInput, "An error occurred while processing this request.")
    }
}

impl From<ErrorCode> for ServiceError {
    fn from(code: ErrorCode) -> ServiceError {
        ServiceError { code, detail: None, operation: None, source: None }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message())
    }
}

impl std::error::Error for ServiceError {}
