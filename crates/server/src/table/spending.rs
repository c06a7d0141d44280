//! What requests cost of the scalability targets of their partitions: the entities that they write, or that their
//! answers hold; at least one.
//!
//! A query costs something only where its filter names one partition. Over several partitions it counts as an
//! operation of its account and no more. Leaves to others: the targets themselves (`front/throttle.rs`).

use protocol::table::KIND;
use protocol::table::model::TableName;

use crate::front::throttle::Partition;

pub(crate) fn partition<'a>(table: &'a TableName, partition_key: &'a str) -> Partition<'a> {
    Partition { service: KIND.label, container: table.as_str(), key: partition_key }
}
