//! `damage`: loses or flips bytes at rest, in every file of the store. The real binary opens each damaged store, and
//! everything is read: a row is right, or the request gets an error, or the server refuses to start and names the file.
//! Promises: never a wrong row, never an incomplete listing that looks complete, never a panic, a hang or a crash.
//!
//! The connections that make a store take turns, so that the same seed makes the same pages and a state can be repeated
//! by its number.

mod blobs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fastrand::Rng;
use lexopt::Parser;
use testkit::{Request, Stopwatch, TempDir, entity_json, entity_path};

use self::blobs::KnownBlobs;
use crate::Error;
use crate::contents::{self, Contents, ReadFailure};
use crate::disk_states::Image;
use crate::ledger::{Key, MAIN_TABLE, PROBE_PARTITION, Row, settle};
use crate::load::{Common, LoadShape, Tally, Writer};
use crate::options::{self, Value};
use crate::power::place;
use crate::summary;
use crate::victim::{Launch, Victim, panicked};

const HELP: &str = "\
bytes lost or flipped at rest: found, reported, never served

  --server PATH      The server's binary
  --states N         How many damaged stores to try [default: 1000]
  --seed S           Seed of the contents and the damage [default: a new one]
  --state N          Only this state";

const STATE_COUNT: usize = 1_000;
const STATES_PER_REPORT: usize = 250;
const WRITER_COUNT: usize = 4;
const STEP_COUNT: usize = 120;
const SHAPE: LoadShape = LoadShape { row_count_max: 250, text_length_usual: 60, text_length_max: 6_000 };
/// A long run of zeros is up to this many pieces of this size.
const ZEROED_STEP_BYTES: usize = 4096;
const ZEROED_STEP_COUNT_MAX: usize = 256;
/// When a table cannot be listed, at most this many of its rows are read one by one.
const POINT_READ_COUNT_MAX: usize = 60;
const EXAMPLES_PER_FINDING_MAX: usize = 3;
/// The exit code of `lazulite check`.
const CHECK_FOUND_DAMAGE: i32 = 2;
const TABLES_FILE: &str = "tables.redb";
/// Files with the contents of blobs begin so.
const EXTENTS: &str = "contents/extent-";

pub struct Settings {
    pub server: PathBuf,
    pub states: usize,
    pub seed: u64,
    pub only: Option<usize>,
    pub environment: Vec<(String, String)>,
}

/// The outcome of one damaged store. The first four are as promised; the others are broken promises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    Right,
    Refused,
    Errors,
    AccountsRefused,
    RefusedWithoutFile,
    RefusedWithPanic,
    Unnoticed,
    Panic,
    Hang,
    Died,
    WrongData,
    LostRows,
}

impl Class {
    const ALL: [(Class, &str); 12] = [
        (Class::Right, "everything is right: the damage hit unused bytes"),
        (Class::Refused, "the server refuses to start and names the file"),
        (Class::Errors, "some requests get an error, all others the right answer"),
        (Class::AccountsRefused, "the server refuses to start because of the accounts file, and names it"),
        (Class::RefusedWithoutFile, "FINDING: the server refuses to start and does not name the file"),
        (Class::RefusedWithPanic, "FINDING: the server refuses to start, and panics"),
        (Class::Unnoticed, "FINDING: requests meet damage in an extent that lazulite check does not find"),
        (Class::Panic, "FINDING: a panic while serving (requests that meet it get an error)"),
        (Class::Hang, "FINDING: the server neither serves nor exits, or a request is not answered"),
        (Class::Died, "FINDING: the server dies"),
        (Class::WrongData, "FINDING: wrong data is served"),
        (
            Class::LostRows,
            "FINDING: rows or tables are missing from a listing that looks complete, or get 404",
        ),
    ];

    fn is_finding(self) -> bool {
        self > Class::AccountsRefused
    }
}

