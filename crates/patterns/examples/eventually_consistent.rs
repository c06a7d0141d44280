//! Eventually consistent transactions: move employees to an archive, through a queue. See docs/patterns.

use std::process::ExitCode;
use std::time::Duration;

use lazulite_client::{Entity, Error, IfMatch};
use lazulite_patterns::archive::{Archive, Moved};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::showcase::{self, Failure, Report, Stage};

const ARCHIVE: &str = "Archive ten employees of Sales, the worker's requests included";
const LEAVER_COUNT: usize = 10;

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(stage: &Stage, size: Size, report: &mut Report) -> Result<(), Failure> {
    let staff = data::employees(size);
    let leavers = &data::employees_of(size, "Sales")[..LEAVER_COUNT];

    // Two requests that nothing ties together: a program that dies between them leaves an employee in both tables.
    let (current, archive) = (stage.table("Current").await?, stage.table("Archive").await?);
    stage.load(&current, &staff).await?;
    let by_hand = async {
        for leaver in leavers {
            let employee: Employee = current.get(&leaver.department, &leaver.id).await?;
            archive.insert(&employee).await?;
            current.delete_entity(&employee, IfMatch::Unchanged).await?;
        }
        Ok::<_, Error>(())
    };
    let (counts, ()) = stage.measure(by_hand).await?;
    report.add(ARCHIVE, size, "before", counts);

    for way in ["after, queue", "after, outbox"] {
        let mover = Archive {
            current: stage.table("Current").await?,
            archive: stage.table("Archive").await?,
            queue: stage.queue("leaving").await?,
            poison: stage.queue("poison").await?,
            visibility: Duration::from_secs(30),
        };
        stage.load(&mover.current, &staff).await?;
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
        let (counts, ()) = stage.measure(through_queue).await?;
        report.add(ARCHIVE, size, way, counts);
        let archived = mover.archive.query::<Employee>().partition("Sales").all().await?;
        assert_eq!(archived.len(), LEAVER_COUNT);
        assert!(!mover.current.exists("Sales", &leavers[0].id).await?);
    }
    Ok(())
}
