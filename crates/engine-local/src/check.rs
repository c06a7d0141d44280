//! Whether a store is sound: every row can be read, the catalogue and the rows agree, no rows are left over, and no file
//! belongs to another store.
//!
//! [`LocalEngine::check`] examines the latest state of a running store. [`check_directory`] examines a store that
//! nobody has open, and also has redb verify its pages, which is not possible while the store is running.
//!
//! Promises: damage becomes a finding that says where it is, never a panic. A check changes nothing, except that a
//! store that was not closed regularly is recovered first, as it is on any opening. Leaves to others: what a value
//! means. The rules of its family say whether a value is sound; a family without rules is not examined.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::catch_panic::catch_panic;
use crate::commit_log::segment_of_another_store;
use crate::directory_files::{DirectoryFiles, StoreFiles};
use crate::marker::MARKER;
use crate::shared::SharedState;
use crate::store::{self, DROPPED, LIVE, Store, TABLES, TreeTuning, listed_table};
use crate::tree_error::TreeError;
use crate::view::View;
use crate::{LocalEngine, OpenError};
use engine::keys;
use engine::scan::{RowSource, Rows, ScannedRow};
use engine::{Families, Family, Namespace, TableId, TableRecord, Version};

/// This many findings are kept as text; further ones are only counted.
const FINDINGS_KEPT_MAX: usize = 1000;

/// The tables of one family, and their rows.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct FamilyCounts {
    pub table_count: u64,
    pub row_count: u64,
}

/// The result of a check.
#[derive(Clone, Default, Debug)]
pub struct CheckReport {
    pub table_count: u64,
    pub row_count: u64,
    /// The same, for each family that has tables.
    pub families: BTreeMap<Family, FamilyCounts>,
    /// Dropped tables whose rows are still to be swept: this is no damage.
    pub dropped_table_count: u64,
    pub dropped_row_count: u64,
    /// The greatest version given so far, in ticks. Later ones are greater, whatever the clock says.
    pub last_version_ticks: u64,
    /// What is damaged, one sentence each: the first [`FINDINGS_KEPT_MAX`] findings.
    pub findings: Vec<String>,
    pub finding_count: u64,
}

impl CheckReport {
    fn find(&mut self, finding: String) {
        self.find_in(TABLES, &finding);
    }

    fn find_in(&mut self, file: &str, finding: &str) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_KEPT_MAX {
            self.findings.push(format!("{file}: {finding}"));
        }
    }
}

impl LocalEngine {
    /// Examines the latest durable state. Takes as long as reading the whole file.
    pub fn check(&self) -> CheckReport {
        let mut report = check_rows(&self.shared.view(), &self.families);
        if let Err(cause) = self.place.check() {
            report.find_in(MARKER, &cause);
        }
        if let Some((name, other)) = segment_of_another_store(&self.place) {
            report
                .find_in(&name, &format!("it belongs to store {other}, and this is store {}", self.place.id));
        }
        report
    }
}

/// Examines a store that nobody has open: its pages and its rows. Opening it finds files of another store.
pub fn check_directory(
    path: &Path,
    cache_bytes_max: usize,
    families: &Families,
) -> Result<CheckReport, OpenError> {
    let files: Arc<dyn StoreFiles> = Arc::new(DirectoryFiles::new(path));
    // Nobody commits meanwhile, so nobody waits for a long sync.
    let tuning = TreeTuning { cache_bytes_max, unsynced_bytes_max: u64::MAX };
    let Store { mut database, recent, counters, replayed, lock, .. } = store::open(path, tuning, &files)?;
    let pages = catch_panic(|| database.check_integrity());
    let opened = catch_panic(|| SharedState::new(database, recent, replayed.last, counters));
    let mut report = match opened {
        Ok(Ok(shared)) => check_rows(&shared.view(), families),
        Ok(Err(error)) => unreadable(&error.to_string()),
        Err(_) => unreadable("its structure is broken"),
    };
    drop(lock);
    match pages {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => report.find("pages did not match their checksums".to_owned()),
        Ok(Err(error)) => report.find(format!("its pages do not verify: {error}")),
        Err(_) => report.find("its pages are broken".to_owned()),
    }
    Ok(report)
}

fn unreadable(cause: &str) -> CheckReport {
    let mut report = CheckReport::default();
    report.find(cause.to_owned());
    report
}

fn check_rows(view: &View, families: &Families) -> CheckReport {
    let mut report = CheckReport::default();
    // redb panics on pages that it does not understand.
    let outcome = catch_panic(|| look_at_everything(view, families, &mut report));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report.find(format!("reading stopped: {}", error.cause())),
        Err(_) => report.find("reading stopped: a page is broken".to_owned()),
    }
    report
}

/// What the catalogue and the lists of tables say.
struct Known {
    last_version: u64,
    live: BTreeSet<u64>,
    dropped: BTreeSet<u64>,
    /// Names by table id, as found in the catalogue.
    names: BTreeMap<u64, String>,
}

impl Known {
    fn describe(&self, key: &[u8]) -> String {
        let name = keys::decode(key).ok().and_then(|(table, ..)| self.names.get(&table.0));
        match name {
            Some(name) => format!("{} ({name})", keys::describe(key)),
            None => keys::describe(key),
        }
    }
}

