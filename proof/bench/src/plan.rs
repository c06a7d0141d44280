//! Which workloads a run has, in which order, and on which systems.

use loadgen::workload::{Action, Shape, Workload};

use crate::options::{Options, PlanName};
use crate::system::Kind;

pub const USUAL_ENTITIES: u64 = 100_000;
pub const SMALL_ENTITIES: u64 = 1_000;
const QUICK_ENTITIES: u64 = 2_000;
pub const MANY_CONNECTIONS: usize = 64;
const CONNECTIONS: [usize; 3] = [1, 16, 64];

pub const USUAL: Shape = Shape::one_partition(USUAL_ENTITIES);
pub const SCATTERED: Shape = Shape { entities: USUAL_ENTITIES, partitions: 100 };
/// Inserts begin with nothing.
pub const EMPTY: Shape = Shape::one_partition(0);

pub fn workloads(options: &Options) -> Vec<Workload> {
    let all = match options.plan {
        PlanName::Usual | PlanName::Quick => usual(usual_shape(options)),
        PlanName::Full => full(),
        // The large run has a plan of its own; this is its rest.
        PlanName::Large => Vec::new(),
        PlanName::LargeFull => every(Shape::one_partition(options.large_entities)),
    };
    let is_wanted = |workload: &Workload| !options.is_partial() || options.only.contains(&workload.action);
    all.into_iter().filter(is_wanted).collect()
}

/// The size of the tables that most is measured on.
pub fn usual_shape(options: &Options) -> Shape {
    match options.plan {
        PlanName::Quick => Shape::one_partition(QUICK_ENTITIES),
        _ => USUAL,
    }
}

/// What the targets are about, and the other workloads once. Those that only read come first.
fn usual(shape: Shape) -> Vec<Workload> {
    let scattered = Shape { partitions: if shape == USUAL { SCATTERED.partitions } else { 10 }, ..shape };
    [
        (Action::Read, shape, 64),
        (Action::ReadMiss, shape, 64),
        (Action::AnyOf, shape, 64),
        (Action::Page, shape, 1),
        (Action::Filter, shape, 1),
        (Action::Scan, shape, 1),
        (Action::Upsert, shape, 64),
        (Action::Merge, shape, 64),
        (Action::HotMerge, shape, 64),
        (Action::Read, scattered, 64),
        (Action::Insert, EMPTY, 64),
        (Action::Batch, EMPTY, 64),
        (Action::Mix, shape, 64),
    ]
    .map(|(action, shape, connections)| Workload { action, shape, connections })
    .to_vec()
}

fn full() -> Vec<Workload> {
    let mut all = every(Shape::one_partition(SMALL_ENTITIES));
    all.extend(every(USUAL));
    // The targets are about these, too.
    let missing: Vec<Workload> =
        usual(USUAL).into_iter().filter(|workload| !all.contains(workload)).collect();
    all.extend(missing);
    all
}

fn every(shape: Shape) -> Vec<Workload> {
    let with = |action: Action| CONNECTIONS.map(|connections| Workload { action, shape, connections });
    Action::ALL.into_iter().flat_map(with).collect()
}

/// Those that are there and wanted; a bare HTTP server is a ceiling for single requests only.
pub fn systems(options: &Options) -> Vec<Kind> {
    let is_wanted = |kind: &Kind| match options.systems.is_empty() {
        true => !(options.plan == PlanName::Quick && *kind == Kind::Azurite),
        false => options.systems.contains(kind),
    };
    match options.plan {
        PlanName::Large | PlanName::LargeFull => vec![Kind::Durable],
        _ => Kind::ALL.into_iter().filter(is_wanted).collect(),
    }
}

pub fn has_ceiling(action: Action) -> bool {
    !matches!(action, Action::Batch | Action::Page | Action::AnyOf | Action::Filter | Action::Scan)
}

/// Whether latency is also measured at half load, where it is the server's and not that of a queue.
pub fn has_half_load(workload: &Workload) -> bool {
    workload.connections == MANY_CONNECTIONS
        && workload.shape.partitions == 1
        && matches!(workload.action, Action::Read | Action::Insert | Action::Mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_repeat_nothing_and_ask_nothing_impossible() {
        for plan in [usual(USUAL), usual(Shape::one_partition(QUICK_ENTITIES)), full()] {
            let mut seen = std::collections::HashSet::new();
            for workload in plan {
                assert!(seen.insert(workload), "{workload:?} twice");
                workload.check().unwrap();
                // Batches fill partitions whole.
                assert_eq!(workload.shape.entities / workload.shape.partitions % 100, 0);
            }
        }
    }

    #[test]
    fn every_workload_is_in_the_usual_plan() {
        let plan = usual(USUAL);
        for action in Action::ALL {
            assert!(plan.iter().any(|workload| workload.action == action), "{}", action.name());
        }
    }
}
