//! The large table in the report: how its loading went, what its size costs, and how it was dropped.

use std::fmt::Write;

use loadgen::workload::WorkloadKind;

use crate::plan::MANY_CONNECTIONS;
use crate::report::{mebibytes, thousands};
use crate::results::{Run, fact};
use loadgen::workload::TableShape;

pub fn table(run: &Run) -> String {
    let mut text = String::new();
    if !run.load_steps.is_empty() {
        text.push_str("\n| loaded | entities/s since the line before |\n| ---: | ---: |\n");
        for step in &run.load_steps {
            let loaded = TableShape::one_partition(step.entities).label();
            let _ = writeln!(text, "| {loaded} | {} |", thousands(step.entities_per_second));
        }
    }
    if let Some(bytes) = run.fact(fact::LOAD_PEAK_BYTES) {
        let _ = writeln!(text, "\nMemory at the peak of the loading: {}.", mebibytes(bytes));
    }
    text.push_str(&growths(run));
    if let Some(drop_ms) = run.fact(fact::DROP_MS) {
        let _ = write!(text, "\nDelete Table was answered after {drop_ms:.1} ms.");
        let swept = run.fact(fact::SWEEP_S).zip(run.fact(fact::SWEPT_DISK_BYTES));
        if let Some((seconds, bytes)) = swept {
            let _ = write!(
                text,
                " In the {} s after that the server removed the rows, a few hundred at a time; their space is free for new \
                 rows then. The files had {} afterwards.",
                thousands(seconds),
                mebibytes(bytes)
            );
        }
        text.push('\n');
    }
    text
}

/// What the largest table costs, relative to the smallest. Nothing for runs on tables of one size.
fn growths(run: &Run) -> String {
    let sized = [
        (WorkloadKind::Read, MANY_CONNECTIONS),
        (WorkloadKind::Page, 1),
        (WorkloadKind::Insert, MANY_CONNECTIONS),
    ];
    let lines: Vec<String> =
        sized.iter().filter_map(|(kind, connections)| growth(run, *kind, *connections)).collect();
    if run.load_steps.is_empty() || lines.is_empty() {
        return String::new();
    }
    format!(
        "\n| workload | from | to | CPU per request | p50 |\n| --- | ---: | ---: | ---: | ---: |\n{}",
        lines.concat()
    )
}

fn growth(run: &Run, kind: WorkloadKind, connections: usize) -> Option<String> {
    let cells = || {
        let has_sample = run.cells.iter().filter(|cell| cell.sample.is_some());
        has_sample.filter(|cell| cell.workload == kind.name() && cell.connections == connections)
    };
    let small = cells().min_by_key(|cell| cell.entities)?;
    let large = cells().max_by_key(|cell| cell.entities).filter(|large| large.entities > small.entities)?;
    let (from, to) = (small.sample.as_ref()?, large.sample.as_ref()?);
    Some(format!(
        "| {} | {} | {} | {:.2} × | {:.2} × |\n",
        kind.what(),
        small.shape().label(),
        large.shape().label(),
        to.server_cpu_us? / from.server_cpu_us?,
        to.p50_us / from.p50_us
    ))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::report::tests::{example, sample};
    use crate::results::{Cell, LoadStep};
    use crate::targets::HUGE_ENTITIES;

    /// Point reads that cost twice as much, after a loading in two steps, before a drop.
    pub fn huge() -> Run {
        let mut run = example().main.unwrap();
        run.plan = "huge".to_owned();
        let small = Cell { entities: 10_000, ..run.cells.remove(0) };
        let mut costly = sample(30_000.0);
        costly.server_cpu_us = Some(24.68);
        let large = Cell {
            entities: HUGE_ENTITIES,
            sample: Some(costly),
            half_load: None,
            not_measured: None,
            workload: small.workload.clone(),
            ..small
        };
        run.cells = vec![small, large];
        run.load_steps = [(50_000_000, 150_000.0), (HUGE_ENTITIES, 120_000.0)]
            .map(|(entities, entities_per_second)| LoadStep { entities, entities_per_second })
            .into();
        let facts = [(fact::DROP_MS, 1.5), (fact::SWEEP_S, 600.0), (fact::SWEPT_DISK_BYTES, 1048576.0)];
        run.facts.extend(facts.map(|(name, figure)| (name.to_owned(), figure)));
        run
    }

    #[test]
    fn loading_size_and_drop_are_told_and_nothing_that_was_not_measured() {
        let text = table(&huge());
        for part in [
            "| 50M | 150,000 |\n| 100M | 120,000 |",
            "| point read | 10k | 100M | 2.00 × | 1.00 × |",
            "answered after 1.5 ms. In the 600 s after that",
            "The files had 1.0 MiB afterwards.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("page of 1,000") && !text.contains("peak of the loading"), "{text}");
        assert_eq!(table(&example().main.unwrap()), "");
    }
}
