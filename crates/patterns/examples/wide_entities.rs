//! Wide entities: a count for each day of a year, in rows that are read as one entity. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::Value;
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};
use lazulite_patterns::wide::WideRows;

const READ: &str = "Read one employee's counts of a year";
const WRITE: &str = "Write one employee's counts of a year";
const DAYS: i32 = 365;
const YEAR: &str = "2025";

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    // The other employees: each has a year too, in a partition of its own.
    let others: Vec<RawEntity> =
        (1..=size.count()).map(|n| RawEntity::new(data::employee_id(n), "employee")).collect();
    let employee = data::someone(size).id;

    let table = demo.table("Days").await?;
    demo.load(&table, &others).await?;
    let days: Vec<RawEntity> = (1..=DAYS)
        .map(|day| {
            RawEntity::new(employee.as_str(), format!("{YEAR}-{day:03}")).with("Messages", Value::Int32(day))
        })
        .collect();
    let write = async { demo.load(&table, &days).await };
    let (cost, ()) = demo.measure(write).await?;
    report.add(WRITE, size, "before", cost);
    let of_year = lazulite_client::DynamicEntity::partition_key().eq(employee.as_str())
        & lazulite_client::DynamicEntity::row_key().starts_with(YEAR);
    let (cost, rows) = demo.measure(table.query::<RawEntity>().filter(of_year.cast()).all()).await?;
    assert_eq!(rows.len(), DAYS as usize);
    report.add(READ, size, "before", cost);

    let table = demo.table("Years").await?;
    demo.load(&table, &others).await?;
    let wide = WideRows::new(table);
    let year = (1..=DAYS).fold(RawEntity::new(employee.as_str(), YEAR), |year, day| {
        year.with(format!("Day{day:03}"), Value::Int32(day))
    });
    let (cost, ()) = demo.measure(wide.write(&year)).await?;
    report.add(WRITE, size, "after", cost);
    let (cost, found) = demo.measure(wide.read::<RawEntity>(&employee, YEAR)).await?;
    let found = found.ok_or("the year that was written")?;
    assert_eq!(found.properties, year.properties);
    report.add(READ, size, "after", cost);
    Ok(())
}
