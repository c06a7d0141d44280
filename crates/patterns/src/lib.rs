//! The patterns of the "Azure Table storage design guide" as reusable pieces.
//!
//! [`keys`] designs keys. The other modules are one pattern each, where a library makes sense; the patterns that are a way
//! to lay out entities, and nothing more, are examples only. `docs/patterns` has a page for each, and `cargo run --example
//! NAME` measures it: requests, entities examined and bytes, before and after.
//!
//! | pattern | module |
//! |---|---|
//! | intra-partition secondary index | [`partition_index`] |
//! | inter-partition secondary index, index entities of another partition | [`follow`] |
//! | eventually consistent transactions | [`archive`] |
//! | index entities of the same partition | [`name_list`] |
//! | high-volume delete | [`daily`] |
//! | wide entities | [`wide`] |
//! | large entities | [`large`] |
//! | joins in the client | [`join`] |
//!
//! [`data`], [`measure`] and [`showcase`] are what the examples share: the guide's employees, a transport that counts, and a
//! server to ask.
#![forbid(unsafe_code)]

pub mod archive;
pub mod daily;
pub mod data;
pub mod follow;
pub mod join;
pub mod keys;
pub mod large;
pub mod measure;
pub mod name_list;
pub mod partition_index;
mod poison;
mod raw;
pub mod showcase;
pub mod wide;

use lazulite_client::{Entity, EntityError, Error, Keys};

pub use raw::RawEntity;

/// A name that nobody else has: 32 hexadecimal digits.
fn random_name() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Configuration(format!("the system gives no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The keys of an entity, without a borrow.
fn owned_keys<E: Entity>(entity: &E) -> Result<Keys<'static>, EntityError> {
    let Keys { partition_key, row_key } = entity.keys()?;
    Ok(Keys { partition_key: partition_key.into_owned().into(), row_key: row_key.into_owned().into() })
}
