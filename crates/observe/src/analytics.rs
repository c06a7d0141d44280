//! What Storage Analytics counts: the requests of each account by operation, outcome and credentials, minute by
//! minute.
//!
//! Requests are counted as they finish, into one of two pages: that of even or that of odd minutes. So a minute is
//! taken off while the next one is being written, and no request is lost or counted twice.
//! Promises: counting takes no lock and, once an account and its operation were seen, allocates nothing. Memory is
//! bounded by [`ACCOUNT_COUNT_MAX`] and the closed set of operations.
//! Leaves to others: when a minute is taken off, whether anybody wants it, and how it looks in a table.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use protocol::ErrorCode;
use protocol::common::{DateTime, Fnv};

use crate::Observer;
use crate::observation::{Credentials, Observation};
use crate::operation::Operation;

/// Accounts that are counted; the requests of further ones are not.
const ACCOUNT_COUNT_MAX: usize = 1024;
const OPERATION_COUNT: usize = Operation::ALL.len();
const LOCATION_COUNT: usize = 2;
/// Minutes are counted in ticks of the service's clock.
pub const TICKS_PER_MINUTE: u64 = 60 * 10_000_000;

/// How a request ended, in the words of Storage Analytics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Success,
    ThrottlingError,
    ClientTimeoutError,
    ServerTimeoutError,
    ClientOtherError,
    ServerOtherError,
    AuthorizationError,
    NetworkError,
}

impl Outcome {
    pub const ALL: [Outcome; 8] = [
        Outcome::Success,
        Outcome::ThrottlingError,
        Outcome::ClientTimeoutError,
        Outcome::ServerTimeoutError,
        Outcome::ClientOtherError,
        Outcome::ServerOtherError,
        Outcome::AuthorizationError,
        Outcome::NetworkError,
    ];

    fn of(observation: &Observation<'_>) -> Outcome {
        let status = match observation.error {
            // A failed part of a batch that is answered with success as a whole.
            Some(code) if observation.status < 400 => code.status(),
            _ => observation.status,
        };
        match (status, observation.error) {
            (..300, _) => Outcome::Success,
            (503, _) => Outcome::ThrottlingError,
            (_, Some(ErrorCode::OperationTimedOut)) => Outcome::ServerTimeoutError,
            (401 | 403, _) => Outcome::AuthorizationError,
            // Nothing here is for everybody. Older versions are told that what they may not see does not exist.
            (400..500, _) if observation.detail.credentials == Credentials::Anonymous => {
                Outcome::AuthorizationError
            }
            // What does not exist here does not exist there either: no failure of the server.
            (_, Some(ErrorCode::NotImplemented)) => Outcome::ClientOtherError,
            (500.., _) => Outcome::ServerOtherError,
            _ => Outcome::ClientOtherError,
        }
    }
}

/// The order of the counts of an outcome.
const CREDENTIALS: [Credentials; 3] = [Credentials::Account, Credentials::Anonymous, Credentials::Sas];

/// Sums over some requests.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AnalyticsCounts {
    /// By outcome, then by credentials.
    outcomes: [[u64; CREDENTIALS.len()]; Outcome::ALL.len()],
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// How long the successful ones took together, in nanoseconds.
    pub success_ns: u64,
}

impl AnalyticsCounts {
    /// No requests, but these bytes.
    pub fn of_bytes(bytes_in: u64, bytes_out: u64) -> AnalyticsCounts {
        AnalyticsCounts { bytes_in, bytes_out, ..AnalyticsCounts::default() }
    }

    pub fn of(&self, outcome: Outcome, credentials: Credentials) -> u64 {
        self.outcomes[outcome as usize][place(credentials)]
    }

    pub fn set(&mut self, outcome: Outcome, credentials: Credentials, count: u64) {
        self.outcomes[outcome as usize][place(credentials)] = count;
    }

    /// Of all credentials.
    pub fn all_of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].iter().sum()
    }

    pub fn request_count(&self) -> u64 {
        self.outcomes.iter().flatten().sum()
    }

    pub fn add(&mut self, other: &AnalyticsCounts) {
        for (counts, others) in self.outcomes.iter_mut().zip(&other.outcomes) {
            for (count, other) in counts.iter_mut().zip(others) {
                *count = count.saturating_add(*other);
            }
        }
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.success_ns = self.success_ns.saturating_add(other.success_ns);
    }
}

fn place(credentials: Credentials) -> usize {
    match credentials {
        Credentials::Account => 0,
        Credentials::Anonymous => 1,
        Credentials::Sas => 2,
    }
}

/// What one account did in one minute with one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured<'a> {
    pub account: &'a str,
    pub operation: Operation,
    pub is_secondary: bool,
    pub counts: AnalyticsCounts,
}

