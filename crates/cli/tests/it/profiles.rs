//! Profiles: the emulator profile trusts its own machine, the server profile trusts nobody.

use std::path::Path;

use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, Request, Sas, TempDir};

use crate::refusal;
use crate::running::{Running, run, status};

const KEY: &str = "bXkgb3duIGtleSBteSBvd24ga2V5IG15IG93biBrZXk=";
const SERVER: [&str; 9] =
    ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--profile", "server"];

fn own() -> String {
    format!("mine:{KEY}")
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SERVER[..], more].concat()
}

#[track_caller]
fn check_refused(arguments: &[&str], accounts: Option<&str>, part: &str) {
    let environment: Vec<_> = accounts.map(|accounts| ("LAZULITE_ACCOUNTS", accounts)).into_iter().collect();
    let sentence = refusal(arguments, &environment);
    assert!(sentence.contains(part), "{arguments:?}: {sentence}");
    assert!(!sentence.contains(KEY) && !sentence.contains(EMULATOR_KEY), "{sentence}");
}

#[test]
fn the_emulator_profile_is_the_default_and_asks_for_nothing() {
    for arguments in [
        &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"][..],
        &[
            "--in-memory",
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--profile",
            "emulator",
        ],
    ] {
        let server = Running::start(arguments, &[]);
        assert!(server.addr().ip().is_loopback() && !server.is_https);
        assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 200);
    }
}

#[test]
fn the_server_profile_needs_accounts() {
    check_refused(&SERVER, None, "account");
    let server = Running::start(&SERVER, &[("LAZULITE_ACCOUNTS", &own())]);
    assert_eq!(status(&server, "mine", KEY), 200);
    assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 404);
    // One account made by `lazulite account add` is enough.
    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let arguments = [
        "--location",
        location,
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--profile",
        "server",
    ];
    check_refused(&arguments, None, "account");
    let (added, _) = run(&["account", "add", "added", "-l", location], &[]);
    let key1 = added.lines().find_map(|line| line.strip_prefix("key1: ")).unwrap();
    let server = Running::start(&arguments, &[]);
    assert_eq!(status(&server, "added", key1), 200);
    assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 404);
}

#[test]
fn the_server_profile_refuses_the_well_known_key_under_any_name() {
    let accounts = [
        format!("{EMULATOR_ACCOUNT}:{EMULATOR_KEY}"),
        format!("mine:{EMULATOR_KEY}"),
        format!("mine:{KEY}:{EMULATOR_KEY}"),
        format!("mine:{KEY};other:{EMULATOR_KEY}"),
        format!("mine: {EMULATOR_KEY}"),
    ];
    for accounts in &accounts {
        check_refused(&SERVER, Some(accounts), "published key");
        check_refused(&with(&["--allow-well-known-key"]), Some(accounts), "published key");
    }
    let data = TempDir::new().unwrap();
    let file = data.path().join("lazulite.toml");
    let text = format!("[[account]]\nname = \"mine\"\nkey1 = \"{KEY}\"\nkey2 = \"{EMULATOR_KEY}\"\n");
    std::fs::write(&file, text).unwrap();
    check_refused(&with(&["--config", file.to_str().unwrap()]), None, "published key");
}

#[test]
fn the_server_profile_refuses_keys_that_can_be_guessed() {
    let zeros = format!("{}=", "A".repeat(43));
    for weak in ["eA==", "bXkgb3duIGtleSBteSBvd24ga2V5IG15IG93biBrZQ==", &zeros] {
        for accounts in [format!("mine:{weak}"), format!("good:{KEY};mine:{KEY}:{weak}")] {
            check_refused(&SERVER, Some(&accounts), "refuses a key of account 'mine'");
        }
        // Developers may use any key.
        let accounts = format!("mine:{weak}");
        Running::start(
            &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"],
            &[("LAZULITE_ACCOUNTS", &accounts)],
        );
    }
}

