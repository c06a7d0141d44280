//! Everything that can go wrong, in one type.
//!
//! Owns: [`Error`] and its parts, and reading the refusal that a service answers with: JSON, XML, or no body at all.
//! Promises: no text of an error holds a key, a signature or a token. Whatever a server sends becomes a value.
//! Leaves to others: whether an operation is sent again (`retry`), and which entity a refusal is about.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, StatusCode};
use protocol::common::headers::{X_MS_ERROR_CODE, X_MS_REQUEST_ID};

use crate::encryption::EncryptionError;
use crate::{FilterError, Keys, TransportError};

/// A refusal's code and message are cut after this many bytes: they are for people, and a proxy may answer with a page.
const TEXT_BYTES_MAX: usize = 4096;

/// An entity that cannot be stored, or a row that is not such an entity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityError {
    /// The property at fault; empty when it is the whole entity.
    pub property: Cow<'static, str>,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for EntityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.property {
            "" => f.write_str(&self.reason),
            property => write!(f, "property {property}: {}", self.reason),
        }
    }
}

impl std::error::Error for EntityError {}

/// What the service said when it refused an operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ServiceFailure {
    /// The status of the answer.
    pub status: StatusCode,
    /// The service's code, for example `EntityAlreadyExists`; empty when the answer names none.
    pub code: String,
    /// The service's message, without the request id and the time that some services append.
    pub message: String,
    /// The id under which the service logged the request, for a support case.
    pub request_id: Option<String>,
    /// Which operation of a transaction was refused, counted from zero.
    pub operation_index: Option<usize>,
    /// The entity that was refused, where the client knows it.
    pub keys: Option<Keys<'static>>,
    /// Whether an earlier attempt may have reached the service too. If so, "already exists" or "not found" may be the
    /// work of this very call, and its outcome is unknown ([`Error::is_outcome_unknown`]).
    pub was_repeated: bool,
}

impl ServiceFailure {
    /// Reads the refusal in an answer. Any body will do.
    pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceFailure {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (code, message) = read_json(body).or_else(|| read_xml(body)).unwrap_or_default();
        let code = header(X_MS_ERROR_CODE).map_or(code, str::to_owned);
        ServiceFailure {
            status,
            code: bounded(code.trim()).to_owned(),
            message: bounded(without_trailer(&message)).to_owned(),
            request_id: header(X_MS_REQUEST_ID).map(str::to_owned).or_else(|| trailing_id(&message)),
            ..ServiceFailure::default()
        }
    }
}

impl fmt::Display for ServiceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.operation_index {
            write!(f, "operation {index}")?;
            if let Some(keys) = &self.keys {
                write!(f, " ({:?}, {:?})", keys.partition_key, keys.row_key)?;
            }
            f.write_str(": ")?;
        } else if let Some(keys) = &self.keys {
            write!(f, "entity ({:?}, {:?}): ", keys.partition_key, keys.row_key)?;
        }
        write!(f, "{}", self.status.as_u16())?;
        if !self.code.is_empty() {
            write!(f, " {}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if let Some(id) = &self.request_id {
            write!(f, " (request {id})")?;
        }
        Ok(())
    }
}

/// Why an operation failed.
///
/// ```
/// use lazulite_client::Error;
///
/// fn is_worth_a_page(error: &Error) -> bool {
///     !error.is_not_found() && error.code() != Some("ServerBusy")
/// }
/// assert!(is_worth_a_page(&Error::Timeout));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The service answered, and refused.
    Service(Box<ServiceFailure>),
    /// No answer came.
    Transport(TransportError),
    /// No answer came in time, whichever bound was reached: that of one attempt or that of all attempts together.
    Timeout,
    /// An entity could not be written, or an answer's row could not be read as one.
    Entity(EntityError),
    /// The client refused before it sent anything.
    Refused(String),
    /// The answer does not follow the protocol. It said that the service did what it was asked, so a write happened.
    Unreadable(String),
    /// A connection string, an endpoint or a credential that cannot be used. Never quotes a secret.
    Configuration(String),
    /// A property could not be sealed, or a sealed one could not be opened.
    Encryption(EncryptionError),
}

