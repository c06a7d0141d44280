//! The target of a replay: an account at a URL, in path style or in host style, over http or https.
//!
//! Leaves to others: encryption (`tunnel.rs`).

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};

use super::pattern::Values;
use super::tunnel;
use crate::Credentials;

pub struct Endpoint {
    is_https: bool,
    /// The host, with the port unless it is the default.
    host: String,
    /// `/ACCOUNT` in path style, otherwise empty.
    base: String,
    pub(super) credentials: Credentials,
    connect_to: Option<SocketAddr>,
    /// Addresses looked up so far, by host.
    addrs: Mutex<HashMap<String, SocketAddr>>,
}

impl Endpoint {
    /// Reads `http://127.0.0.1:10002/ACCOUNT`, or `https://ACCOUNT.table.core.windows.net`.
    pub fn parse(url: &str, credentials: Credentials) -> Result<Endpoint, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| format!("no scheme in {url}"))?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            other => return Err(format!("neither http nor https: {other}")),
        };
        let rest = rest.trim_end_matches('/');
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let base = if path.is_empty() { String::new() } else { format!("/{path}") };
        if host.is_empty() {
            return Err(format!("no host in {url}"));
        }
        let addrs = Mutex::default();
        Ok(Endpoint { is_https, host: host.to_owned(), base, credentials, connect_to: None, addrs })
    }

    /// Connects to this address, whatever host the requests name.
    pub fn connect_to(self, addr: SocketAddr) -> Endpoint {
        Endpoint { connect_to: Some(addr), ..self }
    }

    /// The values of the placeholders for account, host and paths.
    pub(super) fn values(&self) -> Values {
        let scheme = if self.is_https { "https" } else { "http" };
        // The secondary endpoint adds `-secondary` to the account: in the path, or in the first label of the host.
        let (secondary_host, secondary_base) = match (self.base.as_str(), self.host.split_once('.')) {
            ("", Some((label, rest))) => (format!("{label}-secondary.{rest}"), String::new()),
            _ => (self.host.clone(), format!("{}-secondary", self.base)),
        };
        let pairs = [
            ("account", self.credentials.account.clone()),
            ("host", self.host.clone()),
            ("base", self.base.clone()),
            ("url", format!("{scheme}://{}{}", self.host, self.base)),
            ("secondary-host", secondary_host),
            ("secondary-base", secondary_base),
            ("bom", "\u{FEFF}".to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The address to which unencrypted bytes for this host go.
    pub(super) fn addr(&self, host: &str) -> Result<SocketAddr, String> {
        if let Some(addr) = self.connect_to {
            return Ok(addr);
        }
        let mut addrs = self.addrs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addr) = addrs.get(host) {
            return Ok(*addr);
        }
        let port = if self.is_https { 443 } else { 80 };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, digits)) if !digits.ends_with(']') => {
                (name, digits.parse().map_err(|_| format!("no port: {digits}"))?)
            }
            _ => (host, port),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let mut found = (name, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
        let addr = found.next().ok_or_else(|| format!("{host} has no address"))?;
        let addr = if self.is_https { tunnel::open(name, addr)? } else { addr };
        addrs.insert(host.to_owned(), addr);
        Ok(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_in_the_path_or_in_the_host() {
        let check = |url: &str, expected: [&str; 5]| {
            let values = Endpoint::parse(url, Credentials::emulator()).unwrap().values();
            let got =
                ["host", "base", "url", "secondary-host", "secondary-base"].map(|name| values[name].as_str());
            assert_eq!(got, expected);
        };
        check(
            "http://127.0.0.1:10002/acc",
            ["127.0.0.1:10002", "/acc", "http://127.0.0.1:10002/acc", "127.0.0.1:10002", "/acc-secondary"],
        );
        check(
            "https://acc.table.core.windows.net/",
            [
                "acc.table.core.windows.net",
                "",
                "https://acc.table.core.windows.net",
                "acc-secondary.table.core.windows.net",
                "",
            ],
        );
        for url in ["127.0.0.1:10002/acc", "ftp://host/acc", "http://", "http:///acc"] {
            assert!(Endpoint::parse(url, Credentials::emulator()).is_err(), "{url}");
        }
    }
}
