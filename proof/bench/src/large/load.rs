//! Loads the large table through transactions, and notes how fast each tenth of it went.

use std::path::Path;
use std::time::Duration;

use loadgen::Error;
use loadgen::table::Filled;
use loadgen::workload::TableShape;

use crate::compare;
use crate::machine;
use crate::results::{LoadStep, Run, fact};
use crate::system::System;

const STEP_COUNT: u64 = 10;
/// On the disk, with the commit log and the tables that are compared: measured 220 for ten million, which the page shows.
const ENTITY_DISK_BYTES: u64 = 300;
const GB: f64 = 1e9;

/// An error if the disk has less than one and a half times the room that the entities need.
pub fn check_space(shape: TableShape, directory: &Path) -> Result<(), Error> {
    match machine::free_bytes(directory) {
        Some(free) => has_room(shape.entities, free),
        None => Ok(()),
    }
}

fn has_room(entities: u64, free_bytes: u64) -> Result<(), Error> {
    let wanted = entities * ENTITY_DISK_BYTES * 3 / 2;
    if free_bytes >= wanted {
        return Ok(());
    }
    Err(format!(
        "{} entities need {:.0} GB of free disk space, of which a third is reserve, and there are {:.0} GB: name a \
         directory on a larger disk with --data, or a smaller number with --entities",
        TableShape::one_partition(entities).label(),
        wanted as f64 / GB,
        free_bytes as f64 / GB
    )
    .into())
}

pub fn run(
    server: &System,
    table: &str,
    shape: TableShape,
    time_max: Duration,
    run: &mut Run,
) -> Result<(), Error> {
    eprintln!("loading {} entities", shape.label());
    let mut steps = Steps::new(shape.entities / STEP_COUNT);
    let rate = compare::fill_watched(server, table, shape, time_max, |filled| steps.see(filled))?;
    run.load_steps = steps.done;
    run.facts.insert(fact::LOAD_ENTITIES_PER_SECOND.to_owned(), rate);
    if let Some(bytes) = server.memory_bytes("VmHWM:") {
        run.facts.insert(fact::LOAD_PEAK_BYTES.to_owned(), bytes as f64);
    }
    Ok(())
}

/// Cuts the loading into steps of so many entities, as nearly as the reports of progress allow.
struct Steps {
    length: u64,
    /// Where the current step began.
    begun: Filled,
    done: Vec<LoadStep>,
}

impl Steps {
    fn new(length: u64) -> Steps {
        Steps { length, begun: Filled { entities: 0, took: Duration::ZERO }, done: Vec::new() }
    }

    fn see(&mut self, filled: &Filled) {
        let end = (self.done.len() as u64 + 1) * self.length;
        if filled.entities < end {
            return;
        }
        let (entities, took) = (filled.entities - self.begun.entities, filled.took - self.begun.took);
        self.begun = Filled { ..*filled };
        // A report may come long after the end of a step, or of several.
        while (self.done.len() as u64 + 1) * self.length <= filled.entities {
            let entities_per_second = entities as f64 / took.as_secs_f64().max(1e-9);
            let end = (self.done.len() as u64 + 1) * self.length;
            self.done.push(LoadStep { entities: end, entities_per_second });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_rates_of_their_own() {
        let mut steps = Steps::new(100);
        for (seconds, entities) in [(1, 60), (2, 110), (3, 190), (4, 200), (10, 400), (11, 500)] {
            steps.see(&Filled { entities, took: Duration::from_secs(seconds) });
        }
        let done: Vec<(u64, f64)> =
            steps.done.iter().map(|step| (step.entities, step.entities_per_second)).collect();
        let slow = 200.0 / 6.0;
        assert_eq!(done, [(100, 55.0), (200, 45.0), (300, slow), (400, slow), (500, 100.0)]);
    }

    #[test]
    fn a_small_disk_is_refused_in_one_sentence() {
        assert!(has_room(1_000_000, 450_000_000).is_ok());
        let sentence = has_room(100_000_000, 44_000_000_000).unwrap_err().to_string();
        assert!(
            sentence.starts_with("100M entities need 45 GB") && sentence.contains("are 44 GB"),
            "{sentence}"
        );
        assert_eq!(sentence.lines().count(), 1);
    }
}
