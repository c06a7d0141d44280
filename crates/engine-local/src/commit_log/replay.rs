//! Reads the log when a store is opened: which records are still to be applied, and whether they are all there.
//!
//! A record that was being written when the power failed is torn. It was never acknowledged, and is cut. Everything
//! else that is missing was acknowledged once: a record before others, a record that the seal mentions, a segment
//! that others follow. Then the store is damaged and does not open. A segment of another store is refused, whether its
//! records are needed or not.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use redb::StorageBackend;

use super::record::{ALIGNMENT, LogRecord};
use super::segment::{self, RECORDS_OFFSET, Segment};
use super::{CommitLog, RESERVE_BYTES, RESERVE_BYTES_MIN, Segments, SpaceUse};
use crate::directory_files::Access;
use crate::store_id::{StoreId, StorePlace};

/// Why a log does not open.
#[derive(Debug)]
pub(crate) enum ReplayError {
    Damaged(String),
    Io(String, io::Error),
    /// This file belongs to that store.
    OtherStore(String, StoreId),
}

/// The log, ready for its next record.
pub(crate) struct Replayed {
    pub(crate) log: CommitLog,
    pub(crate) segments: Arc<Segments>,
    pub(crate) last: u64,
}

/// Calls `apply` with every record after `folded`, in order. `is_new`: there may be no log yet, or one whose segments
/// carry no store id.
pub(crate) fn replay(
    place: &StorePlace,
    folded: u64,
    is_new: bool,
    salt: u64,
    mut apply: impl FnMut(&LogRecord<'_>) -> Option<()>,
) -> Result<Replayed, ReplayError> {
    let io = |name: &str| {
        let name = name.to_owned();
        move |error| ReplayError::Io(name, error)
    };
    let files = &place.files;
    let names = files.names().map_err(io("the directory"))?;
    for name in names.iter().filter(|name| segment::is_unused(name)) {
        files.remove(name).map_err(io(name))?;
    }
    let reserve = match names.iter().any(|name| name == segment::RESERVE) {
        true => find_reserve(place).map_err(io(segment::RESERVE))?,
        false => None,
    };
    let mut firsts: VecDeque<u64> = names.iter().filter_map(|name| segment::first_of(name)).collect();
    firsts.make_contiguous().sort_unstable();
    let segments = |firsts| Arc::new(Segments::new(place.clone(), firsts, reserve, salt));
    let Some(first) = firsts.front().copied() else {
        if !is_new {
            return Err(ReplayError::Damaged("the commit log (commits-….log) is missing".to_owned()));
        }
        let segments = segments(firsts);
        let unused = segments.take_file(0, SpaceUse::Any).map_err(io(segment::HASTY))?;
        let current = segments.begin(folded + 1, unused).map_err(io(segment::HASTY))?;
        let log = CommitLog::at(segments.clone(), current, RECORDS_OFFSET, folded);
        return Ok(Replayed { log, segments, last: folded });
    };
    if first > folded + 1 {
        let text =
            format!("{} is the first of the log, but record {} is needed", segment::name(first), folded + 1);
        return Err(ReplayError::Damaged(text));
    }

    if let Some((name, other)) = segment_of_another_store(place, firsts.iter().copied()) {
        return Err(ReplayError::OtherStore(name, other));
    }
    let needed = firsts.iter().rposition(|first| *first <= folded + 1).unwrap_or(0);
    let mut reading = Reading { last: folded, end: RECORDS_OFFSET, last_record: None };
    for index in needed..firsts.len() {
        let name = segment::name(firsts[index]);
        let sorted = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                ReplayError::Damaged(format!("{name}: {error}"))
            }
            _ => ReplayError::Io(name.clone(), error),
        };
        let damaged = |what: String| ReplayError::Damaged(format!("{name}: {what}"));
        let segment = Segment::open(&**files, firsts[index]).map_err(sorted)?;
        if segment.head.store.is_none() && !is_new {
            return Err(damaged("it carries no store id, as every segment since format 4 does".to_owned()));
        }
        let bytes = segment.read_records().map_err(sorted)?;
        reading.segment(&segment, &bytes, &mut apply).map_err(damaged)?;
        let seal = segment.read_seal().map_err(sorted)?;
        let next = firsts.get(index + 1).copied();
        let is_complete = match next {
            Some(next) => reading.last + 1 >= next,
            None => reading.last >= seal.sequence,
        };
        if !is_complete {
            return Err(damaged(format!("records after {} are damaged", reading.last)));
        }
        if next.is_none() && seal.is_closed {
            return Err(damaged("the segment that follows it is missing".to_owned()));
        }
    }

    let last_first = firsts.back().copied().unwrap_or(first);
    let name = segment::name(last_first);
    let head = Segment::open(&**files, last_first).map_err(io(&name))?.head;
    let file = files.open(&name, Access::Write).map_err(io(&name))?;
    // The last record may have been written and not synced when its process ended, and is about to be shown to
    // readers. Write it again before the sync: after a failed sync the system may believe that it is on the disk
    // already.
    if let Some((offset, bytes)) = &reading.last_record {
        file.write(*offset, bytes).map_err(io(&name))?;
    }
    file.sync_data().map_err(io(&name))?;
    // The process before may have ended right after it gave the last segment its name. If a power cut took the name away
    // again, it would take the records that follow with it.
    files.sync().map_err(io("the directory"))?;
    let segments = segments(firsts);
    let last = reading.last;
    let log = CommitLog::at(segments.clone(), Segment { head, file }, reading.end, last);
    Ok(Replayed { log, segments, last })
}

