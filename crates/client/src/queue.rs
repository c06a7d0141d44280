//! One queue: its messages, its metadata, its access policies.
//!
//! Owns: what is refused before it is sent, and what a repeated request means for each operation.
//! Promises: delivery is at least once, in both directions. A message that was put once may be stored twice only if the
//! caller puts it again after an error that leaves the outcome open ([`Error::is_outcome_unknown`]); a message that was
//! taken appears again when its visibility timeout passes before it is deleted. So a consumer must stand a message that
//! comes twice.
//! Leaves to others: signing, sending and waiting between attempts (`pipeline`), the documents (`queue_xml`), and loops
//! that take messages until somebody stops them (the crate `lazulite-patterns`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use protocol::common::metadata::{HEADER_PREFIX, Metadata};
use protocol::common::xml_write::is_xml_text;
use protocol::common::{StoredPolicy, acl};
use protocol::queue::QueueName;
use protocol::queue::message_text::{TEXT_BYTES_MAX, write_message};

use crate::account::XML;
use crate::pipeline::{Answer, Call, Pipeline, Repeat, push_escaped};
use crate::policy::{read_policies, write_policies};
use crate::{ClientBuilder, DateTime, Error, queue_xml};

/// The most messages that one take or peek returns.
pub const MESSAGE_COUNT_MAX: usize = 32;
/// The longest that a message can be hidden.
pub const VISIBILITY_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A message that was taken. It is hidden from others until [`Message::next_visible`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Message {
    /// Stays the same as long as the message lives.
    pub id: String,
    /// Proves that this caller took the message last. Each take and each update gives a new one.
    pub pop_receipt: String,
    /// What was put, character by character.
    pub text: String,
    /// How often the message was taken, this time included.
    pub dequeue_count: u32,
    /// When it was put, in whole seconds, as all times of this service are.
    pub inserted: DateTime,
    /// When it is removed if nobody deletes it before; the end of the year 9999 means never.
    pub expires: DateTime,
    /// When others see it again.
    pub next_visible: DateTime,
}

/// A message that was looked at, and not taken. It has no receipt, so it cannot be deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PeekedMessage {
    /// Stays the same as long as the message lives.
    pub id: String,
    /// What was put, character by character.
    pub text: String,
    /// How often the message was taken.
    pub dequeue_count: u32,
    /// When it was put.
    pub inserted: DateTime,
    /// When it is removed if nobody deletes it before.
    pub expires: DateTime,
}

/// A message that was put. Its receipt can update or delete the message until somebody takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SentMessage {
    /// Stays the same as long as the message lives.
    pub id: String,
    /// Valid until the message is taken or updated.
    pub pop_receipt: String,
    /// When it was put.
    pub inserted: DateTime,
    /// When it is removed if nobody deletes it before.
    pub expires: DateTime,
    /// When it can be taken.
    pub next_visible: DateTime,
}

/// What an update gives: the old receipt is no longer valid.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UpdatedReceipt {
    /// The receipt for the next update or delete.
    pub pop_receipt: String,
    /// When others see the message again.
    pub next_visible: DateTime,
}

impl Message {
    /// Takes over what an update gave, so that this message can be updated again or deleted.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use lazulite_client::{Error, Message, QueueClient};
    /// # async fn example(queue: &QueueClient, message: &mut Message) -> Result<(), Error> {
    /// let updated = queue.update(&*message, None, Duration::from_secs(30)).await?;
    /// message.renew(updated);
    /// # Ok(())
    /// # }
    /// ```
    pub fn renew(&mut self, updated: UpdatedReceipt) {
        self.pop_receipt = updated.pop_receipt;
        self.next_visible = updated.next_visible;
    }

    /// The bytes of a message that was put with [`QueueClient::put_bytes`], or by a program that encodes its messages
    /// in Base64, as Azure Functions and the older .NET library do.
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        decode(&self.text)
    }

    /// The value of a message that was put with [`QueueClient::put_json`].
    pub fn json<T: serde_core::de::DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.text).map_err(|error| Error::Unreadable(format!("a message: {error}")))
    }
}

