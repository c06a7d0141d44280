//! The documented schema of Storage Analytics' metrics: the names of tables, their keys, their columns.
//!
//! Pure. Promises: counts that were written are read back exactly; the time that successful requests took, up to
//! rounding.
//! Leaves to others: collecting (`observe`), and when something is written.

use std::borrow::Cow;

use observe::{AnalyticsCounts, Credentials, Operation, Outcome, Service, TICKS_PER_MINUTE};
use protocol::common::DateTime;
use protocol::table::model::{EntitySource, Property, TableName, Value};

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// The row that sums up all requests of an interval.
pub(super) const ALL_ROW_KEY: &str = "user;All";
/// The same for requests of Storage Analytics itself. Here it makes none: it writes without asking a service.
pub(super) const SYSTEM_ROW_KEY: &str = "system;All";

/// How long a row counts. The order is that in which intervals of the same start are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MetricsInterval {
    Minute,
    Hour,
}

impl MetricsInterval {
    pub(super) fn minutes(self) -> u64 {
        match self {
            MetricsInterval::Minute => 1,
            MetricsInterval::Hour => 60,
        }
    }

    /// The first minute of the interval that this minute is in.
    pub(super) fn start(self, minute: u64) -> u64 {
        minute - minute % self.minutes()
    }
}

/// `None` for a service that has no such tables.
pub(super) fn table_name(
    interval: MetricsInterval,
    is_secondary: bool,
    service: Service,
) -> Option<TableName> {
    let service = match service {
        Service::Table => "Table",
        Service::Queue => "Queue",
        Service::Blob | Service::Other => return None,
    };
    let interval = match interval {
        MetricsInterval::Minute => "Minute",
        MetricsInterval::Hour => "Hour",
    };
    let location = if is_secondary { "Secondary" } else { "Primary" };
    TableName::parse_system(&format!("$Metrics{interval}{location}Transactions{service}"))
}

/// When an interval began, as in `20140522T1100`.
pub(super) fn partition_key(minute: u64) -> String {
    let mut text = Vec::new();
    DateTime::from_ticks(minute.saturating_mul(TICKS_PER_MINUTE)).write_padded(&mut text);
    let text = String::from_utf8_lossy(&text);
    // From `2014-05-22T11:00:00.0000000Z`.
    let digits = text.split_at_checked("2014-05-22T11:00".len()).map_or("", |(minutes, _)| minutes);
    digits.replace(['-', ':'], "")
}

pub(super) fn row_key(operation: Operation) -> String {
    let name = match operation {
        Operation::GetEntity => "QueryEntity".into(),
        Operation::GetTable => "QueryTable".into(),
        Operation::TablePreflight => "TablePreflightRequest".into(),
        Operation::QueuePreflight => "QueuePreflightRequest".into(),
        other => other.name().replace(' ', ""),
    };
    format!("user;{name}")
}

/// The columns of a row.
pub(super) fn properties(counts: &AnalyticsCounts) -> Vec<Property<'static>> {
    let request_count = counts.request_count();
    let latency = milliseconds(counts.success_ns, counts.all_of(Outcome::Success));
    let percent = |outcomes: &[Outcome]| {
        ratio(outcomes.iter().map(|outcome| counts.all_of(*outcome)).sum(), request_count).unwrap_or(0.0)
    };
    let billable_count = sum(counts, is_billable);
    // Nobody was turned away where nobody came.
    let availability = ratio(billable_count, sum(counts, counts_for_availability)).unwrap_or(100.0);
    let mut columns = vec![
        integer("TotalIngress", counts.bytes_in),
        integer("TotalEgress", counts.bytes_out),
        integer("TotalRequests", request_count),
        integer("TotalBillableRequests", billable_count),
        double("Availability", availability),
        double("AverageE2ELatency", latency),
        double("AverageServerLatency", latency),
        double("PercentSuccess", percent(&[Outcome::Success])),
        double("PercentThrottlingError", percent(&[Outcome::ThrottlingError])),
        double("PercentTimeoutError", percent(&[Outcome::ClientTimeoutError, Outcome::ServerTimeoutError])),
        double("PercentServerOtherError", percent(&[Outcome::ServerOtherError])),
        double("PercentClientOtherError", percent(&[Outcome::ClientOtherError])),
        double("PercentAuthorizationError", percent(&[Outcome::AuthorizationError])),
        double("PercentNetworkError", percent(&[Outcome::NetworkError])),
    ];
    for (outcome, credentials) in cells() {
        columns.push(integer(column(outcome, credentials), counts.of(outcome, credentials)));
    }
    columns
}

