//! Makes the rows of a container portable, and says which contents to carry before them.
//!
//! Promises: a content that several rows of a container name is carried once, as long as no more than
//! [`SHARED_COUNT_MAX`] others of its kind come between them. Rows that are garbage are left out, because their contents may be gone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentId, ContentRef, ContentStore, ContentStream, Pin};

use crate::content::{ContentMap, all_entries};
use crate::page_rows::PageSource;
use crate::portable::{RowValue, SHARED_COUNT_MAX, placeholder};
use crate::record::{BASE_ROW, BlobContent, read_block_row};

/// A row as a backup carries it, and the contents to carry before it.
pub struct Exported {
    pub value: Bytes,
    pub contents: Vec<ExportedContent>,
}

pub struct ExportedContent {
    pub number: u64,
    /// Whether later rows may name it too.
    pub is_shared: bool,
    parts: Arc<[ContentRef]>,
}

/// Goes through the rows of containers, in their order.
pub struct BlobExporter {
    contents: Arc<dyn ContentStore>,
    pin: Pin,
    next: u64,
    /// Shared contents of this container that were carried, by the first of their references.
    known: HashMap<ContentId, ContentRef>,
    order: VecDeque<ContentId>,
    /// Other contents of this row: a block list may name a block several times.
    of_row: HashMap<ContentId, ContentRef>,
    blob: Box<str>,
    generation: Option<u64>,
}

impl BlobExporter {
    /// The pin is from before the snapshot that has the rows.
    pub fn new(contents: Arc<dyn ContentStore>, pin: Pin) -> BlobExporter {
        BlobExporter {
            contents,
            pin,
            next: 0,
            known: HashMap::new(),
            order: VecDeque::new(),
            of_row: HashMap::new(),
            blob: "".into(),
            generation: None,
        }
    }

    pub fn begin_container(&mut self) {
        self.known.clear();
        self.order.clear();
        (self.blob, self.generation) = ("".into(), None);
    }

    /// `None` for a row that is garbage. An error says what is wrong with the row.
    pub async fn export(&mut self, blob: &str, row: &str, value: &Bytes) -> Result<Option<Exported>, String> {
        let mut value = RowValue::read(row, value).ok_or("it is no row of a blob")?;
        if *self.blob != *blob {
            (self.blob, self.generation) = (blob.into(), None);
        }
        self.of_row.clear();
        let mut contents = Vec::new();
        let is_shared = value.is_shared();
        match &mut value {
            RowValue::Record(record) => {
                if row == BASE_ROW {
                    self.generation = record.staging.map(|staging| staging.generation);
                }
                if let Some(BlobContent::Map(map)) =
                    record.committed.as_mut().map(|committed| &mut committed.content)
                {
                    self.write_out(map).await?;
                    for entry in &mut map.entries {
                        self.stand_in(&mut entry.parts, is_shared, &mut contents);
                    }
                }
            }
            RowValue::Block(block) => {
                // Blocks of a generation that is over are garbage, and may have lost their contents.
                if read_block_row(row).map(|(generation, _)| generation) != self.generation {
                    return Ok(None);
                }
                self.stand_in(&mut block.parts, is_shared, &mut contents);
            }
            RowValue::Segment(segment) => {
                for extent in &mut segment.extents {
                    if let PageSource::Part(content, _) = &mut extent.source {
                        let mut list: Arc<[ContentRef]> = [*content].into();
                        self.stand_in(&mut list, is_shared, &mut contents);
                        *content = list[0];
                    }
                }
            }
        }
        Ok(Some(Exported { value: value.encode(), contents }))
    }

    /// The bytes of a content.
    pub fn open(&self, content: &ExportedContent) -> ContentStream {
        let (list, pin) = (content.parts.clone(), self.pin.clone());
        ContentStream::new(self.contents.clone(), list, 0..u64::MAX, pin)
    }

    /// Puts the entries of nodes in the place of the nodes.
    async fn write_out(&self, map: &mut ContentMap) -> Result<(), String> {
        let entries = all_entries(&self.contents, map, &self.pin).await;
        map.entries = entries.map_err(|error| format!("its list of blocks cannot be read: {error:?}"))?;
        map.nodes.clear();
        Ok(())
    }

    /// Puts one reference in the place of a list, and adds the content that it stands for, unless it was carried before.
    fn stand_in(&mut self, parts: &mut Arc<[ContentRef]>, is_shared: bool, out: &mut Vec<ExportedContent>) {
        let Some(first) = parts.first().map(ContentRef::id) else { return };
        let length: u64 = parts.iter().map(ContentRef::length).sum();
        // Lists are shared as a whole. If one were not, its length would tell, and it would be carried again.
        let known = if is_shared { &self.known } else { &self.of_row };
        if let Some(known) = known.get(&first).filter(|known| known.length() == length) {
            *parts = [*known].into();
            return;
        }
        let number = self.next;
        self.next += 1;
        let stands_for = placeholder(number, length);
        out.push(ExportedContent { number, is_shared, parts: std::mem::replace(parts, [stands_for].into()) });
        if !is_shared {
            self.of_row.insert(first, stands_for);
            return;
        }
        self.known.insert(first, stands_for);
        self.order.push_back(first);
        if self.order.len() > SHARED_COUNT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
