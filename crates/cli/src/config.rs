//! The settings of `serve`: flags win over the environment, the environment over the file, the file over defaults.
//!
//! Promises: settings that would be unsafe together are refused before anything is opened, and no error message
//! contains a key. Where accounts come from is the business of `account_source`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use protocol::auth::ServiceKind;
use serde::Deserialize;
use tls::TlsSource;

use crate::LOCATION_DEFAULT;
use crate::account_source::{self, AccountRules, AccountSource};
use crate::accounts_file::AccountEntry;
use crate::args::ServeFlags;

const HOST_DEFAULT: &str = "127.0.0.1";

/// The file that `--config` names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    location: Option<PathBuf>,
    profile: Option<String>,
    services: Option<Vec<String>>,
    table_host: Option<String>,
    table_port: Option<u16>,
    queue_host: Option<String>,
    queue_port: Option<u16>,
    #[serde(default)]
    host_suffixes: Vec<String>,
    #[serde(default)]
    behind_tls_proxy: bool,
    tls: Option<TlsFile>,
    oauth: Option<OauthFile>,
    #[serde(default, rename = "account")]
    accounts: Vec<AccountEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TlsFile {
    cert: PathBuf,
    key: Option<PathBuf>,
    password: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OauthFile {
    issuer: String,
    jwks: String,
    #[serde(default)]
    audiences: Vec<String>,
}

/// Everything `serve` needs, checked.
pub struct Settings {
    /// `None` keeps the data in memory.
    pub location: Option<PathBuf>,
    /// Which services to start, and where; at least one.
    pub listen: Vec<Listen>,
    pub host_suffixes: Vec<String>,
    pub tls: Option<TlsSource>,
    pub oauth: Option<Oauth>,
    pub accounts: AccountSource,
    pub is_behind_tls_proxy: bool,
    pub silent: bool,
}

/// Where a service listens.
#[derive(Clone, Copy)]
pub struct Listen {
    pub service: ServiceName,
    pub address: SocketAddr,
}

/// A service that can be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceName {
    Table,
    Queue,
}

impl ServiceName {
    pub const ALL: [ServiceName; 2] = [ServiceName::Table, ServiceName::Queue];

    pub fn kind(self) -> &'static ServiceKind {
        match self {
            ServiceName::Table => &protocol::table::KIND,
            ServiceName::Queue => &protocol::queue::KIND,
        }
    }

    /// As in `--services`, and in front of `-host` and `-port`.
    pub fn label(self) -> &'static str {
        self.kind().label
    }
}

/// Which bearer tokens to accept.
pub enum Oauth {
    /// Any token that names Azure as its issuer; signatures are not checked.
    Basic,
    /// `jwks` is a file or an http(s) URL.
    Issuer { issuer: String, jwks: String, audiences: Vec<String> },
}

