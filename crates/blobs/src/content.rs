//! The content of a block or append blob, as its row keeps it: nodes, then entries, then a tail.
//!
//! An *entry* is a block, or the whole body of a put: an id if it is a block, a length, and the references of its bytes. A
//! *node* is a list of entries that was itself written to the store of contents, because a row cannot hold 50,000 of them. The
//! *tail* is the bytes of a short content, or those that were appended last. So a row stays small whatever the blob's size, and
//! the last of many appends costs as much as the first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use contents::{ContentId, ContentRef, ContentStore, ContentStream, PendingContent, Pin};
use protocol::blob::identifier::BlockId;
use protocol::{ErrorCode, ServiceError};

use crate::codec::{Decoder, Encoder};
use crate::service::{BlobCore, damaged_row, from_content};

/// A content up to this length lies in its row, and costs no write of its own.
pub(crate) const INLINE_BYTES_MAX: usize = 8 * 1024;
/// With a longer list, the row keeps the first entries in nodes.
const ENTRIES_BYTES_MAX: usize = 16 * 1024;
/// A node is as long as this, or longer by one entry. Reading a range reads the nodes that it touches.
const NODE_BYTES: usize = 128 * 1024;
/// No node is longer. An entry of 5000 MiB has 2250 references at most, which take 54 KB.
const NODE_BYTES_MAX: usize = 4 * 1024 * 1024;
const TAG_NODE: u8 = 1;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ContentMap {
    pub(crate) nodes: Vec<ContentNode>,
    pub(crate) entries: Vec<ContentEntry>,
    pub(crate) tail: Bytes,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContentEntry {
    /// `None` if it is no block that a block list could name.
    pub(crate) id: Option<BlockId>,
    /// Shared, because a list may name one long block many times.
    pub(crate) parts: Arc<[ContentRef]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContentNode {
    /// Of the content that its entries have together.
    pub(crate) length: u64,
    /// Where the list of entries is.
    pub(crate) parts: Vec<ContentRef>,
}

impl ContentEntry {
    pub(crate) fn length(&self) -> u64 {
        self.parts.iter().map(ContentRef::length).sum()
    }

    fn size_bytes(&self) -> usize {
        8 + self.id.as_ref().map_or(0, |id| id.as_bytes().len()) + 24 * self.parts.len()
    }

    fn write(&self, out: &mut Encoder) {
        out.bytes(self.id.as_ref().map_or(&[], |id| id.as_bytes()));
        out.contents(&self.parts);
    }

    fn read(from: &mut Decoder<'_>) -> Option<ContentEntry> {
        let id = match from.bytes()? {
            [] => None,
            id => Some(BlockId::from_bytes(id)?),
        };
        Some(ContentEntry { id, parts: from.contents()?.into() })
    }
}

impl ContentMap {
    pub(crate) fn inline(bytes: Bytes) -> ContentMap {
        ContentMap { tail: bytes, ..ContentMap::default() }
    }

    pub(crate) fn whole(parts: Vec<ContentRef>) -> ContentMap {
        if parts.is_empty() {
            return ContentMap::default();
        }
        ContentMap { entries: vec![ContentEntry { id: None, parts: parts.into() }], ..ContentMap::default() }
    }

    pub(crate) fn length(&self) -> u64 {
        let nodes: u64 = self.nodes.iter().map(|node| node.length).sum();
        nodes + self.entries.iter().map(ContentEntry::length).sum::<u64>() + self.tail.len() as u64
    }

    pub(crate) fn write(&self, out: &mut Encoder) {
        out.length(self.nodes.len());
        for node in &self.nodes {
            out.number(node.length);
            out.contents(&node.parts);
        }
        out.length(self.entries.len());
        for entry in &self.entries {
            entry.write(out);
        }
        out.bytes(&self.tail);
    }

    /// `whole` is the buffer that `from` reads, so that the tail need not be copied.
    pub(crate) fn read(from: &mut Decoder<'_>, whole: Option<&Bytes>) -> Option<ContentMap> {
        let mut map = ContentMap::default();
        for _ in 0..from.length()? {
            map.nodes.push(ContentNode { length: from.number()?, parts: from.contents()? });
        }
        for _ in 0..from.length()? {
            map.entries.push(ContentEntry::read(from)?);
        }
        let tail = from.bytes()?;
        map.tail = match whole {
            Some(whole) => whole.slice_ref(tail),
            None => Bytes::copy_from_slice(tail),
        };
        Some(map)
    }

    /// The contents that the row names by itself. Those of the nodes' entries are beside these.
    pub(crate) fn own_contents(&self) -> impl Iterator<Item = &ContentRef> {
        let nodes = self.nodes.iter().flat_map(|node| &node.parts);
        nodes.chain(self.entries.iter().flat_map(|entry| entry.parts.iter()))
    }

    fn entries_bytes(&self) -> usize {
        self.entries.iter().map(ContentEntry::size_bytes).sum()
    }
}

pub(crate) fn decode_node(bytes: &[u8]) -> Option<Vec<ContentEntry>> {
    let mut from = Decoder::new(bytes, TAG_NODE)?;
    let mut entries = Vec::new();
    for _ in 0..from.length()? {
        entries.push(ContentEntry::read(&mut from)?);
    }
    from.end()?;
    Some(entries)
}

fn encode_node(entries: &[ContentEntry]) -> Bytes {
    let mut out = Encoder::new(TAG_NODE);
    out.length(entries.len());
    for entry in entries {
        entry.write(&mut out);
    }
    out.finish()
}

impl BlobCore {
    /// Writes bytes that are all there.
    pub(crate) async fn write_content(
        &self,
        bytes: Bytes,
    ) -> Result<(Vec<ContentRef>, PendingContent), ServiceError> {
        write_content(&self.contents, bytes).await
    }

    /// Reads contents that are known to be short.
    pub(crate) async fn read_contents(
        &self,
        parts: &[ContentRef],
        range: Range<u64>,
        pin: &Pin,
    ) -> Result<Vec<u8>, ServiceError> {
        read_contents(&self.contents, parts, range, pin).await
    }

    pub(crate) async fn read_node(
        &self,
        node: &ContentNode,
        pin: &Pin,
    ) -> Result<Vec<ContentEntry>, ServiceError> {
        read_node(&self.contents, node, pin).await
    }

    /// All entries, those of the nodes first. There are 50,000 at most.
    pub(crate) async fn all_entries(
        &self,
        map: &ContentMap,
        pin: &Pin,
    ) -> Result<Vec<ContentEntry>, ServiceError> {
        all_entries(&self.contents, map, pin).await
    }

    /// Every content that a map names, also through its nodes, once.
    pub(crate) async fn named_contents(
        &self,
        map: &ContentMap,
        pin: &Pin,
    ) -> Result<Vec<ContentRef>, ServiceError> {
        let mut named: HashMap<ContentId, ContentRef> =
            map.own_contents().map(|content| (content.id(), *content)).collect();
        for node in &map.nodes {
            for entry in self.read_node(node, pin).await? {
                named.extend(entry.parts.iter().map(|content| (content.id(), *content)));
            }
        }
        Ok(named.into_values().collect())
    }

    /// Moves entries into nodes until the row is small enough. What was written is returned with its guards, which the
    /// caller keeps until the row is committed.
    pub(crate) async fn roll(&self, map: &mut ContentMap) -> Result<RolledNodes, ServiceError> {
        roll(&self.contents, map).await
    }
}

async fn write_content(
    contents: &Arc<dyn ContentStore>,
    bytes: Bytes,
) -> Result<(Vec<ContentRef>, PendingContent), ServiceError> {
    let mut writer = contents.writer(Some(bytes.len() as u64));
    writer.push(bytes).await.map_err(from_content)?;
    let written = writer.finish().await.map_err(from_content)?;
    Ok((written.contents, written.pending))
}

async fn read_contents(
    contents: &Arc<dyn ContentStore>,
    parts: &[ContentRef],
    range: Range<u64>,
    pin: &Pin,
) -> Result<Vec<u8>, ServiceError> {
    let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
    let mut stream = ContentStream::new(contents.clone(), parts.into(), range, pin.clone());
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.map_err(from_content)?);
    }
    Ok(bytes)
}

