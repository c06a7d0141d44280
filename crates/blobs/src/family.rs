//! The Blob service's place in an engine: its family of tables, and the rules for their values.

use bytes::Bytes;
use engine::{Family, MergeRefusal, Namespace, ValueRules};
use protocol::common::AccountName;

/// The family of the service's tables, each of which is a container. The number is written to the disk.
pub const FAMILY: Family = Family(2);

pub const VALUE_RULES: ValueRules = ValueRules { merge: refuse, is_sound: crate::record::is_sound };

/// The namespace that holds the names of an account's containers.
pub fn namespace(account: &AccountName) -> Namespace<'_> {
    Namespace::new(FAMILY, account.as_str())
}

/// Rows of blobs are put as a whole.
fn refuse(_: Option<&[u8]>, _: &[u8]) -> Result<Bytes, MergeRefusal> {
    Err(MergeRefusal(1))
}
