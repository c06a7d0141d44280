//! Writes of one entity: insert, replace, merge, both upserts and delete, each with what is done when its answer is
//! lost.
//!
//! Promises: an insert is never sent twice without looking; what a lost answer would have said is found out where it
//! can be. Leaves to others: sending again what may be sent again (`pipeline`).

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, Method, StatusCode};
use protocol::table::model::ETag;

use crate::encryption::check_merge;
use crate::lost::{Settled, settle};
use crate::path::entity_path;
use crate::pipeline::{Answer, Call, Repeat};
use crate::retry::Budget;
use crate::table::{JSON, is_row_missing, keys};
use crate::{DateTime, Entity, Error, Keys, ServiceFailure, TableClient};

const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(crate) const RETURN_NO_CONTENT: &str = "return-no-content";

/// Under which condition a row is replaced, merged or deleted.
///
/// ```
/// use lazulite_client::IfMatch;
///
/// let tag = "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"".to_owned();
/// assert_eq!(IfMatch::from(tag.as_str()), IfMatch::ETag(&tag));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfMatch<'a> {
    /// Whatever the row holds, as long as it exists.
    Any,
    /// Only if the row is still the one with this ETag; otherwise the error is [`Error::is_precondition_failed`].
    ETag(&'a str),
    /// Only if the row is still the one that the entity was read from: with its own ETag ([`Entity::etag`]). Refused
    /// when the entity keeps none.
    Unchanged,
}

impl<'a> From<&'a str> for IfMatch<'a> {
    fn from(etag: &'a str) -> IfMatch<'a> {
        IfMatch::ETag(etag)
    }
}

impl<'a> IfMatch<'a> {
    /// The header's value. `own` is the entity's ETag.
    pub(crate) fn header(self, own: Option<&'a str>) -> Result<&'a str, Error> {
        let etag = match self {
            IfMatch::Any => return Ok(ANY),
            IfMatch::ETag(etag) => etag,
            IfMatch::Unchanged => own.ok_or_else(|| {
                Error::Refused(
                    "IfMatch::Unchanged needs an entity that was read and keeps its ETag: \
                     give the struct a field with #[entity(etag)], or name the ETag with IfMatch::ETag"
                        .to_owned(),
                )
            })?,
        };
        // It goes into a header, and in a transaction into a text among others, where a line break would begin another.
        if etag.is_empty() || !etag.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
            return Err(Error::Refused(format!("{etag:?} is not an ETag")));
        }
        Ok(etag)
    }
}

/// The value of `If-Match` that every row fulfils.
pub(crate) const ANY: &str = "*";

/// What the service says of a row that it wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The row's new ETag, for the next conditional write.
    pub etag: String,
    /// When it was written, if the ETag tells: the services make it from the row's Timestamp.
    pub timestamp: Option<DateTime>,
}

impl Written {
    pub(crate) fn new(etag: String) -> Written {
        let timestamp = match ETag::parse(&etag) {
            Ok(ETag::Exactly(timestamp)) => Some(timestamp),
            _ => None,
        };
        Written { etag, timestamp }
    }

    pub(crate) fn of(headers: &HeaderMap) -> Result<Written, Error> {
        let etag = headers.get(header::ETAG).and_then(|etag| etag.to_str().ok());
        let etag = etag.ok_or_else(|| Error::Unreadable("the answer to a write has no ETag".to_owned()))?;
        Ok(Written::new(etag.to_owned()))
    }
}

/// What is done with a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Insert,
    Replace,
    Merge,
    UpsertReplace,
    UpsertMerge,
    Delete,
}

impl Verb {
    pub(crate) fn method(self) -> Method {
        match self {
            Verb::Insert => Method::POST,
            Verb::Replace | Verb::UpsertReplace => Method::PUT,
            Verb::Merge | Verb::UpsertMerge => Method::PATCH,
            Verb::Delete => Method::DELETE,
        }
    }

    pub(crate) fn is_merge(self) -> bool {
        matches!(self, Verb::Merge | Verb::UpsertMerge)
    }
}

/// One write, ready to be sent as often as needed.
pub(crate) struct Write<'a> {
    pub(crate) verb: Verb,
    pub(crate) keys: Keys<'a>,
    /// `*` or an ETag; `None` for an insert or an upsert.
    pub(crate) if_match: Option<&'a str>,
    /// The entity as JSON.
    pub(crate) body: Bytes,
    /// Whether the answer should hold the row.
    pub(crate) returns_content: bool,
}

