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

    // Used by the Blob service only. Where several entries have one name on the wire, they differ in their status.
    AppendPositionConditionNotMet  412 "The append position condition specified was not met."
    BlobAlreadyExists              409 "The specified blob already exists."
    BlobArchived                   409 "This operation is not permitted on an archived blob."
    BlobBeingRehydrated            409 "This operation is not permitted because the blob is being rehydrated."
    BlobCustomerSpecifiedEncryptionMismatch 409 "The given customer specified encryption does not match the encryption used to encrypt the blob."
    BlobDoesNotUseCustomerSpecifiedEncryption 409 "The blob is not encrypted with customer specified encryption, but it was provided in the request."
    BlobImmutableDueToLegalHold    409 "This operation is not permitted as the blob is immutable due to one or more legal holds."
    BlobImmutableDueToPolicy       409 "This operation is not permitted as the blob is immutable due to a policy."
    BlobIsSealed                   409 "The blob is sealed and its contents cannot be modified."
    BlobNotArchived                409 "This blob is currently not in the archived state."
    BlobNotFound                   404 "The specified blob does not exist."
    BlobOverwritten                409 "The blob has been recreated since the previous snapshot was taken."
    BlobSnapshotNotSoftDeleted     409 "The specified snapshot or version is not soft-deleted."
    BlobTierInadequateForContentLength 409 "Specified blob tier size limit cannot be less than content length."
    BlobUsesCustomerSpecifiedEncryption 409 "The blob is encrypted with customer specified encryption, but it was not provided in the request."
    BlockCountExceedsLimit         409 "The committed block count cannot exceed the maximum limit of 50,000 blocks."
    BlockListTooLong               400 "The block list may not contain more than 50,000 blocks."
    BothCrc64AndMd5HeaderPresent   400 "Both x-ms-content-crc64 header and Content-MD5 header are present."
    BothCrc64AndMd5RangeHeaderPresent 400 "Both x-ms-range-get-content-crc64 header and x-ms-range-get-content-md5 header are present."
    CannotChangeToLowerTier        409 "A higher blob tier has already been explicitly set."
    CannotVerifyCopySource         500 "Could not verify the copy source within the specified time."
    ConditionHeadersNotSupported   400 "Condition headers are not supported."
    ConditionNotMet                412 "The condition specified using HTTP conditional header(s) is not met."
    ConditionNotModified as "ConditionNotMet" 304 "The condition specified using HTTP conditional header(s) is not met."
    ContainerAlreadyExists         409 "The specified container already exists."
    ContainerBeingDeleted          409 "The specified container is being deleted. Try operation later."
    ContainerDisabled              409 "The specified container has been disabled by the administrator."
    ContainerNotFound              404 "The specified container does not exist."
    ContentLengthLargerThanTierLimit 409 "The blob's content length cannot exceed its tier limit."
    CopyAcrossAccountsNotSupported 400 "The copy source account and destination account must be the same."
    CopyIdMismatch                 409 "The specified copy ID did not match the copy ID for the pending copy operation."
    CopySourceConflict as "CannotVerifyCopySource" 409 "Could not verify the copy source within the specified time."
    CopySourceFailed as "CannotVerifyCopySource" 412 "The condition specified using HTTP conditional header(s) is not met."
    CopySourceForbidden as "CannotVerifyCopySource" 403 "Could not verify the copy source within the specified time."
    CopySourceNotFound as "CannotVerifyCopySource" 404 "Could not verify the copy source within the specified time."
    CopySourceNotModified as "CannotVerifyCopySource" 304 "The condition specified using HTTP conditional header(s) is not met."
    CopySourceRefused as "CannotVerifyCopySource" 400 "Could not verify the copy source within the specified time."
    CopySourceUnauthenticated as "CannotVerifyCopySource" 401 "Could not verify the copy source within the specified time."
    Crc64Mismatch                  400 "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    DuplicateTagNames              400 "The tags specified contain duplicate names."
    EmptyTagName                   400 "The name of one of the tag key-value pairs is empty."
    FeatureVersionMismatch         409 "The operation for AppendBlob requires at least version 2015-02-21."
    InfiniteLeaseDurationRequired  412 "The lease ID matched, but the specified lease must be an infinite-duration lease."
    InvalidBlobOrBlock             400 "The specified blob or block content is invalid."
    InvalidBlobTier                400 "The specified blob tier is invalid."
    InvalidBlobType                409 "The blob type is invalid for this operation."
    InvalidBlockId                 400 "The specified block ID is invalid. The block ID must be Base64-encoded."
    InvalidBlockList               400 "The specified block list is invalid."
    InvalidOperation               400 "Invalid operation against a blob snapshot."
    InvalidPageRange               416 "The page range specified is invalid."
    InvalidRange                   416 "The range specified is invalid for the current size of the resource."
    InvalidSourceBlobType          409 "The copy source blob type is invalid for this operation."
    InvalidSourceBlobUrl           409 "The source URL for incremental copy request must be valid Azure Storage blob URL."
    InvalidTags                    400 "The tags specified are invalid. It contains characters that are not permitted."
    LeaseAlreadyBroken             409 "The lease has already been broken and cannot be broken again."
    LeaseAlreadyPresent            409 "There is already a lease present."
    LeaseIdMismatchWithBlobOperation 412 "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMismatchWithContainerOperation 412 "The lease ID specified did not match the lease ID for the container."
    LeaseIdMismatchWithLeaseOperation 409 "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMissing                 412 "There is currently a lease on the blob and no lease ID was specified in the request."
    LeaseIsBreakingAndCannotBeAcquired 409 "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken."
    LeaseIsBreakingAndCannotBeChanged 409 "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed 409 "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseLost                      412 "A lease ID was specified, but the lease for the blob has expired."
    LeaseNotPresentWithBlobOperation 412 "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation 412 "There is currently no lease on the container."
    LeaseNotPresentWithLeaseOperation 409 "There is currently no lease on the blob."
    MaxBlobSizeConditionNotMet     412 "The max blob size condition specified was not met."
    MultipleConditionHeadersNotSupported 400 "Multiple condition headers are not supported."
    NoPendingCopyOperation         409 "There is currently no pending copy operation."
    PendingCopyOperation           409 "There is currently a pending copy operation."
    PreviousSnapshotCannotBeNewer  400 "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    PreviousSnapshotNotFound       409 "The previous snapshot is not found."
    PreviousSnapshotOperationNotSupported 409 "Differential Get Page Ranges is not supported on the previous snapshot."
    PublicAccessNotPermitted       409 "Public access is not permitted on this storage account."
    ResourceTypeMismatch           409 "The specified resource type does not match the type of the existing resource."
    SequenceNumberConditionNotMet  412 "The sequence number condition specified was not met."
    SequenceNumberIncrementTooLarge 409 "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    SnapshotCountExceeded          409 "The snapshot count against this blob has been exceeded."
    SnapshotOperationRateExceeded  409 "The rate of snapshot operations against this blob has been exceeded."
    SnapshotsPresent               409 "This operation is not permitted because the blob has snapshots."
    SourceConditionNotMet          412 "The source condition specified using HTTP conditional header(s) is not met."
    SystemInUse                    409 "This blob is in use by the system."
    TagsTooLarge                   400 "The tags specified exceed the maximum permissible limit."
    TargetConditionNotMet          412 "The target condition specified using HTTP conditional header(s) is not met."
    UnauthorizedBlobOverwrite      403 "This request is not authorized to perform blob overwrites."
    UnsatisfiableCondition         400 "The request includes an unsatisfiable condition for this operation."

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
