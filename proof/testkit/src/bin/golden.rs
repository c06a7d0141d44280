//! Replays the golden exchanges against any server and prints the differences, file by file.
//!
//! Exit codes: 0, no difference; 1, some differences; 2, the replay could not start.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use testkit::golden::{Endpoint, Rules, read_folder};
use testkit::{Credentials, system_now};

const HELP: &str = "\
Usage: golden --endpoint URL [OPTIONS]

  --endpoint URL           http://127.0.0.1:10002/ACCOUNT or https://ACCOUNT.table.core.windows.net
  --queues                 the endpoint is one of queues: replay the files in the folder's subfolder queue
  --blobs                  the same for blobs
  --account NAME           the account that signs (default: the emulator's)
  --key KEY                its key (default: the environment variable AZURE_STORAGE_KEY)
  --folder DIR             where the files are (default: tests/golden of the source tree)
  --only TEXT              only files whose name contains the text
  --ignore-header NAME     a response header to leave out of the comparison; may be repeated
  --skip-account-settings  skip the files that change the account's service properties
";

struct Arguments {
    endpoint: String,
    account: Option<String>,
    key: Option<String>,
    folder: PathBuf,
    subfolder: &'static str,
    only: String,
    rules: Rules,
    skips_settings: bool,
}

fn main() -> ExitCode {
    let outcome = arguments().and_then(|arguments| run(&arguments));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut found = Arguments {
        endpoint: String::new(),
        account: None,
        key: std::env::var("AZURE_STORAGE_KEY").ok(),
        folder: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden")),
        subfolder: "",
        only: String::new(),
        rules: Rules::default(),
        skips_settings: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--endpoint" => found.endpoint = value()?,
            "--account" => found.account = Some(value()?),
            "--key" => found.key = Some(value()?),
            "--folder" => found.folder = PathBuf::from(value()?),
            "--queues" => found.subfolder = "queue",
            "--blobs" => found.subfolder = "blob",
            "--only" => found.only = value()?,
            "--ignore-header" => found.rules.ignored_headers.push(value()?),
            "--skip-account-settings" => found.skips_settings = true,
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    if found.endpoint.is_empty() { Err("--endpoint is missing".to_owned()) } else { Ok(found) }
}

/// Returns whether all answers were as expected.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let credentials = match (&arguments.account, &arguments.key) {
        (None, _) => Credentials::emulator(),
        (Some(account), Some(key)) => Credentials::new(account, key),
        (Some(_), None) => return Err("--account needs --key".to_owned()),
    };
    let endpoint = Endpoint::parse(&arguments.endpoint, credentials)?;
    let since_epoch = system_now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let run = format!("{:x}", since_epoch.as_millis());
    let scenarios = read_folder(&arguments.folder.join(arguments.subfolder))?;
    let (mut exchange_count, mut differing_count, mut file_count) = (0, 0, 0);
    for scenario in scenarios.iter().filter(|scenario| scenario.name.contains(&arguments.only)) {
        if scenario.changes_settings && arguments.skips_settings {
            println!("skipped  {}", scenario.name);
            continue;
        }
        let differences = scenario.replay(&endpoint, &run, &arguments.rules);
        println!("{}  {}", if differences.is_empty() { "same   " } else { "DIFFERS" }, scenario.name);
        for difference in &differences {
            println!("{}\n", indented(difference));
        }
        file_count += 1;
        exchange_count += scenario.exchange_count();
        differing_count += differences.len();
    }
    println!("{exchange_count} exchanges in {file_count} files, {differing_count} differ");
    Ok(differing_count == 0)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
