//! The Table service's place in an engine: its family of tables, and the rules for their values.

use engine::{Families, Family, Namespace, ValueRules};
use protocol::common::AccountName;

use crate::record::{is_record, merge};

/// The family of the service's tables. It is the first one, because stores older than families hold only tables.
pub const FAMILY: Family = Family::FIRST;

/// The family of the tables that the server itself writes: an account's lists, counts and backups do not hold them. Low
/// numbers are left to further services.
pub const SYSTEM_FAMILY: Family = Family(15);

/// Every value is a record.
pub const VALUE_RULES: ValueRules = ValueRules { merge, is_sound: is_record };

/// The families of an engine that holds tables and nothing else.
pub const FAMILIES: Families = Families::NONE.with(FAMILY, VALUE_RULES);

/// The namespace that holds the names of an account's tables.
pub fn namespace(account: &AccountName) -> Namespace<'_> {
    Namespace::new(FAMILY, account.as_str())
}
