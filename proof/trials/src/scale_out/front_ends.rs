//! The front ends: real servers on one remote engine, started and killed by the trial.

use std::path::Path;

use super::ground::{FRONT_END_COUNT, Ground};
use crate::Error;
use crate::queue::door::Addresses;
use crate::victim::{Launch, Victim, panicked};

/// PostgreSQL's warning about a transaction that begins within another.
const NESTED_TRANSACTION: &str = "SQLSTATE 25001";

pub struct FrontEnds {
    launch: Launch,
    running: [Option<Victim>; FRONT_END_COUNT],
    /// What those that were killed had printed.
    words: Vec<String>,
}

impl FrontEnds {
    pub fn new(server: &Path, engine: &str) -> FrontEnds {
        let mut launch = Launch::new(server, Path::new(""));
        launch.engine = Some(engine.to_owned());
        // Several on one machine must not want the same admin port.
        launch.arguments = vec!["--no-admin".to_owned()];
        FrontEnds { launch, running: Default::default(), words: Vec::new() }
    }

    pub fn start_all(&mut self, ground: &Ground) -> Result<(), String> {
        (0..FRONT_END_COUNT).try_for_each(|front_end| self.start(front_end, ground))
    }

    pub fn start(&mut self, front_end: usize, ground: &Ground) -> Result<(), String> {
        let started = self.launch.start().map_err(|error: Error| error.to_string())?;
        let victim = started.map_err(|refusal| format!("a front end does not start: {}", refusal.words))?;
        ground.moved(front_end, Addresses { table: victim.addr(), queue: victim.queue_addr() });
        self.running[front_end] = Some(victim);
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(&mut self, front_end: usize) -> Result<(), String> {
        let Some(victim) = self.running[front_end].take() else { return Ok(()) };
        if victim.has_ended() {
            return Err(format!("front end {front_end} had ended by itself: {}", victim.finish()));
        }
        self.words.push(victim.finish());
        Ok(())
    }

    /// Ends all. An error if one had ended by itself or panicked.
    pub fn finish(&mut self) -> Result<(), String> {
        (0..FRONT_END_COUNT).try_for_each(|front_end| self.kill(front_end))?;
        if let Some(words) = self.words.iter().find(|words| panicked(words)) {
            return Err(format!("a front end panicked: {words}"));
        }
        match self.words.iter().any(|words| words.contains(NESTED_TRANSACTION)) {
            true => Err("two scans were in one session at once, so one of them saw an old view".to_owned()),
            false => Ok(()),
        }
    }

    /// Everything that they have printed.
    pub fn words(&self) -> String {
        self.words.join("\n----\n")
    }
}
