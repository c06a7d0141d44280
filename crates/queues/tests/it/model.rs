//! Random operations against a plain model of a queue, on both engines, with restarts of the service between them.

use std::sync::Arc;
use std::time::Duration;

use engine::Engine;
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine_local::{LocalEngine, LocalOptions};
use protocol::ErrorCode;
use protocol::queue::{MessageId, PopReceipt};
use queues::QueueService;

use crate::support::{FAMILIES, SECOND, Setup, setup_on};

#[derive(Clone, Debug)]
struct ModelMessage {
    id: MessageId,
    text: String,
    visible: u64,
    expires: u64,
    dequeue_count: u32,
    receipt: PopReceipt,
}

#[derive(Default)]
struct Model {
    /// In the order of their visibility.
    messages: Vec<ModelMessage>,
    /// Receipts that no longer work.
    stale: Vec<(MessageId, PopReceipt)>,
}

impl Model {
    fn expire(&mut self, now: u64) {
        self.messages.retain(|message| message.expires > now);
        self.messages.sort_by_key(|message| (message.visible, message.id));
    }

    fn visible(&self, now: u64, count_max: usize) -> Vec<ModelMessage> {
        self.messages.iter().filter(|message| message.visible <= now).take(count_max).cloned().collect()
    }
}

async fn run(make: impl Fn(Arc<FakeClock>) -> Arc<dyn Engine>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let clock = Arc::new(FakeClock::default());
    let mut s = setup_on(make(clock.clone()), clock.clone()).await;
    let mut model = Model::default();
    for step in 0..400 {
        if random.u8(..) < 60 {
            clock.advance(Duration::from_millis(random.u64(..2_000)));
        }
        model.expire(now(&clock));
        one_step(&s, &mut model, &mut random, step).await;
        match random.u8(..) {
            0..4 => s.service = QueueService::new(s.engine.clone(), clock.clone()),
            4..12 => while s.service.sweep(random.bool()).await.unwrap() {},
            _ => {}
        }
        model.expire(now(&clock));
        assert_eq!(s.count().await, model.messages.len() as u64, "seed {seed}, step {step}");
    }
}

/// The service's moments are a few ticks ahead of a clock that stands still.
fn now(clock: &FakeClock) -> u64 {
    use engine::env::Clock as _;
    clock.now_ticks() + 1_000
}

async fn one_step(s: &Setup, model: &mut Model, random: &mut fastrand::Rng, step: u32) {
    // So that moments that are close together are told apart by the model too.
    s.clock.advance(Duration::from_micros(200));
    let now = now(&s.clock);
    model.expire(now);
    match random.u8(..100) {
        0..35 => {
            let text = format!("{step} {}", "x".repeat(random.usize(..200)));
            let visibility = random.u32(..3) * SECOND;
            let time_to_live = random.bool().then(|| random.u32(3..8) * SECOND);
            let put = s.put_with(&text, visibility, time_to_live).await;
            let (visible, expires) = (put.visible.ticks(), put.expires.ticks());
            let receipt = put.receipt;
            model.messages.push(ModelMessage {
                id: put.id,
                text,
                visible,
                expires,
                dequeue_count: 0,
                receipt,
            });
        }
        35..60 => {
            let (count_max, seconds) = (random.usize(1..=32), random.u32(1..4));
            let taken = s.get(count_max, seconds).await;
            let expected = model.visible(now, count_max);
            let ids = |ids: Vec<MessageId>| ids;
            assert_eq!(
                ids(taken.iter().map(|message| message.id).collect()),
                ids(expected.iter().map(|message| message.id).collect()),
            );
            for (taken, old) in taken.iter().zip(expected) {
                assert_eq!(taken.text, old.text);
                assert_eq!(taken.dequeue_count, old.dequeue_count + 1);
                model.stale.push((old.id, old.receipt));
                let message = model.messages.iter_mut().find(|message| message.id == old.id).unwrap();
                message.visible = taken.visible.ticks();
                message.receipt = taken.receipt;
                message.dequeue_count += 1;
            }
        }
        60..70 => {
            let count_max = random.usize(1..=32);
            let expected: Vec<String> =
                model.visible(now, count_max).into_iter().map(|message| message.text).collect();
            assert_eq!(s.peek_texts(count_max).await, expected);
        }
        70..83 => {
            if model.messages.is_empty() {
                return;
            }
            let index = random.usize(..model.messages.len());
            let ModelMessage { id, receipt, .. } = model.messages.remove(index);
            s.service.delete_message(&s.account, &s.queue, id, receipt).await.unwrap();
            model.stale.push((id, receipt));
        }
        83..93 => {
            if model.messages.is_empty() {
                return;
            }
            let index = random.usize(..model.messages.len());
            let text = random.bool().then(|| format!("updated {step}"));
            let visibility = random.u32(..4) * SECOND;
            let message = &mut model.messages[index];
            let bytes = text.clone().map(Into::into);
            let updated = s.service.update_message(
                &s.account,
                &s.queue,
                message.id,
                message.receipt,
                bytes,
                visibility,
            );
            let updated = updated.await.unwrap();
            model.stale.push((message.id, message.receipt));
            (message.receipt, message.visible) = (updated.receipt, updated.visible.ticks());
            message.text = text.unwrap_or(message.text.clone());
        }
        93..98 => {
            if let Some((id, receipt)) = random.choice(&model.stale).copied() {
                let deleted = s.service.delete_message(&s.account, &s.queue, id, receipt).await;
                assert_eq!(deleted.unwrap_err().code, ErrorCode::MessageNotFound);
            }
        }
        _ => {
            s.service.clear_messages(&s.account, &s.queue).await.unwrap();
            model.stale.extend(model.messages.drain(..).map(|message| (message.id, message.receipt)));
        }
    }
}

#[tokio::test]
async fn random_operations_agree_with_the_model_in_memory() {
    for seed in 0..60 {
        run(|clock| Arc::new(MemoryEngine::new(FAMILIES, clock)), seed).await;
    }
}

#[tokio::test]
async fn random_operations_agree_with_the_model_on_disk() {
    for seed in 100..108 {
        let directory = tempfile::tempdir().unwrap();
        let open = |clock: Arc<FakeClock>| -> Arc<dyn Engine> {
            let mut options = LocalOptions::new(FAMILIES, clock);
            // Fold often, so that messages are met in the tree too.
            options.recent_bytes_max = 64 * 1024;
            Arc::new(LocalEngine::open(directory.path(), options).unwrap())
        };
        run(open, seed).await;
    }
}
