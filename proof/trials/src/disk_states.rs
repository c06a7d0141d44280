//! Models a disk from recorded operations: what syncs have made durable, what is still pending, and the states in which
//! a power cut may leave it.
//!
//! A file's bytes and length are durable once a sync of that file that began after they were written has ended; a name
//! in a directory, once a sync of that directory has. A pending change may be present, missing or (bytes) torn,
//! independently of the others, so also in another order than it was made. Real file systems promise more, so a store
//! that survives here survives there.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use fastrand::Rng;

use crate::Error;
use crate::disk_log::Operation;

/// The units in which disks and file systems write.
const SECTOR_SIZES_BYTES: [u64; 2] = [512, 4096];
const SPARSE_PIECE_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
enum FileChange {
    Write { offset: u64, bytes: Vec<u8> },
    SetLength(u64),
    Punch { offset: u64, length: u64 },
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, usize),
    Remove(String),
    /// Atomic, as in the operating system.
    Move(String, String, usize),
}

/// Changes in order. The first `done` changes are already durable and no longer listed.
#[derive(Clone, Debug)]
struct Pending<T> {
    done: usize,
    changes: Vec<T>,
}

#[derive(Clone, Debug)]
enum Node {
    File { durable: Vec<u8>, pending: Pending<FileChange> },
    Directory { durable: BTreeMap<String, usize>, pending: Pending<NameChange> },
}

/// Which pending changes a power cut loses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    Nothing,
    Everything,
    /// Each file and each directory loses everything or nothing.
    WholeFiles,
    /// Each file keeps its changes up to some moment and loses the later ones; the change of that moment may be torn.
    Tail,
    /// Each change is kept with this chance in percent, and some of those kept are torn.
    Each(u32),
}

impl Loss {
    pub const NAMES: [&str; 5] = [
        "nothing lost",
        "everything unsynced lost",
        "whole files lost",
        "the tail lost, perhaps torn",
        "each change lost, kept or torn",
    ];

    pub fn index(self) -> usize {
        match self {
            Loss::Nothing => 0,
            Loss::Everything => 1,
            Loss::WholeFiles => 2,
            Loss::Tail => 3,
            Loss::Each(_) => 4,
        }
    }

    pub fn random(random: &mut Rng) -> Loss {
        match random.u32(0..16) {
            0 => Loss::Nothing,
            1..3 => Loss::Everything,
            3 => Loss::WholeFiles,
            4..7 => Loss::Tail,
            _ => Loss::Each([5, 20, 50, 80, 95][random.usize(0..5)]),
        }
    }
}

/// The directories and files of one state, by path relative to the root.
#[derive(Default, Clone, PartialEq, Eq)]
pub struct Image {
    pub directories: Vec<String>,
    pub files: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone)]
pub struct Disk {
    root: String,
    nodes: Vec<Node>,
    by_inode: BTreeMap<u64, usize>,
    /// The names as the operating system sees them.
    names: BTreeMap<String, usize>,
    /// Syncs in progress: their node, and how many of its changes they cover.
    syncs: BTreeMap<u64, (usize, usize)>,
}

const ROOT: usize = 0;

impl Disk {
    /// An empty root directory, which is itself durable.
    pub fn new(root: &str, inode: u64) -> Disk {
        Disk {
            root: root.to_owned(),
            nodes: vec![Node::directory()],
            by_inode: BTreeMap::from([(inode, ROOT)]),
            names: BTreeMap::from([(root.to_owned(), ROOT)]),
            syncs: BTreeMap::new(),
        }
    }

