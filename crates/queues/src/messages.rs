//! One message: put, update, delete.

use std::time::Duration;

use bytes::Bytes;
use catalogue::{from_commit, from_read};
use engine::env::ticks;
use engine::{Commit, CommitError, Effect, Expect, Op, Version};
use protocol::common::{AccountName, DateTime};
use protocol::queue::{MessageId, PopReceipt, QueueName};
use protocol::{ErrorCode, ServiceError};

use crate::front::Arrival;
use crate::rows::{self, MessageKey, MessageValue, NEVER_TICKS, PARTITION};
use crate::service::{ATTEMPT_COUNT_MAX, LiveQueue, QueueService, damaged_row};

/// A message to put.
#[derive(Clone)]
pub struct NewMessage {
    pub text: Bytes,
    /// How long it stays invisible.
    pub visibility: Duration,
    /// `None`: it never expires.
    pub time_to_live: Option<Duration>,
}

/// A message that was put.
#[derive(Clone, Debug)]
pub struct PutMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub receipt: PopReceipt,
    pub visible: DateTime,
}

/// A message that was updated.
#[derive(Clone, Debug)]
pub struct UpdatedMessage {
    pub receipt: PopReceipt,
    pub visible: DateTime,
}

/// A message about to be put: a commit, to be made alone or together with others.
pub struct PlannedPut {
    pub commit: Commit,
    arrival: Arrival,
    put: Placed,
}

/// A message that has its place, but no version yet.
struct Placed {
    id: MessageId,
    inserted: u64,
    expires: u64,
    visible: u64,
}

impl Placed {
    fn at(&self, version: Version) -> PutMessage {
        PutMessage {
            id: self.id,
            inserted: moment(self.inserted),
            expires: moment(self.expires),
            receipt: PopReceipt { visible_ticks: self.visible, version_ticks: version.ticks() },
            visible: moment(self.visible),
        }
    }
}

impl PlannedPut {
    /// The commit has ended; with its version, if it happened.
    pub fn end(self, version: Option<Version>) -> Option<PutMessage> {
        self.arrival.end();
        version.map(|version| self.put.at(version))
    }
}

