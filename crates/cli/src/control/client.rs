//! The command's side of a control connection: connects, sends the request and reads the answer's first line.
//!
//! The rest of the answer is read by the command that asked.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use super::{GREETING, Invitation, Request, read_line};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection on which the request has been sent.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// Sends the request to the server that has this data directory open.
pub fn connect(location: &Path, request: &Request) -> Result<Connection, String> {
    let unreachable = |error: io::Error| {
        format!("{} is in use by a process that does not answer commands: {error}", location.display())
    };
    let invitation = Invitation::read(location).map_err(unreachable)?;
    let stream = TcpStream::connect_timeout(&invitation.address, CONNECT_TIMEOUT).map_err(unreachable)?;
    let line = format!("{GREETING} {} {}\n", invitation.token, request.to_line());
    (&stream).write_all(line.as_bytes()).map_err(unreachable)?;
    Ok(Connection { stream: BufReader::new(stream) })
}

impl Connection {
    /// Takes the data that follows the request, such as the backup to restore.
    pub fn input(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Tells the server that no more data follows.
    pub fn end_input(&self) -> io::Result<()> {
        self.stream.get_ref().shutdown(std::net::Shutdown::Write)
    }

    /// Waits for the server's verdict. `Ok` holds the rest of the answer, `Err` the server's reason to refuse.
    pub fn answer(mut self) -> Result<BufReader<TcpStream>, String> {
        let line = read_line(&mut self.stream)
            .map_err(|error| format!("lost the connection to the server: {error}"))?;
        match line.split_once(' ') {
            None if line == "ok" => Ok(self.stream),
            Some(("error", sentence)) => Err(sentence.to_owned()),
            _ => Err("the server runs another version of Lazulite".to_owned()),
        }
    }
}
