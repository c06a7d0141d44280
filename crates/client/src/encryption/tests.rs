//! What is sealed can be opened in its place with its key, and nowhere else.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use super::check::check_columns;
use super::*;
use crate::{DateTime, Guid, Keys, Property, Row, Value};

/// Local key rings answer at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a local key ring has to wait"),
    }
}

fn ring() -> InMemoryKeyRing {
    InMemoryKeyRing::new("k1", [1; 32]).unwrap()
}

fn property<'a>(name: &'a str, value: Value<'a>) -> Property<'a> {
    Property { name: name.into(), value }
}

fn keys() -> Keys<'static> {
    Keys { partition_key: "p".into(), row_key: "r".into() }
}

const NAMES: &[&str] = &["ssn", "salary"];

fn employee() -> Vec<Property<'static>> {
    vec![
        property("name", Value::String("Ann".into())),
        property("ssn", Value::String("078-05-1120".into())),
        property("salary", Value::Int64(70_000)),
    ]
}

fn sealed_by(ring: &dyn KeyRing, properties: Vec<Property<'static>>) -> Row<'static> {
    let mut properties = properties;
    now(seal(&mut properties, NAMES, &Place { table: "People", keys: &keys() }, ring)).unwrap();
    Row { partition_key: "p".into(), row_key: "r".into(), properties, ..Row::default() }
}

fn sealed() -> Row<'static> {
    sealed_by(&ring(), employee())
}

fn opened(row: &Row<'static>, ring: &dyn KeyRing) -> Result<Vec<Property<'static>>, EncryptionError> {
    let mut row = row.clone();
    now(unseal(&mut row, NAMES, "people", ring)).map(|_| row.properties)
}

fn value<'r>(row: &'r mut Row<'static>, name: &str) -> &'r mut Value<'static> {
    &mut row.properties.iter_mut().find(|property| property.name == name).unwrap().value
}

fn bytes<'r>(row: &'r mut Row<'static>, name: &str) -> &'r mut Vec<u8> {
    match value(row, name) {
        Value::Binary(bytes) => bytes.to_mut(),
        other => panic!("{name} is {other:?}"),
    }
}

fn not_authentic(property: &str) -> EncryptionError {
    EncryptionError::NotAuthentic { property: property.to_owned() }
}

#[test]
fn every_type_comes_back_as_it_was() {
    let values = [
        Value::String("".into()),
        Value::String("grüße \u{1F600} \0".into()),
        Value::Int32(i32::MIN),
        Value::Int64(i64::MAX),
        Value::Double(-0.0),
        Value::Double(f64::INFINITY),
        Value::Double(f64::MIN_POSITIVE / 2.0),
        Value::Boolean(true),
        Value::Boolean(false),
        Value::DateTime(DateTime::MIN_STORED),
        Value::DateTime(DateTime::MAX),
        Value::Guid(Guid([0xff; 16])),
        Value::Binary(vec![].into()),
        Value::Binary(vec![0; 1000].into()),
    ];
    for value in values {
        let row = sealed_by(&ring(), vec![property("ssn", value.clone())]);
        assert_eq!(opened(&row, &ring()).unwrap(), [property("ssn", value)]);
    }
    let nan = f64::from_bits(0x7ff8_0000_0000_0123);
    let row = sealed_by(&ring(), vec![property("ssn", Value::Double(nan))]);
    let found = opened(&row, &ring()).unwrap();
    assert!(matches!(found[0].value, Value::Double(found) if found.to_bits() == nan.to_bits()));
}

#[test]
fn plain_properties_stay_readable_and_sealed_ones_show_nothing() {
    let row = sealed();
    let names: Vec<&str> = row.properties.iter().map(|property| &*property.name).collect();
    assert_eq!(names, ["name", "ssn", "salary", KEY_PROPERTY, LIST_PROPERTY]);
    assert_eq!(row.properties[0].value, Value::String("Ann".into()));
    let shown = format!("{row:?}");
    assert!(!shown.contains("078-05") && !shown.contains("70000"));
    for property in &row.properties[1..] {
        if let Value::Binary(bytes) = &property.value {
            assert!(!bytes.windows(6).any(|part| part == b"078-05" || part == b"salary"));
        }
    }
    assert_eq!(opened(&row, &ring()).unwrap(), employee());
}

