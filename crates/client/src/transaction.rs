//! Transactions: several writes to one partition that happen together or not at all.
//!
//! Owns: [`Transaction`], the typed builder, and the sending of a batch. Promises: what the service would refuse
//! without looking at its data is refused when it is added, and the transaction stays as it was; a failed operation
//! is named by its index and its keys. Leaves to others: the bytes (`multipart`).

use std::collections::HashSet;

use http::{Method, StatusCode, header};
use protocol::common::xml_write::is_xml_text;
use protocol::queue::QueueName;
use protocol::queue::message_text::TEXT_BYTES_MAX;

use crate::encryption::check_merge;
use crate::error::refuses_before_work;
use crate::limits::{self, TRANSACTION_BYTES_MAX, TRANSACTION_OPERATION_COUNT_MAX};
use crate::lost::{Settled, settle};
use crate::multipart::{Batch, BatchOutcome, Sealed, read_outcome, split_index};
use crate::pipeline::{Call, Repeat};
use crate::retry::{self, Budget};
use crate::sealing::own_property;
use crate::table::{JSON, properties_of};
use crate::write::{ANY, IfMatch, Verb};
use crate::{Entity, Error, Keys, Property, ServiceFailure, TableClient, json};

/// A first guess; the buffer grows when it must.
const BODY_BYTES_USUAL: usize = 4096;

/// Writes to rows of one partition that happen together or not at all. Made by [`TableClient::transaction`].
///
/// Entities of several types can go into one transaction. Every method refuses what the service would refuse, and
/// leaves the transaction as it was: more than 100 operations, a row of another partition, the same row twice, a body
/// above 4 MiB, an entity above 1 MiB or with more than 252 properties.
///
/// ```no_run
/// use lazulite_client::{Entity, Error, IfMatch, TableClient};
///
/// #[derive(Entity)]
/// struct Employee {
///     #[entity(partition_key)]
///     department: String,
///     #[entity(row_key)]
///     id: String,
///     age: i32,
/// }
///
/// async fn succeed(employees: &TableClient, old: &Employee, new: &Employee) -> Result<(), Error> {
///     let mut transaction = employees.transaction("Sales");
///     transaction.insert(new)?.delete(&old.id, IfMatch::Any)?;
///     let committed = transaction.send().await?;
///     assert_eq!(committed.etags.len(), 2);
///     Ok(())
/// }
/// ```
///
/// # When it fails
///
/// Nothing was written, unless the outcome is unknown ([`Error::is_outcome_unknown`]). The error is that of the
/// operation at fault: [`operation_index`](ServiceFailure::operation_index) counts from zero, and
/// [`keys`](ServiceFailure::keys) names its row. A failure of the server itself is of no operation.
#[must_use = "a transaction does nothing until it is sent"]
pub struct Transaction {
    table: TableClient,
    partition_key: String,
    batch: Batch,
    row_keys: HashSet<Box<str>>,
    /// The entities with encrypted properties, and the places of their operations. They are sealed when the transaction
    /// is sent, because a key ring may have to ask elsewhere.
    unsealed: Vec<Unsealed>,
}

struct Unsealed {
    index: usize,
    encrypted: &'static [&'static str],
    properties: Vec<Property<'static>>,
}

/// What the service says of a transaction that it committed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Committed {
    /// The new ETag of each row, in the order of the operations; `None` where a row was deleted.
    pub etags: Vec<Option<String>>,
}

