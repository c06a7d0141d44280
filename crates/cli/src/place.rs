//! Where a store is: in a data directory, or in an engine elsewhere.
//!
//! Promises: flags win over the environment, the environment over the configuration file, that one over the default. A URL,
//! which may hold a password, is in no message; [`EngineAddress::name`] is what people see of it.

use std::path::{Path, PathBuf};

use crate::config::{self, FileStore};
use crate::seal::AccountsKey;

/// Arguments are visible to everybody on the machine, the environment and files are not.
pub const ENGINE_VARIABLE: &str = "LAZULITE_ENGINE";
pub const KEY_VARIABLE: &str = "LAZULITE_ACCOUNTS_KEY";
pub const LOCATION_DEFAULT: &str = "lazulite-data";
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The options of every command that works on a store.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct StoreFlags {
    pub location: Option<PathBuf>,
    pub engine: Option<String>,
    pub config: Option<PathBuf>,
}

pub enum StoreChoice {
    Directory(PathBuf),
    Engine(EngineAddress),
}

/// An engine that other processes use too.
#[derive(Clone)]
pub struct EngineAddress {
    url: String,
    /// Seals the accounts that are kept there.
    pub accounts_key: Option<AccountsKey>,
}

impl StoreChoice {
    pub fn of(flags: StoreFlags) -> Result<StoreChoice, String> {
        let file = flags.config.as_deref().map(config::read_store).transpose()?;
        StoreChoice::choose(flags.location, flags.engine, file.unwrap_or_default())
    }

    pub fn choose(
        location: Option<PathBuf>,
        engine: Option<String>,
        file: FileStore,
    ) -> Result<StoreChoice, String> {
        let FileStore { location: file_location, engine: file_engine, accounts_key } = file;
        let engine = match (location, engine) {
            (Some(_), Some(_)) => return Err(both("--location", "--engine")),
            (Some(location), None) => return Ok(StoreChoice::Directory(location)),
            (None, Some(engine)) => Some((engine, "--engine")),
            (None, None) => from_environment(ENGINE_VARIABLE).map(|engine| (engine, ENGINE_VARIABLE)),
        };
        let (url, source) = match (engine, file_location, file_engine) {
            (Some(engine), _, _) => engine,
            (None, Some(_), Some(_)) => return Err(both("location", "engine")),
            (None, None, Some(engine)) => (engine, "engine in the configuration file"),
            (None, Some(location), None) => return Ok(StoreChoice::Directory(location)),
            (None, None, None) => return Ok(StoreChoice::Directory(Path::new(LOCATION_DEFAULT).to_owned())),
        };
        EngineAddress::read(url, source, accounts_key).map(StoreChoice::Engine)
    }

    /// For people.
    pub fn name(&self) -> String {
        match self {
            StoreChoice::Directory(location) => location.display().to_string(),
            StoreChoice::Engine(address) => address.name(),
        }
    }
}

fn both(one: &str, other: &str) -> String {
    format!("{one} names a directory of this machine and {other} an engine elsewhere: give one of them")
}

/// Whether it is the URL of an engine and not the path of a directory.
pub fn is_url(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

impl EngineAddress {
    /// `source` is where the URL comes from.
    pub fn read(
        url: String,
        source: &str,
        file_accounts_key: Option<String>,
    ) -> Result<EngineAddress, String> {
        if !is_url(&url) {
            return Err(format!(
                "{source} takes the URL of a PostgreSQL database: postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE"
            ));
        }
        let key = match from_environment(KEY_VARIABLE) {
            Some(key) => Some((key, KEY_VARIABLE)),
            None => file_accounts_key.map(|key| (key, "accounts-key in the configuration file")),
        };
        let wrong = |source: &str| {
            format!("{source} must be 32 random bytes in Base64, as 'openssl rand -base64 32' prints them")
        };
        let accounts_key = key.map(|(key, source)| AccountsKey::parse(&key).ok_or_else(|| wrong(source)));
        Ok(EngineAddress { url, accounts_key: accounts_key.transpose()? })
    }

    /// Holds secrets.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The hosts and the database, without the user, the password and parameters.
    pub fn name(&self) -> String {
        let (head, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let after_scheme = head.split_once("://").map_or("", |(_, rest)| rest);
        let place = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, place)| place);
        // A question mark may belong to a password that nobody encoded. Then what comes before it is no host.
        match parameters.contains('@') {
            true => "PostgreSQL".to_owned(),
            false => format!("postgres://{place}"),
        }
    }
}

/// An empty variable counts as none.
fn from_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> EngineAddress {
        EngineAddress { url: url.to_owned(), accounts_key: None }
    }

    #[test]
    fn a_name_shows_hosts_and_no_secret() {
        for (url, name) in [
            ("postgres://u:secret@h1:5432,h2/db", "postgres://h1:5432,h2/db"),
            ("postgresql://u:se/cr@et@h/db?sslmode=require", "postgres://h/db"),
            ("postgres://h/db?user=u&password=secret", "postgres://h/db"),
            ("postgres://u:sec?ret@h/db", "PostgreSQL"),
            ("postgres://h/db?password=sec@ret", "PostgreSQL"),
        ] {
            assert_eq!(address(url).name(), name, "{url}");
        }
    }

    #[test]
    fn a_place_is_named_once() {
        let file = |location: Option<&str>, engine: Option<&str>| FileStore {
            location: location.map(PathBuf::from),
            engine: engine.map(str::to_owned),
            accounts_key: None,
        };
        let choose = |location: Option<&str>, engine: Option<&str>, file| {
            let place = StoreChoice::choose(location.map(PathBuf::from), engine.map(str::to_owned), file);
            place.map(|place| place.name())
        };
        let url = Some("postgres://u:secret@h/db");
        assert_eq!(choose(None, None, file(None, None)).as_deref(), Ok(LOCATION_DEFAULT));
        assert_eq!(choose(None, None, file(Some("d"), None)).as_deref(), Ok("d"));
        assert_eq!(choose(None, None, file(None, url)).as_deref(), Ok("postgres://h/db"));
        assert_eq!(choose(Some("e"), None, file(None, url)).as_deref(), Ok("e"));
        assert_eq!(choose(None, url, file(Some("d"), None)).as_deref(), Ok("postgres://h/db"));
        for wrong in [
            choose(Some("d"), url, file(None, None)),
            choose(None, None, file(Some("d"), url)),
            choose(None, Some("http://u:secret@h"), file(None, None)),
        ] {
            assert!(wrong.is_err_and(|sentence| !sentence.contains("secret")));
        }
    }
}
