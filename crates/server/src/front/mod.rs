//! The road that all services share: address, authenticate, authorize, run, respond; and the state that all requests
//! share.
//!
//! Knows no service by name: each service implements [`service::Service`].

pub(crate) mod accounts;
pub(crate) mod address;
pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod cors;
pub(crate) mod current;
pub(crate) mod handle;
pub mod head;
pub(crate) mod header_names;
pub(crate) mod heavy;
pub(crate) mod line_rate;
pub mod refusal;
pub(crate) mod request_id;
pub(crate) mod respond;
pub mod service;
pub mod service_operations;
pub(crate) mod throttle;
pub(crate) mod watch;
pub(crate) mod welcome;

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use engine::env::Clock;
use observe::Targets;
use protocol::auth::BearerValidator;
use protocol::common::{AccountName, DateTime};

use accounts::Accounts;
use audit::Audit;
use current::Current;
use head::RequestHead;
use heavy::HeavyLane;
use request_id::RequestIds;
use throttle::Throttle;
use watch::Watch;
use welcome::ExplorerAddress;

use crate::http::connections::{Connections, network};
use crate::http::fairness::InFlight;
use crate::http::header_names::AUTHORIZATION;
use crate::http::limits::Limits;
use crate::http::memory_pool::{Holder, MemoryPool};

/// The configuration of a front end.
pub struct FrontConfig {
    pub accounts: Arc<Current<Accounts>>,
    /// Which bearer tokens are accepted; none when absent.
    pub tokens: Option<Arc<Current<BearerValidator>>>,
    /// Callers use HTTPS with a proxy in front of us, which uses plain HTTP with us.
    pub is_behind_tls_proxy: bool,
    pub limits: Limits,
    /// Scalability targets to enforce, if any.
    pub targets: Option<Targets>,
}

/// The state that all requests to all services share.
pub struct Front {
    pub(crate) accounts: Arc<Current<Accounts>>,
    pub(crate) tokens: Option<Arc<Current<BearerValidator>>>,
    pub(crate) is_behind_tls_proxy: bool,
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) request_ids: RequestIds,
    /// The connections that may still be opened, to whichever service.
    pub(crate) connections: Arc<Connections>,
    pub(crate) in_flight: InFlight,
    pub(crate) head_memory: MemoryPool,
    pub(crate) payload_memory: MemoryPool,
    pub(crate) answer_memory: MemoryPool,
    pub(crate) heavy_lane: HeavyLane,
    pub(crate) audit: Audit,
    /// `None`: no scalability targets.
    pub(crate) throttle: Option<Throttle>,
    pub(crate) watch: Watch,
    /// For people who open the address of a service in a browser. Empty without an admin port.
    pub(crate) explorer: OnceLock<ExplorerAddress>,
    /// Makes numbers from holders' names that nobody else can predict.
    holders: RandomState,
}

impl Front {
    pub fn new(config: FrontConfig, clock: Arc<dyn Clock>) -> Arc<Front> {
        Front::watched(config, clock, Watch::default())
    }

    /// The same, with these to see its requests.
    pub fn watched(config: FrontConfig, clock: Arc<dyn Clock>, watch: Watch) -> Arc<Front> {
        let limits = config.limits;
        Arc::new(Front {
            accounts: config.accounts,
            tokens: config.tokens,
            is_behind_tls_proxy: config.is_behind_tls_proxy,
            clock,
            request_ids: RequestIds::new(),
            connections: Connections::new(limits.connection_count_max),
            in_flight: InFlight::new(limits.requests_in_flight_max),
            head_memory: MemoryPool::new(limits.head_bytes_max),
            payload_memory: MemoryPool::new(limits.payload_bytes_max),
            answer_memory: MemoryPool::new(limits.answer_bytes_max),
            heavy_lane: HeavyLane::new(),
            audit: Audit::default(),
            throttle: config.targets.map(Throttle::new),
            watch,
            explorer: OnceLock::new(),
            holders: RandomState::new(),
            limits,
        })
    }

    /// Whose memory a request uses. Everybody who has the same shared access signature is one caller, wherever they are.
    /// Otherwise a caller is known by its address.
    pub(crate) fn holder(&self, account: &AccountName, head: &RequestHead<'_>) -> Holder {
        let account = self.holders.hash_one(account.as_str());
        let caller = match head.query.raw("sig") {
            Some(signature) if !head.parts.has(AUTHORIZATION) => self.holders.hash_one((account, signature)),
            _ => self.holders.hash_one((account, network(head.connection.peer))),
        };
        Holder { account, caller }
    }

    /// Whose memory a head uses before it is known for which account it is.
    pub(crate) fn stranger(&self, peer: IpAddr) -> Holder {
        let caller = self.holders.hash_one(network(peer));
        Holder { account: caller, caller }
    }

    pub(crate) fn now(&self) -> DateTime {
        DateTime::from_ticks(self.clock.now_ticks())
    }
}
