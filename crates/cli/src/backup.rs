//! `lazulite backup FILE`: everything of one moment into one file, from a running server or from a store at rest.
//!
//! Promises: the file gets its name when it is whole, read back and durable; before that it is `FILE.part`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use backup::{BackupReader, End, SaveOptions};
use engine::env::SystemClock;

use crate::control::{self, Request};
use crate::progress::Progress;
use crate::store;

pub struct BackupRequest {
    pub file: PathBuf,
    /// Uncompressed bytes a second; 0 for as fast as it goes.
    pub rate_bytes_max: u64,
}

pub fn run(request: &BackupRequest, location: &Path) -> Result<(), String> {
    let file = &request.file;
    if file.exists() {
        return Err(format!("{} is there already: choose another name", file.display()));
    }
    let part = PathBuf::from(format!("{}.part", file.display()));
    let cannot = |error: String| format!("no backup was made: {error}");
    let mut progress = Progress::start();
    let made = match store::open(location)? {
        Some(engine) => from_store(&engine, request.rate_bytes_max, &part),
        None => from_server(location, request.rate_bytes_max, &part, &mut progress),
    };
    let verified = made.and_then(|()| verify(&part, &mut progress));
    progress.clear();
    let named = verified.and_then(|counts| {
        name(&part, file).map(|()| counts).map_err(|error| format!("{}: {error}", file.display()))
    });
    let counts = named.map_err(|error| {
        // What is left of it helps nobody.
        let _ = std::fs::remove_file(&part);
        cannot(error)
    })?;
    let size_bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    println!(
        "{}: {} tables, {} entities, {} bytes, in {:.1} s",
        file.display(),
        counts.table_count,
        counts.row_count,
        size_bytes,
        progress.elapsed().as_secs_f64()
    );
    Ok(())
}

fn from_store(engine: &engine_local::LocalEngine, rate_bytes_max: u64, part: &Path) -> Result<(), String> {
    let mut out = BufWriter::new(create(part)?);
    let clock = SystemClock::new();
    let saving = backup::save(engine, &clock, SaveOptions { rate_bytes_max }, &mut out);
    store::wait_for(saving)?.map_err(|error| error.to_string())?;
    finish(out, part)
}

fn from_server(
    location: &Path,
    rate_bytes_max: u64,
    part: &Path,
    progress: &mut Progress,
) -> Result<(), String> {
    let input = control::connect(location, &Request::Backup { rate_bytes_max })?.answer()?;
    let mut out = BufWriter::new(create(part)?);
    let tee = Tee { input, out: &mut out };
    let mut backup = BackupReader::open(tee).map_err(|error| error.to_string())?;
    let total = backup.head().row_count;
    while backup
        .next_content()
        .map_err(|error| format!("what the server sent is not whole: {error}"))?
        .is_some()
    {
        progress.show(backup.seen().row_count, total);
    }
    drop(backup);
    finish(out, part)
}

/// Copies what is read.
struct Tee<'a, R> {
    input: R,
    out: &'a mut BufWriter<File>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = self.input.read(bytes)?;
        self.out.write_all(&bytes[..size])?;
        Ok(size)
    }
}

/// For its owner's eyes only, as the store is.
fn create(part: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(part).map_err(|error| format!("{}: {error}", part.display()))
}

fn finish(out: BufWriter<File>, part: &Path) -> Result<(), String> {
    let file = out.into_inner().map_err(|error| format!("{}: {error}", part.display()))?;
    file.sync_all().map_err(|error| format!("{}: {error}", part.display()))
}

/// Reads the file back.
fn verify(part: &Path, progress: &mut Progress) -> Result<End, String> {
    let file = File::open(part).map_err(|error| format!("{}: {error}", part.display()))?;
    let bad = |error: backup::BackupError| format!("{} does not read back: {error}", part.display());
    let mut backup = BackupReader::open(BufReader::new(file)).map_err(bad)?;
    let total = backup.head().row_count;
    while backup.next_content().map_err(bad)?.is_some() {
        progress.show(backup.seen().row_count, total);
    }
    Ok(backup.seen())
}

fn name(part: &Path, file: &Path) -> io::Result<()> {
    std::fs::rename(part, file)?;
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    files::sync_directory(parent.unwrap_or(Path::new(".")))
}
