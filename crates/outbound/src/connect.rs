//! Makes connections: name, address, TLS, HTTP/1.1.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{Admission, Origin, OutboundError};

pub(crate) async fn connect<B>(
    origin: &Origin,
    admits: &Admission,
    tls: impl FnOnce() -> Result<Arc<ClientConfig>, OutboundError>,
) -> Result<SendRequest<B>, OutboundError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = connect_to(origin, admits).await?;
    // Requests are written in one piece; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    if !origin.is_https {
        return speak_http(stream).await;
    }
    let failed = |error: String| OutboundError::Connect(error);
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| failed(error.to_string()))?;
    let secured = TlsConnector::from(tls()?).connect(name, stream).await;
    speak_http(secured.map_err(|error| failed(error.to_string()))?).await
}

/// Tries the addresses of the name, as far as they are allowed.
async fn connect_to(origin: &Origin, admits: &Admission) -> Result<TcpStream, OutboundError> {
    let failed = |error: std::io::Error| OutboundError::Connect(format!("{origin}: {error}"));
    let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await.map_err(failed)?;
    let allowed: Vec<SocketAddr> = found.filter(|address| admits(address.ip())).collect();
    let mut outcome = Err(OutboundError::NotAllowed(origin.host.clone()));
    for address in allowed {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => outcome = Err(failed(error)),
        }
    }
    outcome
}

async fn speak_http<B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<B>, OutboundError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let shaken = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| OutboundError::Connect(error.to_string()))?;
    tokio::spawn(async move {
        // Those who use the connection learn of errors by themselves.
        if let Err(error) = connection.await {
            log::debug!("a connection to another server ended: {error}");
        }
    });
    Ok(sender)
}

/// Trusts the authorities that the system trusts.
pub(crate) fn client_config() -> Result<ClientConfig, OutboundError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| OutboundError::Connect(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
