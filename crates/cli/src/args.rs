//! The command line as values.
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
use crate::engine_command::EngineCommand;
use crate::moving::MoveRequest;
use crate::place::StoreFlags;
use crate::restore::RestoreRequest;
use crate::sas::SasRequest;

/// Slow enough to leave most of a disk's bandwidth to requests.
const BACKUP_RATE_MIB_DEFAULT: u32 = 50;

pub enum Command {
    Serve(Box<ServeFlags>),
    Account { command: AccountCommand, store: StoreFlags },
    Sas { request: Box<SasRequest>, store: StoreFlags },
    Backup { request: BackupRequest, store: StoreFlags },
    Restore { request: RestoreRequest, store: StoreFlags },
    Check { backup: Option<PathBuf>, store: StoreFlags },
    Move(MoveRequest),
    Engine(EngineCommand),
    Bench(Box<BenchRequest>),
    Advise(AdviseRequest),
    Help,
    Version,
}

/// The options of `serve`. The environment or the configuration file may supply those left out.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct ServeFlags {
    pub location: Option<PathBuf>,
    pub engine: Option<String>,
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
    pub rehydrate_after: Option<u64>,
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
        "serve" | "account" | "sas" | "backup" | "restore" | "check" | "move" | "engine" | "bench" | "advise"
    );
    let mut parser = lexopt::Parser::from_args(arguments.split_off(usize::from(has_command)));
    let outcome = match command.as_str() {
        "account" => read_account(&mut parser),
        "sas" => read_sas(&mut parser),
        "backup" => read_backup(&mut parser),
        "restore" => read_restore(&mut parser),
        "check" => read_check(&mut parser),
        "move" => read_move(&mut parser),
        "engine" => read_engine(&mut parser),
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
            "engine" => flags.engine = Some(parser.value()?.string()?),
            "in-memory" | "in-memory-persistence" => flags.in_memory = true,
            "services" => flags.services = Some(parser.value()?.string()?),
            "blob-host" => flags.blob_host = Some(parser.value()?.string()?),
            "blob-port" => flags.blob_port = Some(parser.value()?.parse()?),
            "contents" => flags.contents = Some(parser.value()?.string()?),
            "blob-versions" => flags.blob_versions = true,
            "container-retention" => flags.container_retention = Some(parser.value()?.parse()?),
            "rehydrate-after" => flags.rehydrate_after = Some(parser.value()?.parse()?),
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
    if flags.in_memory && flags.engine.is_some() {
        return Err("--in-memory keeps nothing, so --engine makes no sense beside it".into());
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

/// An option that says where the store is.
enum StoreOption {
    Location,
    Engine,
    Config,
}

impl StoreOption {
    fn of(argument: &lexopt::Arg<'_>) -> Option<StoreOption> {
        match argument {
            Short('l') | Long("location") => Some(StoreOption::Location),
            Long("engine") => Some(StoreOption::Engine),
            Long("config") => Some(StoreOption::Config),
            _ => None,
        }
    }

    fn read(self, parser: &mut lexopt::Parser, store: &mut StoreFlags) -> Result<(), lexopt::Error> {
        match self {
            StoreOption::Location => store.location = Some(parser.value()?.into()),
            StoreOption::Engine => store.engine = Some(parser.value()?.string()?),
            StoreOption::Config => store.config = Some(parser.value()?.into()),
        }
        Ok(())
    }
}

fn read_account(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut words, mut store, mut key, mut with_data) = (Vec::new(), StoreFlags::default(), 1u8, false);
    while let Some(argument) = parser.next()? {
        if let Some(option) = StoreOption::of(&argument) {
            option.read(parser, &mut store)?;
            continue;
        }
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
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
    Ok(Command::Account { command, store })
}

fn read_sas(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut request, mut store) = (SasRequest::default(), StoreFlags::default());
    while let Some(argument) = parser.next()? {
        if let Some(option) = StoreOption::of(&argument) {
            option.read(parser, &mut store)?;
            continue;
        }
        let slot = match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
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
    Ok(Command::Sas { request: Box::new(request), store })
}

fn read_backup(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut store, mut rate_mib) = (None, StoreFlags::default(), BACKUP_RATE_MIB_DEFAULT);
    while let Some(argument) = parser.next()? {
        if let Some(option) = StoreOption::of(&argument) {
            option.read(parser, &mut store)?;
            continue;
        }
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("rate") => rate_mib = parser.value()?.parse()?,
            Long(name) => return Err(no_option(name)),
            Value(word) if file.is_none() => file = Some(word.into()),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.ok_or("backup takes the name of the file to make")?;
    let request = BackupRequest { file, rate_bytes_max: u64::from(rate_mib) * 1024 * 1024 };
    Ok(Command::Backup { request, store })
}

fn read_restore(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut store) = (None, StoreFlags::default());
    let (mut table, mut queue, mut container, mut account, mut new_name) = (None, None, None, None, None);
    let mut place = None;
    while let Some(argument) = parser.next()? {
        if let Some(option) = StoreOption::of(&argument) {
            option.read(parser, &mut store)?;
            continue;
        }
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
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
    Ok(Command::Restore { request: RestoreRequest { file, selection, place }, store })
}

fn read_check(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut backup, mut store) = (None, StoreFlags::default());
    while let Some(argument) = parser.next()? {
        if let Some(option) = StoreOption::of(&argument) {
            option.read(parser, &mut store)?;
            continue;
        }
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("backup") => backup = Some(parser.value()?.into()),
            Long(name) => return Err(no_option(name)),
            other => return Err(other.unexpected()),
        }
    }
    if backup.is_some() && (store.location.is_some() || store.engine.is_some()) {
        return Err("check looks at a store or at a backup file, not at both".into());
    }
    Ok(Command::Check { backup, store })
}

fn read_move(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut from, mut to, mut config) = (None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("from") => from = Some(parser.value()?.string()?),
            Long("to") => to = Some(parser.value()?.string()?),
            Long("config") => config = Some(parser.value()?.into()),
            Long(name) => return Err(no_option(name)),
            other => return Err(other.unexpected()),
        }
    }
    let (from, to) = from.zip(to).ok_or("move takes --from STORE and --to STORE")?;
    Ok(Command::Move(MoveRequest { from, to, config }))
}

fn read_engine(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut words = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long(name) => return Err(no_option(name)),
            Value(word) => words.push(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["schema"] => Ok(Command::Engine(EngineCommand::Schema)),
        _ => Err("engine takes schema: it prints the statements that create what servers need".into()),
    }
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
    use crate::help::HELP;

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
            (&["--in-memory", "--engine", "postgres://h/d"], "makes no sense"),
            (&["move", "--from", "d"], "move takes --from STORE and --to STORE"),
            (&["engine"], "engine takes schema"),
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