impl Write<'_> {
    fn call(&self, table: &str, repeat: Repeat) -> Call {
        let mut headers = Vec::with_capacity(3);
        match self.verb {
            // The official clients say so, and what the type says is signed.
            Verb::Insert => {
                headers.push((header::CONTENT_TYPE, "application/json;odata=nometadata".to_owned()))
            }
            Verb::Delete => {}
            _ => headers.push((header::CONTENT_TYPE, JSON.to_owned())),
        }
        if let Some(if_match) = self.if_match {
            headers.push((header::IF_MATCH, if_match.to_owned()));
        }
        if self.verb == Verb::Insert {
            let prefer = if self.returns_content { "return-content" } else { RETURN_NO_CONTENT };
            headers.push((PREFER, prefer.to_owned()));
        }
        let path = match self.verb {
            Verb::Insert => table.to_owned(),
            _ => entity_path(table, &self.keys),
        };
        Call { headers, body: self.body.clone(), ..Call::new(self.verb.method(), path, repeat) }
    }
}

impl TableClient {
    /// Inserts a row. A row that exists already is a conflict ([`Error::is_conflict`]).
    ///
    /// An insert whose answer was lost is looked up, not repeated blindly: see [`TableClient`]. `Ok` then says that the
    /// row is as you sent it; another client that inserted the same row at the same time hears the same.
    pub async fn insert<E: Entity>(&self, entity: &E) -> Result<Written, Error> {
        let write = self.prepare(Verb::Insert, entity, None).await?;
        match self.insert_surely(&write).await? {
            Inserted::Answer(answer) => Written::of(&answer.headers),
            Inserted::Found { etag, .. } => Ok(Written::new(etag)),
        }
    }

    /// Inserts a row and returns it as it was stored, with the Timestamp and ETag that the service gave it.
    pub async fn insert_and_return<E: Entity>(&self, entity: &E) -> Result<E, Error> {
        let write = Write { returns_content: true, ..self.prepare(Verb::Insert, entity, None).await? };
        let body = match self.insert_surely(&write).await? {
            Inserted::Answer(answer) => answer.body,
            Inserted::Found { body, .. } => body,
        };
        // It is inserted: an error that said otherwise would be a lie.
        self.read_entity(&body).await.map_err(|error| {
            Error::Unreadable(format!("the row was inserted, but cannot be read as it was returned: {error}"))
        })
    }

    /// Replaces a row: it has exactly the entity's properties afterwards. The row must exist and fulfil the condition.
    ///
    /// After a lost answer, `Ok` says that the row is as you sent it: see [`TableClient`].
    ///
    /// ```no_run
    /// # use lazulite_client::{DynamicEntity, Error, IfMatch, TableClient};
    /// # async fn f(people: &TableClient) -> Result<(), Error> {
    /// let ada: DynamicEntity = people.get("math", "ada").await?;
    /// // Fails if somebody else has written the row since.
    /// people.replace(&ada, IfMatch::Unchanged).await?;
    /// # Ok(()) }
    /// ```
    pub async fn replace<E: Entity>(&self, entity: &E, condition: IfMatch<'_>) -> Result<Written, Error> {
        let if_match = condition.header(entity.etag())?;
        self.write_surely(&self.prepare(Verb::Replace, entity, Some(if_match)).await?).await
    }

    /// Writes the entity's properties into a row and keeps the row's others. The row must exist and fulfil the
    /// condition.
    ///
    /// A property that the entity lacks is not removed: absence and "leave it alone" are the same on the wire. After a
    /// lost answer, `Ok` says that the row has these properties as you sent them: see [`TableClient`].
    /// Refused for an entity with encrypted properties.
    pub async fn merge<E: Entity>(&self, entity: &E, condition: IfMatch<'_>) -> Result<Written, Error> {
        let if_match = condition.header(entity.etag())?;
        self.write_surely(&self.prepare(Verb::Merge, entity, Some(if_match)).await?).await
    }

    /// Inserts a row, or replaces the one that is there, whatever it holds.
    pub async fn upsert_replace<E: Entity>(&self, entity: &E) -> Result<Written, Error> {
        self.write_surely(&self.prepare(Verb::UpsertReplace, entity, None).await?).await
    }

    /// Inserts a row, or merges into the one that is there, whatever it holds. Refused for an entity with encrypted
    /// properties.
    pub async fn upsert_merge<E: Entity>(&self, entity: &E) -> Result<Written, Error> {
        self.write_surely(&self.prepare(Verb::UpsertMerge, entity, None).await?).await
    }

    /// Deletes a row that exists and fulfils the condition. A row that does not exist is an error
    /// ([`Error::is_not_found`]).
    pub async fn delete(
        &self,
        partition_key: &str,
        row_key: &str,
        condition: IfMatch<'_>,
    ) -> Result<(), Error> {
        let if_match = condition.header(None)?;
        self.delete_row(keys(partition_key, row_key)?, if_match).await
    }

