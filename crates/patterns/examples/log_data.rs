//! Anti-pattern: log data by hour or by source, and buckets as the middle way. See docs/patterns.

use std::collections::BTreeMap;
use std::process::ExitCode;

use lazulite_client::{Entity, Error};
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const READ: &str = "Read the messages of all sources in half an hour of a day";
const BUCKET_COUNT: u16 = 8;
const SOURCE_COUNT: u64 = 50;
const DAY_SECONDS: u64 = 24 * 3600;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Entry {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: String,
    source: String,
    message: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    report.count_as("messages");
    let seconds = |n: u64| n * DAY_SECONDS / size.count();
    let source = |n: u64| format!("server-{:02}", n % SOURCE_COUNT);
    let hour = |seconds: u64| format!("2026-01-31T{:02}", seconds / 3600);
    let row = |n: u64| keys::compose([keys::chronological(data::moment(seconds(n))), format!("{n:06}")]);
    let entries = |partition: &dyn Fn(u64) -> Result<String, keys::KeyError>| {
        let entry = |n| {
            let message = "the disk is nearly full".to_owned();
            Ok(Entry { partition: partition(n)?, row: row(n), source: source(n), message })
        };
        (0..size.count()).map(entry).collect::<Result<Vec<Entry>, keys::KeyError>>()
    };
    // Half an hour of the afternoon.
    let (from, to) = (15 * 3600, 15 * 3600 + 1800);
    let rows = || {
        let [from, to] = [from, to].map(|seconds| keys::chronological(data::moment(seconds)));
        Entry::row().between(from.as_str(), to.as_str())
    };

    let by_hour = entries(&|n| Ok(hour(seconds(n))))?;
    let table = demo.table("ByHour").await?;
    demo.load(&table, &by_hour).await?;
    let filter = Entry::partition().eq(hour(from).as_str()) & rows();
    let (cost, expected) = demo.measure(table.query::<Entry>().filter(filter).all()).await?;
    report.add(READ, size, "before, by hour", cost);

    let by_source = entries(&|n| Ok(source(n)))?;
    let table = demo.table("BySource").await?;
    demo.load(&table, &by_source).await?;
    let (cost, found) = demo.measure(table.query::<Entry>().filter(rows()).all()).await?;
    assert_eq!(found.len(), expected.len());
    report.add(READ, size, "before, by source", cost);

    let bucket = |n: u64| keys::bucket(&format!("{n}"), BUCKET_COUNT).map(keys::bucket_name);
    let by_bucket = entries(&|n| Ok(keys::compose([hour(seconds(n)), bucket(n)?])))?;
    let table = demo.table("ByBucket").await?;
    demo.load(&table, &by_bucket).await?;
    let read = async {
        let mut all = Vec::new();
        for bucket in keys::bucket_names(BUCKET_COUNT) {
            let partition = keys::compose([hour(from), bucket]);
            let filter = Entry::partition().eq(partition.as_str()) & rows();
            all.extend(table.query::<Entry>().filter(filter).all().await?);
        }
        all.sort_by(|left, right| left.row.cmp(&right.row));
        Ok::<_, Error>(all)
    };
    let (cost, found) = demo.measure(read).await?;
    let order = |entries: &[Entry]| entries.iter().map(|entry| entry.row.clone()).collect::<Vec<_>>();
    assert_eq!(order(&found), order(&expected));
    report.add(READ, size, "after, buckets", cost);

    let busiest = |entries: &[Entry]| {
        let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
        let in_hour = entries.iter().filter(|entry| entry.row.as_str() >= row_at(15).as_str());
        for entry in in_hour.filter(|entry| entry.row.as_str() < row_at(16).as_str()) {
            *loads.entry(&entry.partition).or_default() += 1;
        }
        loads.values().copied().max().unwrap_or(0)
    };
    report.note(format!(
        "{} messages: of those between 15:00 and 16:00, the busiest partition gets {} by hour, {} by source, {} with \
         {BUCKET_COUNT} buckets.",
        showcase::grouped(size.count()),
        busiest(&by_hour),
        busiest(&by_source),
        busiest(&by_bucket)
    ));
    Ok(())
}

fn row_at(hour: u64) -> String {
    keys::chronological(data::moment(hour * 3600))
}
