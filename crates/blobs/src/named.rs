//! Which contents the rows of a snapshot name: what sweep and check both ask.
//!
//! Promises: bounded memory, however many rows there are. Nodes are read, because their entries name contents too.

use contents::{ContentRef, Pin};
use engine::{Budget, Flow, Key, KeyRange, OwnedKey, Sink, Snapshot, TableId, TableRecord, Version};
use protocol::ServiceError;

use crate::content::ContentNode;
use crate::family::FAMILY;
use crate::page_rows::PageSegment;
use crate::record::{BASE_ROW, BlobContent, BlobRecord, StagedBlock, read_block_row, read_moment_row};
use crate::service::Inner;

/// Nodes that are remembered before they are read.
const NODE_COUNT_MAX: usize = 1_000;

/// A content that a row names.
pub(crate) struct NamedContent<'n> {
    pub(crate) content: &'n ContentRef,
    pub(crate) blob: &'n str,
    /// Staged blocks of a generation that is over are garbage, and may have lost their contents.
    pub(crate) is_needed: bool,
}

pub(crate) trait NamedVisitor: Send {
    fn visit(&mut self, named: NamedContent<'_>);

    /// A row that is none of a blob.
    fn damaged(&mut self, blob: &str, row: &str);

    fn blob(&mut self) {}
}

/// The tables of all containers, with account and name.
pub(crate) async fn all_containers(
    snapshot: &dyn Snapshot,
) -> Result<Vec<(TableId, String)>, engine::ReadError> {
    struct Containers(Vec<(TableId, String)>);
    impl Sink for Containers {
        fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
            let id = TableRecord::read(value).map(|record| record.id).filter(|id| id.family() == FAMILY);
            if let Some(id) = id {
                let account = key.partition.split('/').next().unwrap_or_default();
                self.0.push((id, format!("{account}/{}", key.row)));
            }
            Flow::Continue
        }
    }
    let mut containers = Containers(Vec::new());
    snapshot.scan(TableId::CATALOGUE, &[KeyRange::all()], Budget::UNBOUNDED, &mut containers).await?;
    Ok(containers.0)
}

impl Inner {
    /// Visits every content that a row of this table names. The pin is from before the snapshot.
    pub(crate) async fn visit_named(
        &self,
        snapshot: &dyn Snapshot,
        table: TableId,
        pin: &Pin,
        visitor: &mut dyn NamedVisitor,
    ) -> Result<(), ServiceError> {
        let mut resume: Option<OwnedKey> = None;
        loop {
            let range = resume
                .as_ref()
                .map_or_else(KeyRange::all, |key| KeyRange::from_key(&key.partition, &key.row));
            let mut sink = NamedSink { visitor, blob: None, generation: None, nodes: Vec::new() };
            if let Some(key) = &resume {
                // Whether its staged blocks are needed is said by a row that is behind us: take them as needed.
                sink.blob = Some(key.partition.clone());
            }
            let next = snapshot.scan(table, &[range], Budget::UNBOUNDED, &mut sink).await;
            let next = next.map_err(catalogue::from_read)?;
            for (blob, node) in std::mem::take(&mut sink.nodes) {
                match self.read_node(&node, pin).await {
                    Ok(entries) => {
                        for content in entries.iter().flat_map(|entry| &entry.parts) {
                            visitor.visit(NamedContent { content, blob: &blob, is_needed: true });
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            match next {
                Some(next) => resume = Some(next),
                None => return Ok(()),
            }
        }
    }
}

struct NamedSink<'v> {
    visitor: &'v mut dyn NamedVisitor,
    blob: Option<Box<str>>,
    /// `None`: unknown, because the blob's row was not seen.
    generation: Option<Option<u64>>,
    nodes: Vec<(Box<str>, ContentNode)>,
}

impl NamedSink<'_> {
    fn see(&mut self, blob: &str, row: &str, value: &[u8]) -> Option<()> {
        if self.blob.as_deref() != Some(blob) {
            (self.blob, self.generation) = (Some(blob.into()), Some(None));
        }
        let is_base = row == BASE_ROW;
        if is_base || read_moment_row(row).is_some() {
            let record = BlobRecord::decode_borrowed(value)?;
            if is_base {
                self.generation = Some(record.staging.map(|staging| staging.generation));
                self.visitor.blob();
            }
            if let Some(BlobContent::Map(map)) = record.committed.map(|committed| committed.content) {
                for content in map.own_contents() {
                    self.visitor.visit(NamedContent { content, blob, is_needed: true });
                }
                self.nodes.extend(map.nodes.into_iter().map(|node| (Box::from(blob), node)));
            }
            return Some(());
        }
        if row.starts_with('U') {
            let (generation, _) = read_block_row(row)?;
            let is_needed = self.generation.is_none_or(|current| current == Some(generation));
            for content in &StagedBlock::decode(value)?.parts {
                self.visitor.visit(NamedContent { content, blob, is_needed });
            }
            return Some(());
        }
        crate::page_rows::read_segment_row(row)?;
        for content in PageSegment::decode(value)?.contents() {
            self.visitor.visit(NamedContent { content, blob, is_needed: true });
        }
        Some(())
    }
}

impl Sink for NamedSink<'_> {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        if self.nodes.len() >= NODE_COUNT_MAX {
            return Flow::Stop;
        }
        if self.see(key.partition, key.row, value).is_none() {
            self.visitor.damaged(key.partition, key.row);
        }
        Flow::Continue
    }
}
