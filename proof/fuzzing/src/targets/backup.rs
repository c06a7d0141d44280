//! Backup files: the input as it is, and the input framed as blocks with correct checksums, so that mutations reach the
//! blocks' contents. A backup that can be loaded must, saved again, give a backup with the same contents.

use std::sync::Arc;

use backup::{BackupError, BackupReader, LoadSelection, SaveOptions, framed, load, save};
use contents::{ContentStore, MemoryContents};
use engine::env::FakeClock;
use engine::memory::MemoryEngine;
use protocol::common::service_properties::ServiceProperties;

use crate::{Golden, Outcome, Target};

pub const TARGET: Target = Target {
    name: "backup",
    run,
    input_bytes_max: 64 * 1024,
    tokens: &[
        b"lazulite backup, format 3\n",
        b"\x01\x2a\x00",
        b"\x02",
        b"\x03",
        b"\x04",
        b"\x05\x50\x00",
        b"\x06",
        b"\x07",
        b"\x08",
        b"\x09",
        b"\x0a",
        b"\x0b",
        b"\x0c",
        b"\x04\x00\x00\x00jobs",
        b"\x00\x00\x00\x00",
        b"\xFF\xFF\xFF\xFF",
        b"\x05\x00\x00\x00alice",
        b"\x03\x00\x00\x00tab",
        b"\x01\x00\x00\x00p",
        b"\x01\x2a\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
    ],
    seeds,
};

/// Limits blocks so that a longer input has more blocks, not longer ones. Their times can then be compared.
const BLOCK_BYTES_MAX: u16 = 1024;
/// More than any input can name.
const CONTENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads an input that is not a file as blocks: kind, length of the content (two bytes, little-endian), content.
fn blocks(mut input: &[u8]) -> Vec<(u8, &[u8])> {
    let mut blocks = Vec::new();
    while let Some(([kind, low, high], rest)) = input.split_first_chunk::<3>() {
        let length = u16::from_le_bytes([*low, *high]) % BLOCK_BYTES_MAX;
        let (content, rest) = rest.split_at(rest.len().min(usize::from(length)));
        blocks.push((*kind, content));
        input = rest;
    }
    blocks
}

fn block(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&[kind, length[0], length[1]], content].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes(), text.as_bytes()].concat()
}

fn seeds(_: &Golden) -> Vec<Vec<u8>> {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let head = block(1, &[number(7), number(9), number(2), text("0.1.0")].concat());
    let properties = String::from_utf8(ServiceProperties::default().to_stored()).expect("a document is text");
    let properties = block(2, &[text("alice"), text(&properties)].concat());
    let table = |name: &str| block(3, &[text("alice"), text(name), vec![0]].concat());
    let with_policies =
        block(3, &[text("bob"), text("Other"), vec![1], text("<SignedIdentifiers/>")].concat());
    let record = "\u{1}\u{38}\0\0\0\u{1}\u{1}n\u{2}\u{5}\0\0\0";
    let row = |row: &str| [number(8), text("p"), text(row), text(record)].concat();
    let rows = block(4, &[row("a"), row("b"), row("é")].concat());
    let end = |counts: [u64; 5]| {
        block(5, &[counts, [0; 5]].concat().into_iter().flat_map(number).collect::<Vec<_>>())
    };
    let whole =
        [&head[..], &properties, &table("Tab"), &rows, &with_policies, &end([1, 2, 3, 0, 0])].concat();
    let small = [&head[..], &table("tab"), &end([0, 1, 0, 0, 0])].concat();
    let no_policies = [vec![0], 1u32.to_le_bytes().to_vec()].concat();
    let queue = block(7, &[text("alice"), text("jobs"), no_policies, text("color"), text("red")].concat());
    let message = |visible: u64, id: u128, content: &str| {
        let times = [number(5), number(50)].concat();
        let place = [number(visible), id.to_be_bytes().to_vec()].concat();
        [number(8), place, times, 1u32.to_le_bytes().to_vec(), text(content)].concat()
    };
    let messages = block(8, &[message(6, 1, "a"), message(6, 2, "é"), message(7, 3, "")].concat());
    let queues = [&head[..], &table("tab"), &queue, &messages, &end([0, 1, 0, 1, 3])].concat();
    // A container without metadata or a lease, a content, and a page of it.
    let record = [vec![1], number(7), vec![0; 6]].concat();
    let record = String::from_utf8(record).expect("small numbers are text");
    let container = block(10, &[text("alice"), text("pictures"), vec![0], text(&record)].concat());
    let piece = block(11, &[number(0), vec![3], vec![7; 512]].concat());
    let reference = [(512u64 << 8 | 1).to_le_bytes(), [0; 8], [0; 8]].concat();
    let page = [&[3, 1, 0, 0x80, 4, 1][..], &reference, &number(0)].concat();
    let mut row = [number(8), text("disk"), text("V000000000000000000000001")].concat();
    row.extend(u32::try_from(page.len()).unwrap_or(u32::MAX).to_le_bytes());
    row.extend(page);
    let counts = [0, 0, 0, 0, 0, 1, 1, 0, 1, 512].into_iter().flat_map(number).collect::<Vec<_>>();
    let containers = [&head[..], &container, &piece, &block(12, &row), &block(5, &counts)].concat();
    let file = framed(blocks(&whole));
    vec![whole, small, queues, containers, [head, end([0; 5])].concat(), file]
}

