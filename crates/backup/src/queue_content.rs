//! The contents of the blocks that hold queues: their heads and their messages.
//!
//! ```text
//! queue (7)        account, string · name, string · 00, or 01 and its access policies, bytes
//!                  · number of metadata items u32 · for each its name, string · value, string
//! messages (8)     messages of the queue before it: version u64 · visible u64 · id, 16 bytes, big-endian
//!                  · inserted u64 · expires u64 · dequeue count u32 · text, string
//! ```
//!
//! Times are ticks of 100 ns since 0001-01-01T00:00:00Z. Messages are in the order of their visible times, those of one time
//! in the order of their ids. Expiry rows and counts are not in a backup: they follow from the messages.

use engine::Version;
use protocol::queue::MessageId;
use queues::StoredMessage;

use crate::content::{pull, pull_policies, pull_str, pull_u32, pull_u64, push_bytes, push_policies};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueHead {
    pub account: String,
    pub name: String,
    pub policies: Option<Vec<u8>>,
    pub metadata: Vec<(String, String)>,
}

impl QueueHead {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_bytes(&mut out, self.account.as_bytes());
        push_bytes(&mut out, self.name.as_bytes());
        push_policies(&mut out, self.policies.as_deref());
        out.extend_from_slice(&u32::try_from(self.metadata.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (name, value) in &self.metadata {
            push_bytes(&mut out, name.as_bytes());
            push_bytes(&mut out, value.as_bytes());
        }
        out
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Option<QueueHead> {
        let (account, name) = (pull_str(&mut bytes)?.to_owned(), pull_str(&mut bytes)?.to_owned());
        let policies = pull_policies(&mut bytes)?;
        let item_count = pull_u32(&mut bytes)?;
        let mut metadata = Vec::new();
        for _ in 0..item_count {
            metadata.push((pull_str(&mut bytes)?.to_owned(), pull_str(&mut bytes)?.to_owned()));
        }
        bytes.is_empty().then_some(QueueHead { account, name, policies, metadata })
    }
}

pub(crate) fn push_message(out: &mut Vec<u8>, version: Version, message: &StoredMessage<'_>) {
    out.extend_from_slice(&version.ticks().to_le_bytes());
    out.extend_from_slice(&message.visible.to_le_bytes());
    out.extend_from_slice(&message.id.0.to_be_bytes());
    out.extend_from_slice(&message.inserted.to_le_bytes());
    out.extend_from_slice(&message.expires.to_le_bytes());
    out.extend_from_slice(&message.dequeue_count.to_le_bytes());
    push_bytes(out, message.text.as_bytes());
}

/// The messages of one block. The reader has checked the whole block, so only its end stops the iteration.
#[derive(Clone, Debug)]
pub struct MessageIter<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> Iterator for MessageIter<'a> {
    type Item = (Version, StoredMessage<'a>);

    fn next(&mut self) -> Option<(Version, StoredMessage<'a>)> {
        let rest = &mut self.rest;
        let version = Version::new(pull_u64(rest)?)?;
        let visible = pull_u64(rest)?;
        let id = MessageId(u128::from_be_bytes(pull(rest, 16)?.try_into().ok()?));
        let (inserted, expires) = (pull_u64(rest)?, pull_u64(rest)?);
        let dequeue_count = pull_u32(rest)?;
        let text = pull_str(rest)?;
        Some((version, StoredMessage { visible, id, inserted, expires, dequeue_count, text }))
    }
}

/// Where a message stands in its queue.
pub(crate) type MessagePlace = (u64, MessageId);

/// Counts the messages. They must fill the block exactly and be in order.
pub(crate) fn check_messages(bytes: &[u8], last: &mut Option<MessagePlace>) -> Result<u64, &'static str> {
    let mut messages = MessageIter { rest: bytes };
    let mut count = 0;
    while !messages.rest.is_empty() {
        let (_, message) = messages.next().ok_or("a message cannot be decoded")?;
        let place = Some((message.visible, message.id));
        if place <= *last {
            return Err("the messages are not in order");
        }
        *last = place;
        count += 1;
    }
    Ok(count)
}
