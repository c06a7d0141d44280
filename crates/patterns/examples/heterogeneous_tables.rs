//! Heterogeneous tables: a department and its employees in one table, read with one query. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, EntityKind, Error};
use lazulite_patterns::data::{self, DEPARTMENTS, Employee, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const READ: &str = "Read a department and its employees";
const FOUND: &str = "Found a department with its first employee";

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    row: String,
    budget: i64,
}

/// What the table holds. The RowKey says which kind a row is.
#[derive(EntityKind)]
#[entity(row_key_prefix)]
enum Company {
    #[entity(prefix = "department")]
    Department(Department),
    #[entity(prefix = "empid_")]
    Employee(Employee),
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let department =
        |name: &str| Department { name: name.to_owned(), row: "department".to_owned(), budget: 1_000_000 };
    let departments: Vec<Department> = DEPARTMENTS.into_iter().map(department).collect();
    let with_prefix =
        |employee: &Employee| Employee { id: format!("empid_{}", employee.id), ..employee.clone() };
    let first = Employee { department: "Research".to_owned(), ..data::employee(1) };

    let (ones, many) = (demo.table("Departments").await?, demo.table("Employees").await?);
    demo.load(&ones, &departments).await?;
    demo.load(&many, &staff).await?;
    let two_queries = async {
        ones.get::<Department>("Sales", "department").await?;
        many.query::<Employee>().partition("Sales").all().await
    };
    let (cost, expected) = demo.measure(two_queries).await?;
    report.add(READ, size, "before", cost);
    // Nothing ties these two together: the department may stay without anybody.
    let two_writes = async {
        ones.insert(&department("Research")).await?;
        many.insert(&first).await
    };
    let (cost, _) = demo.measure(two_writes).await?;
    report.add(FOUND, size, "before", cost);

    let table = demo.table("Company").await?;
    let mut company: Vec<Company> = departments.into_iter().map(Company::Department).collect();
    company.extend(staff.iter().map(with_prefix).map(Company::Employee));
    demo.load(&table, &company).await?;
    let (cost, rows) = demo.measure(table.query::<Company>().partition("Sales").all()).await?;
    let employee_count = rows.iter().filter(|row| matches!(row, Company::Employee(_))).count();
    let budget: i64 = rows
        .iter()
        .map(|row| match row {
            Company::Department(department) => department.budget,
            Company::Employee(_) => 0,
        })
        .sum();
    assert_eq!((employee_count, budget), (expected.len(), 1_000_000));
    report.add(READ, size, "after", cost);
    let together = async {
        let mut transaction = table.transaction("Research");
        transaction.insert(&department("Research"))?.insert(&with_prefix(&first))?;
        transaction.send().await?;
        Ok::<_, Error>(())
    };
    let (cost, ()) = demo.measure(together).await?;
    report.add(FOUND, size, "after", cost);
    Ok(())
}
