//! The command line as values, and the help text.
//!
//! Promises: `serve` accepts each option as Azurite spells it (`--tablePort`) and in kebab case (`--table-port`), and
//! every mistake gets one sentence. Whether options make sense together is mostly checked by the command they are for.

use std::ffi::OsString;
use std::path::PathBuf;

use ::backup::{LoadSelection, SelectedName};
use lexopt::prelude::*;

use crate::account::AccountCommand;
use crate::advise::AdviseRequest;
use crate::backup::BackupRequest;
use crate::bench::BenchRequest;
use crate::restore::RestoreRequest;
use crate::sas::SasRequest;

/// Slow enough to leave most of a disk's bandwidth to requests.
const BACKUP_RATE_MIB_DEFAULT: u32 = 50;

pub const HELP: &str = "\
Lazulite: a server that speaks the Azure Table, Queue and Blob Storage protocols, on your own machine.

Usage: lazulite [serve] [OPTIONS]
       lazulite account add|list|rotate|remove|purge [NAME] [OPTIONS]
       lazulite sas --account NAME --permissions LETTERS --expiry TIME [OPTIONS]
       lazulite backup FILE [OPTIONS]
       lazulite restore FILE [OPTIONS]
       lazulite check [OPTIONS]
       lazulite bench [OPTIONS]
       lazulite advise [OPTIONS]

Options of serve:
  -l, --location DIR        Where the data is kept [default: lazulite-data]
      --in-memory           Keep everything in memory, nothing on disk
      --services LIST       Which services to start: table, queue, blob [default: all of them]
      --table-host HOST     Address of the Table service [default: 127.0.0.1]
      --table-port PORT     Its port, 0 for any free one [default: 10002]
      --queue-host HOST     Address of the Queue service [default: 127.0.0.1]
      --queue-port PORT     Its port, 0 for any free one [default: 10001]
      --blob-host HOST      Address of the Blob service [default: 127.0.0.1]
      --blob-port PORT      Its port, 0 for any free one [default: 10000]
      --contents PLACE      Keep the contents of blobs elsewhere than in the data directory: s3://BUCKET/PREFIX,
                            gs://BUCKET/PREFIX or azure://ACCOUNT/CONTAINER/PREFIX, with ?endpoint=URL and
                            ?region=NAME where it needs them; credentials come from the environment
      --blob-versions       Keep what writes and deletions of blobs replace, as versions
      --container-retention DAYS
                            Deleted containers can be restored for so many days [default: not at all]
      --copy-from ADDRESS   Allow copies from this server, as http://HOST:PORT or https://*.DOMAIN (may be
                            repeated) [default: only from this server]
      --host-suffix SUFFIX  Serve http://ACCOUNT.SUFFIX too (may be repeated)
      --profile NAME        emulator (for developers; the default) or server (for everybody else)
      --config FILE         Read settings from a TOML file; flags and environment win over it
      --cert FILE           Serve HTTPS with this certificate: PEM with --key, or PFX with --pwd
      --key FILE            The certificate's key (PEM)
      --pwd PASSWORD        The password of the PFX file
      --https               Serve HTTPS with a certificate of a local authority, made in the data directory
      --oauth basic         Accept bearer tokens without checking who signed them (emulator profile, loopback)
      --behind-tls-proxy    In the server profile: a proxy in front terminates TLS
      --allow-well-known-key
                            Accept the emulator's published key on an address that others can reach
      --admin-host HOST     Address of the admin port: explorer, metrics, health [default: 127.0.0.1]
      --admin-port PORT     Its port, 0 for any free one [default: 10003, if nobody else has it]
      --no-admin            Open no admin port
      --log FORMAT          The log on standard error: text or json [default: text]
      --log-level LEVEL     error, warn, info or debug [default: warn]
      --access-log[=1/N]    Log every request, or one in N
      --slow-ms NUMBER      Log requests that take so many milliseconds, with their plan and filter's shape
      --throttle[=partition=N,account=N]
                            Enforce the published scalability targets: 503 ServerBusy above so many entities a
                            second in a partition, or messages in a queue [default: 2000], above a quarter as
                            many requests to a blob, and above so many to an account [default: 20000]
      --fail-on-scan[=TABLES]
                            For tests: answer queries that scan with 400 and what to do about it, in all
                            tables or in those of a list
      --prices FILE         A TOML file with prices, for what a month would cost on the real service
  -s, --silent              Print nothing but the lines that say where the services listen, and errors
  -h, --help                Print this help
  -V, --version             Print the version

