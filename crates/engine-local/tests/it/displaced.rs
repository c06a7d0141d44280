//! The path of a running store leads elsewhere: moved, covered by a mount, or replaced by another store. Two stores never
//! mix, and the one that was displaced takes no more writes.

use std::fs;
use std::path::{Path, PathBuf};

use engine::{CommitError, Engine, TableId};
use engine_local::{LocalEngine, OpenError, check_directory};
use tempfile::TempDir;

use crate::support::*;

/// Long enough that a few rows fill the first segment, so that the log goes on in a new file.
const ROW_BYTES: usize = 20_000;

struct Running {
    engine: LocalEngine,
    table: TableId,
    acknowledged: Vec<String>,
    name: &'static str,
}

impl Running {
    async fn open(path: &Path, name: &'static str) -> Running {
        let engine = LocalEngine::open(path, system_options()).unwrap();
        let table = table(&engine, "t").await;
        Running { engine, table, acknowledged: Vec::new(), name }
    }

    /// Writes rows until the engine refuses, or all of these are written.
    async fn write(&mut self, count: usize) -> Result<(), CommitError> {
        for _ in 0..count {
            let row = format!("{}-{:04}", self.name, self.acknowledged.len());
            commit(&self.engine, put(self.table, "p", &row, &"x".repeat(ROW_BYTES))).await?;
            self.acknowledged.push(row);
        }
        Ok(())
    }

    async fn write_until_refused(&mut self) {
        for _ in 0..2_000 {
            match self.write(1).await {
                Ok(()) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                Err(error) => {
                    assert_eq!(error, CommitError::Poisoned);
                    return;
                }
            }
        }
        panic!("the displaced engine goes on writing");
    }
}

/// What a crash at this moment leaves in the directory is sound, and has exactly these rows.
async fn expect_rows(directory: &Path, table: TableId, rows: &[String]) {
    let copy = killed(directory);
    let checked = check_directory(copy.path(), 0, &engine::conformance::FAMILIES).unwrap();
    assert_eq!(checked.findings, Vec::<String>::new());
    let engine = open(copy.path());
    let found: Vec<String> = all(&engine, table).await.unwrap().into_iter().map(|row| row.1).collect();
    assert_eq!(found, rows);
}

/// A directory, the path of a store in it, and a path beside it.
fn paths() -> (TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (path, old) = (directory.path().join("d"), directory.path().join("d.old"));
    (directory, path, old)
}

#[tokio::test]
async fn a_volume_that_comes_over_the_directory_of_a_running_store_takes_none_of_its_rows() {
    let (directory, path, covered) = paths();
    let volume = directory.path().join("volume");
    let mut other = Running::open(&volume, "volume").await;
    other.write(3).await.unwrap();
    other.engine.close().await;
    let (table, rows) = (other.table, other.acknowledged);
    drop(other.engine);

    let mut first = Running::open(&path, "covered").await;
    first.write(3).await.unwrap();
    fs::rename(&path, &covered).unwrap();
    fs::rename(&volume, &path).unwrap();
    first.write_until_refused().await;
    assert!(first.engine.stats().poisoned);
    assert_eq!(first.engine.drop_table(N, "t").await, Err(CommitError::Poisoned));
    assert_eq!(all(&first.engine, first.table).await.unwrap().len(), first.acknowledged.len());
    let checked = first.engine.check();
    assert!(checked.findings[0].contains("no longer leads to store"), "{:?}", checked.findings);
    expect_rows(&covered, first.table, &first.acknowledged).await;
    expect_rows(&path, table, &rows).await;
}

