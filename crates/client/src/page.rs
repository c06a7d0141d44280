//! Pages: how a query's answers are fetched one after another, and where to go on.
//!
//! Owns: [`Page`], [`Continuation`], [`Explanation`], and the streams of pages and of entities. Promises: a stream
//! sends its next request only when it is polled for it, and dropping it sends no more. Empty pages with a
//! continuation are no end. Leaves to others: what is asked for (`query`).

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use http::{HeaderMap, HeaderName, Method};
use protocol::common::percent::percent_decode;
use protocol::table::wire::headers::{CONTINUATION_NEXT_PARTITION_KEY, CONTINUATION_NEXT_ROW_KEY};

use crate::path::percent_encode;
use crate::pipeline::{Answer, Call, Repeat};
use crate::sealing::{Marks, own_row};
use crate::{Entity, Error, Row, TableClient, json};

/// The most entities that a service puts on a page.
pub(crate) const PAGE_SIZE_MAX: usize = 1000;
const NEXT_PARTITION_KEY: &str = "NextPartitionKey";
const NEXT_ROW_KEY: &str = "NextRowKey";
const EXPLAIN: HeaderName = HeaderName::from_static("x-lazulite-explain");
const PLAN: &str = "x-lazulite-plan";

/// Where a query goes on: the service's own continuation token, as opaque as the service means it.
///
/// It can be stored as text and resumed later, by another process too, with the same filter:
///
/// ```
/// use lazulite_client::Continuation;
///
/// let stored = "NextPartitionKey=1%218%21U21pdGg-&NextRowKey=1%214%21MDAx";
/// let token: Continuation = stored.parse()?;
/// assert_eq!(token.to_string(), stored);
/// assert!("nonsense".parse::<Continuation>().is_err());
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Continuation {
    next_partition_key: String,
    /// Absent when the next page begins with a partition.
    next_row_key: Option<String>,
}

impl Continuation {
    fn of(headers: &HeaderMap) -> Result<Option<Continuation>, Error> {
        let text = |name: &str| match headers.get(name) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(Error::Unreadable(format!("the header {name} is not text"))),
            },
        };
        let next_row_key = text(CONTINUATION_NEXT_ROW_KEY)?;
        Ok(text(CONTINUATION_NEXT_PARTITION_KEY)?
            .map(|next_partition_key| Continuation { next_partition_key, next_row_key }))
    }
}

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NEXT_PARTITION_KEY}={}", percent_encode(&self.next_partition_key))?;
        match &self.next_row_key {
            Some(key) => write!(f, "&{NEXT_ROW_KEY}={}", percent_encode(key)),
            None => Ok(()),
        }
    }
}

impl FromStr for Continuation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Continuation, Error> {
        let refusal = || Error::Refused(format!("{text:?} is not a continuation of this client"));
        let value = |part: &str, name: &str| {
            let value = part.strip_prefix(name)?.strip_prefix('=')?;
            percent_decode(value).map(std::borrow::Cow::into_owned)
        };
        let (partition, row) = match text.split_once('&') {
            Some((partition, row)) => (partition, Some(row)),
            None => (text, None),
        };
        Ok(Continuation {
            next_partition_key: value(partition, NEXT_PARTITION_KEY).ok_or_else(refusal)?,
            next_row_key: row.map(|row| value(row, NEXT_ROW_KEY).ok_or_else(refusal)).transpose()?,
        })
    }
}

/// How the server found a page's rows. Only Lazulite tells, and only when asked with [`Query::explain`].
///
/// [`Query::explain`]: crate::Query::explain
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The plan's name: `point`, `row range`, `partition scan`, `partition range` or `table scan`.
    pub plan: String,
    /// How many entities the server looked at for this page.
    pub examined: u64,
    /// How many of them it returned.
    pub returned: u64,
}

impl Explanation {
    /// Reads `row range; examined=2; returned=2`. A form that this client does not know is no explanation.
    fn parse(text: &str) -> Option<Explanation> {
        let mut parts = text.split(';').map(str::trim);
        let plan = parts.next()?.to_owned();
        let (mut examined, mut returned) = (None, None);
        for part in parts {
            match part.split_once('=') {
                Some(("examined", count)) => examined = count.parse().ok(),
                Some(("returned", count)) => returned = count.parse().ok(),
                _ => {}
            }
        }
        Some(Explanation { plan, examined: examined?, returned: returned? })
    }
}

/// One answer of a query.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Page<E> {
    /// The rows of this page, in the order of their keys. May be empty although there are more pages.
    pub entities: Vec<E>,
    /// Where the next page begins; `None` when this is the last one.
    pub continuation: Option<Continuation>,
    /// How the server found them, if it was asked and is one that tells.
    pub explanation: Option<Explanation>,
    /// The length of the answer's body, in bytes.
    pub body_bytes: usize,
}

