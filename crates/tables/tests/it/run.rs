//! The random walk: does the same to the service and to the model, and compares them after every step.
//!
//! A failure prints its seed. `LAZULITE_SEED=<seed>` repeats exactly that walk; `LAZULITE_SEEDS=<count>` runs more.

use std::sync::Arc;
use std::time::Duration;

use engine::env::{Clock, FakeClock};
use engine::memory::MemoryEngine;
use engine::{Engine, Share};
use engine_local::{LocalEngine, LocalOptions};
use fastrand::Rng;
use protocol::common::AccountName;
use protocol::table::filter::{self, Schema};
use protocol::table::model::TableName;
use protocol::{ErrorCode, ServiceError};
use tables::{EntityQuery, EntityView, TableQuery, TableService, Transaction};

use super::condition;
use super::convert::{Collected, read, service_change};
use super::model::{Change, Model, Units};
use super::random::{self, TABLES, pick};

const STEPS_PER_SEED: usize = 600;

/// A service that can be closed and opened again, and the model to compare it with.
struct World {
    account: AccountName,
    clock: Arc<FakeClock>,
    directory: Option<tempfile::TempDir>,
    service: TableService,
    model: Model,
    last_version: u64,
    commit_count: usize,
}

impl World {
    fn new(on_disk: bool) -> World {
        let clock = Arc::new(FakeClock::default());
        let directory = on_disk.then(|| tempfile::tempdir().unwrap());
        let service = open(directory.as_ref(), clock.clone());
        let account = AccountName::parse("devstoreaccount1").unwrap();
        World {
            account,
            clock,
            directory,
            service,
            model: Model::default(),
            last_version: 0,
            commit_count: 0,
        }
    }

    async fn step(&mut self, random: &mut Rng) {
        match random.u32(..1000) {
            0..46 => self.create_table(random).await,
            46..50 => self.delete_table(random).await,
            50..60 => self.list_tables(random).await,
            60..80 => self.move_clock(random),
            80..83 => self.reopen().await,
            83..450 => {
                let (partition, _) = random::key(random);
                let table = pick(random, &TABLES);
                let change = random::change(random, &self.model, table, partition);
                self.commit(table, &[change]).await;
            }
            450..700 => {
                let table = pick(random, &TABLES);
                let changes = random::batch(random, &self.model, table);
                self.commit(table, &changes).await;
            }
            700..800 => self.get(random).await,
            _ => self.query(random).await,
        }
    }

    async fn create_table(&mut self, random: &mut Rng) {
        let name = pick(random, &TABLES);
        let answer = self.service.create_table(&self.account, &TableName::parse(name).unwrap()).await;
        assert_eq!(answer.map_err(|error| error.code), self.model.create_table(name), "create {name}");
    }

    async fn delete_table(&mut self, random: &mut Rng) {
        let name = pick(random, &TABLES);
        let answer = self.service.delete_table(&self.account, &TableName::parse(name).unwrap()).await;
        assert_eq!(answer.map_err(|error| error.code), self.model.delete_table(name), "delete {name}");
    }

    async fn list_tables(&mut self, random: &mut Rng) {
        let table_count_max = random.u32(1..4);
        let mut names = Vec::new();
        let mut resume = None;
        loop {
            let query = TableQuery { filter: None, resume, table_count_max, share: Share::COMMON };
            let page = self.service.query_tables(&self.account, query).await.unwrap();
            assert!(page.names.len() <= table_count_max as usize);
            names.extend(page.names);
            resume = page.next;
            if resume.is_none() {
                break;
            }
        }
        let expected: Vec<_> = self.model.tables.values().map(|table| table.name.clone()).collect();
        assert_eq!(names, expected, "the list of tables");
    }

    /// Moves the clock forward or back. Versions must grow all the same.
    fn move_clock(&mut self, random: &mut Rng) {
        let by = Duration::from_nanos(random.u64(..10_000_000) * 100);
        if random.bool() { self.clock.advance(by) } else { self.clock.step_back(by) }
    }

    async fn reopen(&mut self) {
        if self.directory.is_none() {
            return;
        }
        self.service.close().await;
        // The old engine must release the directory before the new one opens it.
        self.service = open(None, self.clock.clone());
        self.service = open(self.directory.as_ref(), self.clock.clone());
    }

    async fn commit(&mut self, table: &str, changes: &[Change]) {
        let mut transaction = Transaction::new();
        for (index, change) in changes.iter().enumerate() {
            if let Err(error) = transaction.push(service_change(change)) {
                assert_eq!(Model::validate(changes), Err((error.code, index)), "{changes:?}");
                return;
            }
        }
        assert_eq!(Model::validate(changes), Ok(()), "{changes:?}");
        let name = TableName::parse(table).unwrap();
        let answer = self.service.commit(&self.account, &name, transaction).await;
        let judged = self.model.judge(table, changes);
        match (answer, judged) {
            (Ok(version), Ok(())) => {
                assert!(version.ticks() > self.last_version, "a version came twice");
                self.last_version = version.ticks();
                self.commit_count += 1;
                self.model.apply(table, changes, version.ticks());
            }
            (Err(ServiceError { code, operation, .. }), Err(expected)) => {
                assert_eq!((code, operation), expected, "{table} {changes:?}");
            }
            (answer, judged) => panic!("{table} {changes:?}: {answer:?}, but {judged:?}"),
        }
    }

