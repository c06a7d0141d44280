//! The figures of a hundred million entities among the targets. No bound was asked for: they are reported.

use loadgen::workload::WorkloadKind;

use super::TEN_THOUSAND;
use crate::plan::MANY_CONNECTIONS;
use crate::results::{Results, Run, fact};
use crate::targets::{Bound, HUGE_ENTITIES, Target, Unit, target};

const MIB: f64 = 1024.0 * 1024.0;

/// In the order of the document.
pub const TARGETS: [Target; 7] = [
    target("loading 100M entities through transactions", Unit::PerSecond, Bound::None, |results| {
        huge(results)?.fact(fact::LOAD_ENTITIES_PER_SECOND)
    }),
    target("point read, 10k to 100M entities: CPU", Unit::Times, Bound::None, |results| {
        growth(results, WorkloadKind::Read, MANY_CONNECTIONS)
    }),
    target("row range page, 10k to 100M entities: CPU", Unit::Times, Bound::None, |results| {
        growth(results, WorkloadKind::Page, 1)
    }),
    target("start to first answer, 100M entities", Unit::Milliseconds, Bound::None, |results| {
        huge(results)?.fact(fact::RESTART_MS)
    }),
    target("memory with 100M entities under load", Unit::Mebibytes, Bound::None, |results| {
        Some(huge(results)?.fact(fact::LOADED_PEAK_BYTES)? / MIB)
    }),
    target("files with 100M entities", Unit::Mebibytes, Bound::None, |results| {
        Some(huge(results)?.fact(fact::DISK_BYTES)? / MIB)
    }),
    target("dropping a table of 100M entities: answer", Unit::Milliseconds, Bound::None, |results| {
        huge(results)?.fact(fact::DROP_MS)
    }),
];

/// The run, if it had as many entities as it claims.
fn huge(results: &Results) -> Option<&Run> {
    let run = results.huge.as_ref()?;
    run.cells.iter().any(|cell| cell.entities >= HUGE_ENTITIES).then_some(run)
}

/// Processor time per request on the large table, relative to the small one.
fn growth(results: &Results, kind: WorkloadKind, connections: usize) -> Option<f64> {
    let run = huge(results)?;
    let cpu_us = |entities: u64| {
        let cell = run.cells.iter().find(|cell| {
            cell.workload == kind.name() && cell.connections == connections && cell.entities == entities
        })?;
        cell.sample?.server_cpu_us
    };
    Some(cpu_us(HUGE_ENTITIES)? / cpu_us(TEN_THOUSAND)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_does_not_pass_for_a_hundred_million() {
        let figures = |results: &Results| -> Vec<Option<f64>> {
            TARGETS.iter().map(|target| (target.figure)(results)).collect()
        };
        let mut results = Results { huge: Some(super::super::report::tests::huge()), ..Results::default() };
        let measured = figures(&results);
        assert_eq!((measured[1], measured[2], measured[6]), (Some(2.0), None, Some(1.5)));
        for cell in &mut results.huge.as_mut().unwrap().cells {
            cell.entities = cell.entities.min(1_000_000);
        }
        assert!(figures(&results).iter().all(Option::is_none));
    }
}
