//! `lazulite backup FILE`: writes a consistent snapshot of a store into one file, with or without a running server.
//!
//! Promises: the file is called `FILE.part` until it is complete, was read back and is durable; only then does it get
//! its name. The format belongs to the crate `backup`, the connection to a running server to `control`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{BackupError, BackupReader, SaveOptions, Totals};
use contents::ContentStore;
use engine::Engine;
use engine::env::SystemClock;

use crate::control::{self, ControlRequest};
use crate::place::StoreChoice;
use crate::progress::Progress;
use crate::{contents_place, remote, store};

pub struct BackupRequest {
    pub file: PathBuf,
    /// Uncompressed bytes a second; 0 means no limit.
    pub rate_bytes_max: u64,
}

pub fn run(request: &BackupRequest, place: &StoreChoice) -> Result<(), String> {
    let file = &request.file;
    if file.exists() {
        return Err(format!("{} is there already: choose another name", file.display()));
    }
    let part = PathBuf::from(format!("{}.part", file.display()));
    let cannot = |error: String| format!("no backup was made: {error}");
    let mut progress = Progress::start();
    let rate = request.rate_bytes_max;
    let made = match place {
        StoreChoice::Engine(address) => remote::work_on(address, async |engine| {
            let contents = contents_place::open_of_engine(&*engine).await?;
            let made = from_engine(&*engine, contents.as_ref(), rate, &part).await;
            contents_place::close(contents).await;
            made
        }),
        StoreChoice::Directory(location) => {
            let runtime = store::runtime()?;
            match store::open_whole(location, &runtime)? {
                Some(store) => runtime.block_on(async {
                    let made = from_engine(&*store.engine, store.contents.as_ref(), rate, &part).await;
                    store.close().await;
                    made
                }),
                None => from_server(location, rate, &part, &mut progress),
            }
        }
    };
    let verified = made.and_then(|()| verify(&part, &mut progress));
    progress.clear();
    let named = verified.and_then(|counts| {
        name(&part, file).map(|()| counts).map_err(|error| format!("{}: {error}", file.display()))
    });
    let counts = named.map_err(|error| {
        // A partial backup is of no use.
        let _ = std::fs::remove_file(&part);
        cannot(error)
    })?;
    let size_bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    println!(
        "{}: {}, {} bytes, in {:.1} s",
        file.display(),
        described(&counts),
        size_bytes,
        progress.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What there is, in words.
pub fn described(counts: &Totals) -> String {
    let Totals { table_count, row_count, queue_count, message_count, .. } = counts;
    let Totals { container_count, blob_count, content_bytes, .. } = counts;
    let rows =
        format!("{table_count} tables, {row_count} entities, {queue_count} queues, {message_count} messages");
    match container_count {
        0 => rows,
        _ => format!(
            "{rows}, {container_count} containers, {blob_count} blobs with {content_bytes} bytes beside their rows"
        ),
    }
}

async fn from_engine(
    engine: &dyn Engine,
    contents: Option<&Arc<dyn ContentStore>>,
    rate_bytes_max: u64,
    part: &Path,
) -> Result<(), String> {
    let mut out = BufWriter::new(create(part)?);
    let clock = SystemClock::new();
    let saving = backup::save(engine, contents, &clock, SaveOptions { rate_bytes_max }, &mut out);
    saving.await.map_err(|error| error.to_string())?;
    finish(out, part)
}

fn from_server(
    location: &Path,
    rate_bytes_max: u64,
    part: &Path,
    progress: &mut Progress,
) -> Result<(), String> {
    let input = control::connect(location, &ControlRequest::Backup { rate_bytes_max })?.answer()?;
    let mut out = BufWriter::new(create(part)?);
    let tee = Tee { input, out: &mut out };
    let mut backup = BackupReader::open(tee).map_err(|error| error.to_string())?.tolerant();
    read_through(&mut backup, progress)
        .map_err(|error| format!("the server's backup is not complete: {error}"))?;
    drop(backup);
    finish(out, part)
}

/// A reader that copies everything it reads to `out`.
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

/// Only the owner can read it, like the store.
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

/// Reads the backup to its end, which verifies it, and returns its counts.
pub fn read_through(
    backup: &mut BackupReader<impl Read>,
    progress: &mut Progress,
) -> Result<Totals, BackupError> {
    let total = backup.head().row_count;
    while backup.next_content()?.is_some() {
        let seen = backup.seen();
        progress.show(seen.row_count + seen.message_count + seen.blob_row_count, total);
    }
    Ok(backup.seen())
}

/// Reads the file back from the disk.
fn verify(part: &Path, progress: &mut Progress) -> Result<Totals, String> {
    let file = File::open(part).map_err(|error| format!("{}: {error}", part.display()))?;
    let failed = |error: BackupError| format!("reading {} back failed: {error}", part.display());
    let mut backup = BackupReader::open(BufReader::new(file)).map_err(failed)?.tolerant();
    let counts = read_through(&mut backup, progress).map_err(failed)?;
    if let Some(sentence) = backup.broken_rule() {
        // Rather this backup than none: the rules may have become stricter since the data was stored.
        progress.clear();
        eprintln!("lazulite: warning: restore will refuse this backup until this is mended: {sentence}");
    }
    Ok(counts)
}

fn name(part: &Path, file: &Path) -> io::Result<()> {
    std::fs::rename(part, file)?;
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    files::sync_directory(parent.unwrap_or(Path::new(".")))
}
