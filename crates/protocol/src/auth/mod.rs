//! Who asks and what they may do: the `Authorization` header, Shared Key signatures over canonical strings, shared
//! access signatures, bearer tokens, and what each of them allows.

mod bearer;
mod grant;
mod sas;
mod shared_key;

pub use bearer::{BearerConfig, BearerError, BearerValidator, KeySet, KeySetError, STORAGE_AUDIENCES};
pub use grant::{Connection, Grant, KeyBounds, LetterSet, Role};
pub use sas::{AccountScope, MalformedSas, SasScope, SasTerms, SasToken, TableScope, protocol_version};
pub use shared_key::{AccountKey, Authorization, Scheme, SignedRequest};
