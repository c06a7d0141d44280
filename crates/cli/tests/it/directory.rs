//! Data directories that are missing, hold something else, are damaged, or are in use by another process.

use std::path::Path;

use testkit::{Request, ServerProcess, TempDir};

use crate::running::{Running, assert_private, run};
use crate::{LAZULITE, refusal};

#[track_caller]
fn refused(location: &Path) -> String {
    let location = location.to_str().unwrap();
    let sentence =
        refusal(&["--location", location, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[]);
    assert!(sentence.contains(location), "the sentence names the place: {sentence}");
    sentence
}

#[test]
fn a_missing_directory_is_made() {
    let directory = TempDir::new().unwrap();
    let location = directory.path().join("some").join("where");
    let server = ServerProcess::start(LAZULITE, &location);
    server.send(Request::get("/Tables")).expect(200);
    assert!(location.is_dir());
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("thesis.txt"), "ten years of work").unwrap();
    refused(directory.path());
    let names: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["thesis.txt"], "nothing was added");
}

#[test]
fn a_place_that_is_no_directory_is_refused() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "text").unwrap();
    refused(&file);
    refused(&file.join("below"));
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(directory.path().join("probe"), "").is_ok() {
        println!("SKIPPED: this user may write anywhere");
        return;
    }
    refused(directory.path());
}

#[test]
fn a_store_that_is_damaged_is_refused() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
    assert_eq!(server.stop(), Some(0));
    let mut damaged = 0;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::metadata(&path).unwrap();
        let length = metadata.len();
        if length > 100 && metadata.is_file() {
            std::fs::write(&path, vec![0xA5; length as usize]).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "the store has a file with data in it");
    refused(directory.path());
}

#[test]
fn two_processes_do_not_share_a_directory() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    refused(directory.path());
    server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
    // A killed process leaves no lock behind.
    server.kill();
    let server = ServerProcess::start(LAZULITE, directory.path());
    server.send(Request::get("/Tables('mytable')")).expect(200);
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone_even_in_a_directory_that_all_may_enter() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let set = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let entries = || std::fs::read_dir(location).unwrap().map(|entry| entry.unwrap().path());
    // The directory of contents is for its owner alone, too.
    let files = || entries().filter(|path| !path.is_dir());
    set(location, 0o755);
    let work = |server: &Running| {
        server.line_with("has mode 755");
        let name = format!("t{}", server.id());
        server.send(Request::post("/Tables").json(&format!("{{\"TableName\":\"{name}\"}}"))).expect(201);
        run(&["account", "add", &name, "-l", location.to_str().unwrap()], &[]);
    };
    let server = Running::over(location, &[]);
    work(&server);
    files().for_each(|path| assert_private(&path, 0o600));
    let said = server.stop();
    assert_eq!(said.matches("has mode 755").count(), 1, "{said}");

    // As an earlier version left them.
    files().for_each(|path| set(&path, 0o644));
    let server = Running::over(location, &[]);
    work(&server);
    files().for_each(|path| assert_private(&path, 0o600));
    server.stop();
    set(location, 0o700);
    let server = Running::over(location, &[]);
    assert!(!server.stop().contains("has mode"));
}