#[tokio::test]
async fn two_stores_at_one_path_after_another_keep_their_own_rows() {
    let (_directory, path, old) = paths();
    let mut first = Running::open(&path, "first").await;
    first.write(5).await.unwrap();
    fs::rename(&path, &old).unwrap();
    let mut second = Running::open(&path, "second").await;
    assert_eq!(first.table, second.table);
    for _ in 0..5 {
        second.write(5).await.unwrap();
        // At first it may not have noticed yet.
        let _ = first.write(5).await;
    }
    first.write_until_refused().await;
    second.write(5).await.unwrap();
    assert!(segments(&path).len() > 1 && segments(&old).len() > 1, "both logs went on in new files");
    expect_rows(&old, first.table, &first.acknowledged).await;
    expect_rows(&path, second.table, &second.acknowledged).await;
}

#[tokio::test]
async fn a_store_made_where_a_running_one_was_and_the_running_one_both_open_afterwards() {
    let (directory, path, old) = paths();
    let mut first = Running::open(&path, "first").await;
    first.write(5).await.unwrap();
    // What `mv D D.old; lazulite restore FILE -l D` does.
    fs::rename(&path, &old).unwrap();
    fs::create_dir(&path).unwrap();
    let unfinished = directory.path().join("d/restore.new");
    let mut restored = Running::open(&unfinished, "restored").await;
    restored.write(5).await.unwrap();
    restored.engine.close().await;
    drop(restored.engine);
    for entry in fs::read_dir(&unfinished).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), path.join(entry.file_name())).unwrap();
    }
    fs::remove_dir(&unfinished).unwrap();
    first.write_until_refused().await;
    first.engine.close().await;
    expect_rows(&old, first.table, &first.acknowledged).await;
    expect_rows(&path, restored.table, &restored.acknowledged).await;
}

#[tokio::test]
async fn another_store_inside_the_directory_is_noticed_too() {
    let (directory, path, _) = paths();
    let elsewhere = directory.path().join("elsewhere");
    let mut first = Running::open(&path, "first").await;
    first.write(1).await.unwrap();
    let other = Running::open(&elsewhere, "other").await;
    other.engine.close().await;
    fs::copy(elsewhere.join("LAZULITE"), path.join("LAZULITE")).unwrap();
    first.write_until_refused().await;
    let checked = first.engine.check();
    assert!(
        checked.findings[0].contains("another store was put into the directory"),
        "{:?}",
        checked.findings
    );
}

#[tokio::test]
async fn a_file_of_another_store_is_refused_whichever_it_is() {
    let (directory, path, _) = paths();
    let elsewhere = directory.path().join("elsewhere");
    let mut ids = Vec::new();
    for place in [&path, &elsewhere] {
        let mut store = Running::open(place, "row").await;
        store.write(5).await.unwrap();
        store.engine.close().await;
        ids.push(store.engine.store_id().to_string());
    }
    let log = segments(&elsewhere).pop().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    for name in ["LAZULITE", "tables.redb", &log] {
        let mixed = killed(&path);
        fs::copy(elsewhere.join(name), mixed.path().join(name)).unwrap();
        let error = LocalEngine::open(mixed.path(), system_options()).err().unwrap();
        assert!(matches!(error, OpenError::OtherStore { .. }), "{name}: {error}");
        let text = error.to_string();
        assert!(ids.iter().all(|id| text.contains(id)), "{name}: {text}");
        assert!(name == "LAZULITE" || text.contains(name), "{name}: {text}");
        let error = check_directory(mixed.path(), 0, &engine::conformance::FAMILIES).err().unwrap();
        assert!(matches!(error, OpenError::OtherStore { .. }), "{name}: {error}");
    }

    // An old segment, whose records nobody needs: it is refused, and found while the store runs.
    let store = LocalEngine::open(&path, system_options()).unwrap();
    let foreign = path.join("commits-00000000000000000000.log");
    fs::copy(elsewhere.join(&log), &foreign).unwrap();
    let findings = store.check().findings;
    assert!(findings[0].contains("it belongs to store"), "{findings:?}");
    drop(store);
    let error = LocalEngine::open(&path, system_options()).err().unwrap();
    assert!(error.to_string().contains("commits-00000000000000000000.log"), "{error}");
    fs::remove_file(foreign).unwrap();
    LocalEngine::open(&path, system_options()).unwrap();
}
