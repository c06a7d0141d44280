//! The options of the Blob service: versions, deleted containers, copies from other servers, contents in an object store.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::{Request, Response, ServerProcess, TempDir, run_to_exit};

use crate::{LAZULITE, refusal};

const PORTS: [&str; 6] = ["--table-port", "0", "--queue-port", "0", "--blob-port", "0"];

fn start(location: &Path, options: &[&str], environment: &[(&str, &str)]) -> ServerProcess {
    ServerProcess::start_with(LAZULITE, location, &[&PORTS[..], options].concat(), environment)
}

fn in_memory(options: &[&str]) -> ServerProcess {
    ServerProcess::start_anywhere(LAZULITE, &[&["--in-memory"], &PORTS[..], options].concat(), &[])
}

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

#[track_caller]
fn create(server: &ServerProcess, container: &str) {
    server.send_blob(Request::put(&format!("/{container}?restype=container"))).expect(201);
}

#[track_caller]
fn put(server: &ServerProcess, path: &str, bytes: &[u8]) -> Response {
    server.send_blob(Request::put(path).header("x-ms-blob-type", "BlockBlob").bytes(bytes)).expect(201)
}

fn get(server: &ServerProcess, path: &str) -> Response {
    server.send_blob(Request::get(path))
}

#[test]
fn versions_are_kept_when_they_are_asked_for() {
    let server = in_memory(&["--blob-versions"]);
    create(&server, "abc");
    let first = put(&server, "/abc/x", b"one").required("x-ms-version-id").to_owned();
    put(&server, "/abc/x", b"two");
    assert_eq!(get(&server, "/abc/x").expect(200).body, b"two");
    assert_eq!(get(&server, &format!("/abc/x?versionid={first}")).expect(200).body, b"one");
    let plain = in_memory(&[]);
    create(&plain, "abc");
    assert_eq!(put(&plain, "/abc/x", b"one").header("x-ms-version-id"), None);
}

#[test]
fn a_deleted_container_can_be_restored_when_it_is_asked_for() {
    let server = in_memory(&["--container-retention", "3"]);
    create(&server, "abc");
    put(&server, "/abc/x", b"one");
    server.send_blob(Request::delete("/abc?restype=container")).expect(202);
    get(&server, "/abc/x").expect(404);
    let list = get(&server, "/?comp=list&include=deleted").expect(200).text().to_owned();
    let version = list.split("<Version>").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
    let restore = Request::put("/abc?restype=container&comp=undelete")
        .header("x-ms-deleted-container-name", "abc")
        .header("x-ms-deleted-container-version", version);
    server.send_blob(restore).expect(201);
    assert_eq!(get(&server, "/abc/x").expect(200).body, b"one");
    for wrong in ["0", "366"] {
        let sentence = refusal(&["--in-memory", "--container-retention", wrong], &[]);
        assert!(sentence.contains("takes 1 to 365 days"), "{sentence}");
    }
}

#[test]
fn blobs_leave_the_archive_when_it_is_asked_for() {
    let server = in_memory(&["--rehydrate-after", "1"]);
    create(&server, "abc");
    put(&server, "/abc/x", b"cold");
    let set =
        |tier: &str| server.send_blob(Request::put("/abc/x?comp=tier").header("x-ms-access-tier", tier));
    set("Archive").expect(200);
    set("Hot").expect(202);
    get(&server, "/abc/x").expect(409);
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(get(&server, "/abc/x").expect(200).body, b"cold");
    put(&server, "/abc/x", b"new");
    let sentence = refusal(&["--in-memory", "--rehydrate-after", "31536001"], &[]);
    assert!(sentence.contains("takes up to 31536000 seconds"), "{sentence}");
}

#[test]
fn nothing_that_changed_is_told_with_the_etag() {
    let server = in_memory(&[]);
    create(&server, "abc");
    let etag = put(&server, "/abc/x", b"one").required("ETag").to_owned();
    for request in [Request::get("/abc/x"), Request::head("/abc/x")] {
        let answer = server.send_blob(request.header("If-None-Match", &etag));
        assert_eq!((answer.status, answer.required("ETag")), (304, etag.as_str()));
        assert!(answer.body.is_empty());
    }
}

#[test]
fn a_blob_that_is_asked_too_often_is_busy_and_others_are_not() {
    // A request counts as four rows, so this is one request a second.
    let server = in_memory(&["--throttle=partition=4,account=1000000"]);
    create(&server, "abc");
    for blob in ["/abc/x", "/abc/y"] {
        put(&server, blob, b"one");
    }
    std::thread::sleep(Duration::from_millis(2_000));
    let statuses: Vec<u16> = (0..8).map(|_| get(&server, "/abc/x").status).collect();
    assert!(statuses[0] == 200 && statuses.contains(&503), "{statuses:?}");
    assert_eq!(get(&server, "/abc/y").status, 200);
}