    pub fn apply(&mut self, operation: &Operation) -> Result<(), Error> {
        match operation {
            Operation::Create { inode, path } => self.create(*inode, path, Node::file()),
            Operation::MakeDirectory { inode, path } => self.create(*inode, path, Node::directory()),
            Operation::Write { inode, offset, bytes } => {
                self.change_file(*inode, FileChange::Write { offset: *offset, bytes: bytes.clone() })
            }
            Operation::SetLength { inode, length } => {
                self.change_file(*inode, FileChange::SetLength(*length))
            }
            Operation::Punch { inode, offset, length } => {
                self.change_file(*inode, FileChange::Punch { offset: *offset, length: *length })
            }
            Operation::Rename { from, to } => {
                let node = self.names.remove(from).ok_or_else(|| format!("{from} was not there"))?;
                self.names.insert(to.clone(), node);
                let ((directory, from), (other, to)) = (self.place(from)?, self.place(to)?);
                if directory == other {
                    return self.change_names(directory, NameChange::Move(from, to, node));
                }
                // Each directory is made durable by its own sync, so the file may have both names or none.
                self.change_names(directory, NameChange::Remove(from))?;
                self.change_names(other, NameChange::Set(to, node))
            }
            Operation::Link { from, to } => {
                let node = *self.names.get(from).ok_or_else(|| format!("{from} was not there"))?;
                self.names.insert(to.clone(), node);
                let (directory, name) = self.place(to)?;
                self.change_names(directory, NameChange::Set(name, node))
            }
            Operation::Unlink { path } => {
                self.names.remove(path);
                let (directory, name) = self.place(path)?;
                self.change_names(directory, NameChange::Remove(name))
            }
            Operation::SyncBegin { inode, token } => {
                let node = self.node(*inode)?;
                let covered = match &self.nodes[node] {
                    Node::File { pending, .. } => pending.done + pending.changes.len(),
                    Node::Directory { pending, .. } => pending.done + pending.changes.len(),
                };
                self.syncs.insert(*token, (node, covered));
                Ok(())
            }
            Operation::SyncEnd { token } => {
                let (node, covered) = self.syncs.remove(token).ok_or("a sync ended that never began")?;
                self.nodes[node].make_durable(covered);
                Ok(())
            }
        }
    }

    fn create(&mut self, inode: u64, path: &str, node: Node) -> Result<(), Error> {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.by_inode.insert(inode, number);
        self.names.insert(path.to_owned(), number);
        let (directory, name) = self.place(path)?;
        self.change_names(directory, NameChange::Set(name, number))
    }

    fn node(&self, inode: u64) -> Result<usize, Error> {
        self.by_inode.get(&inode).copied().ok_or_else(|| format!("inode {inode} was never created").into())
    }

    /// The directory that contains a path, and the path's name in it.
    fn place(&self, path: &str) -> Result<(usize, String), Error> {
        let (directory, name) = path.rsplit_once('/').ok_or("a path without directory")?;
        let directory = self.names.get(directory).ok_or_else(|| format!("{directory} was never created"))?;
        Ok((*directory, name.to_owned()))
    }

    fn change_file(&mut self, inode: u64, change: FileChange) -> Result<(), Error> {
        let node = self.node(inode)?;
        match &mut self.nodes[node] {
            Node::File { pending, .. } => pending.changes.push(change),
            Node::Directory { .. } => return Err("a directory was written to".into()),
        }
        Ok(())
    }

    fn change_names(&mut self, directory: usize, change: NameChange) -> Result<(), Error> {
        match &mut self.nodes[directory] {
            Node::Directory { pending, .. } => pending.changes.push(change),
            Node::File { .. } => return Err("a file was used as a directory".into()),
        }
        Ok(())
    }

    /// The number of pending changes.
    pub fn pending_count(&self) -> usize {
        let count = |node: &Node| match node {
            Node::File { pending, .. } => pending.changes.len(),
            Node::Directory { pending, .. } => pending.changes.len(),
        };
        self.nodes.iter().map(count).sum()
    }

    /// What a power cut at this moment leaves.
    pub fn cut(&self, loss: Loss, random: &mut Rng) -> Image {
        let mut image = Image::default();
        self.collect(ROOT, "", loss, random, &mut image);
        image
    }

    fn collect(&self, node: usize, path: &str, loss: Loss, random: &mut Rng, image: &mut Image) {
        match &self.nodes[node] {
            Node::File { durable, pending } => {
                image.files.insert(path.to_owned(), content(durable, &pending.changes, loss, random));
            }
            Node::Directory { durable, pending } => {
                if node != ROOT {
                    image.directories.push(path.to_owned());
                }
                for (name, child) in entries(durable, &pending.changes, loss, random) {
                    let below = if node == ROOT { name } else { format!("{path}/{name}") };
                    self.collect(child, &below, loss, random, image);
                }
            }
        }
    }

