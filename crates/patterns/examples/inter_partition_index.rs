//! Inter-partition secondary index: find employees of any department by e-mail address. See docs/patterns.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lazulite_client::{Error, IfMatch, Keys};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::follow::{CopyIndex, Delivery, Follower, Worked, Worker};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const FIND: &str = "Find one employee of any department by e-mail address";
const CHANGE: &str = "Change one e-mail address, the worker's requests included";
const VISIBILITY: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let wanted = data::someone(size);
    let table = demo.table("Employees").await?;
    demo.load(&table, &staff).await?;

    let by_email = Employee::email().eq(wanted.email.as_str());
    let (cost, found) = demo.measure(table.query::<Employee>().filter(by_email).all()).await?;
    assert_eq!(found.first().map(|employee| &employee.id), Some(&wanted.id));
    report.add(FIND, size, "before", cost);
    let old: Employee = table.get(&wanted.department, &wanted.id).await?;
    let new = Employee { email: format!("a.{}", old.email), ..old.clone() };
    let (cost, _) = demo.measure(table.replace(&new, IfMatch::Unchanged)).await?;
    report.add(CHANGE, size, "before", cost);
    table.replace(&wanted, IfMatch::Any).await?;

    // The index is spread over partitions by the address itself.
    let copies = demo.table("ByEmail").await?;
    let index = Arc::new(CopyIndex::new(copies.clone(), |employee: &Employee| {
        vec![Keys { partition_key: employee.email.clone().into(), row_key: "".into() }]
    }));
    let all = staff.iter().map(|employee| index.copies_of(employee)).collect::<Result<Vec<_>, _>>()?;
    demo.load(&copies, &all.concat()).await?;
    let (cost, found) = demo.measure(index.find(&wanted.email, "")).await?;
    assert_eq!(found.map(|employee| employee.id), Some(wanted.id.clone()));
    report.add(FIND, size, "after", cost);

    let (queue, poison) = (demo.queue("changes").await?, demo.queue("poison").await?);
    let worker = Worker::<Employee, _>::new(table.clone(), queue.clone(), poison, index.clone(), VISIBILITY);
    for (delivery, way) in [(Delivery::Outbox, "after, outbox"), (Delivery::Queue, "after, queue")] {
        let follower = Follower::new(table.clone(), queue.clone(), delivery, index.clone());
        let old: Employee = table.get(&wanted.department, &wanted.id).await?;
        let new = Employee { email: format!("a.{}", old.email), ..old.clone() };
        let change = async {
            follower.replace(&old, &new).await?;
            while worker.work().await? != Worked::Nothing {}
            Ok::<_, Error>(())
        };
        let (cost, ()) = demo.measure(change).await?;
        assert_eq!(index.find(&old.email, "").await?, None);
        assert_eq!(index.find(&new.email, "").await?.map(|employee| employee.id), Some(wanted.id.clone()));
        report.add(CHANGE, size, way, cost);
    }
    Ok(())
}
