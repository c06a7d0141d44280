//! Joins in the client: reviews with the employees that they are about. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Entity, Keys};
use lazulite_patterns::data::{self, Employee, Size};
use lazulite_patterns::join;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const JOIN: &str = "List this year's reviews with the names of the employees";
/// One employee of five has a review that shows up here, and at most so many.
const REVIEW_COUNT_MAX: u64 = 140;

#[derive(Entity, Clone)]
#[entity(rename_all = "PascalCase")]
struct Review {
    #[entity(partition_key)]
    year: String,
    #[entity(row_key)]
    employee: String,
    department: String,
    rating: i32,
}

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    let staff = data::employees(size);
    let (employees, reviews) = (demo.table("Employees").await?, demo.table("Reviews").await?);
    demo.load(&employees, &staff).await?;
    let reviewed = (1..=size.count()).filter(|n| n % 5 == 3 || n % 7 == 1);
    let all: Vec<Review> = reviewed
        .take(usize::try_from(REVIEW_COUNT_MAX)?)
        .map(|n| Review {
            year: "2026".to_owned(),
            employee: data::employee_id(n),
            department: data::department_of(n).to_owned(),
            rating: 4,
        })
        .collect();
    demo.load(&reviews, &all).await?;
    let keys_of = |reviews: &[Review]| -> Vec<Keys<'static>> {
        let keys = |review: &Review| Keys {
            partition_key: review.department.clone().into(),
            row_key: review.employee.clone().into(),
        };
        reviews.iter().map(keys).collect()
    };

    let one_by_one = async {
        let found = reviews.query::<Review>().partition("2026").all().await?;
        join::fetch_each::<Employee>(&employees, keys_of(&found)).await
    };
    let (cost, one_by_one) = demo.measure(one_by_one).await?;
    assert_eq!(one_by_one.len(), all.len());
    report.add(JOIN, size, "before", cost);
    let together = async {
        let found = reviews.query::<Review>().partition("2026").all().await?;
        join::fetch::<Employee>(&employees, keys_of(&found)).await
    };
    let (cost, together) = demo.measure(together).await?;
    assert!(together.keys().eq(one_by_one.keys()));
    report.add(JOIN, size, "after", cost);
    Ok(())
}