impl Error {
    /// The status of the service's refusal.
    pub fn status(&self) -> Option<StatusCode> {
        self.failure().map(|failure| failure.status)
    }

    /// The service's code, for example `TableNotFound`.
    pub fn code(&self) -> Option<&str> {
        self.failure().map(|failure| failure.code.as_str()).filter(|code| !code.is_empty())
    }

    /// What the service said, if it answered.
    pub fn failure(&self) -> Option<&ServiceFailure> {
        match self {
            Error::Service(failure) => Some(failure),
            _ => None,
        }
    }

    /// 404: the table, queue, entity or message does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    /// 409: it exists already, or it is being deleted.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }

    /// 412: the ETag is no longer the current one.
    pub fn is_precondition_failed(&self) -> bool {
        self.status() == Some(StatusCode::PRECONDITION_FAILED)
    }

    /// Whether the service may have done what was asked although this error came back: an answer was lost, that of this
    /// attempt or of an earlier one, the server failed, or what it answered to a success could not be read.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            // An answer is read only when it says that the service did what it was asked.
            Error::Timeout | Error::Unreadable(_) => true,
            Error::Transport(error) => !error.is_unsent,
            Error::Service(failure) => {
                failure.was_repeated
                    || failure.status.is_server_error() && !refuses_before_work(failure.status, &failure.code)
            }
            Error::Entity(_) | Error::Refused(_) | Error::Configuration(_) | Error::Encryption(_) => false,
        }
    }
}

impl Error {
    /// What a caller must hear when an attempt before the one that failed so may have happened: whatever the last one
    /// says, the outcome is unknown.
    pub(crate) fn after_lost_answer(self) -> Error {
        match self {
            Error::Service(mut failure) => {
                failure.was_repeated = true;
                Error::Service(failure)
            }
            Error::Transport(error) => Error::Transport(TransportError { is_unsent: false, ..error }),
            Error::Timeout | Error::Unreadable(_) => self,
            other => Error::Transport(TransportError::lost(other)),
        }
    }
}

/// Whether a service answers so only before it begins the work: it throttles.
pub(crate) fn refuses_before_work(status: StatusCode, code: &str) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => code == "ServerBusy",
        _ => false,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Service(failure) => write!(f, "the service refused: {failure}"),
            Error::Transport(error) => error.fmt(f),
            Error::Timeout => f.write_str("no answer in time"),
            Error::Entity(error) => write!(f, "entity: {error}"),
            Error::Refused(reason) => f.write_str(reason),
            Error::Unreadable(reason) => write!(f, "the answer is not of this protocol: {reason}"),
            Error::Configuration(reason) => write!(f, "configuration: {reason}"),
            Error::Encryption(error) => write!(f, "encryption: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Transport(error) => Some(error),
            Error::Entity(error) => Some(error),
            Error::Encryption(error) => Some(error),
            _ => None,
        }
    }
}

impl From<EntityError> for Error {
    fn from(error: EntityError) -> Error {
        Error::Entity(error)
    }
}

/// A filter that cannot be written is refused before anything is sent.
impl From<FilterError> for Error {
    fn from(error: FilterError) -> Error {
        Error::Refused(error.to_string())
    }
}

