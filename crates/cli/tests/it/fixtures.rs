//! Stores and backups written by earlier versions open, and hold the same data.

use std::path::{Path, PathBuf};

use testkit::{Request, ServerProcess, TempDir, run_to_exit};

use crate::LAZULITE;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// The sample's entity with a property of every type.
const EVERY_TYPE: &str = r#"{"PartitionKey":"types","RowKey":"all","s":"text é😀","empty":"","i":-2147483648,"l@odata.type":"Edm.Int64","l":"9223372036854775807","d":1.0,"nan@odata.type":"Edm.Double","nan":"NaN","t":true,"f":false,"when@odata.type":"Edm.DateTime","when":"2024-02-29T12:34:56.789Z","g@odata.type":"Edm.Guid","g":"c9da6455-213d-42c9-9a79-3e9149a57833","b@odata.type":"Edm.Binary","b":"AP8="}"#;

fn expect_the_sample(location: &Path) {
    let check = run_to_exit(LAZULITE, &["check", "-l", location.to_str().unwrap()], &[]);
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));
    let server = ServerProcess::start(LAZULITE, location);
    let tables = server.send(Request::get("/Tables")).expect(200).json();
    let names: Vec<_> = tables["value"].as_array().unwrap().iter().map(|table| &table["TableName"]).collect();
    assert_eq!(names, ["Empty", "Every"]);

    let found = server.send(Request::get("/Every()")).expect(200).json();
    let found = found["value"].as_array().unwrap();
    let rows: Vec<_> = found.iter().map(|entity| entity["RowKey"].as_str().unwrap()).collect();
    assert_eq!(rows, ["", "a", "é", "😀", "\u{E000}", "all"]);
    assert!(found.iter().all(|entity| entity["Timestamp"].as_str().unwrap().starts_with("2026-")));
    let mut every = found[5].clone();
    every
        .as_object_mut()
        .unwrap()
        .retain(|name, _| !name.starts_with("odata.") && !name.starts_with("Timestamp"));
    assert_eq!(every, serde_json::from_str::<serde_json::Value>(EVERY_TYPE).unwrap());

    let acl = server.send(Request::get("/Every?comp=acl")).expect(200);
    assert!(acl.text().contains("<Id>one</Id>"), "{}", acl.text());
    server.send(Request::post("/Every").json(r#"{"PartitionKey":"new","RowKey":"new"}"#)).expect(201);
}

/// The service properties of the samples since format 4.
const PROPERTIES: &str = "/?restype=service&comp=properties";
const CORS_RULE: &str = "<CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://www.contoso.com</AllowedOrigins><AllowedHeaders>x-ms-meta-target*</AllowedHeaders><ExposedHeaders>x-ms-meta-data*</ExposedHeaders><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule>";

fn expect_the_cors_rule(location: &Path) {
    let server = ServerProcess::start(LAZULITE, location);
    let properties = server.send(Request::get(PROPERTIES)).expect(200);
    assert!(properties.text().contains(CORS_RULE), "{}", properties.text());
}

/// Makes the samples of the present format. To keep them for a new format, run it with the variable `FIXTURES` set to a
/// directory, and copy from there what is neither `lock` nor `control`.
#[test]
fn the_samples_of_the_present_format_are_made_and_open() {
    let temporary = TempDir::new().unwrap();
    let kept = std::env::var_os("FIXTURES").map(PathBuf::from);
    for (name, is_closed) in [("closed", true), ("killed", false)] {
        let location = temporary.path().join(name);
        let server = ServerProcess::start(LAZULITE, &location);
        for table in ["Every", "Empty"] {
            let body = format!("{{\"TableName\":\"{table}\"}}");
            server.send(Request::post("/Tables").json(&body)).expect(201);
        }
        server.send(Request::post("/Every").json(EVERY_TYPE)).expect(201);
        server.send(Request::post("/Every").json(r#"{"PartitionKey":"","RowKey":""}"#)).expect(201);
        for row in ["a", "é", "😀", "\u{E000}"] {
            let body = format!("{{\"PartitionKey\":\"order\",\"RowKey\":\"{row}\"}}");
            server.send(Request::post("/Every").json(&body)).expect(201);
        }
        let policy = "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2026-01-01T00:00:00Z</Start><Expiry>2036-01-01T00:00:00Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>";
        server.send(Request::put("/Every?comp=acl").body("application/xml", policy)).expect(204);
        let properties =
            format!("<StorageServiceProperties><Cors>{CORS_RULE}</Cors></StorageServiceProperties>");
        server.send(Request::put(PROPERTIES).body("application/xml", properties)).expect(202);
        if is_closed {
            assert_eq!(server.stop(), Some(0))
        } else {
            server.kill()
        }
        if let Some(kept) = &kept {
            std::fs::create_dir_all(kept.join(name)).unwrap();
            for entry in std::fs::read_dir(&location).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), kept.join(name).join(entry.file_name())).unwrap();
            }
        }
        expect_the_sample(&location);
        expect_the_cors_rule(&location);
    }
}

fn opened_copy(name: &str) {
    let directory = TempDir::new().unwrap();
    let location = directory.path().join("data");
    std::fs::create_dir(&location).unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), location.join(entry.file_name())).unwrap();
    }
    expect_the_sample(&location);
    if name.contains("format-4") {
        expect_the_cors_rule(&location);
    }
}

#[test]
fn a_store_of_format_4_opens() {
    opened_copy("store-format-4-closed");
    opened_copy("store-format-4-killed");
}

#[test]
fn a_store_of_format_2_that_was_closed_opens() {
    opened_copy("store-format-2-closed");
}

#[test]
fn a_store_of_format_2_that_was_killed_opens() {
    opened_copy("store-format-2-killed");
}

#[test]
fn a_store_of_format_3_from_before_families_opens() {
    opened_copy("store-format-3-closed");
    opened_copy("store-format-3-killed");
}

#[test]
fn a_backup_of_format_1_restores() {
    let directory = TempDir::new().unwrap();
    let location = directory.path().join("data");
    let file = fixture("backup-format-1.lzb");
    let arguments = ["restore", file.to_str().unwrap(), "-l", location.to_str().unwrap()];
    let output = run_to_exit(LAZULITE, &arguments, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    expect_the_sample(&location);
}
