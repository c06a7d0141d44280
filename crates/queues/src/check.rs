//! Checks whole queues of a snapshot with `consistency.rs`.

use engine::{Budget, Flow, Key, KeyRange, ReadError, Sink, Snapshot, TableId, TableRecord, Version};

use crate::consistency::{Findings, QueueCheck, QueueDetails};
use crate::family::FAMILY;

/// What a check of all queues has found.
#[derive(Default, Debug)]
pub struct QueuesReport {
    pub queue_count: u64,
    pub message_count: u64,
    /// Each names its queue.
    pub findings: Findings,
}

/// Checks every queue of the store, one after the other.
pub async fn check_queues(snapshot: &dyn Snapshot) -> Result<QueuesReport, ReadError> {
    let mut queues = Queues(Vec::new());
    snapshot.scan(TableId::CATALOGUE, &[KeyRange::all()], Budget::UNBOUNDED, &mut queues).await?;
    let mut report = QueuesReport::default();
    for (id, name) in queues.0 {
        let checked = check_queue(snapshot, id).await?;
        report.queue_count += 1;
        report.message_count += checked.message_count;
        let Findings { sentences, count } = checked.findings;
        let sentences = sentences.into_iter().map(|sentence| format!("queue {name}: {sentence}")).collect();
        report.findings.append(Findings { sentences, count });
    }
    Ok(report)
}

/// What a check of one queue has found.
pub struct QueueReport {
    pub message_count: u64,
    pub findings: Findings,
}

pub async fn check_queue(snapshot: &dyn Snapshot, queue: TableId) -> Result<QueueReport, ReadError> {
    let mut check = QueueCheck::default();
    snapshot.scan(queue, &[KeyRange::all()], Budget::UNBOUNDED, &mut check).await?;
    let mut findings = check.findings();
    for mut details in check.details() {
        snapshot.scan(queue, &[KeyRange::all()], Budget::UNBOUNDED, &mut details).await?;
        findings.append(details.findings());
    }
    Ok(QueueReport { message_count: check.message_count, findings })
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