impl From<EncryptionError> for Error {
    fn from(error: EncryptionError) -> Error {
        Error::Encryption(error)
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Error {
        Error::Transport(error)
    }
}

impl From<ServiceFailure> for Error {
    fn from(failure: ServiceFailure) -> Error {
        Error::Service(Box::new(failure))
    }
}

/// `{"odata.error":{"code":…,"message":{"value":…}}}`. Cosmos DB and others leave out `odata.`, or give the message as
/// a plain text.
fn read_json(body: &[u8]) -> Option<(String, String)> {
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    let error = document.get("odata.error").or_else(|| document.get("error")).unwrap_or(&document);
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let code = error.get("code").and_then(text);
    let message = error.get("message").and_then(|message| text(message.get("value").unwrap_or(message)));
    (code.is_some() || message.is_some()).then(|| (code.unwrap_or_default(), message.unwrap_or_default()))
}

/// `<Error><Code>…</Code><Message>…</Message>…</Error>`, or with a lower-case `error`, as some failures of the front
/// ends have it.
fn read_xml(body: &[u8]) -> Option<(String, String)> {
    let root = ["Error", "error"].iter().find_map(|name| protocol::common::xml::read(body, name).ok())?;
    let text = |name: &str| {
        let field = root.children.iter().find(|child| child.name.eq_ignore_ascii_case(name));
        field.map(|field| field.text.clone()).unwrap_or_default()
    };
    Some((text("Code"), text("Message")))
}

/// The message without the lines `RequestId:…` and `Time:…` that the services append.
fn without_trailer(message: &str) -> &str {
    let end =
        message.find("\nRequestId:").or_else(|| message.find("\r\nRequestId:")).unwrap_or(message.len());
    message[..end].trim()
}

fn trailing_id(message: &str) -> Option<String> {
    let (_, after) = message.split_once("\nRequestId:")?;
    let id = after.lines().next().unwrap_or_default().trim();
    (!id.is_empty()).then(|| bounded(id).to_owned())
}

/// The beginning of a text, at a boundary of characters.
fn bounded(text: &str) -> &str {
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, headers: &[(&'static str, &str)]) -> ServiceFailure {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        ServiceFailure::read(StatusCode::CONFLICT, &map, body.as_bytes())
    }

    #[track_caller]
    fn check(body: &str, code: &str, message: &str, request_id: Option<&str>) {
        let failure = read(body, &[]);
        assert_eq!((failure.code.as_str(), failure.message.as_str()), (code, message), "{body}");
        assert_eq!(failure.request_id.as_deref(), request_id, "{body}");
    }

    #[test]
    fn refusals_are_read_in_every_form() {
        check(
            r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"It exists.\nRequestId:7-8\nTime:2021-09-21T00:50:21.07Z"}}}"#,
            "EntityAlreadyExists",
            "It exists.",
            Some("7-8"),
        );
        check(r#"{"error":{"code":"X","message":"plain"}}"#, "X", "plain", None);
        check(r#"{"code":"Conflict","message":"cosmos"}"#, "Conflict", "cosmos", None);
        check(
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>QueueNotFound</Code><Message>No queue.\nRequestId:abc\nTime:now</Message><Extra><X>1</X></Extra></Error>",
            "QueueNotFound",
            "No queue.",
            Some("abc"),
        );
        check(
            r#"<m:error xmlns:m="http://schemas.microsoft.com/ado"><m:code>A</m:code><m:message xml:lang="en">B</m:message></m:error>"#,
            "A",
            "B",
            None,
        );
        for nothing in
            ["", "<html>Bad Gateway</html>", "{", "[]", "17", "\u{0}", "<Error>", "{\"odata.error\":3}"]
        {
            check(nothing, "", "", None);
        }
    }

    #[test]
    fn headers_count_more_than_the_body() {
        let failure = read("", &[("x-ms-error-code", "TableBeingDeleted"), ("x-ms-request-id", "id")]);
        assert_eq!((failure.code.as_str(), failure.request_id.as_deref()), ("TableBeingDeleted", Some("id")));
        assert_eq!(failure.to_string(), "409 TableBeingDeleted (request id)");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let failure = read(&format!(r#"{{"code":"{0}","message":"{0}"}}"#, "ä".repeat(TEXT_BYTES_MAX)), &[]);
        assert_eq!((failure.code.len(), failure.message.len()), (TEXT_BYTES_MAX, TEXT_BYTES_MAX));
    }

    #[test]
    fn errors_say_which_entity() {
        let keys = Keys { partition_key: "p".into(), row_key: "r".into() };
        let failure = ServiceFailure {
            status: StatusCode::PRECONDITION_FAILED,
            code: "UpdateConditionNotSatisfied".to_owned(),
            operation_index: Some(3),
            keys: Some(keys),
            ..ServiceFailure::default()
        };
        let error = Error::from(failure);
        assert!(error.is_precondition_failed() && !error.is_outcome_unknown());
        assert_eq!(
            error.to_string(),
            "the service refused: operation 3 (\"p\", \"r\"): 412 UpdateConditionNotSatisfied"
        );
    }
}
