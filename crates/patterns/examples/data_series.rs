//! Data series: the messages that an employee sends in each hour of a day, in one entity. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, IfMatch, Value};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const PLOT: &str = "Plot the messages that one employee sent in each hour of a day";
const STORE: &str = "Store the count of one more hour";
const HOURS: u8 = 24;
const DAY: &str = "2026-01-31";

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct HourCount {
    #[entity(partition_key)]
    employee: String,
    #[entity(row_key)]
    hour: String,
    messages: i32,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let wanted = data::someone(size).id;
    let messages = |hour: u8| i32::from(hour) * 7 % 10;
    let ids: Vec<String> = (1..=size.count()).map(data::employee_id).collect();

    let table = demo.table("Hours").await?;
    let row_key = |hour: u8| format!("{DAY}T{hour:02}");
    let hours: Vec<HourCount> = ids
        .iter()
        .flat_map(|id| {
            (0..HOURS).map(|hour| HourCount {
                employee: id.clone(),
                hour: row_key(hour),
                messages: messages(hour),
            })
        })
        .collect();
    demo.load(&table, &hours).await?;
    let of_day = HourCount::employee().eq(wanted.as_str()) & HourCount::hour().starts_with(DAY);
    let (cost, found) = demo.measure(table.query::<HourCount>().filter(of_day).all()).await?;
    let expected: Vec<i32> = found.iter().map(|hour| hour.messages).collect();
    report.add(PLOT, size, "before", cost);
    let more = HourCount { employee: wanted.clone(), hour: row_key(0), messages: 99 };
    let (cost, _) = demo.measure(table.replace(&more, IfMatch::Any)).await?;
    report.add(STORE, size, "before", cost);

    let table = demo.table("Days").await?;
    let series: Vec<RawEntity> = ids
        .iter()
        .map(|id| {
            let property =
                |day: RawEntity, hour: u8| day.with(format!("Hour{hour:02}"), Value::Int32(messages(hour)));
            (0..HOURS).fold(RawEntity::new(id.as_str(), DAY), property)
        })
        .collect();
    demo.load(&table, &series).await?;
    let (cost, day) = demo.measure(table.get::<RawEntity>(&wanted, DAY)).await?;
    let value = |hour: u8| match day.value(&format!("Hour{hour:02}")) {
        Some(Value::Int32(messages)) => *messages,
        _ => 0,
    };
    assert_eq!((0..HOURS).map(value).collect::<Vec<_>>(), expected);
    report.add(PLOT, size, "after", cost);
    // A merge changes one hour and leaves the others alone.
    let more = RawEntity::new(wanted, DAY).with("Hour00", Value::Int32(99));
    let (cost, _) = demo.measure(table.merge(&more, IfMatch::Any)).await?;
    report.add(STORE, size, "after", cost);
    Ok(())
}
