//! `--fail-on-scan`: queries that would get slower as their table grows are refused, with the reason and the remedy.
//!
//! It is for test suites. A scan is every plan but points and row ranges, as the client's `refuse_scans` has it.
//! Reading one partition as a whole, without a condition on anything else, reads nothing in vain and is no scan here.
//! Leaves to others: making the plan (`tables/plan.rs`).

use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};
use tables::PlanKind;

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

    /// Refuses the plan if it is a scan. `is_filtered`: rows that are found may be left out of the answer. `shape` is
    /// the filter without its values.
    pub(crate) fn check(
        &self,
        table: &TableName,
        plan: PlanKind,
        is_filtered: bool,
        shape: impl FnOnce() -> Option<String>,
    ) -> Result<(), ServiceError> {
        let applies = match &self.tables {
            None => !table.is_system(),
            Some(names) => names.iter().any(|name| name.eq_ignore_ascii_case(table.as_str())),
        };
        let Some((reason, remedy)) = explain(plan, is_filtered).filter(|_| applies) else { return Ok(()) };
        let filter = match shape() {
            Some(shape) => format!("its filter, {shape},"),
            None => "it has no filter, and".to_owned(),
        };
        let detail = format!(
            "This query of table '{}' is a {}: {filter} makes the service {reason}. {remedy} The server refuses scans \
             because it was started with --fail-on-scan.",
            table.as_str(),
            plan.name(),
        );
        Err(ServiceError::with_detail(ErrorCode::ScanRefused, detail))
    }
}

/// Why a plan is a scan, and what to do about it; `None` when it is none.
fn explain(plan: PlanKind, is_filtered: bool) -> Option<(&'static str, &'static str)> {
    match plan {
        PlanKind::Point | PlanKind::RowRange => None,
        PlanKind::PartitionScan if !is_filtered => None,
        PlanKind::PartitionScan => Some((
            "read a whole partition to find some of its entities",
            "Add a condition on RowKey, or keep copies of the entities whose RowKey begins with what you search by \
             (docs/patterns/intra_partition_index.md).",
        )),
        PlanKind::PartitionRange => Some((
            "read every partition of a range",
            "Compare PartitionKey with eq, one query for each partition, or keep the entities that belong together in \
             one partition (docs/patterns/compound_key.md).",
        )),
        PlanKind::TableScan => Some((
            "read the whole table",
            "Add PartitionKey eq to the filter, or keep index entities under a PartitionKey made of what you search by \
             (docs/patterns/index_entities.md).",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TableName {
        TableName::parse_addressed(text).unwrap()
    }

    fn is_refused(rule: &ScanRule, table: &str, plan: PlanKind, is_filtered: bool) -> bool {
        rule.check(&name(table), plan, is_filtered, || None).is_err()
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
        let error = ScanRule::for_all()
            .check(&name("people"), PlanKind::TableScan, true, || Some("Age gt Int32".to_owned()))
            .unwrap_err();
        let message = error.message();
        for part in ["'people' is a table scan", "Age gt Int32", "PartitionKey eq", "--fail-on-scan"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
