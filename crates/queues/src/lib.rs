//! The shape of the crate `queues`, until its rules are here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalogue::Catalogue;
use engine::env::Clock;
use engine::{Engine, Family};
use protocol::common::{AccountName, DateTime, Metadata, StoredPolicy};
use protocol::queue::{KIND, MessageId, PopReceipt, QueueName};
use protocol::{ErrorCode, ServiceError};

pub struct QueueService {
    catalogue: Catalogue,
}

pub enum Created {
    New,
    Existed,
}

pub struct ListQuery<'a> {
    pub prefix: &'a str,
    pub marker: Option<&'a str>,
    pub queue_count_max: usize,
}

pub struct QueuePage {
    pub queues: Vec<ListedQueue>,
    pub next: Option<String>,
}

pub struct ListedQueue {
    pub name: String,
    pub metadata: Metadata,
}

pub struct QueueProperties {
    pub metadata: Metadata,
    pub message_count: u64,
}

pub struct NewMessage {
    pub text: Bytes,
    pub visibility: Duration,
    pub time_to_live: Option<Duration>,
}

pub struct PutMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub receipt: PopReceipt,
    pub visible: DateTime,
}

pub struct TakenMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub receipt: PopReceipt,
    pub visible: DateTime,
    pub dequeue_count: u32,
    pub text: Bytes,
}

pub struct PeekedMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub dequeue_count: u32,
    pub text: Bytes,
}

pub struct UpdatedMessage {
    pub receipt: PopReceipt,
    pub visible: DateTime,
}

fn none<T>() -> Result<T, ServiceError> {
    Err(ErrorCode::QueueNotFound.into())
}

impl QueueService {
    pub fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>) -> QueueService {
        QueueService { catalogue: Catalogue::new(engine, clock, &KIND, Family(1)) }
    }

    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub async fn create_queue(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: &Metadata,
    ) -> Result<Created, ServiceError> {
        none()
    }

    pub async fn delete_queue(&self, _: &AccountName, _: &QueueName) -> Result<(), ServiceError> {
        none()
    }

    pub async fn list_queues(&self, _: &AccountName, _: &ListQuery<'_>) -> Result<QueuePage, ServiceError> {
        none()
    }

    pub async fn properties(&self, _: &AccountName, _: &QueueName) -> Result<QueueProperties, ServiceError> {
        none()
    }

    pub async fn set_metadata(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: &Metadata,
    ) -> Result<(), ServiceError> {
        none()
    }

    pub async fn policies(
        &self,
        _: &AccountName,
        _: &QueueName,
    ) -> Result<Arc<[StoredPolicy]>, ServiceError> {
        none()
    }

    pub async fn set_policies(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: &[StoredPolicy],
    ) -> Result<(), ServiceError> {
        none()
    }

    pub async fn put_message(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: NewMessage,
    ) -> Result<PutMessage, ServiceError> {
        none()
    }

    pub async fn get_messages(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: usize,
        _: Duration,
    ) -> Result<Vec<TakenMessage>, ServiceError> {
        none()
    }

    pub async fn peek_messages(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: usize,
    ) -> Result<Vec<PeekedMessage>, ServiceError> {
        none()
    }

    pub async fn update_message(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: MessageId,
        _: PopReceipt,
        _: Option<Bytes>,
        _: Duration,
    ) -> Result<UpdatedMessage, ServiceError> {
        none()
    }

    pub async fn delete_message(
        &self,
        _: &AccountName,
        _: &QueueName,
        _: MessageId,
        _: PopReceipt,
    ) -> Result<(), ServiceError> {
        none()
    }

    pub async fn check_queue(&self, _: &AccountName, _: &QueueName) -> Result<(), ServiceError> {
        none()
    }

    pub async fn clear_messages(&self, _: &AccountName, _: &QueueName) -> Result<(), ServiceError> {
        none()
    }
}
