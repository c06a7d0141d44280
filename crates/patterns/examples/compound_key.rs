//! Compound key: the reviews of an employee under keys that begin with the employee's own. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{DynamicEntity, Entity, Error};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const READ: &str = "Read an employee with all reviews";
const YEARS: std::ops::Range<u32> = 2016..2026;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Review {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: String,
    manager_rating: i32,
    peer_rating: i32,
    comments: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let wanted = data::someone(size);
    let review = |partition: String, row: String| Review {
        partition,
        row,
        manager_rating: 4,
        peer_rating: 5,
        comments: "Keeps every promise.".to_owned(),
    };

    let (employees, reviews) = (demo.table("Employees").await?, demo.table("Reviews").await?);
    demo.load(&employees, &staff).await?;
    let apart: Vec<Review> = YEARS.map(|year| review(wanted.id.clone(), year.to_string())).collect();
    demo.load(&reviews, &apart).await?;
    let two_tables = async {
        let employee: Employee = employees.get(&wanted.department, &wanted.id).await?;
        let reviews = reviews.query::<Review>().partition(&employee.id).all().await?;
        Ok::<_, Error>(reviews.len())
    };
    let (cost, count) = demo.measure(two_tables).await?;
    assert_eq!(count, YEARS.len());
    report.add(READ, size, "before", cost);

    let table = demo.table("Company").await?;
    demo.load(&table, &staff).await?;
    let together: Vec<Review> = YEARS
        .map(|year| review(wanted.department.clone(), keys::compose([wanted.id.as_str(), &year.to_string()])))
        .collect();
    demo.load(&table, &together).await?;
    // From the employee itself up to the last of the rows that begin with its id and a separator.
    let end = keys::part_range([&wanted.id]).end;
    let rows = DynamicEntity::partition_key().eq(wanted.department.as_str())
        & DynamicEntity::row_key().between(wanted.id.as_str(), end.as_str());
    let (cost, rows) = demo.measure(table.query::<RawEntity>().filter(rows.cast()).all()).await?;
    assert_eq!(rows.len(), 1 + YEARS.len());
    assert_eq!(rows[0].text("LastName"), Some(wanted.last_name.as_str()));
    report.add(READ, size, "after", cost);
    Ok(())
}