    async fn get(&mut self, random: &mut Rng) {
        let (partition, row) = random::key(random);
        let table = pick(random, &TABLES);
        let name = TableName::parse(table).unwrap();
        let answer = self.service.get_entity(&self.account, &name, partition, row).await;
        let Some(expected) = self.model.table(table) else {
            assert_eq!(answer.err().map(|error| error.code), Some(ErrorCode::TableNotFound));
            return;
        };
        let found = answer
            .unwrap()
            .map(|stored| read(&EntityView::open(partition, row, stored.version, &stored.value).unwrap()));
        assert_eq!(found, expected.rows.get(&(Units::of(partition), Units::of(row))).cloned());
    }

    /// Checks all pages of a random query, with a random page size, against the model's answer.
    async fn query(&mut self, random: &mut Rng) {
        let table = pick(random, &TABLES);
        let filter = (random.u8(..10) > 0).then(|| random::filter(random));
        let text = filter.as_ref().map(condition::Condition::text).unwrap_or_default();
        let entity_count_max = pick(random, &[1, 2, 3, 7, 1000]);
        let name = TableName::parse(table).unwrap();
        let (mut found, mut resume) = (Vec::new(), None);
        loop {
            let parsed =
                filter::parse(&text, Schema::Entities).unwrap_or_else(|error| panic!("{text}: {error}"));
            let query =
                EntityQuery { filter: parsed, within: None, resume, entity_count_max, share: Share::COMMON };
            let mut page = Collected(Vec::new());
            let end = self.service.query_entities(&self.account, &name, query, &mut page).await;
            let Some(end) = self.known(table, end) else { return };
            assert!(page.0.len() <= entity_count_max as usize);
            found.extend(page.0);
            let Some(next) = end.next else { break };
            resume = Some((next.partition.into(), next.row.into()));
        }
        let rows = &self.model.table(table).expect("known").rows;
        let expected: Vec<_> = rows
            .iter()
            .map(|((partition, row_key), row)| (partition.text(), row_key.text(), row.clone()))
            .filter(|(partition, row_key, row)| {
                filter.as_ref().is_none_or(|filter| filter.holds(partition, row_key, row))
            })
            .collect();
        assert_eq!(found, expected, "{table} $filter={text} in pages of {entity_count_max}");
    }

    /// The answer; `None` when the service says that the table does not exist and the model agrees.
    fn known<T>(&self, table: &str, answer: Result<T, ServiceError>) -> Option<T> {
        match (answer, self.model.table(table)) {
            (Ok(answer), Some(_)) => Some(answer),
            (Err(error), None) if error.code == ErrorCode::TableNotFound => None,
            (Err(error), _) => panic!("{table}: {error}"),
            (Ok(_), None) => panic!("{table} does not exist, yet it was queried"),
        }
    }
}

fn open(directory: Option<&tempfile::TempDir>, clock: Arc<FakeClock>) -> TableService {
    let clock: Arc<dyn Clock> = clock;
    let engine: Arc<dyn Engine> = match directory {
        Some(directory) => {
            let options = LocalOptions::new(tables::FAMILIES, clock.clone());
            Arc::new(LocalEngine::open(directory.path(), options).unwrap_or_else(|error| panic!("{error}")))
        }
        None => Arc::new(MemoryEngine::new(tables::FAMILIES, clock.clone())),
    };
    TableService::new(engine, clock)
}

/// One walk. Prints its seed when it panics.
fn walk(seed: u64, on_disk: bool) {
    struct PrintSeed(u64);
    impl Drop for PrintSeed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!(
                    "seed {}: repeat with LAZULITE_SEED={} cargo test -p lazulite-tables --test it",
                    self.0, self.0
                );
            }
        }
    }
    let _print = PrintSeed(seed);
    let mut random = Rng::with_seed(seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(on_disk);
        for _ in 0..STEPS_PER_SEED {
            world.step(&mut random).await;
        }
        assert!(world.commit_count > STEPS_PER_SEED / 20, "a walk that stores next to nothing tests nothing");
        world.service.close().await;
    });
}

/// The seed in `LAZULITE_SEED`, or `LAZULITE_SEEDS` many, or as many as fit into an ordinary run.
fn seeds(usual_count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    match (number("LAZULITE_SEED"), number("LAZULITE_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (0..count.unwrap_or(usual_count)).collect(),
    }
}

#[test]
fn random_operations_agree_with_the_model_in_memory() {
    for seed in seeds(60) {
        walk(seed, false);
    }
}

#[test]
fn random_operations_agree_with_the_model_on_disk() {
    for seed in seeds(4) {
        walk(seed, true);
    }
}
