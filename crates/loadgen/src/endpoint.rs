//! The server to measure and the account to use: an address, an account name, its key.
//!
//! Promises: a connection string or URL that cannot be measured is refused with one sentence. Plain HTTP only, so that
//! the generator does not measure its own encryption.

use std::net::{SocketAddr, ToSocketAddrs};

/// The development account and its published key, the same in every emulator. They protect nothing.
pub const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";
pub const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The services that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeasuredService {
    Table,
    Queue,
}

impl MeasuredService {
    /// As in `TableEndpoint`, and in `account.table.core.windows.net`.
    fn label(self) -> &'static str {
        match self {
            MeasuredService::Table => "Table",
            MeasuredService::Queue => "Queue",
        }
    }

    /// The endpoint of an emulator on this machine.
    pub fn development_url(self) -> &'static str {
        match self {
            MeasuredService::Table => "http://127.0.0.1:10002/devstoreaccount1",
            MeasuredService::Queue => "http://127.0.0.1:10001/devstoreaccount1",
        }
    }
}

/// No `Debug`, so that the key is never printed.
#[derive(Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub account: String,
    /// In Base64.
    pub key: String,
    /// The value of the `Host` header.
    pub host: String,
    /// The start of every path: `/devstoreaccount1`, or empty where the host names the account.
    pub base_path: String,
}

impl Endpoint {
    /// The development account of a server on this machine.
    pub fn development(address: SocketAddr) -> Endpoint {
        Endpoint {
            address,
            account: DEVELOPMENT_ACCOUNT.to_owned(),
            key: DEVELOPMENT_KEY.to_owned(),
            host: address.to_string(),
            base_path: format!("/{DEVELOPMENT_ACCOUNT}"),
        }
    }

    /// Reads `DefaultEndpointsProtocol=http;AccountName=…;AccountKey=…;TableEndpoint=…;QueueEndpoint=…;`, the form that
    /// SDKs take.
    pub fn from_connection_string(text: &str, service: MeasuredService) -> Result<Endpoint, String> {
        let parts = text.split(';').filter(|part| !part.trim().is_empty());
        let mut fields = Vec::new();
        for part in parts {
            let (name, value) =
                part.split_once('=').ok_or("a connection string has the form Name=Value;Name=Value;…")?;
            fields.push((name.trim().to_ascii_lowercase(), value.trim()));
        }
        let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| *value);
        if field("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Endpoint::from_url(service.development_url(), DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY);
        }
        let account = field("accountname").ok_or("the connection string has no AccountName")?;
        let key = field("accountkey").ok_or("the connection string has no AccountKey")?;
        let name = format!("{}Endpoint", service.label());
        let url = match field(&name.to_ascii_lowercase()) {
            Some(url) => url.to_owned(),
            None => {
                let protocol = field("defaultendpointsprotocol").unwrap_or("https");
                let none = || format!("the connection string has no {name}");
                let suffix = field("endpointsuffix").ok_or_else(none)?;
                format!("{protocol}://{account}.{}.{suffix}", service.label().to_ascii_lowercase())
            }
        };
        Endpoint::from_url(&url, account, key)
    }

    /// Reads `http://host:port/account`, or `http://account.host`.
    pub fn from_url(url: &str, account: &str, key: &str) -> Result<Endpoint, String> {
        if url.len() >= 8 && url[..8].eq_ignore_ascii_case("https://") {
            return Err(format!(
                "{url} is https, which the benchmark does not speak: give it an http endpoint"
            ));
        }
        let rest =
            url.strip_prefix("http://").ok_or_else(|| format!("'{url}' does not begin with http://"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = if has_port { host.to_owned() } else { format!("{host}:80") };
        let mut addresses =
            with_port.to_socket_addrs().map_err(|error| format!("no host {host}: {error}"))?;
        let address = addresses.next().ok_or_else(|| format!("no host {host}"))?;
        let path = path.trim_end_matches('/');
        Ok(Endpoint {
            address,
            account: account.to_owned(),
            key: key.to_owned(),
            host: host.to_owned(),
            base_path: if path.is_empty() { String::new() } else { format!("/{path}") },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, service: MeasuredService, expected: (&str, &str, &str, &str)) {
        let endpoint = Endpoint::from_connection_string(text, service).unwrap();
        let address = endpoint.address.to_string();
        let found = (
            address.as_str(),
            endpoint.account.as_str(),
            endpoint.host.as_str(),
            endpoint.base_path.as_str(),
        );
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn connection_strings_name_where_and_who() {
        check(
            "UseDevelopmentStorage=true",
            MeasuredService::Table,
            ("127.0.0.1:10002", "devstoreaccount1", "127.0.0.1:10002", "/devstoreaccount1"),
        );
        check(
            "AccountName=acme;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:7/acme/;QueueEndpoint=http://127.0.0.1:8/acme",
            MeasuredService::Table,
            ("127.0.0.1:7", "acme", "127.0.0.1:7", "/acme"),
        );
        check(
            "accountname=acme; AccountKey=a2V5==;TableEndpoint=http://127.0.0.1",
            MeasuredService::Table,
            ("127.0.0.1:80", "acme", "127.0.0.1", ""),
        );
        check(
            "UseDevelopmentStorage=true",
            MeasuredService::Queue,
            ("127.0.0.1:10001", "devstoreaccount1", "127.0.0.1:10001", "/devstoreaccount1"),
        );
        check(
            "AccountName=acme;AccountKey=a2V5;TableEndpoint=http://127.0.0.1:7/acme/;QueueEndpoint=http://127.0.0.1:8/acme",
            MeasuredService::Queue,
            ("127.0.0.1:8", "acme", "127.0.0.1:8", "/acme"),
        );
    }

    #[test]
    fn what_cannot_be_measured_gets_a_sentence() {
        for (text, part) in [
            ("AccountName=a;AccountKey=k;TableEndpoint=https://127.0.0.1", "https"),
            ("AccountName=a;AccountKey=k;EndpointSuffix=core.windows.net", "https"),
            ("AccountName=a;AccountKey=k", "no TableEndpoint"),
            ("AccountKey=k", "no AccountName"),
            ("AccountName=a", "no AccountKey"),
            ("rubbish", "Name=Value"),
            ("AccountName=a;AccountKey=k;TableEndpoint=127.0.0.1:1", "does not begin with http://"),
        ] {
            let parsed = Endpoint::from_connection_string(text, MeasuredService::Table);
            let Err(sentence) = parsed else { panic!("{text} was taken") };
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
