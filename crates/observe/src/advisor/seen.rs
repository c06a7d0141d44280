//! What a request tells about each of its rows, whether it is alone or in a batch.
//!
//! Leaves to others: which requests are looked at, and what is remembered.

use super::entities::Extent;
use crate::observation::Observation;
use crate::operation::Operation;

/// Account, table and keys, when the request names them all.
pub(super) fn place_of<'a>(observation: &Observation<'a>) -> Option<[&'a str; 4]> {
    let detail = &observation.detail;
    Some([observation.account, detail.container, detail.partition?, detail.row?])
}

/// What is known of a row after a request that succeeded.
pub(super) enum RowFate {
    Gone,
    Has(Extent),
    Unknown,
}

impl RowFate {
    pub(super) fn of(row: SeenRow) -> RowFate {
        let SeenRow { operation, bytes, properties } = row;
        let extent = |is_whole| RowFate::Has(Extent { bytes, properties, is_whole });
        match operation {
            Operation::DeleteEntity => RowFate::Gone,
            Operation::MergeEntity | Operation::InsertOrMergeEntity => extent(false),
            Operation::InsertEntity | Operation::InsertOrReplaceEntity | Operation::UpdateEntity => {
                extent(true)
            }
            // An answer that the row has not changed does not show it.
            Operation::GetEntity if bytes > 0 => extent(true),
            _ => RowFate::Unknown,
        }
    }
}

/// A row of a request, single or one of a batch.
#[derive(Clone, Copy)]
pub(super) struct SeenRow {
    operation: Operation,
    bytes: u64,
    properties: u32,
}

/// Calls `see` with account, table and keys of each row that the request names.
pub(super) fn for_each_row<'a>(observation: &Observation<'a>, mut see: impl FnMut([&'a str; 4], SeenRow)) {
    let Some(place) = place_of(observation) else { return };
    let [account, table, partition, _] = place;
    let detail = &observation.detail;
    let alone =
        |operation| SeenRow { operation, bytes: detail.row_bytes_max, properties: detail.property_count_max };
    if observation.operation != Operation::EntityGroupTransaction {
        return see(place, alone(observation.operation));
    }
    for row in detail.rows {
        // A read is alone in its batch, and its row's size was not known when it was noted.
        let seen = match row.operation {
            Operation::GetEntity => alone(row.operation),
            operation => {
                SeenRow { operation, bytes: row.size_bytes.into(), properties: row.property_count.into() }
            }
        };
        see([account, table, partition, row.row], seen);
    }
}

/// What the rows of one request add to their partition.
#[derive(Default)]
pub(super) struct WrittenRows<'a> {
    pub deleted: u64,
    /// Rows that may be new, and their bytes together.
    pub created: u64,
    pub bytes: u64,
    /// The first of them, and whether it is new for certain.
    pub first: Option<([&'a str; 4], bool)>,
}

impl<'a> WrittenRows<'a> {
    pub(super) fn add(&mut self, place: [&'a str; 4], row: SeenRow) {
        match row.operation {
            Operation::DeleteEntity => self.deleted += 1,
            Operation::InsertEntity | Operation::InsertOrReplaceEntity | Operation::InsertOrMergeEntity => {
                self.created += 1;
                self.bytes += row.bytes;
                self.first.get_or_insert((place, row.operation == Operation::InsertEntity));
            }
            _ => {}
        }
    }
}
