//! Bytes that tell where they come from: each cell of 16 bytes has the number of its body, its place in it, and a
//! checksum.
//!
//! Promises: no two bodies with different numbers share a cell, so a mix of two bodies, a hole or a shift is noticed
//! and can be described.

use std::fmt::Write as _;
use std::sync::Arc;

/// The bytes of a blob, or of a part of one.
pub type Body = Arc<Vec<u8>>;

const CELL_BYTES: usize = 16;
/// Stretches that a description names.
const STRETCH_COUNT_MAX: usize = 8;

/// The body with this number.
pub fn make(number: u64, length: usize) -> Body {
    let mut bytes = Vec::with_capacity(length.next_multiple_of(CELL_BYTES));
    for place in 0..length.div_ceil(CELL_BYTES) as u32 {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&place.to_le_bytes());
        bytes.extend_from_slice(&checksum(number, place).to_le_bytes());
    }
    bytes.truncate(length);
    Arc::new(bytes)
}

fn checksum(number: u64, place: u32) -> u32 {
    let mixed = (number ^ u64::from(place).rotate_left(40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32 | 1
}

/// The number and place of the cell with which these bytes begin.
fn cell(bytes: &[u8]) -> Option<(u64, u32)> {
    let (cell, _) = bytes.split_first_chunk::<CELL_BYTES>()?;
    let (number, rest) = cell.split_first_chunk::<8>()?;
    let (place, check) = rest.split_first_chunk::<4>()?;
    let (number, place) = (u64::from_le_bytes(*number), u32::from_le_bytes(*place));
    (check == checksum(number, place).to_le_bytes()).then_some((number, place))
}

/// The number of the body with which these bytes begin, if it is one.
pub fn number_of(bytes: &[u8]) -> Option<u64> {
    cell(bytes).filter(|(_, place)| *place == 0).map(|(number, _)| number)
}

/// What these bytes consist of, in words.
pub fn describe(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes", bytes.len());
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() && count < STRETCH_COUNT_MAX {
        let start = at;
        let what = match cell(&bytes[at..]) {
            Some((number, place)) => {
                let mut next = place;
                while cell(&bytes[at..]) == Some((number, next)) {
                    at += CELL_BYTES;
                    next = next.wrapping_add(1);
                }
                format!("body {number:x} from cell {place}")
            }
            None => {
                let is_zero = bytes[at] == 0;
                while at < bytes.len() && cell(&bytes[at..]).is_none() && (bytes[at] == 0) == is_zero {
                    at += 1;
                }
                if is_zero { "zeros".to_owned() } else { "other bytes".to_owned() }
            }
        };
        let _ = write!(text, ", {start}..{at} {what}");
        count += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_tells_its_number_and_a_mix_is_described() {
        let (one, two) = (make(7, 100), make(8, 64));
        assert_eq!((one.len(), number_of(&one), number_of(&two)), (100, Some(7), Some(8)));
        assert_eq!(number_of(&one[16..]), None);
        let mixed = [&one[..48], &two[16..48], &[0; 20]].concat();
        assert_eq!(
            describe(&mixed),
            "100 bytes, 0..48 body 7 from cell 0, 48..80 body 8 from cell 1, 80..100 zeros"
        );
    }
}
