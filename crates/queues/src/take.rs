//! Get and peek: the messages at the front of a queue.

use std::time::Duration;

use bytes::Bytes;
use catalogue::{from_commit, from_read};
use engine::env::ticks;
use engine::{CommitError, Flow, Key, KeyRange, Share, Sink, Version};
use protocol::common::{AccountName, DateTime};
use protocol::queue::{MessageId, PopReceipt, QueueName};
use protocol::{ErrorCode, ServiceError};

use crate::front::Claims;
use crate::messages::{commit, moment, moving};
use crate::rows::{self, MessageKey, MessageValue, visible_range};
use crate::service::{ATTEMPT_COUNT_MAX, LiveQueue, QueueService, damaged_row, scan_budget};

/// A message that its taker holds until it becomes visible again.
#[derive(Clone, Debug)]
pub struct TakenMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub receipt: PopReceipt,
    pub visible: DateTime,
    pub dequeue_count: u32,
    pub text: Bytes,
}

/// A message that was only looked at.
#[derive(Clone, Debug)]
pub struct PeekedMessage {
    pub id: MessageId,
    pub inserted: DateTime,
    pub expires: DateTime,
    pub dequeue_count: u32,
    pub text: Bytes,
}

impl QueueService {
    /// Takes up to so many messages, and hides each of them for the time. `fits` sees the text of each message before it
    /// is taken; the first that does not fit ends the list.
    pub async fn get_messages(
        &self,
        account: &AccountName,
        queue: &QueueName,
        count_max: usize,
        visibility: Duration,
        share: Share,
        fits: &mut Fits<'_>,
    ) -> Result<Vec<TakenMessage>, ServiceError> {
        let mut has_looked_back = false;
        for _ in 0..ATTEMPT_COUNT_MAX {
            let since = self.catalogue.ticket();
            let found = self.find(account, queue).await?;
            let mut claims = Claims::new(&found.front);
            let messages = self.walk(&found, count_max, Some(&mut claims), share, fits).await?;
            if messages.is_empty() {
                if self.must_look_back(&found, &mut has_looked_back) {
                    continue;
                }
                // A queue that is being deleted loses its rows gradually, and must not look empty.
                if self.catalogue.is_unchanged(account, queue.as_str(), found.id, since).await? {
                    return Ok(Vec::new());
                }
                continue;
            }
            match self.take_unchanged(&found, messages, visibility, &mut claims).await {
                // All of them changed meanwhile.
                Ok(taken) if taken.is_empty() => {}
                Ok(taken) => {
                    claims.taken();
                    return Ok(taken);
                }
                Err(error) if self.is_outdated(account, queue, &found, &error) => {}
                Err(error) => return Err(from_commit(error)),
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    pub async fn peek_messages(
        &self,
        account: &AccountName,
        queue: &QueueName,
        count_max: usize,
        share: Share,
        fits: &mut Fits<'_>,
    ) -> Result<Vec<PeekedMessage>, ServiceError> {
        let mut has_looked_back = false;
        for _ in 0..ATTEMPT_COUNT_MAX {
            let since = self.catalogue.ticket();
            let found = self.find(account, queue).await?;
            let messages = self.walk(&found, count_max, None, share, fits).await?;
            if messages.is_empty() && self.must_look_back(&found, &mut has_looked_back) {
                continue;
            }
            if self.catalogue.is_unchanged(account, queue.as_str(), found.id, since).await? {
                return messages.iter().map(|message| message.peeked().ok_or_else(damaged_row)).collect();
            }
        }
        Err(ErrorCode::ServerBusy.into())
    }

    /// Whether a queue that looks empty must be read once more, from its beginning: another process may have put messages,
    /// and been told so, below the place from which this one reads.
    fn must_look_back(&self, found: &LiveQueue<'_>, has_looked_back: &mut bool) -> bool {
        let must = self.shares_its_engine() && !*has_looked_back;
        if must {
            found.front.look_back();
            *has_looked_back = true;
        }
        must
    }

    /// The first visible messages, up to so many; those that can be claimed, if there are claims.
    async fn walk(
        &self,
        found: &LiveQueue<'_>,
        count_max: usize,
        claims: Option<&mut Claims>,
        share: Share,
        fits: &mut Fits<'_>,
    ) -> Result<Vec<SeenMessage>, ServiceError> {
        let visible = found.front.visible();
        let end = MessageKey::first_at(visible.now.saturating_add(1));
        let mut sink = Walker {
            now: visible.now,
            count_max,
            claims,
            fits,
            messages: Vec::new(),
            end,
            state: WalkState::Ongoing,
        };
        let mut range = [visible_range(visible.start, visible.now)];
        loop {
            let next =
                self.engine.scan(found.id, &range, scan_budget(share), &mut sink).await.map_err(from_read)?;
            match sink.state {
                WalkState::Ongoing => {}
                WalkState::Full if sink.messages.is_empty() => return Err(ErrorCode::ServerBusy.into()),
                WalkState::Full => break,
                WalkState::Damaged => return Err(damaged_row()),
            }
            // Out of time, but not out of rows: a long run of expired messages.
            let Some(next) = next.filter(|_| sink.messages.len() < count_max) else { break };
            let rest = KeyRange::from_key(&next.partition, &next.row);
            let Some(rest) = range[0].intersect(&rest) else { break };
            range = [rest];
        }
        found.front.learn(&visible, sink.end);
        Ok(sink.messages)
    }

    /// Takes those of the messages that are still there, in one step. Others changed after they were seen: another
    /// process took them, or their holder deleted or updated them. What is left is taken at once and not one by one,
    /// because meanwhile nobody else sees it.
    async fn take_unchanged(
        &self,
        found: &LiveQueue<'_>,
        mut messages: Vec<SeenMessage>,
        visibility: Duration,
        claims: &mut Claims,
    ) -> Result<Vec<TakenMessage>, CommitError> {
        while !messages.is_empty() {
            match self.take(found, &messages, visibility).await {
                Ok(taken) => return Ok(taken),
                Err(NotTaken::Changed(place)) => claims.gone(messages.remove(place).key),
                Err(NotTaken::Failed(error)) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    /// Moves these messages to where they become visible again, all of them or none.
    async fn take(
        &self,
        found: &LiveQueue<'_>,
        messages: &[SeenMessage],
        visibility: Duration,
    ) -> Result<Vec<TakenMessage>, NotTaken> {
        #[cfg(feature = "seeded-bugs")]
        let visibility = crate::seeded::shorten(visibility);
        let arrival = found.front.announce(ticks(visibility));
        let mut ops = Vec::with_capacity(3 * messages.len());
        // The first op behind those of each message.
        let mut ends = Vec::with_capacity(messages.len());
        let mut taken = Vec::with_capacity(messages.len());
        for (place, message) in messages.iter().enumerate() {
            let SeenMessage { key: MessageKey { id, .. }, version, .. } = *message;
            // The walker has read it already.
            let Some(old) = MessageValue::read(&message.value) else { continue };
            let new = MessageValue { dequeue_count: old.dequeue_count.saturating_add(1), ..old };
            #[cfg(feature = "seeded-bugs")]
            let new = MessageValue {
                dequeue_count: crate::seeded::dequeue_count(old.dequeue_count, new.dequeue_count),
                ..new
            };
            let value = new.write();
            let text = rows::text_of(&value);
            // A tick apart, so that they come up again in the same order.
            let visible = arrival.visible.saturating_add(place as u64);
            let to = MessageKey { visible, id };
            ops.extend(moving(message.key, version, to, value, old.expires).into_iter().flatten());
            ends.push(ops.len());
            taken.push(TakenMessage {
                id,
                inserted: moment(new.inserted),
                expires: moment(new.expires),
                receipt: PopReceipt { visible_ticks: visible, version_ticks: 0 },
                visible: moment(visible),
                dequeue_count: new.dequeue_count,
                text,
            });
        }
        #[cfg(feature = "seeded-bugs")]
        crate::seeded::loosen(&mut ops);
        let outcome = self.commit_announced(arrival, commit(found, ops)).await;
        let version = outcome.map_err(|error| match error {
            CommitError::Precondition { op, .. } => {
                let place = ends.partition_point(|end| *end <= op);
                NotTaken::Changed(place.min(messages.len().saturating_sub(1)))
            }
            error => NotTaken::Failed(error),
        })?;
        for message in &mut taken {
            message.receipt.version_ticks = version.ticks();
        }
        Ok(taken)
    }
}

/// Why messages were not taken.
enum NotTaken {
    /// The message at this place changed after it was seen.
    Changed(usize),
    Failed(CommitError),
}

/// A message as a scan saw it.
struct SeenMessage {
    key: MessageKey,
    version: Version,
    value: Bytes,
}

impl SeenMessage {
    fn peeked(&self) -> Option<PeekedMessage> {
        let value = MessageValue::read(&self.value)?;
        Some(PeekedMessage {
            id: self.key.id,
            inserted: moment(value.inserted),
            expires: moment(value.expires),
            dequeue_count: value.dequeue_count,
            text: rows::text_of(&self.value),
        })
    }
}

/// Whether there is memory for one more message with this text.
pub type Fits<'a> = dyn FnMut(&[u8]) -> bool + Send + 'a;

/// Collects the messages that have not expired.
struct Walker<'a, 'f> {
    now: u64,
    count_max: usize,
    /// Without claims it only looks.
    claims: Option<&'a mut Claims>,
    fits: &'a mut Fits<'f>,
    messages: Vec<SeenMessage>,
    /// Every message below has expired, or somebody has claimed it.
    end: MessageKey,
    state: WalkState,
}

enum WalkState {
    Ongoing,
    /// There is no memory for the next message.
    Full,
    Damaged,
}

impl Sink for Walker<'_, '_> {
    fn row(&mut self, key: Key<'_>, version: Version, value: &[u8]) -> Flow {
        if self.messages.len() == self.count_max {
            return Flow::Stop;
        }
        let read = MessageKey::read(key.row).zip(MessageValue::read(value));
        let Some((key, message)) = read else {
            self.state = WalkState::Damaged;
            return Flow::Stop;
        };
        if message.has_expired(self.now) {
            return Flow::Continue;
        }
        // Before it is counted: a message that another has takes no memory here.
        if self.claims.as_ref().is_some_and(|claims| !claims.is_free(key)) {
            return Flow::Continue;
        }
        if !(self.fits)(message.text) {
            self.state = WalkState::Full;
            self.end = self.end.min(key);
            return Flow::Stop;
        }
        match &mut self.claims {
            Some(claims) => {
                if !claims.add(key) {
                    return Flow::Continue;
                }
                if self.messages.len() + 1 == self.count_max {
                    self.end = key.after();
                }
            }
            None if self.messages.is_empty() => self.end = key,
            None => {}
        }
        self.messages.push(SeenMessage { key, version, value: Bytes::copy_from_slice(value) });
        Flow::Continue
    }
}
