//! Which contents the rows of a snapshot name: what sweep and check both ask.
//!
//! Promises: bounded memory, however many rows there are. Nodes are read, because their entries name contents too.

use contents::{ContentRef, Pin};
use engine::{
    Budget, Flow, Key, KeyRange, OwnedKey, ReadError, Sink, Snapshot, TableId, TableRecord, Version,
};
use protocol::ServiceError;

use crate::content::ContentNode;
use crate::epochs::read_segment_row;
use crate::family::FAMILY;
use crate::page_rows::PageSegment;
use crate::record::{BASE_ROW, BlobContent, BlobRecord, StagedBlock, read_block_row, read_moment_row};
use crate::service::BlobCore;

/// Nodes that are remembered before they are read.
const NODE_COUNT_MAX: usize = 100;

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

    /// A list of blocks that cannot be read. An error ends the walk.
    fn unreadable(&mut self, _blob: &str, error: ServiceError) -> Result<(), ServiceError> {
        Err(error)
    }

    /// Whether to stop before the next row, so that the visitor can work on what it has.
    fn is_full(&self) -> bool {
        false
    }
}

/// The tables of all containers, with account and name.
pub(crate) async fn all_containers(snapshot: &dyn Snapshot) -> Result<Vec<(TableId, String)>, ReadError> {
    #[derive(Default)]
    struct Containers {
        found: Vec<(TableId, String)>,
        damaged: Option<String>,
    }
    impl Sink for Containers {
        fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
            // If it were left out, all contents of a container would count as unnamed.
            let Some(TableRecord { id, .. }) = TableRecord::read(value) else {
                self.damaged = Some(format!("the catalogue's row {:?} does not decode", key.row));
                return Flow::Stop;
            };
            if id.family() == FAMILY {
                let account = key.partition.split('/').next().unwrap_or_default();
                self.found.push((id, format!("{account}/{}", key.row)));
            }
            Flow::Continue
        }
    }
    let mut containers = Containers::default();
    let rest =
        snapshot.scan(TableId::CATALOGUE, &[KeyRange::all()], Budget::UNBOUNDED, &mut containers).await?;
    match (containers.damaged, rest) {
        (None, None) => Ok(containers.found),
        (Some(damaged), _) => Err(ReadError::Damaged(damaged)),
        (None, Some(_)) => Err(ReadError::Busy),
    }
}

/// Goes through the rows of one container.
pub(crate) struct NamedWalk {
    table: TableId,
    resume: Option<OwnedKey>,
    /// The blob whose rows are being seen, and its generation of staged blocks, if it has one.
    blob: Box<str>,
    generation: Option<u64>,
    is_over: bool,
}

impl NamedWalk {
    pub(crate) fn new(table: TableId) -> NamedWalk {
        NamedWalk { table, resume: None, blob: "".into(), generation: None, is_over: false }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl BlobCore {
    /// Visits every content that a row of this table names. The pin is from before the snapshot.
    pub(crate) async fn visit_named(
        &self,
        snapshot: &dyn Snapshot,
        table: TableId,
        pin: &Pin,
        visitor: &mut dyn NamedVisitor,
    ) -> Result<(), ServiceError> {
        let mut walk = NamedWalk::new(table);
        while !walk.is_over() {
            self.visit_some(snapshot, &mut walk, pin, visitor).await?;
        }
        Ok(())
    }

    /// Goes on with a walk, until its end or until the visitor is full.
    pub(crate) async fn visit_some(
        &self,
        snapshot: &dyn Snapshot,
        walk: &mut NamedWalk,
        pin: &Pin,
        visitor: &mut dyn NamedVisitor,
    ) -> Result<(), ServiceError> {
        while !walk.is_over && !visitor.is_full() {
            let range = walk
                .resume
                .as_ref()
                .map_or_else(KeyRange::all, |key| KeyRange::from_key(&key.partition, &key.row));
            let table = walk.table;
            let mut sink = NamedSink { visitor, walk, nodes: Vec::new() };
            let next = snapshot.scan(table, &[range], Budget::UNBOUNDED, &mut sink).await;
            let nodes = std::mem::take(&mut sink.nodes);
            walk.resume = next.map_err(catalogue::from_read)?;
            walk.is_over = walk.resume.is_none();
            for (blob, node) in nodes {
                match self.read_node(&node, pin).await {
                    Ok(entries) => {
                        for content in entries.iter().flat_map(|entry| entry.parts.iter()) {
                            visitor.visit(NamedContent { content, blob: &blob, is_needed: true });
                        }
                    }
                    Err(error) => visitor.unreadable(&blob, error)?,
                }
            }
        }
        Ok(())
    }
}

struct NamedSink<'v> {
    visitor: &'v mut dyn NamedVisitor,
    walk: &'v mut NamedWalk,
    nodes: Vec<(Box<str>, ContentNode)>,
}

impl NamedSink<'_> {
    fn see(&mut self, blob: &str, row: &str, value: &[u8]) -> Option<()> {
        if *self.walk.blob != *blob {
            (self.walk.blob, self.walk.generation) = (blob.into(), None);
        }
        let is_base = row == BASE_ROW;
        if is_base || read_moment_row(row).is_some() {
            let record = BlobRecord::decode_borrowed(value)?;
            if is_base {
                self.walk.generation = record.staging.map(|staging| staging.generation);
                self.visitor.blob();
            }
            let Some(committed) = record.committed else { return Some(()) };
            if let BlobContent::Map(map) = committed.content {
                if map.length() != committed.size {
                    return None;
                }
                for content in map.own_contents() {
                    self.visitor.visit(NamedContent { content, blob, is_needed: true });
                }
                self.nodes.extend(map.nodes.into_iter().map(|node| (Box::from(blob), node)));
            }
            return Some(());
        }
        if row.starts_with('U') {
            let (generation, _) = read_block_row(row)?;
            let is_needed = self.walk.generation == Some(generation);
            for content in &*StagedBlock::decode(value)?.parts {
                self.visitor.visit(NamedContent { content, blob, is_needed });
            }
            return Some(());
        }
        read_segment_row(row)?;
        for content in PageSegment::decode(value)?.contents() {
            self.visitor.visit(NamedContent { content, blob, is_needed: true });
        }
        Some(())
    }
}

impl Sink for NamedSink<'_> {
    fn row(&mut self, key: Key<'_>, _: Version, value: &[u8]) -> Flow {
        if self.nodes.len() >= NODE_COUNT_MAX || self.visitor.is_full() {
            return Flow::Stop;
        }
        if self.see(key.partition, key.row, value).is_none() {
            self.visitor.damaged(key.partition, key.row);
        }
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// A catalogue with one row, which is none.
    struct DamagedCatalogue;

    #[async_trait]
    impl Snapshot for DamagedCatalogue {
        fn last_version(&self) -> Option<Version> {
            None
        }

        fn row_count(&self) -> Result<u64, ReadError> {
            Ok(1)
        }

        async fn scan(
            &self,
            _: TableId,
            _: &[KeyRange],
            _: Budget,
            sink: &mut dyn Sink,
        ) -> Result<Option<OwnedKey>, ReadError> {
            let (partition, row) = ("account/blobs", "container");
            match sink.row(Key::new(partition, row), Version::new(1).unwrap(), b"short") {
                Flow::Continue => Ok(None),
                Flow::Stop => Ok(Some(OwnedKey { partition: partition.into(), row: row.into() })),
            }
        }
    }

    #[tokio::test]
    async fn a_container_that_cannot_be_read_is_an_error() {
        assert!(matches!(all_containers(&DamagedCatalogue).await, Err(ReadError::Damaged(_))));
    }
}
