//! The Queue service on the wire: names, messages and their receipts, operations, and the documents it reads and writes.
//!
//! Leaves to others: when a message is visible, and everything else about stored data (`queues`).

mod acl;
mod kind;
mod message_id;
pub mod message_list;
pub mod message_text;
mod name;
pub mod operation;
pub mod parameters;
mod permission;
mod pop_receipt;
pub mod queue_list;
pub mod versions;

pub use acl::read_acl;
#[cfg(test)]
pub(crate) use kind::MESSAGE_SENDER;
pub use kind::{CONTRIBUTOR, KIND, READER};
pub use message_id::MessageId;
pub use name::QueueName;
pub use pop_receipt::PopReceipt;
