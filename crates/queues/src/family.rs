//! The Queue service's place in an engine: its family of tables, and the rules for their values.

use engine::{Family, Namespace, ValueRules};
use protocol::common::AccountName;

use crate::rows;

/// The family of the service's tables, each of which is a queue. The number is written to the disk.
pub const FAMILY: Family = Family(1);

pub const VALUE_RULES: ValueRules = ValueRules { merge: rows::merge, is_sound: rows::is_sound };

/// The namespace that holds the names of an account's queues.
pub fn namespace(account: &AccountName) -> Namespace<'_> {
    Namespace::new(FAMILY, account.as_str())
}
