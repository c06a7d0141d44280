//! Takes portable rows and their contents into a store.
//!
//! Promises: contents are durable before the row that names them is handed back. As long as the importer lives, no sweep forgets
//! what it wrote, so a row may be committed at any time before it is dropped. A content whose row never comes is garbage.
//! Leaves to others: whether a row keeps the rules ([`crate::check_portable`]).

use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentError, ContentRef, ContentStore, ContentWriter, PendingContent};

use crate::content::roll;
use crate::page_rows::{PageExtent, PageSegment, PageSource};
use crate::portable::{ContentBook, RowValue};
use crate::record::BlobContent;

type ContentList = Arc<[ContentRef]>;

pub struct BlobImporter {
    contents: Arc<dyn ContentStore>,
    book: ContentBook<ContentList>,
    writing: Option<WritingContent>,
    /// Sweeps leave out everything that was written after it.
    _pending: PendingContent,
}

struct WritingContent {
    number: u64,
    length: u64,
    writer: Box<dyn ContentWriter>,
}

/// A part of a content, on its way from a backup.
#[derive(Clone, Copy, Debug)]
pub struct ContentPiece<'p> {
    pub number: u64,
    pub is_last: bool,
    pub is_shared: bool,
    pub bytes: &'p [u8],
}

impl BlobImporter {
    pub async fn new(contents: Arc<dyn ContentStore>) -> Result<BlobImporter, ContentError> {
        let nothing = contents.writer(Some(0)).finish().await?;
        Ok(BlobImporter { contents, book: ContentBook::default(), writing: None, _pending: nothing.pending })
    }

    pub fn begin_container(&mut self) {
        self.book.clear();
        self.writing = None;
    }

    pub async fn take(&mut self, piece: ContentPiece<'_>) -> Result<(), ContentError> {
        let begin = |contents: &dyn ContentStore| WritingContent {
            number: piece.number,
            length: 0,
            writer: contents.writer(piece.is_last.then_some(piece.bytes.len() as u64)),
        };
        let current = self.writing.take().filter(|writing| writing.number == piece.number);
        let mut writing = current.unwrap_or_else(|| begin(&*self.contents));
        writing.writer.push(Bytes::copy_from_slice(piece.bytes)).await?;
        writing.length += piece.bytes.len() as u64;
        if !piece.is_last {
            self.writing = Some(writing);
            return Ok(());
        }
        let written = writing.writer.finish().await?;
        let list = written.contents.into();
        let added = self.book.add(piece.number, piece.is_shared, writing.length, list);
        added.map_err(|cause| ContentError::Io(cause.to_owned()))
    }

    /// The value to store in the row.
    pub async fn import(&mut self, row: &str, value: &[u8]) -> Result<Bytes, String> {
        let value = Bytes::copy_from_slice(value);
        let mut value = RowValue::read(row, &value).ok_or("it is no row of a blob")?;
        let mut contents = self.book.row(value.is_shared());
        match &mut value {
            RowValue::Record(record) => {
                let content = record.committed.as_mut().map(|committed| &mut committed.content);
                if let Some(BlobContent::Map(map)) = content {
                    for entry in &mut map.entries {
                        let found = contents.find_list(&entry.parts)?;
                        entry.parts = found.unwrap_or_default();
                    }
                    let rolled = roll(&self.contents, map).await;
                    rolled.map_err(|error| format!("a list of blocks could not be written: {error:?}"))?;
                }
            }
            RowValue::Block(block) => {
                let found = contents.find_list(&block.parts)?;
                block.parts = found.unwrap_or_default();
            }
            RowValue::Segment(segment) => {
                let mut extents = Vec::with_capacity(segment.extents.len());
                for extent in std::mem::take(&mut segment.extents) {
                    match &extent.source {
                        PageSource::Inline(_) => extents.push(extent),
                        PageSource::Part(content, at) => {
                            extents.extend(cut(&extent, &contents.find(content)?, *at));
                        }
                    }
                }
                *segment = PageSegment { extents };
            }
        }
        Ok(value.encode())
    }
}

/// The extent's bytes, from there on in a list: an extent for each content of the list that has some of them.
fn cut(extent: &PageExtent, list: &[ContentRef], at: u64) -> Vec<PageExtent> {
    let wanted = at..at + u64::from(extent.length());
    let mut begin = 0;
    let mut extents = Vec::new();
    for content in list {
        let end = begin + content.length();
        let (from, to) = (wanted.start.max(begin), wanted.end.min(end));
        if from < to {
            let start = extent.range.start + (from - wanted.start) as u32;
            let range = start..start + (to - from) as u32;
            extents.push(PageExtent { range, source: PageSource::Part(*content, from - begin) });
        }
        begin = end;
    }
    extents
}
