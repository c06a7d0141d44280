//! `QueueOperation`: one REST call, read from the method, the path, and the parameters that change its meaning.
//!
//! Names of queues and ids of messages are not checked yet, because a caller without permission is refused first. Leaves
//! to others: the other parameters (`parameters`), and payloads (`message_text`).

use std::borrow::Cow;

use crate::common::percent::percent_decode;
use crate::common::query::{Query, invalid_parameter, text};
use crate::service::ServiceOperation;
use crate::{ErrorCode, ServiceError};

use super::versions;

#[derive(Clone, PartialEq, Debug)]
pub enum QueueOperation<'a> {
    /// Service properties and statistics.
    Service(ServiceOperation),
    ListQueues,
    Queue {
        queue: Cow<'a, str>,
        action: QueueAction,
    },
    Messages {
        queue: Cow<'a, str>,
        action: MessagesAction,
    },
    Message {
        queue: Cow<'a, str>,
        id: Cow<'a, str>,
        action: MessageAction,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueAction {
    Create,
    Delete,
    GetMetadata,
    SetMetadata,
    GetAcl,
    SetAcl,
}

/// Something to do with the messages of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessagesAction {
    Put,
    Get,
    Peek,
    Clear,
}

/// Something to do with one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageAction {
    Update,
    Delete,
}

/// The segment that follows the queue's name.
const MESSAGES: &str = "messages";

impl<'a> QueueOperation<'a> {
    /// `path` is the path within the account, without its leading slash. The query's names are in lower case.
    pub fn read(
        method: &str,
        path: &'a str,
        query: &Query<'_>,
        version: &str,
    ) -> Result<QueueOperation<'a>, ServiceError> {
        if !matches!(method, "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "MERGE" | "PATCH" | "OPTIONS") {
            return Err(ErrorCode::InvalidHttpVerb.into());
        }
        let comp = text(query, "comp")?;
        let comp = comp.as_deref().unwrap_or_default();
        if path.is_empty() {
            return read_root(method, query, comp);
        }
        let mut segments = path.split('/').map(segment);
        let queue = segments.next().unwrap_or_else(|| Err(ErrorCode::InvalidUri.into()))?;
        let messages = segments.next().transpose()?;
        let id = segments.next().transpose()?;
        if segments.next().is_some() || messages.as_deref().is_some_and(|segment| segment != MESSAGES) {
            return Err(ErrorCode::InvalidUri.into());
        }
        if messages.is_none() {
            return Ok(QueueOperation::Queue { queue, action: queue_action(method, comp, version)? });
        }
        if !comp.is_empty() {
            return Err(invalid_parameter("comp", comp, ""));
        }
        match id {
            None => Ok(QueueOperation::Messages { queue, action: messages_action(method, query)? }),
            Some(id) => Ok(QueueOperation::Message { queue, id, action: message_action(method, version)? }),
        }
    }

    /// Whether it changes something, and so is refused by the secondary. Get Messages hides what it returns.
    pub fn is_write(&self) -> bool {
        match self {
            QueueOperation::Service(operation) => *operation == ServiceOperation::SetProperties,
            QueueOperation::ListQueues => false,
            QueueOperation::Queue { action, .. } => {
                !matches!(action, QueueAction::GetMetadata | QueueAction::GetAcl)
            }
            QueueOperation::Messages { action, .. } => *action != MessagesAction::Peek,
            QueueOperation::Message { .. } => true,
        }
    }
}

fn read_root<'a>(method: &str, query: &Query<'_>, comp: &str) -> Result<QueueOperation<'a>, ServiceError> {
    if let Some(restype) = text(query, "restype")? {
        if !restype.eq_ignore_ascii_case("service") {
            return Err(invalid_parameter("restype", &restype, ""));
        }
        return ServiceOperation::read(method, &comp.to_ascii_lowercase()).map(QueueOperation::Service);
    }
    if comp.is_empty() {
        return Err(ErrorCode::InvalidUri.into());
    }
    if !comp.eq_ignore_ascii_case("list") {
        return Err(invalid_parameter("comp", comp, ""));
    }
    if method == "GET" { Ok(QueueOperation::ListQueues) } else { Err(ErrorCode::UnsupportedHttpVerb.into()) }
}