    /// Deletes the entity's row, if it exists and fulfils the condition.
    pub async fn delete_entity<E: Entity>(&self, entity: &E, condition: IfMatch<'_>) -> Result<(), Error> {
        let if_match = condition.header(entity.etag())?;
        let keys = entity.keys()?;
        crate::limits::check_keys(&keys)?;
        self.delete_row(keys, if_match).await
    }

    async fn delete_row(&self, keys: Keys<'_>, if_match: &str) -> Result<(), Error> {
        let write = Write {
            verb: Verb::Delete,
            keys,
            if_match: Some(if_match),
            body: Bytes::new(),
            returns_content: false,
        };
        match self.call(write.call(self.name(), Repeat::Freely), Some(&write.keys)).await {
            Ok(_) => Ok(()),
            Err(error) if was_repeated(&error) && is_row_missing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn prepare<'a, E: Entity>(
        &self,
        verb: Verb,
        entity: &'a E,
        if_match: Option<&'a str>,
    ) -> Result<Write<'a>, Error> {
        if verb.is_merge() {
            check_merge::<E>()?;
        }
        const BODY_BYTES_USUAL: usize = 512;
        let mut body = Vec::with_capacity(BODY_BYTES_USUAL);
        let keys = self.write_entity(entity, E::ENCRYPTED, &[], &mut body).await?;
        Ok(Write { verb, keys, if_match, body: body.into(), returns_content: false })
    }

    /// Replace, merge and the upserts: sent again freely. If a repeat finds that the ETag is no longer current, the row
    /// tells whether that was the work of this very call.
    pub(crate) async fn write_surely(&self, write: &Write<'_>) -> Result<Written, Error> {
        let mut budget = Budget::new();
        let call = write.call(self.name(), Repeat::Freely);
        match self.call_within(call, Some(&write.keys), &mut budget).await {
            Ok(answer) => Written::of(&answer.headers),
            Err(error) if was_repeated(&error) && error.is_precondition_failed() => {
                match settle(self, write.verb, &write.keys, write.if_match, &write.body, &budget).await {
                    Ok(Settled::Done { etag, .. }) => Ok(Written::new(etag)),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a write that must happen once, and neither looks at the row nor guesses: if an answer was lost and the
    /// service then refuses, the error leaves the outcome open.
    ///
    /// It is sent again freely, because of two attempts at most one can succeed: an insert, or a write with an ETag.
    pub(crate) async fn write_once(&self, write: &Write<'_>) -> Result<Written, Error> {
        let answer = self.call(write.call(self.name(), Repeat::Freely), Some(&write.keys)).await?;
        Written::of(&answer.headers)
    }

    /// Sends an insert until it is known what became of it, or the policy allows no more.
    pub(crate) async fn insert_surely(&self, write: &Write<'_>) -> Result<Inserted, Error> {
        let mut budget = Budget::new();
        let mut may_have_happened = false;
        loop {
            let call = write.call(self.name(), Repeat::OnlyUnsent);
            let error = match self.call_within(call, Some(&write.keys), &mut budget).await {
                Ok(answer) => return Ok(Inserted::Answer(answer)),
                Err(error) => error,
            };
            let is_unknown = error.is_outcome_unknown();
            // After a lost answer, a conflict may be with the row that this very call inserted.
            let may_be_own_work = may_have_happened && error.is_conflict();
            // The row was not there yet, but the attempt whose answer was lost may still be on its way.
            let error = if may_have_happened { error.after_lost_answer() } else { error };
            if !is_unknown && !may_be_own_work {
                return Err(error);
            }
            match settle(self, write.verb, &write.keys, None, &write.body, &budget).await {
                Ok(Settled::Done { etag, body }) => return Ok(Inserted::Found { etag, body }),
                Ok(Settled::Otherwise) => return Err(conflict(&write.keys)),
                Ok(Settled::NotYet) if is_unknown && self.inner.pipeline.pause(&budget, None).await => {}
                // The lost answer says more than the failure to look it up.
                Ok(Settled::NotYet) | Err(_) => return Err(error),
            }
            may_have_happened = true;
        }
    }
}

/// How an insert succeeded: the service said so, or the row was found as it was sent.
pub(crate) enum Inserted {
    Answer(Answer),
    Found { etag: String, body: Bytes },
}

fn was_repeated(error: &Error) -> bool {
    error.failure().is_some_and(|failure| failure.was_repeated)
}

/// What the service would have said of an insert whose answer was lost, had it come after the row that is there.
fn conflict(keys: &Keys<'_>) -> Error {
    ServiceFailure {
        status: StatusCode::CONFLICT,
        code: "EntityAlreadyExists".to_owned(),
        message: "The answer was lost, and the row that exists now is not the one that was sent.".to_owned(),
        keys: Some(keys.clone().into_owned()),
        was_repeated: true,
        ..ServiceFailure::default()
    }
    .into()
}