#[test]
fn the_metadata_reads_like_the_one_of_net() {
    let mut row = sealed();
    let Value::String(text) = value(&mut row, KEY_PROPERTY).clone() else { panic!() };
    let key = text.split('"').nth(9).unwrap();
    assert_eq!(
        text,
        format!(
            r#"{{"WrappedContentKey":{{"KeyId":"k1","EncryptedKey":"{key}","Algorithm":"HKDF-SHA256-A256GCM"}},"EncryptionAgent":{{"Protocol":"Lazulite-1","EncryptionAlgorithm":"AES_GCM_256"}},"KeyWrappingMetadata":{{}}}}"#
        )
    );
}

#[test]
fn ciphertext_is_bound_to_table_keys_and_property() {
    let row = sealed();
    let names = now(unseal(&mut row.clone(), NAMES, "PEOPLE", &ring())).map(|names| names.len());
    assert_eq!(names, Ok(NAMES.len()), "names of tables ignore case");
    let list = not_authentic(LIST_PROPERTY);
    assert_eq!(now(unseal(&mut row.clone(), NAMES, "others", &ring())), Err(list.clone()));
    for (partition_key, row_key) in [("q", "r"), ("p", "s"), ("pr", ""), ("", "pr"), ("r", "p")] {
        let mut moved = row.clone();
        (moved.partition_key, moved.row_key) = (partition_key.into(), row_key.into());
        assert_eq!(opened(&moved, &ring()), Err(list.clone()), "{partition_key} {row_key}");
    }
    let mut swapped = row.clone();
    let (ssn, salary) = (value(&mut swapped, "ssn").clone(), value(&mut swapped, "salary").clone());
    *value(&mut swapped, "ssn") = salary;
    *value(&mut swapped, "salary") = ssn;
    assert_eq!(opened(&swapped, &ring()), Err(not_authentic("ssn")));
}

#[test]
fn values_of_two_writes_cannot_be_mixed() {
    let (row, mut other) = (sealed(), sealed());
    for name in ["ssn", "salary", LIST_PROPERTY] {
        let mut mixed = row.clone();
        *value(&mut mixed, name) = value(&mut other, name).clone();
        assert_eq!(opened(&mixed, &ring()), Err(not_authentic(name)));
    }
    let mut mixed = row.clone();
    *value(&mut mixed, KEY_PROPERTY) = value(&mut other, KEY_PROPERTY).clone();
    assert_eq!(opened(&mixed, &ring()), Err(not_authentic(LIST_PROPERTY)));
}

#[test]
fn every_changed_bit_and_every_cut_is_refused() {
    let row = sealed();
    for name in ["ssn", "salary", LIST_PROPERTY] {
        let len = bytes(&mut row.clone(), name).len();
        for bit in 0..len * 8 {
            let mut changed = row.clone();
            bytes(&mut changed, name)[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&changed, &ring()), Err(not_authentic(name)), "{name} bit {bit}");
        }
        for len in 0..len {
            let mut cut = row.clone();
            bytes(&mut cut, name).truncate(len);
            assert_eq!(opened(&cut, &ring()), Err(not_authentic(name)), "{name} cut at {len}");
        }
        let mut longer = row.clone();
        bytes(&mut longer, name).push(0);
        assert_eq!(opened(&longer, &ring()), Err(not_authentic(name)));
    }
}