/// The counts of a row that was written before.
pub(super) fn read(row: &impl EntitySource) -> AnalyticsCounts {
    let integer = |name: &str| match row.property(name) {
        Some(Value::Int64(count)) => u64::try_from(count).unwrap_or(0),
        _ => 0,
    };
    let mut counts = AnalyticsCounts::of_bytes(integer("TotalIngress"), integer("TotalEgress"));
    for (outcome, credentials) in cells() {
        counts.set(outcome, credentials, integer(&column(outcome, credentials)));
    }
    if let Some(Value::Double(latency)) = row.property("AverageE2ELatency") {
        let success_count = counts.all_of(Outcome::Success) as f64;
        counts.success_ns = (latency * success_count * NANOSECONDS_PER_MILLISECOND).round() as u64;
    }
    counts
}

/// Every outcome with all credentials, in the order of the columns.
fn cells() -> impl Iterator<Item = (Outcome, Credentials)> {
    const CREDENTIALS: [Credentials; 3] = [Credentials::Account, Credentials::Anonymous, Credentials::Sas];
    Outcome::ALL
        .into_iter()
        .flat_map(|outcome| CREDENTIALS.into_iter().map(move |credentials| (outcome, credentials)))
}

fn column(outcome: Outcome, credentials: Credentials) -> String {
    let prefix = match credentials {
        Credentials::Account => "",
        Credentials::Anonymous => "Anonymous",
        Credentials::Sas => "SAS",
    };
    let outcome = match outcome {
        Outcome::Success => "Success",
        Outcome::ThrottlingError => "ThrottlingError",
        Outcome::ClientTimeoutError => "ClientTimeoutError",
        Outcome::ServerTimeoutError => "ServerTimeoutError",
        Outcome::ClientOtherError => "ClientOtherError",
        Outcome::ServerOtherError => "ServerOtherError",
        Outcome::AuthorizationError => "AuthorizationError",
        Outcome::NetworkError => "NetworkError",
    };
    [prefix, outcome].concat()
}

fn is_billable(outcome: Outcome, credentials: Credentials) -> bool {
    !matches!(outcome, Outcome::ServerTimeoutError | Outcome::ServerOtherError)
        && counts_for_availability(outcome, credentials)
}

fn counts_for_availability(outcome: Outcome, credentials: Credentials) -> bool {
    outcome != Outcome::ThrottlingError
        && (outcome, credentials) != (Outcome::AuthorizationError, Credentials::Anonymous)
}

fn sum(counts: &AnalyticsCounts, takes: fn(Outcome, Credentials) -> bool) -> u64 {
    let taken = cells().filter(|(outcome, credentials)| takes(*outcome, *credentials));
    taken.map(|(outcome, credentials)| counts.of(outcome, credentials)).sum()
}

/// In percent; `None` of nothing.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn milliseconds(all_ns: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { all_ns as f64 / NANOSECONDS_PER_MILLISECOND / count as f64 }
}

