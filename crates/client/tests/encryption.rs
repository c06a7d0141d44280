//! Mutated ciphertexts, mutated metadata, moved rows and wrong keys: none is accepted, and none causes a panic.
//!
//! The usual run tries a slice; `LAZULITE_FUZZ_COUNT=1000000 cargo test --release -p lazulite-client --test encryption`
//! tries as many as the variable says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use lazulite_client::encryption::{
    EncryptionError, InMemoryKeyRing, KEY_PROPERTY, LIST_PROPERTY, Place, seal, unseal,
};
use lazulite_client::{DateTime, Guid, Keys, Property, Row, Value};

const COUNT_USUAL: u64 = 20_000;
const NAMES: &[&str] = &["a", "b", "c", "d"];
const TABLE: &str = "things";

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a local key ring has to wait"),
    }
}

fn random_value(random: &mut fastrand::Rng) -> Value<'static> {
    match random.u8(0..8) {
        0 => Value::String(std::iter::repeat_with(|| random.char('\u{20}'..'\u{2000}')).take(9).collect()),
        1 => Value::Int32(random.i32(..)),
        2 => Value::Int64(random.i64(..)),
        3 => Value::Double(random.f64()),
        4 => Value::Boolean(random.bool()),
        5 => Value::DateTime(DateTime::from_ticks(random.u64(..DateTime::MAX.ticks()))),
        6 => Value::Guid(Guid(random.u128(..).to_be_bytes())),
        _ => Value::Binary(std::iter::repeat_with(|| random.u8(..)).take(30).collect()),
    }
}

struct Sealed {
    row: Row<'static>,
    plain: Vec<Property<'static>>,
}

fn sealed(random: &mut fastrand::Rng, ring: &InMemoryKeyRing) -> Sealed {
    let keys =
        Keys { partition_key: random.u8(..).to_string().into(), row_key: random.u8(..).to_string().into() };
    let mut properties: Vec<Property<'static>> = ["plain", "a", "b", "c", "d"]
        .map(|name| Property { name: name.into(), value: random_value(random) })
        .into();
    let plain = properties.clone();
    now(seal(&mut properties, NAMES, &Place { table: TABLE, keys: &keys }, ring)).unwrap();
    let row = Row { partition_key: keys.partition_key, row_key: keys.row_key, properties, ..Row::default() };
    Sealed { row, plain }
}

fn value<'r>(row: &'r mut Row<'static>, name: &str) -> &'r mut Value<'static> {
    &mut row.properties.iter_mut().find(|property| property.name == name).unwrap().value
}

/// Changes bytes: flips, cuts, growth, a piece written over another. The result may equal the original.
fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.u8(1..4) {
        let at = random.usize(..=bytes.len());
        match random.u8(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.u8(0..8),
            1 if at < bytes.len() => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => bytes.insert(at, random.u8(..)),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {
                let from = random.usize(..=bytes.len());
                let len = random.usize(..=8).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + len, at);
            }
        }
    }
}

fn mutate_text(text: &str, random: &mut fastrand::Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    mutate(&mut bytes, random);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Some change that makes the row another one, and the ring and table to open it with.
fn attack(
    row: &mut Row<'static>,
    other: &Sealed,
    random: &mut fastrand::Rng,
) -> (Option<InMemoryKeyRing>, &'static str) {
    let mut table = TABLE;
    let mut ring = None;
    let name = *random.choice(&["a", "b", "c", "d", LIST_PROPERTY]).unwrap();
    match random.u8(0..12) {
        0..=3 => {
            if let Value::Binary(bytes) = value(row, name) {
                mutate(bytes.to_mut(), random);
            }
        }
        4 | 5 => {
            let stored = value(row, KEY_PROPERTY);
            if let Value::String(text) = stored {
                *stored = Value::String(mutate_text(text, random).into());
            }
        }
        6 => {
            let from = *random.choice(&["a", "b", "c", "d", LIST_PROPERTY, KEY_PROPERTY]).unwrap();
            *value(row, name) = value(&mut other.row.clone(), from).clone();
        }
        7 => {
            let from = *random.choice(&["a", "b", "c", "d", LIST_PROPERTY]).unwrap();
            *value(row, name) = value(row, from).clone();
        }
        8 => match random.u8(0..3) {
            0 => table = "others",
            1 => row.partition_key = format!("{}x", row.partition_key).into(),
            _ => std::mem::swap(&mut row.partition_key, &mut row.row_key),
        },
        9 => {
            let mut key = [0; 32];
            random.fill(&mut key);
            ring = Some(InMemoryKeyRing::new("k1", key).unwrap());
        }
        10 => drop(row.take(random.choice(&["a", "d", LIST_PROPERTY, KEY_PROPERTY]).unwrap())),
        _ => *value(row, name) = random_value(random),
    }
    (ring, table)
}

#[test]
fn nothing_that_was_changed_is_accepted() {
    let count =
        std::env::var("LAZULITE_FUZZ_COUNT").map_or(COUNT_USUAL, |text| text.parse().expect("a number"));
    let seed = std::env::var("LAZULITE_FUZZ_SEED").map_or(14, |text| text.parse().expect("a number"));
    let mut random = fastrand::Rng::with_seed(seed);
    let right = InMemoryKeyRing::new("k1", [1; 32]).unwrap();
    let mut tried = 0;
    let mut entity = sealed(&mut random, &right);
    let mut other = sealed(&mut random, &right);
    while tried < count {
        if tried % 64 == 0 {
            other = std::mem::replace(&mut entity, sealed(&mut random, &right));
            // The unchanged row is accepted, so a refusal is due to the change.
            let mut row = entity.row.clone();
            now(unseal(&mut row, NAMES, TABLE, &right)).unwrap();
            assert_eq!(row.properties, entity.plain);
        }
        let mut row = entity.row.clone();
        let (ring, table) = attack(&mut row, &other, &mut random);
        if row == entity.row && ring.is_none() && table == TABLE {
            continue;
        }
        tried += 1;
        let changed = row.clone();
        let refusal = now(unseal(&mut row, NAMES, table, ring.as_ref().unwrap_or(&right)));
        let Err(error) = refusal else { panic!("seed {seed}, case {tried} was accepted:\n{changed:?}") };
        assert!(!matches!(error, EncryptionError::NoRandomness));
    }
    println!("{tried} changed rows, none accepted");
}
