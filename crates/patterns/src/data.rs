//! The guide's data: a company with departments and employees, at three sizes.
//!
//! Everything is computed from the number of an employee, so two runs load the same entities.

use lazulite_client::{DateTime, Entity};

use crate::keys::{self, stable_hash};

/// How many employees there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// 100 employees.
    Small,
    /// 1,000 employees.
    Medium,
    /// 10,000 employees.
    Large,
}

impl Size {
    /// All sizes, smallest first.
    pub const ALL: [Size; 3] = [Size::Small, Size::Medium, Size::Large];

    /// The number of employees in all departments together, or of whatever else an example has many of.
    pub fn count(self) -> u64 {
        match self {
            Size::Small => 100,
            Size::Medium => 1_000,
            Size::Large => 10_000,
        }
    }
}

/// The departments. Employees are spread over them evenly.
pub const DEPARTMENTS: [&str; 5] = ["Engineering", "Finance", "Marketing", "Sales", "Support"];
/// The digits of an employee's id.
pub const ID_WIDTH: usize = 6;

const FIRST_NAMES: [&str; 20] = [
    "Ada", "Ben", "Chris", "Dana", "Emil", "Fatima", "Grace", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Mei",
    "Nils", "Olga", "Pablo", "Rosa", "Sven", "Tara", "Yusuf",
];
const LAST_NAMES: [&str; 25] = [
    "Abbas", "Becker", "Brown", "Costa", "Diallo", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jones",
    "Khan", "Kim", "Larsen", "Lopez", "Mehta", "Novak", "Okafor", "Petrov", "Rossi", "Silva", "Smith",
    "Tanaka", "Weber", "Zhang",
];

/// An employee, as the guide lays it out: the department is the partition, the id is the row.
#[derive(Entity, Clone, PartialEq, Debug)]
#[entity(rename_all = "PascalCase")]
pub struct Employee {
    /// Where the employee works.
    #[entity(partition_key)]
    pub department: String,
    /// Six digits, with a prefix where a pattern needs one.
    #[entity(row_key)]
    pub id: String,
    /// The first name.
    pub first_name: String,
    /// The last name. Many employees share it.
    pub last_name: String,
    /// In years.
    pub age: i32,
    /// Unique in the company.
    #[entity(rename = "EmailAddress")]
    pub email: String,
    /// Set when the employee was read.
    #[entity(etag)]
    pub etag: Option<String>,
}

/// The employee with this number, which starts at 1.
pub fn employee(number: u64) -> Employee {
    let id = employee_id(number);
    let chance = usize::try_from(stable_hash(&id) >> 1).unwrap_or(0);
    let first_name = FIRST_NAMES[chance % FIRST_NAMES.len()];
    let last_name = LAST_NAMES[chance / FIRST_NAMES.len() % LAST_NAMES.len()];
    let initial = &first_name[..1];
    Employee {
        department: department_of(number).to_owned(),
        email: format!("{last_name}{initial}{id}@contoso.com").to_ascii_lowercase(),
        id,
        first_name: first_name.to_owned(),
        last_name: last_name.to_owned(),
        age: 20 + i32::try_from(chance / 1000 % 45).unwrap_or(0),
        etag: None,
    }
}

/// The id of an employee: `000223`.
pub fn employee_id(number: u64) -> String {
    keys::padded(number, ID_WIDTH).unwrap_or_else(|_| number.to_string())
}

/// The department of an employee.
pub fn department_of(number: u64) -> &'static str {
    let place = usize::try_from(number).unwrap_or(0) % DEPARTMENTS.len();
    DEPARTMENTS[place]
}

/// All employees.
pub fn employees(size: Size) -> Vec<Employee> {
    (1..=size.count()).map(employee).collect()
}

/// The employees of one department.
pub fn employees_of(size: Size, department: &str) -> Vec<Employee> {
    employees(size).into_iter().filter(|employee| employee.department == department).collect()
}

/// An employee of Sales, from the middle of the company.
pub fn someone(size: Size) -> Employee {
    employee(size.count() / 2 - 2)
}

/// A moment of the guide's working day: so many seconds after the last day of January 2026 began.
pub fn moment(seconds: u64) -> DateTime {
    /// 2026-01-31T00:00:00Z in ticks.
    const DAY: u64 = 639_054_144_000_000_000;
    const TICKS_PER_SECOND: u64 = 10_000_000;
    DateTime::from_ticks(DAY + seconds * TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_company_is_the_same_every_time() {
        let jones = employee(223);
        assert_eq!(jones, employee(223));
        assert_eq!((jones.id.as_str(), jones.department.as_str()), ("000223", "Sales"));
        assert!(jones.email.ends_with("000223@contoso.com"), "{}", jones.email);
    }

    #[test]
    fn addresses_are_unique_and_names_are_not() {
        let all = employees(Size::Medium);
        let emails: BTreeSet<&str> = all.iter().map(|employee| employee.email.as_str()).collect();
        assert_eq!(emails.len(), all.len());
        let names: BTreeSet<&str> = all.iter().map(|employee| employee.last_name.as_str()).collect();
        assert_eq!(names.len(), LAST_NAMES.len());
        assert_eq!(employees_of(Size::Small, "Sales").len(), 20);
        assert!(Size::ALL.iter().all(|size| someone(*size).department == "Sales"));
    }

    #[test]
    fn a_moment_is_in_the_working_day() {
        let mut text = Vec::new();
        moment(3601).write(&mut text);
        assert!(text.starts_with(b"2026-01-31T01:00:01"), "{}", String::from_utf8_lossy(&text));
    }
}
