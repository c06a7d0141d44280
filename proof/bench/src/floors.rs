//! Lower bounds for durable writes: what the disk and the raw engine achieve for one committing thread, without a
//! server.
//!
//! Rows have the size of the benchmark's entities. Each floor uses a file of its own and runs for the same time.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use loadgen::request::{BATCH_OPERATION_COUNT, entity_bytes, row_key_bytes, row_key_hex};
use loadgen::sources::mix;
use loadgen::{Error, clock};
use redb::{Database, Durability, TableDefinition};

use crate::results::Floor;

const BLOCK_BYTES: usize = 4096;
/// As many rows as connections that insert at once: a group commit can hold one of each.
const GROUP_COUNT: usize = 64;
const BATCHES_PER_TRANSACTION: usize = 10;
/// The log file is preallocated, so that a sync writes data but no new length, and is overwritten in a circle.
const LOG_BYTES: u64 = 256 * 1024 * 1024;
const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");

pub const SYNC: &str = "sync";
pub const LOG_GROUP: &str = "log-group";
pub const LOG_BATCH: &str = "log-batch";
pub const REDB_GROUP: &str = "redb-group";
pub const REDB_BATCH: &str = "redb-batch";
pub const REDB_TEN_BATCHES: &str = "redb-ten-batches";

pub fn measure(directory: &Path, seconds: Duration) -> Result<Vec<Floor>, Error> {
    eprintln!("the disk and the raw engine");
    let directory = directory.join("floors");
    std::fs::create_dir_all(&directory)?;
    let ten_batches = BATCHES_PER_TRANSACTION * BATCH_OPERATION_COUNT;
    let floors = vec![
        sync(&directory, seconds)?,
        log(&directory, LOG_GROUP, "the log alone, 64 rows and one sync", GROUP_COUNT, seconds)?,
        log(&directory, LOG_BATCH, "the log alone, 100 rows and one sync", BATCH_OPERATION_COUNT, seconds)?,
        engine(
            &directory,
            REDB_GROUP,
            "redb, 64 single puts in one transaction",
            GROUP_COUNT,
            true,
            seconds,
        )?,
        engine(
            &directory,
            REDB_BATCH,
            "redb, 100 puts in one transaction",
            BATCH_OPERATION_COUNT,
            false,
            seconds,
        )?,
        engine(
            &directory,
            REDB_TEN_BATCHES,
            "redb, ten times 100 puts in one transaction",
            ten_batches,
            false,
            seconds,
        )?,
    ];
    let _ = std::fs::remove_dir_all(&directory);
    Ok(floors)
}

/// Repeats a commit for this long.
fn repeat(
    name: &str,
    what: &str,
    rows: usize,
    seconds: Duration,
    mut commit: impl FnMut() -> Result<(), Error>,
) -> Result<Floor, Error> {
    let start = clock::now();
    let mut commits = 0u64;
    while clock::now().duration_since(start) < seconds {
        commit()?;
        commits += 1;
    }
    let syncs_per_second = commits as f64 / clock::now().duration_since(start).as_secs_f64();
    let entities_per_second = syncs_per_second * rows as f64;
    eprintln!("    {what:45} {syncs_per_second:>8.0} syncs/s, {entities_per_second:>10.0} rows/s");
    Ok(Floor { name: name.to_owned(), what: what.to_owned(), syncs_per_second, entities_per_second })
}

/// Appends a block and syncs it.
fn sync(directory: &Path, seconds: Duration) -> Result<Floor, Error> {
    let mut file = File::create(directory.join("sync"))?;
    let block = [0x5a; BLOCK_BYTES];
    repeat(SYNC, "the disk, append of 4 KiB and a sync", 1, seconds, || {
        file.write_all(&block)?;
        Ok(file.sync_data()?)
    })
}

fn log(directory: &Path, name: &str, what: &str, rows: usize, seconds: Duration) -> Result<Floor, Error> {
    let path = directory.join(name);
    let mut file = File::create(&path)?;
    preallocate(&mut file)?;
    let group = vec![0x5a; rows * entity_bytes()];
    let mut place = 0;
    let floor = repeat(name, what, rows, seconds, || {
        if place + group.len() as u64 > LOG_BYTES {
            place = file.seek(SeekFrom::Start(0))?;
        }
        file.write_all(&group)?;
        place += group.len() as u64;
        Ok(file.sync_data()?)
    });
    let _ = std::fs::remove_file(path);
    floor
}

/// Writes the whole file once: setting only its length would allocate blocks at the first write.
fn preallocate(file: &mut File) -> Result<(), Error> {
    let zeros = vec![0; 1024 * 1024];
    for _ in 0..LOG_BYTES / zeros.len() as u64 {
        file.write_all(&zeros)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file.sync_all()?)
}

fn engine(
    directory: &Path,
    name: &str,
    what: &str,
    rows: usize,
    is_random: bool,
    seconds: Duration,
) -> Result<Floor, Error> {
    let path = directory.join(name);
    let database = Database::create(&path)?;
    let row = vec![0x5a; entity_bytes()];
    let mut number = 0;
    let floor = repeat(name, what, rows, seconds, || {
        let mut transaction = database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut table = transaction.open_table(ROWS)?;
            for _ in 0..rows {
                number += 1;
                let key = if is_random { row_key_hex(mix(number)) } else { row_key_bytes(number) };
                table.insert(&key[..], &row[..])?;
            }
        }
        Ok(transaction.commit()?)
    });
    drop(database);
    let _ = std::fs::remove_file(path);
    floor
}
