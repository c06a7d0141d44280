//! A writer with a container of its own: it puts, overwrites, stages and commits blocks, appends, writes and clears
//! pages, takes snapshots, copies and deletes, one thing at a time, and knows what must be there.
//!
//! Promises: requests depend only on the seed and the answers; at most one operation is open. A block that is staged
//! again has another length, so that a list of lengths tells which one is there. Leaves to others: starting and
//! killing the server.

use std::collections::BTreeMap;

use fastrand::Rng;
use testkit::{Request, Response};

use super::board::Board;
use super::body::{self, Body};
use super::door::{self, BlobDoor};
use super::state::{BlobState, StoredBlob, TakenSnapshot, unquoted};
use crate::queue::recorded::Stop;

const BLOCK_BLOBS: [&str; 3] = ["b0", "b1", "b2"];
const APPEND_BLOB: &str = "a0";
const PAGE_BLOB: &str = "p0";
/// The destination of copies.
const COPY: &str = "c0";
const SNAPSHOT_COUNT_MAX: usize = 3;
const STAGED_COUNT_MAX: usize = 6;
const APPENDED_BYTES_MAX: usize = 600 * 1024;
const PAGE_BYTES: usize = 512;
/// Pages of one write.
const WRITTEN_PAGE_COUNT_MAX: usize = 96;

/// How long bodies are.
#[derive(Clone, Copy)]
pub struct BodySizes {
    /// The longest of the long ones.
    pub long_bytes_max: usize,
    /// Of a hundred bodies so many are long.
    pub long_percent: u32,
    pub page_blob_bytes: usize,
}

/// What writers count.
#[derive(Clone, Copy, Default)]
pub struct BlobCounts {
    pub puts: u64,
    pub blocks: u64,
    pub lists: u64,
    pub appends: u64,
    pub pages: u64,
    pub snapshots: u64,
    pub copies: u64,
    pub deletes: u64,
    pub reads: u64,
    pub written_bytes: u64,
    pub open_applied: u64,
    pub open_absent: u64,
}

/// One operation, with the range of the disk's log in which it was open.
#[derive(Clone)]
pub struct BlobEntry {
    pub sent_at: u64,
    /// When its outcome became known; `u64::MAX` until then.
    pub settled_at: u64,
    /// What was stored after it: what was there before, if it was not applied.
    pub after: BlobState,
}

pub struct BlobWriter {
    number: usize,
    random: Rng,
    sizes: BodySizes,
    last_body: u64,
    pub known: BlobState,
    /// What is stored if the open operation is applied.
    open: Option<BlobState>,
    /// The bytes of blocks, by blob and identifier.
    blocks: BTreeMap<(String, String), Body>,
    open_block: Option<((String, String), Body)>,
    pub counts: BlobCounts,
    /// All operations, if they are recorded.
    pub history: Option<Vec<BlobEntry>>,
}

/// Where a writer works.
pub struct Workplace<'a> {
    pub door: BlobDoor,
    /// Readers look here.
    pub board: Option<&'a Board>,
    /// The current length of the disk's log, if it is recorded.
    pub position: &'a dyn Fn() -> u64,
}

/// An operation on one blob.
struct Change<'a> {
    blob: &'a str,
    request: Request,
    status: u16,
    after: BlobState,
}