fn integer(name: impl Into<Cow<'static, str>>, value: u64) -> Property<'static> {
    Property { name: name.into(), value: Value::Int64(i64::try_from(value).unwrap_or(i64::MAX)) }
}

fn double(name: &'static str, value: f64) -> Property<'static> {
    Property { name: name.into(), value: Value::Double(value) }
}

#[cfg(test)]
mod tests {
    use protocol::table::model::RawValue;

    use super::*;

    struct Columns(Vec<Property<'static>>);

    impl EntitySource for Columns {
        fn partition_key(&self) -> &str {
            ""
        }

        fn row_key(&self) -> &str {
            ""
        }

        fn timestamp(&self) -> DateTime {
            DateTime::UNIX_EPOCH
        }

        fn property(&self, name: &str) -> Option<Value<'_>> {
            self.0.iter().find(|property| property.name == name).map(|property| property.value.clone())
        }

        fn for_each_raw(&self, _: impl FnMut(&[u8], RawValue<'_>)) {}
    }

    fn some_counts() -> AnalyticsCounts {
        let mut counts = AnalyticsCounts::of_bytes(11, 13);
        for (n, (outcome, credentials)) in cells().enumerate() {
            counts.set(outcome, credentials, n as u64 + 1);
        }
        counts.success_ns = 6 * 1_500_000;
        counts
    }

    fn value(counts: &AnalyticsCounts, name: &str) -> Value<'static> {
        Columns(properties(counts)).property(name).unwrap_or_else(|| panic!("no column {name}")).into_owned()
    }

    #[test]
    fn there_are_all_documented_columns_and_no_others() {
        let names: Vec<_> =
            properties(&some_counts()).into_iter().map(|property| property.name.into_owned()).collect();
        assert_eq!(names.len(), 14 + 24);
        for name in
            ["SASServerTimeoutError", "AnonymousNetworkError", "ClientOtherError", "PercentTimeoutError"]
        {
            assert!(names.iter().any(|found| found == name), "{name}");
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let counts = some_counts();
        assert_eq!(read(&Columns(properties(&counts))), counts);
        assert_eq!(read(&Columns(Vec::new())), AnalyticsCounts::default());
    }

    #[test]
    fn sums_and_percentages_follow_the_documented_rules() {
        let counts = some_counts();
        // 1 to 24: three of each outcome, in the order of the outcomes, anonymous ones second.
        assert_eq!(value(&counts, "TotalRequests"), Value::Int64(300));
        let throttled = 4 + 5 + 6;
        let failed = (10 + 11 + 12) + (16 + 17 + 18);
        let anonymous_refused = 20;
        let billable = 300 - throttled - failed - anonymous_refused;
        assert_eq!(value(&counts, "TotalBillableRequests"), Value::Int64(billable));
        let availability = 100.0 * billable as f64 / (billable + failed) as f64;
        assert_eq!(value(&counts, "Availability"), Value::Double(availability));
        assert_eq!(value(&counts, "PercentSuccess"), Value::Double(2.0));
        assert_eq!(value(&counts, "AverageE2ELatency"), Value::Double(1.5));
        let nothing = AnalyticsCounts::default();
        assert_eq!(value(&nothing, "Availability"), Value::Double(100.0));
        assert_eq!(value(&nothing, "PercentSuccess"), Value::Double(0.0));
    }

    #[test]
    fn keys_and_names_are_the_documented_ones() {
        let minute = DateTime::parse("2014-05-22T11:07:59Z").unwrap().ticks() / TICKS_PER_MINUTE;
        assert_eq!(partition_key(minute), "20140522T1107");
        assert_eq!(partition_key(MetricsInterval::Hour.start(minute)), "20140522T1100");
        let name = |interval, is_secondary, service| {
            table_name(interval, is_secondary, service).map(|name| name.as_str().to_owned())
        };
        assert_eq!(
            name(MetricsInterval::Hour, false, Service::Table).as_deref(),
            Some("$MetricsHourPrimaryTransactionsTable")
        );
        assert_eq!(
            name(MetricsInterval::Minute, true, Service::Queue).as_deref(),
            Some("$MetricsMinuteSecondaryTransactionsQueue")
        );
        assert_eq!(name(MetricsInterval::Minute, true, Service::Other), None);
        for (operation, expected) in [
            (Operation::GetEntity, "user;QueryEntity"),
            (Operation::QueryEntities, "user;QueryEntities"),
            (Operation::InsertOrMergeEntity, "user;InsertOrMergeEntity"),
            (Operation::EntityGroupTransaction, "user;EntityGroupTransaction"),
            (Operation::TablePreflight, "user;TablePreflightRequest"),
            (Operation::GetMessages, "user;GetMessages"),
            (Operation::TableUnread, "user;Unknown"),
        ] {
            assert_eq!(row_key(operation), expected);
        }
    }
}