/// What is asked for, page after page.
pub(crate) struct Source {
    pub(crate) table: TableClient,
    /// The text of `$filter`.
    pub(crate) filter: Option<String>,
    pub(crate) select: Option<String>,
    pub(crate) page_size: Option<usize>,
    /// How many entities are still wanted; `None` means all.
    pub(crate) wanted: Option<usize>,
    pub(crate) explains: bool,
}

impl Source {
    /// How many entities the next page should have at most.
    fn page_limit(&self) -> Option<usize> {
        match (self.page_size, self.wanted.filter(|wanted| *wanted < PAGE_SIZE_MAX)) {
            (Some(size), Some(wanted)) => Some(size.min(wanted)),
            (one, other) => one.or(other),
        }
    }

    fn call(&self, from: Option<&Continuation>) -> Call {
        let mut query = Vec::with_capacity(5);
        if let Some(filter) = &self.filter {
            query.push(("$filter", filter.clone()));
        }
        if let Some(select) = &self.select {
            query.push(("$select", select.clone()));
        }
        if let Some(limit) = self.page_limit() {
            query.push(("$top", limit.to_string()));
        }
        if let Some(from) = from {
            query.push((NEXT_PARTITION_KEY, from.next_partition_key.clone()));
            if let Some(row_key) = &from.next_row_key {
                query.push((NEXT_ROW_KEY, row_key.clone()));
            }
        }
        let headers = self.explains.then(|| (EXPLAIN, "1".to_owned())).into_iter().collect();
        let path = format!("{}()", self.table.name());
        Call { query, headers, ..Call::new(Method::GET, path, Repeat::Freely) }
    }
}

/// A request for a page, on its way.
type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, Error>> + Send>>;

/// A page that arrived.
struct Fetched {
    answer: Answer,
    /// Its rows, if they had to be opened: a key ring may have to ask elsewhere. Others are read when they are handed
    /// out.
    opened: Option<Vec<Row<'static>>>,
}

/// Knows no entity type, so that the streams need not be told that entities borrow nothing.
async fn fetch(table: TableClient, call: Call, marks: Marks) -> Result<Fetched, Error> {
    let answer = table.call(call, None).await?;
    if marks.encrypted.is_empty() {
        return Ok(Fetched { answer, opened: None });
    }
    let rows = json::read_page(&answer.body)?;
    let mut opened = Vec::with_capacity(rows.len());
    for mut row in rows {
        table.inner.sealing.unseal(marks, &mut row, table.name()).await?;
        opened.push(own_row(row));
    }
    Ok(Fetched { answer, opened: Some(opened) })
}

enum State {
    /// The next page begins here, or at the beginning.
    Next(Option<Continuation>),
    /// With the place where the page that is on its way begins.
    Fetching(Fetching, Option<Continuation>),
    Refused(Error),
    Ended,
}

/// The pages of a query, fetched one after another. Made by [`Query::pages`](crate::Query::pages).
///
/// It is a [`Stream`]; without a library for streams, [`Pages::next`] does. It ends after the last page and after an
/// error.
pub struct Pages<E> {
    source: Source,
    state: State,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity> Pages<E> {
    pub(crate) fn new(source: Source, from: Option<Continuation>, refusal: Option<Error>) -> Pages<E> {
        let state = match refusal {
            Some(error) => State::Refused(error),
            None if source.wanted == Some(0) => State::Ended,
            None => State::Next(from),
        };
        Pages { source, state, entity: PhantomData }
    }

    /// Fetches the next page; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Page<E>, Error>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    fn read(&mut self, fetched: Fetched, from: Option<&Continuation>) -> Result<Page<E>, Error> {
        let Fetched { answer, opened } = fetched;
        let rows = match opened {
            Some(rows) => rows,
            None => json::read_page(&answer.body)?,
        };
        let mut continuation = Continuation::of(&answer.headers)?;
        // A server that repeats its continuation would never come to an end.
        if continuation.is_some() && continuation.as_ref() == from {
            return Err(Error::Unreadable("the pages of the query do not advance".to_owned()));
        }
        let wanted = self.source.wanted.unwrap_or(usize::MAX);
        if rows.len() > wanted {
            // Going on there would skip rows. No service does this: it was asked for no more than are wanted.
            continuation = None;
        }
        let entities = rows.into_iter().take(wanted).map(E::read).collect::<Result<Vec<E>, _>>()?;
        if let Some(wanted) = &mut self.source.wanted {
            *wanted -= entities.len();
        }
        let explanation = answer.headers.get(PLAN).and_then(|plan| plan.to_str().ok());
        Ok(Page {
            entities,
            continuation,
            explanation: explanation.and_then(Explanation::parse),
            body_bytes: answer.body.len(),
        })
    }
}

