//! Entities near a limit, until they are seen smaller, or deleted, or not at all for a while.
//!
//! Their names are behind the advisor's lock, but [`KeptEntities`] is not: every read and write of an entity that is kept is
//! noticed, sampled or not, and clears it without waiting for anybody.
//!
//! Promises: at most [`ENTITY_COUNT_MAX`] are kept; the one that was seen longest ago leaves. As long as none is kept,
//! a request costs one relaxed load.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::name::{NAME_BYTES_MAX, Name, hash_of};
use super::{ENTITY_BYTES_NOTABLE, MEMORY, PROPERTIES_NOTABLE};

pub(super) const ENTITY_COUNT_MAX: usize = 32;

/// The hashes of the entities that are kept, each in the place of its slot; 0 where there is none.
#[derive(Default)]
pub(super) struct KeptEntities {
    /// A bit for each hash, so that most requests need no look at the hashes; bits that nobody needs any more go when
    /// somebody has the lock.
    bits: AtomicU64,
    hashes: [AtomicU64; ENTITY_COUNT_MAX],
}

impl KeptEntities {
    pub(super) fn is_empty(&self) -> bool {
        self.bits.load(Relaxed) == 0
    }

    /// Needs no lock: where somebody else puts another entity at the same time, that one stays.
    pub(super) fn remove(&self, place: [&str; 4]) {
        let hash = hash_of_entity(place);
        if self.bits.load(Relaxed) & bit(hash) == 0 {
            return;
        }
        if let Some(index) = self.find(hash) {
            let _ = self.hashes[index].compare_exchange(hash, 0, Relaxed, Relaxed);
        }
    }

    fn find(&self, hash: u64) -> Option<usize> {
        self.hashes.iter().position(|kept| kept.load(Relaxed) == hash)
    }

    /// For whoever has the lock.
    fn put(&self, index: usize, hash: u64) {
        self.hashes[index].store(hash, Relaxed);
        self.bits.fetch_or(bit(hash), Relaxed);
    }

    fn is_kept(&self, index: usize) -> bool {
        self.hashes[index].load(Relaxed) != 0
    }
}

fn bit(hash: u64) -> u64 {
    1 << (hash % 64)
}

fn hash_of_entity([account, table, partition, row]: [&str; 4]) -> u64 {
    hash_of(account, table, &[partition, row]).max(1)
}

/// Their names and sizes.
#[derive(Default)]
pub(super) struct Entities {
    slots: Vec<EntitySlot>,
}

struct EntitySlot {
    name: Name,
    bytes: u64,
    properties: u32,
    at: Duration,
}

/// An entity near a limit.
#[derive(Debug)]
pub(super) struct EntityReport<'a> {
    pub account: &'a str,
    pub table: &'a str,
    pub partition: &'a str,
    pub row: &'a str,
    pub bytes: u64,
    pub properties: u32,
}

/// How large an entity is, as far as a request tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub bytes: u64,
    pub properties: u32,
    /// A merge tells only what it changes: the entity has at least that.
    pub is_whole: bool,
}

impl Extent {
    pub(super) fn is_near_limit(&self) -> bool {
        self.bytes >= ENTITY_BYTES_NOTABLE || self.properties >= PROPERTIES_NOTABLE
    }
}

impl Entities {
    pub(super) fn bytes_max() -> usize {
        ENTITY_COUNT_MAX * (size_of::<EntitySlot>() + NAME_BYTES_MAX)
    }

