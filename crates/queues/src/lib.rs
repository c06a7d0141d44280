//! The Queue service's rules over an engine: visibility, receipts, expiry, counts.
//!
//! Owns: how a queue and its messages lie in an engine's table, who may take which message, and when a message is gone.
//! Promises: every change is one commit, so there is nothing to roll back. No operation reads a queue from its
//! beginning to find one message. A message is held by one taker at a time: within a process because takers pass over
//! what others are taking, and between processes because the commit's own conditions decide.
//! Leaves to others: HTTP, the texts of the protocol and authorization to the server, durability to the engine.
//!
//! | file | what it knows |
//! |---|---|
//! | `rows.rs` | the rows of a queue: messages, their expiry, their count |
//! | `front.rs` | where the visible messages begin, and who is taking which |
//! | `finish.rs` | work that is finished even if nobody waits for it |
//! | `time.rs` | the time that decides what is visible |
//! | `queues.rs` | queues by name, and their metadata |
//! | `messages.rs` | put, update, delete |
//! | `take.rs` | get and peek |
//! | `sweep.rs` | how expired messages are removed, and how messages are counted |
//! | `stored.rs` | messages as plain values, for backups |
//! | `consistency.rs` | whether the rows of a queue agree with each other |
//! | `check.rs` | the same for all queues of a store |

mod check;
mod consistency;
mod family;
mod finish;
mod front;
mod messages;
mod payload;
mod queues;
#[doc(hidden)]
pub mod rows;
#[cfg(feature = "seeded-bugs")]
mod seeded;
mod service;
mod stored;
mod sweep;
mod take;
mod time;

pub use check::{QueueReport, check_queue, check_queues};
pub use family::{FAMILY, VALUE_RULES, namespace};
pub use messages::{NewMessage, PlannedPut, PutMessage, UpdatedMessage};
pub use queues::{Created, ListQuery, ListedQueue, QueuePage, QueueProperties};
pub use service::QueueService;
pub use stored::{StoredMessage, count_commit, read_payload, write_payload};
pub use take::{Fits, PeekedMessage, TakenMessage};
