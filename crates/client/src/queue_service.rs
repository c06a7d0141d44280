//! The Queue service of an account: its queues, its properties, its replica.
//!
//! Owns: listing page by page. Leaves to others: connecting (`builder`), and everything about one queue (`queue`).

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use http::{Method, header};
use protocol::common::service_properties::{
    PropertiesUpdate, ServiceProperties, ServiceStats, read_answer, read_stats,
};

use crate::pipeline::{Call, Pipeline, QUEUE_VERSION, Repeat};
use crate::{ClientBuilder, Credential, Error, QueueClient, queue_xml};

/// The most queues that one page has.
pub const QUEUE_PAGE_COUNT_MAX: u32 = 5000;

/// The Queue service of one account. Cheap to clone; clones share connections.
///
/// ```
/// use lazulite_client::QueueServiceClient;
///
/// let service = QueueServiceClient::from_connection_string("UseDevelopmentStorage=true")?;
/// let queue = service.queue("orders")?;
/// assert_eq!(queue.name(), "orders");
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone)]
pub struct QueueServiceClient {
    pipeline: Arc<Pipeline>,
}

impl fmt::Debug for QueueServiceClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueServiceClient").field(&self.pipeline).finish()
    }
}

impl ClientBuilder {
    /// A client of the Queue service.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lazulite_client::ClientBuilder;
    ///
    /// let builder = ClientBuilder::from_connection_string("UseDevelopmentStorage=true")?;
    /// let queues = builder.timeout(Duration::from_secs(5)).queues()?;
    /// # let _ = queues;
    /// # Ok::<(), lazulite_client::Error>(())
    /// ```
    pub fn queues(&self) -> Result<QueueServiceClient, Error> {
        Ok(QueueServiceClient { pipeline: self.pipeline(&protocol::queue::KIND)? })
    }
}

impl QueueServiceClient {
    /// Connects with any form of connection string. [`ClientBuilder`] has more to choose.
    pub fn from_connection_string(text: &str) -> Result<QueueServiceClient, Error> {
        ClientBuilder::from_connection_string(text)?.queues()
    }

    /// Connects with the connection string in `AZURE_STORAGE_CONNECTION_STRING`.
    pub fn from_env() -> Result<QueueServiceClient, Error> {
        ClientBuilder::from_env()?.queues()
    }

    /// Connects to an endpoint, for example `https://shop.queue.core.windows.net`. Emulators have the account in the
    /// path.
    ///
    /// ```
    /// use lazulite_client::{Credential, QueueServiceClient};
    ///
    /// let credential = Credential::sas("sv=2025-11-05&sp=raup&se=2030-01-01&sig=c2lnbmF0dXJl")?;
    /// let service = QueueServiceClient::new("https://shop.queue.core.windows.net", credential)?;
    /// # let _ = service;
    /// # Ok::<(), lazulite_client::Error>(())
    /// ```
    pub fn new(endpoint: &str, credential: Credential) -> Result<QueueServiceClient, Error> {
        ClientBuilder::new(endpoint, credential)?.queues()
    }

    /// One queue, which need not exist yet. Fails if no queue can have this name: 3 to 63 lower-case letters, digits
    /// and single dashes inside.
    pub fn queue(&self, name: &str) -> Result<QueueClient, Error> {
        QueueClient::new(self.pipeline.clone(), name)
    }

    /// Creates a queue. Returns `false` if it was there already.
    pub async fn create_queue(&self, name: &str) -> Result<bool, Error> {
        self.queue(name)?.create().await
    }

    /// Creates a queue unless there is one, whatever its metadata. Returns whether it was created.
    pub async fn create_queue_if_absent(&self, name: &str) -> Result<bool, Error> {
        self.queue(name)?.create_if_absent().await
    }

    /// Deletes a queue with all its messages.
    pub async fn delete_queue(&self, name: &str) -> Result<(), Error> {
        self.queue(name)?.delete_queue().await
    }

    /// Lists queues, in the order of their names.
    ///
    /// ```no_run
    /// # async fn example(service: lazulite_client::QueueServiceClient) -> Result<(), lazulite_client::Error> {
    /// let mut pages = service.list_queues().prefix("orders-").metadata();
    /// while let Some(page) = pages.next_page().await? {
    ///     for queue in page.queues {
    ///         println!("{} {:?}", queue.name, queue.metadata);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_queues(&self) -> ListQueues {
        ListQueues {
            pipeline: self.pipeline.clone(),
            prefix: None,
            page_size: None,
            has_metadata: false,
            next: Next::Page(None),
        }
    }

    /// Logging, metrics and CORS rules.
    pub async fn properties(&self) -> Result<ServiceProperties, Error> {
        let answer = self.pipeline.call(self.service_call(Method::GET, "properties")).await?;
        read_answer(&answer.body)
            .map_err(|_| Error::Unreadable("it is not a StorageServiceProperties document".to_owned()))
    }

    /// Changes logging, metrics or CORS rules. What the update leaves out stays as it is.
    ///
    /// ```no_run
    /// use lazulite_client::PropertiesUpdate;
    ///
    /// # async fn example(service: lazulite_client::QueueServiceClient) -> Result<(), lazulite_client::Error> {
    /// // No web page may ask for anything.
    /// service.set_properties(&PropertiesUpdate { cors: Some(vec![]), ..PropertiesUpdate::default() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_properties(&self, update: &PropertiesUpdate) -> Result<(), Error> {
        let mut call = self.service_call(Method::PUT, "properties");
        call.headers.push((header::CONTENT_TYPE, "application/xml".to_owned()));
        call.body = update.write(QUEUE_VERSION).into();
        self.pipeline.call(call).await.map(drop)
    }

    /// How far the account's replica is. Only accounts with a secondary endpoint that can be read have it.
    pub async fn stats(&self) -> Result<ServiceStats, Error> {
        let answer = self.pipeline.call_secondary(self.service_call(Method::GET, "stats")).await?;
        read_stats(&answer.body)
            .map_err(|_| Error::Unreadable("it is not a StorageServiceStats document".to_owned()))
    }

    fn service_call(&self, method: Method, comp: &str) -> Call {
        let mut call = Call::new(method, "", Repeat::Freely);
        call.query = vec![("restype", "service".to_owned()), ("comp", comp.to_owned())];
        call
    }
}