Options of account (a running server notices within a second):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --key 1|2             rotate: which key [default: 1]
      --with-data           add: take over what the store has under this name; without it, that is a reason
                            to refuse. After remove, purge deletes them

Options of sas (prints the token; what it grants is said on standard error):
      --account NAME        Whose first key signs: from LAZULITE_ACCOUNTS, the data directory (-l),
                            or the emulator's [default: devstoreaccount1]
      --table NAME          A service SAS for this table
      --queue NAME          A service SAS for this queue
      --container NAME      A service SAS for this container; without any of the three an account SAS
      --blob NAME           For one blob of the container
      --permissions LETTERS raud for a table, raup for a queue, racwdxyltfi for a container or blob,
                            rwdxylacuptfi for an account
      --expiry TIME         As 2030-01-01T00:00:00Z
      --start TIME, --ip ADDRESS[-ADDRESS], --protocol https|https,http, --sas-version DATE
      --policy ID (with --table, --queue or --container)
      --start-pk KEY, --start-rk KEY, --end-pk KEY, --end-rk KEY (with --table)
      --services LETTERS [default: tqb], --resource-types LETTERS [default: sco] (for an account)

Options of backup, restore and check (all work while a server runs on the directory, or without one):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --rate MIB            backup: read at most so many MiB a second, 0 for any number [default: 50]
      --table NAME          restore: only this table, into a store
      --queue NAME          restore: only this queue
      --container NAME      restore: only this container of blobs; without any of them all, into an empty directory
      --as NEWNAME          restore: give the table, queue or container this name
      --account NAME        restore: whose table, queue or container, when accounts share the name
      --contents PLACE      restore: of everything, put the contents of blobs there
      --backup FILE         check: look at this backup file instead of a store
Exit codes: 0 done and sound, 1 could not be done, 2 damage found (check).

Options of bench (measures any http endpoint, in a table or queue of its own that it deletes at the end):
      --connection-string TEXT
                            What to measure, as SDKs are told; or --url, and --account and --key
                            [default: the emulator's account at http://127.0.0.1:10002, queues at 10001]
      --workload NAME       May be repeated: read, read-miss, insert, upsert, merge, hot-merge, batch, page,
                            any-of, filter, scan, mix; of queues put-message, take (one message, and delete
                            it), take-32, peek [default: a few for tables]
      --connections N       Connections that are kept busy [default: 16]
      --seconds S           Length of each measurement, after a warm-up of a fifth of it [default: 5]
      --rate R              Send so many requests a second, whatever the server does; latency counts from when
                            a request was due [default: the next request follows an answer]
      --entities N          Entities in the table, or messages in the queue, before it is measured
                            [default: 10000]

Options of advise (what a running server has learnt about the design of its tables, and what to change):
  -l, --location DIR        The server's data directory [default: lazulite-data]
      --url URL             The server's admin port instead [default, without a directory: http://127.0.0.1:10003]
      --token TOKEN         The token of the admin port, if it needs one
      --json                Print the findings as JSON

The spellings --tableHost, --tablePort, --inMemoryPersistence and so on work too.

Accounts come from the environment variable LAZULITE_ACCOUNTS (or AZURITE_ACCOUNTS), as
name:key1[:key2];name:key1[:key2];... with keys in Base64, from the configuration file, and from
'lazulite account add'. Without the first two, the emulator profile has devstoreaccount1 with the
key that every Azure emulator has: it protects nothing.
";

pub enum Command {
    Serve(Box<ServeFlags>),
    Account { command: AccountCommand, location: Option<PathBuf> },
    Sas { request: Box<SasRequest>, location: Option<PathBuf> },
    Backup { request: BackupRequest, location: Option<PathBuf> },
    Restore { request: RestoreRequest, location: Option<PathBuf> },
    Check { backup: Option<PathBuf>, location: Option<PathBuf> },
    Bench(Box<BenchRequest>),
    Advise(AdviseRequest),
    Help,
    Version,
}

/// The options of `serve`. The environment or the configuration file may supply those left out.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct ServeFlags {
    pub location: Option<PathBuf>,
    pub in_memory: bool,
    pub services: Option<String>,
    pub table_host: Option<String>,
    pub table_port: Option<u16>,
    pub queue_host: Option<String>,
    pub queue_port: Option<u16>,
    pub blob_host: Option<String>,
    pub blob_port: Option<u16>,
    pub contents: Option<String>,
    pub blob_versions: bool,
    pub container_retention: Option<u16>,
    pub copy_from: Vec<String>,
    pub host_suffixes: Vec<String>,
    pub profile: Option<String>,
    pub config: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub pwd: Option<String>,
    pub https: bool,
    pub oauth: Option<String>,
    pub behind_tls_proxy: bool,
    pub allow_well_known_key: bool,
    pub admin_host: Option<String>,
    pub admin_port: Option<u16>,
    pub no_admin: bool,
    pub log: Option<String>,
    pub log_level: Option<String>,
    /// One request in so many.
    pub access_log: Option<u64>,
    pub slow_ms: Option<u64>,
    /// Empty for the published targets.
    pub throttle: Option<String>,
    /// Empty for all tables.
    pub fail_on_scan: Option<String>,
    pub prices: Option<PathBuf>,
    pub silent: bool,
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = arguments.first().and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let has_command = matches!(
        command.as_str(),
        "serve" | "account" | "sas" | "backup" | "restore" | "check" | "bench" | "advise"
    );
    let mut parser = lexopt::Parser::from_args(arguments.split_off(usize::from(has_command)));
    let outcome = match command.as_str() {
        "account" => read_account(&mut parser),
        "sas" => read_sas(&mut parser),
        "backup" => read_backup(&mut parser),
        "restore" => read_restore(&mut parser),
        "check" => read_check(&mut parser),
        "bench" => read_bench(&mut parser),
        "advise" => read_advise(&mut parser),
        _ => read_serve(&mut parser),
    };
    outcome.map_err(|error| format!("{error}; see 'lazulite --help'"))
}

