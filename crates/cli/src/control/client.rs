//! The command's side of a control connection: connects, sends the request and reads the answer's first line.
//!
//! The rest of the answer is read by the command that asked.

use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::path::Path;

use super::stream::ControlStream;
use super::{ANSWER_LINE_BYTES_MAX, ControlRequest, GREETING, Invitation, read_line};

/// A connection on which the request has been sent.
pub struct ControlConnection {
    stream: BufReader<ControlStream>,
}

/// Sends the request to the server that has this data directory open.
pub fn connect(location: &Path, request: &ControlRequest) -> Result<ControlConnection, String> {
    let unreachable = |error: io::Error| {
        format!("{} is in use by a process that does not answer commands: {error}", location.display())
    };
    let invitation = Invitation::read(location).map_err(unreachable)?;
    let stream = ControlStream::connect(location, invitation.address).map_err(unreachable)?;
    let line = format!("{GREETING} {} {}\n", invitation.token, request.to_line());
    (&stream).write_all(line.as_bytes()).map_err(unreachable)?;
    Ok(ControlConnection { stream: BufReader::new(stream) })
}

impl ControlConnection {
    /// Takes the data that follows the request, such as the backup to restore.
    pub fn input(&self) -> &ControlStream {
        self.stream.get_ref()
    }

    /// Tells the server that no more data follows.
    pub fn end_input(&self) -> io::Result<()> {
        self.stream.get_ref().shutdown(Shutdown::Write)
    }

    /// Waits for the server's verdict. `Ok` holds the rest of the answer, `Err` the server's reason to refuse.
    pub fn answer(mut self) -> Result<BufReader<ControlStream>, String> {
        let line = read_line(&mut self.stream, ANSWER_LINE_BYTES_MAX)
            .map_err(|error| format!("lost the connection to the server: {error}"))?;
        match line.split_once(' ') {
            None if line == "ok" => Ok(self.stream),
            Some(("error", sentence)) => Err(sentence.to_owned()),
            _ => Err("the server runs another version of Lazulite".to_owned()),
        }
    }
}
