//! Checks whole queues of a snapshot with `consistency.rs`.

use engine::{Budget, Flow, Key, KeyRange, ReadError, Sink, Snapshot, TableId, TableRecord, Version};

use crate::consistency::{FINDING_COUNT_MAX, Findings, QueueCheck, QueueDetails};
use crate::family::FAMILY;

/// What a check of queues has found.
#[derive(Default, Debug)]
pub struct QueueReport {
    pub queue_count: u64,
    pub message_count: u64,
    /// The first ones, a sentence each.
    pub findings: Vec<String>,
    pub finding_count: u64,
}

/// Checks every queue of the store, one after the other. Each finding names its queue.
pub async fn check_queues(snapshot: &dyn Snapshot) -> Result<QueueReport, ReadError> {
    let mut queues = Queues(Vec::new());
    snapshot.scan(TableId::CATALOGUE, &[KeyRange::all()], Budget::UNBOUNDED, &mut queues).await?;
    let mut report = QueueReport::default();
    for (id, name) in queues.0 {
        let checked = check_queue(snapshot, id).await?;
        report.queue_count += 1;
        report.message_count += checked.message_count;
        report.finding_count += checked.finding_count;
        let room = FINDING_COUNT_MAX.saturating_sub(report.findings.len());
        let named = checked.findings.iter().map(|finding| format!("queue {name}: {finding}"));
        report.findings.extend(named.take(room));
    }
    Ok(report)
}

/// Checks one queue.
pub async fn check_queue(snapshot: &dyn Snapshot, queue: TableId) -> Result<QueueReport, ReadError> {
    let mut check = QueueCheck::default();
    snapshot.scan(queue, &[KeyRange::all()], Budget::UNBOUNDED, &mut check).await?;
    let mut findings = check.findings();
    for mut details in check.details() {
        snapshot.scan(queue, &[KeyRange::all()], Budget::UNBOUNDED, &mut details).await?;
        findings.append(details.findings());
    }
    let Findings { sentences, count } = findings;
    let message_count = check.message_count;
    Ok(QueueReport { queue_count: 1, message_count, findings: sentences, finding_count: count })
}

impl Sink for QueueCheck {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        self.see(key.partition, key.row, value);
        Flow::Continue
    }
}

impl Sink for QueueDetails {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        self.see(key.partition, key.row, value);
        Flow::Continue
    }
}

/// The ids and names of all queues.
struct Queues(Vec<(TableId, String)>);

impl Sink for Queues {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        // A check of the engine reports entries that do not decode.
        let id = TableRecord::read(value).map(|record| record.id).filter(|id| id.family() == FAMILY);
        // An owner that no account can be holds a queue that is being restored.
        if let Some(id) = id.filter(|_| !key.partition.starts_with('!')) {
            let account = key.partition.split('/').next().unwrap_or_default();
            self.0.push((id, format!("{account}/{}", key.row)));
        }
        Flow::Continue
    }
}