#[test]
fn every_changed_character_of_the_metadata_is_refused() {
    let mut row = sealed();
    let Value::String(text) = value(&mut row, KEY_PROPERTY).clone() else { panic!() };
    let replacements = ["", " ", "A", "k", "1", "=", "\"", "\\", "ä", "AA"];
    for (at, original) in text.char_indices() {
        for replacement in replacements.iter().filter(|text| **text != original.to_string()) {
            let changed = [&text[..at], replacement, &text[at + original.len_utf8()..]].concat();
            *value(&mut row, KEY_PROPERTY) = Value::String(changed.clone().into());
            assert!(opened(&row, &ring()).is_err(), "{changed}");
        }
    }
}

#[test]
fn removed_and_added_properties_are_refused() {
    let without = |name: &str| {
        let mut row = sealed();
        row.take(name).unwrap();
        opened(&row, &ring()).unwrap_err()
    };
    assert_eq!(without("ssn"), EncryptionError::Removed { property: "ssn".into() });
    assert_eq!(without(KEY_PROPERTY), EncryptionError::MissingMetadata { property: KEY_PROPERTY });
    assert_eq!(without(LIST_PROPERTY), EncryptionError::MissingMetadata { property: LIST_PROPERTY });

    let plain = |name: &str| Err(EncryptionError::NotEncrypted { property: name.to_owned() });
    let mut row = sealed();
    *value(&mut row, "ssn") = Value::String("078-05-1120".into());
    assert_eq!(opened(&row, &ring()), plain("ssn"));
    let mut row = sealed();
    row.properties.push(property("ssn", Value::String("000".into())));
    assert_eq!(opened(&row, &ring()), plain("ssn"));
    let mut row = sealed();
    let again = row.properties[3].clone();
    row.properties.push(again);
    assert_eq!(opened(&row, &ring()), plain(KEY_PROPERTY));

    // An optional field that was absent when the entity was written.
    let mut row = sealed_by(&ring(), vec![property("ssn", Value::Int32(1))]);
    assert!(opened(&row, &ring()).is_ok());
    row.properties.push(property("salary", Value::Int64(1)));
    assert_eq!(opened(&row, &ring()), plain("salary"));
}

#[test]
fn entities_without_any_sealed_value_are_still_told_from_plain_ones() {
    let row = sealed_by(&ring(), vec![property("name", Value::Int32(1))]);
    assert_eq!(row.properties.len(), 3);
    assert_eq!(opened(&row, &ring()).unwrap().len(), 1);
    let plain = Row { properties: employee(), ..Row::default() };
    assert_eq!(opened(&plain, &ring()), Err(EncryptionError::MissingMetadata { property: KEY_PROPERTY }));
}

#[test]
fn other_keys_are_refused() {
    let row = sealed();
    let other_id = InMemoryKeyRing::new("k2", [1; 32]).unwrap();
    assert_eq!(opened(&row, &other_id), Err(EncryptionError::UnknownKey { key_id: "k1".into() }));
    let other_key = InMemoryKeyRing::new("k1", [2; 32]).unwrap();
    assert_eq!(opened(&row, &other_key), Err(EncryptionError::WrongKey { key_id: "k1".into() }));

    // The same key under another name: the id is authenticated too.
    other_id.add("k1", [1; 32]).unwrap();
    let mut renamed = row.clone();
    let Value::String(text) = value(&mut renamed, KEY_PROPERTY).clone() else { panic!() };
    *value(&mut renamed, KEY_PROPERTY) = Value::String(text.replace("\"k1\"", "\"k2\"").into());
    assert_eq!(opened(&renamed, &other_id), Err(EncryptionError::WrongKey { key_id: "k2".into() }));
    assert!(opened(&row, &other_id).is_ok());
}

