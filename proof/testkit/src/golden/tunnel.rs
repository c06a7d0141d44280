//! TLS for a client that speaks plain TCP: a local port that forwards to a server over TLS.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Opens a tunnel to the server of this name, for as long as the process lives. It trusts the system's certificates, or
/// those in `SSL_CERT_FILE`.
pub fn open(name: &str, addr: SocketAddr) -> Result<SocketAddr, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| text(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from(name.to_owned()).map_err(|error| text(&error))?;

    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| text(&error))?;
    listener.set_nonblocking(true).map_err(|error| text(&error))?;
    let local = listener.local_addr().map_err(|error| text(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| text(&error))?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            while let Ok((mut plain, _)) = listener.accept().await {
                let (connector, name) = (connector.clone(), name.clone());
                tokio::spawn(async move {
                    let relayed = async {
                        let socket = TcpStream::connect(addr).await?;
                        let mut secret = connector.connect(name, socket).await?;
                        tokio::io::copy_bidirectional(&mut plain, &mut secret).await
                    };
                    // The client only sees a closed connection, so print the reason.
                    if let Err(error) = relayed.await {
                        eprintln!("warning: the connection to {addr} failed: {error}");
                    }
                });
            }
        });
    });
    Ok(local)
}
