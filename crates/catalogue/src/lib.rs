//! What every service keeps beside its data: the names of its containers, their stored access policies, and the
//! account's service properties.
//!
//! A container is anything that a service gives a name to: a table, a queue, a blob container. Each is an engine table
//! with an id that is never reused. A [`Catalogue`] belongs to one service: in each service, the same account may have
//! a container of the same name, its own properties and its own CORS rules.
//! Promises: caches are bounded in number and age ([`CACHE_AGE_MAX`]), and changes made through this process take effect at
//! once. On an engine to which other processes write, nothing that a cache says is the last word: whoever finds nothing
//! under a cached id asks again ([`Catalogue::current_id`]), and policies are never looked up by one.
//! Leaves to others: which names are valid, what the payload beside a name means, and authorization.

mod account;
mod containers;
mod error;
mod name_cache;
mod policies;
mod properties;
pub mod record;
mod setting;

use std::sync::Arc;
use std::time::Duration;

use engine::env::Clock;
use engine::{Engine, Family, Namespace};
use protocol::auth::ServiceKind;
use protocol::common::AccountName;

use name_cache::NameCache;
use policies::PolicyCache;
use properties::RuleCache;

pub use account::AccountContent;
pub use error::{from_commit, from_read};
pub use name_cache::Ticket;
pub use record::Container;
pub use setting::Setting;

/// How long anything in a cache is used, since another process may have changed it: the one bound of all caches.
pub(crate) const CACHE_AGE_MAX: Duration = Duration::from_secs(1);

pub struct Catalogue {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    kind: &'static ServiceKind,
    family: Family,
    /// Other processes write to the engine too.
    is_shared: bool,
    names: NameCache,
    policies: PolicyCache,
    rules: RuleCache,
}

impl Catalogue {
    /// `family` is the engine's family that holds this service's containers.
    pub fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        kind: &'static ServiceKind,
        family: Family,
    ) -> Catalogue {
        Catalogue {
            engine,
            clock,
            kind,
            family,
            is_shared: false,
            names: NameCache::default(),
            policies: PolicyCache::default(),
            rules: RuleCache::default(),
        }
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_its_engine(self) -> Catalogue {
        Catalogue { is_shared: true, ..self }
    }

    /// Whether other processes write to the engine too.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn namespace<'a>(&self, account: &'a AccountName) -> Namespace<'a> {
        Namespace::new(self.family, account.as_str())
    }
}
