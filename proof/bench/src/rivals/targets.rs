//! The targets about rivals and their bounds.

use loadgen::workload::WorkloadKind;

use super::{RivalCell, RivalKind};
use crate::results::Results;
use crate::targets::{Bound, Target, Unit, target};

/// In the order of the document.
pub const TARGETS: [Target; 4] = [
    target(
        "durable insert: of Redis' SET, every write synced",
        Unit::Times,
        Bound::AtLeast(1.0),
        |results| ratio(results, WorkloadKind::Insert, RivalKind::Redis),
    ),
    target("point read, 100k entities: of Redis' GET", Unit::Times, Bound::AtLeast(0.85), |results| {
        ratio(results, WorkloadKind::Read, RivalKind::Redis)
    }),
    target("durable insert: of PostgreSQL's", Unit::Times, Bound::AtLeast(1.3), |results| {
        ratio(results, WorkloadKind::Insert, RivalKind::Postgres)
    }),
    target("point read, 100k entities: of PostgreSQL's", Unit::Times, Bound::None, |results| {
        ratio(results, WorkloadKind::Read, RivalKind::Postgres)
    }),
];

fn ratio(results: &Results, kind: WorkloadKind, rival: RivalKind) -> Option<f64> {
    results.main.as_ref()?.rival(kind, rival).and_then(RivalCell::ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rivals::tests::cell;

    #[test]
    fn figures_come_from_the_rounds() {
        let mut results = crate::report::tests::example();
        let main = results.main.as_mut().unwrap();
        main.rivals.push(cell(RivalKind::Redis, WorkloadKind::Insert, &[[30.0, 40.0], [45.0, 50.0]]));
        main.rivals.push(cell(RivalKind::Postgres, WorkloadKind::Read, &[[60.0, 50.0]]));
        let figures: Vec<Option<f64>> = TARGETS.iter().map(|target| (target.figure)(&results)).collect();
        assert_eq!(figures[1..], [None, None, Some(1.2)]);
        assert!((figures[0].unwrap() - 0.825).abs() < 1e-9);
    }
}