fn read_serve(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut flags = ServeFlags::default();
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Short('l') => "location".to_owned(),
            Short('s') => "silent".to_owned(),
            Short('h') => return Ok(Command::Help),
            Short('V') => return Ok(Command::Version),
            Long(name) => kebab_case(name),
            other => return Err(other.unexpected()),
        };
        match name.as_str() {
            "location" => flags.location = Some(parser.value()?.into()),
            "in-memory" | "in-memory-persistence" => flags.in_memory = true,
            "services" => flags.services = Some(parser.value()?.string()?),
            "blob-host" => flags.blob_host = Some(parser.value()?.string()?),
            "blob-port" => flags.blob_port = Some(parser.value()?.parse()?),
            "contents" => flags.contents = Some(parser.value()?.string()?),
            "blob-versions" => flags.blob_versions = true,
            "container-retention" => flags.container_retention = Some(parser.value()?.parse()?),
            "copy-from" => flags.copy_from.push(parser.value()?.string()?),
            "queue-host" => flags.queue_host = Some(parser.value()?.string()?),
            "queue-port" => flags.queue_port = Some(parser.value()?.parse()?),
            "table-host" => flags.table_host = Some(parser.value()?.string()?),
            "table-port" => flags.table_port = Some(parser.value()?.parse()?),
            "host-suffix" => flags.host_suffixes.push(parser.value()?.string()?),
            "profile" => flags.profile = Some(parser.value()?.string()?),
            "config" => flags.config = Some(parser.value()?.into()),
            "cert" => flags.cert = Some(parser.value()?.into()),
            "key" => flags.key = Some(parser.value()?.into()),
            "pwd" => flags.pwd = Some(parser.value()?.string()?),
            "https" => flags.https = true,
            "oauth" => flags.oauth = Some(parser.value()?.string()?),
            "behind-tls-proxy" => flags.behind_tls_proxy = true,
            "allow-well-known-key" => flags.allow_well_known_key = true,
            "admin-host" => flags.admin_host = Some(parser.value()?.string()?),
            "admin-port" => flags.admin_port = Some(parser.value()?.parse()?),
            "no-admin" => flags.no_admin = true,
            "log" => flags.log = Some(parser.value()?.string()?),
            "log-level" => flags.log_level = Some(parser.value()?.string()?),
            "access-log" => flags.access_log = Some(read_sampling(parser.optional_value())?),
            "slow-ms" => flags.slow_ms = Some(parser.value()?.parse()?),
            "throttle" => flags.throttle = Some(optional_text(parser)?),
            "fail-on-scan" => flags.fail_on_scan = Some(optional_text(parser)?),
            "prices" => flags.prices = Some(parser.value()?.into()),
            "silent" => flags.silent = true,
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            _ => return Err(no_option(&name)),
        }
    }
    if flags.in_memory && flags.location.is_some() {
        return Err("--in-memory keeps nothing on disk, so --location makes no sense beside it".into());
    }
    Ok(Command::Serve(Box::new(flags)))
}

