//! Storage Analytics: an account's requests, measured by the hour and by the minute, in tables that it can read.
//!
//! Every request is counted in memory (`observe`). When a minute is over, its counts are taken off and, where the
//! service properties of the account say so, written; the minutes of an hour add up to it. `schema` knows how the
//! tables look, `write` adds to them, and `retention` removes what is older than the account wants to keep.
//! Promises: what is written is durable, and adds up exactly to the requests that finished, also over a restart,
//! because an interval that was cut short is added to when it goes on, and over several servers, each of which adds what
//! it has counted. A crash loses what was not yet written: at most an hour.
//! Leaves to others: serving the tables, which is the Table service's work like that of any table.

mod retention;
mod schema;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use catalogue::Catalogue;
use engine::Engine;
use engine::env::Clock;
use observe::{AnalyticsBook, AnalyticsCounts, Service, TICKS_PER_MINUTE};
use protocol::common::DateTime;
use protocol::common::service_properties::{Metrics, MetricsLevel, ServiceProperties};
use tables::TableService;
use tokio::sync::Mutex;

use crate::front::accounts::Accounts;
use crate::front::current::Current;
use schema::MetricsInterval;
use write::WriterMark;

/// A request is counted as it finishes. So long after a minute its last one has been, whatever the threads do.
const GRACE: Duration = Duration::from_secs(1);

pub struct Analytics {
    engine: Arc<dyn Engine>,
    book: Arc<AnalyticsBook>,
    system: TableService,
    /// The services that are measured, and where their properties are.
    services: [(Service, Catalogue); 2],
    accounts: Arc<Current<Accounts>>,
    clock: Arc<dyn Clock>,
    state: Mutex<Bookkeeping>,
}

struct Bookkeeping {
    /// The first minute that was not taken off the book.
    next_minute: u64,
    /// The first minute of the hour that goes on.
    hour: u64,
    /// The hour in which old rows were removed.
    swept_hour: Option<u64>,
    due: BTreeMap<DueKey, Due>,
    mark: WriterMark,
}

/// An interval of one account in one service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DueKey {
    /// The first minute.
    start: u64,
    interval: MetricsInterval,
    account: Box<str>,
    /// The place in [`Analytics::services`].
    service: usize,
    is_secondary: bool,
}

#[derive(Default)]
struct Due {
    includes_apis: bool,
    /// By the operation's index.
    operations: BTreeMap<usize, AnalyticsCounts>,
}

/// Service properties that were read in this round.
type PropertiesRead = HashMap<(Box<str>, usize), ServiceProperties>;

