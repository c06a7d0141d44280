//! What every service keeps beside its data: the names of its containers, their stored access policies, and the
//! account's service properties.
//!
//! A container is whatever a service gives a name to: a table, a queue, a blob container. Each is an engine table with an
//! id that is never reused. A [`Catalogue`] belongs to one service: the same account may have a container of the same
//! name, other properties and other CORS rules in each.
//! Promises: what is remembered is bounded in number and age, and changes made through this process count at once.
//! Leaves to others: what a name may look like, what the payload beside it means, and who may ask.

mod containers;
mod error;
mod name_cache;
mod policies;
mod properties;
mod setting;

use std::sync::Arc;

use engine::env::Clock;
use engine::{Engine, Family, Namespace};
use protocol::auth::ServiceKind;
use protocol::common::AccountName;

use name_cache::NameCache;
use policies::PolicyCache;
use properties::RuleCache;

pub use containers::Container;
pub use error::from_read;
pub use name_cache::Ticket;
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
    /// `family` is where the engine keeps the containers of that service.
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
