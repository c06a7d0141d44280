//! Block lists: the body of Put Block List, and the answer to Get Block List.
//!
//! Promises: a body is read in one pass, and no more of it is kept than its ids. Lists are written block by block, so an
//! answer can be sent in pieces.

use crate::common::xml::{XmlPieces, document_text, invalid_document, walk};
use crate::common::xml_write::XmlWriter;
use crate::{ErrorCode, ServiceError};

use super::identifier::BlockId;
use super::limits::COMMITTED_BLOCK_COUNT_MAX;
use super::properties::BlockListType;

/// Room for 50,000 of the longest ids in the longest elements, and for blanks between them.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// No id is longer, but some clients put blanks around it.
const ID_BYTES_MAX: usize = 256;
const ROOT: &str = "BlockList";

/// Where a block of the new content is to be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSource {
    Committed,
    Uncommitted,
    /// Among the staged blocks, else among those of the content.
    Latest,
}

/// Reads the body of Put Block List: the blocks in the order of the content.
pub fn read_block_list(body: &[u8]) -> Result<Vec<(BlockSource, BlockId)>, ServiceError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(super::limits::body_too_large(BODY_BYTES_MAX as u64));
    }
    let mut list = ListReader::default();
    walk(document_text(body)?, &mut list)?;
    if list.has_root { Ok(list.blocks) } else { Err(invalid_document("no element")) }
}

#[derive(Default)]
struct ListReader {
    has_root: bool,
    depth: usize,
    source: Option<BlockSource>,
    id: String,
    blocks: Vec<(BlockSource, BlockId)>,
}

impl XmlPieces for ListReader {
    fn open(&mut self, name: &str) -> Result<(), ServiceError> {
        match (self.depth, name) {
            (0, ROOT) if !self.has_root => self.has_root = true,
            (1, "Committed") => self.source = Some(BlockSource::Committed),
            (1, "Uncommitted") => self.source = Some(BlockSource::Uncommitted),
            (1, "Latest") => self.source = Some(BlockSource::Latest),
            _ => return Err(invalid_document("an element that is not of the schema")),
        }
        self.depth += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), ServiceError> {
        self.depth -= 1;
        let Some(source) = self.source.take() else { return Ok(()) };
        if self.blocks.len() == COMMITTED_BLOCK_COUNT_MAX {
            return Err(ErrorCode::BlockListTooLong.into());
        }
        let id = BlockId::parse(self.id.trim()).ok_or(ErrorCode::InvalidBlockList)?;
        self.id.clear();
        self.blocks.push((source, id));
        Ok(())
    }

    fn takes_text(&self) -> bool {
        self.source.is_some()
    }

    fn push_text(&mut self, text: &str) -> Result<(), ServiceError> {
        if self.source.is_none() {
            return Err(invalid_document("text between elements"));
        }
        if self.id.len() + text.len() > ID_BYTES_MAX {
            return Err(ErrorCode::InvalidBlockList.into());
        }
        self.id.push_str(text);
        Ok(())
    }
}

/// Writes the answer to Get Block List: first all committed blocks, then all uncommitted ones.
pub struct BlockListWriter {
    out: XmlWriter,
    list_type: BlockListType,
    part: ListPart,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ListPart {
    Begin,
    Committed,
    Uncommitted,
}

impl BlockListWriter {
    pub fn begin(list_type: BlockListType) -> BlockListWriter {
        let mut out = XmlWriter::begin_unmarked(1024);
        out.start(ROOT);
        BlockListWriter { out, list_type, part: ListPart::Begin }
    }

    /// Adds a block of the content. The list must be one of committed blocks.
    pub fn push_committed(&mut self, id: &BlockId, size: u64) {
        debug_assert!(self.list_type != BlockListType::Uncommitted && self.part <= ListPart::Committed);
        if self.part == ListPart::Begin {
            self.out.start("CommittedBlocks");
            self.part = ListPart::Committed;
        }
        self.push(id, size);
    }

    /// Adds a staged block. The list must be one of uncommitted blocks.
    pub fn push_uncommitted(&mut self, id: &BlockId, size: u64) {
        debug_assert!(self.list_type != BlockListType::Committed);
        if self.part != ListPart::Uncommitted {
            self.end_committed();
            self.out.start("UncommittedBlocks");
            self.part = ListPart::Uncommitted;
        }
        self.push(id, size);
    }

    /// Takes what is written so far, so that the answer need not be in memory as a whole.
    pub fn drain(&mut self) -> Vec<u8> {
        self.out.drain()
    }

    /// How many bytes [`BlockListWriter::drain`] would return.
    pub fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    pub fn finish(mut self) -> Vec<u8> {
        if self.part == ListPart::Uncommitted {
            self.out.end("UncommittedBlocks");
        } else {
            self.end_committed();
            if self.list_type != BlockListType::Committed {
                self.out.empty("UncommittedBlocks");
            }
        }
        self.out.end(ROOT);
        self.out.finish()
    }

    fn push(&mut self, id: &BlockId, size: u64) {
        self.out.start("Block");
        self.out.leaf("Name", &id.to_string());
        self.out.number("Size", size);
        self.out.end("Block");
    }

