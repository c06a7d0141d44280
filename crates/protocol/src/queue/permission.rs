//! The permission that each operation of the Queue service needs.

use crate::auth::{Letters, Level, Need, Permission, ResourceName, RoleSet};

use super::kind::{CONTRIBUTOR, MESSAGE_PROCESSOR, MESSAGE_SENDER, READER};
use super::operation::{MessageAction, MessagesAction, QueueAction, QueueOperation};

/// A contributor may also read.
const READERS: RoleSet = READER.or(CONTRIBUTOR);
const PEEKERS: RoleSet = READERS.or(MESSAGE_PROCESSOR);
const PROCESSORS: RoleSet = MESSAGE_PROCESSOR.or(CONTRIBUTOR);
const SENDERS: RoleSet = MESSAGE_SENDER.or(CONTRIBUTOR);

impl QueueOperation<'_> {
    pub fn need(&self) -> Need<'_> {
        match self {
            QueueOperation::Service(operation) => operation.need(READERS),
            QueueOperation::ListQueues => of_account(Level::Service, &["l"], READERS),
            QueueOperation::Queue { queue, action } => match action {
                QueueAction::Create => of_account(Level::Container, &["c", "w"], CONTRIBUTOR),
                QueueAction::Delete => of_account(Level::Container, &["d"], CONTRIBUTOR),
                QueueAction::GetMetadata => of_queue(Level::Container, queue, &["r"], READERS),
                QueueAction::SetMetadata => of_account(Level::Container, &["w"], CONTRIBUTOR),
                QueueAction::GetAcl | QueueAction::SetAcl => Need::AccountKey,
            },
            QueueOperation::Messages { queue, action } => match action {
                MessagesAction::Put => of_queue(Level::Object, queue, &["a"], SENDERS),
                MessagesAction::Get => of_queue(Level::Object, queue, &["p"], PROCESSORS),
                MessagesAction::Peek => of_queue(Level::Object, queue, &["r"], PEEKERS),
                MessagesAction::Clear => of_account(Level::Object, &["d"], CONTRIBUTOR),
            },
            QueueOperation::Message { queue, action, .. } => match action {
                MessageAction::Update => of_queue(Level::Object, queue, &["u"], CONTRIBUTOR),
                MessageAction::Delete => of_queue(Level::Object, queue, &["p"], PROCESSORS),
            },
        }
    }
}

/// What a signature for a single queue cannot allow.
fn of_account(level: Level, letters: Letters, roles: RoleSet) -> Need<'static> {
    Need::Permission(Permission { level, letters, roles, resource: None, key: None })
}

fn of_queue<'a>(level: Level, queue: &'a str, letters: Letters, roles: RoleSet) -> Need<'a> {
    let resource = Some(ResourceName { container: queue, object: None });
    Need::Permission(Permission { level, letters, roles, resource, key: None })
}

#[cfg(test)]
mod tests {
    use super::super::KIND;
    use super::*;
    use crate::auth::{Grant, KeyBounds, LetterSet};
    use crate::common::query::Query;
    use crate::{ErrorCode, ServiceError};

    /// One line per operation: the request, what an account SAS needs (`srt`, and any one letter of `sp`), what a
    /// service SAS needs, and the roles that are enough. The queue specification, sections 3.4 and 3.5.
    const TABLE: &[(&str, &str, &str, &str, &str)] = &[
        ("GET ?restype=service&comp=properties", "s", "r", "", "RC"),
        ("GET ?restype=service&comp=stats", "s", "r", "", "RC"),
        ("PUT ?restype=service&comp=properties", "s", "w", "", ""),
        ("GET ?comp=list", "s", "l", "", "RC"),
        ("PUT abc", "c", "cw", "", "C"),
        ("DELETE abc", "c", "d", "", "C"),
        ("GET abc?comp=metadata", "c", "r", "r", "RC"),
        ("HEAD abc?comp=metadata", "c", "r", "r", "RC"),
        ("PUT abc?comp=metadata", "c", "w", "", "C"),
        ("GET abc?comp=acl", "", "", "", ""),
        ("PUT abc?comp=acl", "", "", "", ""),
        ("POST abc/messages", "o", "a", "a", "CS"),
        ("GET abc/messages?peekonly=true", "o", "r", "r", "RCP"),
        ("GET abc/messages", "o", "p", "p", "CP"),
        ("DELETE abc/messages", "o", "d", "", "C"),
        ("PUT abc/messages/1", "o", "u", "u", "C"),
        ("DELETE abc/messages/1", "o", "p", "p", "CP"),
    ];
    const LETTERS: &str = "racuwdlp";
    const ROLES: [(char, RoleSet); 4] =
        [('R', READER), ('C', CONTRIBUTOR), ('P', MESSAGE_PROCESSOR), ('S', MESSAGE_SENDER)];