/// What stands behind `=`; empty without one.
fn optional_text(parser: &mut lexopt::Parser) -> Result<String, lexopt::Error> {
    parser.optional_value().map_or_else(|| Ok(String::new()), |value| value.string())
}

/// `1/N`, or nothing for every one.
fn read_sampling(value: Option<OsString>) -> Result<u64, lexopt::Error> {
    let Some(value) = value else { return Ok(1) };
    let value = value.string()?;
    let one_in = value.strip_prefix("1/").and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    one_in.ok_or_else(|| format!("--access-log takes 1/N, one request in N, and not '{value}'").into())
}

fn read_account(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut words, mut location, mut key, mut with_data) = (Vec::new(), None, 1u8, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => location = Some(parser.value()?.into()),
            Long("key") => key = parser.value()?.parse()?,
            Long("with-data") => with_data = true,
            Long(name) => return Err(no_option(name)),
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    if !(1..=2).contains(&key) {
        return Err("an account has key 1 and key 2".into());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = match words.as_slice() {
        ["add", name] => AccountCommand::Add { name: (*name).to_owned(), with_data },
        [..] if with_data => return Err("--with-data belongs to account add".into()),
        ["list"] => AccountCommand::List,
        ["rotate", name] => AccountCommand::Rotate { name: (*name).to_owned(), key },
        ["remove", name] => AccountCommand::Remove((*name).to_owned()),
        ["purge", name] => AccountCommand::Purge((*name).to_owned()),
        _ => return Err("account takes add NAME, list, rotate NAME, remove NAME or purge NAME".into()),
    };
    Ok(Command::Account { command, location })
}

fn read_sas(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut request, mut location) = (SasRequest::default(), None);
    while let Some(argument) = parser.next()? {
        let slot = match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => {
                location = Some(parser.value()?.into());
                continue;
            }
            Long(name) => match name {
                "account" => &mut request.account,
                "table" => &mut request.table,
                "queue" => &mut request.queue,
                "container" => &mut request.container,
                "blob" => &mut request.blob,
                "permissions" => &mut request.permissions,
                "expiry" => &mut request.expiry,
                "start" => &mut request.start,
                "ip" => &mut request.ip,
                "protocol" => &mut request.protocol,
                "policy" => &mut request.policy,
                "start-pk" => &mut request.start_partition_key,
                "start-rk" => &mut request.start_row_key,
                "end-pk" => &mut request.end_partition_key,
                "end-rk" => &mut request.end_row_key,
                "services" => &mut request.services,
                "resource-types" => &mut request.resource_types,
                "sas-version" => &mut request.version,
                _ => return Err(no_option(name)),
            },
            other => return Err(other.unexpected()),
        };
        *slot = Some(parser.value()?.string()?);
    }
    Ok(Command::Sas { request: Box::new(request), location })
}

fn read_backup(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut location, mut rate_mib) = (None, None, BACKUP_RATE_MIB_DEFAULT);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => location = Some(parser.value()?.into()),
            Long("rate") => rate_mib = parser.value()?.parse()?,
            Long(name) => return Err(no_option(name)),
            Value(word) if file.is_none() => file = Some(word.into()),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.ok_or("backup takes the name of the file to make")?;
    let request = BackupRequest { file, rate_bytes_max: u64::from(rate_mib) * 1024 * 1024 };
    Ok(Command::Backup { request, location })
}

