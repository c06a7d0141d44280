//! Lines and epochs: which rows of a segment a page blob sees.
//!
//! All pages of a blob are written in its *line*. A new blob, a copy, and clearing everything each begin a line of their own. So
//! rows of another line are never seen, whatever happens to the blob: neither those of a copy that was given up half way, nor those
//! of a deleted blob of the same name, nor those of a server whose clock is ahead. Within a line, epochs are counted: a snapshot
//! keeps its epoch, and the blob goes on in the next one.
//!
//! Promises: no two lines are the same, also if two servers begin one in the same moment.

use protocol::common::DateTime;

use crate::codec::{Decoder, Encoder};

/// A line of epochs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PageLine {
    /// The moment in which it began, which tells the age of rows that nobody sees.
    pub(crate) begun: u64,
    /// Tells it from a line that another server began in the same moment.
    tag: u32,
}

impl PageLine {
    fn write(self, out: &mut Encoder) {
        out.number(self.begun);
        out.raw(&self.tag.to_le_bytes());
    }

    fn read(from: &mut Decoder<'_>) -> Option<PageLine> {
        Some(PageLine { begun: from.number()?, tag: u32::from_le_bytes(from.array()?) })
    }
}

/// What a page blob sees: of each segment the newest row of its line, up to its epoch. Writes go to that epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Epochs {
    pub(crate) line: PageLine,
    pub(crate) epoch: u64,
    /// The line in which the blob was put. Snapshots of the same blob have the same, also when clearing has begun a new line.
    pub(crate) born: PageLine,
}

impl Epochs {
    /// A new line, of which nothing is written yet.
    pub(crate) fn begin(moment: DateTime) -> Epochs {
        let tag = engine::env::random::unguessable() as u32;
        let line = PageLine { begun: moment.ticks(), tag };
        Epochs { line, epoch: 0, born: line }
    }

    /// Those of the same blob after everything was cleared. Epochs go on, so that they still tell which snapshot is older.
    pub(crate) fn cleared(self, moment: DateTime) -> Epochs {
        Epochs { epoch: self.epoch, born: self.born, ..Epochs::begin(moment) }
    }

    /// From here on, writes leave alone what was written before.
    pub(crate) fn advance(&mut self) {
        self.epoch += 1;
    }

    /// Whether it sees a row, unless there is a newer one that it sees too.
    pub(crate) fn reaches(&self, row: Epochs) -> bool {
        self.line == row.line && row.epoch <= self.epoch
    }

    pub(crate) fn write(&self, out: &mut Encoder) {
        self.line.write(out);
        out.number(self.epoch);
        self.born.write(out);
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Epochs> {
        let line = PageLine::read(from)?;
        // So many snapshots there never are, so the next epoch is always a number.
        let epoch = from.number().filter(|epoch| *epoch <= u64::from(u32::MAX))?;
        Some(Epochs { line, epoch, born: PageLine::read(from)? })
    }
}

/// The row of a segment.
pub(crate) fn segment_row(segment: u64, epochs: Epochs) -> String {
    let Epochs { line: PageLine { begun, tag }, epoch, .. } = epochs;
    format!("V{segment:08x}{begun:016x}{tag:08x}{epoch:08x}")
}

/// All rows of this segment and of later ones are not before it.
pub(crate) fn segment_begin(segment: u64) -> String {
    format!("V{segment:08x}")
}

/// The segment, and the epoch in which this row of it was written. Rows do not know in which line their blob was put.
pub(crate) fn read_segment_row(row: &str) -> Option<(u64, Epochs)> {
    let digits = row.strip_prefix('V').filter(|digits| digits.len() == 40)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if !digits.bytes().all(is_digit) {
        return None;
    }
    let number = |from: usize, to: usize| u64::from_str_radix(&digits[from..to], 16).ok();
    let line = PageLine { begun: number(8, 24)?, tag: number(24, 32)? as u32 };
    Some((number(0, 8)?, Epochs { line, epoch: number(32, 40)?, born: line }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_as_they_were_written_and_sort_by_segment_line_and_epoch() {
        let first = Epochs::begin(DateTime::from_ticks(7));
        let mut next = first;
        next.advance();
        let other = Epochs::begin(DateTime::from_ticks(8));
        let rows = [(1, first), (1, next), (1, other), (2, first)];
        let written: Vec<String> =
            rows.iter().map(|(segment, epochs)| segment_row(*segment, *epochs)).collect();
        assert!(written.is_sorted());
        for (row, expected) in written.iter().zip(rows) {
            assert_eq!(read_segment_row(row), Some(expected));
        }
        assert!(segment_begin(1) < written[0] && written[2] < segment_begin(2));
        for other in ["V", "V0", &written[0][..40], &(written[0].clone() + "0"), &written[0].to_uppercase()] {
            assert_eq!(read_segment_row(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_of_another_line_is_seen() {
        let moment = DateTime::from_ticks(7);
        let (first, mut second) = (Epochs::begin(moment), Epochs::begin(moment));
        assert_ne!(first.line, second.line, "in the same moment");
        for _ in 0..10 {
            second.advance();
        }
        assert!(!second.reaches(first) && !first.reaches(second));
        let mut next = first;
        next.advance();
        assert!(next.reaches(first) && !first.reaches(next));
    }
}
