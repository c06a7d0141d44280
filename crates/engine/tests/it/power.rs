//! The power fails at any moment: what was acknowledged is there, and nothing is there by half.
//!
//! The work runs once on a recorded disk. Then, for moments all along the record, a disk is rebuilt as a power
//! cut may leave it: everything up to the last sync, and of what came after it any part, torn between sectors too.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use engine::env::FakeClock;
use engine::local::LocalEngine;
use engine::{Commit, Effect, Engine, Expect, Op, TableId};
use redb::StorageBackend;

use crate::support::*;

const SECTOR_SIZE_BYTES: usize = 512;
const COMMIT_COUNT: usize = 40;

#[derive(Clone, Debug)]
enum Event {
    SetLen(u64),
    Write(u64, Vec<u8>),
    Sync,
    /// This commit was acknowledged.
    Acknowledged(usize),
}

/// A disk in memory that writes down what is done to it.
#[derive(Clone, Default, Debug)]
struct Recorder(Arc<Mutex<Record>>);

#[derive(Default, Debug)]
struct Record {
    image: Vec<u8>,
    events: Vec<Event>,
}

impl Recorder {
    fn with_image(image: Vec<u8>) -> Recorder {
        Recorder(Arc::new(Mutex::new(Record { image, events: Vec::new() })))
    }

    fn note(&self, event: Event) {
        let mut record = self.0.lock().unwrap();
        apply(&mut record.image, &event);
        record.events.push(event);
    }

    fn image(&self) -> Vec<u8> {
        self.0.lock().unwrap().image.clone()
    }
}

fn apply(image: &mut Vec<u8>, event: &Event) {
    match event {
        Event::SetLen(length) => image.resize(*length as usize, 0),
        Event::Write(offset, bytes) => {
            let end = *offset as usize + bytes.len();
            if image.len() < end {
                image.resize(end, 0);
            }
            image[*offset as usize..end].copy_from_slice(bytes);
        }
        Event::Sync | Event::Acknowledged(_) => {}
    }
}

impl StorageBackend for Recorder {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let record = self.0.lock().unwrap();
        let start = offset as usize;
        let bytes = record.image.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note(Event::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.note(Event::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.note(Event::Write(offset, data.to_vec()));
        Ok(())
    }
}

/// The disk after the power failed just before event `moment`.
fn cut(base: &[u8], events: &[Event], moment: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    let synced = events[..moment].iter().rposition(|event| matches!(event, Event::Sync)).unwrap_or(0);
    let mut image = base.to_vec();
    events[..synced].iter().for_each(|event| apply(&mut image, event));
    // How much of the unsynced work got out differs from cut to cut, from nothing to everything.
    let chance = [0, 20, 50, 80, 100][random.usize(0..5)];
    for event in &events[synced..moment] {
        if random.u32(0..100) >= chance {
            continue;
        }
        match event {
            Event::Write(offset, bytes) if bytes.len() > SECTOR_SIZE_BYTES && random.u8(0..4) == 0 => {
                let sectors = bytes.len() / SECTOR_SIZE_BYTES;
                let torn = bytes[..random.usize(0..sectors) * SECTOR_SIZE_BYTES].to_vec();
                apply(&mut image, &Event::Write(*offset, torn));
            }
            event => apply(&mut image, event),
        }
    }
    image
}

/// Commit `n` moves a pair of rows to `n`, leaves a row of its own, and sometimes removes or makes a big one.
fn step(table: TableId, n: usize) -> Commit {
    let op = |row: &str, effect| Op { row: row.into(), expect: Expect::Any, effect };
    let text = n.to_string();
    let mut ops = vec![
        op("first", Effect::Put(text.clone().into())),
        op("second", Effect::Put(text.into())),
        op(&format!("own {n:03}"), Effect::Put("v".into())),
    ];
    match n % 5 {
        1 => ops.push(op("big", Effect::Put(Bytes::from(vec![n as u8; 20_000])))),
        3 => ops.push(op("big", Effect::Delete)),
        _ => {}
    }
    Commit { table, partition: "p".into(), ops }
}

/// The store must be as after commit `acknowledged`, or as after the one that was under way.
async fn check(engine: &LocalEngine, table: TableId, acknowledged: usize, context: &str) {
    let rows = all(engine, table).await.unwrap();
    let find = |name: &str| rows.iter().find(|row| row.1 == name);
    let number = |name: &str| -> usize {
        find(name).map_or(0, |row| String::from_utf8(row.3.clone()).unwrap().parse().unwrap())
    };
    let reached = number("first");
    assert_eq!(number("second"), reached, "{context}: half a commit");
    assert!(reached == acknowledged || reached == acknowledged + 1, "{context}: {reached} of {acknowledged}");
    let own = rows.iter().filter(|row| row.1.starts_with("own ")).count();
    assert_eq!(own, reached, "{context}");
    // Commit n with n % 5 of 1 or 2 leaves the big row of the last 1.
    let big = (reached % 5 == 1 || reached % 5 == 2).then(|| vec![(reached / 5 * 5 + 1) as u8; 20_000]);
    assert_eq!(find("big").map(|row| row.3.clone()), big, "{context}");

    let last = find("first").map_or(0, |row| row.2);
    let version = commit(engine, put(table, "p", "after", "v")).await.unwrap();
    assert!(version.ticks() > last, "{context}");
    assert_eq!(value(engine, table, "after").await.as_deref(), Some("v"), "{context}");
}

async fn run(cut_count: usize, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::default());
    let on = |disk: &Recorder| {
        LocalEngine::open_with_backend(directory.path(), options(&clock), |_| disk.clone()).unwrap()
    };
    // Creates the directory's files; what the real file holds does not matter from here on.
    drop(open(directory.path()));
    let base = std::fs::read(directory.path().join("tables.redb")).unwrap();
    let disk = Recorder::with_image(base);
    let engine = on(&disk);
    let table = table(&engine, "t").await;
    drop(engine);

    let base = disk.image();
    let disk = Recorder::with_image(base.clone());
    let engine = on(&disk);
    for n in 1..=COMMIT_COUNT {
        if n % 8 == 0 {
            // A table that comes and goes, with rows to sweep, so that sweeps lie between the commits too.
            let name = format!("other {n}");
            let other = crate::support::table(&engine, &name).await;
            commit(&engine, put(other, "p", "r", "v")).await.unwrap();
            engine.drop_table("n", &name).await.unwrap();
        }
        commit(&engine, step(table, n)).await.unwrap();
        disk.note(Event::Acknowledged(n));
    }
    // Not closed: the power fails.
    let events = disk.0.lock().unwrap().events.clone();
    drop(engine);

    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..cut_count {
        let moment = random.usize(0..=events.len());
        let image = cut(&base, &events, moment, &mut random);
        let acknowledged = events[..moment].iter().rev().find_map(|event| match event {
            Event::Acknowledged(n) => Some(*n),
            _ => None,
        });
        let context = format!("seed {seed}, cut at event {moment} of {}", events.len());
        let engine = on(&Recorder::with_image(image));
        check(&engine, table, acknowledged.unwrap_or(0), &context).await;
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut_at_any_moment() {
    run(150, 1).await;
}

#[tokio::test]
#[ignore = "the same ten thousand times: run it with --release"]
async fn what_was_acknowledged_survives_many_power_cuts() {
    for seed in 2..12 {
        run(1_000, seed).await;
    }
}