fn read_restore(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut location) = (None, None);
    let (mut table, mut queue, mut container, mut account, mut new_name) = (None, None, None, None, None);
    let mut place = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => location = Some(parser.value()?.into()),
            Long("table") => table = Some(parser.value()?.string()?),
            Long("queue") => queue = Some(parser.value()?.string()?),
            Long("container") => container = Some(parser.value()?.string()?),
            Long("contents") => place = Some(parser.value()?.string()?),
            Long("as") => new_name = Some(parser.value()?.string()?),
            Long("account") => account = Some(parser.value()?.string()?),
            Long(name) => return Err(no_option(name)),
            Value(word) if file.is_none() => file = Some(word.into()),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.ok_or("restore takes the name of a backup file")?;
    let named = |name: String| SelectedName { account: account.clone(), name, new_name: new_name.clone() };
    let selection = match (table, queue, container) {
        (Some(table), None, None) => LoadSelection::Table(named(table)),
        (None, Some(queue), None) => LoadSelection::Queue(named(queue)),
        (None, None, Some(container)) => LoadSelection::Container(named(container)),
        (None, None, None) if new_name.is_some() || account.is_some() => {
            return Err(
                "--as and --account belong to one table, queue or container: say which with --table, \
                        --queue or --container"
                    .into(),
            );
        }
        (None, None, None) => LoadSelection::All,
        _ => return Err("restore takes one of --table, --queue and --container".into()),
    };
    if place.is_some() && selection != LoadSelection::All {
        return Err("--contents is for a restore of everything: a store knows where its contents are".into());
    }
    Ok(Command::Restore { request: RestoreRequest { file, selection, place }, location })
}

fn read_check(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut backup, mut location) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => location = Some(parser.value()?.into()),
            Long("backup") => backup = Some(parser.value()?.into()),
            Long(name) => return Err(no_option(name)),
            other => return Err(other.unexpected()),
        }
    }
    if backup.is_some() && location.is_some() {
        return Err("check looks at a store or at a backup file, not at both".into());
    }
    Ok(Command::Check { backup, location })
}

fn read_bench(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut request = BenchRequest::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("connection-string") => request.connection_string = Some(parser.value()?.string()?),
            Long("url") => request.url = Some(parser.value()?.string()?),
            Long("account") => request.account = Some(parser.value()?.string()?),
            Long("key") => request.key = Some(parser.value()?.string()?),
            Long("workload") => request.workloads.push(parser.value()?.string()?),
            Long("connections") => request.connections = Some(parser.value()?.parse()?),
            Long("seconds") => request.seconds = Some(parser.value()?.parse()?),
            Long("rate") => request.rate = Some(parser.value()?.parse()?),
            Long("entities") => request.entities = Some(parser.value()?.parse()?),
            Long(name) => return Err(no_option(name)),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Bench(Box::new(request)))
}

fn read_advise(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut request = AdviseRequest::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Short('l') | Long("location") => request.location = Some(parser.value()?.into()),
            Long("url") => request.url = Some(parser.value()?.string()?),
            Long("token") => request.token = Some(parser.value()?.string()?),
            Long("json") => request.json = true,
            Long(name) => return Err(no_option(name)),
            other => return Err(other.unexpected()),
        }
    }
    if request.url.is_some() && request.location.is_some() {
        return Err("advise asks the server of a data directory or the one at a URL, not both".into());
    }
    Ok(Command::Advise(request))
}

fn no_option(name: &str) -> lexopt::Error {
    format!("there is no option '--{name}' here").into()
}

