//! A token issuer's public keys, from a file or a URL.
//!
//! Promises: the keys are read again every few minutes, because issuers rotate them; a failed read keeps the old keys;
//! a fetch is bounded in time and size. Validating tokens is the work of `protocol::auth`.

use std::sync::Arc;
use std::time::Duration;

use protocol::auth::{BearerConfig, BearerValidator, KeySet, STORAGE_AUDIENCES};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use server::Current;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
const DOCUMENT_BYTES_MAX: u64 = 1024 * 1024;
/// The longest time a new key of the issuer may go unnoticed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(300);

pub struct JwksSource {
    pub issuer: String,
    /// A file's path, or a URL.
    pub jwks: String,
    pub audiences: Vec<String>,
}

impl JwksSource {
    pub async fn read(&self) -> Result<BearerValidator, String> {
        let JwksSource { issuer, jwks, audiences } = self;
        let json = if jwks.starts_with("http://") || jwks.starts_with("https://") {
            let fetched = tokio::time::timeout(FETCH_TIME_MAX, fetch(jwks)).await;
            let outcome = fetched.unwrap_or_else(|_| Err("no answer in time".into()));
            outcome.map_err(|error| format!("cannot fetch {jwks}: {error}"))?
        } else {
            std::fs::read_to_string(jwks).map_err(|error| format!("cannot read {jwks}: {error}"))?
        };
        let keys = KeySet::parse(&json).map_err(|error| format!("{jwks}: {error}"))?;
        let usual = || STORAGE_AUDIENCES.map(str::to_owned).to_vec();
        let audiences = if audiences.is_empty() { usual() } else { audiences.clone() };
        Ok(BearerValidator::new(BearerConfig { issuer: issuer.clone(), audiences, keys }))
    }

    pub async fn watch(self, tokens: Arc<Current<BearerValidator>>) {
        loop {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            match self.read().await {
                Ok(validator) => tokens.replace(validator),
                Err(error) => log::warn!("the issuer's keys stay as they were: {error}"),
            }
        }
    }
}

async fn fetch(url: &str) -> Result<String, String> {
    let is_https = url.starts_with("https://");
    let (_, address) = url.split_once("://").unwrap_or_default();
    let (authority, path) = address.split_once('/').unwrap_or((address, ""));
    let port = if is_https { 443 } else { 80 };
    // The colons inside an IPv6 address in brackets separate no port.
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let target = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let host = target.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']']);
    let stream = TcpStream::connect(&target).await.map_err(|error| error.to_string())?;
    if !is_https {
        return get(stream, authority, path).await;
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(client_config()?)).connect(name, stream).await;
    get(stream.map_err(|error| error.to_string())?, authority, path).await
}

/// Trusts the authorities that the system trusts.
fn client_config() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

/// One GET written by hand. HTTP/1.0, because there the body simply ends with the connection.
async fn get(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
) -> Result<String, String> {
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    stream.take(DOCUMENT_BYTES_MAX).read_to_end(&mut answer).await.map_err(|error| error.to_string())?;
    let answer = String::from_utf8(answer).map_err(|_| "the answer is not text")?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status == "200" { Ok(body.to_owned()) } else { Err(format!("status {status}")) }
}