#[test]
fn rows_of_other_libraries_are_named() {
    let mut row = sealed();
    let net = r#"{"WrappedContentKey":{"KeyId":"symencryptionkey","EncryptedKey":"1rQ=","Algorithm":"A256KW"},"EncryptionAgent":{"Protocol":"1.0","EncryptionAlgorithm":"AES_CBC_256"},"ContentEncryptionIV":"8Nk=","KeyWrappingMetadata":{}}"#;
    *value(&mut row, KEY_PROPERTY) = Value::String(net.into());
    let error = opened(&row, &ring()).unwrap_err();
    assert_eq!(error, EncryptionError::UnknownProtocol { protocol: "1.0".into() });
    assert!(error.to_string().contains("\"1.0\""));
    *value(&mut row, KEY_PROPERTY) = Value::String("hello".into());
    assert!(matches!(opened(&row, &ring()), Err(EncryptionError::MalformedMetadata { .. })));
    *value(&mut row, KEY_PROPERTY) = Value::Int32(1);
    assert!(matches!(opened(&row, &ring()), Err(EncryptionError::MalformedMetadata { .. })));
}

#[test]
fn no_nonce_and_no_wrapped_key_repeats() {
    let (mut nonces, mut wrapped) = (HashSet::new(), HashSet::new());
    let ring = ring();
    for _ in 0..5_000 {
        for property in sealed_by(&ring, employee()).properties {
            match property.value {
                Value::Binary(bytes) => assert!(nonces.insert(bytes[..12].to_vec())),
                Value::String(text) if property.name == KEY_PROPERTY => {
                    assert!(wrapped.insert(text.into_owned()));
                }
                _ => {}
            }
        }
    }
    assert_eq!((nonces.len(), wrapped.len()), (15_000, 5_000));
}

#[test]
fn nonces_of_one_write_are_consecutive_and_distinct() {
    let names: Vec<String> = (0..250).map(|number| format!("p{number}")).collect();
    let mut properties: Vec<Property<'_>> =
        names.iter().map(|name| property(name, Value::Boolean(true))).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    now(seal(&mut properties, &all, &Place { table: "people", keys: &keys() }, &ring())).unwrap();
    let nonces = properties.iter().filter_map(|property| match &property.value {
        Value::Binary(bytes) => Some(bytes[..12].to_vec()),
        _ => None,
    });
    assert_eq!(nonces.collect::<HashSet<_>>().len(), 251);
}

#[test]
fn sizes_that_the_service_does_not_store_are_refused_by_name() {
    let seal_one = |value| {
        let mut properties = vec![property("ssn", value)];
        now(seal(&mut properties, NAMES, &Place { table: "people", keys: &keys() }, &ring()))
            .map(|()| properties)
    };
    let most = 64 * 1024 - 12 - 16 - 1;
    let fits = seal_one(Value::String("x".repeat(most).into())).unwrap();
    assert!(matches!(&fits[0].value, Value::Binary(bytes) if bytes.len() == 64 * 1024));
    for value in [Value::String("x".repeat(most + 1).into()), Value::Binary(vec![0; most + 1].into())] {
        let error = seal_one(value).unwrap_err();
        assert_eq!(
            error,
            EncryptionError::TooLarge { property: "ssn".into(), bytes: 64 * 1024 + 1, bytes_max: 64 * 1024 }
        );
        assert!(error.to_string().contains("\"ssn\""));
    }
    let names: Vec<String> = (0..251).map(|number| format!("p{number}")).collect();
    let mut many: Vec<Property<'_>> = names.iter().map(|name| property(name, Value::Boolean(true))).collect();
    let place = Place { table: "people", keys: &keys() };
    let too_many = EncryptionError::TooManyProperties { count: 251, count_max: 250 };
    assert_eq!(now(seal(&mut many, NAMES, &place, &ring())), Err(too_many));
    let mut reserved = vec![property(LIST_PROPERTY, Value::Boolean(true))];
    let refusal = EncryptionError::ReservedName { property: LIST_PROPERTY };
    assert_eq!(now(seal(&mut reserved, NAMES, &place, &ring())), Err(refusal));
}