/// The counts that were not taken off yet.
pub struct AnalyticsBook {
    /// A hash table with open addressing. Entries are never removed: accounts are few.
    accounts: Box<[OnceLock<Box<AccountPages>>]>,
}

struct AccountPages {
    account: Box<str>,
    pages: [MinutePage; 2],
}

/// The counters of even or of odd minutes, by location and operation.
struct MinutePage([[OnceLock<Box<LiveCounts>>; OPERATION_COUNT]; LOCATION_COUNT]);

#[derive(Default)]
struct LiveCounts {
    outcomes: [[AtomicU64; CREDENTIALS.len()]; Outcome::ALL.len()],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    success_ns: AtomicU64,
}

impl Default for AnalyticsBook {
    fn default() -> AnalyticsBook {
        AnalyticsBook { accounts: (0..ACCOUNT_COUNT_MAX).map(|_| OnceLock::new()).collect() }
    }
}

impl AnalyticsBook {
    /// The minute that a time is in, by which minutes are taken off.
    pub fn minute(now: DateTime) -> u64 {
        now.ticks() / TICKS_PER_MINUTE
    }

    /// Takes off what was counted in this minute, which must be over, and not for longer than a minute: later its
    /// page belongs to another one.
    pub fn take(&self, minute: u64) -> Vec<Measured<'_>> {
        let mut taken = Vec::new();
        for slot in self.accounts.iter().filter_map(|slot| slot.get()) {
            let account = &*slot.account;
            let MinutePage(locations) = page_of(&slot.pages, minute);
            for (location, operations) in locations.iter().enumerate() {
                for (operation, counters) in Operation::ALL.iter().zip(operations) {
                    if let Some(counts) = counters.get().and_then(|counters| counters.take()) {
                        let (operation, is_secondary) = (*operation, location > 0);
                        taken.push(Measured { account, operation, is_secondary, counts });
                    }
                }
            }
        }
        taken
    }

    /// Takes off everything of one account, for nobody.
    pub fn forget(&self, account: &str) {
        let known =
            self.accounts.iter().filter_map(|slot| slot.get()).filter(|pages| &*pages.account == account);
        let pages = known.flat_map(|pages| &pages.pages);
        for counters in pages.flat_map(|MinutePage(locations)| locations.iter().flatten()) {
            counters.get().and_then(|counters| counters.take());
        }
    }

    /// `None`: there are too many accounts.
    fn account(&self, name: &str) -> Option<&AccountPages> {
        // Only the operator chooses the names.
        let mut hash = Fnv::default();
        hash.text(name);
        let start = (hash.value() >> 32) as usize;
        (0..ACCOUNT_COUNT_MAX).find_map(|step| {
            let slot = &self.accounts[(start + step) % ACCOUNT_COUNT_MAX];
            let pages = slot.get_or_init(|| AccountPages::new(name));
            (*pages.account == *name).then_some(&**pages)
        })
    }
}

fn page_of(pages: &[MinutePage; 2], minute: u64) -> &MinutePage {
    &pages[(minute % 2) as usize]
}

impl Observer for AnalyticsBook {
    fn observe(&self, observation: &Observation<'_>) {
        if observation.account.is_empty() {
            return;
        }
        let Some(account) = self.account(observation.account) else { return };
        let MinutePage(locations) = page_of(&account.pages, AnalyticsBook::minute(observation.now));
        let operations = &locations[usize::from(observation.detail.is_secondary)];
        operations[observation.operation.index()].get_or_init(Box::default).count(observation);
    }
}

impl AccountPages {
    fn new(account: &str) -> Box<AccountPages> {
        let page = || MinutePage([const { [const { OnceLock::new() }; OPERATION_COUNT] }; LOCATION_COUNT]);
        Box::new(AccountPages { account: account.into(), pages: [page(), page()] })
    }
}

impl LiveCounts {
    fn count(&self, observation: &Observation<'_>) {
        let outcome = Outcome::of(observation);
        if observation.bytes_in > 0 {
            self.bytes_in.fetch_add(observation.bytes_in, Relaxed);
        }
        if observation.bytes_out > 0 {
            self.bytes_out.fetch_add(observation.bytes_out, Relaxed);
        }
        if outcome == Outcome::Success {
            let took_ns = u64::try_from(observation.took.as_nanos()).unwrap_or(u64::MAX);
            self.success_ns.fetch_add(took_ns, Relaxed);
        }
        self.outcomes[outcome as usize][place(observation.detail.credentials)].fetch_add(1, Relaxed);
    }

