//! The listener: accepts connections, bounded in number, size and time. Shutdown finishes the requests that were
//! accepted.
//!
//! Leaves to others: answering requests (a [`Handler`]), and the TLS handshake (`tls`).

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tls::Tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::body::IncomingBody;
use super::connection;
use super::connections::{Connections, Held};
use super::limits::Limits;
use super::memory_pool::Reservation;
use super::open_files;
use super::parts::RequestParts;
use super::response::{HeaderList, Response};

/// A request as it arrives.
pub struct Incoming<'a> {
    pub parts: &'a RequestParts,
    pub body: IncomingBody,
    /// A buffer to write the head of the response into.
    pub spare: Vec<u8>,
    /// Whether the caller uses HTTPS, where the handler's own port does not say so.
    pub is_https: Option<bool>,
}

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    fn limits(&self) -> &Limits;

    /// The connections that may still be opened, by all listeners together.
    fn connections(&self) -> &Arc<Connections>;

    /// An empty reservation of memory for the heads of one connection.
    fn head_memory(&self, peer: IpAddr) -> Reservation;

    /// Adds the date to a response that is made without the handler.
    fn add_date(&self, headers: &mut HeaderList);

    /// Never fails: every error becomes a response.
    fn handle(&self, peer: IpAddr, request: Incoming<'_>) -> impl Future<Output = Response> + Send;
}

/// A handler bound to its port, but not yet serving.
pub struct Server<H> {
    listener: TcpListener,
    local_addr: SocketAddr,
    handler: Arc<H>,
    /// Serves only HTTPS when present.
    tls: Option<Tls>,
}

/// Connections that the system has opened for us and that wait to be accepted. Beyond this, it ignores whoever wants
/// another one, and the client's system tries again only after a second. The usual 128 are too few for a pool of clients
/// that starts at once. Linux allows no more than `net.core.somaxconn`.
const UNACCEPTED_CONNECTION_COUNT_MAX: u32 = 4096;
/// How long to pause when the system cannot open another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// At most one line is written per so much time about connections that cannot be accepted.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

impl<H: Handler> Server<H> {
    pub async fn bind(listen: SocketAddr, tls: Option<Tls>, handler: H) -> io::Result<Server<H>> {
        let listener = wait_at(listen)?;
        let local_addr = listener.local_addr()?;
        Ok(Server { listener, local_addr, handler: Arc::new(handler), tls })
    }

    pub fn handler(&self) -> Arc<H> {
        self.handler.clone()
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves one connection that was not accepted by the listener: a stream in memory, to measure the cost of a
    /// request.
    pub fn serve_stream<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: T,
        peer: IpAddr,
    ) -> impl Future<Output = ()> + Send + use<H, T> {
        let handler = self.handler.clone();
        async move {
            let (_never_closing, closing) = watch::channel(false);
            serve(stream, peer, handler, closing).await;
        }
    }

    /// Serves until `shutdown` completes, then finishes open requests. The engine stays open.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Server { listener, handler, tls, .. } = self;
        let limits = handler.limits();
        let (closing, _) = watch::channel(false);
        let mut shutdown = pin!(shutdown);
        let mut complaints = Complaints::default();
        open_files::count_own(&listener);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&listener, &*handler, &mut complaints) => match accepted {
                    Ok(Some(Accepted { stream, peer, held })) => {
                        let (handler, closing) = (handler.clone(), closing.subscribe());
                        tokio::spawn(welcome(stream, tls.clone(), peer, handler, closing, held));
                    }
                    Ok(None) => {}
                    Err(error) => {
                        complaints.say(format_args!("cannot accept a connection: {error}"));
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        // Fails only when no connection is open, which is fine.
        let _ = closing.send(true);
        // Each open connection listens for this signal.
        if tokio::time::timeout(limits.shutdown_time_max, closing.closed()).await.is_err() {
            log::warn!("some connections did not finish in time and are cut");
        }
    }
}

fn wait_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again gets its port although connections of the one before linger. On Windows this option
    // would let two servers share a port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED_CONNECTION_COUNT_MAX)
}

