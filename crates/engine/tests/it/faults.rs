//! The fault engine does what its handle says.

use std::sync::Arc;
use std::time::Duration;

use engine::conformance::FAMILIES;
use engine::env::{Clock, FakeClock, SystemClock};
use engine::faults::{FaultEngine, Faults};
use engine::memory::MemoryEngine;
use engine::{
    Commit, CommitError, Effect, Engine, Expect, Family, Key, Namespace, Op, ReadError, Row, TableId, Version,
};

async fn commit(engine: &dyn Engine, table: TableId) -> Result<Version, CommitError> {
    let op = Op { row: "r".into(), expect: Expect::Any, effect: Effect::Put("v".into()) };
    engine.commit(Commit::one(table, "p", op)).await
}

async fn get(engine: &dyn Engine, table: TableId) -> Result<Option<Row>, ReadError> {
    engine.get(table, Key::new("p", "r")).await
}

async fn is_there(engine: &dyn Engine, table: TableId) -> bool {
    get(engine, table).await.unwrap().is_some()
}

async fn faulty() -> (Arc<FaultEngine>, Faults, TableId) {
    let inner = MemoryEngine::new(FAMILIES, Arc::new(FakeClock::default()));
    let (engine, faults) = FaultEngine::new(Arc::new(inner));
    let namespace = Namespace::new(Family::FIRST, "n");
    let table = engine.create_table(namespace, "t", "".into()).await.unwrap();
    (Arc::new(engine), faults, table)
}

#[tokio::test]
async fn reads_fail_as_often_as_told() {
    let (engine, faults, table) = faulty().await;
    faults.fail_reads(2, ReadError::Busy);
    faults.fail_reads(1, ReadError::Storage("x".to_owned()));
    assert_eq!(get(&*engine, table).await, Err(ReadError::Busy));
    assert!(matches!(engine.snapshot().await, Err(ReadError::Busy)));
    assert_eq!(get(&*engine, table).await, Err(ReadError::Storage("x".to_owned())));
    assert_eq!(get(&*engine, table).await, Ok(None));
    assert_eq!(faults.read_count(), 4);
}

#[tokio::test]
async fn failed_writes_change_nothing_and_lost_answers_change_everything() {
    let (engine, faults, table) = faulty().await;
    faults.fail_writes(1, CommitError::Busy);
    faults.fail_writes(1, CommitError::Unknown("x".to_owned()));
    assert_eq!(commit(&*engine, table).await, Err(CommitError::Busy));
    let outcome = commit(&*engine, table).await;
    assert_eq!(outcome, Err(CommitError::Unknown("x".to_owned())));
    assert!(!is_there(&*engine, table).await);
    faults.lose_write_answers(1);
    let outcome = commit(&*engine, table).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert!(is_there(&*engine, table).await);
    // An answer that is a refusal is not lost: nothing happened.
    faults.lose_write_answers(1);
    assert_eq!(commit(&*engine, TableId(99)).await, Err(CommitError::TableGone));
    assert_eq!(faults.write_count(), 5);
}

#[tokio::test]
async fn held_calls_wait_until_released() {
    let (engine, faults, table) = faulty().await;
    faults.hold_writes();
    let task = tokio::spawn({
        let engine = engine.clone();
        async move { commit(&*engine, table).await }
    });
    faults.until_writes_held(1).await;
    assert!(!is_there(&*engine, table).await);
    faults.release_writes();
    task.await.unwrap().unwrap();

    faults.hold_reads();
    let task = tokio::spawn({
        let engine = engine.clone();
        async move { is_there(&*engine, table).await }
    });
    faults.until_reads_held(1).await;
    assert!(!task.is_finished());
    faults.release_reads();
    assert!(task.await.unwrap());
}

#[tokio::test]
async fn delays_delay() {
    let (engine, faults, table) = faulty().await;
    let clock = SystemClock::new();
    faults.delay_reads(Duration::from_millis(10));
    faults.delay_writes(Duration::from_millis(10));
    commit(&*engine, table).await.unwrap();
    get(&*engine, table).await.unwrap();
    assert!(clock.monotonic() >= Duration::from_millis(20));
}