impl PeekedMessage {
    /// The bytes of a message that was put with [`QueueClient::put_bytes`].
    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        decode(&self.text)
    }
}

fn decode(text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text.trim()).map_err(|_| Error::Unreadable("a message is not Base64".to_owned()))
}

/// Names a message for an update or a delete. Made from a [`Message`], a [`SentMessage`], or an id and a receipt.
///
/// ```
/// use lazulite_client::MessageHandle;
///
/// let handle = MessageHandle::from(("d8611c43-075a-43f0-b70f-42f477cbfda7", "AgAAAAMAAAAAAAAA"));
/// assert_eq!(handle.pop_receipt, "AgAAAAMAAAAAAAAA");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageHandle<'a> {
    /// The message's id.
    pub id: &'a str,
    /// Its newest receipt.
    pub pop_receipt: &'a str,
}

impl<'a> From<&'a Message> for MessageHandle<'a> {
    fn from(message: &'a Message) -> MessageHandle<'a> {
        MessageHandle { id: &message.id, pop_receipt: &message.pop_receipt }
    }
}

impl<'a> From<&'a SentMessage> for MessageHandle<'a> {
    fn from(message: &'a SentMessage) -> MessageHandle<'a> {
        MessageHandle { id: &message.id, pop_receipt: &message.pop_receipt }
    }
}

impl<'a> From<(&'a str, &'a str)> for MessageHandle<'a> {
    fn from((id, pop_receipt): (&'a str, &'a str)) -> MessageHandle<'a> {
        MessageHandle { id, pop_receipt }
    }
}

/// How a message is put. By default it can be taken at once, and expires after seven days.
///
/// ```
/// use std::time::Duration;
/// use lazulite_client::PutOptions;
///
/// // Nobody sees it for an hour, and it never expires.
/// let options = PutOptions::new().visible_after(Duration::from_secs(3600)).forever();
/// # let _ = options;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PutOptions {
    visible_after: Duration,
    time_to_live: TimeToLive,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum TimeToLive {
    /// Seven days.
    #[default]
    Usual,
    Forever,
    For(Duration),
}

impl PutOptions {
    /// Visible at once, for seven days.
    pub fn new() -> PutOptions {
        PutOptions::default()
    }

    /// Hides the message first, for at most seven days. Parts of a second count as a whole one.
    pub fn visible_after(mut self, delay: Duration) -> PutOptions {
        self.visible_after = delay;
        self
    }

    /// The message expires after this time, at least a second. Parts of a second count as a whole one.
    pub fn time_to_live(mut self, time: Duration) -> PutOptions {
        self.time_to_live = TimeToLive::For(time);
        self
    }

    /// The message never expires.
    pub fn forever(mut self) -> PutOptions {
        self.time_to_live = TimeToLive::Forever;
        self
    }

    fn query(self) -> Result<Vec<(&'static str, String)>, Error> {
        let mut query = Vec::new();
        let delay = visibility(self.visible_after, 0)?;
        if delay > 0 {
            query.push(("visibilitytimeout", delay.to_string()));
        }
        match self.time_to_live {
            TimeToLive::Usual => {}
            TimeToLive::Forever => query.push(("messagettl", "-1".to_owned())),
            TimeToLive::For(time) => {
                let seconds = whole_seconds(time);
                if seconds <= delay {
                    return refused("a message must live longer than it is hidden at first");
                }
                query.push(("messagettl", seconds.to_string()));
            }
        }
        Ok(query)
    }
}

/// What a queue tells about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueueProperties {
    /// How many messages there are, hidden ones included: never less than the truth, and sometimes more.
    pub approximate_message_count: u64,
    /// Names and values. HTTP does not keep the case of names, so they are in lower case here.
    pub metadata: BTreeMap<String, String>,
}

/// One queue. Cheap to clone; clones share connections.
///
/// ```no_run
/// use std::time::Duration;
/// use lazulite_client::{PutOptions, QueueServiceClient};
///
/// # async fn example() -> Result<(), lazulite_client::Error> {
/// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true")?;
/// let queue = service.queue("orders")?;
/// queue.create_if_absent().await?;
/// queue.put("order 17", PutOptions::new()).await?;
/// for message in queue.take(32, Duration::from_secs(30)).await? {
///     println!("{}", message.text);
///     queue.delete(&message).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct QueueClient {
    pipeline: Arc<Pipeline>,
    name: QueueName,
}

