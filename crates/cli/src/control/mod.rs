//! How a command reaches the server that has the data directory open: over a Unix socket in that directory, or over a
//! loopback connection where there is none, in both cases with a token from a file in that directory. Only users who may
//! read the data directory can read the token.
//!
//! ```text
//! data directory/control   "ADDRESS TOKEN\n", mode 0600, written when the server starts; ADDRESS may be "socket"
//! data directory/control.sock   the socket, mode 0600
//! client                   "lazulite control 1 TOKEN COMMAND…\n", then the command's data, if it has any
//! server                   "ok\n" or "error SENTENCE\n", then the result
//! ```
//!
//! Only our own commands use it (account, backup, restore, check, advise). It is no interface for other programs and may change with any
//! version.

mod client;
mod server;
mod stream;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use backup::{LoadSelection, SelectedName};
pub use client::connect;
use engine_local::LocalEngine;
pub use server::start;
use stream::ControlAddress;
pub use stream::remove_socket;

const FILE_NAME: &str = "control";
const GREETING: &str = "lazulite control 1";
/// Far more than any error sentence needs.
const ANSWER_LINE_BYTES_MAX: usize = 64 * 1024;
/// Far more than any request needs.
const REQUEST_LINE_BYTES_MAX: usize = 4 * 1024;

/// Where the server listens, and the token it asks for.
struct Invitation {
    address: ControlAddress,
    token: String,
}

impl Invitation {
    fn path(location: &Path) -> PathBuf {
        location.join(FILE_NAME)
    }

    fn write(&self, store: &LocalEngine) -> io::Result<()> {
        let text = format!("{} {}\n", self.address.to_word(), self.token);
        store.replace_beside(FILE_NAME, text.as_bytes())
    }

    fn read(location: &Path) -> io::Result<Invitation> {
        let text = std::fs::read_to_string(Invitation::path(location))?;
        let invitation = text.trim_end().split_once(' ').and_then(|(address, token)| {
            Some(Invitation { address: ControlAddress::parse(address)?, token: token.to_owned() })
        });
        invitation.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a control file"))
    }
}

/// Reads one line without its line end. Reads byte by byte, so as not to consume anything after the line.
fn read_line(input: &mut impl Read, size_bytes_max: usize) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => break,
            _ if line.len() >= size_bytes_max => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
            }
            byte => line.push(byte),
        }
    }
    String::from_utf8(line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line is not text"))
}

/// A command's request to the server.
#[derive(PartialEq, Eq, Debug)]
pub enum ControlRequest {
    /// Reads at most this many uncompressed bytes a second; 0 means no limit. The answer is a backup.
    Backup { rate_bytes_max: u64 },
    /// Restores one table, queue or container from the backup that follows the request. The answer is a line of counts.
    Restore(LoadSelection),
    /// The answer is a line of counts, then a line per finding.
    Check,
    /// What does the store have under this account's name? The answer is a line.
    AccountData { account: String },
    /// Deletes that. The answer is a line.
    Purge { account: String },
    /// The answer is what the advisor has found, as JSON.
    Advice,
}

impl ControlRequest {
    /// Words separated by spaces; a dash stands for a name left out. No name holds a space, and none is a dash.
    fn to_line(&self) -> String {
        let or_dash = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
        match self {
            ControlRequest::Backup { rate_bytes_max } => format!("backup {rate_bytes_max}"),
            ControlRequest::Restore(selection) => {
                let (what, SelectedName { account, name, new_name }) = match selection {
                    LoadSelection::All => return "restore".to_owned(),
                    LoadSelection::Table(selected) => ("table", selected),
                    LoadSelection::Queue(selected) => ("queue", selected),
                    LoadSelection::Container(selected) => ("container", selected),
                };
                format!("restore {what} {} {name} {}", or_dash(account), or_dash(new_name))
            }
            ControlRequest::Check => "check".to_owned(),
            ControlRequest::AccountData { account } => format!("account-data {account}"),
            ControlRequest::Purge { account } => format!("purge {account}"),
            ControlRequest::Advice => "advice".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<ControlRequest> {
        let word = |word: &str| (word != "-").then(|| word.to_owned());
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["backup", rate] => Some(ControlRequest::Backup { rate_bytes_max: rate.parse().ok()? }),
            ["restore", what, account, name, new_name] => {
                let selected = SelectedName {
                    account: word(account),
                    name: (*name).to_owned(),
                    new_name: word(new_name),
                };
                match *what {
                    "table" => Some(ControlRequest::Restore(LoadSelection::Table(selected))),
                    "queue" => Some(ControlRequest::Restore(LoadSelection::Queue(selected))),
                    "container" => Some(ControlRequest::Restore(LoadSelection::Container(selected))),
                    _ => None,
                }
            }
            ["check"] => Some(ControlRequest::Check),
            ["account-data", account] => Some(ControlRequest::AccountData { account: (*account).to_owned() }),
            ["purge", account] => Some(ControlRequest::Purge { account: (*account).to_owned() }),
            ["advice"] => Some(ControlRequest::Advice),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        for request in [
            ControlRequest::Backup { rate_bytes_max: 7 },
            ControlRequest::Restore(LoadSelection::Table(SelectedName {
                account: None,
                name: "T".into(),
                new_name: Some("U".into()),
            })),
            ControlRequest::Restore(LoadSelection::Queue(SelectedName {
                account: Some("a".into()),
                name: "q-1".into(),
                new_name: None,
            })),
            ControlRequest::Restore(LoadSelection::Container(SelectedName {
                account: None,
                name: "$web".into(),
                new_name: None,
            })),
            ControlRequest::Check,
            ControlRequest::AccountData { account: "a".into() },
            ControlRequest::Purge { account: "a".into() },
            ControlRequest::Advice,
        ] {
            assert_eq!(ControlRequest::parse(&request.to_line()), Some(request));
        }
        for line in ["", "backup", "backup x", "restore", "restore a b c d", "check it", "delete everything"]
        {
            assert_eq!(ControlRequest::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_line_ends_where_it_ends() {
        let mut input = &b"first\nsecond"[..];
        assert_eq!(read_line(&mut input, 5).unwrap(), "first");
        assert_eq!(input, b"second");
        assert!(read_line(&mut input, 100).is_err());
        assert!(read_line(&mut &b"sixsix\n"[..], 5).is_err());
    }
}
