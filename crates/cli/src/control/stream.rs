//! Control connections of either kind: a Unix socket in the data directory, or loopback TCP where there is none.
//!
//! Promises: only the owner of the data directory can connect to the socket (mode 0600). A path that is too long for a
//! socket, or a file system without them, leads to TCP. Leaves to others: who is let in (`server.rs`).

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use engine_local::LocalEngine;

#[cfg(unix)]
const SOCKET_NAME: &str = "control.sock";
/// Stands for the socket in the invitation.
#[cfg(unix)]
const SOCKET_WORD: &str = "socket";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a server listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ControlAddress {
    /// The socket in the data directory, by whatever path the command reaches that directory.
    #[cfg(unix)]
    Socket,
    Tcp(SocketAddr),
}

impl ControlAddress {
    pub(super) fn to_word(self) -> String {
        match self {
            #[cfg(unix)]
            ControlAddress::Socket => SOCKET_WORD.to_owned(),
            ControlAddress::Tcp(address) => address.to_string(),
        }
    }

    pub(super) fn parse(word: &str) -> Option<ControlAddress> {
        #[cfg(unix)]
        if word == SOCKET_WORD {
            return Some(ControlAddress::Socket);
        }
        word.parse().ok().map(ControlAddress::Tcp)
    }
}

pub(super) enum ControlListener {
    #[cfg(unix)]
    Socket(UnixListener),
    Tcp(TcpListener),
}

impl ControlListener {
    /// Call it only while the store is locked: a socket that is there belongs to a server that was killed.
    pub(super) fn bind(location: &Path) -> io::Result<(ControlListener, ControlAddress)> {
        #[cfg(unix)]
        if let Ok(listener) = bind_socket(&location.join(SOCKET_NAME)) {
            return Ok((listener, ControlAddress::Socket));
        }
        #[cfg(not(unix))]
        let _ = location;
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        Ok((ControlListener::Tcp(listener), ControlAddress::Tcp(address)))
    }

    pub(super) fn accept(&self) -> io::Result<ControlStream> {
        match self {
            #[cfg(unix)]
            ControlListener::Socket(listener) => Ok(ControlStream::Socket(listener.accept()?.0)),
            ControlListener::Tcp(listener) => Ok(ControlStream::Tcp(listener.accept()?.0)),
        }
    }
}

#[cfg(unix)]
fn bind_socket(path: &Path) -> io::Result<ControlListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // Whoever connects in between has no token.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    if let Err(error) = std::fs::set_permissions(path, private) {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(ControlListener::Socket(listener))
}

/// Removes the socket, so that nobody stumbles over it. Call it while the store is still locked.
pub fn remove_socket(store: &LocalEngine) {
    // Not by its path, at which another server may have its own by now.
    #[cfg(unix)]
    let _ = store.remove_beside(SOCKET_NAME);
    #[cfg(not(unix))]
    let _ = store;
}

pub enum ControlStream {
    #[cfg(unix)]
    Socket(UnixStream),
    Tcp(TcpStream),
}

/// Calls the same method of either kind of stream.
macro_rules! either {
    ($stream:expr, $name:ident => $call:expr) => {
        match $stream {
            #[cfg(unix)]
            ControlStream::Socket($name) => $call,
            ControlStream::Tcp($name) => $call,
        }
    };
}

impl ControlStream {
    pub(super) fn connect(location: &Path, address: ControlAddress) -> io::Result<ControlStream> {
        match address {
            #[cfg(unix)]
            ControlAddress::Socket => {
                UnixStream::connect(location.join(SOCKET_NAME)).map(ControlStream::Socket)
            }
            ControlAddress::Tcp(address) => {
                let _ = location;
                TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(ControlStream::Tcp)
            }
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<ControlStream> {
        match self {
            #[cfg(unix)]
            ControlStream::Socket(stream) => stream.try_clone().map(ControlStream::Socket),
            ControlStream::Tcp(stream) => stream.try_clone().map(ControlStream::Tcp),
        }
    }

    pub(super) fn set_read_timeout(&self, time_max: Duration) -> io::Result<()> {
        either!(self, stream => stream.set_read_timeout(Some(time_max)))
    }

    pub(super) fn set_write_timeout(&self, time_max: Duration) -> io::Result<()> {
        either!(self, stream => stream.set_write_timeout(Some(time_max)))
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(self, stream => stream.shutdown(how))
    }
}

impl Read for &ControlStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => { let mut stream = stream; stream.read(bytes) })
    }
}

impl Read for ControlStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self).read(bytes)
    }
}

impl Write for &ControlStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => { let mut stream = stream; stream.write(bytes) })
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(self, stream => { let mut stream = stream; stream.flush() })
    }
}
