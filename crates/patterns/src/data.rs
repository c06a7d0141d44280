//! The guide's data: a company with departments and employees, at three sizes.
//!
//! Everything is computed from the number of an employee, so two runs load the same entities.

use lazulite_client::DateTime;

use crate::keys;

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

    /// The number of employees in all departments together.
    pub fn employee_count(self) -> u64 {
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
    "Ada", "Ben", "Chris", "Dana", "Emil", "Fatima", "Grace", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Mei", "Nils",
    "Olga", "Pablo", "Rosa", "Sven", "Tara", "Yusuf",
];
const LAST_NAMES: [&str; 25] = [
    "Abbas", "Becker", "Brown", "Costa", "Diallo", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jones", "Khan", "Kim",
    "Larsen", "Lopez", "Mehta", "Novak", "Okafor", "Petrov", "Rossi", "Silva", "Smith", "Tanaka", "Weber", "Zhang",
];
