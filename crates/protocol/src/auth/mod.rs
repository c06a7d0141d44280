//! Who the caller is and what it may do: the `Authorization` header, Shared Key signatures over canonical strings,
//! shared access signatures, bearer tokens, and the grant that each of them gives.

mod bearer;
mod grant;
pub(crate) mod sas;
mod secret;
mod service_kind;
mod shared_key;

pub use bearer::{BearerConfig, BearerError, BearerValidator, KeySet, KeySetError, STORAGE_AUDIENCES};
pub use grant::{Connection, Grant, KeyBounds, LetterSet, Level, Need, Permission, ResourceName, RoleSet};
pub use sas::{AccountScope, MalformedSas, SasScope, SasTerms, SasToken, ScopeParameter, ServiceScope};
pub use secret::is_same_secret;
pub use service_kind::ServiceKind;
pub use shared_key::{
    AccountKey, Authorization, FullRequest, KEY_BYTES_MIN, Scheme, SharedKeyForm, ShortRequest,
};
