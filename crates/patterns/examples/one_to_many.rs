//! One to many: a department and its employees, laid out in three ways. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, Error, IfMatch};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, DEPARTMENTS, Employee, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

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

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let wanted = data::someone(size);
    let department =
        |name: &str| Department { name: name.to_owned(), kind: "department".to_owned(), budget: 1_000_000 };
    let departments: Vec<Department> = DEPARTMENTS.into_iter().map(department).collect();
    let richer = Department { budget: 2_000_000, ..department("Sales") };

    let way = "two tables";
    let (ones, many) = (demo.table("Departments").await?, demo.table("Employees").await?);
    demo.load(&ones, &departments).await?;
    demo.load(&many, &staff).await?;
    let one = async {
        let employee: Employee = many.get("Sales", &wanted.id).await?;
        ones.get::<Department>(&employee.department, "department").await
    };
    let (cost, _) = demo.measure(one).await?;
    report.add(ONE, size, way, cost);
    let all = async {
        ones.get::<Department>("Sales", "department").await?;
        many.query::<Employee>().partition("Sales").all().await
    };
    let (cost, all) = demo.measure(all).await?;
    report.add(ALL, size, way, cost);
    let (cost, _) = demo.measure(ones.replace(&richer, IfMatch::Any)).await?;
    report.add(CHANGE, size, way, cost);

    let way = "one partition";
    let table = demo.table("Company").await?;
    demo.load(&table, &departments).await?;
    demo.load(&table, &staff).await?;
    let one = async {
        table.get::<Employee>("Sales", &wanted.id).await?;
        table.get::<Department>("Sales", "department").await
    };
    let (cost, _) = demo.measure(one).await?;
    report.add(ONE, size, way, cost);
    let (cost, rows) = demo.measure(table.query::<RawEntity>().partition("Sales").all()).await?;
    assert_eq!(rows.len(), all.len() + 1);
    report.add(ALL, size, way, cost);
    let (cost, _) = demo.measure(table.replace(&richer, IfMatch::Any)).await?;
    report.add(CHANGE, size, way, cost);

    let way = "denormalised";
    let table = demo.table("Full").await?;
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
    demo.load(&table, &full).await?;
    let (cost, _) = demo.measure(table.get::<FullEmployee>("Sales", &wanted.id)).await?;
    report.add(ONE, size, way, cost);
    let (cost, rows) = demo.measure(table.query::<FullEmployee>().partition("Sales").all()).await?;
    assert_eq!(rows.len(), all.len());
    report.add(ALL, size, way, cost);
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
    let (cost, ()) = demo.measure(change).await?;
    report.add(CHANGE, size, way, cost);
    Ok(())
}
