//! Notes: what a service learns about a request while it runs it.
//!
//! They are taken as soon as they are known, so that a request that times out or fails is observed with them too.
//! Writing a note needs only a shared reference, since a request's future may move between threads; it takes no lock.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use protocol::ErrorCode;
use protocol::table::region::PlanKind;

use crate::observation::{Detail, Shape};
use crate::rows::{NotedRow, NotedRows};

/// The notes of one request.
#[derive(Default)]
pub struct Notes {
    /// One more than the place in [`PLANS`]; 0 for none.
    plan: AtomicU8,
    has_more: AtomicBool,
    /// One more than the place in `ErrorCode::ALL`; 0 for none.
    error: AtomicU16,
    property_count_max: AtomicU32,
    shape_number: AtomicU64,
    examined: AtomicU64,
    returned: AtomicU64,
    written: AtomicU64,
    row_bytes_max: AtomicU64,
    bytes_in: AtomicU64,
    place: OnceLock<NotedPlace>,
}

/// What a request is about, when its head does not say so.
struct NotedPlace {
    /// The container, then PartitionKey and rows, or a filter, in one allocation.
    bytes: Box<[u8]>,
    container_len: usize,
    /// `None` when there are no rows: then the rest is the filter.
    partition_len: Option<usize>,
}

/// From the cheapest to the most expensive.
pub(crate) const PLANS: [PlanKind; 5] = [
    PlanKind::Point,
    PlanKind::RowRange,
    PlanKind::PartitionScan,
    PlanKind::PartitionRange,
    PlanKind::TableScan,
];

impl Notes {
    /// How the rows are going to be found.
    pub fn plan(&self, plan: PlanKind) {
        self.plan.store(plan as u8 + 1, Relaxed);
    }

    /// The [`Shape::number`] of the request's filter.
    pub fn shape(&self, number: u64) {
        self.shape_number.store(number, Relaxed);
    }

    /// What reading took, or has taken so far.
    pub fn read(&self, examined: u64, returned: u64) {
        self.examined.store(examined, Relaxed);
        self.returned.store(returned, Relaxed);
    }

    /// The answer has a continuation.
    pub fn has_more(&self) {
        self.has_more.store(true, Relaxed);
    }

    /// So many rows were written or deleted.
    pub fn written(&self, row_count: u64) {
        self.written.store(row_count, Relaxed);
    }

    /// A row that is read or written; the largest one is kept.
    pub fn row(&self, size_bytes: u64, property_count: u32) {
        // Nobody else writes at the same time, so nothing is lost between the two steps.
        self.row_bytes_max.store(self.row_bytes_max.load(Relaxed).max(size_bytes), Relaxed);
        self.property_count_max.store(self.property_count_max.load(Relaxed).max(property_count), Relaxed);
    }

