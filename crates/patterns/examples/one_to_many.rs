//! One to many: a department and its employees, laid out in three ways. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, Error, IfMatch};
use lazulite_patterns::Raw;
use lazulite_patterns::data::{self, DEPARTMENTS, Employee, Size};
use lazulite_patterns::showcase::{self, Failure, Report, Stage};

const ONE: &str = "Show one employee with the budget of the department";
const ALL: &str = "Show a department with all its employees";
const CHANGE: &str = "Change the budget of a department";

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    kind: String,
    budget: i64,
}

/// An employee that carries a copy of what its department has.
#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct FullEmployee {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    #[entity(rename = "EmailAddress")]
    email: String,
    #[entity(rename = "DepartmentBudget")]
    budget: i64,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(stage: &Stage, size: Size, report: &mut Report) -> Result<(), Failure> {
    let staff = data::employees(size);
    let wanted = data::someone(size);
    let department =
        |name: &str| Department { name: name.to_owned(), kind: "department".to_owned(), budget: 1_000_000 };
    let departments: Vec<Department> = DEPARTMENTS.into_iter().map(department).collect();
    let richer = Department { budget: 2_000_000, ..department("Sales") };

    let way = "two tables";
    let (ones, many) = (stage.table("Departments").await?, stage.table("Employees").await?);
    stage.load(&ones, &departments).await?;
    stage.load(&many, &staff).await?;
    let one = async {
        let employee: Employee = many.get("Sales", &wanted.id).await?;
        ones.get::<Department>(&employee.department, "department").await
    };
    let (counts, _) = stage.measure(one).await?;
    report.add(ONE, size, way, counts);
    let all = async {
        ones.get::<Department>("Sales", "department").await?;
        many.query::<Employee>().partition("Sales").all().await
    };
    let (counts, all) = stage.measure(all).await?;
    report.add(ALL, size, way, counts);
    let (counts, _) = stage.measure(ones.replace(&richer, IfMatch::Any)).await?;
    report.add(CHANGE, size, way, counts);

    let way = "one partition";
    let table = stage.table("Company").await?;
    stage.load(&table, &departments).await?;
    stage.load(&table, &staff).await?;
    let one = async {
        table.get::<Employee>("Sales", &wanted.id).await?;
        table.get::<Department>("Sales", "department").await
    };
    let (counts, _) = stage.measure(one).await?;
    report.add(ONE, size, way, counts);
    let (counts, rows) = stage.measure(table.query::<Raw>().partition("Sales").all()).await?;
    assert_eq!(rows.len(), all.len() + 1);
    report.add(ALL, size, way, counts);
    let (counts, _) = stage.measure(table.replace(&richer, IfMatch::Any)).await?;
    report.add(CHANGE, size, way, counts);

    let way = "denormalised";
    let table = stage.table("Full").await?;
    let full: Vec<FullEmployee> = staff
        .iter()
        .map(|employee| FullEmployee {
            department: employee.department.clone(),
            id: employee.id.clone(),
            last_name: employee.last_name.clone(),
            email: employee.email.clone(),
            budget: 1_000_000,
        })
        .collect();
    stage.load(&table, &full).await?;
    let (counts, _) = stage.measure(table.get::<FullEmployee>("Sales", &wanted.id)).await?;
    report.add(ONE, size, way, counts);
    let (counts, rows) = stage.measure(table.query::<FullEmployee>().partition("Sales").all()).await?;
    assert_eq!(rows.len(), all.len());
    report.add(ALL, size, way, counts);
    // Every employee carries the budget, so every employee changes.
    let change = async {
        let mut rows = table.query::<FullEmployee>().partition("Sales").all().await?;
        for row in &mut rows {
            row.budget = 2_000_000;
        }
        for some in rows.chunks(100) {
            let mut transaction = table.transaction("Sales");
            for row in some {
                transaction.merge(row, IfMatch::Any)?;
            }
            transaction.send().await?;
        }
        Ok::<_, Error>(())
    };
    let (counts, ()) = stage.measure(change).await?;
    report.add(CHANGE, size, way, counts);
    Ok(())
}