    /// A killed process may have made a last change, or half of one, without logging it. The real directory is the
    /// truth: the difference is added as changes that were never synced.
    pub fn correct(&mut self, real: &Image, inodes: &BTreeMap<String, u64>) -> Result<Vec<Operation>, Error> {
        let mut operations = Vec::new();
        let modelled = self.cut(Loss::Nothing, &mut Rng::with_seed(0));
        let absolute = |path: &str| format!("{}/{path}", self.root);
        let inode = |path: &str| inodes.get(path).copied().ok_or_else(|| format!("{path} has no inode"));
        for path in real.directories.iter().filter(|path| !modelled.directories.contains(path)) {
            operations.push(Operation::MakeDirectory { inode: inode(path)?, path: absolute(path) });
        }
        for (path, bytes) in &real.files {
            let before = modelled.files.get(path);
            let inode = inode(path)?;
            if before.is_none() {
                operations.push(Operation::Create { inode, path: absolute(path) });
            }
            if before != Some(bytes) {
                operations.push(Operation::SetLength { inode, length: bytes.len() as u64 });
                operations.push(Operation::Write { inode, offset: 0, bytes: bytes.clone() });
            }
        }
        for path in modelled.files.keys().filter(|path| !real.files.contains_key(*path)) {
            operations.push(Operation::Unlink { path: absolute(path) });
        }
        for operation in &operations {
            self.apply(operation)?;
        }
        Ok(operations)
    }
}

impl Node {
    fn file() -> Node {
        Node::File { durable: Vec::new(), pending: Pending { done: 0, changes: Vec::new() } }
    }

    fn directory() -> Node {
        Node::Directory { durable: BTreeMap::new(), pending: Pending { done: 0, changes: Vec::new() } }
    }

    fn make_durable(&mut self, covered: usize) {
        match self {
            Node::File { durable, pending } => {
                for change in pending.take(covered) {
                    write(durable, &change);
                }
            }
            Node::Directory { durable, pending } => {
                for change in pending.take(covered) {
                    name(durable, change);
                }
            }
        }
    }
}

impl<T> Pending<T> {
    /// Removes and returns the changes up to this number, counted from the very first.
    fn take(&mut self, covered: usize) -> Vec<T> {
        let count = covered.saturating_sub(self.done);
        self.done += count;
        self.changes.drain(..count).collect()
    }
}

fn write(content: &mut Vec<u8>, change: &FileChange) {
    match change {
        FileChange::Write { offset, bytes } => {
            let (start, end) = (*offset as usize, *offset as usize + bytes.len());
            if content.len() < end {
                content.resize(end, 0);
            }
            content[start..end].copy_from_slice(bytes);
        }
        FileChange::SetLength(length) => content.resize(*length as usize, 0),
        FileChange::Punch { offset, length } => {
            let end = (*offset as usize).saturating_add(*length as usize).min(content.len());
            if let Some(hole) = content.get_mut(*offset as usize..end) {
                hole.fill(0);
            }
        }
    }
}

fn name(entries: &mut BTreeMap<String, usize>, change: NameChange) {
    match change {
        NameChange::Set(name, node) => {
            entries.insert(name, node);
        }
        NameChange::Remove(name) => {
            entries.remove(&name);
        }
        NameChange::Move(from, to, node) => {
            entries.remove(&from);
            entries.insert(to, node);
        }
    }
}

/// What happens to a pending change: it is kept, torn or lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Torn,
    Lost,
}

