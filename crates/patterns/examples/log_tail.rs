//! Log tail: the newest expense claims of an employee first. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::Entity;
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const LATEST: &str = "Read the ten newest expense claims of one employee";
const WANTED: usize = 10;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Claim {
    #[entity(partition_key)]
    employee: String,
    #[entity(row_key)]
    key: String,
    number: i64,
    amount: i32,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    report.count_as("claims");
    let employee = data::someone(Size::Small).id;
    let claim = |key: String, number: u64| Claim {
        employee: employee.clone(),
        key,
        number: i64::try_from(number).unwrap_or(i64::MAX),
        amount: 100 + i32::try_from(number % 50).unwrap_or(0),
    };
    let numbers = 0..size.count();
    // The number after the time tells claims of the same tick apart.
    let id = |number: u64| format!("{number:06}");

    let table = demo.table("Chronological").await?;
    let oldest_first: Vec<Claim> = numbers
        .clone()
        .map(|n| claim(keys::compose([keys::chronological(data::moment(n)), id(n)]), n))
        .collect();
    demo.load(&table, &oldest_first).await?;
    // There is no way to ask for the last rows, so everything is read.
    let (cost, all) = demo.measure(table.query::<Claim>().partition(&employee).all()).await?;
    let expected: Vec<i64> = all.iter().rev().take(WANTED).map(|claim| claim.number).collect();
    report.add(LATEST, size, "before", cost);

    let table = demo.table("Tail").await?;
    let newest_first: Vec<Claim> =
        numbers.map(|n| claim(keys::compose([keys::log_tail(data::moment(n)), id(n)]), n)).collect();
    demo.load(&table, &newest_first).await?;
    let (cost, found) = demo.measure(table.query::<Claim>().partition(&employee).top(WANTED).all()).await?;
    assert_eq!(found.iter().map(|claim| claim.number).collect::<Vec<_>>(), expected);
    report.add(LATEST, size, "after", cost);
    Ok(())
}