impl Analytics {
    pub fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        accounts: Arc<Current<Accounts>>,
    ) -> Arc<Analytics> {
        Analytics::over(TableService::system(engine.clone(), clock.clone()), engine, clock, accounts)
    }

    /// The same, for an engine to which other processes write too.
    pub fn sharing_its_engine(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        accounts: Arc<Current<Accounts>>,
    ) -> Arc<Analytics> {
        let system = TableService::system(engine.clone(), clock.clone()).sharing_its_engine();
        Analytics::over(system, engine, clock, accounts)
    }

    fn over(
        system: TableService,
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        accounts: Arc<Current<Accounts>>,
    ) -> Arc<Analytics> {
        let minute = AnalyticsBook::minute(DateTime::from_ticks(clock.now_ticks()));
        let catalogue = |kind, family| Catalogue::new(engine.clone(), clock.clone(), kind, family);
        Arc::new(Analytics {
            book: Arc::default(),
            system,
            services: [
                (Service::Table, catalogue(&protocol::table::KIND, tables::FAMILY)),
                (Service::Queue, catalogue(&protocol::queue::KIND, queues::FAMILY)),
            ],
            accounts,
            state: Mutex::new(Bookkeeping {
                next_minute: minute,
                hour: MetricsInterval::Hour.start(minute),
                swept_hour: None,
                due: BTreeMap::new(),
                mark: WriterMark::new(),
            }),
            clock,
            engine,
        })
    }

    /// Counts requests: one of the observers of a front.
    pub fn book(&self) -> Arc<AnalyticsBook> {
        self.book.clone()
    }

    /// Writes at the end of every minute. Never ends.
    pub async fn run(self: Arc<Analytics>) {
        loop {
            let left = TICKS_PER_MINUTE - self.clock.now_ticks() % TICKS_PER_MINUTE;
            tokio::time::sleep(Duration::from_nanos(left * 100) + GRACE).await;
            self.write_ended().await;
        }
    }

    /// Writes all intervals that are over, and removes what nobody wants to keep.
    pub async fn write_ended(&self) {
        let mut state = self.state.lock().await;
        let (now, mut known) = (self.minute(), PropertiesRead::new());
        if now < state.next_minute {
            // The clock was set back. What is in the book is taken off when the minute is over.
            (state.next_minute, state.hour) = (now, MetricsInterval::Hour.start(now));
            return;
        }
        // There are pages for two minutes: if nobody looked for longer, later ones are with these.
        for minute in (state.next_minute..now).take(2) {
            self.take(&mut state, minute, &mut known).await;
        }
        state.next_minute = now;
        self.add_idle_hour(&mut state, now, &mut known).await;
        self.write_due(&mut state, |key| key.start + key.interval.minutes() <= now).await;
        let hour = Some(MetricsInterval::Hour.start(now));
        if state.swept_hour != hour {
            state.swept_hour = hour;
            self.remove_old(now, &mut known).await;
            self.remove_old_marks().await;
        }
    }

    /// Writes everything that was counted, also of intervals that go on: after the last request.
    pub async fn close(&self) {
        let mut state = self.state.lock().await;
        let (now, mut known) = (self.minute(), PropertiesRead::new());
        for minute in [now.saturating_sub(1), now] {
            self.take(&mut state, minute, &mut known).await;
        }
        self.write_due(&mut state, |_| true).await;
        self.remove_mark(&mut state).await;
    }

    /// Gives up what was counted for an account and not written yet: its data is deleted.
    pub async fn forget(&self, account: &str) {
        let mut state = self.state.lock().await;
        self.book.forget(account);
        state.due.retain(|key, _| &*key.account != account);
    }

    fn minute(&self) -> u64 {
        AnalyticsBook::minute(DateTime::from_ticks(self.clock.now_ticks()))
    }

    /// Takes a minute off the book, as far as its account wants it measured.
    async fn take(&self, state: &mut Bookkeeping, minute: u64, known: &mut PropertiesRead) {
        for measured in self.book.take(minute) {
            let service = measured.operation.service();
            let Some(service) = self.services.iter().position(|(other, _)| *other == service) else {
                continue;
            };
            let Some(properties) = self.properties(measured.account, service, known).await else { continue };
            for (interval, metrics) in metrics_of(&properties) {
                let key = DueKey {
                    start: interval.start(minute),
                    interval,
                    account: measured.account.into(),
                    service,
                    is_secondary: measured.is_secondary,
                };
                let Some(due) = expect(state, key, metrics) else { continue };
                due.operations.entry(measured.operation.index()).or_default().add(&measured.counts);
            }
        }
    }

    /// Of an hour there is a row even if nobody asked for anything.
    async fn add_idle_hour(&self, state: &mut Bookkeeping, now: u64, known: &mut PropertiesRead) {
        let hour = MetricsInterval::Hour.start(now);
        if state.hour >= hour {
            return;
        }
        state.hour = hour;
        let accounts = self.accounts.get();
        for account in accounts.names() {
            for service in 0..self.services.len() {
                let Some(properties) = self.properties(account.as_str(), service, known).await else {
                    continue;
                };
                let key = DueKey {
                    start: hour.saturating_sub(MetricsInterval::Hour.minutes()),
                    interval: MetricsInterval::Hour,
                    account: account.as_str().into(),
                    service,
                    is_secondary: false,
                };
                expect(state, key, &properties.hour_metrics);
            }
        }
    }

    /// The account's properties of a service; `None` when the account is gone.
    async fn properties(
        &self,
        account: &str,
        service: usize,
        known: &mut PropertiesRead,
    ) -> Option<ServiceProperties> {
        if let Some(properties) = known.get(&(account.into(), service)) {
            return Some(properties.clone());
        }
        let found = self.accounts.get().find(account)?.name.clone();
        let (_, catalogue) = self.services.get(service)?;
        let properties = catalogue.properties(&found).await.unwrap_or_else(|error| {
            log::warn!(
                "{account} is measured like a new account, because its properties cannot be read: {error}"
            );
            ServiceProperties::default()
        });
        known.insert((account.into(), service), properties.clone());
        Some(properties)
    }
}

fn metrics_of(properties: &ServiceProperties) -> [(MetricsInterval, &Metrics); 2] {
    [(MetricsInterval::Minute, &properties.minute_metrics), (MetricsInterval::Hour, &properties.hour_metrics)]
}

/// The interval's place among those to be written, if the metrics are on.
fn expect<'s>(state: &'s mut Bookkeeping, key: DueKey, metrics: &Metrics) -> Option<&'s mut Due> {
    if metrics.level == MetricsLevel::Off {
        return None;
    }
    let due = state.due.entry(key).or_default();
    due.includes_apis = metrics.level == MetricsLevel::ServiceAndApis;
    Some(due)
}