#[test]
fn projections_need_metadata_and_keys() {
    let all = ["ssn", KEY_PROPERTY, LIST_PROPERTY, "PartitionKey", "RowKey"];
    assert_eq!(check_columns(NAMES, &all), Ok(()));
    assert_eq!(check_columns(NAMES, &["name"]), Ok(()));
    assert_eq!(check_columns(&[], &["ssn"]), Ok(()));
    for missing in &all[1..] {
        let columns: Vec<&str> = all.iter().copied().filter(|name| name != missing).collect();
        assert_eq!(check_columns(NAMES, &columns), Err(EncryptionError::Projection { missing }));
    }
    // A projection that leaves out a sealed property can be opened by a struct that does not have it.
    let mut row = sealed();
    row.take("salary").unwrap();
    assert_eq!(now(unseal(&mut row, &["ssn"], "people", &ring())), Ok(vec!["ssn".to_owned()]));
    assert_eq!(row.take("ssn"), Some(Value::String("078-05-1120".into())));
}

#[test]
fn keys_are_read_from_text() {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let ids = |text: &str| InMemoryKeyRing::parse(text).map(|ring| ring.key_ids());
    assert_eq!(ids(&format!("b={key};a={key}")).unwrap(), ["b", "a"]);
    assert_eq!(ids(&format!("# keys\r\n b = {key} \r\n\r\na={key}\n")).unwrap(), ["b", "a"]);
    for bad in [
        "",
        "#",
        "a",
        "a=",
        "a=x",
        "a=AAAA",
        &format!("a={key};a={key}"),
        &format!("={key}"),
        &format!("ä={key}"),
    ] {
        let error = ids(bad).unwrap_err();
        assert!(matches!(error, EncryptionError::KeyRing(_)), "{bad}: {error}");
    }
    let error = ids("a=secretsecretsecret!").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
    let shown = format!("{:?}", InMemoryKeyRing::new("a", [0x41; 32]).unwrap());
    assert_eq!(shown, "InMemoryKeyRing([\"a\"])");
    assert_eq!(format!("{:?}", ContentKey::generate().unwrap()), "ContentKey(..)");
}

#[test]
fn the_environment_can_hold_keys() {
    // Cargo sets it for tests; it holds no keys.
    assert!(matches!(EnvironmentKeyRing::new("CARGO_PKG_NAME"), Err(EncryptionError::KeyRing(_))));
    let error = EnvironmentKeyRing::new("LAZULITE_NO_SUCH_VARIABLE").unwrap_err();
    assert!(error.to_string().contains("LAZULITE_NO_SUCH_VARIABLE"));
}

#[test]
fn key_files_are_private_and_can_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    assert!(matches!(FileKeyRing::open(&path), Err(EncryptionError::KeyRing(_))));
    let ring = FileKeyRing::create(&path, "one").unwrap();
    assert!(FileKeyRing::create(&path, "two").is_err(), "an existing file is kept");
    let row = sealed_by(&ring, employee());
    assert!(opened(&row, &FileKeyRing::open(&path).unwrap()).is_ok());

    let old = std::fs::read_to_string(&path).unwrap();
    let other = directory.path().join("other");
    FileKeyRing::create(&other, "two").unwrap();
    std::fs::write(&path, std::fs::read_to_string(&other).unwrap() + &old).unwrap();
    assert_eq!(ring.key_ids(), ["one"]);
    ring.reload().unwrap();
    assert_eq!(ring.key_ids(), ["two", "one"]);
    assert!(opened(&row, &ring).is_ok());

    std::fs::write(&path, "nonsense").unwrap();
    assert!(ring.reload().is_err());
    assert_eq!(ring.key_ids(), ["two", "one"], "a broken file changes nothing");
    assert!(FileKeyRing::open(directory.path()).is_err());
}

#[cfg(unix)]
#[test]
fn key_files_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    FileKeyRing::create(&path, "one").unwrap();
    for (mode, is_private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let opened = FileKeyRing::open(&path);
        assert_eq!(opened.is_ok(), is_private, "{mode:o}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("chmod 600"));
        }
    }
}

