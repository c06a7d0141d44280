//! The targets of the Blob service. Bounds are written nowhere else.

use loadgen::measure::Sample;

use super::report::of_other;
use super::{BlobWork, FEW_CONNECTIONS, FEW_NAMES};
use crate::results::{Direction, Results, Run, fact};
use crate::system::SystemKind;
use crate::targets::{Bound, LARGE_ENTITIES, Target, Unit, target};

const MIB: f64 = 1024.0 * 1024.0;
const PUTS_OF_DD: Bound = Bound::AtLeast(0.7);
const GETS_OF_FILE_SERVER: Bound = Bound::AtLeast(0.6);

pub const TARGETS: [Target; 14] = [
    target("durable put of 4 KiB: of hello world", Unit::Times, Bound::AtLeast(0.2), |results| {
        beside(results, BlobWork::Put, SystemKind::Hello)
    }),
    target("durable put of 4 KiB: of Azurite", Unit::Times, Bound::AtLeast(30.0), |results| {
        beside(results, BlobWork::Put, SystemKind::Azurite)
    }),
    target("get of 4 KiB: of hello world", Unit::Times, Bound::AtLeast(0.45), |results| {
        beside(results, BlobWork::Get, SystemKind::Hello)
    }),
    target("get of 4 KiB: of hello world that answers 4 KiB", Unit::Times, Bound::None, |results| {
        beside(results, BlobWork::Get, SystemKind::HelloLong)
    }),
    target("get of 4 KiB: of Azurite", Unit::Times, Bound::None, |results| {
        beside(results, BlobWork::Get, SystemKind::Azurite)
    }),
    target("put of 64 MiB, 1 connection: of `dd` with a sync", Unit::Times, PUTS_OF_DD, |results| {
        of_other(results.blobs.as_ref()?, Direction::Put, 1)
    }),
    target("put of 64 MiB, 4 connections: of 4 `dd` with syncs", Unit::Times, PUTS_OF_DD, |results| {
        of_other(results.blobs.as_ref()?, Direction::Put, FEW_CONNECTIONS)
    }),
    target("put of 64 MiB in blocks, 1 connection: of `dd`", Unit::Times, PUTS_OF_DD, |results| {
        of_other(results.blobs.as_ref()?, Direction::PutBlocks, 1)
    }),
    target("put of 64 MiB in blocks, 4 connections: of `dd`", Unit::Times, PUTS_OF_DD, |results| {
        of_other(results.blobs.as_ref()?, Direction::PutBlocks, FEW_CONNECTIONS)
    }),
    target(
        "get of 64 MiB, 1 connection: of a bare file server",
        Unit::Times,
        GETS_OF_FILE_SERVER,
        |results| of_other(results.blobs.as_ref()?, Direction::Get, 1),
    ),
    target(
        "get of 64 MiB, 4 connections: of a bare file server",
        Unit::Times,
        GETS_OF_FILE_SERVER,
        |results| of_other(results.blobs.as_ref()?, Direction::Get, FEW_CONNECTIONS),
    ),
    target(
        "peak memory, 100 uploads of 256 MiB at the same time",
        Unit::Mebibytes,
        Bound::AtMost(512.0),
        |results| Some(results.blobs.as_ref()?.fact(fact::UPLOADS_PEAK_BYTES)? / MIB),
    ),
    target("list 1,000 of 10M names: CPU, of 1,000 of 10k", Unit::Times, Bound::AtMost(1.5), |results| {
        growth(results, |sample| sample.server_cpu_us)
    }),
    target("list 1,000 of 10M names: time, of 1,000 of 10k", Unit::Times, Bound::AtMost(1.5), |results| {
        growth(results, |sample| Some(1.0 / sample.requests_per_second))
    }),
];

fn sample(run: &Run, work: BlobWork, system: SystemKind) -> Option<&Sample> {
    let cell = run.cells.iter().find(|cell| cell.workload == work.name() && cell.system == system);
    cell?.sample.as_ref()
}

/// The durable server's throughput relative to another system's.
fn beside(results: &Results, work: BlobWork, other: SystemKind) -> Option<f64> {
    let run = results.blobs.as_ref()?;
    let (own, other) = (sample(run, work, SystemKind::Durable)?, sample(run, work, other)?);
    Some(own.requests_per_second / other.requests_per_second)
}

/// The cost of a list in the large container, relative to that in the small one.
fn growth(results: &Results, cost: fn(&Sample) -> Option<f64>) -> Option<f64> {
    let run = results.large_blobs.as_ref()?;
    let of = |names: u64| {
        let cell = run.cells.iter().find(|cell| cell.entities == names);
        cost(cell?.sample.as_ref()?)
    };
    Some(of(LARGE_ENTITIES)? / of(FEW_NAMES)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::short;
    use crate::report::tests::{example, sample};
    use crate::results::Transfer;

    fn figure(results: &Results, what: &str) -> Option<f64> {
        let target = TARGETS.iter().find(|target| target.what == what).unwrap();
        (target.figure)(results)
    }

    fn run() -> Run {
        Run { plan: "blobs".to_owned(), cells: Vec::new(), ..example().main.unwrap() }
    }

    #[test]
    fn figures_come_from_the_results() {
        let mut run = run();
        for (system, rate) in
            [(SystemKind::Durable, 30.0), (SystemKind::Hello, 100.0), (SystemKind::Azurite, 1.0)]
        {
            run.cells.push(short::cell(BlobWork::Put, 1, 64, system, Ok(vec![sample(rate)])));
        }
        for (system, bytes_per_second) in [(Some(SystemKind::Durable), 80.0), (None, 100.0)] {
            let direction = Direction::Put;
            run.transfers.push(Transfer {
                direction,
                connections: 1,
                system,
                bytes_per_second,
                cpu_us_per_mib: None,
            });
        }
        let results = Results { blobs: Some(run), ..Results::default() };
        assert_eq!(figure(&results, "durable put of 4 KiB: of hello world"), Some(0.3));
        assert_eq!(figure(&results, "durable put of 4 KiB: of Azurite"), Some(30.0));
        assert_eq!(figure(&results, "get of 4 KiB: of hello world"), None);
        assert_eq!(figure(&results, "put of 64 MiB, 1 connection: of `dd` with a sync"), Some(0.8));
        assert_eq!(figure(&results, "put of 64 MiB, 4 connections: of 4 `dd` with syncs"), None);
        let text = crate::blobs::report::tables(results.blobs.as_ref().unwrap());
        assert!(text.contains("| put a blob of 4 KiB | 1 | 64 | Lazulite, durable | 30.0 |"), "{text}");
        assert!(text.contains("| 30 % | 30.0 × |") && text.contains("| put | 1 | `dd` |"), "{text}");
    }

    #[test]
    fn a_smaller_container_does_not_pass_for_a_large_one() {
        let mut run = run();
        for (names, rate) in [(FEW_NAMES, 100.0), (1_000_000, 80.0)] {
            run.cells.push(short::cell(
                BlobWork::List,
                names,
                1,
                SystemKind::Durable,
                Ok(vec![sample(rate)]),
            ));
        }
        let mut results = Results { large_blobs: Some(run), ..Results::default() };
        let what = "list 1,000 of 10M names: time, of 1,000 of 10k";
        assert_eq!(figure(&results, what), None);
        results.large_blobs.as_mut().unwrap().cells[1].entities = LARGE_ENTITIES;
        assert_eq!(figure(&results, what), Some(1.25));
    }
}
