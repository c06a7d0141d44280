//! What to serve and how: flags over environment over file over defaults, checked as a whole.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use server::Accounts;
use tls::TlsSource;

use crate::LOCATION_DEFAULT;
use crate::accounts_file::{AccountEntry, AccountsFile};
use crate::args::ServeFlags;

const TABLE_PORT_DEFAULT: u16 = 10002;

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

/// Everything that serving needs to know.
pub struct Settings {
    /// `None`: in memory.
    pub location: Option<PathBuf>,
    pub listen: SocketAddr,
    pub host_suffixes: Vec<String>,
    pub tls: Option<TlsSource>,
    pub oauth: Option<Oauth>,
    pub accounts: AccountSource,
    pub is_behind_tls_proxy: bool,
    pub silent: bool,
}

/// Whose bearer tokens are good.
pub enum Oauth {
    /// Anybody's who claims to be of Azure.
    Basic,
    /// `jwks` is a file or an http(s) URL.
    Issuer { issuer: String, jwks: String, audiences: Vec<String> },
}

/// Where the accounts come from: fixed ones, and those in the data directory, which may change.
#[derive(Clone)]
pub struct AccountSource {
    fixed: Vec<String>,
    pub location: Option<PathBuf>,
    may_be_well_known: bool,
}

impl AccountSource {
    /// What counts now. A name that comes twice counts as its first source says.
    pub fn read(&self) -> Result<Accounts, String> {
        let mut entries = self.fixed.clone();
        if let Some(location) = &self.location {
            entries.extend(AccountsFile::read(location)?.accounts.iter().map(AccountEntry::to_text));
        }
        if self.may_be_well_known && self.fixed.is_empty() {
            entries.push(format!("{}:{}", server::EMULATOR_ACCOUNT, server::EMULATOR_KEY));
        }
        let read = Accounts::read(entries.iter().flat_map(|entry| entry.split(';')));
        read.map_err(|error| {
            match self.location.as_deref().map(AccountsFile::path).filter(|path| path.exists()) {
                Some(path) => format!("{error} (accounts come from {} too)", path.display()),
                None => error,
            }
        })
    }
}

pub fn gather(flags: ServeFlags) -> Result<Settings, String> {
    let file = match &flags.config {
        Some(path) => read_file(path)?,
        None => File::default(),
    };
    let is_server = match flags.profile.or(file.profile).as_deref() {
        None | Some("emulator") => false,
        Some("server") => true,
        Some(other) => return Err(format!("there is no profile '{other}': emulator or server")),
    };
    let host = flags.table_host.or(file.table_host).unwrap_or_else(|| "127.0.0.1".into());
    let listen = resolve(&host, flags.table_port.or(file.table_port).unwrap_or(TABLE_PORT_DEFAULT))?;
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
            return Err(format!("there is no --oauth '{other}': basic, or [oauth] in the file"));
        }
        // Whoever could stand between us and the issuer would be the issuer.
        (None, Some(OauthFile { jwks, .. })) if is_server && is_plain_and_far(&jwks) => {
            return Err(format!("the server profile does not take keys over plain HTTP: {jwks}"));
        }
        (None, Some(OauthFile { issuer, jwks, audiences })) => {
            Some(Oauth::Issuer { issuer, jwks, audiences })
        }
        (None, None) => None,
    };
    let mut fixed: Vec<String> = accounts_of_environment()?.into_iter().collect();
    fixed.extend(file.accounts.iter().map(AccountEntry::to_text));
    let accounts = AccountSource { fixed, location: location.clone(), may_be_well_known: !is_server };

    let is_behind_proxy = flags.behind_tls_proxy || file.behind_tls_proxy;
    if is_server && tls.is_none() && !listen.ip().is_loopback() && !is_behind_proxy {
        return Err(format!(
            "the server profile does not speak plain HTTP on {}: give --cert and --key, or say --behind-tls-proxy",
            listen.ip()
        ));
    }
    let known = accounts.read()?;
    if known.names().is_empty() {
        return Err("the server profile needs an account: 'lazulite account add NAME' makes one".into());
    }
    if known.have_well_known_key() && is_server {
        return Err("the server profile refuses the emulator's published key: everybody knows it".into());
    }
    if known.have_well_known_key() && !listen.ip().is_loopback() && !flags.allow_well_known_key {
        return Err(format!(
            "anyone who can reach {} could use the emulator's published key: set LAZULITE_ACCOUNTS, listen on 127.0.0.1, \
             or say --allow-well-known-key",
            listen.ip()
        ));
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
    // Only the first line of the parser's message: further ones quote the file, which may hold keys.
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

fn accounts_of_environment() -> Result<Option<String>, String> {
    for name in ["LAZULITE_ACCOUNTS", "AZURITE_ACCOUNTS"] {
        if let Ok(text) = std::env::var(name) {
            return match Accounts::parse(&text) {
                Ok(_) => Ok(Some(text)),
                Err(error) => Err(format!("{name}: {error}")),
            };
        }
    }
    Ok(None)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let addresses = (host, port).to_socket_addrs();
    let first = addresses.ok().and_then(|mut addresses| addresses.next());
    first.ok_or_else(|| format!("'{host}' is not an address that can be listened on"))
}