impl Transaction {
    pub(crate) fn new(table: TableClient, partition_key: String) -> Transaction {
        let batch = table.batch(BODY_BYTES_USUAL);
        Transaction { table, partition_key, batch, row_keys: HashSet::new(), unsealed: Vec::new() }
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether it has no operation yet. An empty transaction cannot be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has 100 operations, the most that the service takes.
    pub fn is_full(&self) -> bool {
        self.batch.is_full()
    }

    /// The partition whose rows it writes.
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// Inserts a row, which must not exist.
    pub fn insert<E: Entity>(&mut self, entity: &E) -> Result<&mut Transaction, Error> {
        self.add(Verb::Insert, entity, None)
    }

    /// Replaces a row, which must exist and fulfil the condition.
    pub fn replace<E: Entity>(
        &mut self,
        entity: &E,
        condition: IfMatch<'_>,
    ) -> Result<&mut Transaction, Error> {
        let if_match = condition.header(entity.etag())?;
        self.add(Verb::Replace, entity, Some(if_match))
    }

    /// Merges into a row, which must exist and fulfil the condition. Refused for an entity with encrypted properties.
    pub fn merge<E: Entity>(
        &mut self,
        entity: &E,
        condition: IfMatch<'_>,
    ) -> Result<&mut Transaction, Error> {
        let if_match = condition.header(entity.etag())?;
        self.add(Verb::Merge, entity, Some(if_match))
    }

    /// Inserts a row, or replaces the one that is there.
    pub fn upsert_replace<E: Entity>(&mut self, entity: &E) -> Result<&mut Transaction, Error> {
        self.add(Verb::UpsertReplace, entity, None)
    }

    /// Inserts a row, or merges into the one that is there. Refused for an entity with encrypted properties.
    pub fn upsert_merge<E: Entity>(&mut self, entity: &E) -> Result<&mut Transaction, Error> {
        self.add(Verb::UpsertMerge, entity, None)
    }

    /// Deletes a row of the transaction's partition, which must exist and fulfil the condition.
    pub fn delete(&mut self, row_key: &str, condition: IfMatch<'_>) -> Result<&mut Transaction, Error> {
        let if_match = condition.header(None)?;
        let keys = Keys::new(self.partition_key.clone(), row_key);
        limits::check_keys(&keys)?;
        self.push(Verb::Delete, &keys, Some(if_match), |_| Ok(()))
    }

    /// Deletes the entity's row, which must exist and fulfil the condition.
    pub fn delete_entity<E: Entity>(
        &mut self,
        entity: &E,
        condition: IfMatch<'_>,
    ) -> Result<&mut Transaction, Error> {
        let if_match = condition.header(entity.etag())?;
        let keys = entity.keys()?;
        limits::check_keys(&keys)?;
        self.push(Verb::Delete, &keys, Some(if_match), |_| Ok(()))
    }

    /// Puts a message into a queue of the same account if, and only if, the transaction commits. It belongs to the
    /// operation that was added last, and an operation takes one message.
    ///
    /// **Lazulite only.** Other services ignore what they do not know: they commit the transaction, and the message
    /// is lost.
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, TableClient};
    /// # async fn f(orders: &TableClient, order: &DynamicEntity) -> Result<(), Error> {
    /// orders.transaction("2024-05").insert(order)?.enqueue("to-ship", "order 17")?.send().await?;
    /// # Ok(()) }
    /// ```
    pub fn enqueue(&mut self, queue: &str, text: &str) -> Result<&mut Transaction, Error> {
        let queue = QueueName::parse(queue)
            .map_err(|error| Error::Refused(format!("{queue:?} cannot be a queue: {}", error.message())))?;
        if text.len() > TEXT_BYTES_MAX || !is_xml_text(text) {
            return Err(Error::Refused(format!(
                "a message is at most {TEXT_BYTES_MAX} bytes of text without control characters"
            )));
        }
        match self.batch.parts.last() {
            None => Err(Error::Refused(
                "a message goes with an operation, and this transaction has none yet".to_owned(),
            )),
            Some(part) if part.has_message => {
                Err(Error::Refused("an operation of a transaction takes one message".to_owned()))
            }
            Some(_) => {
                if self.batch.enqueue(queue.as_str(), text) {
                    Ok(self)
                } else {
                    Err(too_large())
                }
            }
        }
    }

