//! Denormalisation: a department that carries the details of its manager. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, Error, IfMatch};
use lazulite_patterns::data::{self, DEPARTMENTS, Employee, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const SHOW: &str = "Show a department with the name and address of its manager";
const CHANGE: &str = "Change the address of a manager";

#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Department {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    kind: String,
    manager_id: String,
}

#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct FullDepartment {
    #[entity(partition_key)]
    name: String,
    #[entity(row_key)]
    kind: String,
    manager_id: String,
    manager_name: String,
    manager_email: String,
}

/// The properties that a department needs of its manager.
#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Contact {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    #[entity(rename = "EmailAddress")]
    email: String,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let manager_of = |name: &str| staff.iter().find(|employee| employee.department == name);
    let managers: Vec<&Employee> = DEPARTMENTS.into_iter().filter_map(manager_of).collect();

    let (departments, employees) = (demo.table("Departments").await?, demo.table("Employees").await?);
    demo.load(&employees, &staff).await?;
    let lean: Vec<Department> = managers
        .iter()
        .map(|manager| Department {
            name: manager.department.clone(),
            kind: "department".to_owned(),
            manager_id: manager.id.clone(),
        })
        .collect();
    demo.load(&departments, &lean).await?;
    let two_reads = async {
        let sales: Department = departments.get("Sales", "department").await?;
        employees.get::<Contact>(&sales.name, &sales.manager_id).await
    };
    let (cost, contact) = demo.measure(two_reads).await?;
    report.add(SHOW, size, "before", cost);

    let table = demo.table("Company").await?;
    demo.load(&table, &staff).await?;
    let full: Vec<FullDepartment> = managers
        .iter()
        .map(|manager| FullDepartment {
            name: manager.department.clone(),
            kind: "department".to_owned(),
            manager_id: manager.id.clone(),
            manager_name: manager.last_name.clone(),
            manager_email: manager.email.clone(),
        })
        .collect();
    demo.load(&table, &full).await?;
    let (cost, sales) = demo.measure(table.get::<FullDepartment>("Sales", "department")).await?;
    assert_eq!((sales.manager_name, sales.manager_email), (contact.last_name, contact.email));
    report.add(SHOW, size, "after", cost);

    let moved = Contact {
        department: contact.department,
        id: contact.id,
        last_name: "Jones".to_owned(),
        email: "boss@contoso.com".to_owned(),
    };
    let (cost, _) = demo.measure(employees.merge(&moved, IfMatch::Any)).await?;
    report.add(CHANGE, size, "before", cost);
    // One transaction keeps the copy right: both rows are in the partition of the department.
    let both = async {
        let mut transaction = table.transaction("Sales");
        transaction.merge(&moved, IfMatch::Any)?;
        transaction.merge(
            &FullDepartment {
                name: "Sales".to_owned(),
                kind: "department".to_owned(),
                manager_id: moved.id.clone(),
                manager_name: moved.last_name.clone(),
                manager_email: moved.email.clone(),
            },
            IfMatch::Any,
        )?;
        transaction.send().await?;
        Ok::<_, Error>(())
    };
    let (cost, ()) = demo.measure(both).await?;
    report.add(CHANGE, size, "after", cost);
    Ok(())
}