pub(crate) async fn read_node(
    contents: &Arc<dyn ContentStore>,
    node: &ContentNode,
    pin: &Pin,
) -> Result<Vec<ContentEntry>, ServiceError> {
    let length: u64 = node.parts.iter().map(ContentRef::length).sum();
    if length > NODE_BYTES_MAX as u64 {
        return Err(damaged_row());
    }
    let bytes = read_contents(contents, &node.parts, 0..length, pin).await?;
    let entries = decode_node(&bytes).ok_or_else(damaged_row)?;
    let found: u64 = entries.iter().map(ContentEntry::length).sum();
    if found == node.length { Ok(entries) } else { Err(damaged_row()) }
}

/// All entries of a map. Blocks that are named several times have their references in memory once.
pub(crate) async fn all_entries(
    contents: &Arc<dyn ContentStore>,
    map: &ContentMap,
    pin: &Pin,
) -> Result<Vec<ContentEntry>, ServiceError> {
    let mut all: Vec<ContentEntry> = Vec::new();
    let mut known: HashMap<ContentId, Arc<[ContentRef]>> = HashMap::new();
    let mut add = |mut entry: ContentEntry| {
        if let Some(first) = entry.parts.first() {
            let known = known.entry(first.id()).or_insert_with(|| entry.parts.clone());
            if *known == entry.parts {
                entry.parts = known.clone();
            }
        }
        all.push(entry);
    };
    for node in &map.nodes {
        read_node(contents, node, pin).await?.into_iter().for_each(&mut add);
    }
    map.entries.iter().cloned().for_each(&mut add);
    Ok(all)
}