    /// Sends it. Every operation happened when this returns `Ok`, and none if it returns a refusal of the service whose
    /// outcome is known.
    ///
    /// If an answer is lost, the transaction is sent again, and what the service then says is compared with the rows:
    /// if all of them are as they were sent, it is a success. The one exception is a transaction that has a message and
    /// nothing that could happen only once (an insert, a delete, or an ETag): it is not sent again, because the
    /// message could be put twice. Then the error is that of the lost answer ([`Error::is_outcome_unknown`]).
    ///
    /// The transaction stays as it is, and can be sent again.
    pub async fn send(&self) -> Result<Committed, Error> {
        if self.is_empty() {
            return Err(Error::Refused("a transaction without operations does nothing".to_owned()));
        }
        let mut batch = self.batch.clone();
        for Unsealed { index, encrypted, properties } in &self.unsealed {
            let mut properties = properties.clone();
            let keys = Keys::new(&*self.partition_key, &*self.batch.parts[*index].row_key);
            let sealing = &self.table.inner.sealing;
            sealing.seal(encrypted, &mut properties, self.table.name(), &keys).await?;
            let mut json = Vec::new();
            json::write_entity(Some(&keys), &properties, &mut json);
            limits::check_entity(&keys, &properties, json.len())?;
            if !batch.fill(*index, &json) {
                return Err(too_large());
            }
        }
        let etags = self.table.send_batch(&self.partition_key, &batch.seal()).await?;
        Ok(Committed { etags })
    }

    fn add<E: Entity>(
        &mut self,
        verb: Verb,
        entity: &E,
        if_match: Option<&str>,
    ) -> Result<&mut Transaction, Error> {
        if verb.is_merge() {
            check_merge::<E>()?;
        }
        let keys = entity.keys()?;
        limits::check_keys(&keys)?;
        let properties = properties_of(entity)?;
        if E::ENCRYPTED.is_empty() {
            return self.push(verb, &keys, if_match, |out| write_checked(&keys, &properties, out));
        }
        self.table.inner.sealing.ring(E::ENCRYPTED)?;
        let index = self.len();
        self.push(verb, &keys, if_match, |_| Ok(()))?;
        let properties = properties.into_iter().map(own_property).collect();
        self.unsealed.push(Unsealed { index, encrypted: E::ENCRYPTED, properties });
        Ok(self)
    }

