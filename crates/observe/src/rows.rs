//! The rows that a request names in its payload, from when they are read until the request is observed.
//!
//! Promises: all of them are in one piece of memory, which is as large as their keys and [`HEAD_BYTES`] for each.
//! Leaves to others: which rows these are, and what is concluded from them.

use std::fmt;

use crate::operation::Operation;

/// Operation, number of properties, length of the key (u16), size (u32).
const HEAD_BYTES: usize = 8;

/// One row, and what a request does to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotedRow<'a> {
    pub operation: Operation,
    pub row: &'a str,
    /// Of what is written: of a merge, that is only what it changes.
    pub size_bytes: u32,
    pub property_count: u8,
}

impl NotedRow<'_> {
    pub(crate) fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.row.len()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        // The place of every operation fits (a test below), and keys are shorter by far.
        let len = u16::try_from(self.row.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&[self.operation.index() as u8, self.property_count]);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.size_bytes.to_le_bytes());
        out.extend_from_slice(&self.row.as_bytes()[..usize::from(len)]);
    }
}

/// Rows in the order of their request.
#[derive(Clone, Copy, Default)]
pub struct NotedRows<'a> {
    encoded: &'a [u8],
}

impl<'a> NotedRows<'a> {
    pub(crate) fn new(encoded: &'a [u8]) -> NotedRows<'a> {
        NotedRows { encoded }
    }
}

impl<'a> Iterator for NotedRows<'a> {
    type Item = NotedRow<'a>;

    fn next(&mut self) -> Option<NotedRow<'a>> {
        let (head, rest) = self.encoded.split_first_chunk::<HEAD_BYTES>()?;
        let [operation, property_count, len @ .., s0, s1, s2, s3] = *head;
        let (row, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(len)))?;
        self.encoded = rest;
        Some(NotedRow {
            operation: *Operation::ALL.get(usize::from(operation))?,
            row: std::str::from_utf8(row).ok()?,
            size_bytes: u32::from_le_bytes([s0, s1, s2, s3]),
            property_count,
        })
    }
}

impl fmt::Debug for NotedRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_noted() {
        assert!(Operation::ALL.len() <= 256);
        let long = "\u{65e5}".repeat(512);
        let row = |operation, row, size_bytes, property_count| NotedRow {
            operation,
            row,
            size_bytes,
            property_count,
        };
        let rows = [
            row(Operation::InsertEntity, "a", 1 << 20, 252),
            row(Operation::DeleteEntity, "", 0, 0),
            row(Operation::InsertOrMergeEntity, &long, 77, 1),
        ];
        let mut encoded = Vec::new();
        for row in &rows {
            row.encode(&mut encoded);
        }
        assert_eq!(encoded.len(), rows.iter().map(NotedRow::encoded_len).sum::<usize>());
        assert_eq!(NotedRows::new(&encoded).collect::<Vec<_>>(), rows);
        assert_eq!(NotedRows::default().count(), 0);
    }
}
