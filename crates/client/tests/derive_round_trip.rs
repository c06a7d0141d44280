//! Every type, at its extremes and at random, through the derive, through JSON and back; at every metadata level.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use lazulite_client::{DateTime, DynamicEntity, Entity, Enumeration, Guid, Keys, Property, Value, json};

#[derive(Clone, Copy, PartialEq, Debug, Enumeration)]
enum Side {
    Left,
    Right,
}

#[derive(Clone, PartialEq, Debug, Entity)]
struct Everything {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: i64,
    string: String,
    boxed: Box<str>,
    shared: Arc<str>,
    cow: Cow<'static, str>,
    int8: i8,
    uint8: u8,
    int16: i16,
    uint16: u16,
    int32: i32,
    uint32: u32,
    int64: i64,
    uint64: u64,
    double: f64,
    single: f32,
    boolean: bool,
    date: DateTime,
    time: SystemTime,
    guid: Guid,
    bytes: Vec<u8>,
    boxed_bytes: Box<[u8]>,
    side: Side,
    #[entity(json)]
    json: Vec<Option<(String, f64)>>,
    #[entity(display)]
    display: u128,
    absent: Option<i32>,
    optional: Option<DateTime>,
    #[cfg_attr(not(feature = "chrono"), entity(skip))]
    chrono: Chrono,
    #[cfg_attr(not(feature = "time"), entity(skip))]
    offset: Offset,
    #[cfg_attr(not(feature = "uuid"), entity(skip))]
    uuid: Uuid,
}

#[cfg(feature = "chrono")]
type Chrono = chrono::DateTime<chrono::Utc>;
#[cfg(not(feature = "chrono"))]
type Chrono = ();
#[cfg(feature = "time")]
type Offset = time::OffsetDateTime;
#[cfg(not(feature = "time"))]
type Offset = ();
#[cfg(feature = "uuid")]
type Uuid = uuid::Uuid;
#[cfg(not(feature = "uuid"))]
type Uuid = ();

/// One of the extremes, or anything between them.
fn number<T: Copy>(random: &mut Rng, extremes: &[T], any: impl FnOnce(&mut Rng) -> T) -> T {
    if random.bool() { extremes[random.usize(..extremes.len())] } else { any(random) }
}

fn text(random: &mut Rng) -> String {
    let pieces = [
        "",
        "a",
        "\"",
        "\\",
        "'",
        "\0",
        "\n",
        "\u{7F}",
        "é",
        "\u{D7FF}",
        "\u{E000}",
        "\u{FFFF}",
        "\u{10FFFF}",
        "@odata.type",
    ];
    (0..random.usize(..6)).map(|_| pieces[random.usize(..pieces.len())]).collect()
}

fn bytes(random: &mut Rng) -> Vec<u8> {
    (0..random.usize(..9)).map(|_| random.u8(..)).collect()
}

fn date(random: &mut Rng) -> DateTime {
    let extremes = [DateTime::from_ticks(0), DateTime::MIN_STORED, DateTime::UNIX_EPOCH, DateTime::MAX];
    number(random, &extremes, |random| DateTime::from_ticks(random.u64(..=DateTime::MAX.ticks())))
}

fn time_of(date: DateTime) -> SystemTime {
    let ticks = date.ticks();
    let epoch = DateTime::UNIX_EPOCH.ticks();
    let distance = Duration::from_nanos(ticks.abs_diff(epoch) % 10_000_000 * 100)
        + Duration::from_secs(ticks.abs_diff(epoch) / 10_000_000);
    if ticks >= epoch { SystemTime::UNIX_EPOCH + distance } else { SystemTime::UNIX_EPOCH - distance }
}

fn double(random: &mut Rng) -> f64 {
    let extremes = [
        0.0,
        -0.0,
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e15,
        0.1 + 0.2,
    ];
    // NaN is not equal to itself; it has a test of its own.
    number(random, &extremes, |random| {
        Some(f64::from_bits(random.u64(..))).filter(|value| !value.is_nan()).unwrap_or(1.0)
    })
}

