//! The server's side of control connections: one thread accepts, and each connection gets a thread, up to a limit.
//!
//! Promises: a connection without the token learns nothing, costs little and keeps nobody out: those that have not yet
//! shown the token have a limit of their own, and when it is reached the oldest of them is closed. A failed command
//! affects nothing else; one restore runs at a time. The work itself belongs to the crates `backup`, `tables` and `queues`
//! and to the engine.

use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use backup::{BackupReader, LoadSelection, SaveOptions, Totals};
use engine::env::Clock;
use engine_local::LocalEngine;
use observe::Advice;
use protocol::auth::is_same_secret;
use server::Analytics;
use tokio::runtime::Handle;

use super::stream::{ControlListener, ControlStream};
use super::{ControlRequest, GREETING, Invitation, REQUEST_LINE_BYTES_MAX, read_line};
use crate::account_data::{AccountData, Services};
use crate::{check, random};

/// Commands that run at the same time. Further ones are told to try again.
const COMMAND_COUNT_MAX: usize = 8;
/// Connections that have not shown the token yet. For each further one the oldest is closed.
const STRANGER_COUNT_MAX: usize = 32;
/// How long a connection may take to show the token. Our own commands send it at once.
const GREETING_TIME_MAX: Duration = Duration::from_secs(5);
/// How long each read or write of a command may take. A backup may take hours, but it must move on.
const PAUSE_MAX: Duration = Duration::from_secs(60);
const TOKEN_BYTES: usize = 32;

/// What control connections share.
struct Controlled {
    /// Weak, because the server owns the engine and closes it on shutdown.
    engine: Weak<LocalEngine>,
    clock: Arc<dyn Clock>,
    advice: Arc<dyn Advice>,
    analytics: Arc<Analytics>,
    runtime: Handle,
    token: String,
    command_count: AtomicUsize,
    strangers: Mutex<Strangers>,
    restoring: Mutex<()>,
}

/// The connections that have not shown the token yet, oldest first, each with a number.
#[derive(Default)]
struct Strangers {
    next_number: u64,
    waiting: VecDeque<(u64, ControlStream)>,
}

/// Starts to listen and writes the invitation into the data directory, whose store must be locked.
pub fn start(
    location: &Path,
    engine: &Arc<LocalEngine>,
    clock: Arc<dyn Clock>,
    advice: Arc<dyn Advice>,
    analytics: Arc<Analytics>,
    runtime: Handle,
) -> Result<(), String> {
    let bytes = random::bytes::<TOKEN_BYTES>()?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let unable = |error: io::Error| format!("cannot listen for commands: {error}");
    let (listener, address) = ControlListener::bind(location).map_err(unable)?;
    let invitation = Invitation { address, token: token.clone() };
    invitation
        .write(engine)
        .or_else(|error| match error.kind() {
            // On a full disk too, commands must reach the server.
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded if engine.release_some_space() => {
                invitation.write(engine)
            }
            _ => Err(error),
        })
        .map_err(unable)?;
    let controlled = Arc::new(Controlled {
        engine: Arc::downgrade(engine),
        clock,
        advice,
        analytics,
        runtime,
        token,
        command_count: AtomicUsize::new(0),
        strangers: Mutex::default(),
        restoring: Mutex::new(()),
    });
    spawn("lazulite-control", move || accept(&listener, &controlled)).map_err(unable)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(|_| ())
}

fn accept(listener: &ControlListener, controlled: &Arc<Controlled>) {
    loop {
        let accepted = listener.accept().and_then(|stream| {
            let number = controlled.receive(stream.try_clone()?);
            let mine = controlled.clone();
            let spawned = spawn("lazulite-command", move || mine.serve(number, &stream));
            spawned.inspect_err(|_| {
                controlled.let_go(number);
            })
        });
        if accepted.is_err() {
            // For example out of file descriptors. Do not spin until some are free.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Reads until a moment, however the bytes trickle in.
struct UntilDeadline<'a> {
    stream: &'a ControlStream,
    clock: &'a dyn Clock,
    deadline: Duration,
}

impl Read for UntilDeadline<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let rest = self.deadline.saturating_sub(self.clock.monotonic());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(rest)?;
        let mut stream = self.stream;
        stream.read(bytes)
    }
}