/// The length of the reserve, if it has one.
fn find_reserve(place: &StorePlace) -> io::Result<Option<u64>> {
    let length = place.files.open(segment::RESERVE, Access::Read)?.len()?;
    if (RESERVE_BYTES_MIN..=RESERVE_BYTES).contains(&length) {
        return Ok(Some(length));
    }
    place.files.remove(segment::RESERVE)?;
    Ok(None)
}

/// The first of these segments that belongs to another store. A head that cannot be read is not looked at: it matters
/// only if its records are needed.
pub(super) fn segment_of_another_store(
    place: &StorePlace,
    mut firsts: impl Iterator<Item = u64>,
) -> Option<(String, StoreId)> {
    firsts.find_map(|first| {
        let other = segment::store_of(&*place.files, first).filter(|store| *store != place.id)?;
        Some((segment::name(first), other))
    })
}

/// How far replay has come.
struct Reading {
    /// The last record that was applied now or folded before.
    last: u64,
    /// The offset of the end of the segment's last record.
    end: u64,
    /// The segment's last record, and its offset.
    last_record: Option<(u64, Vec<u8>)>,
}

impl Reading {
    fn segment(
        &mut self,
        segment: &Segment,
        bytes: &[u8],
        apply: &mut impl FnMut(&LogRecord<'_>) -> Option<()>,
    ) -> Result<(), String> {
        let mut at = 0;
        let mut last_record = None;
        self.end = RECORDS_OFFSET;
        while at < bytes.len() {
            let Some(record) = LogRecord::read(segment.head.salt, &bytes[at..]) else {
                // Either the end, or damage with more records behind it.
                at += ALIGNMENT;
                continue;
            };
            if record.sequence > self.last + 1 {
                return Err(format!("records {} to {} are damaged", self.last + 1, record.sequence - 1));
            }
            if record.sequence == self.last + 1 {
                apply(&record).ok_or_else(|| format!("record {} does not read", record.sequence))?;
                self.last = record.sequence;
            }
            last_record = Some(at..at + record.size_bytes);
            at += record.size_bytes;
            self.end = RECORDS_OFFSET + at as u64;
        }
        self.last_record = last_record
            .and_then(|place| Some((RECORDS_OFFSET + place.start as u64, bytes.get(place)?.to_vec())));
        Ok(())
    }
}
