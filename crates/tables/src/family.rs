//! The Table service's place in an engine: its family of tables, and what their values mean.

use engine::{Families, Family, Namespace, ValueRules};
use protocol::common::AccountName;

use crate::record::{is_record, merge};

/// The family of the service's tables. It is the first one, so stores from before there were families hold tables.
pub const FAMILY: Family = Family::FIRST;

/// Every value is a record.
pub const VALUE_RULES: ValueRules = ValueRules { merge, is_sound: is_record };

/// What an engine is built with that holds tables and nothing else.
pub const FAMILIES: Families = Families::NONE.with(FAMILY, VALUE_RULES);

/// Where the tables of an account have their names.
pub fn namespace(account: &AccountName) -> Namespace<'_> {
    Namespace::new(FAMILY, account.as_str())
}