fn queue_action(method: &str, comp: &str, version: &str) -> Result<QueueAction, ServiceError> {
    let is_comp = |name: &str| comp.eq_ignore_ascii_case(name);
    let (get, put, delete) = if comp.is_empty() {
        (None, Some(QueueAction::Create), Some(QueueAction::Delete))
    } else if is_comp("metadata") {
        (Some(QueueAction::GetMetadata), Some(QueueAction::SetMetadata), None)
    } else if is_comp("acl") && version >= versions::ACL {
        (Some(QueueAction::GetAcl), Some(QueueAction::SetAcl), None)
    } else {
        return Err(invalid_parameter("comp", comp, ""));
    };
    let action = match method {
        // The body of the answer is left out later.
        "GET" | "HEAD" => get,
        "PUT" => put,
        "DELETE" => delete,
        _ => None,
    };
    action.ok_or_else(|| ErrorCode::UnsupportedHttpVerb.into())
}

fn messages_action(method: &str, query: &Query<'_>) -> Result<MessagesAction, ServiceError> {
    match method {
        "POST" => Ok(MessagesAction::Put),
        "DELETE" => Ok(MessagesAction::Clear),
        "GET" => match text(query, "peekonly")? {
            None => Ok(MessagesAction::Get),
            Some(value) if value.eq_ignore_ascii_case("false") => Ok(MessagesAction::Get),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(MessagesAction::Peek),
            Some(value) => Err(invalid_parameter("peekonly", &value, "")),
        },
        _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
    }
}

fn message_action(method: &str, version: &str) -> Result<MessageAction, ServiceError> {
    match method {
        "PUT" if version >= versions::UPDATE_MESSAGE => Ok(MessageAction::Update),
        "DELETE" => Ok(MessageAction::Delete),
        _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
    }
}