fn everything(random: &mut Rng) -> Everything {
    macro_rules! integer {
        ($type:ident) => {
            number(random, &[$type::MIN, $type::MAX, 0], |random| random.$type(..))
        };
    }
    Everything {
        partition: text(random),
        row: integer!(i64),
        string: text(random),
        boxed: text(random).into(),
        shared: text(random).into(),
        cow: text(random).into(),
        int8: integer!(i8),
        uint8: integer!(u8),
        int16: integer!(i16),
        uint16: integer!(u16),
        int32: integer!(i32),
        uint32: integer!(u32),
        int64: integer!(i64),
        uint64: number(random, &[0, i64::MAX as u64], |random| random.u64(..=i64::MAX as u64)),
        double: double(random),
        single: Some(f32::from_bits(random.u32(..))).filter(|value| !value.is_nan()).unwrap_or(f32::MAX),
        boolean: random.bool(),
        date: date(random),
        time: time_of(date(random)),
        guid: number(random, &[Guid([0; 16]), Guid([0xFF; 16])], |random| {
            Guid(std::array::from_fn(|_| random.u8(..)))
        }),
        bytes: bytes(random),
        boxed_bytes: bytes(random).into(),
        side: if random.bool() { Side::Left } else { Side::Right },
        json: vec![None, Some((text(random), 0.1))],
        display: random.u128(..),
        absent: None,
        optional: random.bool().then(|| date(random)),
        #[cfg(feature = "chrono")]
        chrono: chrono::DateTime::from(time_of(date(random))),
        #[cfg(not(feature = "chrono"))]
        chrono: (),
        #[cfg(feature = "time")]
        offset: time::OffsetDateTime::from(time_of(date(random))),
        #[cfg(not(feature = "time"))]
        offset: (),
        #[cfg(feature = "uuid")]
        uuid: uuid::Uuid::from_bytes(std::array::from_fn(|_| random.u8(..))),
        #[cfg(not(feature = "uuid"))]
        uuid: (),
    }
}

fn body_of(entity: &impl Entity) -> Vec<u8> {
    let (mut properties, mut body) = (Vec::new(), Vec::new());
    entity.write(&mut properties).unwrap();
    json::write_entity(Some(&entity.keys().unwrap()), &properties, &mut body);
    body
}

#[test]
fn every_type_survives_the_derive_and_json() {
    let mut random = Rng::with_seed(21);
    for _ in 0..5_000 {
        let entity = everything(&mut random);
        let body = body_of(&entity);
        let found = Everything::read(json::read_row(&body).unwrap());
        assert_eq!(found.as_ref(), Ok(&entity), "{}", String::from_utf8_lossy(&body));

        // The same through an entity without a struct, whose properties are in another order.
        let dynamic = DynamicEntity::read(json::read_row(&body).unwrap()).unwrap();
        let found = Everything::read(json::read_row(&body_of(&dynamic)).unwrap());
        assert_eq!(found, Ok(entity));
    }
}

#[test]
fn a_page_is_its_rows() {
    let mut random = Rng::with_seed(22);
    let entities: Vec<Everything> = (0..50).map(|_| everything(&mut random)).collect();
    let mut page = b"{\"odata.metadata\":\"http://127.0.0.1/$metadata#t\",\"value\":[".to_vec();
    for (at, entity) in entities.iter().enumerate() {
        if at > 0 {
            page.push(b',');
        }
        page.extend(body_of(entity));
    }
    page.extend(b"]}");
    let rows = json::read_page(&page).unwrap();
    let found: Vec<Everything> = rows.into_iter().map(|row| Everything::read(row).unwrap()).collect();
    assert_eq!(found, entities);
}

#[test]
fn without_metadata_all_but_binary_is_read_by_the_type_of_the_field() {
    #[derive(Debug, PartialEq, Entity)]
    struct Typed {
        #[entity(partition_key)]
        partition: String,
        #[entity(row_key)]
        row: String,
        int64: i64,
        double: f64,
        whole: f64,
        date: DateTime,
        guid: Guid,
    }
    let body = br#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2024-01-01T00:00:00Z","int64":"9223372036854775807","double":"-Infinity","whole":3,"date":"9999-12-31T23:59:59.9999999Z","guid":"ffffffff-ffff-ffff-ffff-ffffffffffff"}"#;
    let found = Typed::read(json::read_row(body).unwrap()).unwrap();
    let expected = Typed {
        partition: "p".into(),
        row: "r".into(),
        int64: i64::MAX,
        double: f64::NEG_INFINITY,
        whole: 3.0,
        date: DateTime::MAX,
        guid: Guid([0xFF; 16]),
    };
    assert_eq!(found, expected);
}

#[test]
fn nan_stays_nan() {
    let entity = DynamicEntity::new("p", "r").with("x", f64::NAN).unwrap();
    let found = DynamicEntity::read(json::read_row(&body_of(&entity)).unwrap()).unwrap();
    assert!(found.get::<f64>("x").unwrap().is_nan());
}

#[test]
fn no_answer_causes_a_panic() {
    let mut random = Rng::with_seed(23);
    let whole = body_of(&everything(&mut random));
    for _ in 0..20_000 {
        let mut body = whole.clone();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(..body.len());
            match random.u8(..3) {
                0 => body[at] = random.u8(..),
                1 => body[at] = whole[random.usize(..whole.len())],
                _ => drop(body.remove(at)),
            }
        }
        if let Ok(row) = json::read_row(&body) {
            let _ = Everything::read(row);
        }
    }
}

#[test]
fn a_payload_without_keys_has_only_properties() {
    let properties = [Property { name: "x".into(), value: Value::Boolean(true) }];
    let mut body = Vec::new();
    json::write_entity(None, &properties, &mut body);
    assert_eq!(body, br#"{"x":true}"#);
    body.clear();
    json::write_entity(Some(&Keys::new("p", "r")), &[], &mut body);
    assert_eq!(body, br#"{"PartitionKey":"p","RowKey":"r"}"#);
}
