//! TLS: loads the server's certificate, reloads it when its files change, and performs the handshake.
//!
//! Speaks TLS 1.2 and 1.3, for HTTP/1.1. Promises: a handshake ends within its time limit; a client that sends plain HTTP
//! gets a plain HTTP answer that explains the mistake; the certificate can be replaced while connections are open, and
//! files that cannot be used never replace a certificate that works. Leaves to others: everything that is sent over the
//! finished connection, and asking for the time.

#[cfg_attr(not(feature = "pfx"), allow(dead_code, reason = "only the reader of PFX files needs all of it"))]
mod certificate;
#[cfg_attr(not(feature = "pfx"), allow(dead_code, reason = "only the reader of PFX files needs all of it"))]
mod der;
mod error;
mod local_ca;
mod pem;
#[cfg(feature = "pfx")]
mod pfx;
mod reload;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

pub use error::TlsError;
pub use rustls::pki_types::UnixTime;

use certificate::Facts;
use error::TlsProblem;
use reload::Stamps;

/// Returns the current time. The caller provides it, so that tests can move the time.
pub type WallClock = Arc<dyn Fn() -> UnixTime + Send + Sync>;

/// A connection after its handshake.
pub type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// Where the certificate and its key come from.
#[derive(Clone)]
pub enum TlsSource {
    /// One file with the certificate chain, the server's own certificate first, and one with its key.
    Pem { cert: PathBuf, key: PathBuf },
    /// One file with both, protected by a password. A build without the feature `pfx` refuses it.
    Pfx { file: PathBuf, password: String },
    /// A local authority and a certificate, which we create in this directory. `hosts` are names and addresses to cover
    /// in addition to `localhost` and its addresses; a name may start with `*.`.
    LocalCa { directory: PathBuf, hosts: Vec<String> },
}

/// The server's side of TLS. Clones share one certificate, and see it replaced at the same time.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<SharedTls>,
}

struct SharedTls {
    source: TlsSource,
    clock: WallClock,
    current: RwLock<Arc<Loaded>>,
}

/// The result of reading the files once.
struct Loaded {
    config: Arc<ServerConfig>,
    stamps: Stamps,
}

/// A certificate with its chain, and a private key. Nobody has checked yet that they belong together.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why there is no TLS connection.
#[derive(Debug)]
pub enum TlsRefusal {
    /// The client did not speak TLS, most likely plain HTTP, and was told so.
    Plain,
    TooSlow,
    /// The client disconnected, or the two sides could not agree.
    Failed(io::Error),
}

/// Every TLS connection starts with this byte: the record type of a handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

const PROTOCOL: &[u8] = b"http/1.1";

/// After refusing a plain request, read and drop up to this much of it. Closing a socket with unread bytes resets the
/// connection, and the client might lose the refusal.
const PLAIN_BYTES_MAX: usize = 8 * 1024 * 1024;

const PLAIN_REFUSAL: &str =
    "This port speaks HTTPS, and the request came in plain HTTP. Use https:// in the address.\n";

impl Tls {
    /// Reads the certificate. [`TlsSource::LocalCa`] creates it first, if need be.
    pub fn load(source: TlsSource, clock: WallClock) -> Result<Tls, TlsError> {
        let loaded = read(&source, clock())?;
        Ok(Tls { shared: Arc::new(SharedTls { source, clock, current: RwLock::new(Arc::new(loaded)) }) })
    }

    /// Performs the handshake. All of it must finish within `time_max`.
    pub async fn accept(&self, stream: TcpStream, time_max: Duration) -> Result<TlsStream, TlsRefusal> {
        let handshake = handshake(self.current().config.clone(), stream);
        tokio::time::timeout(time_max, handshake).await.unwrap_or(Err(TlsRefusal::TooSlow))
    }

    /// Tells the user how to make clients trust the local authority. `None` for certificates from files.
    pub fn how_to_trust(&self) -> Option<String> {
        match &self.shared.source {
            TlsSource::LocalCa { directory, .. } => Some(local_ca::how_to_trust(directory)),
            TlsSource::Pem { .. } | TlsSource::Pfx { .. } => None,
        }
    }

    fn current(&self) -> Arc<Loaded> {
        // A panic cannot leave a pointer half changed, so a poisoned lock is harmless.
        self.shared.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again. If they cannot be used, the current certificate stays.
    fn reload(&self) -> Result<(), TlsError> {
        let loaded = Arc::new(read(&self.shared.source, (self.shared.clock)())?);
        *self.shared.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }
}

impl TlsSource {
    /// The files to watch for a new certificate: first the certificate, last the key.
    fn files(&self) -> Vec<PathBuf> {
        match self {
            TlsSource::Pem { cert, key } => vec![cert.clone(), key.clone()],
            TlsSource::Pfx { file, .. } => vec![file.clone()],
            TlsSource::LocalCa { directory, .. } => {
                vec![directory.join(local_ca::SERVER_CERTIFICATE), directory.join(local_ca::SERVER_KEY)]
            }
        }
    }
}

/// Lists the files, and never the password.
impl fmt::Debug for TlsSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.files()).finish()
    }
}