/// A copy of `source` to `path`.
fn copy(server: &ServerProcess, path: &str, source: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::put(path).header("x-ms-copy-source", source);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    server.send_blob(request)
}

#[test]
fn copies_come_from_other_servers_that_are_allowed() {
    let far = in_memory(&[]);
    let far_address = format!("http://{}", far.blob_addr());
    create(&far, "abc");
    far.send_blob(Request::put("/abc?restype=container&comp=acl").header("x-ms-blob-public-access", "blob"))
        .expect(200);
    let bytes = bytes_of(1, 3_000_000);
    let request = Request::put("/abc/x").header("x-ms-blob-type", "BlockBlob").header("x-ms-meta-a", "1");
    far.send_blob(request.header("x-ms-blob-content-type", "text/x").bytes(bytes.clone())).expect(201);
    create(&far, "private");
    put(&far, "/private/x", b"secret");

    let near = in_memory(&["--copy-from", &far_address, "--copy-from", "https://*"]);
    create(&near, "abc");
    let source = format!("{far_address}/devstoreaccount1/abc/x");
    // An account of both servers: the address decides.
    let copied = copy(&near, "/abc/copy", &source, &[]).expect(202);
    assert_eq!(copied.required("x-ms-copy-status"), "success");
    let got = get(&near, "/abc/copy").expect(200);
    assert!(got.body == bytes);
    for (name, value) in [("Content-Type", "text/x"), ("x-ms-meta-a", "1"), ("x-ms-copy-source", &source)] {
        assert_eq!(got.required(name), value);
    }
    copy(&near, "/abc/sync", &source, &[("x-ms-requires-sync", "true")]).expect(202);
    assert!(get(&near, "/abc/sync").expect(200).body == bytes);
    copy(&near, "/abc/put", &source, &[("x-ms-blob-type", "BlockBlob")]).expect(201);
    assert!(get(&near, "/abc/put").expect(200).body == bytes);
    copy(&near, "/abc/staged?comp=block&blockid=AAAA", &source, &[("x-ms-source-range", "bytes=100-299")])
        .expect(201);
    let list = Request::put("/abc/staged?comp=blocklist")
        .body("application/xml", "<BlockList><Latest>AAAA</Latest></BlockList>");
    near.send_blob(list).expect(201);
    assert!(get(&near, "/abc/staged").expect(200).body == bytes[100..300]);

    // What the source refuses, and conditions on it.
    let private = format!("{far_address}/devstoreaccount1/private/x");
    let status = copy(&near, "/abc/no", &private, &[]);
    assert!(status.status >= 400, "{}", status.status);
    assert_eq!(status.required("x-ms-copy-source-status-code"), "401");
    let missing = format!("{far_address}/devstoreaccount1/abc/none");
    copy(&near, "/abc/no", &missing, &[]).expect(404);
    copy(&near, "/abc/no", &source, &[("x-ms-source-if-match", "\"0x1\"")]).expect(412);
    let etag = far.send_blob(Request::head("/abc/x")).required("ETag").to_owned();
    for synchronous in ["true", "false"] {
        let headers = [("x-ms-source-if-none-match", &*etag), ("x-ms-requires-sync", synchronous)];
        let refused = copy(&near, "/abc/no", &source, &headers).expect(412);
        assert_eq!(refused.required("x-ms-error-code"), "SourceConditionNotMet");
    }
    get(&near, "/abc/no").expect(404);

    // The lease of a destination must not end before the copy does.
    put(&near, "/abc/leased", b"old");
    let acquire = Request::put("/abc/leased?comp=lease").header("x-ms-lease-action", "acquire");
    let leased = near.send_blob(acquire.header("x-ms-lease-duration", "60")).expect(201);
    let refused = copy(&near, "/abc/leased", &source, &[("x-ms-lease-id", leased.required("x-ms-lease-id"))]);
    assert_eq!((refused.status, refused.required("x-ms-error-code")), (412, "InfiniteLeaseDurationRequired"));

    // A star fits every name of this server too, and whoever uses one means this server.
    let alias = "https://alias.example:1/devstoreaccount1/abc/copy";
    copy(&near, "/abc/again", alias, &[]).expect(202);
    assert!(get(&near, "/abc/again").expect(200).body == bytes);

    // Nobody is asked who is not allowed: not by default, not by a star that leads to this machine.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for source in [format!("http://127.0.0.1:{port}/x/y/z"), format!("https://localhost:{port}/x/y/z")] {
        let refused = copy(&near, "/abc/no", &source, &[]);
        assert!(refused.status >= 400, "{source}: {}", refused.status);
    }
    let strict = in_memory(&[]);
    create(&strict, "abc");
    assert!(copy(&strict, "/abc/no", &source, &[]).status >= 400);
    assert!(listener.accept().is_err(), "somebody was asked");
    for wrong in ["*", "example.org", "ftp://x"] {
        assert!(
            refusal(&["--in-memory", "--copy-from", wrong], &[]).contains("--copy-from takes"),
            "{wrong}"
        );
    }
}

