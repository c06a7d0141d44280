//! The commit log: makes a group of commits durable with one write and one sync, before the tree is touched.
//!
//! A group is one record (`record.rs`), numbered in sequence; records lie in segments (`segment.rs`). When the rows
//! of its records are in the tree, a segment is not needed any more and becomes the next one: its blocks are
//! allocated already. Opening reads the records that were not folded yet (`replay.rs`).
//!
//! Promises: when [`CommitLog::append`] returns, the record survives a power cut; before that, it survives whole or
//! not at all. Leaves to others: what the changes mean, and which records are folded.

#[doc(hidden)]
pub mod record;
mod replay;
mod segment;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use redb::StorageBackend;

use self::record::Salt;
#[cfg(feature = "seeded-bugs")]
pub(super) use self::record::is_record;
pub(super) use self::record::{Counters, RecordBuilder};
pub(super) use self::replay::{ReplayError, Replayed, replay};
pub(super) use self::segment::is_ours;
use self::segment::{Head, RECORDS_OFFSET, Seal, Segment};
use super::disk::is_full;
use crate::directory_files::{Access, AnyFile};
use crate::store_id::{StoreId, StorePlace};

/// A segment that is made while a store is opened is small, so that this takes milliseconds.
const FIRST_SEGMENT_BYTES: u64 = 64 * 1024;
/// The other segments: long enough that the next one is ready in time, and not much longer.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A segment that the commit thread makes itself, because nobody has begun the one that it wished for: callers wait. If it
/// was begun, waiting for it is all that is left.
const HASTY_SEGMENT_BYTES: u64 = 1024 * 1024;
/// The reserve for a full disk: room for some tens of thousands of deletions, until folding them frees space.
const RESERVE_BYTES: u64 = 4 * 1024 * 1024;
/// A shorter file is no reserve any more.
const RESERVE_BYTES_MIN: u64 = 1024 * 1024;
/// How much of the reserve is given up at a time, for a small file beside the store.
const RELEASE_BYTES: u64 = 64 * 1024;

/// What a record does to the space on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SpaceUse {
    /// It may need space.
    Any,
    /// It only removes rows and tables, so it may use the reserve.
    Frees,
}

/// Why an append failed.
#[derive(Debug)]
pub(super) enum AppendError {
    /// There is no space. Nothing has changed.
    NoRoom(io::Error),
    /// The content of the disk is unknown.
    Lost(io::Error),
    /// The path leads to another store by now: a sentence about it. Nothing has changed.
    Displaced(String),
}

/// The end of the log: where the commit thread writes.
pub(super) struct CommitLog {
    segments: Arc<Segments>,
    current: Segment,
    position: u64,
    last: u64,
    sealed: u64,
    /// Whether this segment has asked for the one after it.
    has_asked: bool,
    /// Beginning the next segment failed, perhaps after its file appeared. No record may go into this segment any
    /// more, because replay would look for it in the other.
    must_rotate: bool,
    /// The present segment was the reserve.
    is_reserve: bool,
}

impl CommitLog {
    fn at(segments: Arc<Segments>, current: Segment, position: u64, last: u64) -> CommitLog {
        CommitLog {
            segments,
            current,
            position,
            last,
            sealed: 0,
            has_asked: false,
            must_rotate: false,
            is_reserve: false,
        }
    }

    /// Makes the record durable; returns its sequence number and its length.
    pub(super) fn append(
        &mut self,
        record: &mut RecordBuilder,
        counters: Counters,
        space_use: SpaceUse,
    ) -> Result<(u64, usize), AppendError> {
        let end = self.position + record.size_bytes() as u64;
        let is_kept_from_it = self.is_reserve && space_use != SpaceUse::Frees;
        if self.must_rotate || is_kept_from_it || end > self.current.head.length {
            self.segments.place.check().map_err(AppendError::Displaced)?;
            self.rotate(record.size_bytes() as u64, space_use).map_err(AppendError::NoRoom)?;
        }
        let sequence = self.last + 1;
        let bytes = record.finish(self.current.head.salt, sequence, counters);
        let written = self.current.file.write(self.position, bytes);
        written.map_err(|error| match is_full(&error) {
            true => AppendError::NoRoom(error),
            false => AppendError::Lost(error),
        })?;
        // Even for want of space: what a failed sync leaves on the disk is unknown.
        self.current.file.sync_data().map_err(AppendError::Lost)?;
        let size_bytes = bytes.len();
        self.position += size_bytes as u64;
        self.last = sequence;
        if !self.has_asked && self.position * 4 > self.current.head.length {
            self.has_asked = true;
            self.segments.wish_for_spare();
        }
        Ok((sequence, size_bytes))
    }

    pub(super) fn wants_spare(&self) -> bool {
        self.segments.wants_spare()
    }

    /// Notes in the file that everything was synced. This costs a small write, so it is for moments when nobody
    /// waits.
    pub(super) fn seal(&mut self) {
        if self.sealed != self.last {
            self.sealed = self.last;
            // The seal is only a hint; failing to write it does no harm.
            let _ = self.current.write_seal(Seal { sequence: self.last, is_closed: false });
        }
    }