    fn push(
        &mut self,
        verb: Verb,
        keys: &Keys<'_>,
        if_match: Option<&str>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<&mut Transaction, Error> {
        if keys.partition_key != self.partition_key {
            return Err(Error::Refused(format!(
                "the row {} is of another partition than the transaction, which is of {:?}: \
                 only rows of one partition can be written together",
                limits::describe(keys),
                self.partition_key
            )));
        }
        if self.is_full() {
            return Err(Error::Refused(format!(
                "a transaction has at most {TRANSACTION_OPERATION_COUNT_MAX} operations"
            )));
        }
        if self.row_keys.contains(&*keys.row_key) {
            return Err(Error::Refused(format!(
                "the row {} is in this transaction already: each row at most once",
                limits::describe(keys)
            )));
        }
        let etag = if_match.filter(|if_match| *if_match != ANY);
        if !self.batch.push(verb, keys, etag, write)? {
            return Err(too_large());
        }
        self.row_keys.insert((&*keys.row_key).into());
        Ok(self)
    }
}

/// Appends an entity that the service will not refuse for its size.
pub(crate) fn write_checked(
    keys: &Keys<'_>,
    properties: &[Property<'_>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    json::write_entity(Some(keys), properties, out);
    limits::check_entity(keys, properties, out.len() - start)
}

fn too_large() -> Error {
    Error::Refused(format!("a transaction has at most {TRANSACTION_BYTES_MAX} bytes, and this would be more"))
}

impl TableClient {
    pub(crate) fn batch(&self, capacity: usize) -> Batch {
        Batch::new(&self.inner.address, self.inner.pipeline.guid(), capacity)
    }

    /// Sends a batch until it is known what became of it. Returns the ETag of each row.
    pub(crate) async fn send_batch(
        &self,
        partition_key: &str,
        batch: &Sealed,
    ) -> Result<Vec<Option<String>>, Error> {
        // With a guard, a second attempt after a first that succeeded is refused as a whole. Without one it does the
        // same again, which is harmless for rows, but not for messages.
        let is_guarded = batch.parts.iter().any(|part| part.is_guard());
        let has_messages = batch.parts.iter().any(|part| part.has_message);
        let repeat = if is_guarded || !has_messages { Repeat::Freely } else { Repeat::OnlyUnsent };
        let call = Call {
            headers: vec![(header::ACCEPT, JSON.to_owned()), (header::CONTENT_TYPE, batch.content_type())],
            body: batch.body.clone(),
            ..Call::new(Method::POST, "$batch", repeat)
        };
        let mut budget = Budget::new();
        let mut may_have_happened = false;
        loop {
            let answer = self
                .call_within(call.clone(), None, &mut budget)
                .await
                .map_err(|error| if may_have_happened { error.after_lost_answer() } else { error })?;
            may_have_happened |= answer.was_repeated;
            let content_type = answer.headers.get(header::CONTENT_TYPE).and_then(|text| text.to_str().ok());
            let outcome = read_outcome(content_type.unwrap_or_default(), &answer.body, batch.parts.len())?;
            let (status, body) = match outcome {
                BatchOutcome::Done(etags) => {
                    return Ok(etags.into_iter().map(|etag| etag.map(str::to_owned)).collect());
                }
                BatchOutcome::Failed { status, body } => (status, body),
            };
            let status = StatusCode::from_u16(status).map_err(|_| {
                Error::Unreadable(format!("an operation was answered with the status {status}"))
            })?;
            let mut failure = ServiceFailure::read(status, &answer.headers, body);
            failure.was_repeated = may_have_happened;
            let (index, message) = split_index(&failure.message);
            let message = message.to_owned();
            failure.message = message;
            // The server's own trouble, not that of an operation, although one may be named.
            if retry::is_transient(status) {
                may_have_happened |= status.is_server_error() && !refuses_before_work(status, &failure.code);
                budget.failure_count += 1;
                let asked = retry::asked_delay(&answer.headers, self.inner.pipeline.environment().now());
                if retry::allows_after_answer(repeat, status, &failure.code)
                    && self.inner.pipeline.pause(&budget, asked).await
                {
                    continue;
                }
                return Err(failure.into());
            }
            // A transaction of one operation is refused without its index.
            let index =
                index.or((batch.parts.len() == 1).then_some(0)).filter(|index| *index < batch.parts.len());
            let index = index.filter(|_| !status.is_server_error());
            failure.operation_index = index;
            failure.keys =
                index.map(|index| Keys::new(partition_key, &*batch.parts[index].row_key).into_owned());
            let may_be_own_work = may_have_happened && matches!(status.as_u16(), 404 | 409 | 412);
            if may_be_own_work && let Some(etags) = self.find_committed(partition_key, batch, &budget).await {
                return Ok(etags);
            }
            return Err(failure.into());
        }
    }

    /// The ETags of the rows, if all of them are as the batch leaves them: it was committed, and its answer was lost.
    async fn find_committed(
        &self,
        partition_key: &str,
        batch: &Sealed,
        budget: &Budget,
    ) -> Option<Vec<Option<String>>> {
        let mut etags = Vec::with_capacity(batch.parts.len());
        for (index, part) in batch.parts.iter().enumerate() {
            let keys = Keys::new(partition_key, &*part.row_key);
            match settle(self, part.verb, &keys, part.if_match(), batch.json(index), budget).await {
                Ok(Settled::Done { etag, .. }) => etags.push((part.verb != Verb::Delete).then_some(etag)),
                _ => return None,
            }
        }
        Some(etags)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pipeline::tests::{EMULATOR, FakeTransport, Reply, builder};
    use crate::{BulkMode, DynamicEntity};

    /// The answer to a whole transaction, with these parts.
    fn answer(parts: &[&str]) -> Reply {
        let mut body = String::from("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n");
        for part in parts {
            body.push_str(
                "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
            );
            body.push_str(&format!("HTTP/1.1 {part}\r\n"));
        }
        body.push_str("--c--\r\n--b--\r\n");
        Reply::Answer(202, &[("content-type", "multipart/mixed; boundary=b")], body)
    }

    fn refusal(status: &str, code: &str) -> Reply {
        answer(&[&format!(
            "{status}\r\nContent-Type: application/json\r\n\r\n\
             {{\"odata.error\":{{\"code\":\"{code}\",\"message\":{{\"value\":\"1:no\"}}}}}}"
        )])
    }

    const DONE: &str = "204 No Content\r\nETag: W/\"1\"\r\n\r\n";

    fn table(replies: Vec<Reply>) -> (TableClient, Arc<FakeTransport>) {
        let transport = FakeTransport::new(replies);
        (builder(EMULATOR, transport.clone()).tables().unwrap().table("people").unwrap(), transport)
    }

    fn rows() -> [DynamicEntity; 2] {
        ["a", "b"].map(|row_key| DynamicEntity::new("p", row_key))
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_in_trouble_is_given_time() {
        let busy = || refusal("503 Service Unavailable", "ServerBusy");
        let broken = || refusal("500 Internal Server Error", "InternalError");
        let send = async |replies: Vec<Reply>| {
            let (table, transport) = table(replies);
            let mut transaction = table.transaction("p");
            let [a, b] = rows();
            transaction.insert(&a).unwrap().insert(&b).unwrap();
            let outcome = transaction.send().await;
            (outcome, transport.seen())
        };
        let (outcome, seen) = send(vec![busy(), broken(), answer(&[DONE, DONE])]).await;
        assert_eq!((outcome.unwrap().etags.len(), seen.len()), (2, 3));
        assert!(seen[1].at > seen[0].at && seen[2].at > seen[1].at);
        // As often as the policy allows, and then no operation is to blame.
        let (outcome, seen) = send((0..9).map(|_| busy()).collect()).await;
        let error = outcome.unwrap_err();
        assert!(!error.is_outcome_unknown());
        let failure = error.failure().unwrap();
        assert_eq!((failure.operation_index, &failure.keys, seen.len()), (None, &None, 5));
        // What happened at first is looked for when the second attempt finds it.
        let (outcome, seen) = send(vec![
            broken(),
            refusal("409 Conflict", "EntityAlreadyExists"),
            Reply::Answer(
                200,
                &[],
                "{\"odata.etag\":\"1\",\"PartitionKey\":\"p\",\"RowKey\":\"a\"}".to_owned(),
            ),
            Reply::Answer(
                200,
                &[],
                "{\"odata.etag\":\"2\",\"PartitionKey\":\"p\",\"RowKey\":\"b\"}".to_owned(),
            ),
        ])
        .await;
        assert_eq!((outcome.unwrap().etags.len(), seen.len()), (2, 4));
        // A message must not be put twice.
        let (table, transport) = table(vec![broken()]);
        let mut transaction = table.transaction("p");
        transaction.upsert_replace(&rows()[0]).unwrap().enqueue("jobs", "one").unwrap();
        assert!(transaction.send().await.unwrap_err().is_outcome_unknown());
        assert_eq!(transport.seen().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bulk_load_blames_no_entity_for_a_server_in_trouble() {
        let (table, transport) = table((0..5).map(|_| refusal("503 x", "ServerBusy")).collect());
        let report = table.bulk(&rows(), BulkMode::Insert).await;
        assert_eq!((report.written, report.failures.len(), report.requests), (0, 2, 1));
        assert_eq!(transport.seen().len(), 5);
        let (table, _) = self::table(vec![refusal("503 x", "ServerBusy"), answer(&[DONE, DONE])]);
        assert_eq!(table.bulk(&rows(), BulkMode::Insert).await.written, 2);
    }
}
