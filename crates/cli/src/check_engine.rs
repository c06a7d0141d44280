//! A check of a store in an engine of which only the rows can be seen: whether every row is what a service stores.
//!
//! Leaves to others: pages and checksums below the rows (the database has tools of its own), and the rows of queues among
//! each other (`queues`), and blobs, of which it counts the containers (`blobs`).

use engine::{Budget, Flow, Key, KeyRange, OwnedKey, Sink, Snapshot, TableId, TableRecord, Version};

use crate::check::StoreReport;

/// The first ones are printed, all are counted.
const FINDING_COUNT_MAX: usize = 100;

pub async fn check(snapshot: &dyn Snapshot) -> Result<StoreReport, String> {
    let mut report = StoreReport {
        last_version_ticks: snapshot.last_version().map_or(0, Version::ticks),
        ..StoreReport::default()
    };
    let mut catalogue = Containers::default();
    scan(snapshot, TableId::CATALOGUE, &mut catalogue).await?;
    for key in catalogue.damaged {
        find(&mut report, format!("the catalogue's entry for {:?} is damaged", key.row));
    }
    report.container_count = catalogue.blob_container_count;
    for (key, id) in catalogue.tables {
        let mut rows =
            Records { table: &key.row, report: &mut report, is_system: id.family() != tables::FAMILY };
        scan(snapshot, id, &mut rows).await?;
        report.table_count += u64::from(id.family() == tables::FAMILY);
    }
    let queues = queues::check_queues(snapshot).await.map_err(|error| error.to_string())?;
    (report.queue_count, report.message_count) = (queues.queue_count, queues.message_count);
    report.finding_count += queues.finding_count;
    report.findings.extend(queues.findings);
    Ok(report)
}

async fn scan(snapshot: &dyn Snapshot, table: TableId, sink: &mut dyn Sink) -> Result<(), String> {
    let scanned = snapshot.scan(table, &[KeyRange::all()], Budget::UNBOUNDED, sink).await;
    scanned.map(|_| ()).map_err(|error| error.to_string())
}

fn find(report: &mut StoreReport, finding: String) {
    report.finding_count += 1;
    if report.findings.len() < FINDING_COUNT_MAX {
        report.findings.push(finding);
    }
}

/// The tables of the catalogue.
#[derive(Default)]
struct Containers {
    tables: Vec<(OwnedKey, TableId)>,
    damaged: Vec<OwnedKey>,
    blob_container_count: u64,
}

impl Sink for Containers {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        match TableRecord::read(value) {
            Some(record) if record.id.family() == queues::FAMILY => {}
            Some(record) if record.id.family() == blobs::FAMILY => self.blob_container_count += 1,
            Some(record) => self.tables.push((key.into(), record.id)),
            None => self.damaged.push(key.into()),
        }
        Flow::Continue
    }
}

/// The rows of a table.
struct Records<'a> {
    table: &'a str,
    report: &'a mut StoreReport,
    is_system: bool,
}

impl Sink for Records<'_> {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        self.report.entity_count += u64::from(!self.is_system);
        if !tables::is_record(value) {
            let Key { partition, row } = key;
            let what = format!("table {}: the entity {partition:?}, {row:?} does not decode", self.table);
            find(self.report, what);
        }
        Flow::Continue
    }
}