impl fmt::Debug for QueueClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueClient").field(&self.name.as_str()).finish()
    }
}

impl QueueClient {
    /// Fails if no queue can have this name: 3 to 63 lower-case letters, digits and single dashes inside.
    pub(crate) fn new(pipeline: Arc<Pipeline>, name: &str) -> Result<QueueClient, Error> {
        let name = QueueName::parse(name).map_err(|_| {
            Error::Refused(format!(
                "{name:?} cannot be the name of a queue: it needs 3 to 63 lower-case letters, digits and single dashes"
            ))
        })?;
        Ok(QueueClient { pipeline, name })
    }

    /// The URL of one queue with a shared access signature as its query.
    ///
    /// ```
    /// use lazulite_client::QueueClient;
    ///
    /// let url = "https://shop.queue.core.windows.net/orders?sv=2025-11-05&sp=raup&se=2030-01-01&sig=c2lnbg";
    /// assert_eq!(QueueClient::from_sas_url(url)?.name(), "orders");
    /// # Ok::<(), lazulite_client::Error>(())
    /// ```
    pub fn from_sas_url(url: &str) -> Result<QueueClient, Error> {
        let (builder, name) = ClientBuilder::from_resource_sas_url(url)?;
        let name = name.ok_or_else(|| Error::Configuration("the URL names no queue".to_owned()))?;
        builder.queues()?.queue(&name)
    }

    /// The queue's name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Creates the queue. Returns `false` if it was there already, without metadata; a queue with metadata is a
    /// conflict.
    pub async fn create(&self) -> Result<bool, Error> {
        self.create_with(&BTreeMap::new()).await
    }

    /// Creates the queue with metadata. Returns `false` if it was there already, with the same metadata; a queue with
    /// other metadata is a conflict ([`Error::is_conflict`]).
    pub async fn create_with(&self, metadata: &BTreeMap<String, String>) -> Result<bool, Error> {
        let mut call = self.call(Method::PUT, "", Repeat::Freely);
        call.headers = metadata_headers(metadata)?;
        let answer = self.pipeline.call(call).await?;
        Ok(answer.status == StatusCode::CREATED)
    }

    /// Creates the queue unless there is one, whatever its metadata. Returns whether it was created.
    pub async fn create_if_absent(&self) -> Result<bool, Error> {
        match self.create().await {
            Err(error) if error.code() == Some("QueueAlreadyExists") => Ok(false),
            other => other,
        }
    }

    /// Deletes the queue with all its messages. In Azure its name stays blocked for half a minute or more.
    pub async fn delete_queue(&self) -> Result<(), Error> {
        let call = self.call(Method::DELETE, "", Repeat::Freely);
        done_or_gone(self.pipeline.call(call).await, "QueueNotFound")
    }