pub fn gather(flags: ServeFlags) -> Result<Settings, String> {
    let file = match &flags.config {
        Some(path) => read_file(path)?,
        None => File::default(),
    };
    let is_server = match flags.profile.or(file.profile).as_deref() {
        None | Some("emulator") => false,
        Some("server") => true,
        Some(other) => return Err(format!("there is no profile '{other}': choose emulator or server")),
    };
    let services = match flags.services {
        Some(list) => chosen_services(list.split(','))?,
        None => match &file.services {
            Some(list) => chosen_services(list.iter().map(String::as_str))?,
            None => ServiceName::ALL.to_vec(),
        },
    };
    let mut hosts = Vec::new();
    let mut listen = Vec::new();
    for service in services {
        let (host, port) = match service {
            ServiceName::Table => {
                (flags.table_host.as_ref().or(file.table_host.as_ref()), flags.table_port.or(file.table_port))
            }
            ServiceName::Queue => {
                (flags.queue_host.as_ref().or(file.queue_host.as_ref()), flags.queue_port.or(file.queue_port))
            }
        };
        let host = host.map_or(HOST_DEFAULT, String::as_str);
        let address = resolve(host, port.unwrap_or(service.kind().port))?;
        listen.push(Listen { service, address });
        hosts.push(host.to_owned());
    }
    // What must not be reachable from elsewhere must not be so through any of the services.
    let far = listen.iter().map(|listen| listen.address.ip()).find(|address| !address.is_loopback());
    let location = (!flags.in_memory)
        .then(|| flags.location.or(file.location).unwrap_or_else(|| Path::new(LOCATION_DEFAULT).to_owned()));

    let tls = match (flags.cert, flags.https, file.tls) {
        (Some(_), true, _) => return Err("--https makes its own certificate: leave --cert out".into()),
        (Some(cert), false, _) => Some(certificate(cert, flags.key, flags.pwd)?),
        (None, true, _) => {
            let directory =
                location.as_deref().ok_or("--https keeps its certificate on disk: leave --in-memory out")?;
            let suffixes = flags.host_suffixes.iter().chain(&file.host_suffixes);
            let hosts =
                suffixes.flat_map(|suffix| [suffix.clone(), format!("*.{suffix}")]).chain(hosts).collect();
            Some(TlsSource::LocalCa { directory: directory.join("tls"), hosts })
        }
        (None, false, Some(tls)) => Some(certificate(tls.cert, tls.key, tls.password)?),
        (None, false, None) => None,
    };
    let oauth = match (flags.oauth.as_deref(), file.oauth) {
        (Some("basic"), _) if is_server || far.is_some() => {
            return Err(
                "--oauth basic checks no signature: it is for the emulator profile on a loopback address"
                    .into(),
            );
        }
        (Some("basic"), _) => Some(Oauth::Basic),
        (Some(other), _) => {
            return Err(format!(
                "--oauth takes basic, not '{other}'; an issuer belongs in [oauth] of the configuration file"
            ));
        }
        // Anyone on the network path could replace the keys, and so sign tokens in the issuer's name.
        (None, Some(OauthFile { jwks, .. })) if is_server && is_plain_and_far(&jwks) => {
            return Err(format!("the server profile does not fetch keys over plain HTTP: {jwks}"));
        }
        (None, Some(OauthFile { issuer, jwks, audiences })) => {
            Some(Oauth::Issuer { issuer, jwks, audiences })
        }
        (None, None) => None,
    };
    let well_known_refusal = if is_server {
        Some("the server profile refuses the emulator's published key: everybody knows it".to_owned())
    } else {
        far.filter(|_| !flags.allow_well_known_key).map(|far| {
            format!(
                "anyone who can reach {far} could use the emulator's published key: set {}, listen on 127.0.0.1, \
                 or say --allow-well-known-key",
                account_source::OWN_VARIABLE
            )
        })
    };
    let rules = AccountRules { is_server, well_known_refusal };
    let accounts = AccountSource::new(&file.accounts, location.clone(), rules)?;

    let is_behind_proxy = flags.behind_tls_proxy || file.behind_tls_proxy;
    if let Some(far) = far.filter(|_| is_server && tls.is_none() && !is_behind_proxy) {
        return Err(format!(
            "the server profile does not speak plain HTTP on {far}: give --cert and --key, or say --behind-tls-proxy"
        ));
    }
    if accounts.read(None)?.names().is_empty() {
        return Err("the server profile needs an account: 'lazulite account add NAME' makes one".into());
    }
    let host_suffixes = [flags.host_suffixes, file.host_suffixes].concat();
    let silent = flags.silent;
    Ok(Settings {
        location,
        listen,
        host_suffixes,
        tls,
        oauth,
        accounts,
        is_behind_tls_proxy: is_behind_proxy,
        silent,
    })
}

fn chosen_services<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<ServiceName>, String> {
    let mut services = Vec::new();
    for name in names.map(str::trim) {
        let named = ServiceName::ALL.into_iter().find(|service| service.label() == name);
        let service = named.ok_or_else(|| {
            let all = ServiceName::ALL.map(ServiceName::label).join(", ");
            format!("there is no service '{name}': choose among {all}")
        })?;
        if !services.contains(&service) {
            services.push(service);
        }
    }
    // Always in the same order, whatever the order of the names.
    services.sort_by_key(|service| ServiceName::ALL.iter().position(|other| other == service));
    if services.is_empty() { Err("--services names no service".into()) } else { Ok(services) }
}

fn is_plain_and_far(url: &str) -> bool {
    let Some(address) = url.strip_prefix("http://") else { return false };
    !["localhost", "127.0.0.1", "[::1]"].iter().any(|near| {
        address.strip_prefix(near).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    })
}

fn read_file(path: &Path) -> Result<File, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    // Only the first line of the parser's message: the other lines quote the file, which may contain keys.
    toml::from_str(&text).map_err(|error| format!("{}: {}", path.display(), error.message()))
}

fn certificate(cert: PathBuf, key: Option<PathBuf>, password: Option<String>) -> Result<TlsSource, String> {
    match (key, password) {
        (Some(key), None) => Ok(TlsSource::Pem { cert, key }),
        (None, Some(password)) => Ok(TlsSource::Pfx { file: cert, password }),
        (None, None) => Err("--cert needs --key (PEM), or --pwd (PFX)".into()),
        (Some(_), Some(_)) => {
            Err("--key goes with a PEM certificate and --pwd with a PFX file: give one of them".into())
        }
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let addresses = (host, port).to_socket_addrs();
    let first = addresses.ok().and_then(|mut addresses| addresses.next());
    first.ok_or_else(|| format!("cannot listen on '{host}': it does not resolve to an address"))
}
