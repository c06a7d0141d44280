//! One recorded operation on a queue: when it began and ended, what was asked and what was told.

use std::path::Path;

use testkit::Message;

/// Microseconds since the run began.
pub type Time = u64;

/// An operation whose end nobody has seen.
pub const NEVER: Time = Time::MAX;

#[derive(Clone, Debug)]
pub struct Event {
    pub began: Time,
    /// When the answer came. Without an answer: when the operation can no longer have an effect.
    pub ended: Time,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// The answer to a put through the outbox names no message.
    Put {
        text: String,
        hide: Time,
        live: Option<Time>,
        told: Told<Option<Handle>>,
    },
    Get {
        count_max: usize,
        hide: Time,
        told: Told<Vec<Seen>>,
    },
    Peek {
        count_max: usize,
        seen: Vec<Seen>,
    },
    Update {
        used: Handle,
        text: Option<String>,
        hide: Time,
        told: Told<Handle>,
    },
    Delete {
        used: Handle,
        told: Told<()>,
    },
    Clear {
        told: Told<()>,
    },
    Count {
        count: usize,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told<T> {
    Done(T),
    /// 404: there is no such message, or the receipt is not its newest.
    Refused,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    pub id: String,
    pub receipt: String,
}

/// A message as an answer showed it. A peek shows no receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub handle: Handle,
    pub dequeue_count: u32,
    pub text: String,
}

impl Seen {
    pub fn new(message: Message) -> Seen {
        Seen {
            // A count that is no number equals no count.
            dequeue_count: message.dequeue_count.parse().unwrap_or(u32::MAX),
            handle: Handle { id: message.id, receipt: message.receipt },
            text: message.text,
        }
    }
}

/// Writes all operations to a file, in the order in which they began. Returns where they are.
pub fn keep(mut events: Vec<Event>, file: &Path) -> String {
    events.sort_by_key(|event| event.began);
    let line = |event: &Event| format!("{:>12} to {:>12} us: {:?}\n", event.began, event.ended, event.what);
    match std::fs::write(file, events.iter().map(line).collect::<String>()) {
        Ok(()) => format!("All operations of the last round are in {}.", file.display()),
        Err(error) => format!("The operations could not be written to {}: {error}", file.display()),
    }
}