impl<E: Entity> Stream for Pages<E> {
    type Item = Result<Page<E>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                State::Ended => return Poll::Ready(None),
                State::Refused(_) => {
                    let State::Refused(error) = std::mem::replace(&mut this.state, State::Ended) else {
                        return Poll::Ready(None);
                    };
                    return Poll::Ready(Some(Err(error)));
                }
                State::Next(from) => {
                    let (call, from) = (this.source.call(from.as_ref()), from.take());
                    let table = this.source.table.clone();
                    this.state = State::Fetching(Box::pin(fetch(table, call, Marks::of::<E>())), from);
                }
                State::Fetching(fetching, from) => {
                    let outcome = ready!(fetching.as_mut().poll(context));
                    let from = from.take();
                    this.state = State::Ended;
                    let page = outcome.and_then(|fetched| this.read(fetched, from.as_ref()));
                    if let Ok(Page { continuation: Some(next), .. }) = &page
                        && this.source.wanted != Some(0)
                    {
                        this.state = State::Next(Some(next.clone()));
                    }
                    return Poll::Ready(Some(page));
                }
            }
        }
    }
}

/// The entities of a query, page after page. Made by [`Query::stream`](crate::Query::stream).
///
/// It is a [`Stream`]; without a library for streams, [`Entities::next`] does. It ends after the last entity and
/// after an error.
///
/// ```no_run
/// # use lazulite_client::{DynamicEntity, Error, TableClient};
/// # async fn f(people: &TableClient) -> Result<(), Error> {
/// let mut mathematicians = people.query::<DynamicEntity>().partition("math").stream();
/// while let Some(person) = mathematicians.next().await {
///     println!("{:?}", person?);
/// }
/// # Ok(()) }
/// ```
pub struct Entities<E> {
    pages: Pages<E>,
    current: std::vec::IntoIter<E>,
}

/// Nothing in it is pinned: the entities wait in a list.
impl<E> Unpin for Entities<E> {}

impl<E: Entity> Entities<E> {
    pub(crate) fn new(pages: Pages<E>) -> Entities<E> {
        Entities { pages, current: Vec::new().into_iter() }
    }

    /// The next entity; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<E, Error>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<E: Entity> Stream for Entities<E> {
    type Item = Result<E, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(entity) = this.current.next() {
                return Poll::Ready(Some(Ok(entity)));
            }
            match ready!(Pin::new(&mut this.pages).poll_next(context)) {
                Some(Ok(page)) => this.current = page.entities.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.current.len(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DynamicEntity;
    use crate::pipeline::tests::{EMULATOR, FakeTransport, Reply, builder};

    #[tokio::test(start_paused = true)]
    async fn a_continuation_that_is_repeated_is_no_continuation() {
        const NEXT: &[(&str, &str)] = &[("x-ms-continuation-NextPartitionKey", "1!4!bcd")];
        let page = || Reply::Answer(200, NEXT, "{\"value\":[]}".to_owned());
        let transport = FakeTransport::new((0..9).map(|_| page()));
        let table = builder(EMULATOR, transport.clone()).tables().unwrap().table("people").unwrap();
        let error = table.query::<DynamicEntity>().all().await.unwrap_err();
        assert!(matches!(&error, Error::Unreadable(text) if text.contains("advance")), "{error}");
        assert_eq!(transport.seen().len(), 2);
    }

    #[test]
    fn continuations_survive_as_text() {
        for (partition, row) in
            [("1!8!U21pdGg-", Some("1!4!MDAx")), ("", None), ("a&b=c%", Some("")), ("ü", None)]
        {
            let token = Continuation {
                next_partition_key: partition.to_owned(),
                next_row_key: row.map(str::to_owned),
            };
            assert_eq!(token.to_string().parse::<Continuation>().unwrap(), token);
        }
        for text in
            ["", "x", "NextRowKey=a", "NextPartitionKey", "NextPartitionKey=%", "NextPartitionKey=a&b=c"]
        {
            assert!(text.parse::<Continuation>().is_err(), "{text}");
        }
    }

    #[test]
    fn explanations_are_read_and_unknown_ones_ignored() {
        let expected = Explanation { plan: "row range".to_owned(), examined: 2, returned: 1 };
        assert_eq!(Explanation::parse("row range; examined=2; returned=1"), Some(expected.clone()));
        assert_eq!(Explanation::parse("row range;x;returned=1;examined=2; more=3"), Some(expected));
        for text in ["", "row range", "point; examined=x; returned=1", "point; examined=-1; returned=1"] {
            assert_eq!(Explanation::parse(text), None, "{text}");
        }
    }
}