#[derive(Default)]
pub struct Verdict {
    pub broken: Vec<String>,
    pub states: usize,
    pub classes: BTreeMap<Class, usize>,
    /// States that the server served wrongly: those whose damage `lazulite check` finds, and those it misses.
    pub found_by_check: usize,
    pub missed_by_check: usize,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let mut settings = Settings {
        server: PathBuf::new(),
        states: STATE_COUNT,
        seed: fastrand::u64(..),
        only: None,
        environment: Vec::new(),
    };
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("server", &mut settings.server),
        ("states", &mut settings.states),
        ("seed", &mut settings.seed),
        ("state", &mut settings.only),
    ];
    if !options::read(options, HELP, known)? {
        return Ok(true);
    }
    if settings.server.as_os_str().is_empty() {
        return Err("--server is missing: it names the binary to try".into());
    }
    println!("damage: {} states, seed {}", settings.states, settings.seed);
    let watch = Stopwatch::start();
    let verdict = states(&settings)?;
    summary::head("damage", &format!("{} states", verdict.states), watch.elapsed(), settings.seed);
    for (class, meaning) in Class::ALL {
        summary::line(verdict.classes.get(&class).copied().unwrap_or(0), meaning);
    }
    summary::line(verdict.found_by_check, "states of the last two kinds are found by lazulite check");
    summary::line(verdict.missed_by_check, "states of the last two kinds are not");
    for broken in &verdict.broken {
        println!("BROKEN: {}", broken.trim_end());
    }
    if !verdict.broken.is_empty() {
        println!("To repeat one: cargo xtask damage --seed {} --state N", settings.seed);
    }
    Ok(summary::verdict("damage", &verdict.broken))
}

