//! Short concurrent histories over all front ends, one after another for as long as the fault lasts, each checked for
//! linearizability by the checker of the trial `histories`.
//!
//! A client of a history keeps to one front end, and stops after a few requests without an answer: each of them may
//! have happened at any later moment, which makes the search for an order longer and its result weaker.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;

use super::ground::Ground;
use crate::histories::checker::Verdict;
use crate::histories::partition::{Answer, ROW_COUNT_MAX, Tag};
use crate::histories::record::{self, Recorded};
use crate::histories::traffic::{self, Diary};

pub const TABLE: &str = "histories";
const PARTITION_COUNT: usize = 2;
const CLIENT_COUNT: usize = 4;
const CALLS_PER_CLIENT_MAX: usize = 20;
const UNKNOWN_PER_CLIENT_MAX: usize = 1;
const PAUSE_MS_MAX: u64 = 40;

/// What the histories have shown so far.
#[derive(Default)]
pub struct Histories {
    next_id: u32,
    last_version: Tag,
    pub history_count: u64,
    pub operation_count: usize,
    pub undecided_count: usize,
}

impl Histories {
    /// One history after another, until the trial stops them.
    pub fn run(&mut self, ground: &Ground, mut random: Rng) {
        self.next_id = self.next_id.max(1);
        while !ground.is_stopping() {
            if let Err(what) = self.history(ground, &mut random) {
                ground.broke(what);
            }
        }
    }

    fn history(&mut self, ground: &Ground, random: &mut Rng) -> Result<(), String> {
        let addresses: &[Mutex<SocketAddr>] = &ground.tables;
        let number = self.history_count;
        let shared = traffic::Ground {
            clock: &ground.clock,
            addresses,
            table: TABLE,
            partitions: (0..PARTITION_COUNT).map(|partition| format!("h{number}-p{partition}")).collect(),
            row_count: random.usize(2..=ROW_COUNT_MAX),
            next_id: AtomicU32::new(self.next_id),
            finished_count: AtomicUsize::new(0),
            tags: (0..PARTITION_COUNT * ROW_COUNT_MAX).map(|_| Mutex::default()).collect(),
        };
        let clients: Vec<traffic::Client<'_>> =
            (0..CLIENT_COUNT).map(|number| traffic::Client::new(&shared, number, random.fork())).collect();
        let diaries: Vec<Result<Diary, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(|| work(ground, client))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Diary, String>>| {
                thread.join().unwrap_or_else(|_| Err("a client gave up: see above".to_owned()))
            };
            threads.into_iter().map(join).collect()
        });
        let mut diaries = diaries.into_iter().collect::<Result<Vec<Diary>, String>>()?;
        let mut last = traffic::Client::new(&shared, CLIENT_COUNT, random.fork());
        last.look_at_everything()?;
        diaries.push(last.diary);
        self.next_id = shared.next_id.load(Ordering::Acquire);
        self.judge(diaries)
    }

    fn judge(&mut self, diaries: Vec<Diary>) -> Result<(), String> {
        self.history_count += 1;
        let mut partitions: Vec<Vec<Recorded>> = vec![Vec::new(); PARTITION_COUNT];
        for (partition, recorded) in diaries.into_iter().flat_map(|diary| diary.recorded) {
            self.operation_count += 1;
            partitions[partition].push(recorded);
        }
        for history in &partitions {
            match record::check(history).verdict {
                Verdict::Linearizable => {}
                Verdict::Undecided => self.undecided_count += 1,
                Verdict::Violation { longest } => {
                    let smallest = record::readable(&record::shrink(history));
                    return Err(format!(
                        "not linearizable: of {} operations at most {longest} fit into one order. \
                         The smallest part found that has no order:\n\n{smallest}\n",
                        history.len()
                    ));
                }
            }
        }
        let all = partitions.concat();
        let greatest = record::check_versions(&all, self.last_version);
        self.last_version =
            greatest.map_err(|wrong| format!("versions are wrong: {wrong}\n\n{}", record::readable(&all)))?;
        Ok(())
    }
}

/// One client's calls.
fn work(ground: &Ground, mut client: traffic::Client<'_>) -> Result<Diary, String> {
    let mut random = client.random.fork();
    for _ in 0..CALLS_PER_CLIENT_MAX {
        client.run(1)?;
        let is_unknown = |(_, recorded): &&(usize, Recorded)| recorded.operation.answer == Answer::Unknown;
        let unknown = client.diary.recorded.iter().filter(is_unknown).count();
        if unknown > UNKNOWN_PER_CLIENT_MAX || ground.is_stopping() {
            break;
        }
        std::thread::sleep(Duration::from_millis(random.u64(..PAUSE_MS_MAX)));
    }
    Ok(client.diary)
}