/// Writes, restarts, checks, backs up and restores with contents at this place.
fn lives_with_contents_at(place: &str, other: &str, environment: &[(&str, &str)]) {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (data, elsewhere, file) = (path("data"), path("elsewhere"), path("b.lzb"));
    let run = |arguments: &[&str]| {
        let output = run_to_exit(LAZULITE, arguments, environment);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let server = start(Path::new(&data), &["--contents", place], environment);
    create(&server, "abc");
    let bytes = bytes_of(1, 9_000_000);
    put(&server, "/abc/long", &bytes);
    put(&server, "/abc/short", b"short");
    put(&server, "/abc/middle", &bytes[..20_000]);
    assert!(get(&server, "/abc/long").expect(200).body == bytes);
    let range = server.send_blob(Request::get("/abc/long").header("Range", "bytes=8500000-8500099"));
    assert!(range.expect(206).body == bytes[8_500_000..8_500_100]);
    assert!(!Path::new(&data).join("contents").exists(), "nothing of it is here");
    assert_eq!(server.stop(), Some(0));

    // Nobody has to say it again, and nobody can say something else.
    let server = start(Path::new(&data), &[], environment);
    assert!(get(&server, "/abc/long").expect(200).body == bytes);
    assert_eq!(server.stop(), Some(0));
    let (code, said) = run(&[&["--location", &data, "--contents", other], &PORTS[..]].concat());
    assert!(code == Some(1) && said.contains("the contents of this store are in"), "{said}");
    let counts = "1 containers, 3 blobs with 9020000 bytes beside their rows";
    let (code, said) = run(&["check", "-l", &data]);
    assert!(code == Some(0) && said.contains(counts) && said.contains("sound"), "{said}");

    let (code, said) = run(&["backup", &file, "-l", &data]);
    assert!(code == Some(0) && said.contains(counts), "{said}");
    let (code, said) = run(&["restore", &file, "-l", &elsewhere, "--contents", other]);
    assert!(code == Some(0) && said.contains(counts), "{said}");
    let restored = start(Path::new(&elsewhere), &[], environment);
    assert!(get(&restored, "/abc/long").expect(200).body == bytes);
    drop(restored);
    let plain = path("plain");
    assert_eq!(run(&["restore", &file, "-l", &plain]).0, Some(0));
    let (code, said) = run(&[&["--location", &plain, "--contents", place], &PORTS[..]].concat());
    assert!(code == Some(1) && said.contains("are in its directory"), "{said}");
}

#[test]
fn contents_may_be_objects_in_a_directory() {
    let objects = TempDir::new().unwrap();
    let other = TempDir::new().unwrap();
    let place = |directory: &TempDir| format!("file://{}", directory.path().display());
    lives_with_contents_at(&place(&objects), &place(&other), &[]);
}

fn versitygw() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("LAZULITE_VERSITYGW") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin"));
    let places = std::env::split_paths(&path).chain(home);
    places.map(|place| place.join("versitygw")).find(|program| program.is_file())
}

struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn contents_may_be_objects_of_a_real_s3_server() {
    let Some(program) = versitygw() else {
        eprintln!("SKIPPED contents_may_be_objects_of_a_real_s3_server: versitygw is not installed");
        return;
    };
    let directory = TempDir::new().unwrap();
    for bucket in ["one", "two"] {
        std::fs::create_dir(directory.path().join(bucket)).unwrap();
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gateway = Command::new(program)
        .args(["--access", "access", "--secret", "secret", "--port", &format!("127.0.0.1:{port}"), "posix"])
        .arg(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let gateway = Gateway(gateway);
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(crate::running::within(Duration::from_secs(20), listens));
    let place = |bucket: &str| format!("s3://{bucket}/blobs?endpoint=http://127.0.0.1:{port}");
    let environment = [("AWS_ACCESS_KEY_ID", "access"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    lives_with_contents_at(&place("one"), &place("two"), &environment);
    let wrong = [("AWS_ACCESS_KEY_ID", "access"), ("AWS_SECRET_ACCESS_KEY", "wrong")];
    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let one = place("one");
    let start = [&["--location", location, "--contents", &one], &PORTS[..]].concat();
    let output = run_to_exit(LAZULITE, &start, &wrong);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("the contents of blobs in s3://one"), "{said}");
    drop(gateway);
}