pub fn states(settings: &Settings) -> Result<Verdict, Error> {
    let directory = TempDir::with_prefix_in("lazulite-damage-", place())?;
    let stores = [
        Store::make(settings, &directory.path().join("clean"), true)?,
        Store::make(settings, &directory.path().join("unclean"), false)?,
    ];
    let mut verdict = Verdict::default();
    let numbers = match settings.only {
        Some(number) => number..number + 1,
        None => 0..settings.states,
    };
    for number in numbers {
        let mut random =
            Rng::with_seed(settings.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let store = &stores[random.usize(0..stores.len())];
        let mut image = store.image.clone();
        let what = damage(&mut image, &mut random);
        let place = directory.path().join(format!("state-{number}"));
        image.write(&place)?;
        let mut launch = Launch::new(&settings.server, &place);
        launch.environment = settings.environment.clone();
        let (mut class, mut words) = open_and_read(&launch, store, &mut random)?;
        std::fs::remove_dir_all(&place)?;
        if class == Class::Hang {
            // On a busy machine a healthy server can look hung, so only a second time counts.
            image.write(&place)?;
            (class, words) = open_and_read(&launch, store, &mut random)?;
            std::fs::remove_dir_all(&place)?;
        }
        if class == Class::Errors && what.starts_with(EXTENTS) {
            image.write(&place)?;
            if !check_finds(&launch)? {
                class = Class::Unnoticed;
            }
            std::fs::remove_dir_all(&place)?;
        }
        if class >= Class::WrongData {
            // On a fresh copy of the damaged store, because the server has written to the other one.
            image.write(&place)?;
            if check_finds(&launch)? {
                verdict.found_by_check += 1;
                words.push_str("; lazulite check finds it");
            } else {
                verdict.missed_by_check += 1;
                words.push_str("; lazulite check does not find it");
            }
            std::fs::remove_dir_all(&place)?;
        }
        verdict.states += 1;
        let count = verdict.classes.entry(class).or_default();
        *count += 1;
        if class.is_finding() && *count <= EXAMPLES_PER_FINDING_MAX || settings.only.is_some() {
            let ended = if store.clean { "cleanly closed" } else { "killed" };
            let text = format!("state {number}, {class:?}: a {ended} store, {what}: {words}");
            if class.is_finding() { verdict.broken.push(text) } else { println!("{text}") }
        }
        if verdict.states.is_multiple_of(STATES_PER_REPORT) {
            println!("  {:>6} states, {:?}", verdict.states, verdict.classes);
        }
    }
    Ok(verdict)
}

/// A store to damage, and its contents.
struct Store {
    image: Image,
    contents: Contents,
    blobs: KnownBlobs,
    clean: bool,
}

impl Store {
    fn make(settings: &Settings, location: &Path, clean: bool) -> Result<Store, Error> {
        let mut launch = Launch::new(&settings.server, location);
        launch.environment = settings.environment.clone();
        let start = || -> Result<Victim, Error> {
            launch.start()?.map_err(|refusal| format!("the server does not start: {}", refusal.words).into())
        };
        let server = start()?;
        let table = Request::post("/Tables").json(&format!("{{\"TableName\":\"{MAIN_TABLE}\"}}"));
        if server.ask(&table)?.status != 201 {
            return Err("the first table is refused".into());
        }
        let (tally, stopping) = (Tally::default(), AtomicBool::new(false));
        let common = Common { server: &server, tally: &tally, stopping: &stopping, position: &|| 0 };
        let mut writers: Vec<Writer> =
            (0..WRITER_COUNT).map(|number| Writer::new(number, settings.seed, SHAPE)).collect();
        for writer in &mut writers {
            writer.run(&common, STEP_COUNT)?;
        }
        let blobs = KnownBlobs::make(&server, settings.seed)?;
        let added =
            launch.command().args(["account", "add", "another", "--location"]).arg(location).output()?;
        if !added.status.success() {
            return Err("account add does not work".into());
        }
        let contents = contents::read_all(&server).map_err(|failure| failure.to_string())?;
        let shares = contents::share(contents.clone(), WRITER_COUNT)?;
        for (writer, found) in writers.iter().zip(&shares.writers) {
            settle(&writer.known, None, found)?;
        }
        if clean {
            server.terminate()?;
            server.wait().ok_or("the server does not stop")?;
        }
        drop(server);
        Ok(Store { image: Image::read(location)?.0, contents, blobs, clean })
    }
}

/// Damages one file. Returns a description of the damage.
fn damage(image: &mut Image, random: &mut Rng) -> String {
    let names: Vec<String> = image.files.keys().cloned().collect();
    let extents: Vec<&String> = names.iter().filter(|name| name.starts_with(EXTENTS)).collect();
    // Most of the data is in one file, and in the extents.
    let name = match random.u32(0..10) {
        0 => names[random.usize(0..names.len())].clone(),
        1..4 if !extents.is_empty() => extents[random.usize(0..extents.len())].clone(),
        _ => TABLES_FILE.to_owned(),
    };
    if random.u32(0..60) == 0 {
        image.files.remove(&name);
        return format!("{name} removed");
    }
    let Some(bytes) = image.files.get_mut(&name) else { return format!("no {name}") };
    if bytes.is_empty() {
        bytes.extend_from_slice(b"garbage");
        return format!("{name} is no longer empty");
    }
    if random.u32(0..20) == 0 {
        let length = random.usize(0..bytes.len());
        bytes.truncate(length);
        return format!("{name} cut to {length} bytes");
    }
    if random.u32(0..6) == 0 {
        // A long run of zeros, as a file system may leave it: over whole blocks, and often over their checksums.
        let start = match random.u32(0..3) {
            0 => 0,
            _ => random.usize(0..bytes.len()) / ZEROED_STEP_BYTES * ZEROED_STEP_BYTES,
        };
        let end = bytes.len().min(start + ZEROED_STEP_BYTES * random.usize(1..=ZEROED_STEP_COUNT_MAX));
        bytes[start..end].fill(0);
        return format!("{name}: {start}..{end}, a long run, zeroed");
    }
    // Look for used bytes: much of the file is free space.
    let mut at = random.usize(0..bytes.len());
    for _ in 0..1000 {
        let sector = at / 512 * 512;
        if bytes[sector..bytes.len().min(sector + 512)].iter().any(|byte| *byte != 0) {
            break;
        }
        at = random.usize(0..bytes.len());
    }
    let size = [512, 4096][random.usize(0..2)];
    let start = at / size * size;
    let end = bytes.len().min(start + size);
    match random.u32(0..10) {
        0..4 => {
            let bit = random.u32(0..8);
            bytes[at] ^= 1 << bit;
            format!("{name}: bit {bit} of byte {at} flipped")
        }
        4 => {
            for _ in 0..8 {
                let at = random.usize(start..end);
                bytes[at] ^= 1 << random.u32(0..8);
            }
            format!("{name}: eight bits flipped in {start}..{end}")
        }
        5..7 => {
            bytes[start..end].fill(0);
            format!("{name}: {start}..{end} zeroed")
        }
        7 => {
            bytes[start..end].iter_mut().for_each(|byte| *byte = random.u8(..));
            format!("{name}: {start}..{end} overwritten with noise")
        }
        8 => {
            let from = random.usize(0..bytes.len() / size + 1) * size;
            let piece = bytes[from.min(bytes.len())..bytes.len().min(from + end - start)].to_vec();
            bytes[start..start + piece.len()].copy_from_slice(&piece);
            format!("{name}: {start}..{end} overwritten with the bytes at {from}")
        }
        _ => {
            bytes[at] = random.u8(..);
            format!("{name}: byte {at} overwritten")
        }
    }
}

/// Opens the store, reads everything and writes a row. Returns the worst finding, with its description.
fn open_and_read(launch: &Launch, store: &Store, random: &mut Rng) -> Result<(Class, String), Error> {
    let expected = &store.contents;
    let server = match launch.start()? {
        Ok(server) => server,
        Err(refusal) => {
            let words = refusal.words;
            // Only the last line: a panic may have printed others before it.
            let sentence = words.lines().last().unwrap_or_default();
            let class = match refusal.code {
                None => Class::Hang,
                Some(_) if panicked(&words) => Class::RefusedWithPanic,
                Some(_) if sentence.contains("accounts.toml") => Class::AccountsRefused,
                Some(_)
                    if [TABLES_FILE, "commits-", "LAZULITE", "lock", "extent-"]
                        .iter()
                        .any(|name| sentence.contains(name)) =>
                {
                    Class::Refused
                }
                Some(_) => Class::RefusedWithoutFile,
            };
            return Ok((class, words));
        }
    };
    let mut worst = (Class::Right, String::new());
    let mut note = |class: Class, words: String| {
        if class > worst.0 {
            worst = (class, words);
        }
    };
    match contents::table_names(&server) {
        Ok(names) if names.iter().eq(expected.keys()) => {}
        Ok(names) => {
            let lost = expected.keys().any(|name| !names.contains(name));
            let class = if lost { Class::LostRows } else { Class::WrongData };
            note(class, format!("the tables are {names:?}"));
        }
        Err(failure) => note(class_of(&failure), failure.to_string()),
    }
    for (table, rows) in expected {
        match contents::rows(&server, table, None) {
            Ok(found) if found == *rows => {}
            Ok(found) => {
                let missing = rows.keys().filter(|key| !found.contains_key(*key)).count();
                let other = found.iter().find(|(key, row)| rows.get(*key) != Some(row));
                if let Some((key, row)) = other {
                    note(Class::WrongData, format!("{table} {key:?} is {row:?}"));
                }
                if missing > 0 {
                    note(Class::LostRows, format!("{missing} of {} rows of {table} are missing", rows.len()));
                }
            }
            Err(failure) => {
                note(class_of(&failure), format!("{table}: {failure}"));
                let every = rows.len().div_ceil(POINT_READ_COUNT_MAX).max(1);
                let offset = random.usize(0..every);
                for (key, row) in rows.iter().skip(offset).step_by(every) {
                    let (class, words) = point_read(&server, table, key, row);
                    note(class, words);
                }
            }
        }
    }
    store.blobs.read(&server, &mut note);
    let probe = entity_json(PROBE_PARTITION, "after", "");
    match server.ask(&Request::post(&format!("/{MAIN_TABLE}")).json(&probe)) {
        Ok(response) if response.status == 201 || response.status >= 500 => {}
        Ok(response) if response.status == 404 => note(Class::LostRows, format!("a write gets {response:?}")),
        Ok(response) => note(Class::WrongData, format!("a write gets {response:?}")),
        Err(error) => note(Class::Hang, format!("a write is not answered: {error}")),
    }
    let ended = server.has_ended();
    let words = server.finish();
    if ended {
        note(Class::Died, words.clone());
    }
    if panicked(&words) {
        note(Class::Panic, words.clone());
    }
    let (class, mut text) = worst;
    if class > Class::Panic && panicked(&words) {
        text.push_str(&format!("; and it panicked: {words}"));
    }
    Ok((class, text))
}

/// Whether `lazulite check` reports damage.
fn check_finds(launch: &Launch) -> Result<bool, Error> {
    let output = launch.command().args(["check", "--location"]).arg(&launch.location).output()?;
    Ok(output.status.code() == Some(CHECK_FOUND_DAMAGE))
}

fn point_read(server: &Victim, table: &str, key: &Key, row: &Row) -> (Class, String) {
    let path = entity_path(table, &key.0, &key.1);
    let response = match server.ask(&Request::get(&path)) {
        Ok(response) => response,
        Err(error) => return (Class::Hang, format!("{path}: {error}")),
    };
    let found = || serde_json::from_slice(&response.body).ok().and_then(|body| contents::entity(body).ok());
    match response.status {
        200 if found().is_some_and(|(found, value)| found == *key && value == *row) => {
            (Class::Right, String::new())
        }
        200 => (Class::WrongData, format!("{path} is {response:?}")),
        404 => (Class::LostRows, format!("{path} is answered with 404")),
        500.. => (Class::Errors, String::new()),
        _ => (Class::WrongData, format!("{path} is answered with {response:?}")),
    }
}

fn class_of(failure: &ReadFailure) -> Class {
    match failure {
        ReadFailure::Refused { status: 500.., .. } => Class::Errors,
        ReadFailure::Refused { status: 404, .. } => Class::LostRows,
        ReadFailure::Refused { .. } | ReadFailure::Wrong(_) => Class::WrongData,
        ReadFailure::Broken(_) => Class::Hang,
    }
}