pub(crate) async fn roll(
    contents: &Arc<dyn ContentStore>,
    map: &mut ContentMap,
) -> Result<RolledNodes, ServiceError> {
    let mut rolled = RolledNodes::default();
    while map.entries_bytes() > ENTRIES_BYTES_MAX {
        let mut bytes = 0;
        let long_enough = map.entries.iter().position(|entry| {
            bytes += entry.size_bytes();
            bytes >= NODE_BYTES
        });
        let count = long_enough.map_or(map.entries.len(), |last| last + 1);
        let entries: Vec<ContentEntry> = map.entries.drain(..count).collect();
        let node = encode_node(&entries);
        if node.len() > NODE_BYTES_MAX {
            let why = "a block has more references than a list of blocks can hold";
            return Err(ServiceError::with_source(ErrorCode::InternalError, why));
        }
        let (parts, pending) = write_content(contents, node).await?;
        rolled.contents.extend(&parts);
        rolled.guards.push(pending);
        map.nodes.push(ContentNode { length: entries.iter().map(ContentEntry::length).sum(), parts });
    }
    Ok(rolled)
}

/// Nodes that were written and that no row names yet.
#[derive(Default)]
pub(crate) struct RolledNodes {
    pub(crate) contents: Vec<ContentRef>,
    pub(crate) guards: Vec<PendingContent>,
}

#[cfg(test)]
mod tests {
    use contents::MemoryContents;

    use super::*;
    use crate::portable::placeholder;

    fn entry(number: u64, parts: u64) -> ContentEntry {
        let id = BlockId::from_bytes(&number.to_be_bytes());
        ContentEntry { id, parts: (0..parts).map(|part| placeholder(number << 32 | part, 5)).collect() }
    }

    fn store() -> Arc<dyn ContentStore> {
        Arc::new(MemoryContents::new(1 << 30, Arc::new(|| 5)))
    }

    #[tokio::test]
    async fn entries_of_any_length_read_as_they_were_rolled() {
        let contents = store();
        for parts in [1, 160, 2250, 60_000] {
            let entries: Vec<ContentEntry> = (1..20).map(|number| entry(number, parts)).collect();
            let mut map = ContentMap { entries: entries.clone(), ..ContentMap::default() };
            roll(&contents, &mut map).await.unwrap();
            assert!(map.entries_bytes() <= ENTRIES_BYTES_MAX);
            assert!(all_entries(&contents, &map, &contents.pin()).await.unwrap() == entries, "{parts} parts");
        }
    }

    #[tokio::test]
    async fn a_list_that_nobody_could_read_is_not_written() {
        let mut map = ContentMap { entries: vec![entry(1, 200_000)], ..ContentMap::default() };
        assert!(roll(&store(), &mut map).await.is_err());
    }

    #[tokio::test]
    async fn a_block_that_is_named_often_is_in_memory_once() {
        let contents = store();
        let long = entry(1, 500);
        let mut map = ContentMap { entries: vec![long; 1000], ..ContentMap::default() };
        roll(&contents, &mut map).await.unwrap();
        assert!(map.nodes.len() > 50);
        let all = all_entries(&contents, &map, &contents.pin()).await.unwrap();
        assert!(all.iter().all(|entry| Arc::ptr_eq(&entry.parts, &all[0].parts)));
    }
}