fn fates(count: usize, loss: Loss, random: &mut Rng) -> Vec<Fate> {
    match loss {
        Loss::Nothing => vec![Fate::Kept; count],
        Loss::Everything => vec![Fate::Lost; count],
        Loss::WholeFiles => vec![if random.bool() { Fate::Kept } else { Fate::Lost }; count],
        Loss::Tail => {
            let last = random.usize(0..=count);
            let fate = |at: usize| match at.cmp(&last) {
                std::cmp::Ordering::Less => Fate::Kept,
                std::cmp::Ordering::Equal => Fate::Torn,
                std::cmp::Ordering::Greater => Fate::Lost,
            };
            (0..count).map(fate).collect()
        }
        Loss::Each(chance) => (0..count)
            .map(|_| match random.u32(0..100) {
                at if at >= chance => Fate::Lost,
                _ if random.u32(0..4) == 0 => Fate::Torn,
                _ => Fate::Kept,
            })
            .collect(),
    }
}

fn content(durable: &[u8], pending: &[FileChange], loss: Loss, random: &mut Rng) -> Vec<u8> {
    let mut content = durable.to_vec();
    for (change, fate) in pending.iter().zip(fates(pending.len(), loss, random)) {
        match (change, fate) {
            (_, Fate::Lost) => {}
            (FileChange::Write { offset, bytes }, Fate::Torn) => {
                for (offset, bytes) in torn(*offset, bytes, random) {
                    write(&mut content, &FileChange::Write { offset, bytes: bytes.to_vec() });
                }
            }
            (FileChange::Punch { offset, length }, Fate::Torn) => {
                for (offset, bytes) in torn(*offset, &vec![0; *length as usize], random) {
                    let length = bytes.len() as u64;
                    write(&mut content, &FileChange::Punch { offset, length });
                }
            }
            (change, _) => write(&mut content, change),
        }
    }
    // The length is stored apart from the bytes, so it may be the old one although the bytes arrived.
    if matches!(loss, Loss::Each(_)) && random.u32(0..8) == 0 {
        content.truncate(durable.len());
        content.extend_from_slice(&durable[content.len()..]);
    }
    content
}

/// The parts of a torn write that arrived, cut at sector boundaries of the file.
fn torn<'a>(offset: u64, bytes: &'a [u8], random: &mut Rng) -> Vec<(u64, &'a [u8])> {
    let sector = SECTOR_SIZES_BYTES[random.usize(0..SECTOR_SIZES_BYTES.len())];
    let mut pieces = Vec::new();
    let mut rest = bytes;
    let mut at = offset;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min((sector - at % sector) as usize));
        pieces.push((at, piece));
        at += piece.len() as u64;
        rest = after;
    }
    let middle = random.usize(0..=pieces.len());
    match random.u32(0..3) {
        0 => pieces.truncate(middle),
        1 => drop(pieces.drain(..middle)),
        _ => pieces.retain(|_| random.bool()),
    }
    pieces
}

fn entries(
    durable: &BTreeMap<String, usize>,
    pending: &[NameChange],
    loss: Loss,
    random: &mut Rng,
) -> BTreeMap<String, usize> {
    let mut entries = durable.clone();
    for (change, fate) in pending.iter().zip(fates(pending.len(), loss, random)) {
        if fate != Fate::Lost {
            name(&mut entries, change.clone());
        }
    }
    entries
}

impl Image {
    /// Reads a real directory: its image, and the inode numbers in it.
    pub fn read(root: &Path) -> Result<(Image, BTreeMap<String, u64>), Error> {
        let mut image = Image::default();
        let mut inodes = BTreeMap::new();
        let mut waiting = vec![String::new()];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(root.join(&directory))? {
                let entry = entry?;
                let kind = entry.file_type()?;
                // A socket holds nothing, and the recorder does not see it.
                if !kind.is_dir() && !kind.is_file() {
                    continue;
                }
                let name = entry.file_name().into_string().map_err(|_| "a name that is not UTF-8")?;
                let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                inodes.insert(path.clone(), inode(&entry.metadata()?));
                if kind.is_dir() {
                    image.directories.push(path.clone());
                    waiting.push(path);
                } else {
                    image.files.insert(path, std::fs::read(entry.path())?);
                }
            }
        }
        Ok((image, inodes))
    }

    pub fn write(&self, root: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(root)?;
        for directory in &self.directories {
            std::fs::create_dir_all(root.join(directory))?;
        }
        for (path, bytes) in &self.files {
            write_sparse(&root.join(path), bytes)?;
        }
        Ok(())
    }
}

