//! The listener: connections in, bounded in number, size and time; and a shutdown that finishes what was accepted.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use protocol::auth::Connection;
use tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::head_timer::HeadTimer;
use super::stall::StallGuard;
use crate::front::Front;
use crate::front::handle::{Endpoint, handle};
use crate::front::service::Service;

/// Where a service listens.
pub struct Binding {
    pub listen: SocketAddr,
    /// Serve HTTPS and nothing else.
    pub tls: Option<Tls>,
    /// Further host suffixes under which the first label is the account, as in `account.tables.example.org`.
    pub host_suffixes: Vec<String>,
}

/// A service that has its port but answers nobody yet.
pub struct Server<S> {
    listener: TcpListener,
    local_addr: SocketAddr,
    endpoint: Arc<Endpoint<S>>,
    tls: Option<Tls>,
    is_https: bool,
}

/// How long to leave the listener alone when the system cannot open another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

pub async fn bind<S: Service>(
    front: &Arc<Front>,
    binding: Binding,
    service: S,
) -> std::io::Result<Server<S>> {
    let listener = TcpListener::bind(binding.listen).await?;
    let local_addr = listener.local_addr()?;
    let is_https = binding.tls.is_some() || front.is_behind_tls_proxy;
    let endpoint = Endpoint { front: front.clone(), service, host_suffixes: binding.host_suffixes };
    Ok(Server { listener, local_addr, endpoint: Arc::new(endpoint), tls: binding.tls, is_https })
}

impl<S: Service> Server<S> {
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves one connection that no listener accepted: a stream in memory, to measure what a request costs.
    pub fn serve_stream<T: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: T,
        peer: IpAddr,
    ) -> impl Future<Output = ()> + Send + use<S, T> {
        let (endpoint, connection) = (self.endpoint.clone(), Connection { peer, is_https: self.is_https });
        async move {
            let (_never_closing, closing) = watch::channel(false);
            serve(stream, connection, endpoint, closing).await;
        }
    }

    /// Serves until `shutdown` is ready; then finishes open requests. The engine below stays open.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Server { listener, endpoint, tls, is_https, .. } = self;
        let limits = &endpoint.front.limits;
        let connection_count_max = limits.connection_count_max;
        let connections = Arc::new(Semaphore::new(connection_count_max));
        let (closing, _) = watch::channel(false);
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = async {
                let permit = connections.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            tokio::select! {
                () = &mut shutdown => break,
                (permit, accepted) = accepted => match (permit, accepted) {
                    (Ok(permit), Ok((stream, peer))) => {
                        let connection = Connection { peer: peer.ip().to_canonical(), is_https };
                        let (endpoint, closing) = (endpoint.clone(), closing.subscribe());
                        tokio::spawn(welcome(stream, tls.clone(), connection, endpoint, closing, permit));
                    }
                    (_, Err(error)) => {
                        log::warn!("cannot accept a connection: {error}");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                    (Err(_), _) => break,
                },
            }
        }
        drop(listener);
        // Nobody listening is fine: then no connection is open.
        let _ = closing.send(true);
        let all = u32::try_from(connection_count_max).unwrap_or(u32::MAX);
        if tokio::time::timeout(limits.shutdown_time_max, connections.acquire_many(all)).await.is_err() {
            log::warn!("some connections did not finish in time and are cut");
        }
    }
}

/// Greets a connection in the one protocol that the port speaks.
async fn welcome<S: Service>(
    stream: TcpStream,
    tls: Option<Tls>,
    connection: Connection,
    endpoint: Arc<Endpoint<S>>,
    closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are written whole; waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("cannot set TCP_NODELAY: {error}");
    }
    match tls {
        None => serve(stream, connection, endpoint, closing).await,
        Some(tls) => match tls.accept(stream, endpoint.front.limits.header_time_max).await {
            Ok(stream) => serve(stream, connection, endpoint, closing).await,
            Err(refusal) => log::debug!("no TLS connection: {refusal}"),
        },
    }
}

async fn serve<S: Service>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: Connection,
    endpoint: Arc<Endpoint<S>>,
    mut closing: watch::Receiver<bool>,
) {
    let limits = &endpoint.front.limits;
    let service = service_fn(|request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(handle(&endpoint, &connection, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(HeadTimer::default())
        .header_read_timeout(limits.header_time_max)
        .max_buf_size(limits.header_bytes_max)
        .max_headers(limits.header_count_max)
        .serve_connection(TokioIo::new(StallGuard::new(stream, limits.write_time_max)), service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        // Always in this order: it does not matter which one is asked first, and a random choice costs.
        biased;
        outcome = connection.as_mut() => outcome,
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A caller that leaves or breaks the protocol harms only itself.
    if let Err(error) = outcome {
        log::debug!("connection ended: {error}");
    }
}
