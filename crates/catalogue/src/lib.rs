//! What every service keeps beside its data: the names of its containers, their stored access policies, and the
//! account's service properties.
//!
//! A container is anything that a service gives a name to: a table, a queue, a blob container. Each is an engine table
//! with an id that is never reused. A [`Catalogue`] belongs to one service: in each service, the same account may have
//! a container of the same name, its own properties and its own CORS rules.
//! Promises: caches are bounded in number and age, and changes made through this process take effect at once.
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

pub struct Catalogue {
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    kind: &'static ServiceKind,
    family: Family,
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
            names: NameCache::default(),
            policies: PolicyCache::default(),
            rules: RuleCache::default(),
        }
    }

    fn namespace<'a>(&self, account: &'a AccountName) -> Namespace<'a> {
        Namespace::new(self.family, account.as_str())
    }
}
