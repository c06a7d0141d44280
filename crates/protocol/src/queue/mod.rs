//! The Queue service on the wire: names, messages and their receipts, operations, and the documents it reads and writes.
//!
//! Leaves to others: when a message is visible, and everything else about stored data (`queues`).

mod kind;
mod message_id;
mod name;
mod pop_receipt;

pub use kind::{CONTRIBUTOR, KIND, MESSAGE_PROCESSOR, MESSAGE_SENDER, READER};
pub use message_id::MessageId;
pub use name::QueueName;
pub use pop_receipt::PopReceipt;