    /// Deletes the queue if there is one. Returns whether there was.
    pub async fn delete_queue_if_present(&self) -> Result<bool, Error> {
        match self.delete_queue().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some("QueueNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the queue exists.
    pub async fn exists(&self) -> Result<bool, Error> {
        match self.properties().await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("QueueNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The number of messages, and the metadata.
    pub async fn properties(&self) -> Result<QueueProperties, Error> {
        let mut call = self.call(Method::GET, "", Repeat::Freely);
        call.query.push(("comp", "metadata".to_owned()));
        let answer = self.pipeline.call(call).await?;
        let count = header(&answer.headers, "x-ms-approximate-messages-count")?;
        let count =
            count.parse().map_err(|_| Error::Unreadable("the count of messages is not a number".into()))?;
        Ok(QueueProperties { approximate_message_count: count, metadata: read_metadata(&answer.headers) })
    }

    /// How many messages there are, hidden ones included: never less than the truth, and sometimes more.
    pub async fn approximate_count(&self) -> Result<u64, Error> {
        Ok(self.properties().await?.approximate_message_count)
    }

    /// Replaces all metadata.
    pub async fn set_metadata(&self, metadata: &BTreeMap<String, String>) -> Result<(), Error> {
        let mut call = self.call(Method::PUT, "", Repeat::Freely);
        call.query.push(("comp", "metadata".to_owned()));
        call.headers = metadata_headers(metadata)?;
        self.pipeline.call(call).await.map(drop)
    }

    /// The stored access policies, which shared access signatures can refer to. Needs the account key.
    pub async fn access_policies(&self) -> Result<Vec<StoredPolicy>, Error> {
        read_policies(&self.pipeline, self.name(), &protocol::queue::KIND).await
    }

    /// Replaces all stored access policies: at most five, with the letters `raup` in this order.
    pub async fn set_access_policies(&self, policies: &[StoredPolicy]) -> Result<(), Error> {
        if protocol::queue::read_acl(&acl::write_acl(policies)).is_err() {
            return refused(
                "access policies: at most five, with distinct ids of 1 to 64 characters and the letters raup in order",
            );
        }
        write_policies(&self.pipeline, self.name(), policies).await
    }

    /// Puts a message: at most 64 KiB of text that XML can hold, which excludes most control characters.
    ///
    /// The request is repeated only if the server cannot have seen it. When the answer is lost, the error says so
    /// ([`Error::is_outcome_unknown`]), and the caller decides: to put the message again may store it twice, and not to
    /// put it again may lose it.
    pub async fn put(&self, text: &str, options: PutOptions) -> Result<SentMessage, Error> {
        let mut call = self.call(Method::POST, "/messages", Repeat::OnlyUnsent);
        call.query = options.query()?;
        set_body(&mut call, message_body(text)?);
        queue_xml::read_sent(&self.pipeline.call(call).await?.body)
    }

    /// Puts bytes, encoded in Base64: at most 48 KiB. [`Message::bytes`] decodes them.
    pub async fn put_bytes(&self, bytes: &[u8], options: PutOptions) -> Result<SentMessage, Error> {
        self.put(&STANDARD.encode(bytes), options).await
    }

    /// Puts a value as JSON. [`Message::json`] reads it.
    pub async fn put_json<T: serde_core::Serialize + ?Sized>(
        &self,
        value: &T,
        options: PutOptions,
    ) -> Result<SentMessage, Error> {
        let text = serde_json::to_string(value)
            .map_err(|error| Error::Refused(format!("a message cannot be written as JSON: {error}")))?;
        self.put(&text, options).await
    }

    /// Takes up to `count` messages, at most [`MESSAGE_COUNT_MAX`], and hides them from others: at least for a second,
    /// at most for [`VISIBILITY_MAX`]. Returns at once, with an empty list if there is nothing to take.
    ///
    /// If an answer is lost, the messages in it come back after `visibility`, as if their consumer had crashed. The
    /// request is then not repeated, since that would hide as many messages again: take again when you like.
    pub async fn take(&self, count: usize, visibility: Duration) -> Result<Vec<Message>, Error> {
        // Although it is a GET, it changes the queue, so it must never go to the secondary endpoint either.
        let mut call = self.call(Method::GET, "/messages", Repeat::OnlyUnsent);
        call.query.push(("numofmessages", checked_count(count)?.to_string()));
        call.query.push(("visibilitytimeout", self::visibility(visibility, 1)?.to_string()));
        queue_xml::read_taken(&self.pipeline.call(call).await?.body)
    }

    /// Looks at up to `count` messages, at most [`MESSAGE_COUNT_MAX`], and changes nothing. Hidden ones are not shown.
    pub async fn peek(&self, count: usize) -> Result<Vec<PeekedMessage>, Error> {
        let mut call = self.call(Method::GET, "/messages", Repeat::Freely);
        call.query.push(("numofmessages", checked_count(count)?.to_string()));
        call.query.push(("peekonly", "true".to_owned()));
        queue_xml::read_peeked(&self.pipeline.call(call).await?.body)
    }

    /// Hides a message from now for `visibility` (zero shows it at once), and replaces its text if one is given.
    ///
    /// The old receipt is no longer valid afterwards; [`Message::renew`] takes over the new one. So an update cannot be
    /// repeated when its answer is lost: the receipt may be gone, and the message comes back when its time has passed.
    /// A message that somebody else took meanwhile is not found ([`Error::is_not_found`]).
    pub async fn update<'m>(
        &self,
        message: impl Into<MessageHandle<'m>>,
        text: Option<&str>,
        visibility: Duration,
    ) -> Result<UpdatedReceipt, Error> {
        let mut call = self.message_call(Method::PUT, message.into(), Repeat::OnlyUnsent);
        call.query.push(("visibilitytimeout", self::visibility(visibility, 0)?.to_string()));
        if let Some(text) = text {
            set_body(&mut call, message_body(text)?);
        }
        let answer = self.pipeline.call(call).await?;
        let next_visible = DateTime::parse_http(header(&answer.headers, "x-ms-time-next-visible")?)
            .ok_or_else(|| Error::Unreadable("the time of an update cannot be read".to_owned()))?;
        let pop_receipt = header(&answer.headers, "x-ms-popreceipt")?.to_owned();
        Ok(UpdatedReceipt { pop_receipt, next_visible })
    }

    /// Deletes a message that was taken, or put and not yet taken.
    ///
    /// A message that is gone is an error ([`Error::is_not_found`]): it expired, or was hidden too short a time and
    /// somebody else took it. Only when this very delete was sent more than once does "not found" count as success.
    pub async fn delete<'m>(&self, message: impl Into<MessageHandle<'m>>) -> Result<(), Error> {
        let call = self.message_call(Method::DELETE, message.into(), Repeat::Freely);
        done_or_gone(self.pipeline.call(call).await, "MessageNotFound")
    }

    /// Deletes all messages, hidden ones included.
    pub async fn clear(&self) -> Result<(), Error> {
        self.pipeline.call(self.call(Method::DELETE, "/messages", Repeat::Freely)).await.map(drop)
    }

    fn call(&self, method: Method, below: &str, repeat: Repeat) -> Call {
        Call::new(method, [self.name.as_str(), below].concat(), repeat)
    }

    fn message_call(&self, method: Method, message: MessageHandle<'_>, repeat: Repeat) -> Call {
        let mut call = self.call(method, "/messages/", repeat);
        push_escaped(message.id, &mut call.path);
        call.query.push(("popreceipt", message.pop_receipt.to_owned()));
        call
    }
}

/// A delete that was sent twice finds nothing the second time, although it did its work.
fn done_or_gone(result: Result<Answer, Error>, gone: &str) -> Result<(), Error> {
    match result {
        Ok(_) => Ok(()),
        Err(Error::Service(failure)) if failure.was_repeated && failure.code == gone => Ok(()),
        Err(error) => Err(error),
    }
}

fn message_body(text: &str) -> Result<Vec<u8>, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::Refused(format!(
            "the message has {} bytes; the service takes {TEXT_BYTES_MAX}",
            text.len()
        )));
    }
    if !is_xml_text(text) {
        return refused(
            "the message has a control character that XML cannot hold; put_bytes takes any bytes",
        );
    }
    Ok(write_message(text))
}

