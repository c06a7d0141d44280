//! What the trials of the Queue service share: clients that record everything they did, and the rules that a recording
//! must obey.
//!
//! `door.rs` talks to the service, `event.rs` is one recorded operation, `clients.rs` has the random clients.
//! `ledger.rs` keeps what is known of every message, `order.rs` searches an order for the operations on one message, and
//! `rules.rs` holds what is promised across messages. `recorded.rs` has the clients of the trial `power`.
//!
//! **The model.** A message is a register with a receipt, a dequeue count, a text and a moment from which it is visible.
//! For each message by itself, `order.rs` must find an order of all operations that named or returned it, with a moment
//! inside each operation's own interval, such that every answer is right: only the newest receipt works, a take needs a
//! visible message and raises the count by one, nothing follows a deletion. Moments are real times, so two holders within
//! the visibility time have no order. This search is exact (Wing and Gong, with earliest moments: all conditions on time
//! are lower bounds, so the earliest moments satisfy them if any do).
//!
//! A list that is shorter than it was allowed to be cannot be judged that way, because the service may pass over what
//! another request is taking at the same time. So `rules.rs` judges across messages by intervals: a message that was
//! surely visible, and that nobody else could have touched while a list was made, must be in the list, unless the list is
//! full of messages that are not surely younger. A count must lie between the messages that were surely there and those
//! that were possibly there.
//!
//! **What it can catch:** lost and revived messages, two holders, receipts that work twice, counts that go down or stand
//! still, old texts, messages that wait for ever, overtaking, wrong counts. **What it cannot:** a list that passes over a
//! message which another request touched in the same milliseconds, half of a list taken when the answer was lost, and
//! errors in time below the slack that the two clocks are given ([`CLOCK_SLACK`]).

pub mod clients;
pub mod door;
pub mod event;
pub mod ledger;
mod order;
pub mod recorded;
mod rules;

use event::Time;

/// How much the clocks of client and server may differ over a visibility time.
pub const CLOCK_SLACK: Time = 30_000;
