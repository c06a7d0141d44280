//! The advisor: learns from the requests how well tables are designed, and says what to change.
//!
//! `sample` chooses the requests that are looked at, and `seen` takes them apart into rows; `shapes`, `busiest`,
//! `growth`, `sizes` and `entities` each remember one aspect of them; `findings` has the rules and `remedies` the
//! advice; `prices` knows what it would cost elsewhere.
//! Promises: memory has the bound [`Advisor::memory_bound_bytes`], whatever is sent. A point read costs a counter of
//! its thread, a load and three comparisons; one in 64 takes a lock, if it is free, and nobody ever waits for it. While
//! entities near a limit are kept, every read and write is compared with them. No value of an entity or a filter is
//! kept, only names and keys.
//! Leaves to others: the time, which comes with the observations, and showing the findings.

mod busiest;
mod entities;
mod findings;
mod growth;
mod json;
mod name;
mod prices;
mod remedies;
mod sample;
mod seen;
mod shapes;
mod sizes;
mod window;
mod words;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use protocol::table::region::PlanKind;

use crate::observation::Observation;
use crate::operation::Operation;
use crate::{Advice, Observer, Targets};
use busiest::Busiest;
use entities::{Entities, EntityReport, KeptEntities};
use findings::Evidence;
pub use findings::{Finding, FindingKind, Severity};
use growth::Growth;
use name::hash_of;
pub use prices::{Month, Prices};
pub use remedies::pattern;
use sample::{KIND_COUNT, RequestKind};
use seen::{RowFate, WrittenRows, for_each_row, place_of};
use shapes::Shapes;
use sizes::Sizes;

/// Entities from this size on are remembered: three quarters of what the service allows.
const ENTITY_BYTES_NOTABLE: u64 = 768 * 1024;
/// The same for the number of properties: four fifths of 252.
const PROPERTIES_NOTABLE: u32 = 202;
/// A query that examines so many rows tells how large its partition is.
const EXAMINED_NOTABLE: u64 = 10_000;
/// What was concluded from one request is believed for so long.
const MEMORY: Duration = Duration::from_secs(3600);
/// How many hot partitions are shown.
const HOT_COUNT_MAX: usize = 10;
const HOT_PER_SECOND_MIN: f64 = 1.0;

type StoredBytes = Box<dyn Fn() -> u64 + Send + Sync>;

pub struct Advisor {
    state: Mutex<Learnt>,
    /// Which of the state's entities every request looks for.
    kept: KeptEntities,
    targets: Targets,
    prices: Prices,
    stored_bytes: Option<StoredBytes>,
}

struct Learnt {
    /// When the first request was seen.
    started: Option<Duration>,
    /// All requests since then.
    counts: [u64; KIND_COUNT],
    shapes: Shapes,
    partitions: Busiest,
    accounts: Busiest,
    growth: Growth,
    sizes: Sizes,
    entities: Entities,
}

impl Default for Advisor {
    fn default() -> Advisor {
        Advisor::new(Targets::default(), Prices::default())
    }
}

impl Advisor {
    pub fn new(targets: Targets, prices: Prices) -> Advisor {
        let state = Learnt {
            started: None,
            counts: [0; KIND_COUNT],
            shapes: Shapes::default(),
            partitions: Busiest::new(busiest::PARTITION_COUNT_MAX),
            accounts: Busiest::new(busiest::ACCOUNT_COUNT_MAX),
            growth: Growth::default(),
            sizes: Sizes::default(),
            entities: Entities::default(),
        };
        Advisor {
            state: Mutex::new(state),
            kept: KeptEntities::default(),
            targets,
            prices,
            stored_bytes: None,
        }
    }

    /// Who knows how much is stored, for the price of it.
    #[must_use]
    pub fn with_stored_bytes(self, stored_bytes: impl Fn() -> u64 + Send + Sync + 'static) -> Advisor {
        Advisor { stored_bytes: Some(Box::new(stored_bytes)), ..self }
    }

    /// What should be changed, the most important first. `now` is the time of the clock that observations carry.
    pub fn findings(&self, now: Duration) -> Vec<Finding> {
        let state = self.lock();
        let entities: Vec<EntityReport<'_>> = state.entities.report(&self.kept, now).collect();
        let evidence = Evidence {
            now,
            span: window::span(now, state.started.unwrap_or(now)),
            shapes: &state.shapes,
            partitions: &state.partitions,
            accounts: &state.accounts,
            growth: &state.growth,
            sizes: &state.sizes,
            entities: &entities,
            targets: &self.targets,
            prices: &self.prices,
        };
        evidence.findings()
    }