impl BlobWriter {
    pub fn new(number: usize, seed: u64, sizes: BodySizes) -> BlobWriter {
        let mut random = Rng::with_seed(seed ^ (number as u64 + 501).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.u64(..);
        BlobWriter {
            number,
            random,
            sizes,
            last_body: (number as u64 + 1) << 32,
            known: BlobState::default(),
            open: None,
            blocks: BTreeMap::new(),
            open_block: None,
            counts: BlobCounts::default(),
            history: None,
        }
    }

    pub fn recorded(mut self) -> BlobWriter {
        self.history = Some(Vec::new());
        self
    }

    pub fn container(&self) -> String {
        container(self.number)
    }

    /// Makes this many steps.
    pub fn run(&mut self, place: &mut Workplace<'_>, steps: usize) -> Result<(), Stop> {
        for _ in 0..steps {
            self.step(place)?;
        }
        Ok(())
    }

    fn step(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        if !self.known.has_container {
            let after = BlobState { has_container: true, blobs: BTreeMap::new() };
            let request = door::create_container(&self.container());
            return self.change(place, Change { blob: "", request, status: 201, after }).map(drop);
        }
        let block_blob = BLOCK_BLOBS[self.random.usize(..BLOCK_BLOBS.len())];
        match self.random.u32(..200) {
            0..50 => self.put(place, block_blob),
            50..80 => self.stage(place, block_blob),
            80..100 => self.commit_list(place, block_blob),
            100..125 => self.append(place),
            125..150 => self.write_pages(place),
            150..160 => self.snapshot(place),
            160..172 => self.copy(place),
            172..180 => self.delete_something(place),
            180..199 => self.read(place),
            _ => self.delete_container(place),
        }
    }

    fn put(&mut self, place: &mut Workplace<'_>, blob: &str) -> Result<(), Stop> {
        let body = self.new_body();
        let mut after = self.known.clone();
        let stored = after.blobs.entry(blob.to_owned()).or_default();
        *stored = StoredBlob {
            body: Some(body.clone()),
            snapshots: std::mem::take(&mut stored.snapshots),
            ..StoredBlob::default()
        };
        let request = door::put(&self.path(blob), &body);
        self.counts.puts += 1;
        self.counts.written_bytes += body.len() as u64;
        self.change_content(place, Change { blob, request, status: 201, after })
    }

    fn stage(&mut self, place: &mut Workplace<'_>, blob: &str) -> Result<(), Stop> {
        let staged = self.known.blobs.get(blob).map(|stored| stored.staged.clone()).unwrap_or_default();
        let mut body = self.new_body();
        let again = self.random.u8(..4) == 0 || staged.len() >= STAGED_COUNT_MAX;
        let id = match staged.keys().nth(self.random.usize(..staged.len().max(1))).filter(|_| again) {
            Some(id) => id.clone(),
            // The usual Base64 of eight digits, all of one length.
            None => base64_of(&format!("{:08x}", self.last_body as u32)),
        };
        if staged.get(&id) == Some(&body.len()) {
            body = body::make(self.last_body, body.len() + 1);
        }
        let mut after = self.known.clone();
        after.blobs.entry(blob.to_owned()).or_default().staged.insert(id.clone(), body.len());
        let request = door::stage(&self.path(blob), &id, &body);
        self.open_block = Some(((blob.to_owned(), id), body.clone()));
        self.counts.blocks += 1;
        self.counts.written_bytes += body.len() as u64;
        self.change(place, Change { blob, request, status: 201, after }).map(drop)
    }

    fn commit_list(&mut self, place: &mut Workplace<'_>, blob: &str) -> Result<(), Stop> {
        let stored = self.known.blobs.get(blob).cloned().unwrap_or_default();
        if stored.staged.is_empty() {
            return self.stage(place, blob);
        }
        let mut listed: Vec<(&str, String)> = Vec::new();
        let count = self.random.usize(1..=STAGED_COUNT_MAX);
        for _ in 0..count {
            let staged = stored.staged.keys().nth(self.random.usize(..stored.staged.len()));
            let committed = stored.committed.get(self.random.usize(..stored.committed.len().max(1)));
            match (staged, committed.filter(|_| self.random.bool())) {
                (_, Some((id, _))) => listed.push(("Committed", id.clone())),
                (Some(id), None) => {
                    listed.push((if self.random.bool() { "Latest" } else { "Uncommitted" }, id.clone()));
                }
                (None, None) => {}
            }
        }
        // An identifier may name a committed and a staged block, and then other bytes.
        let is_ambiguous = |id: &String| {
            stored.staged.contains_key(id) && stored.committed.iter().any(|(other, _)| other == id)
        };
        listed.retain(|(_, id)| !is_ambiguous(id));
        let bytes_of = |id: &String| self.blocks.get(&(blob.to_owned(), id.clone())).cloned();
        let Some(parts) = listed.iter().map(|(_, id)| bytes_of(id)).collect::<Option<Vec<Body>>>() else {
            return Err(Stop::Broken(format!("{blob} has blocks that nobody staged: {stored:?}")));
        };
        let mut after = self.known.clone();
        let body: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let committed = listed.iter().zip(&parts).map(|((_, id), part)| (id.clone(), part.len())).collect();
        let snapshots = stored.snapshots;
        let new = StoredBlob { body: Some(Body::new(body)), committed, snapshots, ..StoredBlob::default() };
        after.blobs.insert(blob.to_owned(), new);
        let request = door::commit_list(&self.path(blob), &listed);
        self.counts.lists += 1;
        self.change_content(place, Change { blob, request, status: 201, after })
    }

    fn append(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let blob = APPEND_BLOB;
        let old = self.known.blobs.get(blob).and_then(|stored| stored.body.clone());
        let mut after = self.known.clone();
        let stored = after.blobs.entry(blob.to_owned()).or_default();
        stored.etag = None;
        let request = match old.filter(|old| old.len() < APPENDED_BYTES_MAX) {
            None => {
                stored.body = Some(Body::default());
                door::create_append(&self.path(blob))
            }
            Some(old) => {
                let more = self.new_body();
                stored.body = Some(Body::new([&old[..], &more].concat()));
                self.counts.written_bytes += more.len() as u64;
                door::append(&self.path(blob), &more)
            }
        };
        self.counts.appends += 1;
        self.change_content(place, Change { blob, request, status: 201, after })
    }

    fn write_pages(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let (blob, size) = (PAGE_BLOB, self.sizes.page_blob_bytes);
        let old = self.known.blobs.get(blob).and_then(|stored| stored.body.clone());
        let mut after = self.known.clone();
        let stored = after.blobs.entry(blob.to_owned()).or_default();
        stored.etag = None;
        self.counts.pages += 1;
        let request = match old.filter(|_| self.random.u8(..60) > 0) {
            None => {
                stored.body = Some(Body::new(vec![0; size]));
                door::create_pages(&self.path(blob), size)
            }
            Some(old) => {
                let page_count = size / PAGE_BYTES;
                let count = match self.random.bool() {
                    true => self.random.usize(1..=8),
                    false => self.random.usize(1..=WRITTEN_PAGE_COUNT_MAX),
                };
                // At the beginning and near the end, so that writes meet, and cross the border of a segment.
                let away = self.random.usize(..page_count.min(2 * WRITTEN_PAGE_COUNT_MAX));
                let first = if self.random.bool() { away } else { page_count - 1 - away };
                let count = count.min(page_count - first);
                let (offset, length) = (first * PAGE_BYTES, count * PAGE_BYTES);
                let mut bytes = old.to_vec();
                self.last_body += 1;
                let written = (self.random.u8(..5) > 0).then(|| body::make(self.last_body, length));
                match &written {
                    Some(written) => bytes[offset..offset + length].copy_from_slice(written),
                    None => bytes[offset..offset + length].fill(0),
                }
                stored.body = Some(Body::new(bytes));
                self.counts.written_bytes += written.as_ref().map_or(0, |written| written.len() as u64);
                let written = written.as_ref().map(|written| &written[..]);
                door::put_pages(&self.path(blob), offset, length, written)
            }
        };
        self.change_content(place, Change { blob, request, status: 201, after })
    }

    fn snapshot(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let Some((blob, stored)) = self.any_blob() else { return self.append(place) };
        let mut after = self.known.clone();
        let Some(changed) = after.blobs.get_mut(&blob) else { return Ok(()) };
        if stored.snapshots.len() >= SNAPSHOT_COUNT_MAX {
            let taken = changed.snapshots.remove(self.random.usize(..SNAPSHOT_COUNT_MAX));
            let request = Request::delete(&door::snapshot_path(&self.path(&blob), &taken.moment));
            self.counts.deletes += 1;
            return self.change(place, Change { blob: &blob, request, status: 202, after }).map(drop);
        }
        let StoredBlob { body, committed, .. } = stored;
        let body = body.unwrap_or_default();
        changed.snapshots.push(TakenSnapshot { moment: String::new(), body, committed });
        let request = door::snapshot(&self.path(&blob));
        self.counts.snapshots += 1;
        let response = self.change(place, Change { blob: &blob, request, status: 201, after })?;
        let moment = response.header("x-ms-snapshot").unwrap_or_default().to_owned();
        if let Some(taken) = self.known.blobs.get_mut(&blob).and_then(|stored| stored.snapshots.last_mut()) {
            taken.moment = moment;
        }
        Ok(())
    }

    /// Copies a block blob, or a snapshot of one.
    fn copy(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let blob = BLOCK_BLOBS[self.random.usize(..BLOCK_BLOBS.len())];
        let Some((stored, body)) =
            self.known.blobs.get(blob).and_then(|stored| Some((stored, stored.body.clone()?)))
        else {
            return self.put(place, blob);
        };
        let (path, mut after) = (self.path(blob), self.known.clone());
        let taken = stored.snapshots.get(self.random.usize(..SNAPSHOT_COUNT_MAX));
        let (source, body, committed) = match taken {
            Some(taken) => {
                (door::snapshot_path(&path, &taken.moment), taken.body.clone(), taken.committed.clone())
            }
            None => (path, body, stored.committed.clone()),
        };
        let snapshots = after.blobs.remove(COPY).map(|stored| stored.snapshots).unwrap_or_default();
        let new = StoredBlob { body: Some(body), committed, snapshots, ..StoredBlob::default() };
        after.blobs.insert(COPY.to_owned(), new);
        let request = door::copy(&self.path(COPY), &place.door.url(&source));
        self.counts.copies += 1;
        self.change_content(place, Change { blob: COPY, request, status: 202, after })
    }

    fn delete_something(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let Some((blob, _)) = self.any_blob() else { return self.append(place) };
        let mut after = self.known.clone();
        after.blobs.remove(&blob);
        let request = door::delete(&self.path(&blob));
        self.counts.deletes += 1;
        self.change(place, Change { blob: &blob, request, status: 202, after }).map(drop)
    }

    fn delete_container(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        // Readers know the blobs one by one.
        if place.board.is_some() {
            return self.read(place);
        }
        let request = door::delete_container(&self.container());
        self.counts.deletes += 1;
        self.change(place, Change { blob: "", request, status: 202, after: BlobState::default() }).map(drop)
    }

    fn read(&mut self, place: &mut Workplace<'_>) -> Result<(), Stop> {
        let Some((blob, stored)) = self.any_blob() else { return self.append(place) };
        let path = self.path(&blob);
        let response = place.door.ask(&Request::get(&path)).map_err(Stop::Cut)?;
        self.counts.reads += 1;
        let body = stored.body.unwrap_or_default();
        if response.status != 200 || response.body != *body {
            let found = body::describe(&response.body);
            return Err(Stop::Broken(format!(
                "{path} is {}, but a GET is answered with {} and {found}",
                body::describe(&body),
                response.status
            )));
        }
        Ok(())
    }

    /// A blob with content.
    fn any_blob(&mut self) -> Option<(String, StoredBlob)> {
        let with_body: Vec<_> = self.known.blobs.iter().filter(|(_, stored)| stored.body.is_some()).collect();
        let (name, stored) = with_body.get(self.random.usize(..with_body.len().max(1)))?;
        Some(((*name).clone(), (*stored).clone()))
    }

    fn new_body(&mut self) -> Body {
        self.last_body += 1;
        let length = match self.random.u32(..100) {
            at if at < self.sizes.long_percent => {
                self.random.usize(260 * 1024..self.sizes.long_bytes_max.max(260 * 1024 + 1))
            }
            0..50 => self.random.usize(1..9 * 1024),
            _ => self.random.usize(8 * 1024..120 * 1024),
        };
        body::make(self.last_body, length)
    }

    fn path(&self, blob: &str) -> String {
        format!("/{}/{blob}", self.container())
    }

    /// A change that gives the blob a new ETag.
    fn change_content(&mut self, place: &mut Workplace<'_>, change: Change<'_>) -> Result<(), Stop> {
        let blob = change.blob.to_owned();
        let response = self.change(place, change)?;
        if let Some(stored) = self.known.blobs.get_mut(&blob) {
            stored.etag = response.header("ETag").map(unquoted);
        }
        Ok(())
    }

    /// Sends a change that must succeed.
    fn change(&mut self, place: &mut Workplace<'_>, change: Change<'_>) -> Result<Response, Stop> {
        let Change { blob, request, status, after } = change;
        self.open = Some(after.clone());
        if let Some(history) = &mut self.history {
            let sent_at = (place.position)();
            history.push(BlobEntry { sent_at, settled_at: u64::MAX, after: self.known.clone() });
        }
        let path = self.path(blob);
        let board = place.board.filter(|_| !blob.is_empty());
        if let Some(board) = board {
            board.begin(&path, after.blobs.get(blob).and_then(|stored| stored.body.clone()));
        }
        let response = place.door.ask(&request).map_err(Stop::Cut)?;
        if response.status != status {
            return Err(Stop::Broken(format!("{} {path} is answered with {response:?}", request.method)));
        }
        if let Some(board) = board {
            board.settle(&path);
        }
        self.settle(after, (place.position)());
        Ok(response)
    }

    fn settle(&mut self, after: BlobState, settled_at: u64) {
        if let Some(last) = self.history.as_mut().and_then(|history| history.last_mut()) {
            *last = BlobEntry { sent_at: last.sent_at, settled_at, after: after.clone() };
        }
        self.blocks.extend(self.open_block.take());
        let is_known = |(blob, id): &(String, String)| {
            after.blobs.get(blob).is_some_and(|stored| {
                stored.staged.contains_key(id) || stored.committed.iter().any(|(other, _)| other == id)
            })
        };
        self.blocks.retain(|key, _| is_known(key));
        self.open = None;
        self.known = after;
    }

    /// Compares what is there after a restart, and settles the open operation.
    pub fn compare(&mut self, place: &mut Workplace<'_>) -> Result<(), String> {
        let found = BlobState::read(&mut place.door, &self.container())?;
        let is_applied = match &self.open {
            _ if found == self.known => false,
            Some(open) if found == *open => true,
            open => {
                let mut text = format!("{}: {}", self.container(), self.known.difference(&found));
                if let Some(open) = open {
                    text += &format!("\nwith the open operation applied: {}", open.difference(&found));
                }
                return Err(text);
            }
        };
        if self.open.is_some() {
            match is_applied {
                true => self.counts.open_applied += 1,
                false => {
                    self.open_block = None;
                    self.counts.open_absent += 1;
                }
            }
        }
        if let Some(board) = place.board {
            for (blob, stored) in &found.blobs {
                board.begin(&self.path(blob), stored.body.clone());
                board.settle(&self.path(blob));
            }
        }
        if self.open.is_some() || self.history.is_none() {
            self.settle(found, (place.position)());
        }
        Ok(())
    }
}

pub fn container(number: usize) -> String {
    format!("writer-{number}")
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

impl BlobCounts {
    pub fn add(&mut self, other: &BlobCounts) {
        self.puts += other.puts;
        self.blocks += other.blocks;
        self.lists += other.lists;
        self.appends += other.appends;
        self.pages += other.pages;
        self.snapshots += other.snapshots;
        self.copies += other.copies;
        self.deletes += other.deletes;
        self.reads += other.reads;
        self.written_bytes += other.written_bytes;
        self.open_applied += other.open_applied;
        self.open_absent += other.open_absent;
    }
}