/// A connection that may be served.
struct Accepted {
    stream: TcpStream,
    peer: IpAddr,
    held: Held,
}

/// The next connection; `None` if its address has too many.
async fn accept<H: Handler>(
    listener: &TcpListener,
    handler: &H,
    complaints: &mut Complaints,
) -> io::Result<Option<Accepted>> {
    let connections = handler.connections();
    if connections.free_count() == 0 {
        let count_max = handler.limits().connection_count_max;
        complaints.say(format_args!("all {count_max} connections are in use"));
    }
    let permit = connections.wait().await;
    let (stream, peer) = listener.accept().await?;
    let peer = peer.ip().to_canonical();
    let Some(held) = connections.hold(permit, peer) else {
        complaints.say(format_args!("{peer} has too many connections; others need the rest"));
        return Ok(None);
    };
    let stream = wait_for_handle(stream, complaints).await?;
    Ok(Some(Accepted { stream, peer, held }))
}

/// Waits until the connection can have a handle that is not kept for the store, and gives it that one. Meanwhile the
/// system keeps further connections waiting.
async fn wait_for_handle(mut stream: TcpStream, complaints: &mut Complaints) -> io::Result<TcpStream> {
    while !open_files::may_serve(&stream) {
        complaints.say(format_args!(
            "cannot accept a connection: the last file handles are kept for the store; 'ulimit -n' allows more"
        ));
        tokio::time::sleep(ACCEPT_PAUSE).await;
        let held = stream.into_std()?;
        // A copy gets the lowest number that is free by now.
        let copy = held.try_clone();
        stream = TcpStream::from_std(copy.unwrap_or(held))?;
    }
    Ok(stream)
}

/// Warnings about connections, at a bounded rate: strangers can cause as many of them as they like.
#[derive(Default)]
struct Complaints {
    last: Option<tokio::time::Instant>,
}

impl Complaints {
    fn say(&mut self, words: std::fmt::Arguments<'_>) {
        let now = tokio::time::Instant::now();
        if self.last.is_none_or(|last| now - last >= COMPLAINT_INTERVAL) {
            self.last = Some(now);
            log::warn!("{words}");
        }
    }
}

/// Starts a connection, with TLS if the port uses it.
async fn welcome<H: Handler>(
    stream: TcpStream,
    tls: Option<Tls>,
    peer: IpAddr,
    handler: Arc<H>,
    closing: watch::Receiver<bool>,
    _held: Held,
) {
    // Answers are written in one go, so delaying them to collect more data gains nothing.
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("cannot set TCP_NODELAY: {error}");
    }
    match tls {
        None => serve(stream, peer, handler, closing).await,
        Some(tls) => match tls.accept(stream, handler.limits().header_time_max).await {
            Ok(stream) => serve(stream, peer, handler, closing).await,
            Err(refusal) => log::debug!("no TLS connection: {refusal}"),
        },
    }
}

async fn serve<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    handler: Arc<H>,
    mut closing: watch::Receiver<bool>,
) {
    let is_closing = AtomicBool::new(false);
    let mut connection = pin!(connection::serve(stream, peer, &*handler, &is_closing));
    let outcome = tokio::select! {
        // The order does not matter, and a fixed one saves the cost of a random choice.
        biased;
        outcome = connection.as_mut() => outcome,
        _ = closing.changed() => {
            is_closing.store(true, Ordering::Relaxed);
            connection.await
        }
    };
    // A caller that disconnects or breaks the protocol harms only itself.
    if let Err(error) = outcome {
        log::debug!("connection ended: {error}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// More than the 128 that listeners usually keep waiting.
    const CONNECTION_COUNT: usize = 400;

    #[tokio::test]
    async fn hundreds_of_connections_may_wait_to_be_accepted() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        if allowed.trim().parse::<usize>().unwrap() < CONNECTION_COUNT {
            println!("SKIPPED: net.core.somaxconn is only {}", allowed.trim());
            return;
        }
        let listener = wait_at(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500));
        let open: Vec<_> = (0..CONNECTION_COUNT).map_while(|_| connect().ok()).collect();
        assert_eq!(open.len(), CONNECTION_COUNT);
    }
}
