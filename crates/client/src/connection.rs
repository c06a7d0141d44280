//! Connection strings, and the endpoints and the credential that they name.
//!
//! Promises: parts may come in any order, with names in any case. An error says which part is wrong and never quotes a
//! secret, not even when a key stands where a name belongs.
//! Leaves to others: what is sent to an endpoint (`pipeline`).

use std::fmt;

use http::Uri;
use http::uri::{Authority, Scheme};
use protocol::auth::ServiceKind;

use crate::{Credential, Error};

/// The environment variable that the Azure tools read.
pub const CONNECTION_STRING_VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";

const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
/// The published key of the emulator's account. It is no secret.
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const EMULATOR_PROXY: &str = "http://127.0.0.1";
const ENDPOINT_SUFFIX: &str = "core.windows.net";
const SECONDARY: &str = "-secondary";
/// The second label of the hosts of an account's services.
const SERVICE_LABELS: [&str; 3] = ["table", "queue", "blob"];

/// Every part that a connection string may have. Those of other services are known, so that they are not reported.
const PARTS: [&str; 15] = [
    "AccountName",
    "AccountKey",
    "SharedAccessSignature",
    "DefaultEndpointsProtocol",
    "EndpointSuffix",
    "TableEndpoint",
    "TableSecondaryEndpoint",
    "QueueEndpoint",
    "QueueSecondaryEndpoint",
    "UseDevelopmentStorage",
    "DevelopmentStorageProxyUri",
    "BlobEndpoint",
    "BlobSecondaryEndpoint",
    "FileEndpoint",
    "FileSecondaryEndpoint",
];
/// An unknown part is named in errors only if it cannot be (part of) a key.
const PART_NAME_BYTES_MAX: usize = 32;

/// Where one service of an account is. `http` or `https`, a host, and for emulators the account as the path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    pub scheme: Scheme,
    pub authority: Authority,
    /// Empty, or the account with `/` in front; never ends with `/`.
    pub path: String,
}

impl Endpoint {
    /// `what` names the text in errors. A query is refused, because it would be a secret in the wrong place.
    pub(crate) fn parse(text: &str, what: &str) -> Result<Endpoint, Error> {
        let wrong = |reason: &str| Error::Configuration(format!("{what} {reason}"));
        let text = text.trim();
        let uri: Uri = text.parse().map_err(|_| wrong("is not a URL"))?;
        let scheme = uri.scheme().cloned().filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
        let scheme = scheme.ok_or_else(|| wrong("begins with neither http:// nor https://"))?;
        let authority = uri.authority().cloned().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(|| wrong("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("has a user name in it"));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query: give a shared access signature as a part of its own"));
        }
        Ok(Endpoint { scheme, authority, path: uri.path().trim_end_matches('/').to_owned() })
    }

    /// The account: the path of an emulator's endpoint, the first label of any other host.
    fn account(&self) -> Option<&str> {
        let name = match self.path.rsplit('/').next() {
            Some(segment) if !segment.is_empty() => segment,
            _ => {
                let (label, rest) = self.authority.host().split_once('.')?;
                let is_address = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
                (!is_address).then_some(label)?
            }
        };
        Some(name.strip_suffix(SECONDARY).unwrap_or(name))
    }

    /// Where the account's replica is by convention: `-secondary` after its name, in the path of an emulator or in a host
    /// of the form `account.table.suffix`. Any other host is not asked: `example-secondary.com` may be anybody's.
    pub(crate) fn to_secondary(&self) -> Option<Endpoint> {
        if !self.path.is_empty() {
            return Some(Endpoint { path: format!("{}{SECONDARY}", self.path), ..self.clone() });
        }
        if !self.is_host_style() {
            return None;
        }
        let (label, rest) = self.authority.as_str().split_once('.')?;
        let authority = format!("{label}{SECONDARY}.{rest}").parse().ok()?;
        Some(Endpoint { authority, ..self.clone() })
    }

    /// Whether the host names the account and the service, as it does in Azure: `account.table.core.windows.net`.
    pub(crate) fn is_host_style(&self) -> bool {
        let mut labels = self.authority.host().splitn(3, '.');
        let is_label = |label: Option<&str>| label.is_some_and(|label| !label.is_empty());
        is_label(labels.next())
            && labels
                .next()
                .is_some_and(|service| SERVICE_LABELS.contains(&service.to_ascii_lowercase().as_str()))
            && is_label(labels.next())
    }

    /// Takes the name of a table or queue off the end of the path, if there is one behind the account. `table` is the one
    /// that the signature is for, if it names one.
    pub(crate) fn split_resource(&mut self, table: Option<&str>) -> Option<String> {
        let (account_path, name) = self.path.rsplit_once('/')?;
        let is_resource = self.is_host_style()
            || !account_path.is_empty()
            || table.is_some_and(|table| table.eq_ignore_ascii_case(name));
        if !is_resource {
            return None;
        }
        let (account_path, name) = (account_path.to_owned(), name.to_owned());
        self.path = account_path;
        Some(name)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

/// One service's endpoints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoints {
    pub primary: Endpoint,
    pub secondary: Option<Endpoint>,
}

