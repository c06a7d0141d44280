//! The commands know blobs: `backup`, `restore`, `check`, `account` and `sas`, with a server and without one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::{FAR_EXPIRY, Request, Response, ServerProcess, TempDir, run_to_exit};

use crate::{LAZULITE, refusal};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let output = run_to_exit(LAZULITE, arguments, &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{}", text(&output.stderr));
    said
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
fn put(server: &ServerProcess, path: &str, bytes: &[u8]) {
    let request = Request::put(path).header("x-ms-blob-type", "BlockBlob").bytes(bytes);
    server.send_blob(request).expect(201);
}

fn get(server: &ServerProcess, path: &str) -> Response {
    server.send_blob(Request::get(path))
}

/// The files of contents in a store.
fn extents(data: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(data).join("contents")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The bytes that the extents take on the disk.
#[cfg(unix)]
fn allocated_bytes(data: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    extents(data).iter().map(|path| path.metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn blobs_are_backed_up_checked_and_restored_elsewhere_and_beside_themselves() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (data, elsewhere, file) = (path("data"), path("elsewhere"), path("b.lzb"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    create(&server, "pictures");
    create(&server, "none");
    let (short, long) = (b"short".to_vec(), bytes_of(1, 5_000_000));
    put(&server, "/pictures/short", &short);
    put(&server, "/pictures/long", &long);
    let snapshot = server.send_blob(Request::put("/pictures/long?comp=snapshot")).expect(201);
    let snapshot = snapshot.required("x-ms-snapshot").to_owned();
    let etag = get(&server, "/pictures/long").expect(200).required("ETag").to_owned();

    let counts = "2 containers, 2 blobs with 5000000 bytes beside their rows";
    let said = succeeds(&["backup", &file, "-l", &data]);
    assert!(said.contains(counts), "{said}");
    let said = succeeds(&["check", "--backup", &file]);
    assert!(said.contains(counts) && said.contains("sound"), "{said}");
    let said = succeeds(&["check", "-l", &data]);
    assert!(said.contains("while it is being served") && said.contains(counts), "{said}");

    let said = succeeds(&["restore", &file, "-l", &elsewhere]);
    assert!(said.contains(counts) && said.contains("devstoreaccount1"), "{said}");
    let said = succeeds(&["check", "-l", &elsewhere]);
    assert!(said.contains("at rest") && said.contains(counts) && said.contains("\nsound"), "{said}");
    let copy = ServerProcess::start(LAZULITE, Path::new(&elsewhere));
    for path in ["/pictures/long", &format!("/pictures/long?snapshot={snapshot}")] {
        let got = get(&copy, path).expect(200);
        assert!(got.body == long && got.required("ETag") == etag, "{path}");
    }
    assert_eq!(get(&copy, "/pictures/short").expect(200).body, short);
    drop(copy);

    let one = ["restore", &file, "-l", &data, "--container", "pictures", "--as"];
    let said = succeeds(&[&one[..], &["monday"]].concat());
    assert!(said.contains("1 containers, 2 blobs with 5000000 bytes"), "{said}");
    assert!(get(&server, "/monday/long").expect(200).body == long);
    let taken = refusal(&[&one[..], &["monday"]].concat(), &[]);
    assert!(taken.contains("has a container 'monday' already"), "{taken}");
    let wrong = refusal(&[&one[..], &["Monday"]].concat(), &[]);
    assert!(wrong.contains("not the name of a container"), "{wrong}");
    let whole = refusal(&["restore", &file, "-l", &data], &[]);
    assert!(whole.contains("--container"), "{whole}");
    assert_eq!(server.stop(), Some(0));
    succeeds(&[&one[..], &["tuesday"]].concat());
    // The store at rest, without and with the Blob service in front of it.
    let said = succeeds(&["check", "-l", &data]);
    let counts = "4 containers, 6 blobs with 15000000 bytes beside their rows";
    assert!(said.contains(counts) && said.contains("\nsound"), "{said}");
    let second = path("second.lzb");
    assert!(succeeds(&["backup", &second, "-l", &data]).contains(counts));
    let ports = ["--services", "table,queue", "--table-port", "0", "--queue-port", "0"];
    let server = ServerProcess::start_with(LAZULITE, Path::new(&data), &ports, &[]);
    let third = path("third.lzb");
    assert!(succeeds(&["backup", &third, "-l", &data]).contains(counts));
    drop(server);
}

#[test]
fn damage_in_an_extent_is_found_and_no_wrong_byte_is_backed_up() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data").to_str().unwrap().to_owned();
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    create(&server, "pictures");
    for number in 0..3 {
        put(&server, &format!("/pictures/{number}"), &bytes_of(number, 1_000_000));
    }
    assert_eq!(server.stop(), Some(0));
    assert!(succeeds(&["check", "-l", &data]).contains("\nsound"));
    // Change one byte of the second blob, wherever it lies.
    let wanted = &bytes_of(1, 1_000_000)[500_000..500_016];
    let mut is_changed = false;
    for extent in extents(&data) {
        let mut bytes = std::fs::read(&extent).unwrap();
        if let Some(at) = bytes.windows(16).position(|window| window == wanted) {
            bytes[at + 3] ^= 0x10;
            std::fs::write(&extent, bytes).unwrap();
            is_changed = true;
        }
    }
    assert!(is_changed);
    for is_running in [false, true] {
        let server = is_running.then(|| ServerProcess::start(LAZULITE, Path::new(&data)));
        let output = run_to_exit(LAZULITE, &["check", "-l", &data], &[]);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("contents: container devstoreaccount1/pictures: blob \"1\""), "{said}");
        assert!(said.contains("DAMAGED: 1 findings"), "{said}");
        let file = directory.path().join("b.lzb");
        let refused = run_to_exit(LAZULITE, &["backup", file.to_str().unwrap(), "-l", &data], &[]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(!file.exists());
        if let Some(server) = &server {
            assert!(get(server, "/pictures/0").expect(200).body == bytes_of(0, 1_000_000));
        }
    }
}

#[test]
fn a_row_without_its_bytes_is_damage_and_bytes_without_a_row_are_not() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().to_str().unwrap().to_owned();
    let server = ServerProcess::start(LAZULITE, directory.path());
    create(&server, "pictures");
    put(&server, "/pictures/kept", &bytes_of(1, 100_000));
    create(&server, "gone");
    put(&server, "/gone/x", &bytes_of(2, 300_000));
    server.send_blob(Request::delete("/gone?restype=container")).expect(202);
    let said = succeeds(&["check", "-l", &data]);
    assert!(said.contains("300000 bytes that no blob has any more") && said.contains("\nsound"), "{said}");
    assert_eq!(server.stop(), Some(0));
    assert!(succeeds(&["check", "-l", &data]).contains("300000 bytes that no blob has any more"));
    for extent in extents(&data) {
        std::fs::remove_file(extent).unwrap();
    }
    let output = run_to_exit(LAZULITE, &["check", "-l", &data], &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("blob \"kept\": the content is not in this store"), "{said}");
    // The whole directory is missing.
    std::fs::remove_dir(directory.path().join("contents")).unwrap();
    let output = run_to_exit(LAZULITE, &["check", "-l", &data], &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    let file = directory.path().join("b.lzb");
    let refused = refusal(&["backup", file.to_str().unwrap(), "-l", &data], &[]);
    assert!(refused.contains("no backup was made"), "{refused}");
}

#[cfg(unix)]
#[test]
fn purging_an_account_gives_its_space_back() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().to_str().unwrap().to_owned();
    for is_running in [true, false] {
        succeeds(&["account", "add", "mine", "-l", &data]);
        let server = ServerProcess::start(LAZULITE, directory.path());
        let sas =
            ["sas", "--account", "mine", "-l", &data, "--permissions", "rwdlacup", "--expiry", FAR_EXPIRY];
        let token = succeeds(&sas).trim_end().to_owned();
        let send = |request: Request| {
            server.send_blob(request.path_account("mine").sas(&token).header("x-ms-version", "2021-12-02"))
        };
        send(Request::put("/pictures?restype=container")).expect(201);
        let long = Request::put("/pictures/x").header("x-ms-blob-type", "BlockBlob");
        send(long.bytes(bytes_of(1, 20_000_000))).expect(201);
        assert!(allocated_bytes(&data) > 20_000_000);
        let server = if is_running {
            Some(server)
        } else {
            assert_eq!(server.stop(), Some(0));
            None
        };
        succeeds(&["account", "remove", "mine", "-l", &data]);
        let refused = refusal(&["account", "add", "mine", "-l", &data], &[]);
        assert!(refused.contains("0 tables, 0 queues and 1 containers under the name 'mine'"), "{refused}");
        let purged = succeeds(&["account", "purge", "mine", "-l", &data]);
        assert_eq!(purged, "mine: 0 tables, 0 queues and 1 containers deleted\n");
        let is_given_back = || allocated_bytes(&data) < 2_000_000;
        assert!(crate::running::within(std::time::Duration::from_secs(20), is_given_back));
        drop(server);
    }
}

#[test]
fn a_token_opens_its_container_or_its_blob_and_nothing_else() {
    let ports = ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"];
    let server = ServerProcess::start_anywhere(LAZULITE, &ports, &[]);
    for container in ["pictures", "other"] {
        create(&server, container);
        put(&server, &format!("/{container}/a%20b"), b"bytes");
    }
    let status = |token: &str, path: &str| {
        let request = Request::get(path).path_account("devstoreaccount1").sas(token);
        server.send_blob(request.header("x-ms-version", "2021-12-02")).status
    };
    for version in ["2015-04-05", "2019-02-02", "2020-12-06"] {
        let token = |options: &[&str]| {
            let base = ["sas", "--expiry", FAR_EXPIRY, "--sas-version", version, "--container", "pictures"];
            let output = run_to_exit(LAZULITE, &[&base[..], options].concat(), &[]);
            (text(&output.stdout).trim_end().to_owned(), text(&output.stderr))
        };
        let (whole, said) = token(&["--permissions", "rl"]);
        assert!(said.contains("Grants on container pictures of devstoreaccount1: read, list"), "{said}");
        assert_eq!(status(&whole, "/pictures/a%20b"), 200, "{version}");
        assert_eq!(status(&whole, "/pictures?restype=container&comp=list"), 200, "{version}");
        assert_eq!(status(&whole, "/other/a%20b"), 403, "{version}");
        let (one, said) = token(&["--permissions", "r", "--blob", "a b"]);
        assert!(said.contains("Grants on blob pictures/a b of devstoreaccount1: read"), "{said}");
        assert_eq!(status(&one, "/pictures/a%20b"), 200, "{version}");
        assert_eq!(status(&one, "/pictures/c"), 403, "{version}");
    }
    assert!(refusal(&["sas", "--blob", "x"], &[]).contains("goes with --container"));
}

/// What a writer puts with its nth write: so many bytes, all of which tell the number.
fn numbered(number: u64) -> Vec<u8> {
    let length = [500, 9_000, 70_000, 400_000][(number % 4) as usize];
    number.to_le_bytes().iter().copied().cycle().take(length).collect()
}

/// The number of a content that is whole; a panic if it is not.
#[track_caller]
fn number_in(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == numbered(number), "half of one write and half of another");
    number
}

/// Each writer overwrites a first blob and then a second one with the same number, one after the other. So at any moment the first
/// has the number of the second, or the next one.
#[test]
fn a_backup_under_load_is_one_moment() {
    const WRITER_COUNT: usize = 4;
    const BEFORE: u64 = 20;
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (data, elsewhere) = (path("data"), path("elsewhere"));
    let server = ServerProcess::start(LAZULITE, Path::new(&data));
    create(&server, "load");
    // Enough to be saved that the backup takes a while.
    for number in 0..40 {
        put(&server, &format!("/load/still/{number}"), &bytes_of(number, 500_000));
    }
    let acknowledged: Vec<AtomicU64> = (0..WRITER_COUNT).map(|_| AtomicU64::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let backups = std::thread::scope(|scope| {
        for (writer, last) in acknowledged.iter().enumerate() {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                for number in 1.. {
                    put(server, &format!("/load/{writer}/first"), &numbered(number));
                    put(server, &format!("/load/{writer}/second"), &numbered(number));
                    last.store(number, Ordering::SeqCst);
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                }
            });
        }
        let have_written = || acknowledged.iter().all(|last| last.load(Ordering::SeqCst) >= BEFORE);
        assert!(crate::running::within(std::time::Duration::from_secs(60), have_written));
        let mut backups = Vec::new();
        for round in 0..3 {
            let file = path(&format!("{round}.lzb"));
            let before: Vec<u64> = acknowledged.iter().map(|last| last.load(Ordering::SeqCst)).collect();
            succeeds(&["backup", &file, "-l", &data, "--rate", "20"]);
            backups.push((file, before));
        }
        is_over.store(true, Ordering::SeqCst);
        backups
    });
    for (round, (file, before)) in backups.iter().enumerate() {
        let place = format!("{elsewhere}{round}");
        succeeds(&["restore", file, "-l", &place]);
        assert!(succeeds(&["check", "-l", &place]).contains("\nsound"));
        let copy = ServerProcess::start(LAZULITE, Path::new(&place));
        for number in 0..40 {
            assert!(
                get(&copy, &format!("/load/still/{number}")).expect(200).body == bytes_of(number, 500_000)
            );
        }
        for (writer, before) in before.iter().enumerate() {
            let [first, second] = ["first", "second"]
                .map(|name| number_in(&get(&copy, &format!("/load/{writer}/{name}")).expect(200).body));
            assert!(first == second || first == second + 1, "{first} and {second}");
            assert!(
                second >= *before,
                "{before} was acknowledged before the backup began, which has {second}"
            );
        }
    }
    assert!(succeeds(&["check", "-l", &data]).contains("\nsound"));
}
