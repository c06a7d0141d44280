//! Tests the simulation itself: a correct engine passes, and a flawed one is caught.

use std::sync::Arc;

use async_trait::async_trait;
use engine::env::Clock;
use engine::memory::MemoryEngine;
use engine::wrapper::{Wrapped, Wrapper};
use engine::{Commit, CommitError, Engine, Expect, Version};

use super::*;

const SHORT: u64 = 1_500;

/// What is wrong with an engine's commits.
#[derive(Clone, Copy)]
enum Flaw {
    /// Any existing row satisfies an ETag condition.
    BrokenEtag,
    /// The second half of a batch may fail after the first has happened.
    SplitBatch,
    /// The same version is returned again now and then.
    VersionReuse,
}

struct Flawed {
    engine: MemoryEngine,
    flaw: Flaw,
    first: std::sync::OnceLock<Version>,
}

impl Flawed {
    fn make(flaw: Flaw, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
        let engine = MemoryEngine::new(tables::FAMILIES, clock);
        Arc::new(Wrapped(Flawed { engine, flaw, first: std::sync::OnceLock::new() }))
    }
}

#[async_trait]
impl Wrapper for Flawed {
    fn inner(&self) -> &dyn Engine {
        &self.engine
    }

    async fn commit(&self, mut commit: Commit) -> Result<Version, CommitError> {
        match self.flaw {
            Flaw::BrokenEtag => {
                for op in &mut commit.ops {
                    if let Expect::Exactly(_) = op.expect {
                        op.expect = Expect::Present;
                    }
                }
            }
            Flaw::SplitBatch if commit.ops.len() > 1 => {
                let rest = commit.ops.split_off(commit.ops.len() / 2);
                self.engine.commit(commit.clone()).await?;
                commit.ops = rest;
            }
            Flaw::SplitBatch => {}
            Flaw::VersionReuse => {
                let version = self.engine.commit(commit).await?;
                return Ok(*self.first.get_or_init(|| version));
            }
        }
        self.engine.commit(commit).await
    }
}

fn outcome(store: Store, client_count: usize, seed: u64) -> (Result<(), String>, Counts) {
    let mut counts = Counts::default();
    let world = World::new(store, client_count, Rng::with_seed(seed)).unwrap();
    (play(world, SHORT, &mut counts), counts)
}

#[test]
fn the_engine_in_memory_agrees_with_the_model() {
    for seed in 0..8 {
        let (outcome, counts) = outcome(Store::memory(), MEMORY_CLIENT_COUNT, seed);
        assert_eq!(outcome, Ok(()), "seed {seed}");
        assert!(counts.committed_count > SHORT / 20 && counts.read_count > SHORT / 20, "{counts:?}");
    }
}

#[test]
fn the_local_engine_agrees_with_the_model_through_crashes_and_faults() {
    let mut all = Counts::default();
    for seed in 0..8 {
        let (outcome, counts) = outcome(Store::local().unwrap(), LOCAL_CLIENT_COUNT, seed);
        assert_eq!(outcome, Ok(()), "seed {seed}");
        all.add(&counts);
    }
    assert!(all.crash_count > 0 && all.clock_set_back_count > 0, "{all:?}");
}

#[test]
fn a_seed_repeats_its_episode_exactly() {
    for seed in [3, 4] {
        let twice = [(); 2].map(|()| {
            let store = if seed % 2 == 0 { Store::local().unwrap() } else { Store::memory() };
            format!("{:?}", outcome(store, MEMORY_CLIENT_COUNT, seed))
        });
        assert_eq!(twice[0], twice[1]);
    }
}

#[test]
fn an_engine_with_a_flaw_is_caught() {
    let makes: [store::Make; 3] = [
        |clock| Flawed::make(Flaw::BrokenEtag, clock),
        |clock| Flawed::make(Flaw::SplitBatch, clock),
        |clock| Flawed::make(Flaw::VersionReuse, clock),
    ];
    for make in makes {
        let (outcome, _) = outcome(Store::Memory(make), MEMORY_CLIENT_COUNT, 1);
        assert!(outcome.is_err());
    }
}
