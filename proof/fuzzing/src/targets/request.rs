//! The request line and the headers that change its meaning: path, key predicates, operation.
//!
//! An input is the head of a request as it arrives.

use protocol::auth::{Grant, KeyBounds, LetterSet, RoleSet};
use protocol::common::query::Query;
use protocol::service::ServiceOperation;
use protocol::table::model::{ETag, TableName};
use protocol::table::operation::{
    AclOperation, Address, Component, EntityRead, EntityWrite, Operation, TableOperation,
};
use protocol::table::wire::headers::OperationHeaders;
use protocol::table::wire::options::QueryOptions;
use protocol::table::wire::uri::{self, Resource};
use protocol::table::{KIND, READER};

use crate::golden::distinct;
use crate::{ACCOUNT, Golden, Outcome, Target, as_text};

pub const TARGET: Target = Target {
    name: "request",
    run,
    input_bytes_max: 128 * 1024,
    tokens: &[
        b"GET ",
        b"POST ",
        b"PUT ",
        b"MERGE ",
        b"PATCH ",
        b"DELETE ",
        b"HEAD ",
        b"OPTIONS ",
        b"TRACE ",
        b" HTTP/1.1",
        b"/",
        b"//",
        b"(",
        b")",
        b"()",
        b"'",
        b"''",
        b"=",
        b",",
        b" ",
        b"\t",
        b"%",
        b"%2",
        b"%27",
        b"%2527",
        b"%00",
        b"%2F",
        b"%5C",
        b"%C3%A9",
        b"%F0%9F%92%8E",
        b"%FF",
        b"%20",
        b"+",
        b"?",
        b"&",
        b"PartitionKey=",
        b"RowKey=",
        b"TableName=",
        b"(PartitionKey='p',RowKey='r')",
        b"(RowKey='',PartitionKey='')",
        b"('k')",
        b"Tables",
        b"Tables('People')",
        b"People",
        b"$batch",
        b"$metadata",
        b"$MetricsHourPrimaryTransactionsTable",
        b"comp=acl",
        b"comp=stats",
        b"comp=properties",
        b"restype=service",
        b"\nIf-Match: *",
        b"\nIf-Match: W/\"datetime'2020-08-20T22%3A20%3A23Z'\"",
        b"\nIf-None-Match: *",
        b"\nX-HTTP-Method: MERGE",
        b"\nX-HTTP-Method: GET",
        b"\r\n",
        b"\n",
        b"\xC3\xA9",
        b"\xFF",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    distinct(golden.requests().map(|request| {
        let target = request.target().strip_prefix("/devstoreaccount1").unwrap_or(request.target());
        let method = request.start_line.split(' ').next().unwrap_or_default();
        let mut head = format!("{method} {target} HTTP/1.1");
        for (name, value) in &request.headers {
            // Other headers do not change the operation, so mutating them would be wasted.
            if ["if-match", "if-none-match", "x-http-method"].contains(&&*name.to_ascii_lowercase()) {
                head.push_str(&format!("\n{name}: {value}"));
            }
        }
        head.into_bytes()
    }))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let text = as_text(input)?;
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().splitn(2, ' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let target = target.strip_suffix(" HTTP/1.1").unwrap_or(target);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = OperationHeaders::default();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers.take(name.trim(), || value.trim());
    }

    let resource = uri::parse_path(path)?;
    check_resource(&resource);
    let options = QueryOptions::read(&Query::split(query))?;
    let component = Component { restype: options.restype.as_deref(), comp: options.comp.as_deref() };
    let operation = Operation::read(ACCOUNT, method, resource, component, &headers)?;
    check_grants(&operation);
    Ok(Outcome::Accepted(check_operation(&operation)))
}

/// An entity's keys, written into a path, must be read as the same keys.
fn check_resource(resource: &Resource<'_>) {
    let Resource::Entity { table, partition_key, row_key } = resource else { return };
    let mut written = Vec::new();
    uri::write_entity_path(table, partition_key, row_key, &mut written);
    let written = String::from_utf8(written).expect("a written path is text");
    // An invalid table name may be anything, even a part of a path.
    if TableName::parse(table).is_ok() {
        let again = uri::parse_path(&written).expect("a written path can be read");
        assert_eq!(again, *resource, "{written}");
    }
}

/// The name of the operation. Checks that its conditions read back as they were written.
fn check_operation(operation: &Operation<'_>) -> &'static str {
    let check = |etag: &Option<ETag>| {
        if let Some(ETag::Exactly(timestamp)) = etag {
            let mut written = Vec::new();
            ETag::write(&timestamp.text(), &mut written);
            let written = String::from_utf8(written).expect("an ETag is text");
            assert_eq!(ETag::parse(&written).ok(), *etag, "{written}");
        }
    };
    match operation {
        Operation::Tables(TableOperation::Query) => "QueryTables",
        Operation::Tables(TableOperation::Create) => "CreateTable",
        Operation::Tables(TableOperation::Get(_)) => "GetTable",
        Operation::Tables(TableOperation::Delete(_)) => "DeleteTable",
        Operation::Read(EntityRead::Query(_)) => "QueryEntities",
        Operation::Write(EntityWrite::Insert(_)) => "InsertEntity",
        Operation::Read(EntityRead::Get { if_match, if_none_match, .. }) => {
            check(if_match);
            check(if_none_match);
            "GetEntity"
        }
        Operation::Write(EntityWrite::Replace { condition, .. }) => {
            check(condition);
            "ReplaceEntity"
        }
        Operation::Write(EntityWrite::Merge { condition, .. }) => {
            check(condition);
            "MergeEntity"
        }
        Operation::Write(EntityWrite::Delete { condition, .. }) => {
            check(&Some(*condition));
            "DeleteEntity"
        }
        Operation::Batch => "Batch",
        Operation::PostBelow(_) => "PostBelow",
        Operation::Service(ServiceOperation::GetProperties) => "GetServiceProperties",
        Operation::Service(ServiceOperation::SetProperties) => "SetServiceProperties",
        Operation::Service(ServiceOperation::GetStats) => "GetServiceStats",
        Operation::Acl(AclOperation::Get(_)) => "GetTableAcl",
        Operation::Acl(AclOperation::Set(_)) => "SetTableAcl",
    }
}

/// The account key allows every operation; an empty grant allows nothing but the envelope of a batch; a key range never
/// allows keys outside it.
fn check_grants(operation: &Operation<'_>) {
    assert!(Grant::Everything.authorize(&KIND, &operation.need()).is_ok());
    let is_batch = *operation == Operation::Batch;
    assert_eq!(Grant::Roles(RoleSet::NONE).authorize(&KIND, &operation.need()).is_ok(), is_batch);
    let letters = LetterSet::parse("raud");
    let bounds = KeyBounds { start: Some(("p".to_owned(), None)), end: Some(("p".to_owned(), None)) };
    let grant = |table: &TableName| Grant::ServiceSas {
        resource: table.as_str().into(),
        permissions: letters,
        bounds: bounds.clone(),
    };
    if let Operation::Read(EntityRead::Get { address, .. }) = operation {
        let Address { table, partition_key, row_key } = address;
        // Whether the entity is visible is asked when it has been read.
        assert!(grant(table).authorize(&KIND, &operation.need()).is_ok());
        assert_eq!(grant(table).authorize_key(partition_key, row_key).is_ok(), partition_key == "p");
        assert!(Grant::Roles(READER).authorize(&KIND, &operation.need()).is_ok());
    }
}
