//! `lazulite account`: keys are made, shown once, rotated and removed, while the server runs and across restarts, and
//! never appear where others could read them.

use std::path::Path;
use std::time::Duration;

use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, Request, TempDir};

use crate::refusal;
use crate::running::{Running, assert_private, run, status, within};

/// A running server checks once a second.
const NOTICED_WITHIN: Duration = Duration::from_secs(4);

fn text(location: &Path) -> &str {
    location.to_str().unwrap()
}

fn account(location: &Path, words: &[&str]) -> String {
    run(&[&["account"], words, &["-l", text(location)]].concat(), &[]).0
}

/// The key on the line that begins with `label`.
fn key(output: &str, label: &str) -> String {
    let line = output.lines().find_map(|line| line.strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label:?} in:\n{output}")).trim().to_owned()
}

#[track_caller]
fn becomes(server: &Running, account: &str, key: &str, expected: u16) {
    assert!(
        within(NOTICED_WITHIN, || status(server, account, key) == expected),
        "{account} is not {expected}"
    );
}

#[test]
fn accounts_come_change_and_go_while_the_server_runs() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let server = Running::over(location, &[]);
    assert_eq!(status(&server, "mine", EMULATOR_KEY), 404);

    let added = account(location, &["add", "mine"]);
    let (key1, key2) = (key(&added, "key1:"), key(&added, "key2:"));
    assert_ne!(key1, key2);
    becomes(&server, "mine", &key1, 200);
    assert_eq!(status(&server, "mine", &key2), 200);
    assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 200, "the emulator's account stays");
    assert_private(&location.join("accounts.toml"), 0o600);

    let new1 = key(&account(location, &["rotate", "mine"]), "key1 of mine:");
    becomes(&server, "mine", &new1, 200);
    assert_eq!(status(&server, "mine", &key1), 403, "the old key is worth nothing");
    assert_eq!(status(&server, "mine", &key2), 200, "the other key stays");
    let new2 = key(&account(location, &["rotate", "mine", "--key", "2"]), "key2 of mine:");
    becomes(&server, "mine", &new2, 200);
    assert_eq!(status(&server, "mine", &key2), 403);
    assert_eq!(status(&server, "mine", &new1), 200);
    assert_private(&location.join("accounts.toml"), 0o600);

    let listed = account(location, &["list"]);
    assert!(listed.contains("mine") && listed.lines().count() == 1, "{listed}");
    account(location, &["remove", "mine"]);
    becomes(&server, "mine", &new1, 404);
    assert_eq!(account(location, &["list"]), "");

    // After signed requests, refused ones and a stop, no key was printed anywhere.
    let said = server.stop();
    for secret in [&key1, &key2, &new1, &new2] {
        assert!(!said.contains(secret.as_str()) && !listed.contains(secret.as_str()), "{said}");
    }
}

#[test]
fn accounts_and_their_tables_survive_a_restart() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    // Before any server ran on this directory.
    let added = account(location, &["add", "mine"]);
    let (key1, key2) = (key(&added, "key1:"), key(&added, "key2:"));
    let server = Running::over(location, &[]);
    let create = Request::post("/Tables").json(r#"{"TableName":"kept"}"#).credentials("mine", &key1);
    server.send(create).expect(201);
    server.stop();
    // While no server runs.
    let new2 = key(&account(location, &["rotate", "mine", "--key=2"]), "key2 of mine:");
    let server = Running::over(location, &[]);
    for (key, expected) in [(&key1, 200), (&new2, 200), (&key2, 403)] {
        let request = Request::get("/Tables('kept')").credentials("mine", key);
        assert_eq!(server.send(request).status, expected);
    }
    account(location, &["remove", "mine"]);
    becomes(&server, "mine", &key1, 404);
    server.stop();
    let server = Running::over(location, &[]);
    assert_eq!(status(&server, "mine", &key1), 404);
    // Making an account of that name again brings back its tables, if the operator says so, but not its old keys.
    let refused = refusal(&["account", "add", "mine", "-l", text(location)], &[]);
    assert!(refused.contains("1 tables, 0 queues and 0 containers under the name 'mine'"), "{refused}");
    let again = key(&account(location, &["add", "mine", "--with-data"]), "key1:");
    becomes(&server, "mine", &again, 200);
    server.send(Request::get("/Tables('kept')").credentials("mine", &again)).expect(200);
    assert_eq!(status(&server, "mine", &key1), 403);
}

