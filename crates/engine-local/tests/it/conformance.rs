//! Every engine keeps every promise, bare and behind a fault engine with no faults.

use std::sync::{Arc, Mutex};

use engine::conformance::{Make, run_all};
use engine::env::Clock;
use engine::faults::FaultEngine;
use engine::memory::MemoryEngine;
use engine::{Engine, MergeFn};
use engine_local::{LocalEngine, LocalOptions};
use tempfile::TempDir;

fn memory(merge: MergeFn, clock: Arc<dyn Clock>) -> Arc<dyn Engine> {
    Arc::new(MemoryEngine::new(merge, clock))
}

/// Each engine in a directory of its own; they are removed when the suite is through.
async fn with_local(run: impl AsyncFnOnce(Make<'_>)) {
    with_local_options(|_| {}, run).await;
}

async fn with_local_options(change: fn(&mut LocalOptions), run: impl AsyncFnOnce(Make<'_>)) {
    let directories: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());
    let make = |merge: MergeFn, clock: Arc<dyn Clock>| -> Arc<dyn Engine> {
        let directory = tempfile::tempdir().unwrap();
        let mut options = LocalOptions::new(merge, clock);
        change(&mut options);
        let engine = LocalEngine::open(directory.path(), options).unwrap();
        directories.lock().unwrap().push(directory);
        Arc::new(engine)
    };
    run(&make).await;
}

fn without_faults(inner: Arc<dyn Engine>) -> Arc<dyn Engine> {
    Arc::new(FaultEngine::new(inner).0)
}

#[tokio::test]
async fn memory_keeps_every_promise() {
    run_all(&memory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_every_promise_on_many_threads() {
    run_all(&memory).await;
}

#[tokio::test]
async fn memory_behind_no_faults_keeps_every_promise() {
    run_all(&|merge, clock| without_faults(memory(merge, clock))).await;
}

#[tokio::test]
async fn local_keeps_every_promise() {
    with_local(async |make| run_all(make).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_keeps_every_promise_on_many_threads() {
    with_local(async |make| run_all(make).await).await;
}

#[tokio::test]
async fn local_behind_no_faults_keeps_every_promise() {
    with_local(async |make| run_all(&|merge, clock| without_faults(make(merge, clock))).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_keeps_every_promise_while_it_folds_all_the_time() {
    with_local_options(|options| options.recent_bytes_max = 1, async |make| run_all(make).await).await;
}

#[tokio::test]
async fn local_keeps_every_promise_when_it_folds_between_groups() {
    let change: fn(&mut LocalOptions) =
        |options| (options.folds_between_groups, options.recent_bytes_max) = (true, 1000);
    with_local_options(change, async |make| run_all(make).await).await;
}
