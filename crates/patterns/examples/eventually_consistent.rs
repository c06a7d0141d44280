//! Eventually consistent transactions: move employees to an archive, through a queue. See docs/patterns.

use std::process::ExitCode;
use std::time::Duration;

use lazulite_client::{Entity, Error, IfMatch};
use lazulite_patterns::archive::{Archive, Moved};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const ARCHIVE: &str = "Archive ten employees of Sales, the worker's requests included";
const LEAVER_COUNT: usize = 10;

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let leavers = &data::employees_of(size, "Sales")[..LEAVER_COUNT];

    // Two requests that nothing ties together: a program that dies between them leaves an employee in both tables.
    let (current, archive) = (demo.table("Current").await?, demo.table("Archive").await?);
    demo.load(&current, &staff).await?;
    let by_hand = async {
        for leaver in leavers {
            let employee: Employee = current.get(&leaver.department, &leaver.id).await?;
            archive.insert(&employee).await?;
            current.delete_entity(&employee, IfMatch::Unchanged).await?;
        }
        Ok::<_, Error>(())
    };
    let (cost, ()) = demo.measure(by_hand).await?;
    report.add(ARCHIVE, size, "before", cost);

    for way in ["after, queue", "after, outbox"] {
        let mover = Archive {
            current: demo.table("Current").await?,
            archive: demo.table("Archive").await?,
            queue: demo.queue("leaving").await?,
            poison: demo.queue("poison").await?,
            visibility: Duration::from_secs(30),
        };
        demo.load(&mover.current, &staff).await?;
        let through_queue = async {
            for leaver in leavers {
                if way == "after, queue" {
                    mover.request(&leaver.keys()?).await?;
                    continue;
                }
                // Here the employee changes too, in the same step as the request.
                let employee: Employee = mover.current.get(&leaver.department, &leaver.id).await?;
                mover.request_with(&employee).await?;
            }
            while mover.work().await? != Moved::Nothing {}
            Ok::<_, Error>(())
        };
        let (cost, ()) = demo.measure(through_queue).await?;
        report.add(ARCHIVE, size, way, cost);
        let archived = mover.archive.query::<Employee>().partition("Sales").all().await?;
        assert_eq!(archived.len(), LEAVER_COUNT);
        assert!(!mover.current.exists("Sales", &leavers[0].id).await?);
    }
    Ok(())
}
