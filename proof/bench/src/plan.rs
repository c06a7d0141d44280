//! The plan of a run: which workloads, in which order, on which systems.

use loadgen::workload::{TableShape, Workload, WorkloadKind};

use crate::options::{Options, PlanName};
use crate::system::SystemKind;

pub const USUAL_ENTITIES: u64 = 100_000;
pub const SMALL_ENTITIES: u64 = 1_000;
pub const QUICK_ENTITIES: u64 = 2_000;
pub const MANY_CONNECTIONS: usize = 64;
const CONNECTIONS: [usize; 3] = [1, 16, 64];

pub const USUAL: TableShape = TableShape::one_partition(USUAL_ENTITIES);
pub const SCATTERED: TableShape = TableShape { entities: USUAL_ENTITIES, partitions: 100 };
/// Messages that wait while others are taken.
pub const WAITING: TableShape = TableShape::one_partition(2_000);
/// Inserts start with an empty table.
pub const EMPTY: TableShape = TableShape::one_partition(0);

pub fn workloads(options: &Options) -> Vec<Workload> {
    let all = match options.plan {
        PlanName::Usual | PlanName::Quick => usual(usual_shape(options)),
        PlanName::Full => full(),
        // `large.rs` has a plan of its own; these are its additional workloads.
        PlanName::Large | PlanName::Huge | PlanName::LargeQueues | PlanName::Client => Vec::new(),
        // So have `scale_out` and `blobs`.
        PlanName::ScaleOut | PlanName::ScaleOutLarge | PlanName::Blobs | PlanName::BlobsLarge => Vec::new(),
        PlanName::LargeFull => every(TableShape::one_partition(options.large_entities)),
    };
    let is_wanted = |workload: &Workload| !options.is_partial() || options.only.contains(&workload.kind);
    all.into_iter().filter(is_wanted).collect()
}

/// The shape of the tables that most workloads are measured on.
pub fn usual_shape(options: &Options) -> TableShape {
    match options.plan {
        PlanName::Quick => TableShape::one_partition(QUICK_ENTITIES),
        _ => USUAL,
    }
}

/// The workloads of the targets, and every other workload once. Those that only read come first.
fn usual(shape: TableShape) -> Vec<Workload> {
    let scattered =
        TableShape { partitions: if shape == USUAL { SCATTERED.partitions } else { 10 }, ..shape };
    [
        (WorkloadKind::Read, shape, 64),
        (WorkloadKind::ReadMiss, shape, 64),
        (WorkloadKind::AnyOf, shape, 64),
        (WorkloadKind::Page, shape, 1),
        (WorkloadKind::Filter, shape, 1),
        (WorkloadKind::Scan, shape, 1),
        (WorkloadKind::Upsert, shape, 64),
        (WorkloadKind::Merge, shape, 64),
        (WorkloadKind::HotMerge, shape, 64),
        (WorkloadKind::Read, scattered, 64),
        (WorkloadKind::Insert, EMPTY, 64),
        (WorkloadKind::Batch, EMPTY, 64),
        (WorkloadKind::Mix, shape, 64),
        (WorkloadKind::PutMessage, EMPTY, 64),
        (WorkloadKind::Take, WAITING, 64),
        (WorkloadKind::Take32, WAITING, 64),
        (WorkloadKind::Peek, WAITING, 64),
    ]
    .map(|(kind, shape, connections)| Workload { kind, shape, connections })
    .to_vec()
}

fn full() -> Vec<Workload> {
    let mut all = every(TableShape::one_partition(SMALL_ENTITIES));
    all.extend(every(USUAL));
    // Adds the workloads of the targets.
    let missing: Vec<Workload> =
        usual(USUAL).into_iter().filter(|workload| !all.contains(workload)).collect();
    all.extend(missing);
    all
}

fn every(shape: TableShape) -> Vec<Workload> {
    let with = |kind: WorkloadKind| CONNECTIONS.map(|connections| Workload { kind, shape, connections });
    WorkloadKind::TABLE.into_iter().flat_map(with).collect()
}

/// The systems that are available and selected.
pub fn systems(options: &Options) -> Vec<SystemKind> {
    let is_wanted = |kind: &SystemKind| match options.systems.is_empty() && options.rivals.is_empty() {
        true => !(options.plan == PlanName::Quick && *kind == SystemKind::Azurite),
        false => options.systems.contains(kind),
    };
    match options.plan {
        PlanName::Large
        | PlanName::LargeFull
        | PlanName::Huge
        | PlanName::LargeQueues
        | PlanName::Client
        | PlanName::BlobsLarge => vec![SystemKind::Durable],
        _ => SystemKind::ALL.into_iter().filter(is_wanted).collect(),
    }
}

/// How many connections a system gets.
pub fn connections(workload: &Workload, system: SystemKind) -> usize {
    match (workload.kind, system) {
        (WorkloadKind::Take32, SystemKind::Azurite) => workload.connections.min(AZURITE_TAKE_CONNECTIONS),
        _ => workload.connections,
    }
}

const AZURITE_TAKE_CONNECTIONS: usize = 8;
pub const AZURITE_TAKES: &str = "Azurite took 32 messages at a time on 8 connections: with 64 it cannot delete them within \
     the 30 seconds for which they stay hidden.";

/// Whether the bare HTTP server is compared: it is a ceiling for single requests only.
pub fn has_ceiling(kind: WorkloadKind) -> bool {
    !matches!(
        kind,
        WorkloadKind::Batch
            | WorkloadKind::Page
            | WorkloadKind::AnyOf
            | WorkloadKind::Filter
            | WorkloadKind::Scan
            | WorkloadKind::Take32
    )
}

/// Whether latency is also measured at half load, where it is the server's own and not that of a queue.
pub fn has_half_load(workload: &Workload) -> bool {
    workload.connections == MANY_CONNECTIONS
        && workload.shape.partitions == 1
        && matches!(workload.kind, WorkloadKind::Read | WorkloadKind::Insert | WorkloadKind::Mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_repeat_nothing_and_ask_nothing_impossible() {
        for plan in [usual(USUAL), usual(TableShape::one_partition(QUICK_ENTITIES)), full()] {
            let mut seen = std::collections::HashSet::new();
            for workload in plan {
                assert!(seen.insert(workload), "{workload:?} twice");
                workload.check().unwrap();
                // Batches must fill whole partitions.
                assert_eq!(workload.shape.entities / workload.shape.partitions % 100, 0);
            }
        }
    }

    #[test]
    fn every_workload_is_in_the_usual_plan() {
        let plan = usual(USUAL);
        for kind in WorkloadKind::all() {
            assert!(plan.iter().any(|workload| workload.kind == kind), "{}", kind.name());
        }
    }
}