#[test]
fn a_new_account_does_not_find_the_tables_of_an_earlier_one() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let properties = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    let mut server = Some(Running::over(location, &[]));
    for is_running in [true, false] {
        let key1 = key(&account(location, &["add", "mine"]), "key1:");
        let serving = server.get_or_insert_with(|| Running::over(location, &[]));
        becomes(serving, "mine", &key1, 200);
        for name in ["first", "second", "third"] {
            let create = Request::post("/Tables").json(&format!("{{\"TableName\":\"{name}\"}}"));
            serving.send(create.credentials("mine", &key1)).expect(201);
        }
        let put = Request::put("/?restype=service&comp=properties").body("application/xml", properties);
        serving.send(put.credentials("mine", &key1)).expect(202);
        let other = Request::post("/Tables").json(&format!("{{\"TableName\":\"other{is_running}\"}}"));
        serving.send(other).expect(201);
        if !is_running {
            server.take().unwrap().stop();
        }
        let purge = ["account", "purge", "mine", "-l", text(location)];
        assert!(refusal(&purge, &[]).contains("'lazulite account remove mine' first"));
        assert!(account(location, &["remove", "mine"]).contains("purge mine"));
        let refused = refusal(&["account", "add", "mine", "-l", text(location)], &[]);
        assert!(
            refused.contains("3 tables, 0 queues, 0 containers and service properties")
                && refused.contains("--with-data"),
            "{refused}"
        );
        let purged = account(location, &["purge", "mine"]);
        assert_eq!(purged, "mine: 3 tables, 0 queues, 0 containers and service properties deleted\n");
        assert!(
            account(location, &["purge", "mine"]).starts_with("mine: 0 tables, 0 queues and 0 containers")
        );

        let key1 = key(&account(location, &["add", "mine"]), "key1:");
        let serving = server.get_or_insert_with(|| Running::over(location, &[]));
        becomes(serving, "mine", &key1, 200);
        let tables = serving.send(Request::get("/Tables").credentials("mine", &key1)).expect(200);
        assert_eq!(tables.json()["value"].as_array().map(Vec::len), Some(0));
        serving.send(Request::get(&format!("/Tables('other{is_running}')"))).expect(200);
        account(location, &["remove", "mine"]);
        becomes(serving, "mine", &key1, 404);
    }
}

#[test]
fn several_accounts_are_kept_apart() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let names = ["first", "second", "third0"];
    let keys = names.map(|name| key(&account(location, &["add", name]), "key1:"));
    let server = Running::over(location, &[]);
    for (at, name) in names.iter().enumerate() {
        for (other, key) in keys.iter().enumerate() {
            assert_eq!(status(&server, name, key), if at == other { 200 } else { 403 });
        }
    }
    let listed = account(location, &["list"]);
    assert_eq!(listed.lines().count(), 3);
    assert!(keys.iter().all(|key| !listed.contains(key.as_str())), "{listed}");
}

#[test]
fn commands_at_the_same_time_do_not_undo_each_other() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    account(location, &["add", "zero"]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || account(location, &["add", &format!("account{number}")]));
        }
    });
    assert_eq!(account(location, &["list"]).lines().count(), 9);
    assert_private(&location.join("accounts.toml"), 0o600);
}

