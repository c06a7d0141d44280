//! The contents of the blocks that hold blobs: containers, pieces of contents, and rows.
//!
//! ```text
//! container (10)   account, string · name, string · 00, or 01 and its access policies, bytes · record, bytes
//! piece (11)       of a content of the container before it: number u64 · flags u8 · bytes up to the block's end
//! rows (12)        rows of the container before it: as kind 4, with the blob's name as PartitionKey
//! ```
//!
//! Contents are numbered through the whole file, from 0. The pieces of one content follow each other; flag 1 marks the last one,
//! flag 2 a content that several rows may name. A row names only contents before it, of its own container. Records and rows are
//! described in `blobs/portable.rs`.

use blobs::ContentPiece;

use crate::content::{pull, pull_bytes, pull_policies, pull_str, pull_u64, push_bytes, push_policies};

const LAST: u8 = 1;
const SHARED: u8 = 2;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerHead {
    pub account: String,
    /// A deleted one that can be restored has its version in its name.
    pub name: String,
    pub policies: Option<Vec<u8>>,
    pub record: Vec<u8>,
}

impl ContainerHead {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_bytes(&mut out, self.account.as_bytes());
        push_bytes(&mut out, self.name.as_bytes());
        push_policies(&mut out, self.policies.as_deref());
        push_bytes(&mut out, &self.record);
        out
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Option<ContainerHead> {
        let (account, name) = (pull_str(&mut bytes)?.to_owned(), pull_str(&mut bytes)?.to_owned());
        let policies = pull_policies(&mut bytes)?;
        let record = pull_bytes(&mut bytes)?.to_vec();
        bytes.is_empty().then_some(ContainerHead { account, name, policies, record })
    }
}

pub(crate) fn write_piece(piece: ContentPiece<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(9 + piece.bytes.len());
    out.extend_from_slice(&piece.number.to_le_bytes());
    out.push(if piece.is_last { LAST } else { 0 } | if piece.is_shared { SHARED } else { 0 });
    out.extend_from_slice(piece.bytes);
    out
}

pub(crate) fn read_piece(mut bytes: &[u8]) -> Option<ContentPiece<'_>> {
    let number = pull_u64(&mut bytes)?;
    let flags = pull(&mut bytes, 1)?[0];
    let is_known = flags & !(LAST | SHARED) == 0 && !bytes.is_empty();
    is_known.then_some(ContentPiece {
        number,
        is_last: flags & LAST != 0,
        is_shared: flags & SHARED != 0,
        bytes,
    })
}

/// Where the reader is in the sequence of contents.
#[derive(Default)]
pub(crate) struct PieceOrder {
    /// Contents that are complete.
    pub(crate) count: u64,
    /// The length so far of the one that is not, and whether it is shared.
    open: Option<(u64, bool)>,
}

/// What a piece completes: the length of its content.
pub(crate) type CompletedContent = Option<u64>;

impl PieceOrder {
    pub(crate) fn see(&mut self, piece: &ContentPiece<'_>) -> Result<CompletedContent, &'static str> {
        if piece.number != self.count {
            return Err("a content is out of order");
        }
        let (length, is_shared) = self.open.take().unwrap_or((0, piece.is_shared));
        let length = length + piece.bytes.len() as u64;
        if is_shared != piece.is_shared {
            return Err("the pieces of a content do not agree");
        }
        if !piece.is_last {
            self.open = Some((length, is_shared));
            return Ok(None);
        }
        self.count += 1;
        Ok(Some(length))
    }

    /// Whether the last piece of a content is missing.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}
