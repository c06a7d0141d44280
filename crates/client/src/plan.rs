//! Plans: what a filter makes the service read.
//!
//! Lazulite says how it answered a query in `x-lazulite-plan`; this is the same word, before the query is sent. Azure
//! and Cosmos DB do not tell, but what they read is no less.

use std::fmt;

use protocol::table::region::{self, PlanKind};

/// How a query finds its rows, from the cheapest way to the most expensive.
///
/// ```
/// use lazulite_client::{DynamicEntity, Plan};
///
/// let sales = DynamicEntity::partition_key().eq("Sales");
/// assert_eq!(sales.plan(), Plan::PartitionScan);
/// let b_to_c = sales & DynamicEntity::row_key().between("B", "D");
/// assert_eq!(b_to_c.plan(), Plan::RowRange);
/// assert!(b_to_c.plan() < Plan::TableScan);
/// assert_eq!(b_to_c.plan().to_string(), "row range");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Plan {
    /// Both keys are known, of one entity or of several. Also used when nothing can match and nothing is read.
    Point,
    /// The partition is known, and the row key has bounds.
    RowRange,
    /// The partition is known and read in full.
    PartitionScan,
    /// The partition key has bounds, and every partition between them is read in full.
    PartitionRange,
    /// Everything is read.
    TableScan,
}

impl Plan {
    /// The word of the header `x-lazulite-plan`.
    pub fn name(self) -> &'static str {
        PlanKind::from(self).name()
    }

    /// Whether a whole partition, several or the whole table are read: everything but points and row ranges, which stay
    /// fast as a table grows.
    pub fn is_scan(self) -> bool {
        self > Plan::RowRange
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Plan> for PlanKind {
    fn from(plan: Plan) -> PlanKind {
        match plan {
            Plan::Point => PlanKind::Point,
            Plan::RowRange => PlanKind::RowRange,
            Plan::PartitionScan => PlanKind::PartitionScan,
            Plan::PartitionRange => PlanKind::PartitionRange,
            Plan::TableScan => PlanKind::TableScan,
        }
    }
}

impl From<PlanKind> for Plan {
    fn from(kind: PlanKind) -> Plan {
        match kind {
            PlanKind::Point => Plan::Point,
            PlanKind::RowRange => Plan::RowRange,
            PlanKind::PartitionScan => Plan::PartitionScan,
            PlanKind::PartitionRange => Plan::PartitionRange,
            PlanKind::TableScan => Plan::TableScan,
        }
    }
}

/// The plan for a tree; everything is read where there is none.
pub(crate) fn plan_of(root: Option<&protocol::table::filter::Expr>) -> Plan {
    root.map_or(Plan::TableScan, |root| region::kind(root).into())
}