    /// Which rows the request is about, when its payload names them. Only the first call counts, of this or of
    /// [`Notes::query`].
    pub fn rows<'a>(
        &self,
        container: &str,
        partition: &str,
        rows: impl Iterator<Item = NotedRow<'a>> + Clone,
    ) {
        self.place.get_or_init(|| {
            let rows_len: usize = rows.clone().map(|row| row.encoded_len()).sum();
            let mut bytes = Vec::with_capacity(container.len() + partition.len() + rows_len);
            bytes.extend_from_slice(container.as_bytes());
            bytes.extend_from_slice(partition.as_bytes());
            rows.for_each(|row| row.encode(&mut bytes));
            let (container_len, partition_len) = (container.len(), Some(partition.len()));
            NotedPlace { bytes: bytes.into(), container_len, partition_len }
        });
    }

    /// What a query that stands in the request's payload is about: the container, and the text of its filter.
    pub fn query(&self, container: &str, filter: &str) {
        self.place.get_or_init(|| NotedPlace {
            bytes: [container.as_bytes(), filter.as_bytes()].concat().into(),
            container_len: container.len(),
            partition_len: None,
        });
    }

    /// The error of a part, where the whole is answered with success.
    pub fn error(&self, code: ErrorCode) {
        self.error.store(code as u16 + 1, Relaxed);
    }

    /// Bytes of the payload that were read.
    pub fn payload(&self, bytes: u64) {
        self.bytes_in.store(bytes, Relaxed);
    }

    pub fn payload_bytes(&self) -> u64 {
        self.bytes_in.load(Relaxed)
    }

    /// The error of a part, if there is one.
    pub fn noted_error(&self) -> Option<ErrorCode> {
        let index = usize::from(self.error.load(Relaxed)).checked_sub(1)?;
        ErrorCode::ALL.get(index).copied()
    }

    /// All notes, together with what the head of the request says: `named` and the text of its filter.
    pub fn detail<'a>(&'a self, named: Named<'a>) -> Detail<'a> {
        let Named { container, partition, row, mut filter } = named;
        let mut detail = Detail { container, partition, row, ..Detail::default() };
        if let Some(place) = self.place.get() {
            let (container, rest) = place.bytes.split_at_checked(place.container_len).unwrap_or_default();
            let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).ok();
            detail.container = text(container).unwrap_or_default();
            match place.partition_len {
                Some(len) => {
                    let (partition, rows) = rest.split_at_checked(len).unwrap_or_default();
                    detail.partition = text(partition);
                    detail.rows = NotedRows::new(rows);
                    detail.row = NotedRows::new(rows).next().map(|row| row.row);
                }
                None => filter = text(rest),
            }
        }
        let number = self.shape_number.load(Relaxed);
        let plan = usize::from(self.plan.load(Relaxed)).checked_sub(1).and_then(|index| PLANS.get(index));
        Detail {
            plan: plan.copied(),
            filter_shape: filter.filter(|_| number != 0).map(|source| Shape::new(number, source)),
            examined: self.examined.load(Relaxed),
            returned: self.returned.load(Relaxed),
            has_more: self.has_more.load(Relaxed),
            written: self.written.load(Relaxed),
            row_bytes_max: self.row_bytes_max.load(Relaxed),
            property_count_max: self.property_count_max.load(Relaxed),
            ..detail
        }
    }
}

/// What the head of a request names.
#[derive(Clone, Copy, Default)]
pub struct Named<'a> {
    pub container: &'a str,
    pub partition: Option<&'a str>,
    pub row: Option<&'a str>,
    /// The text of a query's filter.
    pub filter: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;

    #[test]
    fn plans_stand_in_the_order_of_their_numbers() {
        for (index, plan) in PLANS.into_iter().enumerate() {
            assert_eq!(plan as usize, index);
        }
    }

    #[test]
    fn notes_complete_what_the_head_names() {
        let notes = Notes::default();
        let named = Named { container: "people", filter: Some("Age gt 7"), ..Named::default() };
        assert!(notes.detail(named).filter_shape.is_none() && notes.detail(named).plan.is_none());
        notes.plan(PlanKind::TableScan);
        notes.shape(7);
        notes.read(100, 3);
        notes.row(10, 4);
        notes.row(8, 5);
        notes.error(ErrorCode::EntityAlreadyExists);
        let detail = notes.detail(named);
        assert_eq!(
            (detail.container, detail.partition, detail.plan),
            ("people", None, Some(PlanKind::TableScan))
        );
        assert_eq!(
            (detail.examined, detail.returned, detail.row_bytes_max, detail.property_count_max),
            (100, 3, 10, 5)
        );
        assert_eq!(detail.filter_shape.map(|shape| shape.text()).as_deref(), Some("Age gt Int32"));
        assert_eq!(notes.noted_error(), Some(ErrorCode::EntityAlreadyExists));
        let rows = ["row", "other"].map(|row| NotedRow {
            operation: Operation::DeleteEntity,
            row,
            size_bytes: 0,
            property_count: 0,
        });
        notes.rows("people", "p", rows.into_iter());
        let detail = notes.detail(Named::default());
        assert_eq!((detail.container, detail.partition, detail.row), ("people", Some("p"), Some("row")));
        assert_eq!(detail.rows.collect::<Vec<_>>(), rows);
    }

    #[test]
    fn a_query_in_a_payload_brings_its_filter() {
        let notes = Notes::default();
        notes.query("people", "Age gt 7");
        notes.shape(7);
        let detail = notes.detail(Named::default());
        assert_eq!((detail.container, detail.partition, detail.row), ("people", None, None));
        assert_eq!(detail.filter_shape.map(|shape| shape.text()).as_deref(), Some("Age gt Int32"));
    }
}