#[test]
fn keys_are_nowhere_in_the_process_or_beside_the_data() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let added = account(location, &["add", "mine"]);
    let keys = [key(&added, "key1:"), key(&added, "key2:")];
    let server = Running::over(location, &[]);
    server.send(Request::post("/Tables").json(r#"{"TableName":"kept"}"#).credentials("mine", &keys[0]));
    let wrong = server.send(Request::get("/Tables").credentials("mine", EMULATOR_KEY));
    let shown = format!("{wrong:?}");
    let title = std::fs::read(format!("/proc/{}/cmdline", server.id())).unwrap_or_default();
    let title = String::from_utf8_lossy(&title).into_owned();
    assert!(within(NOTICED_WITHIN, || server.said().contains("audit")), "{}", server.said());
    let said = server.stop();
    for key in &keys {
        for place in [&shown, &title, &said] {
            assert!(!place.contains(key.as_str()), "{place}");
        }
    }
    for entry in std::fs::read_dir(location).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() && entry.file_name().unwrap() != "accounts.toml" {
            let content = String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).into_owned();
            assert!(keys.iter().all(|key| !content.contains(key.as_str())), "{}", entry.display());
        }
    }
}

#[test]
fn a_broken_accounts_file_changes_nothing_and_is_complained_of() {
    let directory = TempDir::new().unwrap();
    let location = directory.path();
    let key1 = key(&account(location, &["add", "mine"]), "key1:");
    let server = Running::over(location, &[]);
    let file = location.join("accounts.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{good}\nkey1 = \"c2VjcmV0IHNlY3JldA==")).unwrap();
    server.line_with("the accounts stay as they were");
    assert_eq!(status(&server, "mine", &key1), 200);
    let listing = refusal(&["account", "list", "-l", text(location)], &[]);
    std::fs::write(&file, &good).unwrap();
    let new1 = key(&account(location, &["rotate", "mine"]), "key1 of mine:");
    becomes(&server, "mine", &new1, 200);
    for said in [listing, server.stop()] {
        assert!(!said.contains("c2VjcmV0") && !said.contains(&key1), "{said}");
    }
}

#[test]
fn mistakes_get_one_sentence_each() {
    let directory = TempDir::new().unwrap();
    let location = text(directory.path());
    account(directory.path(), &["add", "mine"]);
    let check = |words: &[&str], part: &str| {
        let sentence = refusal(&[&["account"], words, &["-l", location]].concat(), &[]);
        assert!(sentence.contains(part), "{words:?}: {sentence}");
    };
    check(&["add", "mine"], "mine");
    check(&["add", "UPPER"], "UPPER");
    check(&["add", "ab"], "ab");
    check(&["add"], "add");
    check(&["rotate", "nobody"], "nobody");
    check(&["rotate", "mine", "--key", "3"], "key");
    check(&["remove", "nobody"], "nobody");
    check(&["purge", "mine"], "mine");
    check(&["purge", "UPPER"], "UPPER");
    check(&["remove", "mine", "--with-data"], "add");
    check(&["frobnicate"], "add");
    check(&[], "add");
    check(&["list", "--bogus"], "bogus");
    let stranger = TempDir::new().unwrap();
    std::fs::write(stranger.path().join("thesis.txt"), "ten years of work").unwrap();
    refusal(&["account", "add", "mine", "-l", text(stranger.path())], &[]);
    assert_eq!(std::fs::read_dir(stranger.path()).unwrap().count(), 1, "nothing was added");
}

#[cfg(unix)]
#[test]
fn a_server_whose_directory_was_moved_keeps_to_its_own_accounts_and_socket() {
    let parent = TempDir::new().unwrap();
    let (location, moved) = (parent.path().join("data"), parent.path().join("data.old"));
    let displaced = Running::over(&location, &[]);
    let mine = key(&account(&location, &["add", "mine"]), "key1:");
    becomes(&displaced, "mine", &mine, 200);

    std::fs::rename(&location, &moved).unwrap();
    let theirs = key(&account(&location, &["add", "theirs"]), "key1:");
    let other = Running::over(&location, &[]);
    assert_eq!(status(&other, "theirs", &theirs), 200);
    // A change where its own accounts are now is noticed, and that is after it looked.
    let again = key(&account(&moved, &["rotate", "mine"]), "key1 of mine:");
    becomes(&displaced, "mine", &again, 200);
    assert_eq!(status(&displaced, "theirs", &theirs), 404);
    assert_eq!(status(&other, "mine", &again), 404);

    displaced.stop();
    assert!(!moved.join("control.sock").exists());
    assert!(location.join("control.sock").exists(), "the other server's socket is not its business");
    run(&["check", "-l", text(&location)], &[]);
    other.stop();
}
