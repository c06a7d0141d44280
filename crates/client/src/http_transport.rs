//! The transport that programs use: HTTP/1.1 over TCP or TLS, on hyper, with a small pool of connections per endpoint.
//!
//! Owns: the bounds of connections, and which failures a server cannot have seen.
//! Promises: a connection carries one request at a time, and the task that sends the request drives it, so there is no
//! background task between the two. Dropping the future closes its connection, and the pool never sees it again. No
//! lock is held across an await. A connection that the server closed while it was idle is noticed before it is used.
//! Leaves to others: `pool` keeps the idle connections, `stream` the bytes; sending again is the pipeline's.

mod body;
mod pool;
mod stream;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::{Body as _, Incoming};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::Error;
use crate::transport::{Progress, Sending, Transport, TransportError};
use body::{Pieces, Whole};
use pool::{Live, Pool};

/// A transport may serve several accounts and services, but not the whole internet.
const ENDPOINT_COUNT_MAX: usize = 1024;

/// The bounds of an [`HttpTransport`], and whom it trusts.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// How long a connection may take to be made, TLS included.
    pub connect_timeout: Duration,
    /// How many connections one endpoint may have. Calls beyond it wait for one that is free.
    pub connections_max: usize,
    /// How long a connection without a request is kept.
    pub idle_max: Duration,
    /// The largest answer that is read. Those of the services have a few megabytes.
    pub answer_bytes_max: usize,
    /// Certificates that are trusted beside those of the system.
    roots: Vec<CertificateDer<'static>>,
    tls: Option<Arc<ClientConfig>>,
}

impl Default for HttpOptions {
    /// 10 seconds to connect, 256 connections kept for 50 seconds, answers of up to 64 MiB.
    fn default() -> HttpOptions {
        HttpOptions {
            connect_timeout: Duration::from_secs(10),
            connections_max: 256,
            // Below the minute after which many servers and load balancers close an idle connection.
            idle_max: Duration::from_secs(50),
            answer_bytes_max: 64 * 1024 * 1024,
            roots: Vec::new(),
            tls: None,
        }
    }
}

impl HttpOptions {
    /// Trusts the certificates in this PEM text too, for example that of an emulator.
    pub fn with_root_certificates(mut self, pem: &[u8]) -> Result<HttpOptions, Error> {
        let count_before = self.roots.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| {
                Error::Configuration(format!("the root certificates are not PEM: {error}"))
            })?;
            self.roots.push(certificate);
        }
        if self.roots.len() == count_before {
            return Err(Error::Configuration("the root certificates are empty".to_owned()));
        }
        Ok(self)
    }

    /// Uses this configuration of rustls for https, and nothing else: no certificates of the system are added.
    pub fn with_tls(mut self, config: Arc<ClientConfig>) -> HttpOptions {
        self.tls = Some(config);
        self
    }

    /// The configuration for https. Reads the system's certificates, which takes a while.
    fn tls_config(&self) -> Result<Arc<ClientConfig>, TransportError> {
        if let Some(config) = &self.tls {
            return Ok(config.clone());
        }
        let mut roots = rustls::RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        for certificate in &self.roots {
            roots.add(certificate.clone()).map_err(TransportError::unsent)?;
        }
        if roots.is_empty() {
            return Err(TransportError::unsent(
                "the system has no trusted certificates, and none were given",
            ));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TransportError::unsent)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// HTTP/1.1 over TCP and TLS. Clients that share one share its connections.
///
/// ```
/// use std::sync::Arc;
/// use lazulite_client::{ClientBuilder, HttpOptions, HttpTransport};
///
/// let mut options = HttpOptions::default();
/// options.connections_max = 16;
/// let shared = Arc::new(HttpTransport::new(options));
/// let builder = ClientBuilder::from_connection_string("UseDevelopmentStorage=true")?.transport(shared);
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Debug)]
pub struct HttpTransport {
    options: Arc<HttpOptions>,
    /// Few, and found by comparing each: a client has one endpoint, or two with the secondary.
    pools: RwLock<Vec<Arc<Pool>>>,
}

impl HttpTransport {
    /// Makes no connection yet.
    pub fn new(options: HttpOptions) -> HttpTransport {
        HttpTransport { options: Arc::new(options), pools: RwLock::default() }
    }

