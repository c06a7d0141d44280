//! What a call is named in traces: the service's own name of the operation, told from its method and path, so that no
//! caller has to repeat it and no key or name of a table reaches a log.

use http::Method;
use protocol::auth::{ServiceKind, SharedKeyForm};

use crate::pipeline::Call;

/// `GetEntity`, `PutMessage`, …; the method alone for what is none of the service's operations.
pub(crate) fn operation_name<'a>(kind: &ServiceKind, call: &'a Call) -> &'a str {
    let comp = call.query.iter().find(|(name, _)| *name == "comp").map_or("", |(_, value)| value.as_str());
    let name = match (call.path.is_empty(), comp) {
        (true, "properties") if call.method == Method::PUT => Some("SetServiceProperties"),
        (true, "properties") => Some("GetServiceProperties"),
        (true, "stats") => Some("GetServiceStats"),
        _ if kind.shared_key == SharedKeyForm::Short => table_operation(&call.method, &call.path, comp),
        _ => queue_operation(call, comp),
    };
    name.unwrap_or(call.method.as_str())
}

fn table_operation(method: &Method, path: &str, comp: &str) -> Option<&'static str> {
    let name = match (method.as_str(), path, comp) {
        ("PUT", _, "acl") => "SetTableAcl",
        (_, _, "acl") => "GetTableAcl",
        ("POST", "$batch", _) => "EntityGroupTransaction",
        ("POST", "Tables", _) => "CreateTable",
        ("GET", "Tables", _) => "QueryTables",
        ("DELETE", path, _) if path.starts_with("Tables(") => "DeleteTable",
        ("GET", path, _) if is_entity(path) => "GetEntity",
        ("GET", ..) => "QueryEntities",
        ("POST", ..) => "InsertEntity",
        ("PUT", ..) => "ReplaceEntity",
        ("MERGE" | "PATCH", ..) => "MergeEntity",
        ("DELETE", ..) => "DeleteEntity",
        _ => return None,
    };
    Some(name)
}

/// Whether keys stand between the parentheses.
fn is_entity(path: &str) -> bool {
    path.ends_with(')') && !path.ends_with("()")
}

fn queue_operation(call: &Call, comp: &str) -> Option<&'static str> {
    let mut segments = call.path.split('/').filter(|segment| !segment.is_empty()).skip(1);
    let (is_messages, is_message) = (segments.next().is_some(), segments.next().is_some());
    let name = match (call.method.as_str(), is_messages, is_message, comp) {
        ("GET", false, _, "list") => "ListQueues",
        ("PUT", false, _, "acl") => "SetQueueAcl",
        ("GET" | "HEAD", false, _, "acl") => "GetQueueAcl",
        ("PUT", false, _, "metadata") => "SetQueueMetadata",
        ("GET" | "HEAD", false, _, "metadata") => "GetQueueMetadata",
        ("PUT", false, ..) => "CreateQueue",
        ("DELETE", false, ..) => "DeleteQueue",
        ("POST", true, false, _) => "PutMessage",
        ("GET", true, false, _) if call.query.iter().any(|(name, _)| *name == "peekonly") => "PeekMessages",
        ("GET", true, false, _) => "GetMessages",
        ("DELETE", true, false, _) => "ClearMessages",
        ("PUT", true, true, _) => "UpdateMessage",
        ("DELETE", true, true, _) => "DeleteMessage",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Repeat;

    #[test]
    fn every_operation_has_the_name_that_the_service_gives_it() {
        let check = |kind: &ServiceKind, request: &str, expected: &str| {
            let (method, target) = request.split_once(' ').unwrap();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let mut call = Call::new(method.parse().unwrap(), path, Repeat::Freely);
            for (name, value) in
                [("comp", query.strip_prefix("comp=")), ("peekonly", query.strip_prefix("peekonly="))]
            {
                call.query.extend(value.map(|value| (name, value.to_owned())));
            }
            assert_eq!(operation_name(kind, &call), expected, "{request}");
        };
        let tables = &protocol::table::KIND;
        check(tables, "GET ?comp=properties", "GetServiceProperties");
        check(tables, "PUT ?comp=properties", "SetServiceProperties");
        check(tables, "GET ?comp=stats", "GetServiceStats");
        check(tables, "GET Tables", "QueryTables");
        check(tables, "POST Tables", "CreateTable");
        check(tables, "DELETE Tables('people')", "DeleteTable");
        check(tables, "GET people?comp=acl", "GetTableAcl");
        check(tables, "PUT people?comp=acl", "SetTableAcl");
        check(tables, "POST $batch", "EntityGroupTransaction");
        check(tables, "GET people()", "QueryEntities");
        check(tables, "GET people", "QueryEntities");
        check(tables, "GET people(PartitionKey='a',RowKey='b')", "GetEntity");
        check(tables, "POST people", "InsertEntity");
        check(tables, "PUT people(PartitionKey='a',RowKey='b')", "ReplaceEntity");
        check(tables, "MERGE people(PartitionKey='a',RowKey='b')", "MergeEntity");
        check(tables, "PATCH people(PartitionKey='a',RowKey='b')", "MergeEntity");
        check(tables, "DELETE people(PartitionKey='a',RowKey='b')", "DeleteEntity");
        check(tables, "OPTIONS people", "OPTIONS");
        let queues = &protocol::queue::KIND;
        check(queues, "GET ?comp=list", "ListQueues");
        check(queues, "GET ?comp=properties", "GetServiceProperties");
        check(queues, "PUT work", "CreateQueue");
        check(queues, "DELETE work", "DeleteQueue");
        check(queues, "GET work?comp=metadata", "GetQueueMetadata");
        check(queues, "PUT work?comp=metadata", "SetQueueMetadata");
        check(queues, "GET work?comp=acl", "GetQueueAcl");
        check(queues, "PUT work?comp=acl", "SetQueueAcl");
        check(queues, "POST work/messages", "PutMessage");
        check(queues, "GET work/messages", "GetMessages");
        check(queues, "GET work/messages?peekonly=true", "PeekMessages");
        check(queues, "DELETE work/messages", "ClearMessages");
        check(queues, "PUT work/messages/1", "UpdateMessage");
        check(queues, "DELETE work/messages/1", "DeleteMessage");
    }
}