    fn authorize(grant: &Grant, request: &str) -> Result<(), ErrorCode> {
        let (method, url) = request.split_once(' ').unwrap();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let operation = QueueOperation::read(method, path, &Query::split(query), "2025-11-05").unwrap();
        grant.authorize(&KIND, &operation.need()).map_err(|error: ServiceError| error.code)
    }

    fn account_sas(services: &str, types: &str, letters: &str) -> Grant {
        Grant::AccountSas {
            services: LetterSet::parse(services),
            resource_types: LetterSet::parse(types),
            permissions: LetterSet::parse(letters),
        }
    }

    fn service_sas(queue: &str, letters: &str) -> Grant {
        let (resource, permissions) = (queue.into(), LetterSet::parse(letters));
        Grant::ServiceSas { resource, permissions, bounds: KeyBounds::default() }
    }

    #[test]
    fn an_account_sas_needs_the_service_the_level_and_one_letter() {
        for (request, level, any_of, ..) in TABLE {
            if level.is_empty() {
                let all = account_sas("q", "sco", LETTERS);
                assert_eq!(authorize(&all, request), Err(ErrorCode::AuthorizationFailure), "{request}");
                continue;
            }
            for letter in LETTERS.chars() {
                let found = authorize(&account_sas("q", level, &letter.to_string()), request);
                let expected =
                    any_of.contains(letter).then_some(()).ok_or(ErrorCode::AuthorizationPermissionMismatch);
                assert_eq!(found, expected, "{request} {letter}");
            }
            let others: String = "sco".chars().filter(|other| !level.contains(*other)).collect();
            let elsewhere = authorize(&account_sas("q", &others, LETTERS), request);
            assert_eq!(elsewhere, Err(ErrorCode::AuthorizationResourceTypeMismatch), "{request}");
            let foreign = authorize(&account_sas("bt", "sco", LETTERS), request);
            assert_eq!(foreign, Err(ErrorCode::AuthorizationServiceMismatch), "{request}");
        }
    }

    #[test]
    fn a_service_sas_reaches_the_messages_and_the_metadata_of_its_queue() {
        for (request, _, _, needed, _) in TABLE {
            for letter in LETTERS.chars() {
                let found = authorize(&service_sas("abc", &letter.to_string()), request);
                let expected = match needed {
                    &"" => Err(ErrorCode::AuthorizationFailure),
                    needed if needed.contains(letter) => Ok(()),
                    _ => Err(ErrorCode::AuthorizationPermissionMismatch),
                };
                assert_eq!(found, expected, "{request} {letter}");
            }
            let other = authorize(&service_sas("other", LETTERS), request);
            assert_eq!(other, Err(ErrorCode::AuthorizationFailure), "{request}");
        }
    }

    #[test]
    fn roles_allow_what_their_definitions_say() {
        for (request, level, _, _, roles) in TABLE {
            assert_eq!(authorize(&Grant::Everything, request), Ok(()), "{request}");
            for (letter, role) in ROLES {
                let found = authorize(&Grant::Roles(role), request);
                let refusal = match level {
                    &"" => ErrorCode::ResourceNotFound,
                    _ => ErrorCode::AuthorizationPermissionMismatch,
                };
                assert_eq!(found, roles.contains(letter).then_some(()).ok_or(refusal), "{request} {letter}");
            }
        }
    }
}
