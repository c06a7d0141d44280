//! The server's side of control connections: one thread accepts, and each connection gets a thread, up to a limit.
//!
//! Promises: a connection without the token learns nothing and costs little; a failed command affects nothing else; one
//! restore runs at a time. The work itself belongs to the crate `backup` and to the engine.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use backup::{BackupReader, LoadSelection, SaveOptions};
use engine::env::Clock;
use engine_local::LocalEngine;
use tokio::runtime::Handle;

use super::{ControlRequest, GREETING, Invitation, read_line};
use crate::random;

/// Connections above this number are closed without an answer.
const CONNECTION_COUNT_MAX: usize = 8;
/// How long to wait for the request line, and for each read or write after it.
const PAUSE_MAX: Duration = Duration::from_secs(60);
const TOKEN_BYTES: usize = 32;

/// What control connections share.
struct Controlled {
    /// Weak, because the server owns the engine and closes it on shutdown.
    engine: Weak<LocalEngine>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    token: String,
    connection_count: AtomicUsize,
    restoring: Mutex<()>,
}

/// Starts to listen and writes the invitation into the data directory.
pub fn start(
    location: &Path,
    engine: &Arc<LocalEngine>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
) -> Result<(), String> {
    let bytes = random::bytes::<TOKEN_BYTES>()?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let unable = |error: io::Error| format!("cannot listen for commands: {error}");
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(unable)?;
    let address = listener.local_addr().map_err(unable)?;
    let invitation = Invitation { address, token: token.clone() };
    invitation
        .write(location)
        .or_else(|error| match error.kind() {
            // On a full disk too, commands must reach the server.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if engine.release_some_space() => {
                invitation.write(location)
            }
            _ => Err(error),
        })
        .map_err(unable)?;
    let (connection_count, restoring) = (AtomicUsize::new(0), Mutex::new(()));
    let engine = Arc::downgrade(engine);
    let controlled = Arc::new(Controlled { engine, clock, runtime, token, connection_count, restoring });
    spawn("lazulite-control", move || accept(&listener, &controlled)).map_err(unable)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(|_| ())
}

fn accept(listener: &TcpListener, controlled: &Arc<Controlled>) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // For example out of file descriptors. Do not spin until some are free.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if controlled.connection_count.fetch_add(1, Ordering::AcqRel) >= CONNECTION_COUNT_MAX {
            controlled.connection_count.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let mine = controlled.clone();
        let served = spawn("lazulite-command", move || {
            if let Err(error) = mine.serve(&stream) {
                log::warn!("a command ended early: {error}");
            }
            mine.connection_count.fetch_sub(1, Ordering::AcqRel);
        });
        if served.is_err() {
            controlled.connection_count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Controlled {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PAUSE_MAX))?;
        stream.set_write_timeout(Some(PAUSE_MAX))?;
        let mut input = BufReader::new(stream);
        let line = read_line(&mut input)?;
        let rest = line.strip_prefix(GREETING).and_then(|rest| rest.strip_prefix(' '));
        let Some((token, request)) = rest.and_then(|rest| rest.split_once(' ')) else { return Ok(()) };
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Ok(());
        }
        let mut out = BufWriter::new(stream);
        let Some(engine) = self.engine.upgrade() else {
            writeln!(out, "error the server is shutting down")?;
            return out.flush();
        };
        match ControlRequest::parse(request) {
            Some(ControlRequest::Backup { rate_bytes_max }) => {
                self.back_up(&engine, rate_bytes_max, &mut out)?
            }
            Some(ControlRequest::Restore { account, name, new_name }) => {
                self.restore(
                    &engine,
                    &mut input,
                    &LoadSelection::Table { account, name, new_name },
                    &mut out,
                )?;
            }
            Some(ControlRequest::Check) => check(&engine, &mut out)?,
            None => writeln!(out, "error the server does not know this command")?,
        }
        out.flush()
    }

    /// A failure after the `ok` cuts the backup short. The reader notices, because the end is missing.
    fn back_up(
        &self,
        engine: &LocalEngine,
        rate_bytes_max: u64,
        out: &mut (impl Write + Send),
    ) -> io::Result<()> {
        writeln!(out, "ok")?;
        let saving = backup::save(engine, &*self.clock, SaveOptions { rate_bytes_max }, out);
        self.runtime.block_on(saving).map(|_| ()).map_err(io::Error::other)
    }

    fn restore(
        &self,
        engine: &LocalEngine,
        input: &mut (impl io::Read + Send),
        selection: &LoadSelection,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let _one = self.restoring.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = BackupReader::open(input).and_then(|backup| {
            self.runtime.block_on(backup::load(engine, backup, selection, &mut |_, _| {}))
        });
        match loaded {
            Ok(loaded) => {
                let counts = loaded.counts;
                writeln!(out, "ok\n{} {} {}", counts.table_count, counts.row_count, loaded.accounts.join(","))
            }
            Err(error) => writeln!(out, "error {error}"),
        }
    }
}

fn check(engine: &LocalEngine, out: &mut impl Write) -> io::Result<()> {
    let checked = engine.check();
    writeln!(
        out,
        "ok\n{} {} {} {} {} {}",
        checked.table_count,
        checked.row_count,
        checked.dropped_table_count,
        checked.dropped_row_count,
        checked.finding_count,
        checked.last_version_ticks
    )?;
    for finding in &checked.findings {
        writeln!(out, "{}", finding.replace('\n', " "))?;
    }
    Ok(())
}

/// Compares in constant time, so that timing does not reveal how much of a token is right.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}