fn set_body(call: &mut Call, body: Vec<u8>) {
    call.headers.push((header::CONTENT_TYPE, XML.to_owned()));
    call.body = body.into();
}

fn checked_count(count: usize) -> Result<usize, Error> {
    if (1..=MESSAGE_COUNT_MAX).contains(&count) {
        Ok(count)
    } else {
        refused("ask for 1 to 32 messages at a time")
    }
}

fn visibility(time: Duration, seconds_min: u64) -> Result<u64, Error> {
    let seconds = whole_seconds(time);
    if seconds < seconds_min {
        return refused("a message must be hidden for at least a second when it is taken");
    }
    if seconds > VISIBILITY_MAX.as_secs() {
        return refused("a message can be hidden for at most seven days");
    }
    Ok(seconds)
}

/// Parts of a second count as a whole one, so that nothing is visible too early.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

fn metadata_headers(metadata: &BTreeMap<String, String>) -> Result<Vec<(HeaderName, String)>, Error> {
    let items = metadata.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let bad = || {
        Error::Refused(
            "metadata: names are letters, digits and _ and differ not only in case, values are ASCII, and all \
             together take at most 8 KiB"
                .to_owned(),
        )
    };
    let checked = Metadata::read(items).map_err(|_| bad())?;
    let header = |(name, value): (&str, &str)| {
        let name = HeaderName::from_bytes([HEADER_PREFIX, name].concat().as_bytes()).map_err(|_| bad())?;
        Ok((name, value.to_owned()))
    };
    checked.items().map(header).collect()
}

