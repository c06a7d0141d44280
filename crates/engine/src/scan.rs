//! The scan loop, for every engine that has its rows at hand in this process.
//!
//! An engine says how to walk a run of encoded keys ([`RowSource`]); this says how far ([`Pace`]) and what the caller sees of
//! it. Promises: those of [`Engine::scan`](crate::Engine::scan), as long as a source is one view of the rows.

use crate::keys::{self, Key, KeyDamage, KeyRange, OwnedKey};
use crate::pace::Pace;
use crate::{Flow, Sink, TableId, Version};

/// A view of an engine's rows.
pub trait RowSource: Sync {
    /// What may go wrong when a row is read.
    type Error: From<KeyDamage>;
    type Rows<'a>: Rows<Error = Self::Error> + Send
    where
        Self: 'a;

    /// The rows with `start <= encoded key < end`, in key order.
    fn range<'a>(&'a self, start: &'a [u8], end: &'a [u8]) -> Result<Self::Rows<'a>, Self::Error>;
}

/// A run of rows.
pub trait Rows {
    type Error;
    type Row: ScannedRow<Error = Self::Error> + Send;

    fn next_row(&mut self) -> Result<Option<Self::Row>, Self::Error>;

    /// Shows the next rows to a visitor, until it pauses; `false` when there are no more. Rows are large to move, so an engine
    /// that can show them where they lie does that.
    fn walk(&mut self, visitor: &mut impl RowVisitor<Self::Error>) -> Result<bool, Self::Error> {
        while let Some(row) = self.next_row()? {
            if visitor.row(&row)? == VisitStep::Pause {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VisitStep {
    Onward,
    Pause,
}

/// Sees the rows of a walk.
pub trait RowVisitor<E> {
    fn row(&mut self, row: &impl ScannedRow<Error = E>) -> Result<VisitStep, E>;
}

/// One row where it lies.
pub trait ScannedRow {
    type Error;

    /// The encoded key.
    fn key(&self) -> &[u8];

    /// Reads the row, and checks it where the engine has a way to.
    fn read(&self) -> Result<(Version, &[u8]), Self::Error>;

    /// The same without the check, to see whether the row is wanted at all. `None`: [`ScannedRow::read`] says why not.
    fn peek(&self) -> Option<(Version, &[u8])> {
        self.read().ok()
    }
}

/// Shows the rows of `ranges` (sorted, disjoint) to the sink, as far as the pace allows; returns the key to resume with.
pub async fn scan<S: RowSource>(
    source: &S,
    table: TableId,
    ranges: &[KeyRange],
    mut pace: Pace<'_>,
    sink: &mut dyn Sink,
) -> Result<Option<OwnedKey>, S::Error> {
    for range in ranges {
        let (start, end) = range.in_table(table);
        if start >= end {
            continue;
        }
        pace.count_seek();
        let mut rows = source.range(&start, &end)?;
        loop {
            let mut turn = ScanTurn { pace: &mut pace, sink, resume: None };
            let has_paused = rows.walk(&mut turn)?;
            if turn.resume.is_some() {
                return Ok(turn.resume);
            }
            pace.yield_if_due().await;
            if !has_paused {
                break;
            }
        }
    }
    Ok(None)
}

/// What a scan does without giving its thread up.
struct ScanTurn<'t, 'p> {
    pace: &'t mut Pace<'p>,
    sink: &'t mut dyn Sink,
    /// The key at which the sink or the budget ended the scan.
    resume: Option<OwnedKey>,
}

impl<E: From<KeyDamage>> RowVisitor<E> for ScanTurn<'_, '_> {
    fn row(&mut self, found: &impl ScannedRow<Error = E>) -> Result<VisitStep, E> {
        if !self.pace.has_room() {
            return self.end_at(found.key());
        }
        // Under a filter most rows are passed over, and need no more than this.
        let passed_over = found.peek().filter(|(version, value)| self.sink.passes_over(*version, value));
        let size_bytes = match passed_over {
            Some((_, value)) => value.len(),
            None => match self.show(found)? {
                Some(size_bytes) => size_bytes,
                None => return Ok(VisitStep::Pause),
            },
        };
        self.pace.count_row(size_bytes);
        Ok(if self.pace.is_turn_over() { VisitStep::Pause } else { VisitStep::Onward })
    }
}

impl ScanTurn<'_, '_> {
    /// Shows the row to the sink; returns the size of its value, or `None` if the scan ends here.
    fn show<E: From<KeyDamage>>(&mut self, found: &impl ScannedRow<Error = E>) -> Result<Option<usize>, E> {
        let (version, value) = found.read()?;
        let (_, partition, row) = keys::decode(found.key())?;
        let key = Key { partition: &partition, row: &row };
        if self.sink.row(key, version, value) == Flow::Stop {
            self.resume = Some(key.into());
            return Ok(None);
        }
        Ok(Some(value.len()))
    }

    fn end_at<E: From<KeyDamage>>(&mut self, key: &[u8]) -> Result<VisitStep, E> {
        let (_, partition, row) = keys::decode(key)?;
        self.resume = Some(Key { partition: &partition, row: &row }.into());
        Ok(VisitStep::Pause)
    }
}
