//! Inheritance: managers and engineers, both employees, in one table. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{DynamicEntity, Entity, EntityKind, Error};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const LIST: &str = "List ten employees of Sales in the order of their ids, whatever they are";
const ONE: &str = "Read one employee, whatever it is";
const WANTED: usize = 10;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Manager {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    reports: i32,
}

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Engineer {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    last_name: String,
    language: String,
}

/// Any employee. Rows that a later version of the program adds are still read.
#[derive(EntityKind)]
#[entity(property = "Kind")]
enum Staff {
    Manager(Manager),
    Engineer(Engineer),
    #[entity(other)]
    Other(DynamicEntity),
}

impl Staff {
    fn id(&self) -> String {
        self.keys().map(|keys| keys.row_key.into_owned()).unwrap_or_default()
    }
}

fn main() -> ExitCode {
    showcase::main(run)
}

/// Every fifth employee of a department is a manager.
fn staff_of(employee: &Employee, number: usize) -> Staff {
    let Employee { department, id, last_name, .. } = employee.clone();
    if (number / 5).is_multiple_of(5) {
        Staff::Manager(Manager { department, id, last_name, reports: 4 })
    } else {
        Staff::Engineer(Engineer { department, id, last_name, language: "Rust".to_owned() })
    }
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let all = data::employees(size);
    let staff = || all.iter().enumerate().map(|(number, employee)| staff_of(employee, number));
    let wanted = data::someone(size).id;

    let (managers, engineers) = (demo.table("Managers").await?, demo.table("Engineers").await?);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for member in staff() {
        match member {
            Staff::Manager(manager) => first.push(manager),
            Staff::Engineer(engineer) => second.push(engineer),
            Staff::Other(_) => {}
        }
    }
    demo.load(&managers, &first).await?;
    demo.load(&engineers, &second).await?;
    // Each table may have all ten, so each is asked for ten.
    let two_queries = async {
        let managers = managers.query::<Manager>().partition("Sales").top(WANTED).all().await?;
        let engineers = engineers.query::<Engineer>().partition("Sales").top(WANTED).all().await?;
        let mut both: Vec<Staff> = managers.into_iter().map(Staff::Manager).collect();
        both.extend(engineers.into_iter().map(Staff::Engineer));
        both.sort_by_key(Staff::id);
        both.truncate(WANTED);
        Ok::<_, Error>(both)
    };
    let (cost, expected) = demo.measure(two_queries).await?;
    report.add(LIST, size, "before", cost);
    let either = async {
        if let Some(manager) = managers.try_get::<Manager>("Sales", &wanted).await? {
            return Ok(Staff::Manager(manager));
        }
        Ok::<_, Error>(Staff::Engineer(engineers.get("Sales", &wanted).await?))
    };
    let (cost, found) = demo.measure(either).await?;
    assert_eq!(found.id(), wanted);
    report.add(ONE, size, "before", cost);

    let table = demo.table("Staff").await?;
    demo.load(&table, &staff().collect::<Vec<_>>()).await?;
    let (cost, rows) = demo.measure(table.query::<Staff>().partition("Sales").top(WANTED).all()).await?;
    assert!(rows.iter().map(Staff::id).eq(expected.iter().map(Staff::id)));
    report.add(LIST, size, "after", cost);
    let (cost, found) = demo.measure(table.get::<Staff>("Sales", &wanted)).await?;
    assert_eq!(found.id(), wanted);
    report.add(ONE, size, "after", cost);
    Ok(())
}