pub fn run(input: &[u8]) -> Outcome {
    let file = if input.starts_with(b"lazulite") { input.to_vec() } else { framed(blocks(input)) };
    if let Err(error) = BackupReader::open(&file[..]).and_then(BackupReader::verify) {
        return refused(&error);
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return Outcome::Refused("no runtime");
    };
    runtime.block_on(async {
        let (first, loaded) = match again(&file).await {
            Ok(both) => both,
            Err(error) => return refused(&error),
        };
        let (second, _) = again(&first).await.expect("what was saved can be loaded");
        // The catalogue's own versions are new each time, so the heads differ in their last version.
        let (first, second) = (blocks_of(&first), blocks_of(&second));
        assert_eq!(first, second);
        Outcome::Accepted(if loaded > 0 { "rows" } else { "no rows" })
    })
}

/// Loads the file into an empty engine and saves that engine. Returns the new file and the number of rows.
async fn again(file: &[u8]) -> Result<(Vec<u8>, u64), BackupError> {
    let clock = Arc::new(FakeClock::default());
    let families =
        tables::FAMILIES.with(queues::FAMILY, queues::VALUE_RULES).with(blobs::FAMILY, blobs::VALUE_RULES);
    let contents: Arc<dyn ContentStore> = Arc::new(MemoryContents::new(CONTENT_BYTES_MAX, Arc::new(|| 0)));
    let engine = MemoryEngine::new(families, clock.clone());
    let backup = BackupReader::open(file)?;
    let loaded = load(&engine, Some(&contents), backup, &LoadSelection::All, &mut |_, _| {}).await?;
    let mut saved = Vec::new();
    save(&engine, Some(&contents), &*clock, SaveOptions { rate_bytes_max: 0 }, &mut saved).await?;
    let counts = loaded.counts;
    Ok((saved, counts.row_count + counts.message_count + counts.blob_row_count))
}

/// The contents of a file without its head.
fn blocks_of(file: &[u8]) -> Vec<String> {
    let mut reader = BackupReader::open(file).expect("a saved file opens");
    let mut blocks = Vec::new();
    while let Some(content) = reader.next_content().expect("a saved file reads") {
        blocks.push(format!("{content:?}"));
    }
    blocks
}

fn refused(error: &BackupError) -> Outcome {
    Outcome::Refused(match error {
        BackupError::Foreign => "foreign",
        BackupError::NewerFormat(_) => "newer format",
        BackupError::Damaged { cause, .. } => cause,
        BackupError::Forbidden(_) => "forbidden",
        BackupError::Refused(_) => "refused",
        BackupError::Io(_) | BackupError::Engine(_) => "trouble",
    })
}
