//! The settings of `serve`: flags win over the environment, the environment over the file, the file over defaults.
//!
//! Promises: settings that would be unsafe together are refused before anything is opened, and no error message
//! contains a key. Where accounts come from is the business of `account_source`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use blobs::BlobOptions;
use log::LevelFilter;
use observe::{Prices, Targets};
use protocol::auth::ServiceKind;
use serde::Deserialize;
use server::{CopySources, LogRules, ScanRule};
use tls::TlsSource;

use crate::account_source::{self, AccountRules, AccountSource};
use crate::accounts_file::AccountEntry;
use crate::args::ServeFlags;
use crate::logger::{LogFormat, LogSettings};
use crate::place::{EngineAddress, StoreChoice};
use crate::{contents_place, prices, random, rehearsal};

const HOST_DEFAULT: &str = "127.0.0.1";

/// The file that `--config` names.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    location: Option<PathBuf>,
    engine: Option<String>,
    accounts_key: Option<String>,
    profile: Option<String>,
    services: Option<Vec<String>>,
    table_host: Option<String>,
    table_port: Option<u16>,
    queue_host: Option<String>,
    queue_port: Option<u16>,
    blob_host: Option<String>,
    blob_port: Option<u16>,
    contents: Option<String>,
    #[serde(default)]
    blob_versions: bool,
    container_retention_days: Option<u16>,
    rehydrate_after_seconds: Option<u64>,
    #[serde(default)]
    copy_from: Vec<String>,
    admin_host: Option<String>,
    admin_port: Option<u16>,
    admin: Option<bool>,
    log: Option<String>,
    log_level: Option<String>,
    /// One request in so many.
    access_log: Option<u64>,
    slow_ms: Option<u64>,
    throttle: Option<String>,
    fail_on_scan: Option<String>,
    prices: Option<PathBuf>,
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

/// What the file says about where the store is.
#[derive(Default)]
pub struct FileStore {
    pub location: Option<PathBuf>,
    pub engine: Option<String>,
    pub accounts_key: Option<String>,
}

/// Where the data of a server is.
pub enum ServedStore {
    Memory,
    Directory(PathBuf),
    Engine(EngineAddress),
}

/// Everything `serve` needs, checked.
pub struct Settings {
    pub store: ServedStore,
    /// Which services to start, and where; at least one.
    pub listen: Vec<Listen>,
    pub host_suffixes: Vec<String>,
    pub tls: Option<TlsSource>,
    pub oauth: Option<Oauth>,
    pub accounts: AccountSource,
    pub is_behind_tls_proxy: bool,
    pub admin: Option<AdminListen>,
    pub log: LogSettings,
    /// Scalability targets to enforce.
    pub targets: Option<Targets>,
    /// Which scans to refuse.
    pub scan_rule: Option<ScanRule>,
    pub prices: Prices,
    pub blobs: BlobSettings,
    pub silent: bool,
}

/// What only the Blob service needs.
pub struct BlobSettings {
    /// Where contents are, if not in the data directory.
    pub place: Option<String>,
    pub options: BlobOptions,
    /// Other servers that copies may come from.
    pub sources: Option<CopySources>,
    /// Nobody asked for it or against it, and there is no place for contents.
    pub is_left_out: bool,
}

/// Where the admin port is.
#[derive(Clone)]
pub struct AdminListen {
    pub address: SocketAddr,
    /// Somebody chose the port, so it must be free.
    pub is_chosen: bool,
    /// Needed for everything but health checks; `None` where only this machine reaches the port.
    pub token: Option<String>,
    /// Nobody else knows the token yet.
    pub is_token_new: bool,
}

impl AdminListen {
    /// On this machine nobody listens in, and a browser trusts the address without a certificate.
    pub fn wants_tls(&self) -> bool {
        !self.address.ip().is_loopback()
    }
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
    Blob,
}

impl ServiceName {
    /// All of them are started when nobody says which.
    pub const ALL: [ServiceName; 3] = [ServiceName::Table, ServiceName::Queue, ServiceName::Blob];

