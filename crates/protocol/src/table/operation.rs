//! `Operation`: one REST call, read from the method, the resource, and the headers that change its meaning.
//!
//! Promises: the same function reads a whole request and a part of a batch. Leaves payloads to `wire`.

use std::borrow::Cow;

use crate::service::ServiceOperation;
use crate::table::model::{ETag, TableName};
use crate::table::wire::headers::OperationHeaders;
use crate::table::wire::uri::Resource;
use crate::{ErrorCode, ServiceError};

/// Where an entity is.
#[derive(Clone, PartialEq, Debug)]
pub struct Address<'a> {
    pub table: TableName,
    pub partition_key: Cow<'a, str>,
    pub row_key: Cow<'a, str>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Operation<'a> {
    /// Service properties and statistics.
    Service(ServiceOperation),
    /// A table's stored access policies.
    Acl(AclOperation),
    Tables(TableOperation),
    Read(EntityRead<'a>),
    Write(EntityWrite<'a>),
    /// An entity group transaction, or a single query sent as a batch.
    Batch,
    /// A POST to something below a table, such as `/mytable/Tables`. It is always refused, but in different words when
    /// there is no such table.
    PostBelow(TableName),
}

#[derive(Clone, PartialEq, Debug)]
pub enum AclOperation {
    Get(TableName),
    Set(TableName),
}

#[derive(Clone, PartialEq, Debug)]
pub enum TableOperation {
    Query,
    Create,
    Get(TableName),
    Delete(TableName),
}

#[derive(Clone, PartialEq, Debug)]
pub enum EntityRead<'a> {
    Query(TableName),
    Get { address: Address<'a>, if_match: Option<ETag>, if_none_match: Option<ETag> },
}

#[derive(Clone, PartialEq, Debug)]
pub enum EntityWrite<'a> {
    Insert(TableName),
    /// Update Entity, or Insert Or Replace Entity when there is no condition.
    Replace {
        address: Address<'a>,
        condition: Option<ETag>,
    },
    /// Merge Entity, or Insert Or Merge Entity when there is no condition.
    Merge {
        address: Address<'a>,
        condition: Option<ETag>,
    },
    Delete {
        address: Address<'a>,
        condition: ETag,
    },
}

/// The query options that turn a resource into one of the service's XML resources.
#[derive(Clone, Copy, Default, Debug)]
pub struct Component<'a> {
    pub restype: Option<&'a str>,
    pub comp: Option<&'a str>,
}

impl<'a> Operation<'a> {
    /// `account` is used only in error messages.
    pub fn read(
        account: &str,
        method: &str,
        resource: Resource<'a>,
        component: Component<'_>,
        headers: &OperationHeaders<'_>,
    ) -> Result<Operation<'a>, ServiceError> {
        let method = effective_method(method, headers)?;
        if let Some(comp) = component.comp {
            return read_component(method, resource, component.restype, comp);
        }
        match resource {
            Resource::Root => Err(ErrorCode::InvalidUri.into()),
            Resource::Metadata => Err(ErrorCode::NotImplemented.into()),
            Resource::Navigation { table, .. } if method == "POST" => {
                Ok(Operation::PostBelow(addressed_table(&table)?))
            }
            Resource::Navigation { table, keyed: true } if method == "DELETE" => {
                Err(wrong_key_count(account, &table))
            }
            Resource::Navigation { .. } => Err(ErrorCode::NotImplemented.into()),
            Resource::WrongKeyCount { table } => Err(wrong_key_count(account, &table)),
            Resource::Batch => match method {
                "POST" => Ok(Operation::Batch),
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
            Resource::Tables => match method {
                "GET" => Ok(Operation::Tables(TableOperation::Query)),
                "POST" => Ok(Operation::Tables(TableOperation::Create)),
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
            Resource::Table(name) => read_table(method, &name, headers),
            Resource::Entities(name) => match method {
                "GET" => Ok(Operation::Read(EntityRead::Query(addressed_table(&name)?))),
                "POST" => {
                    // An insert has no entity to match yet.
                    if headers.if_match.is_some() || headers.if_none_match.is_some() {
                        return Err(ErrorCode::InvalidInput.into());
                    }
                    Ok(Operation::Write(EntityWrite::Insert(writable(addressed_table(&name)?)?)))
                }
                _ => Err(ErrorCode::MethodNotAllowed.into()),
            },
            Resource::Entity { table, partition_key, row_key } => {
                let address = Address { table: addressed_table(&table)?, partition_key, row_key };
                read_entity(account, method, address, headers)
            }
        }
    }
}

/// Reads the operations on service properties, statistics and access policies.
fn read_component<'a>(
    method: &str,
    resource: Resource<'a>,
    restype: Option<&str>,
    comp: &str,
) -> Result<Operation<'a>, ServiceError> {
    match (resource, restype, comp) {
        (Resource::Root, Some("service"), comp) => {
            ServiceOperation::read(method, comp).map(Operation::Service)
        }
        (Resource::Entities(name), _, "acl") => match method {
            "GET" => Ok(Operation::Acl(AclOperation::Get(addressed_table(&name)?))),
            "PUT" => Ok(Operation::Acl(AclOperation::Set(writable(addressed_table(&name)?)?))),
            _ => Err(ErrorCode::UnsupportedHttpVerb.into()),
        },
        _ => Err(ErrorCode::InvalidQueryParameterValue.into()),
    }
}