    /// Whether the present segment carries the store's id.
    pub(super) fn is_marked(&self) -> bool {
        self.current.head.store.is_some()
    }

    /// Continues in another segment, which has room for a record of this size; 0 while the store is being opened.
    pub(super) fn rotate(&mut self, record_bytes: u64, space_use: SpaceUse) -> io::Result<()> {
        let first = self.last + 1;
        let segments = self.segments.clone();
        let unused = segments.take_file(record_bytes, space_use)?;
        let is_reserve = unused.name == segment::RESERVE;
        self.must_rotate = true;
        let segment = segments.begin(first, unused)?;
        let _ = self.current.write_seal(Seal { sequence: self.last, is_closed: true });
        *self = CommitLog::at(segments, segment, RECORDS_OFFSET, self.last);
        self.is_reserve = is_reserve;
        Ok(())
    }
}

/// An allocated file that is no segment yet. Until it has its new name, no other file may take its old one: so long
/// nobody else makes a spare.
struct UnusedFile<'a> {
    _no_other: MutexGuard<'a, Option<(AnyFile, u64)>>,
    name: &'static str,
    file: AnyFile,
    length: u64,
}

/// A segment in the directory that belongs to another store, and that store.
pub(super) fn segment_of_another_store(place: &StorePlace) -> Option<(String, StoreId)> {
    let names = place.files.names().ok()?;
    replay::segment_of_another_store(place, names.iter().filter_map(|name| segment::first_of(name)))
}

/// What the log wishes of the thread that makes its files.
#[derive(Default, Debug)]
struct SpareWish {
    wants_spare: bool,
    /// There will be no more wishes.
    has_ended: bool,
}

/// The files of the log, shared by the commit thread, which adds them, the folding thread, which releases them, and the
/// thread that makes the next one.
#[derive(Debug)]
pub(super) struct Segments {
    place: StorePlace,
    /// The first record of each segment, the oldest first.
    firsts: Mutex<VecDeque<u64>>,
    /// A file for the next segment, fully allocated, and its length.
    spare: Mutex<Option<(AnyFile, u64)>>,
    wish: Mutex<SpareWish>,
    /// Signals a new wish.
    wished: Condvar,
    /// The length of the file that is kept for a full disk. `None` while there is no space for one.
    reserve: Mutex<Option<u64>>,
    /// The salt of the next segment: every segment has its own.
    salt: AtomicU64,
}

impl Segments {
    fn new(place: StorePlace, firsts: VecDeque<u64>, reserve: Option<u64>, salt: u64) -> Segments {
        Segments {
            place,
            firsts: Mutex::new(firsts),
            spare: Mutex::new(None),
            wish: Mutex::default(),
            wished: Condvar::new(),
            reserve: Mutex::new(reserve),
            salt: AtomicU64::new(salt),
        }
    }

    /// Fails, with a sentence, when the path no longer leads to this store.
    pub(super) fn check_place(&self) -> Result<(), String> {
        self.place.check()
    }

    fn firsts(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.firsts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn spare(&self) -> MutexGuard<'_, Option<(AnyFile, u64)>> {
        self.spare.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn reserve(&self) -> MutexGuard<'_, Option<u64>> {
        self.reserve.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A file for a segment that begins with a record of this size; 0 while the store is being opened.
    fn take_file(&self, record_bytes: u64, space_use: SpaceUse) -> io::Result<UnusedFile<'_>> {
        let length_min = RECORDS_OFFSET + record_bytes;
        // This lock waits for a spare that is being made; a second one would have the same name.
        let mut spare = self.spare();
        let (name, file, length) = match spare.take().filter(|(_, length)| *length >= length_min) {
            Some((file, length)) => (segment::SPARE, file, length),
            None => self.create_file(length_min, record_bytes == 0, space_use)?,
        };
        Ok(UnusedFile { name, file, length, _no_other: spare })
    }

    /// Creates a file of at least this length, or takes the reserve.
    fn create_file(
        &self,
        length_min: u64,
        is_opening: bool,
        space_use: SpaceUse,
    ) -> io::Result<(&'static str, AnyFile, u64)> {
        let length_min = length_min.next_multiple_of(RECORDS_OFFSET).max(FIRST_SEGMENT_BYTES);
        // While a store is being opened no record waits, and somebody waits for the store.
        let length = if is_opening { length_min } else { length_min.max(HASTY_SEGMENT_BYTES) };
        let create = |length| {
            if space_use == SpaceUse::Any && !is_opening {
                // The last space on the disk is for the reserve.
                self.make_reserve()?;
            }
            let file = segment::create(&*self.place.files, segment::SPARE, length, Access::Create)?;
            Ok((segment::SPARE, file, length))
        };
        let mut created = create(length);
        if created.as_ref().is_err_and(is_full) && length > length_min {
            // A smaller segment will do for now.
            created = create(length_min);
        }
        if space_use == SpaceUse::Frees
            && created.as_ref().is_err_and(is_full)
            && let Some(length) = self.reserve().take_if(|length| *length >= length_min)
        {
            let file = self.place.files.open(segment::RESERVE, Access::Write)?;
            log::warn!("the disk is full: deletions use the reserve of the commit log");
            created = Ok((segment::RESERVE, file, length));
        }
        created
    }

