//! Numbers that nobody can guess.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Different in every process, and in every call. Not for keys: the hasher it comes from makes no such promise.
pub fn unguessable() -> u64 {
    RandomState::new().build_hasher().finish()
}
