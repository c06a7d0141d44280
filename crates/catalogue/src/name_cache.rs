//! A cache of container names and their ids, so that an operation needs one trip to the engine instead of two.
//!
//! Promises: the cache is bounded in number and age. A name dropped through this process is forgotten before its drop
//! is answered. When a name is dropped through another process, the next commit fails, because the engine checks the
//! container's id; reads that find nothing ask again (`Catalogue::current_id`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use crate::CACHE_AGE_MAX;
use crate::record::ContainerIds;

const REMEMBERED_COUNT_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct NameCache {
    /// Ordered: comparing a few names costs less than hashing one.
    tables: RwLock<BTreeMap<Box<[u8]>, Remembered>>,
    /// Names that are being created or dropped. Their ids may change at any moment, so they are not cached.
    changing: Mutex<Vec<Box<str>>>,
    /// Counts calls of `forget`. The result of a look-up that began before one must not be cached.
    forgotten_count: AtomicU64,
}

#[derive(Clone, Copy)]
struct Remembered {
    ids: ContainerIds,
    at: Duration,
}

/// The cache's state before a look-up. It is compared when the result is cached or relied upon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

impl NameCache {
    pub fn find(&self, key: impl AsRef<[u8]>, now: Duration) -> Option<ContainerIds> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .get(key.as_ref())
            .filter(|found| now.saturating_sub(found.at) <= CACHE_AGE_MAX)
            .map(|found| found.ids)
    }

    pub fn ticket(&self) -> Ticket {
        Ticket(self.forgotten_count.load(Ordering::Acquire))
    }

    pub(crate) fn remember(&self, key: &str, ids: ContainerIds, now: Duration, ticket: Ticket) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.forgotten_count.load(Ordering::Acquire) != ticket.0
            || changing.iter().any(|name| **name == *key)
        {
            return;
        }
        drop(changing);
        if tables.len() >= REMEMBERED_COUNT_MAX {
            tables.clear();
        }
        tables.insert(key.as_bytes().into(), Remembered { ids, at: now });
    }

    /// Forgets the name now, and again when the guard is dropped. The guard also covers a change whose caller stops
    /// waiting.
    pub(crate) fn changing<'a>(&'a self, key: &'a str) -> Changing<'a> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner).push(key.into());
        self.forget(key);
        Changing { cache: self, key }
    }

    pub fn forget(&self, key: &str) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        self.forgotten_count.fetch_add(1, Ordering::AcqRel);
        tables.remove(key.as_bytes());
    }
}

/// A name that is being created or dropped.
pub(crate) struct Changing<'a> {
    cache: &'a NameCache,
    key: &'a str,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut changing = self.cache.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = changing.iter().position(|name| **name == *self.key) {
            changing.swap_remove(place);
        }
        drop(changing);
        self.cache.forget(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::TableId;

    fn ids(id: u64) -> ContainerIds {
        ContainerIds { id: TableId(id), identity: TableId(id) }
    }

    #[test]
    fn a_name_is_remembered_until_it_is_forgotten_or_old() {
        let cache = NameCache::default();
        let (now, id) = (Duration::from_secs(100), ids(17));
        cache.remember("a/t", id, now, cache.ticket());
        assert_eq!(cache.find("a/t", now), Some(id));
        assert_eq!(cache.find("b/t", now), None);
        assert_eq!(cache.find("a/t", now + CACHE_AGE_MAX + Duration::from_millis(1)), None);
        cache.forget("a/t");
        assert_eq!(cache.find("a/t", now), None);
    }

    #[test]
    fn a_change_that_nobody_waits_for_is_noticed_all_the_same() {
        let cache = NameCache::default();
        let before = cache.ticket();
        let changing = cache.changing("a/t");
        assert!(cache.ticket() != before);
        cache.remember("a/t", ids(17), Duration::ZERO, cache.ticket());
        assert_eq!(cache.find("a/t", Duration::ZERO), None, "not remembered while it changes");
        cache.remember("a/u", ids(18), Duration::ZERO, cache.ticket());
        assert_eq!(cache.find("a/u", Duration::ZERO), Some(ids(18)), "other names are not affected");
        drop(changing);
        assert_eq!(cache.find("a/t", Duration::ZERO), None);
        cache.remember("a/t", ids(17), Duration::ZERO, cache.ticket());
        assert_eq!(cache.find("a/t", Duration::ZERO), Some(ids(17)));
    }

    #[test]
    fn an_answer_older_than_a_drop_is_not_remembered() {
        let cache = NameCache::default();
        let ticket = cache.ticket();
        cache.forget("a/t");
        cache.remember("a/t", ids(17), Duration::ZERO, ticket);
        assert_eq!(cache.find("a/t", Duration::ZERO), None);
    }
}
