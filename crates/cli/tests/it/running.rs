//! The binary as a child process whose whole output is kept, and clients that talk to it over HTTP and HTTPS.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use testkit::{Credentials, RawClient, Request, Response, Stopwatch, run_to_exit, system_now};

use crate::{ACCOUNT_VARIABLES, LAZULITE};

const READY: &str = "Table service is successfully listening at ";
const TIME_MAX: Duration = Duration::from_secs(20);

/// A running server. Dropping it kills the process.
pub struct Running {
    child: Child,
    addr: SocketAddr,
    pub is_https: bool,
    said: Arc<Mutex<String>>,
}

impl Running {
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        Running::start_command(Command::new(LAZULITE), arguments, environment)
    }

    /// Serves a data directory with a limit on open files, as `ulimit` is told about it.
    #[cfg(unix)]
    pub fn limited(ulimit: &str, location: &Path) -> Running {
        let location = location.to_str().expect("a temporary directory has a plain name");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\""), LAZULITE]);
        Running::start_command(
            command,
            &["--location", location, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
            &[],
        )
    }

    /// Starts the binary through another program, such as a shell, that runs what its arguments say.
    pub fn start_command(mut command: Command, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        for variable in ACCOUNT_VARIABLES {
            command.env_remove(variable);
        }
        command.args(arguments).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let said = Arc::new(Mutex::new(String::new()));
        keep(child.stdout.take().expect("stdout is piped"), said.clone());
        keep(child.stderr.take().expect("stderr is piped"), said.clone());
        let mut running =
            Running { child, addr: SocketAddr::from(([127, 0, 0, 1], 0)), is_https: false, said };
        let line = running.line_with(READY);
        let (_, url) = line.split_once(READY).expect("the ready line");
        let (scheme, authority) = url.trim().split_once("://").expect("a URL");
        running.is_https = scheme == "https";
        let mut addr: SocketAddr = authority.parse().expect("an address in the ready line");
        if addr.ip().is_unspecified() {
            addr.set_ip([127, 0, 0, 1].into());
        }
        running.addr = addr;
        running
    }

    /// Serves a data directory on a free port.
    pub fn over(location: &Path, arguments: &[&str]) -> Running {
        let location = location.to_str().expect("a temporary directory has a plain name");
        Running::start(
            &[
                &["--location", location, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
                arguments,
            ]
            .concat(),
            &[],
        )
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything on standard output and standard error so far.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line that contains `part`.
    #[track_caller]
    pub fn line_with(&self, part: &str) -> String {
        let mut found = None;
        within(TIME_MAX, || {
            found = self.said().lines().find(|line| line.contains(part)).map(str::to_owned);
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no line with {part:?} in:\n{}", self.said()))
    }

    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_bytes(self.addr, &Credentials::emulator(), system_now())
    }

    /// Sends over plain HTTP, on a new connection.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        let mut client = RawClient::connect(self.addr).expect("the server accepts a connection");
        client.send(&self.bytes_of(&request)).expect("the server listens");
        loop {
            match client.read_response(request.method == "HEAD") {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome.expect("the server answers"),
            }
        }
    }

    /// Sends over TLS, on a new connection that trusts the authority in that file.
    #[track_caller]
    pub fn send_over_tls(&self, authority: &Path, request: Request) -> Response {
        let mut client = TlsClient::connect(self.addr, authority, "localhost").expect("a handshake");
        client.exchange(&self.bytes_of(&request)).expect("the server answers")
    }

    /// Stops the server gracefully and returns everything it printed.
    pub fn stop(self) -> String {
        self.stop_with("TERM")
    }

    /// Stops the server with this signal and returns everything it printed.
    pub fn stop_with(mut self, signal: &str) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("kill runs").success());
        let mut code = None;
        within(TIME_MAX, || {
            code = self.child.try_wait().expect("a child can be waited for");
            code.is_some()
        });
        assert_eq!(code.expect("it stops in time").code(), Some(0), "{}", self.said());
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keep(stream: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.push_str(&line);
            said.push('\n');
        }
    });
}

/// Polls until `is_so` holds or the time is up. Returns whether it held.
pub fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let watch = Stopwatch::start();
    loop {
        if is_so() {
            return true;
        }
        if watch.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The status of a list of tables, asked for with this account and key.
pub fn status(server: &Running, account: &str, key: &str) -> u16 {
    server.send(Request::get("/Tables").credentials(account, key)).status
}

/// Runs a command that must succeed, and returns its standard output and standard error.
#[track_caller]
pub fn run(arguments: &[&str], environment: &[(&str, &str)]) -> (String, String) {
    let output = run_to_exit(LAZULITE, arguments, environment);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}:\n{stdout}\n{stderr}");
    (stdout, stderr)
}

#[cfg(unix)]
#[track_caller]
pub fn assert_private(path: &Path, mode: u32) {
    let metadata = std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let found = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    assert_eq!(found, mode, "{} is {found:o}", path.display());
}

#[cfg(not(unix))]
pub fn assert_private(_: &Path, _: u32) {}

/// HTTP/1.1 over one TLS connection.
pub struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    unread: Vec<u8>,
}

impl TlsClient {
    pub fn connect(addr: SocketAddr, authority: &Path, host: &str) -> io::Result<TlsClient> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority).expect("an authority's file") {
            roots.add(certificate.expect("a certificate")).expect("a root");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).expect("a host");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
        let stream = TcpStream::connect_timeout(&addr, TIME_MAX)?;
        stream.set_read_timeout(Some(TIME_MAX))?;
        stream.set_nodelay(true)?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(TlsClient { stream, unread: Vec::new() })
    }

    /// The certificate that the server presented.
    pub fn certificate(&self) -> Vec<u8> {
        let shown = self.stream.conn.peer_certificates().unwrap_or_default();
        shown.first().map(|certificate| certificate.as_ref().to_vec()).unwrap_or_default()
    }

    /// Sends a request and reads its answer. The server always sends a Content-Length.
    pub fn exchange(&mut self, bytes: &[u8]) -> io::Result<Response> {
        self.stream.write_all(bytes)?;
        let head_end = loop {
            match self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at,
                None => self.read_some()?,
            }
        };
        let head = String::from_utf8_lossy(&self.unread[..head_end]).into_owned();
        self.unread.drain(..head_end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).unwrap_or_default();
        let (status, reason) = status.split_once(' ').unwrap_or((status, ""));
        let headers = lines.filter_map(|line| line.split_once(':'));
        let mut response = Response {
            status: status.parse().map_err(|_| io::Error::from(ErrorKind::InvalidData))?,
            reason: reason.to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(),
            body: Vec::new(),
            is_of_queue: false,
        };
        let length = response.header("Content-Length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while self.unread.len() < length {
            self.read_some()?;
        }
        response.body = self.unread.drain(..length).collect();
        Ok(response)
    }

    fn read_some(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}