/// A queue of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueItem {
    /// The queue's name.
    pub name: String,
    /// Empty unless the list was asked for metadata.
    pub metadata: BTreeMap<String, String>,
}

/// One page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuePage {
    /// Queues in the order of their names; a page can be empty although more follow.
    pub queues: Vec<QueueItem>,
    /// Where the next page begins; `None` on the last page. Can be stored, and given to [`ListQueues::from_marker`].
    pub next_marker: Option<String>,
}

/// A list of queues that is fetched page by page.
#[derive(Clone)]
pub struct ListQueues {
    pipeline: Arc<Pipeline>,
    prefix: Option<String>,
    page_size: Option<u32>,
    has_metadata: bool,
    next: Next,
}

#[derive(Clone)]
enum Next {
    /// The page that begins at this marker, or the first one.
    Page(Option<String>),
    End,
}

impl ListQueues {
    /// Only queues whose names begin so.
    pub fn prefix(mut self, prefix: &str) -> ListQueues {
        self.prefix = Some(prefix.to_owned());
        self
    }

    /// At most this many queues per page, up to [`QUEUE_PAGE_COUNT_MAX`], which is also the default.
    pub fn page_size(mut self, count: u32) -> ListQueues {
        self.page_size = Some(count);
        self
    }

    /// Fetches the metadata of each queue, too.
    pub fn metadata(mut self) -> ListQueues {
        self.has_metadata = true;
        self
    }

    /// Continues where an earlier list stopped: at its [`QueuePage::next_marker`].
    pub fn from_marker(mut self, marker: &str) -> ListQueues {
        self.next = Next::Page(Some(marker.to_owned()));
        self
    }

    /// The next page, or `None` after the last one. After an error, the same page can be asked for again.
    pub async fn next_page(&mut self) -> Result<Option<QueuePage>, Error> {
        let Next::Page(marker) = &self.next else { return Ok(None) };
        let mut call = Call::new(Method::GET, "", Repeat::Freely);
        call.query.push(("comp", "list".to_owned()));
        if let Some(prefix) = &self.prefix {
            call.query.push(("prefix", prefix.clone()));
        }
        if let Some(marker) = marker {
            call.query.push(("marker", marker.clone()));
        }
        if let Some(count) = self.page_size {
            if !(1..=QUEUE_PAGE_COUNT_MAX).contains(&count) {
                return Err(Error::Refused(format!("ask for 1 to {QUEUE_PAGE_COUNT_MAX} queues per page")));
            }
            call.query.push(("maxresults", count.to_string()));
        }
        if self.has_metadata {
            call.query.push(("include", "metadata".to_owned()));
        }
        let page = queue_xml::read_queues(&self.pipeline.call(call).await?.body)?;
        self.next = match &page.next_marker {
            // A server that repeats its marker would never come to an end.
            Some(next) if Some(next) == marker.as_ref() => {
                return Err(Error::Unreadable("the list of queues does not advance".to_owned()));
            }
            Some(next) => Next::Page(Some(next.clone())),
            None => Next::End,
        };
        Ok(Some(page))
    }

    /// The remaining pages as a stream. It ends after the last page, or after an error.
    pub fn into_stream(self) -> QueuePages {
        QueuePages { state: State::Idle(Box::new(self)) }
    }
}

impl fmt::Debug for ListQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListQueues").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// The pages of a list as a stream; see [`ListQueues::into_stream`].
#[must_use = "a stream does nothing until it is polled"]
pub struct QueuePages {
    state: State,
}

type Fetched = (Box<ListQueues>, Result<Option<QueuePage>, Error>);

enum State {
    Idle(Box<ListQueues>),
    Fetching(Pin<Box<dyn Future<Output = Fetched> + Send>>),
    Ended,
}

impl Stream for QueuePages {
    type Item = Result<QueuePage, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Idle(mut list) => {
                    self.state = State::Fetching(Box::pin(async move {
                        let page = list.next_page().await;
                        (list, page)
                    }));
                }
                State::Fetching(mut fetching) => {
                    let Poll::Ready((list, page)) = fetching.as_mut().poll(context) else {
                        self.state = State::Fetching(fetching);
                        return Poll::Pending;
                    };
                    if let Ok(Some(_)) = page {
                        self.state = State::Idle(list);
                    }
                    return Poll::Ready(page.transpose());
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}
