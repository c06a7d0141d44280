//! Every engine keeps every promise, bare and behind a fault engine with no faults.

use std::sync::Arc;

use engine::conformance::run_all;
use engine::env::Clock;
use engine::faults::FaultEngine;
use engine::memory::MemoryEngine;
use engine::{Engine, Families};

use crate::outsider::Outsider;

async fn memory(families: Families, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
    Arc::new(MemoryEngine::new(families, clock))
}

async fn without_faults(families: Families, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
    Arc::new(FaultEngine::new(memory(families, clock).await).0)
}

async fn outsider(families: Families, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
    Outsider::connect(families, clock).await
}

#[tokio::test]
async fn memory_keeps_every_promise() {
    run_all(memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_every_promise_on_many_threads() {
    run_all(memory).await;
}

#[tokio::test]
async fn memory_behind_no_faults_keeps_every_promise() {
    run_all(without_faults).await;
}

#[tokio::test]
async fn an_engine_from_outside_the_crate_keeps_every_promise() {
    run_all(outsider).await;
}