/// Readers know the new key before writers use it, so every reader can open every row at any time.
#[test]
fn keys_are_exchanged_while_readers_and_writers_run() {
    let ring = Arc::new(InMemoryKeyRing::new("old", [1; 32]).unwrap());
    let stored = Arc::new(std::sync::Mutex::new(vec![sealed_by(&*ring, employee())]));
    let stop = AtomicBool::new(false);
    // How often each thread has done its work: two writers, then two readers.
    let rounds = [const { AtomicUsize::new(0) }; 4];
    std::thread::scope(|scope| {
        for (number, round) in rounds.iter().enumerate() {
            let (ring, stored, stop) = (ring.clone(), stored.clone(), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    if number < 2 {
                        let row = sealed_by(&*ring, employee());
                        let mut stored = stored.lock().unwrap();
                        let at = fastrand::usize(0..=stored.len().min(63));
                        if at < stored.len() { stored[at] = row } else { stored.push(row) }
                    } else {
                        let rows = stored.lock().unwrap().clone();
                        for row in &rows {
                            assert_eq!(opened(row, &*ring).unwrap(), employee());
                        }
                    }
                    round.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // After some more rounds of a thread, whatever it had begun before is done.
        let wait_for_all = || {
            for round in &rounds {
                let enough = round.load(Ordering::SeqCst) + 5;
                while round.load(Ordering::SeqCst) < enough {
                    std::thread::yield_now();
                }
            }
        };
        wait_for_all();
        ring.add("new", [2; 32]).unwrap();
        wait_for_all();
        ring.promote("new").unwrap();
        wait_for_all();
        // What the old key wrapped is wrapped again, as a background task would do it.
        let mut rows = stored.lock().unwrap();
        for row in rows.iter_mut() {
            let Value::String(text) = value(row, KEY_PROPERTY).clone() else { panic!() };
            if let Some(text) = now(rewrap(&text, &*ring)).unwrap() {
                *value(row, KEY_PROPERTY) = Value::String(text.into());
            }
        }
        drop(rows);
        ring.remove("old").unwrap();
        wait_for_all();
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(ring.key_ids(), ["new"]);
}

#[test]
fn the_last_key_stays_and_unknown_keys_cannot_lead() {
    let ring = ring();
    assert!(ring.remove("k1").is_err());
    assert_eq!(ring.promote("k9"), Err(EncryptionError::UnknownKey { key_id: "k9".into() }));
    assert!(ring.add("k1", [0; 32]).is_err());
    assert_eq!(ring.key_ids(), ["k1"]);
    for bad in ["", "a b", "a\"b", "a\\b", "a=b", "a;b", "a#b", "ä", &"x".repeat(257)] {
        assert!(InMemoryKeyRing::new(bad, [0; 32]).is_err(), "{bad}");
    }
    assert!(InMemoryKeyRing::new("https://vault.example/keys/one/1f", [0; 32]).is_ok());
}

/// A ring of a vault: it answers later, and its wrapped keys are larger.
struct Vault(InMemoryKeyRing);

impl KeyRing for Vault {
    fn wrap<'a>(&'a self, content_key: &'a ContentKey) -> KeyAnswer<'a, WrappedKey> {
        KeyAnswer::later(async move {
            let mut wrapped = self.0.wrap(content_key).await?;
            wrapped.bytes.extend_from_slice(&[0; 432]);
            Ok(WrappedKey { algorithm: "RSA-OAEP-256".to_owned(), ..wrapped })
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a WrappedKey) -> KeyAnswer<'a, ContentKey> {
        KeyAnswer::later(async move {
            let bytes = wrapped.bytes[..80].to_vec();
            let algorithm = "HKDF-SHA256-A256GCM".to_owned();
            self.0.unwrap(&WrappedKey { bytes, algorithm, key_id: wrapped.key_id.clone() }).await
        })
    }
}

#[test]
fn a_vault_can_be_a_key_ring() {
    let vault = Vault(ring());
    let row = sealed_by(&vault, employee());
    assert_eq!(opened(&row, &vault).unwrap(), employee());
}
