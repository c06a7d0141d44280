//! What the catalogue keeps beside a queue's name: its metadata, as pairs of texts, each with its length before it.

use bytes::Bytes;
use engine::varint;
use protocol::common::Metadata;
use protocol::{ErrorCode, ServiceError};

pub(crate) fn write(metadata: &Metadata) -> Bytes {
    let mut bytes = Vec::new();
    for (name, value) in metadata.items() {
        for text in [name, value] {
            varint::push(&mut bytes, text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes.into()
}

pub(crate) fn read(payload: &[u8]) -> Result<Metadata, ServiceError> {
    let mut rest = payload;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let name = take_text(&mut rest).ok_or_else(damaged)?;
        let value = take_text(&mut rest).ok_or_else(damaged)?;
        items.push((name, value));
    }
    Metadata::read(items).map_err(|_| damaged())
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let size = varint::pull(rest)?;
    let (text, after) = rest.split_at_checked(size)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

fn damaged() -> ServiceError {
    ServiceError::with_source(ErrorCode::InternalError, "the stored metadata of a queue does not decode")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_reads_as_written() {
        let long = "v".repeat(5000);
        for items in [vec![], vec![("Color", "red"), ("empty", ""), ("long", &long)]] {
            let metadata = Metadata::read(items.iter().copied()).unwrap();
            let read = read(&write(&metadata)).unwrap();
            assert_eq!(read.items().collect::<Vec<_>>(), items);
        }
        for broken in [&b"\x01"[..], b"\x05ab", b"\x01a", b"\x01a\x01\xff", b"\x00\x00"] {
            assert!(read(broken).is_err(), "{broken:?}");
        }
    }
}
