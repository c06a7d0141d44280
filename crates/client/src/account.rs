//! The Table service of an account: its tables, its properties, the state of its replica.
//!
//! Owns: [`TableServiceClient`] and the list of tables.
//! Leaves to others: entities (`table`), stored access policies (`policy`), shared access signatures (`sas`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use protocol::common::service_properties::{
    PropertiesUpdate, ServiceProperties, ServiceStats, read_answer, read_stats,
};
use protocol::table::model::TableName;
use protocol::table::wire::headers::CONTINUATION_NEXT_TABLE_NAME;

use crate::pipeline::{Call, Pipeline, Repeat, TABLE_VERSION};
use crate::{ClientBuilder, Credential, Error};

static PREFER: HeaderName = HeaderName::from_static("prefer");

pub(crate) const XML: &str = "application/xml";
const JSON: &str = "application/json;odata=nometadata";

/// A client of an account's Table service. Clones share their connections.
///
/// ```no_run
/// use lazulite_client::{Error, TableServiceClient};
///
/// # async fn example() -> Result<(), Error> {
/// let tables = TableServiceClient::from_connection_string("UseDevelopmentStorage=true")?;
/// tables.create_table_if_absent("people").await?;
/// for name in tables.list_tables().all().await? {
///     println!("{name}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TableServiceClient {
    pipeline: Arc<Pipeline>,
}

impl TableServiceClient {
    /// Any form of connection string; see [`ConnectionString`](crate::ConnectionString).
    pub fn from_connection_string(text: &str) -> Result<TableServiceClient, Error> {
        ClientBuilder::from_connection_string(text)?.tables()
    }

    /// The connection string in `AZURE_STORAGE_CONNECTION_STRING`.
    pub fn from_env() -> Result<TableServiceClient, Error> {
        ClientBuilder::from_env()?.tables()
    }

    /// The service's endpoint, for example `https://shop.table.core.windows.net`, and how to be allowed in.
    pub fn new(endpoint: &str, credential: Credential) -> Result<TableServiceClient, Error> {
        ClientBuilder::new(endpoint, credential)?.tables()
    }

    /// The URL of the service with a shared access signature as its query. That of one table is for
    /// [`TableClient::from_sas_url`](crate::TableClient::from_sas_url).
    pub fn from_sas_url(url: &str) -> Result<TableServiceClient, Error> {
        ClientBuilder::from_sas_url(url)?.tables()
    }

    pub(crate) fn from_pipeline(pipeline: Arc<Pipeline>) -> TableServiceClient {
        TableServiceClient { pipeline }
    }

    pub(crate) fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// What the client is allowed in with, for example to sign a [`TableSas`](crate::TableSas).
    pub fn credential(&self) -> &Credential {
        self.pipeline.credential()
    }

    /// Where the service is, without `/` at the end.
    pub fn endpoint(&self) -> String {
        self.pipeline.root()
    }

    /// Creates a table. One that exists is an error ([`Error::is_conflict`]).
    ///
    /// When an answer is lost and the second attempt finds the table, the first one is taken to have created it.
    pub async fn create_table(&self, name: &str) -> Result<(), Error> {
        match self.create(name).await {
            Err(Error::Service(failure)) if failure.was_repeated && failure.code == "TableAlreadyExists" => {
                Ok(())
            }
            other => other,
        }
    }

