//! A blocking HTTP/1.1 client that sends exactly the bytes it is given, over one connection.
//!
//! Promises: no call blocks for longer than ten seconds without progress. Leaves to others: what the bytes say.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::Response;

const TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 1 << 20;

pub struct RawClient {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl RawClient {
    pub fn connect(addr: SocketAddr) -> io::Result<RawClient> {
        let stream = TcpStream::connect_timeout(&addr, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(RawClient { stream, unread: Vec::new() })
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Tells the server that nothing more will be sent.
    pub fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Sends a request and reads its answer. Looks for the answer even if sending failed: a server that refuses a body
    /// may answer and close before it has read it.
    pub fn exchange(&mut self, bytes: &[u8]) -> io::Result<Response> {
        let sent = self.send(bytes);
        let is_head = bytes.starts_with(b"HEAD ");
        loop {
            match self.read_response(is_head) {
                Ok(response) if response.status / 100 == 1 => continue,
                Ok(response) => return Ok(response),
                Err(error) => return Err(sent.err().unwrap_or(error)),
            }
        }
    }

    /// The next response on this connection, including interim (1xx) ones.
    pub fn read_response(&mut self, to_head_request: bool) -> io::Result<Response> {
        let head_end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at;
            }
            if self.unread.len() > HEAD_BYTES_MAX {
                return Err(invalid("the response head does not end"));
            }
            if self.read_some()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        };
        let head =
            String::from_utf8(self.unread[..head_end].to_vec()).map_err(|_| invalid("head is not UTF-8"))?;
        self.unread.drain(..head_end + 4);
        let mut response = parse_head(&head)?;
        if to_head_request || response.status / 100 == 1 || response.status == 204 || response.status == 304 {
            return Ok(response);
        }
        let chunked =
            response.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        response.body = if chunked {
            self.read_chunks()?
        } else if let Some(length) = response.header("Content-Length") {
            let length = length.parse().map_err(|_| invalid("Content-Length is not a number"))?;
            self.take(length)?
        } else {
            self.read_to_end()?
        };
        Ok(response)
    }

    /// Waits for the next bytes, whatever they are.
    pub fn read_next(&mut self) -> io::Result<Vec<u8>> {
        if self.unread.is_empty() && self.read_some()? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(std::mem::take(&mut self.unread))
    }

    /// Waits until the server closes the connection. Returns the bytes that came until then.
    pub fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        while self.read_some()? > 0 {}
        Ok(std::mem::take(&mut self.unread))
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line()?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| invalid("chunk size is not hex"))?;
            if size == 0 {
                while !self.read_line()?.is_empty() {}
                return Ok(body);
            }
            body.extend_from_slice(&self.take(size)?);
            if self.take(2)? != b"\r\n" {
                return Err(invalid("a chunk does not end with CRLF"));
            }
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                let line = String::from_utf8_lossy(&self.unread[..at]).into_owned();
                self.unread.drain(..at + 2);
                return Ok(line);
            }
            if self.read_some()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < count {
            if self.read_some()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.unread.drain(..count).collect())
    }

    fn read_some(&mut self) -> io::Result<usize> {
        let mut buffer = [0u8; 16 * 1024];
        // A signal can interrupt the read; that is no error of the peer.
        let count = loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome?,
            }
        };
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

fn parse_head(head: &str) -> io::Result<Response> {
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let rest = status_line.strip_prefix("HTTP/1.1 ").ok_or_else(|| invalid("not an HTTP/1.1 status line"))?;
    let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let status = status.parse().map_err(|_| invalid("the status is not a number"))?;
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header line without colon"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Response { status, reason: reason.to_owned(), headers, body: Vec::new(), is_of_queue: false })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