impl Controlled {
    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stranger, and closes the oldest one if there are too many. Returns the new one's number.
    fn receive(&self, stream: ControlStream) -> u64 {
        let mut strangers = self.strangers();
        let number = strangers.next_number;
        strangers.next_number += 1;
        strangers.waiting.push_back((number, stream));
        if strangers.waiting.len() > STRANGER_COUNT_MAX
            && let Some((_, oldest)) = strangers.waiting.pop_front()
        {
            // Its thread notices and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        number
    }

    /// The connection is no stranger any more, or gone. `false` if it was closed meanwhile.
    fn let_go(&self, number: u64) -> bool {
        let mut strangers = self.strangers();
        let count = strangers.waiting.len();
        strangers.waiting.retain(|(waiting, _)| *waiting != number);
        strangers.waiting.len() < count
    }

    fn serve(&self, number: u64, stream: &ControlStream) {
        let greeted = self.greet(stream);
        if !self.let_go(number) {
            return;
        }
        // Not a word to, or about, a connection without the token.
        let Some(request) = greeted else { return };
        let is_one_too_many = self.command_count.fetch_add(1, Ordering::AcqRel) >= COMMAND_COUNT_MAX;
        let outcome = if is_one_too_many {
            let mut stream = stream;
            writeln!(stream, "error the server is busy with other commands: try again later")
        } else {
            self.obey(&request, stream)
        };
        self.command_count.fetch_sub(1, Ordering::AcqRel);
        if let Err(error) = outcome {
            log::warn!("a command ended early: {error}");
        }
    }

    /// The request, if the token comes with it and in time.
    fn greet(&self, stream: &ControlStream) -> Option<String> {
        let deadline = self.clock.monotonic() + GREETING_TIME_MAX;
        // Byte by byte: what follows the line belongs to the command.
        let mut input = UntilDeadline { stream, clock: &*self.clock, deadline };
        let line = read_line(&mut input, REQUEST_LINE_BYTES_MAX).ok()?;
        let (token, request) = line.strip_prefix(GREETING)?.strip_prefix(' ')?.split_once(' ')?;
        is_same_secret(token, &self.token).then(|| request.to_owned())
    }

    fn obey(&self, request: &str, stream: &ControlStream) -> io::Result<()> {
        stream.set_read_timeout(PAUSE_MAX)?;
        stream.set_write_timeout(PAUSE_MAX)?;
        let mut input = BufReader::new(stream);
        let mut out = BufWriter::new(stream);
        let Some(engine) = self.engine.upgrade() else {
            writeln!(out, "error the server is shutting down")?;
            return out.flush();
        };
        match ControlRequest::parse(request) {
            Some(ControlRequest::Backup { rate_bytes_max }) => {
                self.back_up(&engine, rate_bytes_max, &mut out)?
            }
            Some(ControlRequest::Restore(selection)) => {
                self.restore(&engine, &mut input, &selection, &mut out)?;
            }
            Some(ControlRequest::Check) => self.check(&engine, &mut out)?,
            Some(ControlRequest::AccountData { account }) => {
                let services = Services::new(engine, self.clock.clone());
                let counted = self.runtime.block_on(services.count(&account));
                answer_account_data(counted, &mut out)?;
            }
            Some(ControlRequest::Purge { account }) => {
                let services = Services::new(engine, self.clock.clone());
                self.runtime.block_on(self.analytics.forget(&account));
                let purged = self.runtime.block_on(services.purge(&account));
                answer_account_data(purged, &mut out)?;
            }
            Some(ControlRequest::Advice) => {
                writeln!(out, "ok\n{}", self.advice.to_json(self.clock.monotonic()))?;
            }
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

    fn check(&self, engine: &LocalEngine, out: &mut impl Write) -> io::Result<()> {
        let checked = self.runtime.block_on(check::check_open(engine));
        writeln!(out, "ok\n{}", checked.to_line())?;
        for finding in &checked.findings {
            writeln!(out, "{}", finding.replace('\n', " "))?;
        }
        Ok(())
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
                let Totals { table_count, row_count, queue_count, message_count, .. } = loaded.counts;
                writeln!(out, "ok\n{table_count} {row_count} {queue_count} {message_count}")
            }
            Err(error) => writeln!(out, "error {error}"),
        }
    }
}

fn answer_account_data(outcome: Result<AccountData, String>, out: &mut impl Write) -> io::Result<()> {
    match outcome {
        Ok(data) => writeln!(out, "ok\n{}", data.to_line()),
        Err(sentence) => writeln!(out, "error {sentence}"),
    }
}