/// A connection string that has been read: where an account's services are, and how to be allowed in.
///
/// ```
/// use lazulite_client::ConnectionString;
///
/// let connection = ConnectionString::parse("UseDevelopmentStorage=true")?;
/// assert_eq!(connection.table_endpoint().as_deref(), Some("http://127.0.0.1:10002/devstoreaccount1"));
///
/// let wrong = ConnectionString::parse("AccountName=shop;AccountKey=not base64").unwrap_err();
/// assert_eq!(wrong.to_string(), "configuration: the connection string's AccountKey is not Base64");
/// # Ok::<(), lazulite_client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionString {
    table: Option<Endpoints>,
    queue: Option<Endpoints>,
    credential: Credential,
}

impl ConnectionString {
    /// Reads any of the forms that the portal, the tools and the emulators give.
    pub fn parse(text: &str) -> Result<ConnectionString, Error> {
        let parts = Parts::split(text)?;
        if let Some(value) = parts.get("UseDevelopmentStorage") {
            if !value.eq_ignore_ascii_case("true") {
                return Err(wrong("UseDevelopmentStorage is not `true`"));
            }
            return emulator(parts.get("DevelopmentStorageProxyUri").unwrap_or(EMULATOR_PROXY));
        }
        let table = parts.endpoints(&protocol::table::KIND, "TableEndpoint", "TableSecondaryEndpoint")?;
        let queue = parts.endpoints(&protocol::queue::KIND, "QueueEndpoint", "QueueSecondaryEndpoint")?;
        if table.is_none() && queue.is_none() {
            return Err(parts.missing("has neither AccountName nor TableEndpoint nor QueueEndpoint"));
        }
        let credential = match (parts.get("AccountKey"), parts.get("SharedAccessSignature")) {
            (Some(key), _) => {
                let named = [&table, &queue].into_iter().flatten().find_map(|found| found.primary.account());
                let account = parts
                    .get("AccountName")
                    .or(named)
                    .ok_or_else(|| wrong("AccountName is missing, and the endpoint does not tell it"))?;
                Credential::shared_key(account, key).map_err(|_| wrong("AccountKey is not Base64"))?
            }
            (None, Some(signature)) => Credential::sas(signature).map_err(|_| {
                wrong("SharedAccessSignature has no sig, or a character that must be percent-encoded")
            })?,
            (None, None) => return Err(parts.missing("has neither AccountKey nor SharedAccessSignature")),
        };
        Ok(ConnectionString { table, queue, credential })
    }

    /// Reads the connection string in [`CONNECTION_STRING_VARIABLE`].
    pub fn from_env() -> Result<ConnectionString, Error> {
        ConnectionString::from_env_var(CONNECTION_STRING_VARIABLE)
    }

    /// Reads the connection string in this environment variable.
    pub fn from_env_var(name: &str) -> Result<ConnectionString, Error> {
        let text = std::env::var(name)
            .map_err(|_| Error::Configuration(format!("the environment variable {name} is not set")))?;
        ConnectionString::parse(&text).map_err(|error| match error {
            Error::Configuration(reason) => Error::Configuration(format!("in {name}: {reason}")),
            other => other,
        })
    }

    /// Where the Table service is, if the string tells it.
    pub fn table_endpoint(&self) -> Option<String> {
        self.table.as_ref().map(|endpoints| endpoints.primary.to_string())
    }

    /// Where the Queue service is, if the string tells it.
    pub fn queue_endpoint(&self) -> Option<String> {
        self.queue.as_ref().map(|endpoints| endpoints.primary.to_string())
    }

    /// The account key or the shared access signature.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    pub(crate) fn endpoints(&self, kind: &ServiceKind) -> Result<Endpoints, Error> {
        let found = if kind.label == protocol::table::KIND.label { &self.table } else { &self.queue };
        found.clone().ok_or_else(|| wrong(&format!("{}Endpoint is missing", kind.name)))
    }
}

fn wrong(reason: &str) -> Error {
    Error::Configuration(format!("the connection string's {reason}"))
}

