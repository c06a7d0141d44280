//! Intra-partition secondary index: find employees of a department by e-mail address. See docs/patterns.

use std::process::ExitCode;

use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::partition_index::PartitionIndex;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const FIND: &str = "Find one employee of Sales by e-mail address";
const HIRE: &str = "Hire one employee";

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let with_prefix = |employee: Employee| Employee { id: format!("empid_{}", employee.id), ..employee };
    let staff: Vec<Employee> = data::employees(size).into_iter().map(with_prefix).collect();
    let wanted = with_prefix(data::someone(size));
    let newcomer = with_prefix(data::employee(size.count() + 3));

    let plain = demo.table("Employees").await?;
    demo.load(&plain, &staff).await?;
    let by_email = Employee::department().eq("Sales") & Employee::email().eq(wanted.email.as_str());
    let (cost, found) = demo.measure(plain.query::<Employee>().filter(by_email).all()).await?;
    assert_eq!(found.first().map(|employee| &employee.id), Some(&wanted.id));
    report.add(FIND, size, "before", cost);
    let (cost, _) = demo.measure(plain.insert(&newcomer)).await?;
    report.add(HIRE, size, "before", cost);

    let table = demo.table("Indexed").await?;
    let indexed =
        PartitionIndex::new(table.clone(), |employee: &Employee| vec![format!("email_{}", employee.email)]);
    demo.load(&table, &staff).await?;
    let copies = staff.iter().map(|employee| indexed.copies_of(employee)).collect::<Result<Vec<_>, _>>()?;
    demo.load(&table, &copies.concat()).await?;
    let name = format!("email_{}", wanted.email);
    let (cost, found) = demo.measure(indexed.find("Sales", &name)).await?;
    assert_eq!(found.map(|employee| employee.id), Some(wanted.id));
    report.add(FIND, size, "after", cost);
    let (cost, ()) = demo.measure(indexed.insert(&newcomer)).await?;
    report.add(HIRE, size, "after", cost);
    Ok(())
}
