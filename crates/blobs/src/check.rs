//! Whether every row is sound and has its bytes, and which bytes have no row.
//!
//! Promises: bounded memory, however many blobs there are. Every content that a row needs is looked at, perhaps several times if
//! several rows name it.

use std::collections::HashSet;

use bytes::Bytes;
use contents::{ContentError, ContentId, ContentRef, Pin, verify};
use engine::{Snapshot, TableId};
use protocol::ServiceError;

use crate::named::{NamedContent, NamedVisitor, NamedWalk};
use crate::service::{BlobCore, BlobService};
use crate::sweep::UnnamedContents;

/// Findings that are kept as text; further ones are only counted.
const FINDING_COUNT_MAX: usize = 100;
/// Contents that are gathered before they are looked at.
const BATCH_COUNT_MAX: usize = 10_000;
/// Contents that need not be looked at a second time: 32 MiB of memory at most. More are looked at again.
const SEEN_COUNT_MAX: usize = 1 << 20;

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
        let mut unnamed = inner.unnamed_contents().await?;
        let mut report = BlobReport::default();
        let mut seen = HashSet::new();
        for (table, name) in &unnamed.tables {
            report.container_count += 1;
            let container = CheckedContainer { table: *table, name, reads_all };
            inner.check_container(&container, &unnamed, &mut seen, &mut report).await?;
        }
        // Nobody knows what a row names that cannot be read.
        while report.finding_count == 0
            && let Some(found) = unnamed.next(inner).await?
        {
            report.unnamed_count += found.len() as u64;
            report.unnamed_bytes += found.iter().map(ContentRef::length).sum::<u64>();
        }
        Ok(report)
    }
}

struct CheckedContainer<'c> {
    table: TableId,
    name: &'c str,
    reads_all: bool,
}

impl BlobCore {
    async fn check_container(
        &self,
        container: &CheckedContainer<'_>,
        view: &UnnamedContents,
        seen: &mut HashSet<ContentId>,
        report: &mut BlobReport,
    ) -> Result<(), ServiceError> {
        let (pin, snapshot): (&Pin, &dyn Snapshot) = (&view.pin, &*view.snapshot);
        let name = container.name;
        let mut walk = NamedWalk::new(container.table);
        while !walk.is_over() {
            let mut visitor = CheckVisitor { contents: Vec::new(), report, seen, name };
            self.visit_some(snapshot, &mut walk, pin, &mut visitor).await?;
            for (blob, content) in visitor.contents {
                report.content_count += 1;
                report.content_bytes += content.length();
                let outcome = match container.reads_all {
                    true => verify(&*self.contents, &content).await,
                    false => {
                        let mut reader = self.contents.open(&content, 0..1, pin.clone());
                        let first: Option<Result<Bytes, ContentError>> = reader.next().await;
                        first.transpose().map(|_| ())
                    }
                };
                if let Err(error) = outcome {
                    report.add(format!("container {name}: blob {blob:?}: {error}"));
                }
            }
        }
        Ok(())
    }
}

struct CheckVisitor<'r> {
    contents: Vec<(Box<str>, ContentRef)>,
    report: &'r mut BlobReport,
    seen: &'r mut HashSet<ContentId>,
    name: &'r str,
}

impl NamedVisitor for CheckVisitor<'_> {
    fn visit(&mut self, named: NamedContent<'_>) {
        if !named.is_needed || self.seen.contains(&named.content.id()) {
            return;
        }
        if self.seen.len() < SEEN_COUNT_MAX {
            self.seen.insert(named.content.id());
        }
        self.contents.push((named.blob.into(), *named.content));
    }

    fn damaged(&mut self, blob: &str, row: &str) {
        self.report
            .add(format!("container {}: the row {row:?} of blob {blob:?} is no row of a blob", self.name));
    }

    fn blob(&mut self) {
        self.report.blob_count += 1;
    }

    fn unreadable(&mut self, blob: &str, error: ServiceError) -> Result<(), ServiceError> {
        let cause = error.source.map_or_else(|| format!("{:?}", error.code), |source| source.to_string());
        self.report.add(format!("container {}: blob {blob:?}: a list of blocks: {cause}", self.name));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.contents.len() >= BATCH_COUNT_MAX
    }
}
