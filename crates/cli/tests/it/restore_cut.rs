//! A restore that was interrupted: no command takes the directory for a store, and the next restore starts over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use testkit::{Request, ServerProcess, TempDir, entity_json, run_to_exit};

use crate::{LAZULITE, refusal};

const MARKER: &str = "LAZULITE";

fn restore(file: &Path, location: &Path) -> (Option<i32>, String) {
    let words = ["restore", file.to_str().unwrap(), "-l", location.to_str().unwrap()];
    let output = run_to_exit(LAZULITE, &words, &[]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// A backup of a few rows and a blob, and a directory into which it was restored.
fn restored(directory: &Path) -> (PathBuf, PathBuf) {
    let server = ServerProcess::start(LAZULITE, &directory.join("data"));
    server.send(Request::post("/Tables").json(r#"{"TableName":"kept"}"#)).expect(201);
    for row in 0..30 {
        let json = entity_json("p", &format!("r{row:02}"), "\"n\":1");
        server.send(Request::post("/kept").json(&json)).expect(201);
    }
    server.send_blob(Request::put("/kept?restype=container")).expect(201);
    let blob = Request::put("/kept/long").header("x-ms-blob-type", "BlockBlob").bytes(vec![7; 300_000]);
    server.send_blob(blob).expect(201);
    let (file, place) = (directory.join("b.lzb"), directory.join("restored"));
    let data = directory.join("data");
    let words = ["backup", file.to_str().unwrap(), "-l", data.to_str().unwrap()];
    assert!(run_to_exit(LAZULITE, &words, &[]).status.success());
    assert_eq!(restore(&file, &place).0, Some(0));
    (file, place)
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[track_caller]
fn refused_by_all(location: &Path) {
    let text = location.to_str().unwrap();
    for words in [
        &["--location", text, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"][..],
        &["account", "add", "mine", "-l", text],
        &["account", "remove", "mine", "-l", text],
        &["check", "-l", text],
        &["backup", "nowhere.lzb", "-l", text],
        &["restore", "nothing.lzb", "--table", "kept", "-l", text],
    ] {
        let before: BTreeSet<String> = names(location).into_iter().collect();
        let sentence = refusal(words, &[]);
        assert!(sentence.contains("was not finished: run 'lazulite restore' again"), "{words:?}: {sentence}");
        assert_eq!(names(location).into_iter().collect::<BTreeSet<_>>(), before, "{words:?}");
    }
}

#[track_caller]
fn is_whole(location: &Path) {
    let output = run_to_exit(LAZULITE, &["check", "-l", location.to_str().unwrap()], &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("1 tables, 30 entities") && said.contains("\nsound"), "{said}");
    assert!(said.contains("1 containers, 1 blobs with 300000 bytes beside their rows"), "{said}");
    assert!(names(location).iter().all(|name| !name.starts_with("restore")), "{:?}", names(location));
}

#[test]
fn a_restore_cut_at_any_step_starts_over() {
    let directory = TempDir::new().unwrap();
    let (file, whole) = restored(directory.path());
    let all: Vec<String> = names(&whole).into_iter().filter(|name| name != MARKER).collect();
    assert!(all.len() >= 3, "{all:?}");
    let copy = |name: &str, to: &Path| {
        if whole.join(name).is_dir() {
            std::fs::create_dir(to).unwrap();
            std::fs::write(to.join("extent-0000000001.bytes"), "half of one").unwrap();
            return;
        }
        std::fs::copy(whole.join(name), to).unwrap();
    };
    let mut cuts = 0;
    let mut check = |make: &dyn Fn(&Path, &Path)| {
        let place = directory.path().join(format!("cut{cuts}"));
        let building = place.join("restore.new");
        std::fs::create_dir_all(&building).unwrap();
        make(&place, &building);
        if cuts % 5 == 0 {
            refused_by_all(&place);
        } else {
            refusal(
                &[
                    "--location",
                    place.to_str().unwrap(),
                    "--table-port",
                    "0",
                    "--queue-port",
                    "0",
                    "--blob-port",
                    "0",
                ],
                &[],
            );
        }
        let (code, said) = restore(&file, &place);
        assert_eq!(code, Some(0), "{said}");
        is_whole(&place);
        cuts += 1;
    };
    // Any of the files may have moved up, whatever their order. This includes what remains of a cut start-over.
    for moved in 0..1_u32 << all.len() {
        check(&|place, building| {
            for (number, name) in all.iter().enumerate() {
                let is_up = moved & 1 << number != 0;
                copy(name, &if is_up { place.join(name) } else { building.join(name) });
            }
            copy(MARKER, &building.join(MARKER));
        });
    }
    // All files moved up, and the marker under its other name.
    for has_building in [true, false] {
        check(&|place, building| {
            all.iter().for_each(|name| copy(name, &place.join(name)));
            copy(MARKER, &place.join("restore.marker"));
            if !has_building {
                std::fs::remove_dir(building).unwrap();
            }
        });
    }
    // Cut while the next restore removed these.
    for gone in &all {
        check(&|place, _| {
            all.iter().filter(|name| *name != gone).for_each(|name| copy(name, &place.join(name)));
        });
    }
    check(&|_, _| {});
    assert_eq!(restore(&file, &whole).0, Some(1), "a store is never replaced");
    is_whole(&whole);
}

#[test]
fn a_killed_restore_is_repeated() {
    let directory = TempDir::new().unwrap();
    let (file, _) = restored(directory.path());
    for delay_ms in [0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40] {
        let place = directory.path().join(format!("killed{delay_ms}"));
        let mut child = std::process::Command::new(LAZULITE)
            .args(["restore", file.to_str().unwrap(), "-l", place.to_str().unwrap()])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let (code, said) = restore(&file, &place);
        assert!(code == Some(0) || said.contains("is a store already"), "after {delay_ms} ms: {said}");
        is_whole(&place);
    }
}

#[test]
fn a_failed_restore_leaves_no_place_for_an_empty_store() {
    let directory = TempDir::new().unwrap();
    let (file, whole) = restored(directory.path());
    let bad = directory.path().join("bad.lzb");
    let mut bytes = std::fs::read(&file).unwrap();
    let late = bytes.len() - 10;
    bytes[late] ^= 1;
    std::fs::write(&bad, bytes).unwrap();

    // As in the report: a store whose files were on their way up.
    let place = directory.path().join("place");
    std::fs::create_dir_all(place.join("restore.new")).unwrap();
    std::fs::rename(whole.join("lock"), place.join("lock")).unwrap();
    for name in names(&whole) {
        std::fs::rename(whole.join(&name), place.join("restore.new").join(&name)).unwrap();
    }
    refused_by_all(&place);
    let (code, said) = restore(&bad, &place);
    assert!(code == Some(1) && said.contains("nothing was restored"), "{said}");
    refused_by_all(&place);
    assert_eq!(restore(&file, &place).0, Some(0));
    is_whole(&place);

    // Files that no restore made are left alone.
    let mixed = directory.path().join("mixed");
    std::fs::create_dir_all(mixed.join("restore.new")).unwrap();
    std::fs::write(mixed.join("thesis.txt"), "ten years of work").unwrap();
    let (code, said) = restore(&file, &mixed);
    assert!(code == Some(1) && said.contains("thesis.txt"), "{said}");
    assert_eq!(std::fs::read(mixed.join("thesis.txt")).unwrap(), b"ten years of work");
}
