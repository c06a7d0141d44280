//! One round after another over one queue: an employee leaves, and workers die on the way.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::{Request, entity_json};

use super::worker::{CURRENT, DEPARTMENT, STEP_COUNT, poison_queue};
use super::{create, spawn_worker, wait};
use crate::Error;
use crate::queue::door::{self, Addresses, Door};

/// One round in this many has a message that kills its workers.
const POISON_INTERVAL: usize = 8;

pub struct Lane {
    pub queue: String,
    addresses: Addresses,
    door: Door,
    pub round_count: usize,
    pub kill_count: usize,
    pub suicide_count: usize,
    pub moved: BTreeSet<String>,
    pub poison: BTreeSet<String>,
}

impl Lane {
    pub fn new(number: usize, addresses: Addresses) -> Result<Lane, Error> {
        let queue = format!("moves-{number}");
        let mut door = Door::new(addresses);
        for queue in [queue.clone(), poison_queue(&queue)] {
            create(door.queue(&Request::put(&format!("/{queue}"))))?;
        }
        let (moved, poison) = (BTreeSet::new(), BTreeSet::new());
        let (round_count, kill_count, suicide_count) = (0, 0, 0);
        Ok(Lane { queue, addresses, door, round_count, kill_count, suicide_count, moved, poison })
    }

    /// Takes rounds until all are taken.
    pub fn run(mut self, next: &AtomicUsize, round_count: usize) -> Result<Lane, Error> {
        loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= round_count {
                return Ok(self);
            }
            self.round(round)?;
            self.round_count += 1;
        }
    }

    fn round(&mut self, round: usize) -> Result<(), Error> {
        let name = format!("employee-{round}");
        let is_poison = round % POISON_INTERVAL == POISON_INTERVAL - 1;
        if is_poison {
            self.poison.insert(name.clone());
        } else {
            let entity = entity_json(DEPARTMENT, &name, "\"Leaving\":true");
            create(self.door.table(&Request::post(&format!("/{CURRENT}")).json(&entity)))?;
            self.moved.insert(name.clone());
        }
        create(self.door.queue(&door::put(&self.queue, &name, 0, None)))?;
        for step in 1..=STEP_COUNT {
            self.kill_after(step)?;
        }
        // The last one works to the end, unless the message kills it.
        while wait(&mut spawn_worker(self.addresses, &self.queue, false)?)?.is_none() {
            self.suicide_count += 1;
        }
        Ok(())
    }

    /// Kills a worker after this step of its, or sees it die or finish before.
    fn kill_after(&mut self, last_step: usize) -> Result<(), Error> {
        let mut worker = spawn_worker(self.addresses, &self.queue, true)?;
        let mut stdin = worker.stdin.take().ok_or("standard input is piped")?;
        let stdout = worker.stdout.take().ok_or("standard output is piped")?;
        for line in BufReader::new(stdout).lines() {
            let step: usize = line?.strip_prefix("step ").and_then(|step| step.parse().ok()).unwrap_or(0);
            if step >= last_step {
                worker.kill()?;
                worker.wait()?;
                self.kill_count += 1;
                return Ok(());
            }
            stdin.write_all(b"\n")?;
            stdin.flush()?;
        }
        self.suicide_count += usize::from(wait(&mut worker)?.is_none());
        Ok(())
    }
}