fn emulator(proxy: &str) -> Result<ConnectionString, Error> {
    let host = Endpoint::parse(proxy, "the connection string's DevelopmentStorageProxyUri")?;
    let endpoints = |kind: &ServiceKind| -> Result<Endpoints, Error> {
        let authority = format!("{}:{}", host.authority.host(), kind.port).parse();
        let authority = authority.map_err(|_| wrong("DevelopmentStorageProxyUri names no host"))?;
        let primary =
            Endpoint { authority, path: format!("/{EMULATOR_ACCOUNT}"), scheme: host.scheme.clone() };
        Ok(Endpoints { secondary: primary.to_secondary(), primary })
    };
    Ok(ConnectionString {
        table: Some(endpoints(&protocol::table::KIND)?),
        queue: Some(endpoints(&protocol::queue::KIND)?),
        credential: Credential::shared_key(EMULATOR_ACCOUNT, EMULATOR_KEY)?,
    })
}

/// The parts of a connection string that are set.
struct Parts<'a> {
    values: [Option<&'a str>; PARTS.len()],
    /// Names that no connection string has, as far as they can be shown.
    unknown: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Parts<'a>, Error> {
        let mut parts = Parts { values: [None; PARTS.len()], unknown: Vec::new() };
        for (at, part) in text.split(';').enumerate() {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            // The part is counted, not quoted: a key that was pasted alone may stand here.
            let (name, value) = part.split_once('=').ok_or_else(|| {
                Error::Configuration(format!("part {} of the connection string has no `=`", at + 1))
            })?;
            let (name, value) = (name.trim(), value.trim());
            let Some(slot) = PARTS.iter().position(|known| known.eq_ignore_ascii_case(name)) else {
                if name.len() <= PART_NAME_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                    parts.unknown.push(name);
                }
                continue;
            };
            if value.is_empty() {
                return Err(wrong(&format!("{} is empty", PARTS[slot])));
            }
            if parts.values[slot].replace(value).is_some() {
                return Err(wrong(&format!("{} is there twice", PARTS[slot])));
            }
        }
        if parts.values.iter().all(Option::is_none) {
            return Err(parts.missing("is empty or has no known part"));
        }
        Ok(parts)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        PARTS.iter().position(|known| *known == name).and_then(|slot| self.values[slot])
    }

    fn missing(&self, reason: &str) -> Error {
        let mut text = format!("the connection string {reason}");
        if !self.unknown.is_empty() {
            text.push_str(&format!("; it has unknown parts: {}", self.unknown.join(", ")));
        }
        Error::Configuration(text)
    }

    /// The endpoints that are named, or those of the account in Azure.
    fn endpoints(
        &self,
        kind: &ServiceKind,
        primary: &str,
        secondary: &str,
    ) -> Result<Option<Endpoints>, Error> {
        let parse = |name: &str| {
            let text = self.get(name);
            text.map(|text| Endpoint::parse(text, &format!("the connection string's {name}"))).transpose()
        };
        let named_secondary = parse(secondary)?;
        let primary = match (parse(primary)?, self.get("AccountName")) {
            (Some(endpoint), _) => endpoint,
            (None, _) if named_secondary.is_some() => {
                return Err(wrong(&format!("{secondary} needs a {primary}")));
            }
            // Without an account, another service's endpoint says nothing about this one's.
            (None, None) => return Ok(None),
            (None, Some(account)) => self.azure_endpoint(kind, account)?,
        };
        let secondary = named_secondary.or_else(|| primary.to_secondary());
        Ok(Some(Endpoints { primary, secondary }))
    }

    fn azure_endpoint(&self, kind: &ServiceKind, account: &str) -> Result<Endpoint, Error> {
        let scheme = match self.get("DefaultEndpointsProtocol") {
            None => Scheme::HTTPS,
            Some(text) if text.eq_ignore_ascii_case("https") => Scheme::HTTPS,
            Some(text) if text.eq_ignore_ascii_case("http") => Scheme::HTTP,
            Some(_) => return Err(wrong("DefaultEndpointsProtocol is neither http nor https")),
        };
        if !account.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(wrong("AccountName has a character that no account's name has"));
        }
        let suffix = self.get("EndpointSuffix").unwrap_or(ENDPOINT_SUFFIX).trim_matches('.');
        let host = format!("{account}.{}.{suffix}", kind.label);
        let authority = host.parse().map_err(|_| wrong("EndpointSuffix is not part of a host name"))?;
        Ok(Endpoint { scheme, authority, path: String::new() })
    }
}

#[cfg(test)]
mod tests;
