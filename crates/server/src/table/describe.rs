//! What a request to the Table service is called in metrics and logs, and what its head names.

use observe::{Named, Operation as Observed};
use protocol::service::ServiceOperation;
use protocol::table::model::TableName;
use protocol::table::operation::{AclOperation, Address, EntityRead, EntityWrite, Operation, TableOperation};

use tables::WriteKind;

use super::request::TableRequest;

pub fn describe<'r>(request: &'r TableRequest<'_>) -> (Observed, Named<'r>) {
    match &request.operation {
        Operation::Read(EntityRead::Get { address, .. }) => (Observed::GetEntity, addressed(address)),
        Operation::Read(EntityRead::Query(table)) => {
            let filter = request.asked.options.filter.as_deref();
            (Observed::QueryEntities, Named { filter, ..named(table) })
        }
        Operation::Write(write) => describe_write(write),
        Operation::Batch => (Observed::EntityGroupTransaction, Named::default()),
        Operation::Tables(operation) => match operation {
            TableOperation::Query => (Observed::QueryTables, Named::default()),
            TableOperation::Create => (Observed::CreateTable, Named::default()),
            TableOperation::Get(table) => (Observed::GetTable, named(table)),
            TableOperation::Delete(table) => (Observed::DeleteTable, named(table)),
        },
        Operation::Acl(AclOperation::Get(table)) => (Observed::GetTableAcl, named(table)),
        Operation::Acl(AclOperation::Set(table)) => (Observed::SetTableAcl, named(table)),
        Operation::Service(operation) => {
            let observed = match operation {
                ServiceOperation::GetProperties => Observed::GetTableServiceProperties,
                ServiceOperation::SetProperties => Observed::SetTableServiceProperties,
                ServiceOperation::GetStats => Observed::GetTableServiceStats,
            };
            (observed, Named::default())
        }
        // The service reads such a request as an insert.
        Operation::PostBelow(table) => (Observed::InsertEntity, named(table)),
    }
}

fn describe_write<'r>(write: &'r EntityWrite<'_>) -> (Observed, Named<'r>) {
    match write {
        EntityWrite::Insert(table) => (Observed::InsertEntity, named(table)),
        EntityWrite::Replace { address, condition: Some(_) } => (Observed::UpdateEntity, addressed(address)),
        EntityWrite::Replace { address, condition: None } => {
            (Observed::InsertOrReplaceEntity, addressed(address))
        }
        EntityWrite::Merge { address, condition: Some(_) } => (Observed::MergeEntity, addressed(address)),
        EntityWrite::Merge { address, condition: None } => {
            (Observed::InsertOrMergeEntity, addressed(address))
        }
        EntityWrite::Delete { address, .. } => (Observed::DeleteEntity, addressed(address)),
    }
}

/// What such a write would be called as a request of its own.
pub(crate) fn operation_of(kind: WriteKind) -> Observed {
    match kind {
        WriteKind::Insert => Observed::InsertEntity,
        WriteKind::InsertOrReplace => Observed::InsertOrReplaceEntity,
        WriteKind::InsertOrMerge => Observed::InsertOrMergeEntity,
        WriteKind::Update => Observed::UpdateEntity,
        WriteKind::Merge => Observed::MergeEntity,
        WriteKind::Delete => Observed::DeleteEntity,
    }
}

fn named(table: &TableName) -> Named<'_> {
    Named { container: table.as_str(), ..Named::default() }
}

fn addressed<'r>(address: &'r Address<'_>) -> Named<'r> {
    let Address { table, partition_key, row_key } = address;
    Named { partition: Some(partition_key), row: Some(row_key), ..named(table) }
}
