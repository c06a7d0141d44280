//! Who signs how: the `Authorization` header, and Shared Key signatures over canonical strings.

mod shared_key;

pub use shared_key::{AccountKey, Authorization, Scheme, SignedRequest};