    fn begin(&self, first: u64, unused: UnusedFile<'_>) -> io::Result<Segment> {
        let UnusedFile { name, file, length, _no_other } = unused;
        let salt = Salt(self.salt.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        let head = Head { first, length, salt, store: Some(self.place.id) };
        let segment = Segment::begin(&*self.place.files, name, file, head)?;
        let mut firsts = self.firsts();
        // It may have taken the place of a segment without records.
        if firsts.back() != Some(&first) {
            firsts.push_back(first);
        }
        Ok(segment)
    }

    /// Bytes of all files of the log, those in waiting included.
    pub(super) fn size_bytes(&self) -> u64 {
        let names = self.place.files.names().unwrap_or_default();
        let ours = names.iter().filter(|name| is_ours(name));
        // A file may be gone by now.
        ours.filter_map(|name| self.place.files.size_bytes(name).ok()).sum()
    }

    fn wish(&self) -> MutexGuard<'_, SpareWish> {
        self.wish.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wish_for_spare(&self) {
        self.wish().wants_spare = true;
        self.wished.notify_all();
    }

    pub(super) fn wants_spare(&self) -> bool {
        self.wish().wants_spare
    }

    /// Waits until the log wants a spare, and takes the wish; `false` when there will be none any more.
    pub(super) fn wait_for_wish(&self) -> bool {
        let has_none = |wish: &mut SpareWish| !wish.wants_spare && !wish.has_ended;
        let waited = self.wished.wait_while(self.wish(), has_none);
        let mut wish = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut wish.wants_spare) && !wish.has_ended
    }

    pub(super) fn end_wishes(&self) {
        self.wish().has_ended = true;
        self.wished.notify_all();
    }

    /// Makes the file of the next segment, if there is none, so that the commit thread need not.
    pub(super) fn make_spare(&self) -> io::Result<()> {
        self.wish().wants_spare = false;
        let mut spare = self.spare();
        if spare.is_none() {
            let file = segment::create(&*self.place.files, segment::SPARE, SEGMENT_BYTES, Access::Create)?;
            *spare = Some((file, SEGMENT_BYTES));
        }
        Ok(())
    }

    pub(super) fn has_reserve(&self) -> bool {
        self.reserve().is_some()
    }

    /// Makes the reserve, if there is none.
    pub(super) fn make_reserve(&self) -> io::Result<()> {
        let mut reserve = self.reserve();
        if reserve.is_none() {
            let files = &*self.place.files;
            let access = Access::CreateLater;
            drop(segment::create(files, segment::RESERVE_NEW, RESERVE_BYTES, access)?);
            // A file that has its name is allocated.
            files.rename(segment::RESERVE_NEW, segment::RESERVE)?;
            *reserve = Some(RESERVE_BYTES);
        }
        Ok(())
    }

    /// Gives up a part of the reserve, so that a small file has space. Returns whether there was any.
    pub(super) fn release_some(&self) -> io::Result<bool> {
        let mut reserve = self.reserve();
        let Some(length) = reserve.filter(|length| *length > RESERVE_BYTES_MIN) else { return Ok(false) };
        let shorter = length - RELEASE_BYTES;
        self.place.files.open(segment::RESERVE, Access::Write)?.set_len(shorter)?;
        *reserve = Some(shorter);
        Ok(true)
    }

    /// Gives up the file for the next segment. Returns whether there was one.
    pub(super) fn release_spare(&self) -> bool {
        // The lock is held until the file is gone: the thread that makes spares would give the next one the same name.
        let mut spare = self.spare();
        spare.take().is_some() && self.place.files.remove(segment::SPARE).is_ok()
    }

    /// Releases the segments that hold no record after this one.
    pub(super) fn forget_until(&self, sequence: u64) -> io::Result<()> {
        loop {
            let first = {
                let mut firsts = self.firsts();
                match (firsts.front(), firsts.get(1)) {
                    (Some(first), Some(next)) if *next <= sequence + 1 => {
                        let first = *first;
                        firsts.pop_front();
                        first
                    }
                    _ => return Ok(()),
                }
            };
            self.recycle(first)?;
        }
    }

    fn recycle(&self, first: u64) -> io::Result<()> {
        let name = &segment::name(first);
        // A head that cannot be read was damaged after its records were folded. The file goes like the others.
        let store = segment::store_of(&*self.place.files, first);
        if let Some(other) = store.filter(|store| *store != self.place.id) {
            let text = format!("{name} belongs to store {other}, and this is store {}", self.place.id);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut spare = self.spare();
        // Without a reserve, the space goes to the reserve.
        if spare.is_none() && store.is_some() && self.has_reserve() {
            let file = self.place.files.open(name, Access::Write)?;
            let length = file.len()?;
            if length == SEGMENT_BYTES {
                self.place.files.rename(name, segment::SPARE)?;
                *spare = Some((file, length));
                return Ok(());
            }
        }
        self.place.files.remove(name)
    }
}
