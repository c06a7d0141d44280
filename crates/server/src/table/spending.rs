//! What requests cost of the scalability targets of their partitions: the entities that they write, or that their
//! answers hold; at least one.
//!
//! A query costs something only where its filter names one partition. Over several partitions it counts as an
//! operation of its account and no more. Leaves to others: the targets themselves (`front/throttle.rs`).

use protocol::table::KIND;
use protocol::table::filter::Filter;
use protocol::table::model::TableName;
use protocol::table::region::Planner;

use crate::front::throttle::Partition;

pub(crate) fn partition<'a>(table: &'a TableName, partition_key: &'a str) -> Partition<'a> {
    Partition { service: KIND.label, container: table.as_str(), key: partition_key }
}

/// The only partition that the filter can match, if there is one.
pub(crate) fn only_partition(filter: &Filter) -> Option<String> {
    let (rectangles, _) = Planner::default().rectangles(&filter.root);
    let first = rectangles.first()?.partition.as_single()?;
    let is_alone = rectangles.iter().all(|rectangle| rectangle.partition.as_single() == Some(first));
    is_alone.then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use protocol::table::filter::{self, Schema};

    use super::*;

    #[test]
    fn a_query_has_a_partition_when_its_filter_names_one() {
        let check = |text: &str, expected: Option<&str>| {
            let filter = filter::parse(text, Schema::Entities).unwrap().unwrap();
            assert_eq!(only_partition(&filter).as_deref(), expected, "{text}");
        };
        check("PartitionKey eq 'p'", Some("p"));
        check("PartitionKey eq 'p' and Age gt 7", Some("p"));
        check("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')", Some("p"));
        check("PartitionKey eq 'p' or PartitionKey eq 'q'", None);
        check("PartitionKey ge 'p'", None);
        check("Age gt 7", None);
    }
}