impl QueueService {
    pub async fn put_message(
        &self,
        account: &AccountName,
        queue: &QueueName,
        message: NewMessage,
    ) -> Result<PutMessage, ServiceError> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            let found = self.find(account, queue).await?;
            let planned = plan(&found, &message);
            let PlannedPut { commit, arrival, put } = planned;
            match self.commit_announced(arrival, commit).await {
                Ok(version) => return Ok(put.at(version)),
                Err(error) if self.is_outdated(account, queue, &found, &error) => {}
                Err(error) => return Err(from_commit(error)),
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// The commit that puts a message, for a caller that makes it together with commits of its own.
    pub async fn plan_put(
        &self,
        account: &AccountName,
        queue: &QueueName,
        message: &NewMessage,
    ) -> Result<PlannedPut, ServiceError> {
        Ok(plan(&self.find(account, queue).await?, message))
    }

    /// Forgets what is remembered of a queue, after a planned put found it gone.
    pub fn forget_queue(&self, account: &AccountName, queue: &QueueName) {
        self.catalogue.forget(account, queue.as_str());
    }

    /// `text`: `None` leaves it as it is.
    pub async fn update_message(
        &self,
        account: &AccountName,
        queue: &QueueName,
        id: MessageId,
        receipt: PopReceipt,
        text: Option<Bytes>,
        visibility: Duration,
    ) -> Result<UpdatedMessage, ServiceError> {
        let (found, held) = self.find_message(account, queue, id, receipt).await?;
        let old = MessageValue::read(&held.value).ok_or_else(damaged_row)?;
        let mut delay = ticks(visibility);
        let mut arrival = found.front.announce(delay);
        if arrival.visible == held.key.visible {
            // A message always moves, so that its receipt changes.
            arrival.end();
            delay += 1;
            arrival = found.front.announce(delay);
        }
        let moved = MessageKey { visible: arrival.visible, id };
        let value = MessageValue { text: text.as_deref().unwrap_or(old.text), ..old };
        let ops = moving(held.key, held.version, moved, value.write(), old.expires);
        let visible = arrival.visible;
        let commit = commit(&found, ops.into_iter().flatten().collect());
        let outcome = self.commit_announced(arrival, commit).await;
        let version = outcome.map_err(|error| self.not_held(account, queue, &found, error))?;
        let receipt = PopReceipt { visible_ticks: visible, version_ticks: version.ticks() };
        Ok(UpdatedMessage { receipt, visible: moment(visible) })
    }

    pub async fn delete_message(
        &self,
        account: &AccountName,
        queue: &QueueName,
        id: MessageId,
        receipt: PopReceipt,
    ) -> Result<(), ServiceError> {
        let (found, held) = self.find_message(account, queue, id, receipt).await?;
        let expires = MessageValue::read(&held.value).ok_or_else(damaged_row)?.expires;
        let mut ops = Vec::with_capacity(3);
        ops.push(Op { row: held.key.row(), expect: Expect::Exactly(held.version), effect: Effect::Delete });
        if expires != NEVER_TICKS {
            ops.push(Op { row: rows::expiry_row(expires, id), expect: Expect::Any, effect: Effect::Delete });
        }
        ops.push(counting(id, -1));
        #[cfg(feature = "seeded-bugs")]
        crate::seeded::keep_message(&mut ops);
        let outcome = self.engine.commit(commit(&found, ops)).await;
        outcome.map(|_| ()).map_err(|error| self.not_held(account, queue, &found, error))
    }

    /// The queue, and the message that the receipt is for.
    async fn find_message(
        &self,
        account: &AccountName,
        queue: &QueueName,
        id: MessageId,
        receipt: PopReceipt,
    ) -> Result<(LiveQueue<'_>, HeldMessage), ServiceError> {
        let found = self.find(account, queue).await?;
        match self.held_message(&found, id, receipt).await {
            Ok(held) => Ok((found, held)),
            // Another process may have cleared the queue, and then put the message into a table of another id.
            Err(error) if error.code == ErrorCode::MessageNotFound && self.shares_its_engine() => {
                self.catalogue.forget(account, queue.as_str());
                let found = self.find(account, queue).await?;
                let held = self.held_message(&found, id, receipt).await?;
                Ok((found, held))
            }
            Err(error) => Err(error),
        }
    }

    /// The message, if the receipt is its newest and it has not expired.
    async fn held_message(
        &self,
        found: &LiveQueue<'_>,
        id: MessageId,
        receipt: PopReceipt,
    ) -> Result<HeldMessage, ServiceError> {
        let key = MessageKey { visible: receipt.visible_ticks, id };
        let row = self.engine.row(found.id, rows::message_key(&key.row())).await.map_err(from_read)?;
        let row = row.filter(|row| row.version.ticks() == receipt.version_ticks);
        let row = row.ok_or(ErrorCode::MessageNotFound)?;
        let message = MessageValue::read(&row.value).ok_or_else(damaged_row)?;
        if message.has_expired(found.live.time.now()) {
            return Err(ErrorCode::MessageNotFound.into());
        }
        Ok(HeldMessage { key, version: row.version, value: row.value })
    }

    /// Why a message was not changed although its receipt was good a moment ago.
    fn not_held(
        &self,
        account: &AccountName,
        queue: &QueueName,
        found: &LiveQueue<'_>,
        error: CommitError,
    ) -> ServiceError {
        let is_gone = self.is_outdated(account, queue, found, &error);
        match error {
            CommitError::Precondition { .. } => ErrorCode::MessageNotFound.into(),
            _ if is_gone => ErrorCode::MessageNotFound.into(),
            error => from_commit(error),
        }
    }
}

struct HeldMessage {
    key: MessageKey,
    version: Version,
    value: Bytes,
}

fn plan(found: &LiveQueue<'_>, message: &NewMessage) -> PlannedPut {
    let arrival = found.front.announce(ticks(message.visibility));
    let id = new_id();
    let expires = match message.time_to_live {
        Some(time) => arrival.now.saturating_add(ticks(time)).min(NEVER_TICKS),
        None => NEVER_TICKS,
    };
    let value =
        MessageValue { inserted: arrival.now, expires, dequeue_count: 0, text: &message.text }.write();
    let key = MessageKey { visible: arrival.visible, id };
    let mut ops = Vec::with_capacity(3);
    ops.push(Op { row: key.row(), expect: Expect::Absent, effect: Effect::Put(value) });
    ops.extend(expiring(expires, key));
    ops.push(counting(id, 1));
    let put = Placed { id, inserted: arrival.now, expires, visible: arrival.visible };
    PlannedPut { commit: commit(found, ops), arrival, put }
}

/// The ops that move a message to another place.
pub(crate) fn moving(
    from: MessageKey,
    version: Version,
    to: MessageKey,
    value: Bytes,
    expires: u64,
) -> [Option<Op>; 3] {
    [
        Some(Op { row: from.row(), expect: Expect::Exactly(version), effect: Effect::Delete }),
        Some(Op { row: to.row(), expect: Expect::Absent, effect: Effect::Put(value) }),
        expiring(expires, to),
    ]
}

/// The op that notes where a message is, for when it expires.
fn expiring(expires: u64, key: MessageKey) -> Option<Op> {
    (expires != NEVER_TICKS).then(|| Op {
        row: rows::expiry_row(expires, key.id),
        expect: Expect::Any,
        effect: Effect::Put(rows::write_expiry(key.visible)),
    })
}

/// The op that counts messages in, or out.
pub(crate) fn counting(id: MessageId, change: i64) -> Op {
    let effect = Effect::Merge(rows::write_count(change));
    Op { row: rows::count_row(id), expect: Expect::Any, effect }
}

pub(crate) fn commit(found: &LiveQueue<'_>, ops: Vec<Op>) -> Commit {
    Commit { table: found.id, partition: PARTITION.into(), ops }
}

pub(crate) fn moment(ticks: u64) -> DateTime {
    DateTime::from_ticks(ticks.min(NEVER_TICKS))
}

/// A random GUID, marked as one.
fn new_id() -> MessageId {
    const VERSION_4: u128 = 0x4 << 76;
    const VARIANT: u128 = 0b10 << 62;
    let random = fastrand::u128(..) & !(0xf << 76) & !(0b11 << 62);
    MessageId(random | VERSION_4 | VARIANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_random_guids_of_version_4() {
        let id = new_id();
        assert_ne!(id, new_id());
        let text = id.to_string();
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]), "{text}");
    }
}
