//! The fault engine does what its handle says.

use std::sync::Arc;
use std::time::Duration;

use engine::conformance::merge;
use engine::env::{Clock, FakeClock, SystemClock};
use engine::faults::{FaultEngine, Faults};
use engine::memory::MemoryEngine;
use engine::{CommitError, ReadError, TableId};

use crate::support::*;

async fn faulty() -> (Arc<FaultEngine>, Faults, TableId) {
    let inner = MemoryEngine::new(merge, Arc::new(FakeClock::default()));
    let (engine, faults) = FaultEngine::new(Arc::new(inner));
    let table = table(&engine, "t").await;
    (Arc::new(engine), faults, table)
}

#[tokio::test]
async fn reads_fail_as_often_as_told() {
    let (engine, faults, table) = faulty().await;
    faults.fail_reads(2, ReadError::Busy);
    faults.fail_reads(1, ReadError::Storage("x".to_owned()));
    assert_eq!(get(&*engine, table, "r").await, Err(ReadError::Busy));
    assert_eq!(all(&*engine, table).await, Err(ReadError::Busy));
    assert_eq!(get(&*engine, table, "r").await, Err(ReadError::Storage("x".to_owned())));
    assert_eq!(get(&*engine, table, "r").await, Ok(None));
    assert_eq!(faults.read_count(), 4);
}

#[tokio::test]
async fn failed_writes_change_nothing_and_lost_answers_change_everything() {
    let (engine, faults, table) = faulty().await;
    faults.fail_writes(1, CommitError::Busy);
    faults.fail_writes(1, CommitError::Unknown("x".to_owned()));
    assert_eq!(commit(&*engine, put(table, "p", "r", "v")).await, Err(CommitError::Busy));
    let outcome = commit(&*engine, put(table, "p", "r", "v")).await;
    assert_eq!(outcome, Err(CommitError::Unknown("x".to_owned())));
    assert_eq!(value(&*engine, table, "r").await, None);
    faults.lose_write_answers(1);
    let outcome = commit(&*engine, put(table, "p", "r", "v")).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert_eq!(value(&*engine, table, "r").await.as_deref(), Some("v"));
    // An answer that is a refusal is not lost: nothing happened.
    faults.lose_write_answers(1);
    assert_eq!(commit(&*engine, put(TableId(99), "p", "r", "v")).await, Err(CommitError::TableGone));
    assert_eq!(faults.write_count(), 5);
}

#[tokio::test]
async fn held_calls_wait_until_released() {
    let (engine, faults, table) = faulty().await;
    faults.hold_writes();
    let task = tokio::spawn({
        let engine = engine.clone();
        async move { commit(&*engine, put(table, "p", "r", "v")).await }
    });
    faults.until_writes_held(1).await;
    assert_eq!(value(&*engine, table, "r").await, None);
    faults.release_writes();
    task.await.unwrap().unwrap();

    faults.hold_reads();
    let task = tokio::spawn({
        let engine = engine.clone();
        async move { value(&*engine, table, "r").await }
    });
    faults.until_reads_held(1).await;
    assert!(!task.is_finished());
    faults.release_reads();
    assert_eq!(task.await.unwrap().as_deref(), Some("v"));
}

#[tokio::test]
async fn delays_delay() {
    let (engine, faults, table) = faulty().await;
    let clock = SystemClock::new();
    faults.delay_reads(Duration::from_millis(10));
    faults.delay_writes(Duration::from_millis(10));
    commit(&*engine, put(table, "p", "r", "v")).await.unwrap();
    get(&*engine, table, "r").await.unwrap();
    assert!(clock.monotonic() >= Duration::from_millis(20));
}
