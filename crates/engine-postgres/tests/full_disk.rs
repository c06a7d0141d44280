//! A full disk under the database: writes are refused, reads go on, nothing acknowledged is lost, and when there is space
//! again there is no more to do.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::conformance::FAMILIES;
use engine::env::SystemClock;
use engine::keys::Key;
use engine::{Commit, CommitError, Effect, Engine, Expect, Family, Health, Namespace, Op, TableId};
use engine_postgres::PostgresEngine;
use testkit::{Postgres, Stopwatch, TempDir};

use support::Database;

const MEGABYTE: usize = 1024 * 1024;
const ROW_BYTES: usize = 60_000;

/// A file system in memory. Dropping it takes it away.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    fn mount(megabytes: usize) -> Result<SmallDisk, String> {
        let directory = TempDir::new().map_err(|error| error.to_string())?;
        let options = format!("size={megabytes}m,mode=0777");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(directory.path())
            .output()
            .map_err(|error| format!("mount does not start: {error}"))?;
        match output.status.success() {
            true => {
                // The user who runs PostgreSQL has to find its own directory in there.
                fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
                Ok(SmallDisk { directory })
            }
            false => Err(format!("no small disk: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Uses up the space, except for this much.
    fn fill(&self, megabytes_left: usize) {
        let output = Command::new("df").args(["--output=avail", "-B1"]).arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let available: usize = text.lines().nth(1).unwrap().trim().parse().unwrap();
        fs::write(self.ballast(), vec![b'x'; available.saturating_sub(megabytes_left * MEGABYTE)]).unwrap();
    }

    fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn put(table: TableId, row: &str) -> Commit {
    // Nothing that the database could compress away.
    let value: Vec<u8> = (0..ROW_BYTES).map(|_| fastrand::u8(..)).collect();
    Commit::one(table, "p", Op { row: row.into(), expect: Expect::Absent, effect: Effect::Put(value.into()) })
}

async fn engine_and_table(url: String) -> (PostgresEngine, TableId) {
    let database = Database { url, schema: "disk".to_owned() };
    let mut options = database.options(FAMILIES, Arc::new(SystemClock::new()));
    options.deadline = Duration::from_secs(3);
    let engine = PostgresEngine::connect(options).await.unwrap();
    let table = engine.create_table(Namespace::new(Family::FIRST, "n"), "t", Bytes::new()).await.unwrap();
    (engine, table)
}

async fn assert_all_there(engine: &PostgresEngine, table: TableId, acknowledged: &[String]) {
    for row in acknowledged {
        let found = engine.get(table, Key { partition: "p", row }).await.unwrap();
        assert!(found.is_some_and(|found| found.value.len() == ROW_BYTES), "{row} is lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_space_for_rows_writes_are_refused_and_everything_else_goes_on() {
    let name = "without_space_for_rows_writes_are_refused_and_everything_else_goes_on";
    let (disk, server) = match SmallDisk::mount(64).and_then(|disk| Ok((disk, Postgres::start()?))) {
        Ok(both) => both,
        Err(reason) => {
            println!("SKIPPED {name}: {reason}");
            return;
        }
    };
    // The rows are on the small disk, and the log is not.
    let place = disk.path().join("rows");
    fs::create_dir(&place).unwrap();
    server.give(&place).unwrap();
    server.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display())).unwrap();
    let url = format!("{}?options=-c%20default_tablespace%3Dsmall", server.url());
    let (engine, table) = engine_and_table(url).await;
    engine.commit(put(table, "first")).await.unwrap();
    let mut acknowledged = vec!["first".to_owned()];
    disk.fill(4);
    let refusal = loop {
        let row = format!("r{}", acknowledged.len());
        match engine.commit(put(table, &row)).await {
            Ok(_) => acknowledged.push(row),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 1_000, "the disk is never full");
    };
    // The service answers 503, as it does with the embedded engine.
    assert_eq!(refusal, CommitError::Busy);
    assert_eq!(engine.gauges().health, Health::Full);
    for attempt in 0..20 {
        let ops = ["x", "y"].map(|row| put(table, &format!("{row}{attempt}")).ops.remove(0));
        let batch = Commit { table, partition: "p".into(), ops: ops.to_vec() };
        assert_eq!(engine.commit(batch).await, Err(CommitError::Busy));
        assert_eq!(engine.get(table, Key { partition: "p", row: &format!("y{attempt}") }).await, Ok(None));
    }
    assert_all_there(&engine, table, &acknowledged).await;
    disk.make_room();
    engine.commit(put(table, "after")).await.unwrap();
    acknowledged.push("after".to_owned());
    assert_all_there(&engine, table, &acknowledged).await;
    println!("{} rows acknowledged", acknowledged.len());
}

/// PostgreSQL ends by itself when its log finds no space, and does not start again without.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_space_for_the_log_nothing_acknowledged_is_lost() {
    let name = "without_space_for_the_log_nothing_acknowledged_is_lost";
    let started = SmallDisk::mount(256).and_then(|disk| {
        let directory = TempDir::new_in(disk.path()).map_err(|error| error.to_string())?;
        let settings = [("min_wal_size", "32MB"), ("max_wal_size", "48MB"), ("autovacuum", "off")];
        Ok((Postgres::start_in(directory, &testkit::postgres_programs()?, &settings)?, disk))
    });
    let (mut server, disk) = match started {
        Ok(both) => both,
        Err(reason) => {
            println!("SKIPPED {name}: {reason}");
            return;
        }
    };
    let (engine, table) = engine_and_table(server.url()).await;
    let mut acknowledged = Vec::new();
    disk.fill(10);
    let mut failures = Vec::new();
    while failures.len() < 5 {
        let row = format!("r{}.{}", acknowledged.len(), failures.len());
        match engine.commit(put(table, &row)).await {
            Ok(_) => acknowledged.push(row),
            Err(error) => failures.push(error),
        }
        assert!(acknowledged.len() < 1_000, "the disk is never full");
    }
    // Rows do not fit any more. Somebody else's go on filling the log.
    let message = "SELECT pg_logical_emit_message(true, 'test', repeat('x', 4000000))";
    for _ in 0..100 {
        if server.log().contains("PANIC") {
            break;
        }
        let _ = server.sql(message);
    }
    assert!(server.log().contains("PANIC"), "the log never runs out of space");
    for row in ["down1", "down2"] {
        failures.extend(engine.commit(put(table, row)).await.err());
    }
    assert!(!acknowledged.is_empty() && !failures.is_empty());
    // 503, or where nobody knows, 500 OperationTimedOut.
    for failure in &failures {
        assert!(matches!(failure, CommitError::Busy | CommitError::Unknown(_)), "{failure:?}");
        assert!(!failure.to_string().contains(server.password()));
    }
    disk.make_room();
    // Patroni would do that.
    server.restart().unwrap();
    let watch = Stopwatch::start();
    while engine.commit(put(table, &format!("after{}", watch.elapsed().as_nanos()))).await.is_err() {
        assert!(watch.elapsed() < Duration::from_secs(60), "writes never go on");
    }
    assert_all_there(&engine, table, &acknowledged).await;
    println!("{} rows acknowledged, {} writes refused: {failures:?}", acknowledged.len(), failures.len());
}