fn look_at_everything(view: &View, families: &Families, report: &mut CheckReport) -> Result<(), TreeError> {
    let mut known = Known {
        last_version: view.counters.last_version,
        live: listed(view, LIVE)?,
        dropped: listed(view, DROPPED)?,
        names: BTreeMap::new(),
    };
    report.last_version_ticks = known.last_version;
    let next_table = view.counters.next_table;
    for id in known.live.union(&known.dropped) {
        let counter = TableId(*id).counter();
        if counter >= next_table || counter < TableId::FIRST.0 {
            report.find(format!("table {id} has an id that was never given"));
        }
    }
    report.table_count = known.live.len() as u64;
    for id in &known.live {
        report.families.entry(TableId(*id).family()).or_default().table_count += 1;
    }
    report.dropped_table_count = known.dropped.len() as u64;

    let mut seen_count = 0u64;
    let mut orphans: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last_key: Vec<u8> = Vec::new();
    let (start, end) = keys::everything();
    let mut rows = view.range(&start, &end)?;
    while let Some(found) = rows.next_row()? {
        let key = found.key();
        seen_count += 1;
        if seen_count > 1 && *key <= *last_key {
            report.find(format!("{}: it is not behind the key before it", known.describe(key)));
        }
        last_key.clear();
        last_key.extend_from_slice(key);
        look_at_row(key, found.read(), families, &mut known, &mut orphans, report);
    }
    // A row that is both recent and in the tree is counted twice, so the counts agree only when nothing is recent.
    let counted = view.row_count()?;
    if view.recent_bytes() == 0 && counted != seen_count {
        report.find(format!("{counted} rows are counted but {seen_count} are there"));
    }
    for id in known.live.iter().filter(|id| !known.names.contains_key(id)) {
        report.find(format!("table {id} is live but has no name in the catalogue"));
    }
    for (id, count) in orphans {
        report.find(format!("{count} rows belong to table {id}, which is neither live nor dropped"));
    }
    Ok(())
}

/// Whether the table's family exists, and its name belongs into this partition of the catalogue.
fn is_named_in(table: TableId, partition: &str) -> bool {
    let family = table.family();
    let owner = partition.split('/').next().unwrap_or_default();
    TableId::in_family(family, table.counter()).is_some()
        && Namespace::new(family, owner).partition() == partition
}

/// The tables on one of the lists.
fn listed(view: &View, list: TableId) -> Result<BTreeSet<u64>, TreeError> {
    let (start, end) = keys::table_range(list);
    let mut rows = view.range(&start, &end)?;
    let mut tables = BTreeSet::new();
    while let Some(found) = rows.next_row()? {
        let key = found.key();
        let table = listed_table(key)
            .ok_or_else(|| TreeError::Row(format!("{}: it names no table", keys::describe(key))))?;
        tables.insert(table.0);
    }
    Ok(tables)
}

fn look_at_row(
    key: &[u8],
    row: Result<(Version, &[u8]), TreeError>,
    families: &Families,
    known: &mut Known,
    orphans: &mut BTreeMap<u64, u64>,
    report: &mut CheckReport,
) {
    let Ok((table, partition, name)) = keys::decode(key) else {
        report.find(format!("{}: it does not decode", keys::describe(key)));
        return;
    };
    let (version, value) = match row {
        Ok(read) => read,
        Err(_) => {
            report.find(format!("{}: the row does not match its checksum", known.describe(key)));
            return;
        }
    };
    // The rows of a dropped table do not matter: nobody reads them again.
    if known.dropped.contains(&table.0) {
        report.dropped_row_count += 1;
        return;
    }
    if version.ticks() > known.last_version {
        report.find(format!("{}: its version was never given", known.describe(key)));
    }
    match table {
        // The catalogue sorts before all other tables, so names are known before the rows they explain.
        TableId::CATALOGUE => match TableRecord::read(value) {
            Some(record) if known.live.contains(&record.id.0) => {
                if !is_named_in(record.id, &partition) {
                    let family = record.id.family().0;
                    report.find(format!(
                        "{partition}/{name} is table {} of family {family}, which is not the family of its namespace",
                        record.id.0
                    ));
                }
                let text = format!("{partition}/{}", String::from_utf8_lossy(record.payload));
                if let Some(other) = known.names.insert(record.id.0, text) {
                    report.find(format!("table {} has two names, one of them {other}", record.id.0));
                }
            }
            Some(record) => {
                report.find(format!("{partition}/{name} is table {}, which is not live", record.id.0));
            }
            None => report.find(format!("{partition}/{name}: the catalogue's entry does not read")),
        },
        // Settings have no rules, and the lists were read before.
        TableId::SETTINGS | LIVE | DROPPED => {}
        _ if !known.live.contains(&table.0) => *orphans.entry(table.0).or_default() += 1,
        _ => {
            report.row_count += 1;
            report.families.entry(table.family()).or_default().row_count += 1;
            if families.rules_of(table).is_some_and(|rules| !(rules.is_sound)(value)) {
                report.find(format!("{}: the value does not read", known.describe(key)));
            }
        }
    }
}
