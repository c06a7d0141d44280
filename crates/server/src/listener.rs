//! The listener: connections in, bounded in number, size and time; and a shutdown that finishes what was accepted.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::tables::TableService;
use engine::env::Clock;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use protocol::auth::{BearerValidator, Connection};
use tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::accounts::Accounts;
use crate::audit::Audit;
use crate::cors::CorsRules;
use crate::current::Current;
use crate::handle::{Shared, handle};
use crate::head_timer::HeadTimer;
use crate::heavy::HeavyLane;
use crate::limits::Limits;
use crate::request_id::RequestIds;
use crate::room::SharedRoom;
use crate::stall::StallGuard;

pub struct Config {
    pub listen: SocketAddr,
    pub accounts: Arc<Current<Accounts>>,
    /// Whose bearer tokens are good; nobody's when absent.
    pub tokens: Option<Arc<Current<BearerValidator>>>,
    /// Serve HTTPS and nothing else.
    pub tls: Option<Tls>,
    /// Callers speak HTTPS with somebody in front of us, who speaks plain HTTP with us.
    pub is_behind_tls_proxy: bool,
    pub limits: Limits,
    /// Further host suffixes under which the first label is the account, as in `account.tables.example.org`.
    pub host_suffixes: Vec<String>,
}

/// A server that has its port but answers nobody yet.
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    tls: Option<Tls>,
    is_https: bool,
}

/// How long to leave the listener alone when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

pub async fn bind(config: Config, service: TableService, clock: Arc<dyn Clock>) -> std::io::Result<Server> {
    let listener = TcpListener::bind(config.listen).await?;
    let local_addr = listener.local_addr()?;
    let in_flight = Semaphore::new(config.limits.requests_in_flight_max);
    let payload_room = SharedRoom::new(config.limits.payload_bytes_max);
    let answer_room = SharedRoom::new(config.limits.answer_bytes_max);
    let shared = Arc::new(Shared {
        service,
        accounts: config.accounts,
        tokens: config.tokens,
        limits: config.limits,
        host_suffixes: config.host_suffixes,
        clock,
        request_ids: RequestIds::new(),
        in_flight,
        payload_room,
        answer_room,
        heavy_lane: HeavyLane::new(),
        cors_rules: CorsRules::default(),
        audit: Audit::default(),
    });
    let is_https = config.tls.is_some() || config.is_behind_tls_proxy;
    Ok(Server { listener, local_addr, shared, tls: config.tls, is_https })
}

impl Server {
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves one connection that no listener accepted: a stream in memory, for whoever measures what a request costs.
    pub fn serve_stream<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        peer: IpAddr,
    ) -> impl Future<Output = ()> + use<S> {
        let (shared, connection) = (self.shared.clone(), Connection { peer, is_https: self.is_https });
        async move {
            let (_never_closing, closing) = watch::channel(false);
            serve(stream, connection, shared, closing).await;
        }
    }

    /// Serves until `shutdown` is ready; then finishes open requests and closes the engine.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Server { listener, shared, tls, is_https, .. } = self;
        let connection_count_max = shared.limits.connection_count_max;
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
                        let work = welcome(stream, tls.clone(), connection, shared.clone(), closing.subscribe(), permit);
                        tokio::spawn(work);
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
        if tokio::time::timeout(shared.limits.shutdown_time_max, connections.acquire_many(all)).await.is_err()
        {
            log::warn!("some connections did not finish in time and are cut");
        }
        shared.service.close().await;
    }
}

/// Greets a connection in the one language that the port speaks.
async fn welcome(
    stream: TcpStream,
    tls: Option<Tls>,
    connection: Connection,
    shared: Arc<Shared>,
    closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are written whole; waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("cannot set TCP_NODELAY: {error}");
    }
    match tls {
        None => serve(stream, connection, shared, closing).await,
        Some(tls) => match tls.accept(stream, shared.limits.header_time_max).await {
            Ok(stream) => serve(stream, connection, shared, closing).await,
            Err(refusal) => log::debug!("no TLS connection: {refusal}"),
        },
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: Connection,
    shared: Arc<Shared>,
    mut closing: watch::Receiver<bool>,
) {
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(handle(&shared, &connection, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(HeadTimer::default())
        .header_read_timeout(shared.limits.header_time_max)
        .max_buf_size(shared.limits.header_bytes_max)
        .max_headers(shared.limits.header_count_max)
        .serve_connection(TokioIo::new(StallGuard::new(stream, shared.limits.write_time_max)), service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        // In this order always: which one is asked first does not matter, and a random choice costs.
        biased;
        outcome = connection.as_mut() => outcome,
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A caller who leaves or talks nonsense is his own affair.
    if let Err(error) = outcome {
        log::debug!("connection ended: {error}");
    }
}