    /// An entity near a limit was read or written.
    pub(super) fn put(&mut self, kept: &KeptEntities, place: [&str; 4], extent: Extent, now: Duration) {
        let Extent { bytes, properties, is_whole } = extent;
        let hash = hash_of_entity(place);
        if let Some(index) = kept.find(hash)
            && let Some(slot) = self.slots.get_mut(index)
        {
            let (old_bytes, old_properties) = if is_whole { (0, 0) } else { (slot.bytes, slot.properties) };
            (slot.bytes, slot.properties) = (bytes.max(old_bytes), properties.max(old_properties));
            slot.at = now;
            kept.put(index, hash);
            return;
        }
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(ENTITY_COUNT_MAX);
        }
        let free = (0..self.slots.len()).find(|index| !kept.is_kept(*index));
        let index = match free {
            Some(index) => index,
            None if self.slots.len() < ENTITY_COUNT_MAX => {
                self.slots.push(EntitySlot { name: Name::default(), bytes, properties, at: now });
                self.slots.len() - 1
            }
            None => match (0..self.slots.len()).min_by_key(|index| self.slots[*index].at) {
                Some(oldest) => oldest,
                None => return,
            },
        };
        let slot = &mut self.slots[index];
        slot.name.set(&place);
        (slot.bytes, slot.properties, slot.at) = (bytes, properties, now);
        kept.put(index, hash);
    }

    pub(super) fn forget(&self, kept: &KeptEntities, account: &str, table: &str) {
        for (slot, hash) in self.slots.iter().zip(&kept.hashes) {
            if slot.name.account() == account && slot.name.table().eq_ignore_ascii_case(table) {
                hash.store(0, Relaxed);
            }
        }
    }

    /// Lets those go that were seen too long ago, and makes requests cheap again when none is left.
    pub(super) fn refresh(&self, kept: &KeptEntities, now: Duration) {
        let mut bits = 0;
        for (slot, hash) in self.slots.iter().zip(&kept.hashes) {
            if now.saturating_sub(slot.at) > MEMORY {
                hash.store(0, Relaxed);
            }
            match hash.load(Relaxed) {
                0 => {}
                hash => bits |= bit(hash),
            }
        }
        kept.bits.store(bits, Relaxed);
    }

    pub(super) fn report<'a>(
        &'a self,
        kept: &'a KeptEntities,
        now: Duration,
    ) -> impl Iterator<Item = EntityReport<'a>> {
        let slots = self.slots.iter().enumerate().filter(|(index, _)| kept.is_kept(*index));
        let fresh = slots.filter(move |(_, slot)| now.saturating_sub(slot.at) <= MEMORY);
        fresh.map(|(_, slot)| EntityReport {
            account: slot.name.account(),
            table: slot.name.table(),
            partition: slot.name.partition(),
            row: slot.name.row(),
            bytes: slot.bytes,
            properties: slot.properties,
        })
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let names: usize = self.slots.iter().map(|slot| slot.name.held_bytes()).sum();
        self.slots.capacity() * size_of::<EntitySlot>() + names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Extent = Extent { bytes: 1 << 20, properties: 3, is_whole: true };

    #[test]
    fn an_entity_that_became_small_is_forgotten_and_so_is_an_old_one() {
        let (kept, mut entities) = (KeptEntities::default(), Entities::default());
        let long = "k".repeat(5000);
        for number in 0..1000 {
            let partition = format!("{number}{long}");
            entities.put(&kept, ["a", "t", &partition, &long], LARGE, Duration::from_secs(number));
        }
        assert!(entities.held_bytes() <= Entities::bytes_max());
        let now = Duration::from_secs(1000);
        assert_eq!(entities.report(&kept, now).count(), ENTITY_COUNT_MAX);
        kept.remove(["a", "t", &format!("999{long}"), &long]);
        kept.remove(["a", "t", "other", &long]);
        assert_eq!(entities.report(&kept, now).count(), ENTITY_COUNT_MAX - 1);
        // The free place is used first.
        entities.put(&kept, ["a", "t", "new", "r"], LARGE, now);
        assert_eq!(entities.report(&kept, now).count(), ENTITY_COUNT_MAX);
        assert_eq!(entities.report(&kept, now + MEMORY).count(), 1);
        assert!(!kept.is_empty());
        entities.refresh(&kept, now + MEMORY);
        assert!(!kept.is_empty());
        entities.forget(&kept, "a", "T");
        entities.refresh(&kept, now);
        assert!(kept.is_empty());
    }

    #[test]
    fn a_merge_never_makes_an_entity_smaller() {
        let (kept, mut entities) = (KeptEntities::default(), Entities::default());
        let place = ["a", "t", "p", "r"];
        let mut sizes = |extent: Extent| {
            entities.put(&kept, place, extent, Duration::ZERO);
            let sizes =
                entities.report(&kept, Duration::ZERO).map(|entity| (entity.bytes, entity.properties));
            sizes.collect::<Vec<_>>()
        };
        assert_eq!(sizes(Extent { bytes: 900, properties: 20, is_whole: true }), [(900, 20)]);
        assert_eq!(sizes(Extent { bytes: 800, properties: 30, is_whole: false }), [(900, 30)]);
        assert_eq!(sizes(Extent { bytes: 800, properties: 10, is_whole: true }), [(800, 10)]);
    }
}
