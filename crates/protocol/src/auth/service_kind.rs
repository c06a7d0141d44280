//! What the common code must know about each storage service.
//!
//! Each service has one [`ServiceKind`], a constant beside its operations. The listener, addressing, authentication and
//! authorization read it, and so know no service by name.

use super::{MalformedSas, RoleSet, ServiceScope, SharedKeyForm};
use crate::common::query::Query;
use crate::common::version::VersionOrder;

#[derive(Debug)]
pub struct ServiceKind {
    /// The service's usual name: `Table`.
    pub name: &'static str,
    /// Its label in host names and signed resources: `table`.
    pub label: &'static str,
    /// The label of its accounts' websites in host names: `web`. `None` where it has no websites.
    pub site_label: Option<&'static str>,
    /// Its letter in the parameter `ss` of an account SAS.
    pub letter: &'static str,
    /// The port that emulators and clients use for it by default.
    pub port: u16,
    /// The `Server` header of its answers.
    pub server_header: &'static str,
    /// The protocol version for requests that name none.
    pub version_default: &'static str,
    /// Where a request with a signature in its query says its version.
    pub version_order: VersionOrder,
    /// Whether the names of query parameters ignore case.
    pub ignores_parameter_case: bool,
    /// What a Shared Key signature covers.
    pub shared_key: SharedKeyForm,
    /// The permission letters of a stored access policy, in the required order.
    pub policy_letters: &'static str,
    /// The roles it knows in bearer tokens: name, id, and the bit that operations ask for.
    pub roles: &'static [(&'static str, &'static str, RoleSet)],
    /// The roles that `--oauth basic` gives to every token, since tokens for development name none.
    pub role_of_basic_tokens: RoleSet,
    /// Reads which resource a service SAS is for, from the query and the path within the account.
    pub read_service_scope: fn(&Query<'_>, path: &str) -> Result<ServiceScope, MalformedSas>,
}
