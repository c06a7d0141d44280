//! What the parts that serve every storage service must know about one of them.
//!
//! Each service has one [`ServiceKind`], a constant beside its operations. Whoever listens, addresses, authenticates and
//! authorizes reads it and knows no service by name.

use super::{MalformedSas, RoleSet, ServiceScope, SharedKeyForm};
use crate::common::query::Query;
use crate::common::version::VersionOrder;

#[derive(Debug)]
pub struct ServiceKind {
    /// As people call it: `Table`.
    pub name: &'static str,
    /// As host names and signed resources have it: `table`.
    pub label: &'static str,
    /// As the parameter `ss` of an account SAS has it.
    pub letter: &'static str,
    /// The port that every emulator and client uses for it.
    pub port: u16,
    /// The `Server` header of its answers.
    pub server_header: &'static str,
    /// How a request that names no version is served.
    pub version_default: &'static str,
    /// Where a request with a signature in its query says its version.
    pub version_order: VersionOrder,
    /// Whether the names of query parameters ignore case.
    pub ignores_parameter_case: bool,
    /// What a Shared Key signature covers.
    pub shared_key: SharedKeyForm,
    /// The letters of a stored access policy, in the order in which one must have them.
    pub policy_letters: &'static str,
    /// The roles of bearer tokens that it knows: the name, the id, and what the operations call it.
    pub roles: &'static [(&'static str, &'static str, RoleSet)],
    /// Every role that `--oauth basic` gives: tokens for development name none.
    pub role_of_basic_tokens: RoleSet,
    /// Reads what a service SAS is for from the query and the path within the account.
    pub read_service_scope: fn(&Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas>,
}
