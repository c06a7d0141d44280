//! The directory of a running server is moved away, or a volume is mounted over it, and another store is served at the
//! same path. Promises: each store has exactly the rows that its own server acknowledged, and the displaced server stops
//! accepting writes and says why.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use testkit::{Request, Stopwatch, TempDir};

use super::{Mounted, check_log, command, insert, listed, outcome, start};
use crate::Error;
use crate::promises::Promises;
use crate::victim::{Launch, Victim};

/// The displaced server notices within this time.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
/// Rows to write before and after: enough for the log to go on in a new file.
const ROW_COUNT: usize = 40;
/// The rows of the second store have numbers from here on.
const SECOND_START: usize = 500_000;

/// A server, and the rows that it acknowledged.
struct Writing {
    server: Victim,
    next_row: AtomicUsize,
    acknowledged: BTreeSet<usize>,
}

impl Writing {
    fn start(launch: &Launch, first_row: usize) -> Result<Writing, Error> {
        let server = start(launch)?;
        server.ask(&Request::post("/Tables").json("{\"TableName\":\"full\"}"))?;
        Ok(Writing { server, next_row: AtomicUsize::new(first_row), acknowledged: BTreeSet::new() })
    }

    /// Writes one row; returns the refusal if there is one.
    fn write(&mut self) -> Result<Option<String>, Error> {
        let row = self.next_row.fetch_add(1, Ordering::Relaxed);
        let response = self.server.ask(&insert(row))?;
        if response.status == 201 {
            self.acknowledged.insert(row);
            return Ok(None);
        }
        Ok(Some(outcome(&response)))
    }

    fn write_rows(&mut self) -> Result<(), Error> {
        for _ in 0..ROW_COUNT {
            if let Some(refusal) = self.write()? {
                return Err(format!("a write was refused: {refusal}").into());
            }
        }
        Ok(())
    }

    /// Writes until it is refused. Returns the refusal and how long it took.
    fn write_until_refused(&mut self) -> Result<Option<(String, Duration)>, Error> {
        let watch = Stopwatch::start();
        while watch.elapsed() < NOTICED_WITHIN {
            if let Some(refusal) = self.write()? {
                return Ok(Some((refusal, watch.elapsed())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(None)
    }
}

pub fn trial(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    moved_away(binary, promises)?;
    mounted_over(binary, promises)
}

/// `mv D D.old`, a second server on D, writes to both, `kill -9` for both.
fn moved_away(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = TempDir::new()?;
    let (path, old) = (directory.path().join("data"), directory.path().join("data.old"));
    let launch = Launch::new(binary, &path);
    let mut first = Writing::start(&launch, 0)?;
    first.write_rows()?;
    std::fs::rename(&path, &old)?;
    let mut second = Writing::start(&launch, SECOND_START)?;
    second.write_rows()?;
    expect_refusal(&mut first, promises, "moved away")?;
    second.write_rows()?;
    second.server.finish();
    check_log(promises, first.server, "no longer leads to store");
    let old = Launch::new(binary, &old);
    expect_rows(&old, &first.acknowledged, promises, "the store that was moved away has its own rows")?;
    expect_rows(&launch, &second.acknowledged, promises, "the store in its place has its own rows")
}

/// A server starts before its volume is mounted; then the volume, which holds another store, comes over its directory.
fn mounted_over(binary: &Path, promises: &mut Promises) -> Result<(), Error> {
    let directory = TempDir::new()?;
    let path = directory.path().join("data");
    let volume = Mounted::new(&directory.path().join("volume"), super::DISK_MIB)?;
    let mut other = Writing::start(&Launch::new(binary, &volume.0.join("data")), SECOND_START)?;
    other.write_rows()?;
    other.server.finish();

    let launch = Launch::new(binary, &path);
    let mut first = Writing::start(&launch, 0)?;
    first.write_rows()?;
    let (from, to) = (volume.0.join("data"), Mounted(path.clone()));
    command("mount", &["--bind", &from.display().to_string(), &path.display().to_string()])?;
    expect_refusal(&mut first, promises, "covered by a mount")?;
    check_log(promises, first.server, "no longer leads to store");
    expect_rows(&launch, &other.acknowledged, promises, "the volume has its own rows")?;
    drop(to);
    expect_rows(&launch, &first.acknowledged, promises, "the covered store has its own rows")
}

fn expect_refusal(server: &mut Writing, promises: &mut Promises, what: &str) -> Result<(), Error> {
    let refused = server.write_until_refused()?;
    let text = match &refused {
        Some((refusal, after)) => format!("{refusal} after {} ms", after.as_millis()),
        None => "it goes on".to_owned(),
    };
    promises.check(
        refused.is_some(),
        &format!("a server whose directory is {what} stops accepting writes: {text}"),
    );
    promises.check(listed(&server.server)? == server.acknowledged, "and goes on reading");
    Ok(())
}

fn expect_rows(
    launch: &Launch,
    rows: &BTreeSet<usize>,
    promises: &mut Promises,
    what: &str,
) -> Result<(), Error> {
    match launch.start()? {
        Ok(server) => {
            let found = listed(&server)?;
            let foreign = found.difference(rows).count();
            let missing = rows.difference(&found).count();
            promises.check(
                found == *rows,
                &format!("{what}: {} rows, {missing} missing, {foreign} foreign", found.len()),
            );
            server.finish();
        }
        Err(refusal) => {
            promises.check(false, &format!("{what}: it does not open: {}", refusal.words.trim_end()));
        }
    }
    Ok(())
}