    /// `None` when nothing was counted.
    fn take(&self) -> Option<AnalyticsCounts> {
        let mut counts = AnalyticsCounts::default();
        for (counts, counters) in counts.outcomes.iter_mut().zip(&self.outcomes) {
            for (count, counter) in counts.iter_mut().zip(counters) {
                *count = counter.swap(0, Relaxed);
            }
        }
        if counts.request_count() == 0 {
            return None;
        }
        counts.bytes_in = self.bytes_in.swap(0, Relaxed);
        counts.bytes_out = self.bytes_out.swap(0, Relaxed);
        counts.success_ns = self.success_ns.swap(0, Relaxed);
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observation::Detail;

    fn observation(account: &str, minute: u64, status: u16, error: Option<ErrorCode>) -> Observation<'_> {
        Observation {
            operation: Operation::GetEntity,
            account,
            status,
            error,
            bytes_in: 5,
            bytes_out: 7,
            took: Duration::from_millis(2),
            at: Duration::ZERO,
            now: DateTime::from_ticks(minute * TICKS_PER_MINUTE + 1),
            request_id: "",
            detail: Detail::default(),
        }
    }

    #[test]
    fn minutes_and_accounts_are_counted_apart_and_taken_off_once() {
        let book = AnalyticsBook::default();
        for n in 0..10 {
            book.observe(&observation("one", 6, 200, None));
            book.observe(&observation("two", 7, 404, Some(ErrorCode::ResourceNotFound)));
            book.observe(&observation(if n < 3 { "one" } else { "" }, 7, 200, None));
        }
        let taken = book.take(6);
        assert_eq!(taken.len(), 1);
        let counts = taken[0].counts;
        assert_eq!(
            (taken[0].account, counts.all_of(Outcome::Success), counts.request_count()),
            ("one", 10, 10)
        );
        assert_eq!((counts.bytes_in, counts.bytes_out, counts.success_ns), (50, 70, 20_000_000));
        assert!(book.take(6).is_empty());
        let mut taken = book.take(7);
        taken.sort_by_key(|measured| measured.account);
        assert_eq!(taken[0].counts.request_count(), 3);
        assert_eq!(taken[1].counts.all_of(Outcome::ClientOtherError), 10);
        assert_eq!(taken[1].counts.success_ns, 0);
        assert!(book.take(7).is_empty());
    }

    #[test]
    fn outcomes_follow_status_and_code() {
        let check = |status: u16, error: Option<ErrorCode>, expected: Outcome| {
            assert_eq!(Outcome::of(&observation("one", 0, status, error)), expected, "{status} {error:?}");
        };
        check(204, None, Outcome::Success);
        check(304, None, Outcome::ClientOtherError);
        check(202, Some(ErrorCode::EntityAlreadyExists), Outcome::ClientOtherError);
        check(503, Some(ErrorCode::ServerBusy), Outcome::ThrottlingError);
        check(500, Some(ErrorCode::OperationTimedOut), Outcome::ServerTimeoutError);
        check(500, Some(ErrorCode::InternalError), Outcome::ServerOtherError);
        check(501, Some(ErrorCode::NotImplemented), Outcome::ClientOtherError);
        check(403, Some(ErrorCode::AuthenticationFailed), Outcome::AuthorizationError);
        check(409, Some(ErrorCode::TableAlreadyExists), Outcome::ClientOtherError);
        let missing = observation("one", 0, 404, Some(ErrorCode::ResourceNotFound));
        let detail = Detail { credentials: Credentials::Anonymous, ..Detail::default() };
        assert_eq!(Outcome::of(&Observation { detail, ..missing }), Outcome::AuthorizationError);
    }

    #[test]
    fn as_many_accounts_as_there_may_be_find_their_place_and_further_ones_are_left_out() {
        let book = AnalyticsBook::default();
        let names: Vec<String> = (0..ACCOUNT_COUNT_MAX + 10).map(|n| format!("account{n}")).collect();
        for name in &names {
            book.observe(&observation(name, 0, 200, None));
            book.observe(&observation(name, 0, 200, None));
        }
        let taken = book.take(0);
        assert_eq!(taken.len(), ACCOUNT_COUNT_MAX);
        assert!(taken.iter().all(|measured| measured.counts.request_count() == 2));
    }

    #[test]
    fn credentials_and_locations_are_told_apart() {
        let book = AnalyticsBook::default();
        for (credentials, is_secondary) in
            [(Credentials::Sas, false), (Credentials::Anonymous, false), (Credentials::Account, true)]
        {
            let detail = Detail { credentials, is_secondary, ..Detail::default() };
            book.observe(&Observation { detail, ..observation("one", 0, 200, None) });
        }
        let taken = book.take(0);
        let of = |is_secondary: bool, credentials| {
            let measured = taken.iter().find(|measured| measured.is_secondary == is_secondary).unwrap();
            measured.counts.of(Outcome::Success, credentials)
        };
        assert_eq!((of(false, Credentials::Sas), of(false, Credentials::Anonymous)), (1, 1));
        assert_eq!((of(false, Credentials::Account), of(true, Credentials::Account)), (0, 1));
    }
}
