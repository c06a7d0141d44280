//! TLS: the certificate that the server shows, where it comes from, and the handshake.
//!
//! Promises: a handshake ends within its time; whoever speaks plain HTTP to this port is told so in plain HTTP; the
//! certificate can be replaced while connections are open, and one that cannot be used never replaces one that can.
//! TLS 1.2 and 1.3, for HTTP/1.1. Leaves to others: what is said once the connection stands.

mod certificate;
mod der;
mod error;
mod local_ca;
mod pem;
mod pfx;
mod pfx_cipher;
mod reload;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use engine::env::Clock;
use protocol::model::DateTime;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use certificate::Facts;
pub use error::{TlsError, TlsProblem};
use reload::Stamps;

/// A connection whose handshake is done.
pub type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// Where the certificate and its key come from.
#[derive(Clone)]
pub enum TlsSource {
    /// A chain of certificates, the server's own first, and its key.
    Pem { cert: PathBuf, key: PathBuf },
    /// Both in one file, under a password.
    Pfx { file: PathBuf, password: String },
    /// An authority and a certificate that we make ourselves and keep in this directory. `hosts` are names and addresses
    /// beside those of this machine; a name may start with `*.`.
    LocalCa { directory: PathBuf, hosts: Vec<String> },
}

/// Shared by all connections; a clone is the same.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    source: TlsSource,
    clock: Arc<dyn Clock>,
    current: RwLock<Arc<Loaded>>,
}

/// What one reading of the files gave.
struct Loaded {
    config: Arc<ServerConfig>,
    stamps: Stamps,
}

/// A certificate with those that vouch for it, and its key; not yet checked against each other.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why a connection came to nothing.
#[derive(Debug)]
pub enum TlsRefusal {
    /// It spoke plain HTTP, or anything but TLS, and was told so.
    Plain,
    TooSlow,
    /// The caller left, or the two could not agree.
    Failed(io::Error),
}

/// The first byte of a connection that speaks TLS: the record type of a handshake.
const HANDSHAKE_RECORD: u8 = 0x16;

const PROTOCOL: &[u8] = b"http/1.1";

/// How much of a plain request is read and dropped after the refusal: closing earlier could take the refusal back
/// before the caller has read it.
const PLAIN_BYTES_MAX: usize = 8 * 1024 * 1024;

const PLAIN_REFUSAL: &str =
    "This port speaks HTTPS, and the request came in plain HTTP. Use https:// in the address.\n";

impl Tls {
    /// Reads, and for [`TlsSource::LocalCa`] makes, the certificate.
    pub fn load(source: TlsSource, clock: Arc<dyn Clock>) -> Result<Tls, TlsError> {
        let loaded = read(&source, &*clock)?;
        Ok(Tls { shared: Arc::new(Shared { source, clock, current: RwLock::new(Arc::new(loaded)) }) })
    }

    /// The handshake, all of it within `time_max`.
    pub async fn accept(&self, stream: TcpStream, time_max: Duration) -> Result<TlsStream, TlsRefusal> {
        let handshake = handshake(self.current().config.clone(), stream);
        tokio::time::timeout(time_max, handshake).await.unwrap_or(Err(TlsRefusal::TooSlow))
    }

    /// For a certificate that only we vouch for: how to make clients believe it.
    pub fn how_to_trust(&self) -> Option<String> {
        match &self.shared.source {
            TlsSource::LocalCa { directory, .. } => Some(local_ca::how_to_trust(directory)),
            TlsSource::Pem { .. } | TlsSource::Pfx { .. } => None,
        }
    }

    fn current(&self) -> Arc<Loaded> {
        // A pointer cannot be left half changed by a panic.
        self.shared.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again. If they cannot be used, all stays as it was.
    fn reload(&self) -> Result<(), TlsError> {
        let loaded = Arc::new(read(&self.shared.source, &*self.shared.clock)?);
        *self.shared.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }
}

impl TlsSource {
    /// The files whose change means another certificate.
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

/// Without the password.
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

fn read(source: &TlsSource, clock: &dyn Clock) -> Result<Loaded, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let now = DateTime::from_ticks(clock.now_ticks());
    if let TlsSource::LocalCa { directory, hosts } = source {
        local_ca::ensure(directory, hosts, now, &provider)?;
    }
    // Before the files are read: a change from here on is seen as one.
    let files = source.files();
    let stamps = Stamps::of(&files);
    let identity = match source {
        TlsSource::Pfx { file, password } => pfx::read(file, password, &provider)?,
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

/// Checks that the key is the certificate's.
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

/// Served all the same: some callers do not look at dates, and a renewed file is picked up as soon as it is there.
fn warn_of_dates(facts: &Facts<'_>, now: DateTime, file: &Path) {
    let text = |time: DateTime| {
        let mut text = Vec::new();
        time.write(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    if facts.not_after < now {
        log::warn!("the certificate in '{}' expired at {}", file.display(), text(facts.not_after));
    } else if facts.not_before > now {
        log::warn!("the certificate in '{}' is not valid before {}", file.display(), text(facts.not_before));
    }
}

fn configure(certified: CertifiedKey, provider: Arc<CryptoProvider>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Tickets let a caller who comes back skip half of the handshake. They end with this configuration, so that a new
    // certificate is seen by everybody.
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

/// The one answer that `respond` does not write: there is no request to answer, only the sign that one was meant.
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
