//! The connections of one endpoint: those that are idle, and the right to make more.
//!
//! Promises: connections in use and idle ones together stay within the bound. Idle ones are closed after their time,
//! and one that the server closed is never handed out.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

use http::HeaderValue;
use http::uri::Authority;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::HttpOptions;
use super::body::Whole;
use super::stream::Stream;
use crate::TransportError;
use crate::clock;

/// A connection with its two halves: the one that takes requests and the one that moves bytes when it is polled.
pub(super) struct Live {
    pub sender: SendRequest<Whole>,
    pub connection: Connection<TokioIo<Stream>, Whole>,
    /// Whether any byte has been read since this was last cleared.
    pub has_answer: Arc<AtomicBool>,
}

pub(super) struct Pool {
    pub is_https: bool,
    pub authority: Authority,
    /// The value of `Host`.
    pub host: HeaderValue,
    options: Arc<HttpOptions>,
    /// As many as connections may be in use.
    permits: Semaphore,
    idle: Mutex<IdleConnections>,
    tls: OnceCell<(TlsConnector, ServerName<'static>)>,
}

#[derive(Default)]
struct IdleConnections {
    /// The one that was used last is at the end, and is used first.
    kept: VecDeque<(Instant, Box<Live>)>,
    /// Whether a task closes connections whose time is up.
    is_swept: bool,
}

impl Pool {
    pub(super) fn new(
        is_https: bool,
        authority: Authority,
        options: Arc<HttpOptions>,
    ) -> Result<Pool, TransportError> {
        let host = HeaderValue::from_str(authority.as_str()).map_err(TransportError::unsent)?;
        let permits = Semaphore::new(options.connections_max.clamp(1, Semaphore::MAX_PERMITS));
        Ok(Pool { is_https, authority, host, options, permits, idle: Mutex::default(), tls: OnceCell::new() })
    }

    /// Waits for the right to use a connection.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, TransportError> {
        self.permits.acquire().await.map_err(TransportError::unsent)
    }

    /// An idle connection that is still open.
    pub(super) async fn take(&self) -> Option<Box<Live>> {
        loop {
            let (since, mut live) = self.idle().kept.pop_back()?;
            // The youngest is too old, so all are.
            if clock::instant().saturating_duration_since(since) >= self.options.idle_max {
                self.clear();
                return None;
            }
            let is_open = poll_fn(|context| {
                let is_ended = Pin::new(&mut live.connection).poll(context).is_ready();
                Poll::Ready(!is_ended && live.sender.is_ready())
            });
            if is_open.await {
                return Some(live);
            }
        }
    }

    /// Keeps a connection whose answer has been read.
    pub(super) fn keep(self: &Arc<Pool>, live: Box<Live>) {
        let mut idle = self.idle();
        idle.kept.push_back((clock::instant(), live));
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self), self.options.clone()));
        }
    }

    /// Closes every idle connection.
    pub(super) fn clear(&self) {
        let closed = std::mem::take(&mut self.idle().kept);
        // Closing takes a while; the lock is free by now.
        drop(closed);
    }

    fn idle(&self) -> MutexGuard<'_, IdleConnections> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn connect(&self) -> Result<Box<Live>, TransportError> {
        let connecting = tokio::time::timeout(self.options.connect_timeout, self.connect_stream());
        let stream = connecting.await.map_err(|_| TransportError::unsent("connecting took too long"))??;
        let has_answer = stream.has_answer();
        let handshake = http1::Builder::new().handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(TransportError::unsent)?;
        Ok(Box::new(Live { sender, connection, has_answer }))
    }

    async fn connect_stream(&self) -> Result<Stream, TransportError> {
        let port = self.authority.port_u16().unwrap_or(if self.is_https { 443 } else { 80 });
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        let tcp = TcpStream::connect((host, port)).await.map_err(TransportError::unsent)?;
        // Requests are small and wait for their answers: Nagle's algorithm would only delay them.
        tcp.set_nodelay(true).map_err(TransportError::unsent)?;
        if !self.is_https {
            return Ok(Stream::plain(tcp));
        }
        let (connector, name) = self.tls.get_or_try_init(|| self.tls(host)).await?;
        let tls = connector.connect(name.clone(), tcp).await.map_err(TransportError::unsent)?;
        Ok(Stream::tls(tls))
    }

    async fn tls(&self, host: &str) -> Result<(TlsConnector, ServerName<'static>), TransportError> {
        let name = ServerName::try_from(host.to_owned()).map_err(TransportError::unsent)?;
        let options = self.options.clone();
        // The system's certificates are files.
        let config = tokio::task::spawn_blocking(move || options.tls_config());
        let config = config.await.map_err(TransportError::unsent)??;
        Ok((TlsConnector::from(config), name))
    }
}

/// Closes idle connections whose time is up, until none is left.
async fn sweep(pool: Weak<Pool>, options: Arc<HttpOptions>) {
    loop {
        tokio::time::sleep(options.idle_max).await;
        let Some(pool) = pool.upgrade() else { return };
        let now = clock::instant();
        let mut idle = pool.idle();
        let is_old = |since: &Instant| now.saturating_duration_since(*since) >= options.idle_max;
        let old_count = idle.kept.iter().take_while(|(since, _)| is_old(since)).count();
        let closed: Vec<_> = idle.kept.drain(..old_count).collect();
        idle.is_swept = !idle.kept.is_empty();
        let is_done = idle.kept.is_empty();
        drop(idle);
        drop(closed);
        if is_done {
            return;
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("authority", &self.authority)
            .field("idle", &self.idle().kept.len())
            .finish_non_exhaustive()
    }
}
