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
mod spares;

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
use self::spares::{Claim, SpareFile, Spares};
use super::disk::is_full;
use crate::directory_files::Access;
use crate::store_id::{StoreId, StorePlace};

/// A segment that is made while a store is opened is small, so that this takes milliseconds.
const FIRST_SEGMENT_BYTES: u64 = 64 * 1024;
/// The other segments: long enough that the next one is ready in time, and not much longer.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A segment that the commit thread makes itself, because the one that it wished for is not ready: callers wait.
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
        let is_reserve = unused.was_reserve;
        self.must_rotate = true;
        let segment = segments.begin(first, unused)?;
        let _ = self.current.write_seal(Seal { sequence: self.last, is_closed: true });
        // This closes the segment before. If the new one has the last file handle, the handle of the old one is for the next.
        *self = CommitLog::at(segments, segment, RECORDS_OFFSET, self.last);
        self.is_reserve = is_reserve;
        self.segments.place.files.renew_reserve();
        Ok(())
    }
}

/// An allocated file that is no segment yet.
struct UnusedFile<'a> {
    name: &'static str,
    spare: SpareFile,
    was_reserve: bool,
    /// Until the file has its new name, no other may take its old one. Only the commit thread uses a name without a claim.
    _claim: Option<Claim<'a>>,
}

impl<'a> UnusedFile<'a> {
    fn waited((claim, spare): (Claim<'a>, SpareFile)) -> UnusedFile<'a> {
        UnusedFile { name: claim.name(), spare, was_reserve: false, _claim: Some(claim) }
    }

    fn hasty(spare: SpareFile, was_reserve: bool) -> UnusedFile<'a> {
        UnusedFile { name: segment::HASTY, spare, was_reserve, _claim: None }
    }
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
    /// Files for the next segments.
    spares: Spares,
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
            spares: Spares::default(),
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

    fn reserve(&self) -> MutexGuard<'_, Option<u64>> {
        self.reserve.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A file for a segment that begins with a record of this size; 0 while the store is being opened.
    fn take_file(&self, record_bytes: u64, space_use: SpaceUse) -> io::Result<UnusedFile<'_>> {
        let length_min = RECORDS_OFFSET + record_bytes;
        if let Some(taken) = self.spares.take(length_min) {
            return Ok(UnusedFile::waited(taken));
        }
        let error = match self.create_file(length_min, record_bytes == 0, space_use) {
            Ok(created) => return Ok(created),
            Err(error) => error,
        };
        // A spare that is being made may have the last file handle, or the last space.
        self.spares.wait_until_made();
        self.spares.take(length_min).map(UnusedFile::waited).ok_or(error)
    }

    /// Creates a file of at least this length, or takes the reserve.
    fn create_file(
        &self,
        length_min: u64,
        is_opening: bool,
        space_use: SpaceUse,
    ) -> io::Result<UnusedFile<'_>> {
        let length_min = length_min.next_multiple_of(RECORDS_OFFSET).max(FIRST_SEGMENT_BYTES);
        // While a store is being opened no record waits, and somebody waits for the store.
        let length = if is_opening { length_min } else { length_min.max(HASTY_SEGMENT_BYTES) };
        let create = |length| {
            if space_use == SpaceUse::Any && !is_opening {
                // The last space on the disk is for the reserve.
                self.make_reserve()?;
            }
            let file = segment::create(&*self.place.files, segment::HASTY, length, Access::Create)?;
            Ok(UnusedFile::hasty(SpareFile { file, length }, false))
        };
        let mut created = create(length);
        if created.as_ref().is_err_and(is_full) && length > length_min {
            // A smaller segment will do for now.
            created = create(length_min);
        }
        if space_use == SpaceUse::Frees
            && created.as_ref().is_err_and(is_full)
            && let Some(reserve) = self.take_reserve(length_min)?
        {
            log::warn!("the disk is full: deletions use the reserve of the commit log");
            created = Ok(UnusedFile::hasty(reserve, true));
        }
        created
    }

    /// Takes the reserve if it is long enough, and gives it the name of a file made in haste: the folding thread may make
    /// another reserve as soon as the lock is free.
    fn take_reserve(&self, length_min: u64) -> io::Result<Option<SpareFile>> {
        let mut reserve = self.reserve();
        let Some(length) = reserve.filter(|length| *length >= length_min) else { return Ok(None) };
        let file = self.place.files.open(segment::RESERVE, Access::Write)?;
        self.place.files.rename(segment::RESERVE, segment::HASTY)?;
        *reserve = None;
        Ok(Some(SpareFile { file, length }))
    }

    fn begin(&self, first: u64, unused: UnusedFile<'_>) -> io::Result<Segment> {
        let UnusedFile { name, spare: SpareFile { file, length }, _claim, .. } = unused;
        let salt = Salt(self.salt.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        let head = Head { first, length, salt, store: Some(self.place.id) };
        let files = &*self.place.files;
        let begun = Segment::begin(files, name, file, head);
        // A file that is no segment and no spare would take space until the store is reopened. If it has its new name
        // already, there is none of the old one.
        let segment = begun.inspect_err(|_| drop(files.remove(name)))?;
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
        if !self.spares.has_any()
            && let Some(claim) = self.spares.claim()
        {
            let (files, length) = (&*self.place.files, SEGMENT_BYTES);
            let file = segment::create(files, segment::SPARE_NEW, length, Access::Create)?;
            // A file that has its name is allocated.
            files.rename(segment::SPARE_NEW, claim.name())?;
            claim.keep(SpareFile { file, length });
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

    /// Gives up the files for the next segments. Returns whether there were any.
    pub(super) fn release_spares(&self) -> bool {
        let mut released = false;
        while let Some((claim, spare)) = self.spares.take(0) {
            // Windows does not remove open files.
            drop(spare);
            released |= self.place.files.remove(claim.name()).is_ok();
        }
        released
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
        // Without a reserve, the space goes to the reserve.
        if store.is_some()
            && self.has_reserve()
            && let Some(claim) = self.spares.claim()
        {
            let file = self.place.files.open(name, Access::Write)?;
            let length = file.len()?;
            if length == SEGMENT_BYTES {
                self.place.files.rename(name, claim.name())?;
                claim.keep(SpareFile { file, length });
                return Ok(());
            }
        }
        self.place.files.remove(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory_files::DirectoryFiles;

    #[test]
    fn a_reserve_that_is_taken_is_not_mistaken_for_one_that_is_made_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let place = StorePlace {
            files: Arc::new(DirectoryFiles::new(directory.path())),
            path: directory.path().to_owned(),
            id: StoreId::from_number(7).unwrap(),
        };
        let segments = Segments::new(place, VecDeque::new(), None, 1);
        segments.make_reserve().unwrap();
        let taken = segments.take_reserve(FIRST_SEGMENT_BYTES).unwrap().unwrap();
        // Between these two steps of the commit thread, the folding thread finds space again.
        segments.make_reserve().unwrap();
        let segment = segments.begin(1, UnusedFile::hasty(taken, true)).unwrap();
        segment.file.write(RECORDS_OFFSET, b"record").unwrap();
        let on_disk = Segment::open(&*segments.place.files, 1).unwrap();
        assert_eq!(on_disk.head, segment.head);
        assert!(on_disk.read_records().unwrap().starts_with(b"record"));
        assert_eq!(segments.place.files.size_bytes(segment::RESERVE).unwrap(), RESERVE_BYTES);
        assert!(segments.has_reserve());
        // Neither is left under a name that the next opening would have to clean up.
        assert_eq!(segments.place.files.names().unwrap().len(), 2);
    }
}
