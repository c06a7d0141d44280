//! One to one: an employee and a contract, laid out in three ways. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{DynamicEntity, Entity};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::keys;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const BOTH: &str = "Show an employee with the contract";
const NAME: &str = "Show the name of an employee";

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Contract {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    salary: i64,
    terms: String,
}

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct WholeEmployee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    #[entity(rename = "EmailAddress")]
    email: String,
    salary: i64,
    terms: String,
}

/// A projection: the other properties stay at the server.
#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Name {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let wanted = data::someone(size);
    let terms = "Notice: three months. ".repeat(20);
    let contract = |employee: &Employee, id: String| Contract {
        department: employee.department.clone(),
        id,
        salary: 50_000,
        terms: terms.clone(),
    };

    let way = "two tables";
    let (employees, contracts) = (demo.table("Employees").await?, demo.table("Contracts").await?);
    demo.load(&employees, &staff).await?;
    let apart: Vec<Contract> = staff.iter().map(|employee| contract(employee, employee.id.clone())).collect();
    demo.load(&contracts, &apart).await?;
    let both = async {
        employees.get::<Employee>("Sales", &wanted.id).await?;
        contracts.get::<Contract>("Sales", &wanted.id).await
    };
    let (cost, found) = demo.measure(both).await?;
    assert_eq!(found.terms, terms);
    report.add(BOTH, size, way, cost);
    let (cost, _) = demo.measure(employees.get::<Name>("Sales", &wanted.id)).await?;
    report.add(NAME, size, way, cost);

    let way = "one entity";
    let table = demo.table("Whole").await?;
    let whole: Vec<WholeEmployee> = staff
        .iter()
        .map(|employee| WholeEmployee {
            department: employee.department.clone(),
            id: employee.id.clone(),
            last_name: employee.last_name.clone(),
            email: employee.email.clone(),
            salary: 50_000,
            terms: terms.clone(),
        })
        .collect();
    demo.load(&table, &whole).await?;
    let (cost, found) = demo.measure(table.get::<WholeEmployee>("Sales", &wanted.id)).await?;
    assert_eq!(found.terms, terms);
    report.add(BOTH, size, way, cost);
    let (cost, found) = demo.measure(table.get::<Name>("Sales", &wanted.id)).await?;
    assert_eq!(found.last_name, wanted.last_name);
    report.add(NAME, size, way, cost);

    let way = "two rows";
    let table = demo.table("Rows").await?;
    demo.load(&table, &staff).await?;
    let beside: Vec<Contract> = staff
        .iter()
        .map(|employee| contract(employee, keys::compose([employee.id.as_str(), "contract"])))
        .collect();
    demo.load(&table, &beside).await?;
    let end = keys::part_range([&wanted.id]).end;
    let rows = DynamicEntity::partition_key().eq("Sales")
        & DynamicEntity::row_key().between(wanted.id.as_str(), end.as_str());
    let (cost, rows) = demo.measure(table.query::<RawEntity>().filter(rows.cast()).all()).await?;
    assert_eq!(rows.len(), 2);
    report.add(BOTH, size, way, cost);
    let (cost, _) = demo.measure(table.get::<Name>("Sales", &wanted.id)).await?;
    report.add(NAME, size, way, cost);
    Ok(())
}
