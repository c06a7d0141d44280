//! Whether every row is sound and has its bytes, and which bytes have no row.

use std::collections::HashSet;

use bytes::Bytes;
use catalogue::from_read;
use contents::{ContentError, ContentId, ContentRef, verify};
use protocol::ServiceError;

use crate::named::{NamedContent, NamedVisitor, all_containers};
use crate::service::{BlobService, from_content};

/// Findings that are kept as text; further ones are only counted.
const FINDING_COUNT_MAX: usize = 100;
/// Contents that are remembered before they are looked at.
const BATCH_COUNT_MAX: usize = 1 << 20;

/// What a check of blobs has found.
#[derive(Default, Debug)]
pub struct BlobReport {
    pub container_count: u64,
    pub blob_count: u64,
    /// Contents that rows name. One that several rows name may be counted several times.
    pub content_count: u64,
    pub content_bytes: u64,
    /// The first ones, a sentence each.
    pub findings: Vec<String>,
    pub finding_count: u64,
    /// Contents that no row names. They are no finding: the next sweep forgets them.
    pub unnamed_count: u64,
    pub unnamed_bytes: u64,
}

impl BlobReport {
    fn add(&mut self, sentence: String) {
        self.finding_count += 1;
        if self.findings.len() < FINDING_COUNT_MAX {
            self.findings.push(sentence);
        }
    }
}

impl BlobService {
    /// Checks every container. With `reads_all`, every byte is read; otherwise the first of each content.
    pub async fn check(&self, reads_all: bool) -> Result<BlobReport, ServiceError> {
        let inner = &self.inner;
        let mut sweep = inner.contents.sweep().await.map_err(from_content)?;
        let pin = inner.contents.pin();
        let snapshot = inner.engine.snapshot().await.map_err(from_read)?;
        let mut report = BlobReport::default();
        let mut named = HashSet::new();
        for (table, name) in all_containers(&*snapshot).await.map_err(from_read)? {
            let mut visitor =
                CheckVisitor { contents: Vec::new(), report: &mut report, named: &mut named, name: &name };
            let visited = inner.visit_named(&*snapshot, table, &pin, &mut visitor).await;
            let contents = visitor.contents;
            report.container_count += 1;
            if let Err(error) = visited {
                report.add(format!("container {name}: a list of blocks cannot be read: {error:?}"));
            }
            for (blob, content) in contents {
                report.content_count += 1;
                report.content_bytes += content.length();
                let outcome = match reads_all {
                    true => verify(&*inner.contents, &content).await,
                    false => {
                        let mut reader = inner.contents.open(&content, 0..1, pin.clone());
                        let first: Option<Result<Bytes, ContentError>> = reader.next().await;
                        first.transpose().map(|_| ())
                    }
                };
                if let Err(error) = outcome {
                    report.add(format!("container {name}: blob {blob}: {error}"));
                }
            }
        }
        loop {
            let stored = sweep.next().await.map_err(from_content)?;
            if stored.is_empty() {
                return Ok(report);
            }
            for found in stored.iter().filter(|found| !named.contains(&found.content.id())) {
                report.unnamed_count += 1;
                report.unnamed_bytes += found.content.length();
            }
        }
    }
}

struct CheckVisitor<'r> {
    contents: Vec<(Box<str>, ContentRef)>,
    report: &'r mut BlobReport,
    named: &'r mut HashSet<ContentId>,
    name: &'r str,
}

impl NamedVisitor for CheckVisitor<'_> {
    fn visit(&mut self, named: NamedContent<'_>) {
        let is_new = self.named.insert(named.content.id());
        if named.is_needed && is_new && self.contents.len() < BATCH_COUNT_MAX {
            self.contents.push((named.blob.into(), *named.content));
        }
    }

    fn damaged(&mut self, blob: &str, row: &str) {
        self.report
            .add(format!("container {}: the row {row:?} of blob {blob:?} is no row of a blob", self.name));
    }

    fn blob(&mut self) {
        self.report.blob_count += 1;
    }
}