    /// What a month would cost on the real service, at the rate since the first request.
    pub fn month(&self, now: Duration) -> Month {
        // Not under the lock: it is somebody else's.
        let stored_bytes = self.stored_bytes.as_ref().map(|stored_bytes| stored_bytes());
        // A store in memory says 0, which is no answer.
        let stored_bytes = stored_bytes.filter(|bytes| *bytes > 0);
        let state = self.lock();
        let all: u64 = state.counts.iter().sum();
        let queue_count = state.counts[RequestKind::Queue as usize];
        let observed = now.saturating_sub(state.started.unwrap_or(now));
        self.prices.month(all - queue_count, queue_count, observed, stored_bytes)
    }

    /// For those who ask, who may wait.
    fn lock(&self) -> MutexGuard<'_, Learnt> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For requests, which may not: `None` when somebody else is here.
    fn try_lock(&self) -> Option<MutexGuard<'_, Learnt>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Out of the way of the many requests that nobody looks at.
    #[inline(never)]
    fn look(&self, kind: RequestKind, is_due: bool, is_notable: bool, observation: &Observation<'_>) {
        let is_done = !observation.is_error();
        if is_done && !self.kept.is_empty() {
            for_each_row(observation, |place, row| match RowFate::of(row) {
                RowFate::Gone => self.kept.remove(place),
                RowFate::Has(extent) if extent.is_whole && !extent.is_near_limit() => self.kept.remove(place),
                RowFate::Has(_) | RowFate::Unknown => {}
            });
        }
        if !is_due && !is_notable {
            return;
        }
        // A sample that is missed here is made up for by the next one.
        let Some(mut state) = self.try_lock() else { return };
        if is_due {
            state.count(kind, sample::take(kind), observation);
            if !self.kept.is_empty() {
                state.forget_entities(&self.kept, observation);
            }
        }
        if is_notable && is_done {
            for_each_row(observation, |place, row| match RowFate::of(row) {
                RowFate::Has(extent) if extent.is_near_limit() => {
                    state.entities.put(&self.kept, place, extent, observation.at);
                }
                _ => {}
            });
        }
    }

    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        let state = self.lock();
        let busiest = state.partitions.held_bytes() + state.accounts.held_bytes();
        size_of::<Advisor>()
            + busiest
            + state.shapes.held_bytes()
            + state.growth.held_bytes()
            + state.sizes.held_bytes()
            + state.entities.held_bytes()
    }
}

impl Observer for Advisor {
    fn observe(&self, observation: &Observation<'_>) {
        let Some(kind) = RequestKind::of(observation.operation) else { return };
        let is_due = sample::pass(kind);
        let is_notable = is_near_limit(observation);
        if is_due || is_notable || !self.kept.is_empty() {
            self.look(kind, is_due, is_notable, observation);
        }
    }
}

impl Advice for Advisor {
    fn findings_json(&self, now: Duration) -> String {
        json::findings(&self.findings(now))
    }

    fn hot_partitions_json(&self, now: Duration) -> String {
        let state = self.lock();
        let mut rates = state.partitions.rates(now, HOT_PER_SECOND_MIN);
        rates.truncate(HOT_COUNT_MAX);
        json::rates(&rates)
    }

    fn month_json(&self, now: Duration) -> String {
        json::month(&self.month(now), &self.prices)
    }

    fn memory_bound_bytes(&self) -> usize {
        size_of::<Advisor>()
            + Shapes::bytes_max()
            + Busiest::bytes_max(busiest::PARTITION_COUNT_MAX)
            + Busiest::bytes_max(busiest::ACCOUNT_COUNT_MAX)
            + Growth::bytes_max()
            + Sizes::bytes_max()
            + Entities::bytes_max()
    }
}

fn is_near_limit(observation: &Observation<'_>) -> bool {
    let detail = &observation.detail;
    detail.row_bytes_max >= ENTITY_BYTES_NOTABLE || detail.property_count_max >= PROPERTIES_NOTABLE
}

