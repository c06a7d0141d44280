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

use crate::account::{XML, service_call, unreadable};
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

    /// Connects with the URL of a service that has a shared access signature as its query. That of one queue is for
    /// [`QueueClient::from_sas_url`].
    pub fn from_sas_url(url: &str) -> Result<QueueServiceClient, Error> {
        ClientBuilder::from_sas_url(url)?.queues()
    }

    /// What requests are signed with; shared access signatures are signed with it, too.
    pub fn credential(&self) -> &Credential {
        self.pipeline.credential()
    }

    /// Where the service is, without `/` at the end.
    pub fn endpoint(&self) -> String {
        self.pipeline.root()
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
    pub fn list_queues(&self) -> QueueList {
        QueueList {
            pipeline: self.pipeline.clone(),
            prefix: None,
            page_size: None,
            has_metadata: false,
            next: NextQueues::Page(None),
        }
    }

    /// Logging, metrics and CORS rules.
    pub async fn properties(&self) -> Result<ServiceProperties, Error> {
        let answer = self.pipeline.call(service_call(Method::GET, "properties")).await?;
        read_answer(&answer.body).map_err(unreadable)
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
        let mut call = service_call(Method::PUT, "properties");
        call.headers.push((header::CONTENT_TYPE, XML.to_owned()));
        call.body = update.write(QUEUE_VERSION).into();
        self.pipeline.call(call).await.map(drop)
    }

    /// How far the account's replica is. Only accounts with a secondary endpoint that can be read have it.
    pub async fn stats(&self) -> Result<ServiceStats, Error> {
        let answer = self.pipeline.call_secondary(service_call(Method::GET, "stats")).await?;
        read_stats(&answer.body).map_err(unreadable)
    }
}

/// A queue of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueueItem {
    /// The queue's name.
    pub name: String,
    /// Empty unless the list was asked for metadata.
    pub metadata: BTreeMap<String, String>,
}

/// One page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct QueuePage {
    /// Queues in the order of their names; a page can be empty although more follow.
    pub queues: Vec<QueueItem>,
    /// Where the next page begins; `None` on the last page. Can be stored, and given to [`QueueList::resume`].
    pub next_marker: Option<String>,
}

/// A list of queues that is fetched page by page.
#[derive(Clone)]
pub struct QueueList {
    pipeline: Arc<Pipeline>,
    prefix: Option<String>,
    page_size: Option<u32>,
    has_metadata: bool,
    next: NextQueues,
}

#[derive(Clone)]
enum NextQueues {
    /// The page that begins at this marker, or the first one.
    Page(Option<String>),
    End,
}

impl QueueList {
    /// Only queues whose names begin so.
    pub fn prefix(mut self, prefix: &str) -> QueueList {
        self.prefix = Some(prefix.to_owned());
        self
    }

    /// At most this many queues per page, up to [`QUEUE_PAGE_COUNT_MAX`], which is also the default.
    pub fn page_size(mut self, count: u32) -> QueueList {
        self.page_size = Some(count);
        self
    }

    /// Fetches the metadata of each queue, too.
    pub fn metadata(mut self) -> QueueList {
        self.has_metadata = true;
        self
    }

    /// Goes on where another list has stopped: at its [`QueuePage::next_marker`].
    pub fn resume(mut self, marker: &str) -> QueueList {
        self.next = NextQueues::Page(Some(marker.to_owned()));
        self
    }

    /// The next page, or `None` after the last one. After an error, the same page can be asked for again.
    pub async fn next_page(&mut self) -> Result<Option<QueuePage>, Error> {
        let NextQueues::Page(marker) = &self.next else { return Ok(None) };
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
            Some(next) => NextQueues::Page(Some(next.clone())),
            None => NextQueues::End,
        };
        Ok(Some(page))
    }

    /// All queues that are left.
    pub async fn all(mut self) -> Result<Vec<QueueItem>, Error> {
        let mut queues = Vec::new();
        while let Some(page) = self.next_page().await? {
            queues.extend(page.queues);
        }
        Ok(queues)
    }

    /// The remaining pages as a stream. It ends after the last page, or after an error.
    pub fn into_stream(self) -> QueuePages {
        QueuePages { state: PagesState::Idle(Box::new(self)) }
    }
}

impl fmt::Debug for QueueList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueList").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// The pages of a list as a stream; see [`QueueList::into_stream`].
#[must_use = "a stream does nothing until it is polled"]
pub struct QueuePages {
    state: PagesState,
}

type FetchedQueues = (Box<QueueList>, Result<Option<QueuePage>, Error>);

enum PagesState {
    Idle(Box<QueueList>),
    Fetching(Pin<Box<dyn Future<Output = FetchedQueues> + Send>>),
    Ended,
}

impl Stream for QueuePages {
    type Item = Result<QueuePage, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, PagesState::Ended) {
                PagesState::Idle(mut list) => {
                    self.state = PagesState::Fetching(Box::pin(async move {
                        let page = list.next_page().await;
                        (list, page)
                    }));
                }
                PagesState::Fetching(mut fetching) => {
                    let Poll::Ready((list, page)) = fetching.as_mut().poll(context) else {
                        self.state = PagesState::Fetching(fetching);
                        return Poll::Pending;
                    };
                    if let Ok(Some(_)) = page {
                        self.state = PagesState::Idle(list);
                    }
                    return Poll::Ready(page.transpose());
                }
                PagesState::Ended => return Poll::Ready(None),
            }
        }
    }
}