/// The method that the request means. Clients that can send only `POST` put the real method into `X-HTTP-Method`.
/// `HEAD` is read as `GET`; its body is left out later.
fn effective_method<'m>(method: &'m str, headers: &OperationHeaders<'m>) -> Result<&'m str, ServiceError> {
    let tunnelled = headers.x_http_method.unwrap_or(method);
    if tunnelled != method && method != "POST" {
        return Err(ErrorCode::XMethodNotUsingPost.into());
    }
    if headers.x_http_method_count > 1 {
        return Err(ErrorCode::XMethodIncorrectCount.into());
    }
    // The Java 8 client sends `X-HTTP-Method: MERGE` together with the verb MERGE: the two agree.
    if tunnelled == method {
        return match method {
            "HEAD" => Ok("GET"),
            "GET" | "POST" | "PUT" | "MERGE" | "PATCH" | "DELETE" | "OPTIONS" => Ok(method),
            _ => Err(ErrorCode::InvalidHttpVerb.into()),
        };
    }
    match tunnelled {
        "MERGE" | "PUT" | "DELETE" | "PATCH" => Ok(tunnelled),
        _ => Err(ErrorCode::XMethodIncorrectValue.into()),
    }
}

fn read_table<'a>(
    method: &str,
    name: &str,
    headers: &OperationHeaders<'_>,
) -> Result<Operation<'a>, ServiceError> {
    if !matches!(method, "GET" | "DELETE") {
        return Err(ErrorCode::MethodNotAllowed.into());
    }
    let name = TableName::parse_addressed(name)?;
    if method == "GET" {
        return Ok(Operation::Tables(TableOperation::Get(name)));
    }
    let name = writable(name)?;
    let has_condition = headers.if_match.is_some_and(|etag| etag != "*") || headers.if_none_match.is_some();
    if has_condition {
        return Err(invalid(
            "If-Match or If-None-Match headers cannot be specified if the target type does not have etag properties defined.",
        ));
    }
    Ok(Operation::Tables(TableOperation::Delete(name)))
}

fn read_entity<'a>(
    account: &str,
    method: &str,
    address: Address<'a>,
    headers: &OperationHeaders<'_>,
) -> Result<Operation<'a>, ServiceError> {
    if !matches!(method, "GET" | "PUT" | "MERGE" | "PATCH" | "DELETE") {
        return Err(ErrorCode::MethodNotAllowed.into());
    }
    if headers.if_match.is_some() && headers.if_none_match.is_some() {
        return Err(invalid(
            "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. \
             Please specify either one of the headers or none of them.",
        ));
    }
    let if_match = headers.if_match.map(ETag::parse).transpose()?;
    if method == "GET" {
        let if_none_match = headers.if_none_match.map(ETag::parse).transpose()?;
        return Ok(Operation::Read(EntityRead::Get { address, if_match, if_none_match }));
    }
    if headers.if_none_match.is_some() {
        let verb = if method == "DELETE" { "DELETE" } else { "PUT" };
        return Err(invalid(format!("If-None-Match HTTP header cannot be specified for {verb} operations.")));
    }
    // Entities of system tables may be deleted, but only the service writes them.
    let address = match method {
        "DELETE" => address,
        _ => Address { table: writable(address.table)?, ..address },
    };
    match method {
        "PUT" => Ok(Operation::Write(EntityWrite::Replace { address, condition: if_match })),
        "DELETE" => match if_match {
            Some(condition) => Ok(Operation::Write(EntityWrite::Delete { address, condition })),
            None => Err(invalid(format!(
                "Since entity type '{account}.{}' has one or more etag properties, If-Match HTTP header must be \
                 specified for DELETE/PUT operations on this type.",
                address.table.as_str()
            ))),
        },
        _ => Ok(Operation::Write(EntityWrite::Merge { address, condition: if_match })),
    }
}