    pub fn kind(self) -> &'static ServiceKind {
        match self {
            ServiceName::Table => &protocol::table::KIND,
            ServiceName::Queue => &protocol::queue::KIND,
            ServiceName::Blob => &protocol::blob::KIND,
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
    let file_store =
        FileStore { location: file.location, engine: file.engine, accounts_key: file.accounts_key };
    let store = match flags.in_memory {
        true => ServedStore::Memory,
        false => match StoreChoice::choose(flags.location, flags.engine, file_store)? {
            StoreChoice::Directory(location) => ServedStore::Directory(location),
            StoreChoice::Engine(address) => ServedStore::Engine(address),
        },
    };
    let contents = flags.contents.or(file.contents);
    let chosen = match (flags.services, file.services) {
        (Some(list), _) => Some(chosen_services(list.split(','))?),
        (None, Some(list)) => Some(chosen_services(list.iter().map(String::as_str))?),
        (None, None) => None,
    };
    // Servers on one engine share no directory for the contents of blobs.
    let lacks_contents = matches!(store, ServedStore::Engine(_)) && contents.is_none();
    let is_left_out = lacks_contents && chosen.is_none();
    let services = match chosen {
        Some(chosen) if lacks_contents && chosen.contains(&ServiceName::Blob) => {
            return Err(
                "with an engine elsewhere, the Blob service keeps contents in an object store: name it with --contents \
                 s3://BUCKET/PREFIX, or do without the service with --services table,queue"
                    .into(),
            );
        }
        Some(chosen) => chosen,
        None if is_left_out => vec![ServiceName::Table, ServiceName::Queue],
        None => ServiceName::ALL.to_vec(),
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
            ServiceName::Blob => {
                (flags.blob_host.as_ref().or(file.blob_host.as_ref()), flags.blob_port.or(file.blob_port))
            }
        };
        let host = host.map_or(HOST_DEFAULT, String::as_str);
        let address = resolve(host, port.unwrap_or(service.kind().port))?;
        listen.push(Listen { service, address });
        hosts.push(host.to_owned());
    }
    let blobs = blob_settings(
        contents,
        BlobOptions {
            keeps_versions: flags.blob_versions || file.blob_versions,
            container_retention_days: flags.container_retention.or(file.container_retention_days),
            rehydrates_after: rehydrate_after(flags.rehydrate_after.or(file.rehydrate_after_seconds))?,
        },
        [flags.copy_from, file.copy_from].concat(),
        flags.in_memory,
        is_left_out,
    )?;
    let is_admin_wanted = !flags.no_admin && file.admin.unwrap_or(true);
    let admin_host = flags.admin_host.or(file.admin_host);
    let admin =
        is_admin_wanted.then(|| admin_listen(admin_host.as_deref(), flags.admin_port.or(file.admin_port)));
    let admin = admin.transpose()?;
    // A certificate of our own is for the admin port, too.
    hosts.extend(admin.is_some().then_some(admin_host).flatten());
    let log = log_settings(
        flags.log.or(file.log).as_deref(),
        flags.log_level.or(file.log_level).as_deref(),
        flags.silent,
        LogRules {
            access_one_in: flags.access_log.or(file.access_log),
            slow: flags.slow_ms.or(file.slow_ms).map(Duration::from_millis),
        },
    )?;
    let throttle = flags.throttle.or(file.throttle);
    let targets = throttle.as_deref().map(rehearsal::read_targets).transpose()?;
    let fail_on_scan = flags.fail_on_scan.or(file.fail_on_scan);
    let scan_rule = fail_on_scan.as_deref().map(rehearsal::read_scan_rule).transpose()?;
    let prices = flags.prices.or(file.prices).map(|path| prices::read(&path)).transpose()?;
    // What must not be reachable from elsewhere must not be so through any of the services, nor through the admin port,
    // which leads to them.
    let addresses = listen.iter().map(|listen| listen.address).chain(admin.iter().map(|admin| admin.address));
    let far = addresses.map(|address| address.ip()).find(|address| !address.is_loopback());
    let location = match &store {
        ServedStore::Directory(location) => Some(location.clone()),
        ServedStore::Memory | ServedStore::Engine(_) => None,
    };

