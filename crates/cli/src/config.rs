//! The settings of `serve`: flags win over the environment, the environment over the file, the file over defaults.
//!
//! Promises: settings that would be unsafe together are refused before anything is opened, and no error message
//! contains a key. Where accounts come from is the business of `account_source`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tls::TlsSource;

use crate::LOCATION_DEFAULT;
use crate::account_source::{self, AccountRules, AccountSource};
use crate::accounts_file::AccountEntry;
use crate::args::ServeFlags;

/// The file that `--config` names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    location: Option<PathBuf>,
    profile: Option<String>,
    table_host: Option<String>,
    table_port: Option<u16>,
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
    pub listen: SocketAddr,
    pub host_suffixes: Vec<String>,
    pub tls: Option<TlsSource>,
    pub oauth: Option<Oauth>,
    pub accounts: AccountSource,
    pub is_behind_tls_proxy: bool,
    pub silent: bool,
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
    let host = flags.table_host.or(file.table_host).unwrap_or_else(|| "127.0.0.1".into());
    let listen = resolve(&host, flags.table_port.or(file.table_port).unwrap_or(protocol::table::KIND.port))?;
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
                suffixes.flat_map(|suffix| [suffix.clone(), format!("*.{suffix}")]).chain([host]).collect();
            Some(TlsSource::LocalCa { directory: directory.join("tls"), hosts })
        }
        (None, false, Some(tls)) => Some(certificate(tls.cert, tls.key, tls.password)?),
        (None, false, None) => None,
    };
    let oauth = match (flags.oauth.as_deref(), file.oauth) {
        (Some("basic"), _) if is_server || !listen.ip().is_loopback() => {
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
    } else if !listen.ip().is_loopback() && !flags.allow_well_known_key {
        Some(format!(
            "anyone who can reach {} could use the emulator's published key: set {}, listen on 127.0.0.1, \
             or say --allow-well-known-key",
            listen.ip(),
            account_source::OWN_VARIABLE
        ))
    } else {
        None
    };
    let rules = AccountRules { is_server, well_known_refusal };
    let accounts = AccountSource::new(&file.accounts, location.clone(), rules)?;

    let is_behind_proxy = flags.behind_tls_proxy || file.behind_tls_proxy;
    if is_server && tls.is_none() && !listen.ip().is_loopback() && !is_behind_proxy {
        return Err(format!(
            "the server profile does not speak plain HTTP on {}: give --cert and --key, or say --behind-tls-proxy",
            listen.ip()
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
