//! Index entities: list the employees with one last name, in a department and in the company. See docs/patterns.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lazulite_client::{Entity, Error, Keys};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::follow::{Delivery, Follower, NameLists, Worked, Worker};
use lazulite_patterns::join;
use lazulite_patterns::name_list::NameList;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const IN_SALES: &str = "List the employees of Sales with one last name";
const ANYWHERE: &str = "List the employees of all departments with one last name";
const HIRE: &str = "Hire one employee";
const VISIBILITY: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let name = data::someone(size).last_name;
    let newcomer = data::employee(size.count() + 3);
    let last_name = |employee: &Employee| employee.last_name.clone();
    let table = demo.table("Employees").await?;
    demo.load(&table, &staff).await?;

    let named = || Employee::last_name().eq(name.as_str());
    let in_sales = Employee::department().eq("Sales") & named();
    let (cost, expected_in_sales) = demo.measure(table.query::<Employee>().filter(in_sales).all()).await?;
    report.add(IN_SALES, size, "before", cost);
    let (cost, expected) = demo.measure(table.query::<Employee>().filter(named()).all()).await?;
    report.add(ANYWHERE, size, "before", cost);
    let (cost, _) = demo.measure(table.insert(&newcomer)).await?;
    report.add(HIRE, size, "before", cost);
    table.delete_entity(&newcomer, lazulite_client::IfMatch::Any).await?;

    // In the same partition: one transaction writes the employee and the list.
    let list = NameList::new(table.clone(), "name", last_name);
    demo.load(&table, &list.lists_of(&staff)?).await?;
    let look_up = async {
        let members = list.members("Sales", &name).await?;
        let keys = members.into_iter().map(|id| Keys { partition_key: "Sales".into(), row_key: id.into() });
        join::fetch::<Employee>(&table, keys).await
    };
    let (cost, found) = demo.measure(look_up).await?;
    assert_eq!(found.len(), expected_in_sales.len());
    report.add(IN_SALES, size, "after", cost);
    let (cost, ()) = demo.measure(list.insert(&newcomer)).await?;
    report.add(HIRE, size, "after, same partition", cost);

    // In another table: a worker follows.
    let table = demo.table("Staff").await?;
    demo.load(&table, &staff).await?;
    let names = demo.table("Names").await?;
    let lists = Arc::new(NameLists::new(names.clone(), last_name));
    demo.load(&names, &lists.lists_of(&staff)?).await?;
    let look_up = async { join::fetch::<Employee>(&table, lists.members(&name).await?).await };
    let (cost, found) = demo.measure(look_up).await?;
    assert_eq!(found.len(), expected.len());
    report.add(ANYWHERE, size, "after", cost);
    let (queue, poison) = (demo.queue("hired").await?, demo.queue("poison").await?);
    let worker = Worker::<Employee, _>::new(table.clone(), queue.clone(), poison, lists.clone(), VISIBILITY);
    let follower = Follower::new(table, queue, Delivery::Outbox, lists.clone());
    let hire = async {
        follower.insert(&newcomer).await?;
        while worker.work().await? != Worked::Nothing {}
        Ok::<_, Error>(())
    };
    let (cost, ()) = demo.measure(hire).await?;
    assert!(lists.members(&newcomer.last_name).await?.contains(&newcomer.keys()?));
    report.add(HIRE, size, "after, other table", cost);
    Ok(())
}