    fn end_committed(&mut self) {
        match self.part {
            ListPart::Committed => self.out.end("CommittedBlocks"),
            _ if self.list_type != BlockListType::Uncommitted => self.out.empty("CommittedBlocks"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::xml::hostile::{mutations, truncations};

    /// Writes the body of Put Block List, as a client sends it.
    fn write_block_list<'b>(blocks: impl IntoIterator<Item = (BlockSource, &'b BlockId)>) -> Vec<u8> {
        let mut out = XmlWriter::begin_unmarked(1024);
        out.start(ROOT);
        for (source, id) in blocks {
            let name = match source {
                BlockSource::Committed => "Committed",
                BlockSource::Uncommitted => "Uncommitted",
                BlockSource::Latest => "Latest",
            };
            out.leaf(name, &id.to_string());
        }
        out.end(ROOT);
        out.finish()
    }

    fn id(text: &str) -> BlockId {
        BlockId::parse(text).unwrap()
    }

    fn read(body: &str) -> Result<String, ErrorCode> {
        let blocks = read_block_list(body.as_bytes()).map_err(|error| error.code)?;
        let shown: Vec<String> = blocks.iter().map(|(source, id)| format!("{source:?} {id}")).collect();
        Ok(shown.join(", "))
    }

    #[test]
    fn lists_keep_the_order_of_the_content() {
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList><Committed>MQ==</Committed><Uncommitted>Mg==</Uncommitted><Latest>MQ==</Latest></BlockList>";
        assert_eq!(read(body).unwrap(), "Committed MQ==, Uncommitted Mg==, Latest MQ==");
        let marked = "\u{FEFF}<BlockList>\r\n  <Latest> Mg== </Latest>\r\n</BlockList>";
        assert_eq!(read(marked).unwrap(), "Latest Mg==");
        for empty in ["<BlockList/>", "<BlockList></BlockList>", "<BlockList> </BlockList>"] {
            assert_eq!(read(empty).unwrap(), "");
        }
        let written =
            write_block_list([(BlockSource::Latest, &id("Mg==")), (BlockSource::Committed, &id("MQ=="))]);
        assert_eq!(read(std::str::from_utf8(&written).unwrap()).unwrap(), "Latest Mg==, Committed MQ==");
    }

    #[test]
    fn wrong_ids_and_wrong_documents_differ() {
        for bad in ["!", "MQ", "", &"A".repeat(400)] {
            let body = format!("<BlockList><Latest>{bad}</Latest></BlockList>");
            assert_eq!(read(&body), Err(ErrorCode::InvalidBlockList), "{bad}");
        }
        for bad in [
            "",
            "x",
            "<x/>",
            "<BlockList>",
            "<BlockList>MQ==</BlockList>",
            "<BlockList><Block>MQ==</Block></BlockList>",
            "<BlockList><Latest><b/>MQ==</Latest></BlockList>",
            "<BlockList/><BlockList/>",
            "<Latest>MQ==</Latest>",
            "<!DOCTYPE a><BlockList/>",
        ] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidXmlDocument), "{bad}");
        }
    }

    #[test]
    fn a_list_has_at_most_fifty_thousand_blocks() {
        let longest = BlockId::from_bytes(&[7; 64]).unwrap();
        let of = |count| {
            let blocks = std::iter::repeat_n((BlockSource::Uncommitted, &longest), count);
            read_block_list(&write_block_list(blocks)).map(|blocks| blocks.len()).map_err(|error| error.code)
        };
        assert_eq!(of(50_000), Ok(50_000));
        assert_eq!(of(50_001), Err(ErrorCode::BlockListTooLong));
        let error = read_block_list(&vec![b' '; BODY_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(error.code, ErrorCode::RequestBodyTooLarge);
    }

    /// The example of section 17.5, and the other types of list.
    #[test]
    fn answers_have_the_parts_that_were_asked_for() {
        let check = |list_type, committed: &[&str], uncommitted: &[&str], expected: &str| {
            let mut writer = BlockListWriter::begin(list_type);
            committed.iter().for_each(|text| writer.push_committed(&id(text), 10));
            let mut written = writer.drain();
            assert_eq!(writer.buffered_bytes(), 0);
            uncommitted.iter().for_each(|text| writer.push_uncommitted(&id(text), 7));
            written.extend(writer.finish());
            let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
            let expected = format!("{head}<BlockList>{expected}</BlockList>");
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        };
        let committed = "<CommittedBlocks><Block><Name>Mg==</Name><Size>10</Size></Block></CommittedBlocks>";
        let uncommitted =
            "<UncommittedBlocks><Block><Name>MQ==</Name><Size>7</Size></Block></UncommittedBlocks>";
        check(BlockListType::All, &["Mg=="], &[], &format!("{committed}<UncommittedBlocks />"));
        check(BlockListType::All, &["Mg=="], &["MQ=="], &format!("{committed}{uncommitted}"));
        check(BlockListType::All, &[], &["MQ=="], &format!("<CommittedBlocks />{uncommitted}"));
        check(BlockListType::All, &[], &[], "<CommittedBlocks /><UncommittedBlocks />");
        check(BlockListType::Committed, &["Mg=="], &[], committed);
        check(BlockListType::Committed, &[], &[], "<CommittedBlocks />");
        check(BlockListType::Uncommitted, &[], &["MQ=="], uncommitted);
        check(BlockListType::Uncommitted, &[], &[], "<UncommittedBlocks />");
    }

    #[test]
    fn no_body_makes_the_reader_panic() {
        let full =
            write_block_list([(BlockSource::Latest, &id("Mg==")), (BlockSource::Committed, &id("MQ=="))]);
        for truncated in truncations(&full) {
            assert!(read_block_list(truncated).is_err());
        }
        let mut taken = 0;
        for body in mutations(&[&full, b"<BlockList><Uncommitted>AAAA</Uncommitted></BlockList>"], 20_000) {
            if let Ok(blocks) = read_block_list(&body) {
                taken += 1;
                let written = write_block_list(blocks.iter().map(|(source, id)| (*source, id)));
                assert_eq!(read_block_list(&written).unwrap(), blocks);
            }
        }
        assert!(taken > 500, "{taken}");
    }
}
