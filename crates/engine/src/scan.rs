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
}

/// One row where it lies.
pub trait ScannedRow {
    type Error;

    /// The encoded key.
    fn key(&self) -> &[u8];

    /// Reads the row, and checks it where the engine has a way to.
    fn read(&self) -> Result<(Version, &[u8]), Self::Error>;
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
        while let Some(found) = rows.next_row()? {
            let (_, partition, row) = keys::decode(found.key())?;
            let key = Key { partition: &partition, row: &row };
            if !pace.has_room() {
                return Ok(Some(key.into()));
            }
            let (version, value) = found.read()?;
            if sink.row(key, version, value) == Flow::Stop {
                return Ok(Some(key.into()));
            }
            pace.count_row(value.len());
            pace.yield_if_due().await;
        }
        pace.yield_if_due().await;
    }
    Ok(None)
}