impl fmt::Display for TlsRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsRefusal::Plain => out.write_str("it did not speak TLS"),
            TlsRefusal::TooSlow => out.write_str("the TLS handshake took too long"),
            TlsRefusal::Failed(error) => write!(out, "the TLS handshake failed: {error}"),
        }
    }
}

impl std::error::Error for TlsRefusal {}

fn read(source: &TlsSource, now: UnixTime) -> Result<Loaded, TlsError> {
    let provider = Arc::new(ring::default_provider());
    if let TlsSource::LocalCa { directory, hosts } = source {
        local_ca::ensure(directory, hosts, now, &provider)?;
    }
    // Take the stamps before reading the files, so that the watch notices any later change.
    let files = source.files();
    let stamps = Stamps::of(&files);
    let identity = match source {
        #[cfg(feature = "pfx")]
        TlsSource::Pfx { file, password } => pfx::read(file, password, &provider)?,
        #[cfg(not(feature = "pfx"))]
        TlsSource::Pfx { file, .. } => return Err(TlsProblem::PfxNotBuilt.of(file)),
        TlsSource::Pem { .. } | TlsSource::LocalCa { .. } => pem::read(&files[0], &files[1])?,
    };
    let certificate_file = &files[0];
    let key_file = files.last().unwrap_or(certificate_file);
    let certified = certify(identity, certificate_file, key_file, &provider)?;
    if let Some(facts) = certified.cert.first().and_then(|own| Facts::read(own)) {
        warn_of_dates(&facts, now, certificate_file);
    }
    let config = configure(certified, provider);
    let config = config.map_err(|error| TlsProblem::Refused(error.to_string()).of(certificate_file))?;
    Ok(Loaded { config: Arc::new(config), stamps })
}

/// Checks that the key belongs to the certificate.
fn certify(
    identity: Identity,
    certificate_file: &Path,
    key_file: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let key = provider.key_provider.load_private_key(identity.key);
    let key = key.map_err(|_| TlsProblem::BadKey.of(key_file))?;
    let certified = CertifiedKey::new(identity.chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsProblem::KeyMismatch(key_file.to_owned()).of(certificate_file))
        }
        Err(_) => Err(TlsProblem::BadCertificate.of(certificate_file)),
    }
}

/// Only warns. The certificate is served in any case: some clients ignore the dates, and the watch picks up a renewed
/// file as soon as there is one.
fn warn_of_dates(facts: &Facts<'_>, now: UnixTime, file: &Path) {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let text = |time: OffsetDateTime| {
        let (hour, minute, second) = time.to_hms();
        format!("{}T{hour:02}:{minute:02}:{second:02}Z", time.date())
    };
    if facts.not_after.unix_timestamp() < now {
        log::warn!("the certificate in '{}' expired at {}", file.display(), text(facts.not_after));
    } else if facts.not_before.unix_timestamp() > now {
        log::warn!("the certificate in '{}' is not valid before {}", file.display(), text(facts.not_before));
    }
}

fn configure(certified: CertifiedKey, provider: Arc<CryptoProvider>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Tickets let a returning client skip half of the handshake. A ticket is valid for this configuration only, so that
    // every client sees a new certificate.
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}

async fn handshake(config: Arc<ServerConfig>, mut stream: TcpStream) -> Result<TlsStream, TlsRefusal> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(0) => return Err(TlsRefusal::Failed(io::ErrorKind::UnexpectedEof.into())),
        Ok(_) if first[0] == HANDSHAKE_RECORD => {}
        Ok(_) => {
            refuse_plain(&mut stream).await.map_err(TlsRefusal::Failed)?;
            return Err(TlsRefusal::Plain);
        }
        Err(error) => return Err(TlsRefusal::Failed(error)),
    }
    TlsAcceptor::from(config).accept(stream).await.map_err(TlsRefusal::Failed)
}

/// Writes the only HTTP response outside the server crate: the request has not been read, so nothing there can answer it.
async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{PLAIN_REFUSAL}",
        PLAIN_REFUSAL.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut dropped_bytes = 0;
    let mut buffer = [0; 4096];
    while dropped_bytes < PLAIN_BYTES_MAX {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => dropped_bytes += count,
        }
    }
    Ok(())
}
