//! High-volume delete: the logins of a day, deleted with their table. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{BulkMode, Entity};
use lazulite_patterns::daily::DailyTables;
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const DELETE: &str = "Delete the logins of the day before";
const DAY_SECONDS: u64 = 24 * 3600;
/// Each user logs in several times a day, and has a partition.
const LOGINS_PER_USER: u64 = 10;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Login {
    #[entity(partition_key)]
    user: String,
    #[entity(row_key)]
    time: String,
    succeeded: bool,
}

/// What the deletion needs.
#[derive(Entity)]
struct LoginKeys {
    #[entity(partition_key)]
    user: String,
    #[entity(row_key)]
    time: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    report.count_as("logins");
    let login = |n: u64, day: u64| Login {
        user: data::employee_id(n / LOGINS_PER_USER),
        time: keys::chronological(data::moment(day * DAY_SECONDS + n)),
        succeeded: !n.is_multiple_of(7),
    };
    let days: [Vec<Login>; 2] =
        [0, 1].map(|day| (0..size.count()).map(|number| login(number, day)).collect());
    let (yesterday, today) = (data::moment(0), data::moment(DAY_SECONDS));

    // One table: find the old ones (their time is in the RowKey, and every partition has some), then delete them.
    let table = demo.table("Logins").await?;
    demo.load(&table, &days.concat()).await?;
    let by_row = async {
        let old = LoginKeys::time().lt(keys::chronological(today).as_str());
        let old = table.query::<LoginKeys>().filter(old).all().await?;
        table.bulk(&old, BulkMode::Delete).send().await.into_result()?;
        Ok::<_, AnyError>(())
    };
    let (cost, ()) = demo.measure(by_row).await?;
    assert_eq!(table.query::<LoginKeys>().count().await?, size.count());
    report.add(DELETE, size, "before", cost);

    let tables = DailyTables::new(demo.tables().clone(), demo.name("Day"));
    for (day, logins) in [yesterday, today].into_iter().zip(&days) {
        demo.load(&tables.open(day).await?, logins).await?;
    }
    let (cost, gone) = demo.measure(tables.delete_before(today)).await?;
    assert_eq!(gone, [tables.name(yesterday)]);
    report.add(DELETE, size, "after", cost);
    demo.tables().delete_table(&tables.name(today)).await?;
    Ok(())
}