fn segment(raw: &str) -> Result<Cow<'_, str>, ServiceError> {
    let decoded = percent_decode(raw).filter(|segment| !segment.is_empty());
    decoded.ok_or_else(|| ErrorCode::InvalidUri.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(operation: &QueueOperation<'_>) -> String {
        match operation {
            QueueOperation::Service(operation) => format!("{operation:?}"),
            QueueOperation::ListQueues => "ListQueues".to_owned(),
            QueueOperation::Queue { queue, action } => format!("{action:?} {queue}"),
            QueueOperation::Messages { queue, action } => format!("{action:?}Messages {queue}"),
            QueueOperation::Message { queue, id, action } => format!("{action:?} {queue} {id}"),
        }
    }

    #[track_caller]
    fn check_at(version: &str, method: &str, url: &str, expected: Result<&str, ErrorCode>) {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let query = Query::split(query).with_lower_names();
        let operation = QueueOperation::read(method, path, &query, version);
        let found = operation.as_ref().map(shown).map_err(|error| error.code);
        assert_eq!(found.as_deref().map_err(|code| *code), expected, "{method} {url}");
    }

    #[track_caller]
    fn check(method: &str, url: &str, expected: Result<&str, ErrorCode>) {
        check_at("2025-11-05", method, url, expected);
    }

    #[test]
    fn the_dispatch_table_is_complete() {
        check("GET", "?comp=list", Ok("ListQueues"));
        check("GET", "?restype=service&comp=properties", Ok("GetProperties"));
        check("PUT", "?restype=service&comp=properties", Ok("SetProperties"));
        check("GET", "?restype=service&comp=stats", Ok("GetStats"));
        check("PUT", "abc", Ok("Create abc"));
        check("DELETE", "abc?timeout=3", Ok("Delete abc"));
        for method in ["GET", "HEAD"] {
            check(method, "abc?comp=metadata", Ok("GetMetadata abc"));
            check(method, "abc?comp=acl", Ok("GetAcl abc"));
        }
        check("PUT", "abc?comp=metadata", Ok("SetMetadata abc"));
        check("PUT", "abc?comp=acl", Ok("SetAcl abc"));
        check("POST", "abc/messages", Ok("PutMessages abc"));
        check("GET", "abc/messages", Ok("GetMessages abc"));
        check("GET", "abc/messages?peekonly=false", Ok("GetMessages abc"));
        check("GET", "abc/messages?peekonly=true", Ok("PeekMessages abc"));
        check("DELETE", "abc/messages", Ok("ClearMessages abc"));
        check("PUT", "abc/messages/1-2?popreceipt=x", Ok("Update abc 1-2"));
        check("DELETE", "abc/messages/1-2?popreceipt=x", Ok("Delete abc 1-2"));
    }

    #[test]
    fn names_of_parameters_and_their_keywords_have_no_case() {
        check("GET", "?Comp=List", Ok("ListQueues"));
        check("GET", "?RESTYPE=Service&COMP=Properties", Ok("GetProperties"));
        check("GET", "a%62c/messages?PeekOnly=True", Ok("PeekMessages abc"));
        check("GET", "abc?COMP=Metadata", Ok("GetMetadata abc"));
    }

    #[test]
    fn other_verbs_are_refused() {
        for (method, url) in [
            ("POST", "?comp=list"),
            ("HEAD", "?comp=list"),
            ("DELETE", "?restype=service&comp=properties"),
            ("GET", "abc"),
            ("POST", "abc"),
            ("DELETE", "abc?comp=metadata"),
            ("POST", "abc?comp=acl"),
            ("PUT", "abc/messages"),
            ("HEAD", "abc/messages"),
            ("GET", "abc/messages/1"),
            ("POST", "abc/messages/1"),
            ("MERGE", "abc"),
        ] {
            check(method, url, Err(ErrorCode::UnsupportedHttpVerb));
        }
        check("BREW", "abc", Err(ErrorCode::InvalidHttpVerb));
    }

    #[test]
    fn unknown_resources_and_components_are_refused() {
        // An empty id must not turn the deletion of a message into that of all messages.
        for url in
            ["", "abc/", "/abc", "abc/other", "abc/messages/", "abc/messages/1/2", "%zz", "abc/Messages"]
        {
            check("DELETE", url, Err(ErrorCode::InvalidUri));
        }
        for url in [
            "?comp=x",
            "?comp=properties",
            "?restype=service&comp=list",
            "?restype=service",
            "?restype=container&comp=list",
            "abc?comp=list",
            "abc?comp=%zz",
            "abc/messages?comp=metadata",
            "abc/messages?peekonly=1",
        ] {
            check("GET", url, Err(ErrorCode::InvalidQueryParameterValue));
        }
        let error = QueueOperation::read("GET", "", &Query::split("comp=%78"), "2025-11-05").unwrap_err();
        let elements: Vec<_> = error.elements().collect();
        assert_eq!(elements, [("QueryParameterName", "comp"), ("QueryParameterValue", "x"), ("Reason", "")]);
    }

    #[test]
    fn old_versions_lack_some_operations() {
        check_at("2009-09-19", "PUT", "abc/messages/1", Err(ErrorCode::UnsupportedHttpVerb));
        check_at("2011-08-18", "PUT", "abc/messages/1", Ok("Update abc 1"));
        check_at("2011-08-18", "GET", "abc?comp=acl", Err(ErrorCode::InvalidQueryParameterValue));
        check_at("2012-02-12", "GET", "abc?comp=acl", Ok("GetAcl abc"));
    }

    #[test]
    fn taking_messages_is_a_write() {
        let is_write = |method: &str, url: &str| {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            QueueOperation::read(method, path, &Query::split(query), "2025-11-05").unwrap().is_write()
        };
        for url in ["?comp=list", "abc?comp=acl", "abc?comp=metadata", "abc/messages?peekonly=true"] {
            assert!(!is_write("GET", url), "{url}");
        }
        assert!(!is_write("GET", "?restype=service&comp=stats"));
        assert!(is_write("GET", "abc/messages"));
        assert!(is_write("PUT", "?restype=service&comp=properties"));
        for url in ["abc", "abc/messages", "abc/messages/1"] {
            assert!(is_write("DELETE", url), "{url}");
        }
    }
}
