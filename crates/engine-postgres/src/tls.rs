//! TLS for connections to the database.
//!
//! Promises: a certificate is always checked against the system's authorities, and against the name in the URL. With
//! `sslmode=prefer`, the default, a server without TLS is accepted; `sslmode=require` refuses it. Authorities of
//! one's own come from the file that the environment variable `SSL_CERT_FILE` names, in place of the system's. Leaves to
//! others: client certificates, channel binding.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::ConnectError;

#[derive(Clone)]
pub(crate) struct DatabaseTls {
    config: Arc<ClientConfig>,
}

impl DatabaseTls {
    pub(crate) fn new(mode: SslMode) -> Result<DatabaseTls, ConnectError> {
        let mut roots = RootCertStore::empty();
        if mode != SslMode::Disable {
            let found = rustls_native_certs::load_native_certs();
            let (_, _) = roots.add_parsable_certificates(found.certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::Invalid(format!("TLS: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(DatabaseTls { config: Arc::new(config) })
    }
}

impl<S> MakeTlsConnect<S> for DatabaseTls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, io::Error> {
        let name =
            ServerName::try_from(domain.to_owned()).map_err(|error| io::Error::other(error.to_string()));
        Ok(Handshake { connector: TlsConnector::from(self.config.clone()), name: name.ok() })
    }
}

pub(crate) struct Handshake {
    connector: TlsConnector,
    /// `None`: a path of a socket, which needs no TLS.
    name: Option<ServerName<'static>>,
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted<S>, io::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name =
                self.name.ok_or_else(|| io::Error::other("the host's name cannot be in a certificate"))?;
            Ok(Encrypted(self.connector.connect(name, stream).await?))
        })
    }
}

pub(crate) struct Encrypted<S>(TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