/// The table that a path names. An invalid name is refused with the error that describes it.
fn addressed_table(name: &str) -> Result<TableName, ServiceError> {
    Ok(TableName::parse_addressed(name)?)
}

/// Refuses a table that only the service itself writes.
fn writable(table: TableName) -> Result<TableName, ServiceError> {
    if table.is_system() { Err(ErrorCode::AuthorizationFailure.into()) } else { Ok(table) }
}

fn wrong_key_count(account: &str, table: &str) -> ServiceError {
    invalid(format!(
        "The number of keys specified in the URI does not match number of key properties for the resource '{account}.{table}'."
    ))
}

fn invalid(detail: impl Into<Cow<'static, str>>) -> ServiceError {
    ServiceError::with_detail(ErrorCode::InvalidInput, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::wire::uri::parse_path;

    fn name(operation: &Operation<'_>) -> &'static str {
        match operation {
            Operation::Service(ServiceOperation::GetProperties) => "GetServiceProperties",
            Operation::Service(ServiceOperation::SetProperties) => "SetServiceProperties",
            Operation::Service(ServiceOperation::GetStats) => "GetServiceStats",
            Operation::Acl(AclOperation::Get(_)) => "GetTableAcl",
            Operation::Acl(AclOperation::Set(_)) => "SetTableAcl",
            Operation::Tables(TableOperation::Query) => "QueryTables",
            Operation::Tables(TableOperation::Create) => "CreateTable",
            Operation::Tables(TableOperation::Get(_)) => "GetTable",
            Operation::Tables(TableOperation::Delete(_)) => "DeleteTable",
            Operation::Read(EntityRead::Query(_)) => "QueryEntities",
            Operation::Read(EntityRead::Get { .. }) => "GetEntity",
            Operation::Write(EntityWrite::Insert(_)) => "InsertEntity",
            Operation::Write(EntityWrite::Replace { .. }) => "ReplaceEntity",
            Operation::Write(EntityWrite::Merge { .. }) => "MergeEntity",
            Operation::Write(EntityWrite::Delete { .. }) => "DeleteEntity",
            Operation::Batch => "Batch",
            Operation::PostBelow(_) => "PostBelow",
        }
    }

    fn read(method: &str, path: &str, headers: OperationHeaders<'_>) -> Result<String, ErrorCode> {
        Operation::read("acc", method, parse_path(path).unwrap(), Component::default(), &headers)
            .map(|operation| name(&operation).to_owned())
            .map_err(|error| error.code)
    }

    #[test]
    fn verbs_and_resources_make_operations() {
        let entity = "/tab(PartitionKey='p',RowKey='r')";
        let check = |method: &str, path: &str, expected: Result<&str, ErrorCode>| {
            let headers = OperationHeaders { if_match: Some("*"), ..Default::default() };
            let headers = if method == "DELETE" { headers } else { OperationHeaders::default() };
            assert_eq!(read(method, path, headers), expected.map(str::to_owned), "{method} {path}");
        };
        check("GET", "/Tables", Ok("QueryTables"));
        check("POST", "/Tables", Ok("CreateTable"));
        check("PUT", "/Tables", Err(ErrorCode::MethodNotAllowed));
        check("GET", "/Tables('abc')", Ok("GetTable"));
        check("HEAD", "/Tables('abc')", Ok("GetTable"));
        check("DELETE", "/Tables('abc')", Ok("DeleteTable"));
        check("GET", "/Tables('$MetricsHour')", Ok("GetTable"));
        check("DELETE", "/Tables('$MetricsHour')", Err(ErrorCode::AuthorizationFailure));
        check("GET", "/$MetricsHour()", Ok("QueryEntities"));
        check("POST", "/$MetricsHour", Err(ErrorCode::AuthorizationFailure));
        let measured = "/$MetricsHour(PartitionKey='p',RowKey='r')";
        check("GET", measured, Ok("GetEntity"));
        check("PUT", measured, Err(ErrorCode::AuthorizationFailure));
        check("MERGE", measured, Err(ErrorCode::AuthorizationFailure));
        check("DELETE", measured, Ok("DeleteEntity"));
        check("GET", "/$Other", Err(ErrorCode::InvalidResourceName));
        check("GET", "/tab()", Ok("QueryEntities"));
        check("POST", "/tab", Ok("InsertEntity"));
        check("DELETE", "/tab", Err(ErrorCode::MethodNotAllowed));
        check("GET", entity, Ok("GetEntity"));
        check("PUT", entity, Ok("ReplaceEntity"));
        check("MERGE", entity, Ok("MergeEntity"));
        check("PATCH", entity, Ok("MergeEntity"));
        check("DELETE", entity, Ok("DeleteEntity"));
        check("POST", entity, Err(ErrorCode::MethodNotAllowed));
        check("POST", "/$batch", Ok("Batch"));
        check("GET", "/$batch", Err(ErrorCode::MethodNotAllowed));
        check("GET", "/", Err(ErrorCode::InvalidUri));
        check("GET", "/tab/Tables", Err(ErrorCode::NotImplemented));
        check("POST", "/tab/Tables", Ok("PostBelow"));
        check("POST", "/tab/$batch", Ok("PostBelow"));
        check("POST", "/a-b/Tables", Err(ErrorCode::InvalidResourceName));
        check("DELETE", "/tab/Tables('x')", Err(ErrorCode::InvalidInput));
        check("BREW", "/tab", Err(ErrorCode::InvalidHttpVerb));
        check("GET", "/a-b", Err(ErrorCode::InvalidResourceName));
    }

    #[test]
    fn components_make_xml_operations() {
        let check = |method: &str, path: &str, restype, comp, expected: Result<&str, ErrorCode>| {
            let component = Component { restype, comp: Some(comp) };
            let resource = parse_path(path).unwrap();
            let found = Operation::read("acc", method, resource, component, &OperationHeaders::default());
            let found = found.as_ref().map(name).map_err(|error| error.code);
            assert_eq!(found, expected, "{method} {path} {comp}");
        };
        check("GET", "/", Some("service"), "properties", Ok("GetServiceProperties"));
        check("PUT", "/", Some("service"), "properties", Ok("SetServiceProperties"));
        check("POST", "/", Some("service"), "properties", Err(ErrorCode::UnsupportedHttpVerb));
        check("GET", "/", Some("service"), "stats", Ok("GetServiceStats"));
        check("GET", "/", None, "stats", Err(ErrorCode::InvalidQueryParameterValue));
        check("GET", "/tab", None, "acl", Ok("GetTableAcl"));
        check("PUT", "/tab", None, "acl", Ok("SetTableAcl"));
        check("DELETE", "/tab", None, "acl", Err(ErrorCode::UnsupportedHttpVerb));
        check("GET", "/tab", None, "lease", Err(ErrorCode::InvalidQueryParameterValue));
    }

    #[test]
    fn the_tunnel_takes_four_verbs_through_post_and_may_repeat_the_verb() {
        let entity = "/tab(PartitionKey='p',RowKey='r')";
        let tunnel = |method: &str, verb: &'static str, count| {
            let headers = OperationHeaders {
                x_http_method: Some(verb),
                x_http_method_count: count,
                ..Default::default()
            };
            read(method, entity, headers)
        };
        assert_eq!(tunnel("POST", "MERGE", 1).as_deref(), Ok("MergeEntity"));
        assert_eq!(tunnel("POST", "PUT", 1).as_deref(), Ok("ReplaceEntity"));
        assert_eq!(tunnel("MERGE", "MERGE", 1).as_deref(), Ok("MergeEntity"));
        assert_eq!(tunnel("PUT", "PUT", 1).as_deref(), Ok("ReplaceEntity"));
        assert_eq!(tunnel("PUT", "MERGE", 1), Err(ErrorCode::XMethodNotUsingPost));
        assert_eq!(tunnel("PATCH", "MERGE", 1), Err(ErrorCode::XMethodNotUsingPost));
        assert_eq!(tunnel("BREW", "BREW", 1), Err(ErrorCode::InvalidHttpVerb));
        assert_eq!(tunnel("MERGE", "MERGE", 2), Err(ErrorCode::XMethodIncorrectCount));
        assert_eq!(tunnel("POST", "GET", 1), Err(ErrorCode::XMethodIncorrectValue));
        assert_eq!(tunnel("POST", "MERGE", 2), Err(ErrorCode::XMethodIncorrectCount));
    }
}
