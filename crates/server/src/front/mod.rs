//! The road common to all services: address, authenticate, authorize, run, respond; and what all requests share.
//!
//! Knows no service by name: each brings an implementation of [`service::Service`].

pub mod accounts;
pub mod address;
pub mod audit;
pub mod authenticate;
pub mod cors;
pub mod current;
pub mod handle;
pub mod head;
pub mod header_names;
pub mod refusal;
pub mod request_id;
pub mod respond;
pub mod service;
pub mod service_operations;

use std::sync::Arc;

use engine::env::Clock;
use protocol::auth::BearerValidator;
use protocol::common::DateTime;
use tokio::sync::Semaphore;

use accounts::Accounts;
use audit::Audit;
use current::Current;
use request_id::RequestIds;

use crate::http::heavy::HeavyLane;
use crate::http::limits::Limits;
use crate::http::memory_pool::MemoryPool;

/// How a front end is set up.
pub struct FrontConfig {
    pub accounts: Arc<Current<Accounts>>,
    /// Whose bearer tokens are good; nobody's when absent.
    pub tokens: Option<Arc<Current<BearerValidator>>>,
    /// Callers speak HTTPS with a proxy in front of us, which speaks plain HTTP with us.
    pub is_behind_tls_proxy: bool,
    pub limits: Limits,
}

/// What all requests share, to whichever service they go.
pub struct Front {
    pub(crate) accounts: Arc<Current<Accounts>>,
    pub(crate) tokens: Option<Arc<Current<BearerValidator>>>,
    pub(crate) is_behind_tls_proxy: bool,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) request_ids: RequestIds,
    pub(crate) in_flight: Semaphore,
    pub(crate) payload_memory: MemoryPool,
    pub(crate) answer_memory: MemoryPool,
    pub(crate) heavy_lane: HeavyLane,
    pub(crate) audit: Audit,
}

impl Front {
    pub fn new(config: FrontConfig, clock: Arc<dyn Clock>) -> Arc<Front> {
        let limits = config.limits;
        Arc::new(Front {
            accounts: config.accounts,
            tokens: config.tokens,
            is_behind_tls_proxy: config.is_behind_tls_proxy,
            clock,
            request_ids: RequestIds::new(),
            in_flight: Semaphore::new(limits.requests_in_flight_max),
            payload_memory: MemoryPool::new(limits.payload_bytes_max),
            answer_memory: MemoryPool::new(limits.answer_bytes_max),
            heavy_lane: HeavyLane::new(),
            audit: Audit::default(),
            limits,
        })
    }

    pub(crate) fn now(&self) -> DateTime {
        DateTime::from_ticks(self.clock.now_ticks())
    }
}
