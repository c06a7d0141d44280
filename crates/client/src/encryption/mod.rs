//! Encryption in the client: properties that are sealed before they leave the program.
//!
//! A field that is marked `#[entity(encrypt)]` is stored as Edm.Binary, sealed with AES-256-GCM under a content key
//! that is made for one write of one entity. A [`KeyRing`] wraps the content key; the wrapped key and the sealed list
//! of encrypted properties are stored in two more properties, [`KEY_PROPERTY`] and [`LIST_PROPERTY`]. All other
//! properties stay readable for everybody, and can be used in filters.
//!
//! Owns: the stored format (`docs/encryption.md` has it byte by byte), and every decision to refuse.
//! Promises: a value that [`unseal`] returns was sealed, by someone who had the key ring, for this table, these keys
//! and this property, in the same write as all other sealed values of the row. Whatever the service sends may be
//! refused but never causes a panic. Errors hold no plaintext and no keys.
//! Leaves to others: transport, and when to call these functions (the table client calls them for entities that have
//! encrypted fields).
//!
//! ```
//! use lazulite_client::encryption::{InMemoryKeyRing, Place, seal, unseal};
//! use lazulite_client::{Keys, Property, Row, Value};
//!
//! # futures_lite_block_on(async {
//! let ring = InMemoryKeyRing::generate("2026-01")?;
//! let keys = Keys { partition_key: "Sales".into(), row_key: "17".into() };
//! let mut properties = vec![
//!     Property { name: "name".into(), value: Value::String("Ann".into()) },
//!     Property { name: "salary".into(), value: Value::Int32(70_000) },
//! ];
//! seal(&mut properties, &["salary"], &Place { table: "employees", keys: &keys }, &ring).await?;
//!
//! // What the service sees: one readable property, one sealed one, and two of metadata.
//! assert_eq!(properties[0].value, Value::String("Ann".into()));
//! assert!(matches!(properties[1].value, Value::Binary(_)));
//! assert_eq!(properties.len(), 4);
//!
//! let mut row = Row { partition_key: "Sales".into(), row_key: "17".into(), properties, ..Row::default() };
//! unseal(&mut row, &["salary"], "employees", &ring).await?;
//! assert_eq!(row.take("salary"), Some(Value::Int32(70_000)));
//! # Ok::<(), lazulite_client::encryption::EncryptionError>(())
//! # }).unwrap();
//! # fn futures_lite_block_on<T>(future: impl std::future::Future<Output = T>) -> T {
//! #     let mut future = std::pin::pin!(future);
//! #     match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
//! #         std::task::Poll::Ready(value) => value,
//! #         std::task::Poll::Pending => unreachable!("local key rings answer at once"),
//! #     }
//! # }
//! ```

mod check;
mod error;
mod file_key_ring;
mod key_ring;
mod local_keys;
mod metadata;
mod payload;
mod seal;
#[cfg(test)]
mod tests;

pub use check::{check_merge, check_projection, with_metadata_columns};
pub use error::EncryptionError;
pub use file_key_ring::FileKeyRing;
pub use key_ring::{ContentKey, KeyAnswer, KeyRing, WrappedKey};
pub use local_keys::{EnvironmentKeyRing, InMemoryKeyRing};
pub use metadata::{KEY_PROPERTY, LIST_PROPERTY};
pub use seal::{Place, rewrap, seal, unseal};
