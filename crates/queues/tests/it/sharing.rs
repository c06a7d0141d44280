//! Many takers on one queue: in one process, and in two that share an engine.

use engine::Share;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::env::{Clock, FakeClock, SystemClock};
use engine::memory::MemoryEngine;
use engine_local::{LocalEngine, LocalOptions};
use protocol::common::{AccountName, Metadata};
use protocol::queue::QueueName;
use queues::{NewMessage, QueueService};

use crate::support::{FAMILIES, SECOND};

const MESSAGE_COUNT: usize = 2_000;
const WORKER_COUNT: usize = 64;

/// Puts messages while workers take and delete them; every message is taken exactly once.
async fn share(services: Vec<Arc<QueueService>>) {
    let account = AccountName::parse("account").unwrap();
    let queue = QueueName::parse("queue").unwrap();
    services[0].create_queue(&account, &queue, &Metadata::default()).await.unwrap();
    let taken_count = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for worker in 0..WORKER_COUNT {
        let service = services[worker % services.len()].clone();
        let (account, queue, taken_count) = (account.clone(), queue.clone(), taken_count.clone());
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for n in (worker..MESSAGE_COUNT).step_by(WORKER_COUNT) {
                let text = format!("{n}").into();
                let message = NewMessage { text, visibility: std::time::Duration::ZERO, time_to_live: None };
                service.put_message(&account, &queue, message).await.unwrap();
            }
            while taken_count.load(Ordering::Relaxed) < MESSAGE_COUNT {
                let count_max = 1 + worker % 32;
                let taken = service
                    .get_messages(&account, &queue, count_max, 600 * SECOND, Share::COMMON, &mut |_| true)
                    .await
                    .unwrap();
                taken_count.fetch_add(taken.len(), Ordering::Relaxed);
                tokio::task::yield_now().await;
                for message in taken {
                    assert_eq!(message.dequeue_count, 1);
                    service.delete_message(&account, &queue, message.id, message.receipt).await.unwrap();
                    ids.push(message.id);
                }
            }
            ids
        }));
    }
    let mut all = HashSet::new();
    for task in tasks {
        for id in task.await.unwrap() {
            assert!(all.insert(id), "{id} was held by two");
        }
    }
    assert_eq!(all.len(), MESSAGE_COUNT);
    for service in &services {
        assert_eq!(service.properties(&account, &queue).await.unwrap().message_count, 0);
    }
}

fn engine(directory: &tempfile::TempDir) -> (Arc<LocalEngine>, Arc<dyn Clock>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let options = LocalOptions::new(FAMILIES, clock.clone());
    (Arc::new(LocalEngine::open(directory.path(), options).unwrap()), clock)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_takers_never_hold_the_same_message() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(&directory);
    share(vec![Arc::new(QueueService::new(engine, clock))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_on_one_engine_never_hold_the_same_message() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(&directory);
    let service = || Arc::new(QueueService::new(engine.clone(), clock.clone()).sharing_its_engine());
    share(vec![service(), service()]).await;
}

#[tokio::test]
async fn a_queue_that_another_process_cleared_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, clock) = engine(&directory);
    let service = || QueueService::new(engine.clone(), clock.clone()).sharing_its_engine();
    let (one, other) = (service(), service());
    let (account, queue) = (AccountName::parse("account").unwrap(), QueueName::parse("queue").unwrap());
    one.create_queue(&account, &queue, &Metadata::default()).await.unwrap();
    let put = async |service: &QueueService| {
        let message =
            NewMessage { text: "text".into(), visibility: std::time::Duration::ZERO, time_to_live: None };
        service.put_message(&account, &queue, message).await.unwrap()
    };
    // Now the other one knows where the queue was.
    put(&other).await;
    one.clear_messages(&account, &queue).await.unwrap();
    let message = put(&one).await;
    other.delete_message(&account, &queue, message.id, message.receipt).await.unwrap();
}

#[tokio::test]
async fn a_message_is_there_when_its_put_was_answered_whatever_the_clocks_say() {
    let (behind, ahead) = (Arc::new(FakeClock::default()), Arc::new(FakeClock::default()));
    ahead.advance(SECOND / 2);
    let engine = Arc::new(MemoryEngine::new(FAMILIES, behind.clone()));
    let service =
        |clock: &Arc<FakeClock>| QueueService::new(engine.clone(), clock.clone()).sharing_its_engine();
    let (one, other) = (service(&behind), service(&ahead));
    let (account, queue) = (AccountName::parse("account").unwrap(), QueueName::parse("queue").unwrap());
    one.create_queue(&account, &queue, &Metadata::default()).await.unwrap();
    let get = || async {
        let mut fits = |_: &[u8]| true;
        other.get_messages(&account, &queue, 1, SECOND, Share::COMMON, &mut fits).await.unwrap().len()
    };
    let peek = || async {
        let mut fits = |_: &[u8]| true;
        other.peek_messages(&account, &queue, 1, Share::COMMON, &mut fits).await.unwrap().len()
    };
    // Now the other one has read further than the next message will stand.
    assert_eq!((get().await, peek().await), (0, 0));
    let message =
        NewMessage { text: "text".into(), visibility: std::time::Duration::ZERO, time_to_live: None };
    one.put_message(&account, &queue, message).await.unwrap();
    assert_eq!((peek().await, get().await), (1, 1));
}