/// Turns `tablePort` into `table-port`, so that both spell the same option.
fn kebab_case(name: &str) -> String {
    let mut kebab = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(character.to_ascii_lowercase());
    }
    kebab
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(arguments: &[&str]) -> Result<ServeFlags, String> {
        match parse(arguments.iter().map(OsString::from))? {
            Command::Serve(flags) => Ok(*flags),
            _ => Err("not serve".into()),
        }
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let expected = ServeFlags {
            location: Some("d".into()),
            table_host: Some("h".into()),
            table_port: Some(1),
            queue_port: Some(2),
            services: Some("table,queue".into()),
            silent: true,
            ..ServeFlags::default()
        };
        for arguments in [
            &[
                "--location",
                "d",
                "--tableHost",
                "h",
                "--tablePort",
                "1",
                "--queuePort",
                "2",
                "--services=table,queue",
                "--silent",
            ][..],
            &[
                "serve",
                "-l",
                "d",
                "--table-host=h",
                "--table-port=1",
                "--queue-port",
                "2",
                "--services",
                "table,queue",
                "-s",
            ],
        ] {
            assert_eq!(flags(arguments).as_ref(), Ok(&expected), "{arguments:?}");
        }
        for flag in ["--in-memory", "--inMemory", "--inMemoryPersistence", "--in-memory-persistence"] {
            assert!(flags(&[flag]).unwrap().in_memory, "{flag}");
        }
    }

    #[test]
    fn logs_of_requests_may_be_sampled() {
        assert_eq!(flags(&["--access-log"]).unwrap().access_log, Some(1));
        assert_eq!(flags(&["--access-log=1/100", "--slow-ms", "5"]).unwrap().access_log, Some(100));
        assert_eq!(flags(&["--accessLog", "--no-admin"]).unwrap().access_log, Some(1));
    }

    #[test]
    fn rehearsals_have_defaults() {
        let given = flags(&["--throttle", "--fail-on-scan"]).unwrap();
        assert_eq!((given.throttle.as_deref(), given.fail_on_scan.as_deref()), (Some(""), Some("")));
        let given = flags(&["--throttle=partition=5", "--failOnScan=a,b"]).unwrap();
        assert_eq!(
            (given.throttle.as_deref(), given.fail_on_scan.as_deref()),
            (Some("partition=5"), Some("a,b"))
        );
        assert_eq!(flags(&[]).unwrap().throttle, None);
    }

    #[test]
    fn a_benchmark_is_asked_for_by_its_options() {
        let arguments =
            ["bench", "--url", "http://h:1/a", "--workload", "read", "--workload=scan", "--rate", "50"];
        let Ok(Command::Bench(request)) = parse(arguments.map(OsString::from)) else { panic!("not bench") };
        let expected = BenchRequest {
            url: Some("http://h:1/a".into()),
            workloads: vec!["read".into(), "scan".into()],
            rate: Some(50.0),
            ..BenchRequest::default()
        };
        assert_eq!(*request, expected);
        for name in loadgen::workload::WorkloadKind::all().map(loadgen::workload::WorkloadKind::name) {
            assert!(HELP.contains(name), "{name}");
        }
    }

    #[test]
    fn the_guide_shows_this_help() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md")).unwrap();
        assert!(guide.replace("\r\n", "\n").contains(HELP));
    }

    #[test]
    fn mistakes_get_a_sentence() {
        for (arguments, part) in [
            (&["--bogus"][..], "there is no option '--bogus'"),
            (&["--tablePort", "x"], "x"),
            (&["--tablePort", "70000"], "70000"),
            (&["--tablePort"], "missing argument"),
            (&["--access-log=0.1"], "--access-log takes 1/N"),
            (&["--access-log=1/0"], "--access-log takes 1/N"),
            (&["--slow-ms", "x"], "x"),
            (&["server"], "unexpected argument \"server\""),
            (&["--in-memory", "-l", "d"], "makes no sense"),
            (&["account"], "account takes add NAME"),
            (&["account", "rotate", "x", "--key", "3"], "key 1 and key 2"),
            (&["backup"], "backup takes the name"),
            (&["backup", "a", "b"], "unexpected argument"),
            (&["backup", "a", "--rate", "-1"], "-1"),
            (&["restore"], "restore takes the name"),
            (&["restore", "f", "--as", "x"], "say which with --table, --queue or --container"),
            (&["restore", "f", "--table", "x", "--queue", "y"], "restore takes one of"),
            (&["restore", "f", "--table", "x", "--contents", "y"], "restore of everything"),
            (&["check", "--backup", "f", "-l", "d"], "not at both"),
            (&["sas", "--bogus"], "there is no option '--bogus'"),
            (&["bench", "--bogus"], "there is no option '--bogus'"),
            (&["bench", "--connections", "x"], "x"),
            (&["bench", "word"], "unexpected argument"),
        ] {
            let sentence = flags(arguments).unwrap_err();
            assert!(sentence.contains(part) && sentence.contains("--help"), "{arguments:?}: {sentence}");
        }
    }
}
