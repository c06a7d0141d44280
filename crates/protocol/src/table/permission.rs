//! The permission that each operation of the Table service needs.

use crate::auth::{Level, Need, Permission, ResourceName, RoleSet};
use crate::service::ServiceOperation;

use super::model::TableName;
use super::operation::{Address, EntityRead, EntityWrite, Operation, TableOperation};

/// Storage Table Data Reader.
pub const READER: RoleSet = RoleSet(1);
/// Storage Table Data Contributor.
pub const CONTRIBUTOR: RoleSet = RoleSet(2);
/// A contributor may also read.
const READERS: RoleSet = READER.or(CONTRIBUTOR);

impl Operation<'_> {
    pub fn need(&self) -> Need<'_> {
        match self {
            // Each operation of a batch is authorized by itself.
            Operation::Batch => Need::Nothing,
            Operation::Acl(_) => Need::AccountKey,
            Operation::Service(operation) => need_of_service(*operation),
            Operation::Tables(operation) => operation.need(),
            Operation::Read(EntityRead::Query(table)) => of_entities(table, None, &["r"], READERS),
            // An entity outside the bounds of a token is not forbidden but missing, so its keys are compared later.
            Operation::Read(EntityRead::Get { address, .. }) => {
                of_entities(&address.table, None, &["r"], READERS)
            }
            Operation::Write(write) => write.need(),
            // The service reads it as an insert.
            Operation::PostBelow(table) => of_entities(table, None, &["a"], CONTRIBUTOR),
        }
    }
}

/// The live service lets a contributor set the service properties too, as recorded with a caller that has no other role.
fn need_of_service(operation: ServiceOperation) -> Need<'static> {
    match operation.need(READERS) {
        Need::Permission(permission) if operation == ServiceOperation::SetProperties => {
            Need::Permission(Permission { roles: CONTRIBUTOR, ..permission })
        }
        need => need,
    }
}

impl TableOperation {
    fn need(&self) -> Need<'_> {
        let (letters, roles): (&'static [&'static str], RoleSet) = match self {
            TableOperation::Query | TableOperation::Get(_) => (&["l"], READERS),
            TableOperation::Create => (&["c", "w"], CONTRIBUTOR),
            TableOperation::Delete(_) => (&["d"], CONTRIBUTOR),
        };
        Need::Permission(Permission { level: Level::Container, letters, roles, resource: None, key: None })
    }
}

impl EntityWrite<'_> {
    fn need(&self) -> Need<'_> {
        match self {
            EntityWrite::Insert(table) => of_entities(table, None, &["a"], CONTRIBUTOR),
            // An upsert may turn out to be an insert or an update.
            EntityWrite::Replace { address, condition: None }
            | EntityWrite::Merge { address, condition: None } => of_entity(address, &["au"], CONTRIBUTOR),
            EntityWrite::Replace { address, .. } | EntityWrite::Merge { address, .. } => {
                of_entity(address, &["u"], CONTRIBUTOR)
            }
            EntityWrite::Delete { address, .. } => of_entity(address, &["d"], CONTRIBUTOR),
        }
    }
}

fn of_entity<'a>(address: &'a Address<'_>, letters: &'static [&'static str], roles: RoleSet) -> Need<'a> {
    of_entities(&address.table, Some((&address.partition_key, &address.row_key)), letters, roles)
}

fn of_entities<'a>(
    table: &'a TableName,
    key: Option<(&'a str, &'a str)>,
    letters: &'static [&'static str],
    roles: RoleSet,
) -> Need<'a> {
    let resource = Some(ResourceName { container: table.as_str(), object: None });
    Need::Permission(Permission { level: Level::Object, letters, roles, resource, key })
}
