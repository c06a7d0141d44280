//! `--fail-on-scan`: queries that would get slower as their table grows are refused, with the reason and the remedy.
//!
//! It is for test suites. A scan is every plan but points and row ranges, as the client's `refuse_scans` has it; and keys
//! that are joined by `or`, which are found quickly here, but not by the real service.
//! Reading one partition as a whole, without a condition on anything else, reads nothing in vain and is no scan here.
//! Leaves to others: making the plan (`tables/plan.rs`).

use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};
use tables::{PlanKind, Search};

/// For which tables scans are refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScanRule {
    /// Names in lower case; `None` for all tables.
    tables: Option<Vec<String>>,
}

impl ScanRule {
    /// For all tables, except those that the server itself writes.
    pub fn for_all() -> ScanRule {
        ScanRule { tables: None }
    }

    pub fn for_tables(tables: &[TableName]) -> ScanRule {
        ScanRule { tables: Some(tables.iter().map(TableName::to_lower).collect()) }
    }

    /// Refuses the search if it is a scan. `shape` is the filter without its values.
    pub(crate) fn check(
        &self,
        table: &TableName,
        search: Search,
        shape: impl FnOnce() -> Option<String>,
    ) -> Result<(), ServiceError> {
        let applies = match &self.tables {
            None => !table.is_system(),
            Some(names) => names.iter().any(|name| name.eq_ignore_ascii_case(table.as_str())),
        };
        let Some((name, reason, remedy)) = explain(search).filter(|_| applies) else { return Ok(()) };
        let filter = match shape() {
            Some(shape) => format!("its filter, {shape},"),
            None => "it has no filter, and".to_owned(),
        };
        let detail = format!(
            "This query of table '{}' is {name}: {filter} makes the service {reason}. {remedy} The server refuses scans \
             because it was started with --fail-on-scan.",
            table.as_str(),
        );
        Err(ServiceError::with_detail(ErrorCode::ScanRefused, detail))
    }
}

/// What kind of a scan it is, why, and what to do about it; `None` when it is none.
fn explain(search: Search) -> Option<(&'static str, &'static str, &'static str)> {
    match search.plan {
        PlanKind::PartitionRange => Some((
            "a partition range",
            "read every partition of a range",
            "Compare PartitionKey with eq, one query for each partition, or keep the entities that belong together in \
             one partition (docs/patterns/compound_key.md).",
        )),
        PlanKind::TableScan => Some((
            "a table scan",
            "read the whole table",
            "Add PartitionKey eq to the filter, or keep index entities under a PartitionKey made of what you search by \
             (docs/patterns/index_entities.md).",
        )),
        PlanKind::PartitionScan if search.range_count == 1 && search.is_filtered => Some((
            "a partition scan",
            "read a whole partition to find some of its entities",
            "Add a condition on RowKey, or keep copies of the entities whose RowKey begins with what you search by \
             (docs/patterns/intra_partition_index.md).",
        )),
        _ if search.range_count > 1 => Some((
            "a scan on the real service",
            "look for several keys or ranges at once: it is quick here, but the real service reads everything between",
            "Send one query for each, or give the entities that belong together RowKeys that are neighbours \
             (docs/patterns/compound_key.md).",
        )),
        PlanKind::Point | PlanKind::RowRange | PlanKind::PartitionScan => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TableName {
        TableName::parse_addressed(text).unwrap()
    }

    fn is_refused(rule: &ScanRule, table: &str, plan: PlanKind, is_filtered: bool) -> bool {
        rule.check(&name(table), Search { plan, is_filtered, range_count: 1 }, || None).is_err()
    }

    #[test]
    fn keys_that_are_joined_by_or_are_a_scan_elsewhere() {
        for plan in [PlanKind::Point, PlanKind::RowRange, PlanKind::PartitionScan] {
            let search = Search { plan, is_filtered: false, range_count: 2 };
            let error = ScanRule::for_all().check(&name("people"), search, || None).unwrap_err();
            assert!(error.message().contains("a scan on the real service"), "{}", error.message());
        }
    }

    #[test]
    fn everything_but_points_ranges_and_whole_partitions_is_a_scan() {
        let rule = ScanRule::for_all();
        for (plan, is_filtered, expected) in [
            (PlanKind::Point, true, false),
            (PlanKind::RowRange, true, false),
            (PlanKind::PartitionScan, false, false),
            (PlanKind::PartitionScan, true, true),
            (PlanKind::PartitionRange, false, true),
            (PlanKind::TableScan, false, true),
        ] {
            assert_eq!(is_refused(&rule, "people", plan, is_filtered), expected, "{plan:?} {is_filtered}");
        }
    }

    #[test]
    fn a_rule_may_name_its_tables_in_any_case() {
        let rule = ScanRule::for_tables(&[name("People"), name("orders")]);
        assert!(is_refused(&rule, "people", PlanKind::TableScan, false));
        assert!(is_refused(&rule, "Orders", PlanKind::TableScan, false));
        assert!(!is_refused(&rule, "other", PlanKind::TableScan, false));
    }

    #[test]
    fn the_servers_own_tables_may_be_listed() {
        let table = "$MetricsHourPrimaryTransactionsTable";
        assert!(!is_refused(&ScanRule::for_all(), table, PlanKind::TableScan, false));
    }

    #[test]
    fn the_message_has_the_plan_the_shape_and_the_remedy() {
        let search = Search { plan: PlanKind::TableScan, is_filtered: true, range_count: 1 };
        let error = ScanRule::for_all()
            .check(&name("people"), search, || Some("Age gt Int32".to_owned()))
            .unwrap_err();
        let message = error.message();
        for part in ["'people' is a table scan", "Age gt Int32", "PartitionKey eq", "--fail-on-scan"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