fn read_metadata(headers: &HeaderMap) -> BTreeMap<String, String> {
    let item = |(name, value): (&HeaderName, &http::HeaderValue)| {
        let name = name.as_str().strip_prefix(HEADER_PREFIX)?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    };
    headers.iter().filter_map(item).collect()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Error> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or_else(|| Error::Unreadable(format!("the header {name} is missing")))
}

fn refused<T>(reason: &str) -> Result<T, Error> {
    Err(Error::Refused(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_parameters() {
        let check = |options: PutOptions, expected: Option<&str>| {
            let query = options.query().ok().map(|query| {
                let items = query.iter().map(|(name, value)| format!("{name}={value}"));
                items.collect::<Vec<_>>().join("&")
            });
            assert_eq!(query.as_deref(), expected, "{options:?}");
        };
        let seconds = Duration::from_secs;
        check(PutOptions::new(), Some(""));
        check(PutOptions::new().forever(), Some("messagettl=-1"));
        check(PutOptions::new().time_to_live(seconds(60)), Some("messagettl=60"));
        check(PutOptions::new().time_to_live(Duration::from_millis(1)), Some("messagettl=1"));
        check(
            PutOptions::new().visible_after(seconds(5)).forever(),
            Some("visibilitytimeout=5&messagettl=-1"),
        );
        check(PutOptions::new().visible_after(VISIBILITY_MAX), Some("visibilitytimeout=604800"));
        check(PutOptions::new().visible_after(VISIBILITY_MAX + Duration::from_nanos(1)), None);
        check(PutOptions::new().visible_after(seconds(60)).time_to_live(seconds(60)), None);
        check(PutOptions::new().time_to_live(Duration::ZERO), None);
    }

    #[test]
    fn texts_that_cannot_be_sent_are_refused() {
        for good in ["", "a", "\t\r\n", "<&>", "\u{FFFD}\u{10FFFF}", &"x".repeat(64 * 1024)] {
            assert!(message_body(good).is_ok());
        }
        for bad in ["\0", "a\u{1b}", "\u{FFFE}", "\u{FFFF}", &"x".repeat(64 * 1024 + 1), &"ä".repeat(40_000)]
        {
            assert!(matches!(message_body(bad), Err(Error::Refused(_))), "{} bytes", bad.len());
        }
    }

    #[test]
    fn counts_and_times_have_bounds() {
        assert!(checked_count(0).is_err() && checked_count(1).is_ok());
        assert!(checked_count(32).is_ok() && checked_count(33).is_err());
        assert!(visibility(Duration::ZERO, 1).is_err() && visibility(Duration::ZERO, 0).is_ok());
        assert_eq!(visibility(Duration::from_millis(1001), 1).unwrap(), 2);
        assert!(visibility(Duration::MAX, 0).is_err());
    }

    #[test]
    fn metadata_becomes_headers() {
        let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let headers = metadata_headers(&one("Color", "red")).unwrap();
        assert_eq!(headers, [(HeaderName::from_static("x-ms-meta-color"), "red".to_owned())]);
        for (name, value) in [("", "x"), ("a-b", "x"), ("a", "ä"), ("a", "x\r\ny: z")] {
            assert!(metadata_headers(&one(name, value)).is_err(), "{name} {value}");
        }
        let mut map = HeaderMap::new();
        map.insert("x-ms-meta-color", "red".parse().unwrap());
        map.insert("x-ms-version", "1".parse().unwrap());
        assert_eq!(read_metadata(&map), one("color", "red"));
    }
}
