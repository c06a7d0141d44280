//! Unpredictable numbers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Different in every process and at every call. Not for secret keys: the hasher it comes from promises no such strength.
pub fn unguessable() -> u64 {
    RandomState::new().build_hasher().finish()
}
