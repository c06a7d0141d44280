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

    // A code of our own: no live service has it.
    ScanRefused                    400 "The query is a scan, and this server refuses scans."

    // Used by the Queue service only.
    InvalidMarker                  400 "The specified marker is invalid."
    MessageNotFound                404 "The specified message does not exist."
    MessageTooLarge                400 "The message exceeds the maximum allowed size."
    PopReceiptMismatch             400 "The specified pop receipt did not match the pop receipt for a dequeued message."
    QueueAlreadyExists             409 "The specified queue already exists."
    QueueBeingDeleted              409 "The specified queue is being deleted."
    QueueDisabled                  409 "The specified queue has been disabled by the administrator."
    QueueNotEmpty                  409 "The specified queue is not empty."
    QueueNotFound                  404 "The specified queue does not exist."

    // Common to the storage services.
    AccountIsDisabled              403 "The specified account is disabled."
    AuthenticationFailed           403 "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure           403 "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch 403 "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch  403 "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch 403 "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch   403 "This request is not authorized to perform this operation using this service."
    // The code that raises this one adds the address to the message.
    AuthorizationSourceIPMismatch  403 "This request is not authorized to perform this operation using this source IP."
    CorsPreflightFailure           403 "CORS not enabled or no matching rule found for this request."
    EmptyMetadataKey               400 "The key for one of the metadata key-value pairs is empty."
    InsufficientAccountPermissions 403 "The account being accessed does not have sufficient permissions to execute this operation."
    // Only the Table service words it so: see `xml_error`.
    InternalError                  500 "Server encountered an internal error. Please try again after some time."
    InvalidAuthenticationInfo      400 "Authentication information is not given in the correct format. Check the value of Authorization header."
    // On the wire this is `InvalidAuthenticationInfo` too: 401 for a token that does not validate, 400 for a header
    // that cannot be read.
    InvalidBearerToken as "InvalidAuthenticationInfo" 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    InvalidHeaderValue             400 "The value for one of the HTTP headers is not in the correct format."
    InvalidHttpVerb                400 "The HTTP verb specified is invalid."
    InvalidMd5                     400 "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    InvalidMetadata                400 "The metadata specified is invalid. It has characters that are not permitted."
    InvalidQueryParameterValue     400 "Value for one of the query parameters specified in the request URI is invalid."
    InvalidResourceName            400 "The specifed resource name contains invalid characters."
    InvalidUri                     400 "The requested URI does not represent any resource on the server."
    InvalidXmlDocument             400 "XML specified is not syntactically valid."
    InvalidXmlNodeValue            400 "The value for one of the XML nodes is not in the correct format."
    Md5Mismatch                    400 "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    MetadataTooLarge               400 "The metadata specified exceeds the maximum permissible limit."
    MissingContentLengthHeader     411 "The Content-Length header was not specified."
    MissingRequiredHeader          400 "An HTTP header that's mandatory for this request is not specified."
    MissingRequiredQueryParameter  400 "A query parameter that's mandatory for this request is not specified."
    MissingRequiredXmlNode         400 "A required XML node was not specified in the request body."
    NoAuthenticationInformation    401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    OperationTimedOut              500 "Operation could not be completed within the specified time."
    OutOfRangeQueryParameterValue  400 "One of the query parameters specified in the request URI is outside the permissible range."
    RequestBodyTooLarge            413 "The request body is too large and exceeds the maximum permissible limit."
    RequestUrlFailedToParse        400 "The url in the request could not be parsed."
    ServerBusy                     503 "The server is busy."
    UnsupportedHeader              400 "One of the HTTP headers specified in the request is not supported."
    UnsupportedHttpVerb            405 "The resource doesn't support specified Http Verb."
    UnsupportedQueryParameter      400 "One of the query parameters specified in the request URI is not supported."
    UnsupportedXmlNode             400 "One of the XML nodes specified in the request body is not supported."
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
    /// What an XML body says beside the message. Most errors have nothing to add.
    elements: Option<Box<Elements>>,
    pub source: Option<Source>,
}

/// Names and values, in the order in which they are written.
#[derive(Debug, Default)]
struct Elements(Vec<(&'static str, Cow<'static, str>)>);

/// A message or an element may quote the request. No text of the services is nearly as long.
const TEXT_BYTES_MAX: usize = 2048;

/// The beginning of a text, no longer than an answer may repeat.
pub fn bounded(text: &str) -> &str {
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

impl ServiceError {
    pub fn with_detail(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> ServiceError {
        ServiceError { detail: Some(detail.into()), ..ServiceError::from(code) }
    }

    pub fn with_source(code: ErrorCode, source: impl Into<Source>) -> ServiceError {
        ServiceError { source: Some(source.into()), ..ServiceError::from(code) }
    }

    /// The same error with one more element beside its message. A long value is cut.
    pub fn with_element(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> ServiceError {
        let value = match value.into() {
            Cow::Owned(value) => Cow::Owned(bounded(&value).to_owned()),
            value => value,
        };
        self.elements.get_or_insert_default().0.push((name, value));
        self
    }

    /// A refusal of credentials that tells people why. Services whose errors have no such element leave it out.
    pub fn failed_authentication(why: impl Into<Cow<'static, str>>) -> ServiceError {
        ServiceError::from(ErrorCode::AuthenticationFailed).with_element("AuthenticationErrorDetail", why)
    }

    /// The names and values beside the message.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = (&'static str, &str)> {
        let elements = self.elements.as_ref().map_or(&[][..], |elements| &elements.0);
        elements.iter().map(|(name, value)| (*name, &**value))
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
        ServiceError { code, detail: None, operation: None, elements: None, source: None }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message())
    }
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_order_and_long_values_are_cut() {
        let error = ServiceError::from(ErrorCode::InvalidHeaderValue)
            .with_element("HeaderName", "x-ms-version")
            .with_element("HeaderValue", "\u{e4}".repeat(TEXT_BYTES_MAX));
        let cut = "\u{e4}".repeat(TEXT_BYTES_MAX / 2);
        let elements: Vec<_> = error.elements().collect();
        assert_eq!(elements, [("HeaderName", "x-ms-version"), ("HeaderValue", &*cut)]);
        assert_eq!(ServiceError::from(ErrorCode::ServerBusy).elements().len(), 0);
    }
}
