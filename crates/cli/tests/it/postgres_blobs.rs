//! Blobs of servers over PostgreSQL: their contents are in a place that all of them share, and every command finds it.
//!
//! A directory stands for the object store. Where there is no PostgreSQL, the tests are skipped by name.

use testkit::{Request, Response, ServerProcess, TempDir};

use crate::LAZULITE;
use crate::postgres::Database;

const PORTS: [&str; 7] = ["--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--no-admin"];

fn serve(database: &Database, place: &str) -> ServerProcess {
    let arguments = [&PORTS[..], &["--contents", place]].concat();
    ServerProcess::start_anywhere(LAZULITE, &arguments, &database.environment())
}

#[track_caller]
fn put(server: &ServerProcess, path: &str, bytes: &[u8]) {
    server.send_blob(Request::put(path).header("x-ms-blob-type", "BlockBlob").bytes(bytes)).expect(201);
}

fn get(server: &ServerProcess, path: &str) -> Response {
    server.send_blob(Request::get(path))
}

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

#[test]
fn blobs_on_an_engine_live_in_a_place_that_servers_and_commands_share() {
    let test = "blobs_on_an_engine_live_in_a_place_that_servers_and_commands_share";
    let Some(database) = Database::or_skip(test) else { return };
    let Some(empty) = Database::or_skip(test) else { return };
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let place = |name: &str| {
        std::fs::create_dir(path(name)).unwrap();
        format!("file://{}", path(name))
    };
    let (objects, others) = (place("objects"), place("others"));
    let (one, other) = (serve(&database, &objects), serve(&database, &objects));
    one.send_blob(Request::put("/abc?restype=container")).expect(201);
    let (first, second) = (bytes_of(1, 900_000), bytes_of(2, 900_000));
    put(&one, "/abc/long", &first);
    assert!(get(&other, "/abc/long").expect(200).body == first);
    put(&other, "/abc/long", &second);
    assert!(get(&one, "/abc/long").expect(200).body == second);
    // A container of the same name counts at the other server at once, and has nothing of the earlier one.
    other.send_blob(Request::delete("/abc?restype=container")).expect(202);
    other.send_blob(Request::put("/abc?restype=container")).expect(201);
    get(&one, "/abc/long").expect(404);
    put(&one, "/abc/long", &first);
    assert!(get(&other, "/abc/long").expect(200).body == first);

    let elsewhere = database.refused(&[&PORTS[..], &["--contents", &others]].concat());
    assert!(elsewhere.contains("the contents of this store are in"), "{elsewhere}");
    let counts = "1 containers, 1 blobs with 900000 bytes beside their rows";
    let checked = database.run(&["check"]);
    assert!(checked.contains(counts) && checked.contains("sound"), "{checked}");
    let file = path("b.lzb");
    assert!(database.run(&["backup", &file]).contains(counts));
    let moved = database.refused(&["move", "--from", "engine", "--to", &path("moved")]);
    assert!(moved.contains("the store has containers of blobs, such as abc"), "{moved}");

    let nowhere = empty.refused(&["restore", &file]);
    assert!(nowhere.contains("the contents of blobs have no place here"), "{nowhere}");
    assert!(empty.run(&["restore", &file, "--contents", &others]).contains(counts));
    let restored = serve(&empty, &others);
    assert!(get(&restored, "/abc/long").expect(200).body == first);
    let one_more = ["restore", &file, "--container", "abc", "--as", "def"];
    assert!(empty.run(&one_more).contains(counts));
    assert!(get(&restored, "/def/long").expect(200).body == first);
}

#[test]
fn without_a_place_for_contents_a_server_on_an_engine_has_no_blobs_and_says_so() {
    let test = "without_a_place_for_contents_a_server_on_an_engine_has_no_blobs_and_says_so";
    let Some(database) = Database::or_skip(test) else { return };
    let server = database.serve(&[]);
    let said = server.line_with("The Blob service is not started");
    assert!(said.contains("--contents") && !server.said().contains("Blob service is successfully"), "{said}");
    let refused = database.refused(&["--services", "table,blob", "--table-port", "0", "--blob-port", "0"]);
    assert!(refused.contains("--contents") && refused.contains("--services table,queue"), "{refused}");
}