    /// Creates a table unless it exists. Says whether it was created.
    pub async fn create_table_if_absent(&self, name: &str) -> Result<bool, Error> {
        match self.create(name).await {
            Ok(()) => Ok(true),
            Err(Error::Service(failure)) if failure.code == "TableAlreadyExists" => Ok(failure.was_repeated),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, name: &str) -> Result<(), Error> {
        let name = table_name(name)?;
        let mut call = Call::new(Method::POST, "Tables", Repeat::Freely);
        call.headers.push((CONTENT_TYPE, JSON.to_owned()));
        call.headers.push((PREFER.clone(), "return-no-content".to_owned()));
        // A table's name needs no escape.
        call.body = Bytes::from(format!("{{\"TableName\":\"{}\"}}", name.as_str()));
        self.pipeline.call(call).await.map(drop)
    }

    /// Deletes a table and all its entities. One that does not exist is an error ([`Error::is_not_found`]).
    ///
    /// Azure frees the name only after a while: creating the table again is refused with `TableBeingDeleted` until then.
    pub async fn delete_table(&self, name: &str) -> Result<(), Error> {
        let path = format!("Tables('{}')", table_name(name)?.as_str());
        match self.pipeline.call(Call::new(Method::DELETE, path, Repeat::Freely)).await {
            // The attempt before this one has deleted it.
            Err(error)
                if error.failure().is_some_and(|failure| failure.was_repeated) && is_missing(&error) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Deletes a table if it exists. Says whether it did.
    pub async fn delete_table_if_present(&self, name: &str) -> Result<bool, Error> {
        match self.delete_table(name).await {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The account's tables, in the order of their names: a stream of names, or pages.
    ///
    /// ```no_run
    /// # use lazulite_client::{Error, TableServiceClient};
    /// # async fn example(tables: &TableServiceClient) -> Result<(), Error> {
    /// let mut list = tables.list_tables().filter("TableName ge 'a' and TableName lt 'b'").page_size(100);
    /// while let Some(page) = list.next_page().await? {
    ///     println!("{page:?}; to go on later: {:?}", list.continuation());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_tables(&self) -> TableList {
        TableList {
            pipeline: self.pipeline.clone(),
            filter: None,
            page_size: None,
            next: NextTables::First,
            names: Vec::new().into_iter(),
            fetching: None,
            has_failed: false,
        }
    }

    /// Logging, metrics and CORS rules of the service.
    pub async fn properties(&self) -> Result<ServiceProperties, Error> {
        let answer = self.pipeline.call(service_call(Method::GET, "properties")).await?;
        read_answer(&answer.body).map_err(unreadable)
    }

    /// Changes the properties that are set; the others stay as they are.
    ///
    /// ```no_run
    /// use lazulite_client::{CorsRule, Error, PropertiesUpdate, TableServiceClient};
    ///
    /// # async fn example(tables: &TableServiceClient) -> Result<(), Error> {
    /// let rule = CorsRule {
    ///     allowed_origins: vec!["https://shop.example.com".to_owned()],
    ///     allowed_methods: vec!["GET".to_owned()],
    ///     allowed_headers: vec!["x-ms-*".to_owned()],
    ///     exposed_headers: Vec::new(),
    ///     max_age_seconds: 600,
    /// };
    /// tables.set_properties(&PropertiesUpdate { cors: Some(vec![rule]), ..PropertiesUpdate::default() }).await
    /// # }
    /// ```
    pub async fn set_properties(&self, update: &PropertiesUpdate) -> Result<(), Error> {
        let mut call = service_call(Method::PUT, "properties");
        call.headers.push((CONTENT_TYPE, XML.to_owned()));
        call.body = Bytes::from(update.write(TABLE_VERSION));
        self.pipeline.call(call).await.map(drop)
    }

    /// How far the account's replica is. Asks the secondary endpoint, which only accounts with read access to it have.
    pub async fn stats(&self) -> Result<ServiceStats, Error> {
        let answer = self.pipeline.call_secondary(service_call(Method::GET, "stats")).await?;
        read_stats(&answer.body).map_err(unreadable)
    }
}

impl fmt::Debug for TableServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableServiceClient").field("endpoint", &self.endpoint()).finish_non_exhaustive()
    }
}

/// A 404 that means the table itself. One without a code may be a proxy's, and tells nothing.
fn is_missing(error: &Error) -> bool {
    error.is_not_found() && matches!(error.code(), Some("ResourceNotFound" | "TableNotFound"))
}

/// A name that the service would take.
pub(crate) fn table_name(name: &str) -> Result<TableName, Error> {
    TableName::parse(name).map_err(|_| {
        Error::Refused(format!(
            "{name:?} is no name of a table: it has 3 to 63 letters and digits, begins with a letter, and is not `Tables`"
        ))
    })
}

/// An operation on a service as a whole. Every service has the same.
pub(crate) fn service_call(method: Method, comp: &'static str) -> Call {
    let mut call = Call::new(method, "", Repeat::Freely);
    call.query = vec![("restype", "service".to_owned()), ("comp", comp.to_owned())];
    call.headers.push((ACCEPT, XML.to_owned()));
    call
}

pub(crate) fn unreadable(error: impl fmt::Display) -> Error {
    Error::Unreadable(error.to_string())
}

/// Where a list goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NextTables {
    First,
    At(String),
    Done,
}

type NamePage = (Vec<String>, Option<String>);
type FetchingNames = Pin<Box<dyn Future<Output = Result<NamePage, Error>> + Send>>;

/// The tables of an account. Fetches a page when one is asked for.
///
/// It is a [`Stream`] of names, which ends after the last one and after an error. [`TableList::next_page`] gives whole
/// pages, and can be asked again after an error; [`TableList::continuation`] is what another program needs to go on from
/// there.
pub struct TableList {
    pipeline: Arc<Pipeline>,
    filter: Option<String>,
    page_size: Option<u32>,
    next: NextTables,
    /// What is left of the page that the stream is in.
    names: std::vec::IntoIter<String>,
    /// The page that the stream waits for.
    fetching: Option<FetchingNames>,
    /// Whether the stream has told an error, after which it has no more to say.
    has_failed: bool,
}

impl TableList {
    /// Only the tables that match, in the service's filter language: `TableName ge 'a'`.
    pub fn filter(mut self, filter: &str) -> TableList {
        self.filter = Some(filter.to_owned());
        self
    }

