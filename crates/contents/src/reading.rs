//! Reading on top of the trait: a range of a list of contents, and checking one content.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::{ContentError, ContentReader, ContentRef, ContentStore, Pin};

/// Reads a range of several contents as if they were one. Opens one at a time.
pub struct ContentStream {
    contents: Arc<dyn ContentStore>,
    list: Arc<[ContentRef]>,
    pin: Pin,
    reader: Option<Box<dyn ContentReader>>,
    /// The next of the list, and where it begins.
    index: usize,
    begin: u64,
    range: Range<u64>,
}

impl ContentStream {
    /// The pin is from before the list was read from its row.
    pub fn new(
        contents: Arc<dyn ContentStore>,
        list: Arc<[ContentRef]>,
        range: Range<u64>,
        pin: Pin,
    ) -> ContentStream {
        ContentStream { contents, list, pin, reader: None, index: 0, begin: 0, range }
    }

    /// The next piece; `None` at the end. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Bytes, ContentError>> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next().await {
                    Some(Ok(piece)) => return Some(Ok(piece)),
                    Some(Err(error)) => {
                        self.reader = None;
                        self.index = self.list.len();
                        return Some(Err(error));
                    }
                    None => self.reader = None,
                }
            }
            let content = self.list.get(self.index)?;
            let (begin, end) = (self.begin, self.begin.saturating_add(content.length));
            if begin >= self.range.end {
                return None;
            }
            self.index += 1;
            self.begin = end;
            if self.range.start < end {
                let part = self.range.start.max(begin) - begin..self.range.end.min(end) - begin;
                self.reader = Some(self.contents.open(content, part, self.pin.clone()));
            }
        }
    }
}

/// Reads a whole content and checks it.
pub async fn verify(contents: &dyn ContentStore, content: &ContentRef) -> Result<(), ContentError> {
    let mut reader = contents.open(content, 0..content.length, contents.pin());
    while let Some(piece) = reader.next().await {
        piece?;
    }
    Ok(())
}