    let tls = match (flags.cert, flags.https, file.tls) {
        (Some(_), true, _) => return Err("--https makes its own certificate: leave --cert out".into()),
        (Some(cert), false, _) => Some(certificate(cert, flags.key, flags.pwd)?),
        (None, true, _) => {
            let directory = location.as_deref().ok_or(match store {
                ServedStore::Engine(_) => {
                    "--https keeps its certificate in a data directory, and with an engine elsewhere there is none: give \
                     --cert and --key"
                }
                _ => "--https keeps its certificate on disk: leave --in-memory out",
            })?;
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
    // An engine elsewhere may have some, which is known when it is open.
    if !matches!(store, ServedStore::Engine(_)) {
        account_source::require_any(&accounts.read(None)?)?;
    }
    let host_suffixes = [flags.host_suffixes, file.host_suffixes].concat();
    let silent = flags.silent;
    Ok(Settings {
        store,
        listen,
        host_suffixes,
        tls,
        oauth,
        accounts,
        is_behind_tls_proxy: is_behind_proxy,
        admin,
        log,
        targets,
        scan_rule,
        prices: prices.unwrap_or_default(),
        blobs,
        silent,
    })
}

/// As long as the live service keeps a deleted container at most.
const CONTAINER_RETENTION_DAYS_MAX: u16 = 365;
/// A year. The live service needs hours.
const REHYDRATE_SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

/// After so many seconds a blob has left the archive.
fn rehydrate_after(seconds: Option<u64>) -> Result<Option<Duration>, String> {
    if seconds.is_some_and(|seconds| seconds > REHYDRATE_SECONDS_MAX) {
        return Err(format!("--rehydrate-after takes up to {REHYDRATE_SECONDS_MAX} seconds"));
    }
    Ok(seconds.map(Duration::from_secs))
}

fn blob_settings(
    place: Option<String>,
    options: BlobOptions,
    copy_from: Vec<String>,
    in_memory: bool,
    is_left_out: bool,
) -> Result<BlobSettings, String> {
    if let Some(place) = &place {
        if in_memory {
            return Err("--in-memory keeps nothing anywhere, so --contents makes no sense beside it".into());
        }
        contents_place::check(place)?;
    }
    if options
        .container_retention_days
        .is_some_and(|days| !(1..=CONTAINER_RETENTION_DAYS_MAX).contains(&days))
    {
        return Err(format!("--container-retention takes 1 to {CONTAINER_RETENTION_DAYS_MAX} days"));
    }
    let sources = (!copy_from.is_empty()).then(|| CopySources::new(copy_from.iter().map(String::as_str)));
    Ok(BlobSettings { place, options, sources: sources.transpose()?, is_left_out })
}

/// The environment variable for a token that stays the same over restarts.
const TOKEN_VARIABLE: &str = "LAZULITE_ADMIN_TOKEN";
const TOKEN_BYTES_MIN: usize = 16;
const ADMIN_PORT_DEFAULT: u16 = 10003;

fn admin_listen(host: Option<&str>, port: Option<u16>) -> Result<AdminListen, String> {
    let address = resolve(host.unwrap_or(HOST_DEFAULT), port.unwrap_or(ADMIN_PORT_DEFAULT))?;
    let mut is_token_new = false;
    let token = match std::env::var(TOKEN_VARIABLE) {
        Ok(token) => {
            let is_usable = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(is_usable) {
                return Err(format!(
                    "{TOKEN_VARIABLE} must have at least {TOKEN_BYTES_MIN} letters, digits, or any of - . _ ~"
                ));
            }
            Some(token)
        }
        Err(std::env::VarError::NotUnicode(_)) => return Err(format!("{TOKEN_VARIABLE} is not a text")),
        Err(_) if address.ip().is_loopback() => None,
        Err(_) => {
            is_token_new = true;
            let random: [u8; 24] = random::bytes()?;
            Some(random.iter().map(|byte| format!("{byte:02x}")).collect())
        }
    };
    Ok(AdminListen { address, is_chosen: port.is_some() || host.is_some(), token, is_token_new })
}

fn log_settings(
    format: Option<&str>,
    level: Option<&str>,
    silent: bool,
    rules: LogRules,
) -> Result<LogSettings, String> {
    let format = match format {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => return Err(format!("there is no log format '{other}': choose text or json")),
    };
    let level = match level {
        None if silent => LevelFilter::Error,
        None | Some("warn") => LevelFilter::Warn,
        Some("error") => LevelFilter::Error,
        Some("info") => LevelFilter::Info,
        Some("debug") => LevelFilter::Debug,
        Some(other) => {
            return Err(format!("there is no log level '{other}': choose error, warn, info or debug"));
        }
    };
    Ok(LogSettings { format, level, rules })
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

/// What the file says about where the store is, for commands that need nothing else of it.
pub fn read_store(path: &Path) -> Result<FileStore, String> {
    let File { location, engine, accounts_key, .. } = read_file(path)?;
    Ok(FileStore { location, engine, accounts_key })
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
