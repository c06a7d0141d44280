//! The command line, as values. Options have the spellings of the emulator that people know (`--tablePort`) and
//! those that this century expects (`--table-port`).

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

pub const HELP: &str = "\
Lazulite: a server that speaks the Azure Table Storage protocol, on your own machine.

Usage: lazulite [serve] [OPTIONS]

Options:
  -l, --location DIR        Where the data is kept [default: lazulite-data]
      --in-memory           Keep everything in memory, nothing on disk
      --table-host HOST     Address to listen on [default: 127.0.0.1]
      --table-port PORT     Port to listen on, 0 for any free one [default: 10002]
      --host-suffix SUFFIX  Serve http://ACCOUNT.SUFFIX too (may be repeated)
      --allow-well-known-key
                            Accept the emulator's published key on an address that others can reach
  -s, --silent              Print nothing but the line that says where the server listens, and errors
  -h, --help                Print this help
  -V, --version             Print the version

The spellings --tableHost, --tablePort, --inMemoryPersistence and so on work too.

Accounts come from the environment variable LAZULITE_ACCOUNTS (or AZURITE_ACCOUNTS), as
name:key1[:key2];name:key1[:key2];... with keys in Base64. Without it there is one account,
devstoreaccount1, with the key that every Azure emulator has: it protects nothing.
";

pub enum Command {
    Serve(Options),
    Help,
    Version,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Options {
    pub location: Option<PathBuf>,
    pub in_memory: bool,
    pub table_host: String,
    pub table_port: u16,
    pub host_suffixes: Vec<String>,
    pub allow_well_known_key: bool,
    pub silent: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            location: None,
            in_memory: false,
            table_host: "127.0.0.1".into(),
            table_port: 10002,
            host_suffixes: Vec::new(),
            allow_well_known_key: false,
            silent: false,
        }
    }
}

pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut parser = lexopt::Parser::from_args(arguments);
    read(&mut parser).map_err(|error| format!("{error}; 'lazulite --help' lists what it takes"))
}

fn read(parser: &mut lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = Options::default();
    let mut command_seen = false;
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Short('l') => "location".to_owned(),
            Short('s') => "silent".to_owned(),
            Short('h') => return Ok(Command::Help),
            Short('V') => return Ok(Command::Version),
            Long(name) => kebab_case(name),
            Value(word) if word == "serve" && !command_seen => {
                command_seen = true;
                continue;
            }
            other => return Err(other.unexpected()),
        };
        match name.as_str() {
            "location" => options.location = Some(parser.value()?.into()),
            "in-memory" | "in-memory-persistence" => options.in_memory = true,
            "table-host" => options.table_host = parser.value()?.string()?,
            "table-port" => options.table_port = parser.value()?.parse()?,
            "host-suffix" => options.host_suffixes.push(parser.value()?.string()?),
            "allow-well-known-key" => options.allow_well_known_key = true,
            "silent" => options.silent = true,
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            _ => return Err(format!("there is no option '--{name}'").into()),
        }
    }
    if options.in_memory && options.location.is_some() {
        return Err("--in-memory keeps nothing on disk, so --location makes no sense beside it".into());
    }
    Ok(Command::Serve(options))
}

/// `tablePort` and `table-port` are the same option.
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

    fn options(arguments: &[&str]) -> Result<Options, String> {
        match parse(arguments.iter().map(OsString::from))? {
            Command::Serve(options) => Ok(options),
            Command::Help | Command::Version => Err("not serve".into()),
        }
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let expected = Options {
            location: Some("d".into()),
            table_host: "h".into(),
            table_port: 1,
            silent: true,
            ..Options::default()
        };
        for arguments in [
            &["--location", "d", "--tableHost", "h", "--tablePort", "1", "--silent"][..],
            &["serve", "-l", "d", "--table-host=h", "--table-port=1", "-s"],
        ] {
            assert_eq!(options(arguments).as_ref(), Ok(&expected), "{arguments:?}");
        }
        for flag in ["--in-memory", "--inMemory", "--inMemoryPersistence", "--in-memory-persistence"] {
            assert!(options(&[flag]).unwrap().in_memory, "{flag}");
        }
    }

    #[test]
    fn mistakes_get_a_sentence() {
        for (arguments, part) in [
            (&["--bogus"][..], "there is no option '--bogus'"),
            (&["--tablePort", "x"], "x"),
            (&["--tablePort", "70000"], "70000"),
            (&["--tablePort"], "missing argument"),
            (&["server"], "unexpected argument \"server\""),
            (&["--in-memory", "-l", "d"], "makes no sense"),
        ] {
            let sentence = options(arguments).unwrap_err();
            assert!(sentence.contains(part) && sentence.contains("--help"), "{arguments:?}: {sentence}");
        }
    }
}
