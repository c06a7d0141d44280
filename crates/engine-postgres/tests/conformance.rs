//! The conformance suite on a real PostgreSQL: with one front end, and with two that answer every other call.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::Engine;
use engine::conformance::run_all;
use engine::wrapper::{Wrapped, Wrapper};
use engine_postgres::PostgresEngine;

use support::{Database, postgres_or_skip};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_front_end_keeps_the_contract() {
    let Some(server) = postgres_or_skip("one_front_end_keeps_the_contract") else { return };
    run_all(async |families, clock| {
        let database = Database::fresh(&server);
        let engine = PostgresEngine::connect(database.options(families, clock)).await.unwrap();
        Arc::new(engine) as Arc<dyn Engine>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_front_ends_keep_the_contract_together() {
    let Some(server) = postgres_or_skip("two_front_ends_keep_the_contract_together") else { return };
    run_all(async |families, clock| {
        let database = Database::fresh(&server);
        let mut engines = Vec::new();
        for _ in 0..2 {
            let options = database.options(families, clock.clone());
            engines.push(PostgresEngine::connect(options).await.unwrap());
        }
        Arc::new(Wrapped(Alternating { engines, next: AtomicUsize::new(0) })) as Arc<dyn Engine>
    })
    .await;
}

/// Every call goes to another front end than the call before.
struct Alternating {
    engines: Vec<PostgresEngine>,
    next: AtomicUsize,
}

#[async_trait::async_trait]
impl Wrapper for Alternating {
    fn inner(&self) -> &dyn Engine {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        &self.engines[turn % self.engines.len()]
    }

    async fn close(&self) {
        for engine in &self.engines {
            engine.close().await;
        }
    }
}