    fn pool(&self, uri: &Uri) -> Result<Arc<Pool>, TransportError> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(TransportError::unsent("the URI is not absolute"));
        };
        let is_https = *scheme == Scheme::HTTPS;
        if !is_https && *scheme != Scheme::HTTP {
            return Err(TransportError::unsent("the URI is neither http nor https"));
        }
        let found = find(&self.pools.read().unwrap_or_else(PoisonError::into_inner), is_https, authority);
        if let Some(pool) = found {
            return Ok(pool);
        }
        let mut pools = self.pools.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = find(&pools, is_https, authority) {
            return Ok(pool);
        }
        if pools.len() >= ENDPOINT_COUNT_MAX {
            pools.remove(0);
        }
        let pool = Arc::new(Pool::new(is_https, authority.clone(), self.options.clone())?);
        pools.push(pool.clone());
        Ok(pool)
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        progress: &Progress,
    ) -> Result<Response<Bytes>, TransportError> {
        progress.wait();
        let pool = self.pool(request.uri())?;
        // A connection belongs to a permit while it is used.
        let _permit = pool.permit().await?;
        let mut request = request.map(Whole::new);
        let target = request.uri().path_and_query().cloned();
        *request.uri_mut() = target.map_or_else(Uri::default, Uri::from);
        request.headers_mut().insert(HOST, pool.host.clone());
        loop {
            let (mut live, is_kept) = match pool.take().await {
                Some(live) => (live, true),
                None => (pool.connect().await?, false),
            };
            progress.begin();
            let failure = match live.send(request, self.options.answer_bytes_max).await {
                Ok(response) => {
                    if is_reusable(&response) {
                        pool.keep(live);
                    }
                    return Ok(response);
                }
                Err(failure) => failure,
            };
            match failure {
                // It had been closed after all, and nothing was sent.
                Unanswered::Unsent(returned, _) if is_kept => {
                    progress.wait();
                    request = *returned;
                }
                Unanswered::Unsent(_, error) => return Err(TransportError::unsent(error)),
                Unanswered::Lost(error) => {
                    let was_stale = is_kept && !live.has_answer.load(Ordering::Relaxed);
                    if was_stale {
                        // The server has probably closed the others too.
                        pool.clear();
                    }
                    return Err(TransportError { was_stale, ..TransportError::lost(error) });
                }
            }
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> Sending<'_> {
        Box::pin(async move { self.exchange(request, &Progress::default()).await })
    }

    fn send_watched<'a>(&'a self, request: Request<Bytes>, progress: &'a Progress) -> Sending<'a> {
        Box::pin(self.exchange(request, progress))
    }
}

fn find(pools: &[Arc<Pool>], is_https: bool, authority: &Authority) -> Option<Arc<Pool>> {
    pools.iter().find(|pool| pool.is_https == is_https && pool.authority == *authority).cloned()
}

/// Whether the server keeps the connection open.
fn is_reusable(response: &Response<Bytes>) -> bool {
    let closes = |headers: &HeaderMap| {
        headers.get_all(CONNECTION).iter().any(|value| {
            let value = value.to_str().unwrap_or_default();
            value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"))
        })
    };
    response.version() == http::Version::HTTP_11 && !closes(response.headers())
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a connection brought no answer.
enum Unanswered {
    /// No byte of the request was sent.
    Unsent(Box<Request<Whole>>, BoxError),
    Lost(BoxError),
}

impl Live {
    /// Sends one request, reads the whole answer, and drives the connection meanwhile. After an error the connection is
    /// of no use.
    async fn send(
        &mut self,
        request: Request<Whole>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Unanswered> {
        self.has_answer.store(false, Ordering::Relaxed);
        let Live { sender, connection, .. } = self;
        let mut is_ended = false;
        let response = {
            let mut answering = pin!(sender.try_send_request(request));
            poll_fn(|context| {
                // The connection first: it reads what the other future waits for.
                is_ended = is_ended || Pin::new(&mut *connection).poll(context).is_ready();
                match answering.as_mut().poll(context) {
                    Poll::Ready(answer) => Poll::Ready(Some(answer)),
                    Poll::Pending if is_ended => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        };
        let response = match response {
            Some(Ok(response)) => response,
            Some(Err(mut failure)) => {
                return Err(match failure.take_message() {
                    Some(request) => Unanswered::Unsent(Box::new(request), failure.into_error().into()),
                    None => Unanswered::Lost(failure.into_error().into()),
                });
            }
            None => return Err(Unanswered::Lost("the connection ended".into())),
        };
        let (parts, body) = response.into_parts();
        let body = self.read(body, bytes_max, is_ended).await.map_err(Unanswered::Lost)?;
        Ok(Response::from_parts(parts, body))
    }

    async fn read(
        &mut self,
        mut body: Incoming,
        bytes_max: usize,
        mut is_ended: bool,
    ) -> Result<Bytes, BoxError> {
        let too_large = || format!("the answer is larger than {bytes_max} bytes");
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(too_large().into());
        }
        let mut pieces = Pieces::default();
        while !body.is_end_stream() {
            let frame = poll_fn(|context| {
                if let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(context) {
                    return Poll::Ready(Some(frame));
                }
                // Now that the body has been asked for, the connection reads more of it.
                is_ended = is_ended || Pin::new(&mut self.connection).poll(context).is_ready();
                match Pin::new(&mut body).poll_frame(context) {
                    Poll::Ready(frame) => Poll::Ready(Some(frame)),
                    Poll::Pending if is_ended => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            let frame = frame.ok_or("the connection ended within the answer")?;
            let Some(frame) = frame else { break };
            let Ok(data) = frame?.into_data() else { continue };
            if pieces.len() + data.len() > bytes_max {
                return Err(too_large().into());
            }
            pieces.push(data);
        }
        Ok(pieces.finish())
    }
}

#[cfg(test)]
mod tests;
