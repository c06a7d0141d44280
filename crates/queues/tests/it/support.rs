//! A queue to test with, on an engine and a clock that the test sees.

use engine::Share;
use std::sync::Arc;
use std::time::Duration;

use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use engine::{Engine, Families};
use protocol::common::{AccountName, Metadata};
use protocol::queue::QueueName;
use protocol::{ErrorCode, ServiceError};
use queues::{FAMILY, NewMessage, PutMessage, QueueService, TakenMessage, VALUE_RULES};

pub const FAMILIES: Families = Families::NONE.with(FAMILY, VALUE_RULES);
pub const SECOND: Duration = Duration::from_secs(1);

pub struct Setup {
    pub engine: Arc<dyn Engine>,
    pub clock: Arc<FakeClock>,
    pub service: QueueService,
    pub account: AccountName,
    pub queue: QueueName,
}

/// A service with one empty queue.
pub async fn setup() -> Setup {
    let clock = Arc::new(FakeClock::default());
    setup_on(Arc::new(MemoryEngine::new(FAMILIES, clock.clone())), clock).await
}

pub async fn setup_on(engine: Arc<dyn Engine>, clock: Arc<FakeClock>) -> Setup {
    let service = QueueService::new(engine.clone(), clock.clone());
    let account = AccountName::parse("account").unwrap();
    let queue = QueueName::parse("queue").unwrap();
    service.create_queue(&account, &queue, &Metadata::default()).await.unwrap();
    Setup { engine, clock, service, account, queue }
}

impl Setup {
    pub async fn put(&self, text: &str) -> PutMessage {
        self.put_with(text, Duration::ZERO, Some(7 * 24 * 3600 * SECOND)).await
    }

    pub async fn put_with(
        &self,
        text: &str,
        visibility: Duration,
        time_to_live: Option<Duration>,
    ) -> PutMessage {
        let message = NewMessage { text: text.to_owned().into(), visibility, time_to_live };
        self.service.put_message(&self.account, &self.queue, message).await.unwrap()
    }

    pub async fn get(&self, count_max: usize, seconds: u32) -> Vec<TakenMessage> {
        self.service
            .get_messages(&self.account, &self.queue, count_max, seconds * SECOND, Share::COMMON, &mut |_| {
                true
            })
            .await
            .unwrap()
    }

    pub async fn get_texts(&self, count_max: usize, seconds: u32) -> Vec<String> {
        let texts = self.get(count_max, seconds).await;
        texts.iter().map(|message| String::from_utf8(message.text.to_vec()).unwrap()).collect()
    }

    pub async fn peek_texts(&self, count_max: usize) -> Vec<String> {
        let peeked = self
            .service
            .peek_messages(&self.account, &self.queue, count_max, Share::COMMON, &mut |_| true)
            .await
            .unwrap();
        peeked.iter().map(|message| String::from_utf8(message.text.to_vec()).unwrap()).collect()
    }

    pub async fn count(&self) -> u64 {
        self.service.properties(&self.account, &self.queue).await.unwrap().message_count
    }

    pub async fn delete(&self, message: &TakenMessage) -> Result<(), ErrorCode> {
        let deleted = self.service.delete_message(&self.account, &self.queue, message.id, message.receipt);
        deleted.await.map_err(|error| error.code)
    }
}

pub fn code<T>(result: Result<T, ServiceError>) -> ErrorCode {
    result.map(|_| ()).unwrap_err().code
}
