//! The engine on disk keeps every promise, bare and behind a fault engine with no faults.

use std::sync::{Arc, Mutex};

use engine::Engine;
use engine::conformance::run_all;
use engine::faults::FaultEngine;
use engine_local::{LocalEngine, LocalOptions};
use tempfile::TempDir;

/// Each engine has a directory of its own, which is removed at the end of the suite.
async fn check(change: fn(&mut LocalOptions), wrap: fn(LocalEngine) -> Arc<dyn Engine>) {
    let directories: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());
    run_all(async |families, clock| {
        let directory = tempfile::tempdir().unwrap();
        let mut options = LocalOptions::new(families, clock);
        change(&mut options);
        let engine = LocalEngine::open(directory.path(), options).unwrap();
        directories.lock().unwrap().push(directory);
        wrap(engine)
    })
    .await;
}

fn bare(engine: LocalEngine) -> Arc<dyn Engine> {
    Arc::new(engine)
}

#[tokio::test]
async fn local_keeps_every_promise() {
    check(|_| {}, bare).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_keeps_every_promise_on_many_threads() {
    check(|_| {}, bare).await;
}

#[tokio::test]
async fn local_behind_no_faults_keeps_every_promise() {
    check(|_| {}, |engine| Arc::new(FaultEngine::new(Arc::new(engine)).0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_keeps_every_promise_while_it_folds_all_the_time() {
    check(|options| options.recent_bytes_max = 1, bare).await;
}

#[tokio::test]
async fn local_keeps_every_promise_when_it_folds_between_groups() {
    check(|options| (options.folds_between_groups, options.recent_bytes_max) = (true, 1000), bare).await;
}