    /// How many tables a page has at most. The service has 1000 by default, and never more.
    pub fn page_size(mut self, table_count_max: u32) -> TableList {
        self.page_size = Some(table_count_max);
        self
    }

    /// Goes on where another list has stopped; see [`TableList::continuation`].
    pub fn resume(mut self, continuation: &str) -> TableList {
        self.next = NextTables::At(continuation.to_owned());
        self
    }

    /// What to give to [`TableList::resume`]. `None` before the first page and after the last one.
    pub fn continuation(&self) -> Option<&str> {
        match &self.next {
            NextTables::At(token) => Some(token),
            NextTables::First | NextTables::Done => None,
        }
    }

    /// The next page of names; `None` after the last one. A page may be empty although more follow.
    pub async fn next_page(&mut self) -> Result<Option<Vec<String>>, Error> {
        let left: Vec<String> = self.names.by_ref().collect();
        if !left.is_empty() {
            return Ok(Some(left));
        }
        let Some(call) = self.call() else { return Ok(None) };
        let page = fetch(self.pipeline.clone(), call).await?;
        self.turn(page).map(Some)
    }

    /// All names that are left.
    pub async fn all(mut self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        while let Some(page) = self.next_page().await? {
            names.extend(page);
        }
        Ok(names)
    }

    fn turn(&mut self, (names, next): NamePage) -> Result<Vec<String>, Error> {
        let next = next.map_or(NextTables::Done, NextTables::At);
        // A server that repeats its continuation would never come to an end.
        if next == self.next {
            return Err(unreadable("the list of tables does not advance"));
        }
        self.next = next;
        Ok(names)
    }

    fn call(&self) -> Option<Call> {
        let mut call = Call::new(Method::GET, "Tables", Repeat::Freely);
        if let Some(filter) = &self.filter {
            call.query.push(("$filter", filter.clone()));
        }
        if let Some(count) = self.page_size {
            call.query.push(("$top", count.to_string()));
        }
        match &self.next {
            NextTables::First => {}
            NextTables::At(token) => call.query.push(("NextTableName", token.clone())),
            NextTables::Done => return None,
        }
        Some(call)
    }
}

async fn fetch(pipeline: Arc<Pipeline>, call: Call) -> Result<NamePage, Error> {
    let answer = pipeline.call(call).await?;
    let next =
        answer.header(CONTINUATION_NEXT_TABLE_NAME).filter(|token| !token.is_empty()).map(str::to_owned);
    Ok((read_names(&answer.body)?, next))
}

/// `{"value":[{"TableName":"people"}]}`, at any level of metadata.
fn read_names(body: &[u8]) -> Result<Vec<String>, Error> {
    let document: serde_json::Value = serde_json::from_slice(body).map_err(unreadable)?;
    let tables = document.get("value").and_then(|value| value.as_array());
    let tables = tables.ok_or_else(|| unreadable("a list of tables without `value`"))?;
    let name = |table: &serde_json::Value| table.get("TableName")?.as_str().map(str::to_owned);
    tables.iter().map(|table| name(table).ok_or_else(|| unreadable("a table without a name"))).collect()
}

impl Stream for TableList {
    type Item = Result<String, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<String, Error>>> {
        loop {
            if let Some(name) = self.names.next() {
                return Poll::Ready(Some(Ok(name)));
            }
            if let Some(fetching) = &mut self.fetching {
                let page = std::task::ready!(fetching.as_mut().poll(context));
                self.fetching = None;
                match page.and_then(|page| self.turn(page)) {
                    Ok(names) => self.names = names.into_iter(),
                    Err(error) => {
                        self.has_failed = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            } else if self.has_failed {
                return Poll::Ready(None);
            } else {
                let Some(call) = self.call() else { return Poll::Ready(None) };
                self.fetching = Some(Box::pin(fetch(self.pipeline.clone(), call)));
            }
        }
    }
}

impl fmt::Debug for TableList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableList")
            .field("filter", &self.filter)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
