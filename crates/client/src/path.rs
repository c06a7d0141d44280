//! Addresses of rows: `people(PartitionKey='a',RowKey='b')`.
//!
//! Promises: any key arrives as it is, whatever characters it has, and a given address is always written in the same
//! way, since the signature covers it. Only letters, digits and `-_.~` stay as they are, which is also how the
//! official libraries write it.

use crate::Keys;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Writes the address of a row below the account.
pub(crate) fn write_entity_path(table: &str, keys: &Keys<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"(PartitionKey='");
    write_key(&keys.partition_key, out);
    out.extend_from_slice(b"',RowKey='");
    write_key(&keys.row_key, out);
    out.extend_from_slice(b"')");
}

pub(crate) fn entity_path(table: &str, keys: &Keys<'_>) -> String {
    const FIXED_BYTES: usize = "(PartitionKey='',RowKey='')".len();
    let mut out =
        Vec::with_capacity(table.len() + keys.partition_key.len() + keys.row_key.len() + FIXED_BYTES);
    write_entity_path(table, keys, &mut out);
    String::from_utf8(out).expect("only ASCII was written")
}

/// A quote inside a key is doubled, as everywhere in OData.
fn write_key(key: &str, out: &mut Vec<u8>) {
    for byte in key.bytes() {
        if byte == b'\'' {
            out.extend_from_slice(b"%27%27");
        } else {
            write_byte(byte, out);
        }
    }
}

fn write_byte(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// Escapes all but letters, digits and `-_.~`.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    text.bytes().for_each(|byte| write_byte(byte, &mut out));
    String::from_utf8(out).expect("only ASCII was written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(partition_key: &str, row_key: &str, expected: &str) {
        let keys = Keys { partition_key: partition_key.into(), row_key: row_key.into() };
        assert_eq!(entity_path("t", &keys), expected);
    }

    #[test]
    fn keys_are_escaped() {
        check("a", "b", "t(PartitionKey='a',RowKey='b')");
        check("", "", "t(PartitionKey='',RowKey='')");
        check("O'Brien", "a b", "t(PartitionKey='O%27%27Brien',RowKey='a%20b')");
        check("100%", "ü+(", "t(PartitionKey='100%25',RowKey='%C3%BC%2B%28')");
    }

    #[test]
    fn an_address_is_read_back_by_the_server_as_it_was_meant() {
        for key in ["", "'", "''", "%27", "a'b,RowKey='c", "100%+&=?", "日本\u{1F600}", ")('"] {
            let keys = Keys { partition_key: key.into(), row_key: key.into() };
            let path = entity_path("people", &keys);
            let resource = protocol::table::wire::uri::parse_path(&path).unwrap();
            let expected = protocol::table::wire::uri::Resource::Entity {
                table: "people".into(),
                partition_key: key.into(),
                row_key: key.into(),
            };
            assert_eq!(resource, expected);
        }
    }
}