/// Leaves out what is zero: extents are mostly room that nothing was written to yet.
fn write_sparse(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = std::fs::File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for (at, piece) in bytes.chunks(SPARSE_PIECE_BYTES).enumerate() {
        if piece.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start((at * SPARSE_PIECE_BYTES) as u64))?;
            file.write_all(piece)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
pub fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// There are no recordings on other systems.
#[cfg(not(unix))]
pub fn inode(_metadata: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(operations: &[Operation]) -> Disk {
        let mut disk = Disk::new("/d", 1);
        operations.iter().for_each(|operation| disk.apply(operation).unwrap());
        disk
    }

    fn create() -> Operation {
        Operation::Create { inode: 2, path: "/d/f".to_owned() }
    }

    fn bytes(offset: u64, bytes: &[u8]) -> Operation {
        Operation::Write { inode: 2, offset, bytes: bytes.to_vec() }
    }

    fn sync(inode: u64) -> [Operation; 2] {
        [Operation::SyncBegin { inode, token: inode }, Operation::SyncEnd { token: inode }]
    }

    fn left(disk: &Disk, loss: Loss) -> Option<Vec<u8>> {
        disk.cut(loss, &mut Rng::with_seed(1)).files.remove("f")
    }

    #[test]
    fn what_is_not_synced_may_be_lost_and_what_is_may_not() {
        let [file_begin, file_end] = sync(2);
        let [names_begin, names_end] = sync(1);
        let disk =
            disk(&[create(), bytes(0, b"ab"), file_begin, bytes(2, b"c"), file_end, names_begin, names_end]);
        assert_eq!(left(&disk, Loss::Nothing).as_deref(), Some(&b"abc"[..]));
        assert_eq!(left(&disk, Loss::Everything).as_deref(), Some(&b"ab"[..]), "the sync began before the c");
    }

    #[test]
    fn a_synced_file_whose_directory_was_not_synced_may_have_no_name() {
        let [begin, end] = sync(2);
        let disk = disk(&[create(), bytes(0, b"ab"), begin, end]);
        assert_eq!(left(&disk, Loss::Everything), None);
    }

    #[test]
    fn a_sync_that_has_not_ended_promises_nothing() {
        let [begin, end] = sync(1);
        let disk = disk(&[create(), begin, end, bytes(0, b"ab"), sync(2)[0].clone()]);
        assert_eq!(left(&disk, Loss::Everything).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn a_hole_that_is_not_synced_may_have_its_old_bytes_and_never_moves_the_end() {
        let [file_begin, file_end] = sync(2);
        let [names_begin, names_end] = sync(1);
        let hole = Operation::Punch { inode: 2, offset: 1, length: 5 };
        let disk = disk(&[create(), bytes(0, b"abc"), file_begin, file_end, names_begin, names_end, hole]);
        assert_eq!(left(&disk, Loss::Nothing).as_deref(), Some(&b"a\0\0"[..]));
        assert_eq!(left(&disk, Loss::Everything).as_deref(), Some(&b"abc"[..]));
    }

    #[test]
    fn a_rename_is_there_or_not_and_never_loses_the_file() {
        let [begin, end] = sync(1);
        let rename = Operation::Rename { from: "/d/f".to_owned(), to: "/d/g".to_owned() };
        let disk = disk(&[create(), begin, end, rename]);
        for (loss, name) in [(Loss::Nothing, "g"), (Loss::Everything, "f")] {
            let image = disk.cut(loss, &mut Rng::with_seed(1));
            assert_eq!(image.files.keys().collect::<Vec<_>>(), [name]);
        }
    }

    #[test]
    fn a_torn_write_is_cut_where_sectors_begin() {
        let mut random = Rng::with_seed(7);
        let whole = vec![7; 10_000];
        for _ in 0..200 {
            for (offset, piece) in torn(300, &whole, &mut random) {
                assert!(offset == 300 || offset.is_multiple_of(512), "{offset}");
                let end = offset + piece.len() as u64;
                assert!(end == 10_300 || end.is_multiple_of(512), "{end}");
            }
        }
    }
}