#[test]
fn a_server_refuses_bad_keys_also_while_it_runs() {
    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let (added, _) = run(&["account", "add", "added", "-l", location], &[]);
    let key1 = added.lines().find_map(|line| line.strip_prefix("key1: ")).unwrap();
    let file = data.path().join("accounts.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    let write = |account: &str, key: &str| {
        std::fs::write(&file, format!("[[account]]\nname = \"{account}\"\nkey1 = \"{key}\"\n")).unwrap();
    };
    for bad in [EMULATOR_KEY, "eA=="] {
        let arguments = [
            "--location",
            location,
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--profile",
            "server",
        ];
        let server = Running::start(&arguments, &[]);
        write("other", bad);
        let line = server.line_with("the accounts stay as they were");
        assert!(line.contains("the server profile refuses") && !line.contains(bad), "{line}");
        std::thread::sleep(std::time::Duration::from_millis(2_500));
        assert_eq!(status(&server, "other", bad), 404);
        assert_eq!(status(&server, "added", key1), 200);
        let said = server.stop();
        assert_eq!(said.matches("the accounts stay as they were").count(), 1, "said once: {said}");
        let refused = refusal(&arguments, &[]);
        assert!(
            refused.contains("the server profile refuses") && refused.contains("accounts.toml"),
            "{refused}"
        );
        std::fs::write(&file, &good).unwrap();
    }
    // So does the emulator profile on an address that others can reach.
    let arguments = [
        "--location",
        location,
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--table-host",
        "0.0.0.0",
    ];
    let server = Running::start(&arguments, &[("LAZULITE_ACCOUNTS", &own())]);
    write("other", EMULATOR_KEY);
    server.line_with("could use the emulator's published key");
    assert_eq!(status(&server, "other", EMULATOR_KEY), 404);
}

#[test]
fn the_server_profile_speaks_plain_http_only_where_nobody_listens() {
    for loopback in ["127.0.0.1", "localhost", "127.0.0.2"] {
        let server = Running::start(&with(&["--table-host", loopback]), &[("LAZULITE_ACCOUNTS", &own())]);
        assert_eq!(status(&server, "mine", KEY), 200);
    }
    check_refused(&with(&["--table-host", "0.0.0.0"]), Some(&own()), "plain HTTP");
    if std::net::TcpListener::bind("[::]:0").is_ok() {
        check_refused(&with(&["--table-host", "::"]), Some(&own()), "plain HTTP");
    }
    let arguments = with(&["--table-host", "0.0.0.0", "--behind-tls-proxy"]);
    let server = Running::start(&arguments, &[("LAZULITE_ACCOUNTS", &own())]);
    assert_eq!(status(&server, "mine", KEY), 200);
    // Requests through the proxy count as HTTPS.
    let sas = Sas::account("2019-02-02").set("spr", "https");
    let token = sas.sign(&testkit::Credentials::new("mine", KEY));
    server.send(Request::get("/Tables").credentials("mine", KEY).sas(&token)).expect(200);

    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let arguments = [
        "--location",
        location,
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--profile",
        "server",
        "--table-host",
        "0.0.0.0",
        "--https",
    ];
    let server = Running::start(&arguments, &[("LAZULITE_ACCOUNTS", &own())]);
    assert!(server.is_https);
    let request = Request::get("/Tables").credentials("mine", KEY);
    server.send_over_tls(&data.path().join("tls/ca.pem"), request).expect(200);
}

#[test]
fn a_profile_may_stand_in_the_file() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("lazulite.toml");
    let start = |text: &str| {
        std::fs::write(&file, text).unwrap();
        [
            "--in-memory",
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--config",
            file.to_str().unwrap(),
        ]
    };
    check_refused(&start("profile = \"server\"\n"), None, "account");
    check_refused(&start("profile = \"server\"\ntable-host = \"0.0.0.0\"\n"), Some(&own()), "plain HTTP");
    let arguments = start("profile = \"server\"\ntable-host = \"0.0.0.0\"\nbehind-tls-proxy = true\n");
    let server = Running::start(&arguments, &[("LAZULITE_ACCOUNTS", &own())]);
    assert_eq!(status(&server, "mine", KEY), 200);
    check_refused(&start("profile = \"Server\"\n"), Some(&own()), "Server");
    check_refused(&["--in-memory", "--profile", "other"], None, "other");
}

#[test]
fn tokens_that_nobody_checks_are_for_the_emulator_on_its_own_machine() {
    check_refused(&with(&["--oauth", "basic"]), Some(&own()), "oauth");
    let far = [
        "--in-memory",
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--table-host",
        "0.0.0.0",
        "--oauth",
        "basic",
    ];
    check_refused(&far, Some(&own()), "oauth");
    check_refused(&["--in-memory", "--oauth", "other"], None, "other");
    let server = Running::start(
        &["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0", "--oauth", "basic"],
        &[],
    );
    let warning = server.line_with("--oauth basic");
    assert!(warning.contains("warning"), "{warning}");
}

#[test]
fn the_server_profile_does_not_take_keys_over_plain_http_from_afar() {
    let data = TempDir::new().unwrap();
    let file = data.path().join("lazulite.toml");
    let check = |file: &Path, url: &str| {
        let text = format!("[oauth]\nissuer = \"https://issuer.example/\"\njwks = \"{url}\"\n");
        std::fs::write(file, text).unwrap();
        check_refused(&with(&["--config", file.to_str().unwrap()]), Some(&own()), url);
    };
    check(&file, "http://issuer.invalid/keys");
    check(&file, "http://127.0.0.1.invalid/keys");
}
