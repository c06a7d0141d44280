//! Flags in both spellings, the help, the ready line, and one clear sentence for every mistake.

use std::net::TcpListener;

use testkit::{Request, ServerProcess, TempDir, run_to_exit};

use crate::{LAZULITE, refusal};

#[test]
fn flags_have_two_spellings() {
    for arguments in [
        &["--tableHost", "127.0.0.1", "--tablePort", "0", "--queuePort", "0", "--blobPort", "0"][..],
        &["--table-host", "127.0.0.1", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
        &["--table-host=127.0.0.1", "--table-port=0", "--queue-port=0", "--blob-port=0"],
        &["--tableHost=localhost", "--tablePort=0", "--queuePort=0", "--blobPort=0", "--silent"],
        &["serve", "--tablePort", "0", "--queuePort", "0", "--blobPort", "0", "-s"],
    ] {
        // `serve` may come first or after the location.
        let directory = TempDir::new().unwrap();
        let server = ServerProcess::start_with(LAZULITE, directory.path(), arguments, &[]);
        assert_ne!(server.addr().port(), 0);
        server.send(Request::get("/Tables")).expect(200);
    }
}

#[test]
fn in_memory_has_its_spellings_and_keeps_nothing() {
    for flag in ["--in-memory", "--inMemoryPersistence"] {
        let start = || {
            ServerProcess::start_anywhere(
                LAZULITE,
                &[flag, "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
                &[],
            )
        };
        let server = start();
        server.send(Request::post("/Tables").json(r#"{"TableName":"mytable"}"#)).expect(201);
        assert_eq!(server.stop(), Some(0));
        start().send(Request::get("/Tables('mytable')")).expect(404);
    }
}

#[test]
fn the_ready_line_comes_first_and_names_the_port_taken() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    let expected = format!("Table service is successfully listening at http://{}", server.addr());
    assert!(server.greeting().trim_end().ends_with(&expected), "{}", server.greeting());
    assert_eq!(server.greeting().lines().count(), 1, "scripts read the first line");
}

#[test]
fn silence_leaves_only_the_ready_lines() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start_with(
        LAZULITE,
        directory.path(),
        &["--tablePort", "0", "--queuePort", "0", "--blobPort", "0", "--silent"],
        &[],
    );
    server.send(Request::get("/Tables")).expect(200);
    let rest = server.rest_of_stdout();
    assert!(
        rest.starts_with("Lazulite Queue service is successfully listening at http://127.0.0.1:"),
        "{rest}"
    );
    let second = rest.lines().nth(1).unwrap_or_default();
    assert!(
        second.starts_with("Lazulite Blob service is successfully listening at http://127.0.0.1:"),
        "{rest}"
    );
    assert_eq!(rest.lines().count(), 2, "{rest}");
}

#[test]
fn only_the_chosen_services_start() {
    let directory = TempDir::new().unwrap();
    let options = ["--services", "table", "--tablePort", "0", "--silent"];
    let server = ServerProcess::start_with(LAZULITE, directory.path(), &options, &[]);
    server.send(Request::get("/Tables")).expect(200);
    assert_eq!(server.rest_of_stdout(), "");
    for (services, part) in [("blobs", "choose among table, queue, blob"), ("", "there is no service ''")] {
        let sentence = refusal(&["--in-memory", "--services", services], &[]);
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[test]
fn help_and_version_are_printed() {
    for flag in ["--help", "-h"] {
        let output = run_to_exit(LAZULITE, &[flag], &[]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0));
        for part in ["Usage", "--location", "--table-port", "--table-host", "LAZULITE_ACCOUNTS"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert_eq!(output.stderr, b"");
    }
    let output = run_to_exit(LAZULITE, &["--version"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("lazulite "));
}

#[test]
fn mistakes_get_one_sentence_each() {
    let check = |arguments: &[&str], part: &str| {
        let sentence = refusal(arguments, &[]);
        assert!(sentence.contains(part), "{arguments:?}: {sentence}");
    };
    check(&["--bogus"], "bogus");
    check(&["--tablePort", "x"], "x");
    check(&["--tablePort", "70000"], "70000");
    check(&["--tablePort", "-1"], "-1");
    check(&["--table-port"], "table-port");
    check(&["--location"], "location");
    check(&["frobnicate"], "frobnicate");
    check(&["--in-memory", "--location", "somewhere"], "--location");
    check(
        &[
            "--in-memory",
            "--tableHost",
            "no.such.host.invalid",
            "--tablePort",
            "0",
            "--queuePort",
            "0",
            "--blobPort",
            "0",
        ],
        "no.such.host.invalid",
    );
    check(&["--in-memory", "--tableHost", "", "--tablePort", "0", "--queuePort", "0", "--blobPort", "0"], "");
    check(&["--in-memory=yes"], "in-memory");
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (service, option) in [("Table", "table"), ("Queue", "queue"), ("Blob", "blob")] {
        let both = ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"];
        let sentence = refusal(&[&both[..], &[&format!("--{option}-port"), &port]].concat(), &[]);
        let other = match option {
            "table" => "queue,blob",
            "queue" => "table,blob",
            _ => "table,queue",
        };
        let remedies = [format!("--{option}-port"), format!("--services {other}")];
        for part in [&port, service, &remedies[0], &remedies[1]] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn a_port_can_be_taken_again_at_once() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    let port = server.addr().port().to_string();
    server.send(Request::get("/Tables")).expect(200);
    server.kill();
    let server = ServerProcess::start_with(
        LAZULITE,
        directory.path(),
        &["--tablePort", &port, "--queuePort", "0", "--blobPort", "0"],
        &[],
    );
    server.send(Request::get("/Tables")).expect(200);
}
