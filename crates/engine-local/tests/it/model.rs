//! Random commits on disk and in memory must give the same versions, errors and rows.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{Budget, Commit, Effect, Engine, Expect, KeyRange, Op, TableId, Version};
use engine_local::LocalEngine;

use crate::support::*;

const NAMES: [&str; 8] = ["", "a", "a\u{0}", "b", "\u{1}", "\u{e000}", "\u{1f600}", "ab"];

struct Random(fastrand::Rng);

impl Random {
    fn name(&mut self) -> &'static str {
        NAMES[self.0.usize(0..NAMES.len())]
    }

    fn commit(&mut self, tables: &[TableId], versions: &[Version]) -> Commit {
        let mut rows = NAMES.to_vec();
        self.0.shuffle(&mut rows);
        let count = 1 + self.0.usize(0..4);
        let mut op = |row: &&str| {
            let expect = match self.0.u8(0..6) {
                0 => Expect::Absent,
                1 => Expect::Present,
                2 if !versions.is_empty() => {
                    // Mostly recent versions, which have a chance to match.
                    let back = self.0.usize(0..versions.len().min(8));
                    Expect::Exactly(versions[versions.len() - 1 - back])
                }
                _ => Expect::Any,
            };
            let length = if self.0.u8(0..20) == 0 { 900 } else { self.0.usize(0..40) };
            let value = Bytes::from(vec![self.0.alphanumeric() as u8; length]);
            let effect = match self.0.u8(0..6) {
                0 => Effect::Delete,
                1 => Effect::CheckOnly,
                2 | 3 => Effect::Merge(value),
                _ => Effect::Put(value),
            };
            Op { row: (*row).into(), expect, effect }
        };
        let ops = rows[..count].iter().map(&mut op).collect();
        Commit { table: tables[self.0.usize(0..tables.len())], partition: self.name().into(), ops }
    }

    fn ranges(&mut self) -> Vec<KeyRange> {
        let count = 1 + self.0.usize(0..3);
        let mut range = || {
            let (a, b, partition) = (self.name(), self.name(), self.name());
            let mut bound = |name| match self.0.u8(0..3) {
                0 => Bound::Included(name),
                1 => Bound::Excluded(name),
                _ => Bound::Unbounded,
            };
            let (low, high) = (bound(a), bound(b));
            match self.0.u8(0..4) {
                0 => KeyRange::from_key(a, b),
                1 => KeyRange::partitions(low, high),
                _ => KeyRange::rows(partition, low, high),
            }
        };
        KeyRange::normalize((0..count).map(|_| range()).collect())
    }
}

async fn run(seed: u64) {
    let mut random = Random(fastrand::Rng::with_seed(seed));
    let clock = Arc::new(FakeClock::default());
    let directory = tempfile::tempdir().unwrap();
    // With everything recent, a part, or nothing; with a folding thread and without.
    let mut options = options(&clock);
    options.recent_bytes_max = [options.recent_bytes_max, 3_000, 1][seed as usize % 3];
    options.folds_between_groups = seed.is_multiple_of(2);
    // With a cache that holds no changed page, and a sync after every write.
    if seed % 5 == 3 {
        (options.cache_bytes_max, options.unsynced_bytes_max) = (0, 1);
    }
    let mut local = LocalEngine::open(directory.path(), options.clone()).unwrap();
    let memory = MemoryEngine::new(FAMILIES, clock.clone());
    let mut tables = vec![TableId::SETTINGS];
    // Dropped tables too: both engines must refuse commits to them.
    let mut known = tables.clone();
    let mut versions = Vec::new();

    for step in 0..250 {
        let context = format!("seed {seed}, step {step}");
        match random.0.u8(0..20) {
            0 => {
                let name = random.name();
                let (a, b) = (
                    local.create_table(N, name, "x".into()).await,
                    memory.create_table(N, name, "x".into()).await,
                );
                assert_eq!(a, b, "{context}");
                tables.extend(a.iter());
                known.extend(a);
            }
            1 => {
                let name = random.name();
                let (a, b) = (local.drop_table(N, name).await, memory.drop_table(N, name).await);
                assert_eq!(a, b, "{context}");
                tables.retain(|table| Ok(*table) != a);
            }
            2 => clock.advance(Duration::from_micros(random.0.u64(0..1000))),
            3 => clock.step_back(Duration::from_micros(random.0.u64(0..1000))),
            4 if random.0.u8(0..5) == 0 => {
                drop(local);
                // The version of a commit that wrote nothing is not remembered. Move the clock past it, and both
                // engines agree again.
                clock.advance(Duration::from_secs(1));
                local = LocalEngine::open(directory.path(), options.clone()).unwrap();
            }
            5..=7 => {
                let table = tables[random.0.usize(0..tables.len())];
                let (ranges, rows_examined_max) = (random.ranges(), random.0.u64(0..20));
                let budget = Budget { rows_examined_max, ..GENEROUS };
                let (mut a, mut b) = (Collect::default(), Collect::default());
                let resume = local.scan(table, &ranges, budget, &mut a).await;
                assert_eq!(resume, memory.scan(table, &ranges, budget, &mut b).await, "{context}");
                assert_eq!(a.0, b.0, "{context}");
            }
            _ => {
                let work = random.commit(&known, &versions);
                let (a, b) = (local.commit(work.clone()).await, memory.commit(work).await);
                assert_eq!(a, b, "{context}");
                versions.extend(a);
            }
        }
    }
    tables.push(TableId::CATALOGUE);
    for table in tables {
        assert_eq!(all(&local, table).await, all(&memory, table).await, "seed {seed}");
    }
}

#[tokio::test]
async fn local_and_memory_agree_on_random_work() {
    for seed in 0..12 {
        run(seed).await;
    }
}
