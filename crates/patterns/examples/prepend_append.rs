//! Anti-pattern: keys that grow with time send all inserts to one partition. See docs/patterns.

use std::collections::BTreeMap;
use std::process::ExitCode;

use lazulite_client::{Entity, Error};
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const LOG: &str = "Log 200 events of one hour";
const READ: &str = "Read what one employee did in that hour";
const EVENT_COUNT: u64 = 200;
const HOUR: &str = "2026-01-31T15";

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Event {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: String,
    #[entity(rename = "EmployeeId")]
    employee: String,
    resource: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let wanted = data::someone(size);
    // Everybody does something in turn; the employee that is looked for does every tenth thing.
    let actor = |n: u64| match n % 10 {
        0 => wanted.clone(),
        _ => data::employee(1 + n * 7 % size.count()),
    };
    let time = |n: u64| keys::chronological(data::moment(15 * 3600 + n * 10));
    let by_hour: Vec<Event> = (0..EVENT_COUNT)
        .map(|n| Event {
            partition: HOUR.to_owned(),
            row: keys::compose([time(n), format!("{n:06}")]),
            employee: actor(n).id,
            resource: "printer".to_owned(),
        })
        .collect();
    let by_employee: Vec<Event> = (0..EVENT_COUNT)
        .map(|n| Event {
            partition: keys::compose([actor(n).department, actor(n).id]),
            ..by_hour[n as usize].clone()
        })
        .collect();

    let mut found_before = 0;
    for (way, events) in [("before", by_hour), ("after", by_employee)] {
        let table = demo.table("Events").await?;
        let log = async {
            for event in &events {
                table.insert(event).await?;
            }
            Ok::<_, Error>(())
        };
        let (cost, ()) = demo.measure(log).await?;
        report.add(LOG, size, way, cost);
        if way == "before" {
            let filter = Event::partition().eq(HOUR) & Event::employee().eq(wanted.id.as_str());
            let (cost, found) = demo.measure(table.query::<Event>().filter(filter).all()).await?;
            found_before = found.len();
            report.add(READ, size, way, cost);
        } else {
            let partition = keys::compose([wanted.department.as_str(), &wanted.id]);
            let hour = Event::row().between(time(0).as_str(), time(360).as_str());
            let filter = Event::partition().eq(partition.as_str()) & hour;
            let (cost, found) = demo.measure(table.query::<Event>().filter(filter).all()).await?;
            assert_eq!(found.len(), found_before);
            report.add(READ, size, way, cost);
        }
        let (busiest, partitions) = busiest(&events);
        report.note(format!(
            "{} employees, {way}: partitions that take the {EVENT_COUNT} inserts: {partitions}; inserts into the busiest: \
             {busiest}.",
            showcase::grouped(size.count())
        ));
    }
    Ok(())
}

/// How many events the busiest partition gets, and how many partitions there are.
fn busiest(events: &[Event]) -> (usize, usize) {
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        *loads.entry(&event.partition).or_default() += 1;
    }
    (loads.values().copied().max().unwrap_or(0), loads.len())
}
