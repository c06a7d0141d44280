//! `lazulite backup`, `restore` and `check` as an operator runs them, with a server running and without one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use testkit::{
    Batch, RawClient, Request, ServerProcess, TempDir, batch_parts, entity_json, entity_path, run_to_exit,
};

use crate::LAZULITE;

fn lazulite(arguments: &[&str]) -> Output {
    run_to_exit(LAZULITE, arguments, &[])
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let output = lazulite(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
    text(&output)
}

#[track_caller]
fn fails(code: i32, arguments: &[&str]) -> String {
    let output = lazulite(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

fn fill(server: &ServerProcess, table: &str, batches: usize) {
    server.send(Request::post("/Tables").json(&format!("{{\"TableName\":\"{table}\"}}"))).expect(201);
    for number in 0..batches {
        let mut batch = Batch::new();
        for row in 0..100 {
            let members = format!("\"n\":{row},\"text\":\"é😀 {number}\"");
            batch =
                batch.insert(table, &entity_json(&format!("p{number:03}"), &format!("r{row:02}"), &members));
        }
        let response = server.send(batch.request()).expect(202);
        assert_eq!(batch_parts(&response).len(), 100);
    }
}

/// All entities of a table by key, with their Timestamps and ETags.
fn entities(server: &ServerProcess, table: &str) -> BTreeMap<(String, String), Value> {
    let mut found = BTreeMap::new();
    let first = Request::get(&format!("/{table}()")).header("Accept", "application/json;odata=fullmetadata");
    let mut request = first.clone();
    loop {
        let response = server.send(request).expect(200);
        for entity in response.json()["value"].as_array().unwrap() {
            let mut entity = entity.clone();
            let key = |name: &str| entity[name].as_str().unwrap().to_owned();
            let key = (key("PartitionKey"), key("RowKey"));
            // Drop the links, because they contain the server's port and the table's name.
            for link in ["odata.id", "odata.editLink", "odata.type"] {
                entity.as_object_mut().unwrap().remove(link);
            }
            assert!(found.insert(key, entity).is_none());
        }
        let Some(next) = response.header("x-ms-continuation-NextPartitionKey") else { return found };
        request = first.clone().query("NextPartitionKey", next);
        if let Some(row) = response.header("x-ms-continuation-NextRowKey") {
            request = request.query("NextRowKey", row);
        }
    }
}

#[test]
fn a_running_server_is_backed_up_and_restored_elsewhere_to_the_last_timestamp() {
    let directory = TempDir::new().unwrap();
    let (data, elsewhere, file) =
        (path(&directory, "data"), path(&directory, "elsewhere"), path(&directory, "b.lzb"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    fill(&server, "People", 12);
    fill(&server, "Empty", 0);
    let policies = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Permission>r</Permission>\
                    </AccessPolicy></SignedIdentifier></SignedIdentifiers>";
    server.send(Request::put("/People?comp=acl").body("application/xml", policies)).expect(204);
    let before = entities(&server, "People");
    assert_eq!(before.len(), 1200);

    let said = succeeds(&["backup", &file, "-l", &data]);
    assert!(said.contains("2 tables, 1200 entities"), "{said}");
    assert!(fails(1, &["backup", &file, "-l", &data]).contains("is there already"));
    assert!(succeeds(&["check", "--backup", &file]).contains("sound"));
    let said = succeeds(&["check", "-l", &data]);
    assert!(
        said.contains("while it is being served: 2 tables, 1200 entities") && said.contains("\nsound"),
        "{said}"
    );

    let said = succeeds(&["restore", &file, "-l", &elsewhere]);
    assert!(said.contains("2 tables, 1200 entities") && said.contains("devstoreaccount1"), "{said}");
    let said = succeeds(&["check", "-l", &elsewhere]);
    assert!(said.contains("at rest: 2 tables, 1200 entities") && said.contains("\nsound"), "{said}");
    let copy = ServerProcess::start(LAZULITE, Path::new(&elsewhere));
    assert!(entities(&copy, "People") == before);
    assert!(entities(&copy, "Empty").is_empty());
    let acl = copy.send(Request::get("/People?comp=acl")).expect(200);
    assert!(acl.text().contains("<Id>one</Id>"), "{}", acl.text());
    // Table names keep their case, and ETags still match.
    let listed = copy.send(Request::get("/Tables")).expect(200).text().to_owned();
    assert!(listed.contains("\"People\"") && listed.contains("\"Empty\""), "{listed}");
    let (key, entity) = before.first_key_value().unwrap();
    let etag = entity["odata.etag"].as_str().unwrap();
    let replace =
        Request::put(&entity_path("People", &key.0, &key.1)).header("If-Match", etag).json("{\"n\":-1}");
    copy.send(replace).expect(204);
}

#[test]
fn one_table_comes_back_beside_the_old_one_with_and_without_a_server() {
    let directory = TempDir::new().unwrap();
    let (data, file) = (path(&directory, "data"), path(&directory, "b.lzb"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    fill(&server, "People", 3);
    succeeds(&["backup", &file, "-l", &data, "--rate", "0"]);
    server.send(Request::delete(&entity_path("People", "p000", "r00")).header("If-Match", "*")).expect(204);

    let said = succeeds(&["restore", &file, "-l", &data, "--table", "people", "--as", "Before"]);
    assert!(said.contains("1 tables, 300 entities"), "{said}");
    assert_eq!(entities(&server, "Before").len(), 300);
    assert_eq!(entities(&server, "People").len(), 299);
    let taken = fails(1, &["restore", &file, "-l", &data, "--table", "People", "--as", "before"]);
    assert!(taken.contains("has a table 'before' already"), "{taken}");
    assert!(fails(1, &["restore", &file, "-l", &data, "--table", "Nobody"]).contains("no table 'Nobody'"));
    let whole = fails(1, &["restore", &file, "-l", &data]);
    assert!(whole.contains("is a store already"), "{whole}");

    drop(server);
    succeeds(&["restore", &file, "-l", &data, "--table", "People", "--as", "Again"]);
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    assert_eq!(entities(&server, "Again"), entities(&server, "Before"));
}

#[test]
fn a_backup_under_load_is_one_moment_and_no_batch_is_torn() {
    let directory = TempDir::new().unwrap();
    let (data, elsewhere, file) =
        (path(&directory, "data"), path(&directory, "elsewhere"), path(&directory, "b.lzb"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    fill(&server, "ballast", 30);
    server.send(Request::post("/Tables").json("{\"TableName\":\"load\"}")).expect(201);
    let stop = AtomicBool::new(false);
    // In each round the writer puts its next number into two rows that sort far apart, one after the other, and then
    // into both rows of a third partition in one transaction.
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = RawClient::connect(server.addr()).unwrap();
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let json = format!("{{\"n\":{number}}}");
                for partition in ["a", "z"] {
                    let put = Request::put(&entity_path("load", partition, "r")).json(&json);
                    assert_eq!(client.exchange(&server.bytes_of(&put)).unwrap().status, 204);
                }
                let mut batch = Batch::new();
                for row in ["1", "2"] {
                    batch = batch.operation("PUT", &entity_path("load", "m", row), &[], Some(&json));
                }
                assert_eq!(client.exchange(&server.bytes_of(&batch.request())).unwrap().status, 202);
            }
            number
        });
        for round in 0..5 {
            succeeds(&["backup", &format!("{file}{round}"), "-l", &data]);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let mut last = 0;
    for round in 0..5 {
        let place = format!("{elsewhere}{round}");
        succeeds(&["restore", &format!("{file}{round}"), "-l", &place]);
        let copy = ServerProcess::start(LAZULITE, Path::new(&place));
        let found = entities(&copy, "load");
        let n = |partition: &str, row: &str| {
            found
                .get(&(partition.to_owned(), row.to_owned()))
                .map_or(0, |entity| entity["n"].as_u64().unwrap())
        };
        let (a, m, z) = (n("a", "r"), n("m", "1"), n("z", "r"));
        assert_eq!(m, n("m", "2"), "a torn transaction");
        // An earlier write of a round is never behind a later one, and never more than one round ahead of it.
        assert!(z <= a && a <= z + 1 && m <= z && z <= m + 1, "no moment of the server: {a} {z} {m}");
        assert!(a >= last && a <= written);
        last = a;
    }
}

#[test]
fn damage_is_found_and_told_by_its_exit_code() {
    let directory = TempDir::new().unwrap();
    let (data, elsewhere, file) =
        (path(&directory, "data"), path(&directory, "elsewhere"), path(&directory, "b.lzb"));
    assert!(fails(1, &["check", "-l", &data]).contains("there is no Lazulite store"));
    assert!(fails(1, &["backup", &file, "-l", &data]).contains("there is no Lazulite store"));
    assert!(!Path::new(&data).exists(), "a command that reads makes no store");
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    fill(&server, "People", 20);
    drop(server);
    succeeds(&["backup", &file, "-l", &data]);

    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    std::fs::write(&file, &flipped).unwrap();
    assert!(fails(2, &["check", "--backup", &file]).contains("it is damaged at byte"));
    assert!(fails(1, &["restore", &file, "-l", &elsewhere]).contains("it is damaged at byte"));
    assert!(!Path::new(&elsewhere).join("LAZULITE").exists());
    // The leftovers of the failed restore do not stop the next one.
    std::fs::write(&file, &whole).unwrap();
    succeeds(&["restore", &file, "-l", &elsewhere]);
    std::fs::write(&file, b"something else").unwrap();
    assert!(fails(2, &["check", "--backup", &file]).contains("not a Lazulite backup"));

    // Damage a byte of an entity, wherever the file holds it.
    let store = Path::new(&data).join("tables.redb");
    let mut bytes = std::fs::read(&store).unwrap();
    let needle = "é😀 7".as_bytes();
    let places: Vec<usize> =
        (0..bytes.len() - needle.len()).filter(|at| bytes[*at..].starts_with(needle)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + 2] ^= 0x01;
    }
    std::fs::write(&store, bytes).unwrap();
    let said = fails(2, &["check", "-l", &data]);
    assert!(said.contains("tables.redb") && said.contains("DAMAGED"), "{said}");
}

/// A backup with one table and one row, with correct checksums, whose row and last version are these.
fn crafted(version: u64) -> Vec<u8> {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let text = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text].concat();
    // An entity with the keys `p` and `r` and no properties.
    let record = [1, 42, 0, 0, 0, 0];
    let blocks = [
        (1, [number(7), number(version), number(1), text(b"0.1.0")].concat()),
        (3, [text(b"devstoreaccount1"), text(b"Crafted"), vec![0]].concat()),
        (4, [number(version), text(b"p"), text(b"r"), text(&record)].concat()),
        (5, [0, 1, 1, 0, 0, 0, 0, 0, 0, 0].map(number).concat()),
    ];
    backup::framed(blocks.iter().map(|(kind, raw)| (*kind, &raw[..])))
}

#[test]
fn a_crafted_backup_does_not_move_the_versions_of_a_store() {
    let directory = TempDir::new().unwrap();
    let (data, elsewhere, file) =
        (path(&directory, "data"), path(&directory, "elsewhere"), path(&directory, "b.lzb"));
    let mut server = Some(ServerProcess::start(LAZULITE, Path::new(&data)));
    std::fs::write(&file, crafted(u64::MAX)).unwrap();
    assert!(fails(2, &["check", "--backup", &file]).contains("after the year 9000"));
    assert!(fails(1, &["restore", &file, "-l", &elsewhere]).contains("after the year 9000"));
    assert!(fails(1, &["restore", &file, "-l", &data, "--table", "Crafted"]).contains("after the year 9000"));

    // 2100-01-01T00:00:00Z.
    std::fs::write(&file, crafted(662_380_416_000_000_000)).unwrap();
    assert!(succeeds(&["check", "--backup", &file]).contains("sound"));
    for name in ["WhileServed", "AtRest"] {
        if name == "AtRest" {
            server.take();
        }
        succeeds(&["restore", &file, "-l", &data, "--table", "Crafted", "--as", name]);
        let serving = server.get_or_insert_with(|| ServerProcess::start(LAZULITE, Path::new(&data)));
        let row = entity_path(name, "p", "r");
        let restored = serving.send(Request::get(&row)).expect(200);
        let (now, etag) = (restored.json()["Timestamp"].clone(), restored.required("ETag").to_owned());
        assert!(now.as_str().unwrap() < "2100", "{now}");
        let update = Request::put(&row).header("If-Match", &etag).json("{\"n\":1}");
        let updated = serving.send(update.clone()).expect(204).required("ETag").to_owned();
        assert!(updated != etag && !updated.contains("2100"), "{updated}");
        serving.send(update).expect_error(412, "UpdateConditionNotSatisfied");
    }
    // A whole store continues where the other one ended, and says so.
    let said = succeeds(&["restore", &file, "-l", &elsewhere]);
    assert!(said.contains("2100-01-01T00:00:00Z, which is ahead of this machine's clock"), "{said}");
}