impl Learnt {
    /// `weight` is how many requests this one stands for.
    fn count(&mut self, kind: RequestKind, weight: u32, observation: &Observation<'_>) {
        let Observation { account, at, .. } = *observation;
        self.started.get_or_insert(at);
        self.counts[kind as usize] += u64::from(weight);
        if account.is_empty() || kind == RequestKind::Queue {
            return;
        }
        self.accounts.add(hash_of(account, "", &[]), &[account], weight.into(), at);
        match kind {
            RequestKind::Read => self.count_read(weight, observation),
            // A batch that has a plan reads: it is a single read or query.
            RequestKind::Batch if observation.detail.plan.is_some() => match observation.detail.row {
                Some(_) => self.count_read(weight, observation),
                None => self.count_query(weight, observation),
            },
            RequestKind::Write | RequestKind::Batch => self.count_write(weight, observation),
            RequestKind::Query => self.count_query(weight, observation),
            RequestKind::Other => {
                if observation.operation == Operation::DeleteTable && !observation.is_error() {
                    self.growth.forget(account, observation.detail.container);
                    self.sizes.forget(account, observation.detail.container);
                }
            }
            RequestKind::Queue | RequestKind::QueryPartition => {}
        }
    }

    fn count_read(&mut self, weight: u32, observation: &Observation<'_>) {
        let Some(place) = place_of(observation) else { return };
        self.touch(place[0], place[1], place[2], weight.into(), observation.at);
    }

    fn count_query(&mut self, weight: u32, observation: &Observation<'_>) {
        self.shapes.count(observation, weight.into());
        self.count_queried_partition(observation);
    }

    fn count_write(&mut self, weight: u32, observation: &Observation<'_>) {
        let Some(place) = place_of(observation) else { return };
        let detail = &observation.detail;
        // The real service counts the entities of a batch one by one.
        let entity_count = u64::from(weight) * detail.written.max(1);
        self.touch(place[0], place[1], place[2], entity_count as f64, observation.at);
        if observation.is_error() || detail.written == 0 {
            return;
        }
        let mut rows = WrittenRows::default();
        for_each_row(observation, |place, row| rows.add(place, row));
        let weight = u64::from(weight);
        if rows.deleted > 0 {
            self.sizes.deleted([place[0], place[1], place[2]], (weight * rows.deleted) as f64);
        }
        if let Some((place, is_new)) = rows.first {
            let created = weight * rows.created;
            self.growth.insert(place, is_new, created, observation.at);
            self.sizes.wrote(place, created as f64, weight as f64 * rows.bytes as f64);
        }
    }

    /// Of a table that is deleted, all; otherwise those that were not seen for long.
    fn forget_entities(&mut self, kept: &KeptEntities, observation: &Observation<'_>) {
        if observation.operation == Operation::DeleteTable && !observation.is_error() {
            self.entities.forget(kept, observation.account, observation.detail.container);
        }
        self.entities.refresh(kept, observation.at);
    }

    /// A query names its partition in its filter. Finding it out costs parsing the filter again, so few queries are
    /// asked.
    fn count_queried_partition(&mut self, observation: &Observation<'_>) {
        let Observation { account, at, detail, .. } = *observation;
        let is_in_one =
            matches!(detail.plan, Some(PlanKind::Point | PlanKind::RowRange | PlanKind::PartitionScan));
        let Some(shape) = detail.filter_shape.filter(|_| is_in_one) else { return };
        let is_due = sample::pass(RequestKind::QueryPartition);
        let tells_size = detail.examined >= EXAMINED_NOTABLE && detail.plan != Some(PlanKind::Point);
        if !is_due && !tells_size {
            return;
        }
        let weight = if is_due { sample::take(RequestKind::QueryPartition) } else { 0 };
        let Some(partition) = shape.partition() else { return };
        if is_due {
            let entity_count = f64::from(weight) * detail.returned.max(1) as f64;
            self.touch(account, detail.container, &partition, entity_count, at);
        }
        if tells_size {
            self.sizes.examined([account, detail.container, &partition], detail.examined, at);
        }
    }

    fn touch(&mut self, account: &str, table: &str, partition: &str, weight: f64, at: Duration) {
        let hash = hash_of(account, table, &[partition]);
        self.partitions.add(hash, &[account, table, partition], weight, at);
    }
}
