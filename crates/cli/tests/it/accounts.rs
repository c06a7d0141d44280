//! Accounts from the environment, the printed connection string, and the emulator's published key.

use testkit::{EMULATOR_KEY, Request, ServerProcess, TempDir};

use crate::{ACCOUNT_VARIABLES, LAZULITE, refusal};

const KEY: &str = "bXkgb3duIGtleSBteSBvd24ga2V5IG15IG93biBrZXk=";
const MEMORY: [&str; 7] = ["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"];

fn tables_of(server: &ServerProcess, account: &str, key: &str) -> u16 {
    server.send(Request::get("/Tables").credentials(account, key)).status
}

#[test]
fn the_printed_connection_string_works() {
    let directory = TempDir::new().unwrap();
    let server = ServerProcess::start(LAZULITE, directory.path());
    let line = server.line_with("AccountName=");
    let field = |name: &str| {
        let start = line.find(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {line}"));
        line[start + name.len() + 1..].split(';').next().unwrap().to_owned()
    };
    let text = line.as_str();
    assert!(text.contains("DefaultEndpointsProtocol=http;"), "{line}");
    assert_eq!(field("TableEndpoint"), format!("http://{}/devstoreaccount1", server.addr()));
    assert_eq!(field("AccountKey"), EMULATOR_KEY);
    assert_eq!(tables_of(&server, &field("AccountName"), &field("AccountKey")), 200);
}

#[test]
fn accounts_come_from_the_environment() {
    for variable in ACCOUNT_VARIABLES {
        let text = format!("mine:{KEY};both:{EMULATOR_KEY}:{KEY}");
        let server = ServerProcess::start_anywhere(LAZULITE, &MEMORY, &[(variable, &text)]);
        assert_eq!(tables_of(&server, "mine", KEY), 200);
        assert_eq!(tables_of(&server, "both", KEY), 200);
        assert_eq!(tables_of(&server, "both", EMULATOR_KEY), 200);
        assert_eq!(tables_of(&server, "mine", EMULATOR_KEY), 403);
        assert_eq!(
            tables_of(&server, "devstoreaccount1", EMULATOR_KEY),
            404,
            "named accounts replace the default"
        );
    }
}

#[test]
fn our_own_variable_wins() {
    let (ours, theirs) = (format!("ours:{KEY}"), format!("theirs:{KEY}"));
    let environment = [("AZURITE_ACCOUNTS", theirs.as_str()), ("LAZULITE_ACCOUNTS", ours.as_str())];
    let server = ServerProcess::start_anywhere(LAZULITE, &MEMORY, &environment);
    assert_eq!(tables_of(&server, "ours", KEY), 200);
    assert_eq!(tables_of(&server, "theirs", KEY), 404);
}

#[test]
fn a_key_that_protects_something_is_not_printed() {
    let text = format!("mine:{KEY}");
    let server = ServerProcess::start_anywhere(LAZULITE, &MEMORY, &[("LAZULITE_ACCOUNTS", &text)]);
    tables_of(&server, "mine", KEY);
    let said = format!("{}{}", server.greeting().to_owned(), server.rest_of_stdout());
    assert!(!said.contains(KEY), "{said}");
}

#[test]
fn bad_accounts_are_named_but_their_keys_are_not() {
    for (text, part) in [
        ("", "account"),
        ("UPPER:AAAA", "UPPER"),
        ("ab:AAAA", "ab"),
        ("mine", "mine"),
        ("mine:not-base64-secret!", "mine"),
        ("mine:AAAA:BBBB:CCCC", "mine"),
        ("mine:AAAA;mine:BBBB", "mine"),
    ] {
        for variable in ACCOUNT_VARIABLES {
            let sentence = refusal(&MEMORY, &[(variable, text)]);
            assert!(sentence.contains(part) && sentence.contains(variable), "{text}: {sentence}");
            assert!(!sentence.contains("secret"), "{sentence}");
        }
    }
}

#[test]
fn the_well_known_key_stays_on_this_machine() {
    let all = [
        "--in-memory",
        "--table-host",
        "0.0.0.0",
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
    ];
    let sentence = refusal(&all, &[]);
    assert!(sentence.contains("--allow-well-known-key"), "{sentence}");
    let any_name = format!("mine:{EMULATOR_KEY}");
    refusal(&all, &[("LAZULITE_ACCOUNTS", &any_name)]);

    let own = format!("mine:{KEY}");
    let server = ServerProcess::start_anywhere(LAZULITE, &all, &[("LAZULITE_ACCOUNTS", &own)]);
    assert_eq!(tables_of(&server, "mine", KEY), 200);
    let allowed = [&all[..], &["--allow-well-known-key"]].concat();
    let server = ServerProcess::start_anywhere(LAZULITE, &allowed, &[]);
    assert_eq!(tables_of(&server, "devstoreaccount1", EMULATOR_KEY), 200);
    for loopback in ["127.0.0.1", "localhost", "::1"] {
        let arguments = [
            "--in-memory",
            "--table-host",
            loopback,
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
        ];
        if loopback == "::1" && std::net::TcpListener::bind("[::1]:0").is_err() {
            println!("SKIPPED: this machine has no IPv6 loopback");
            continue;
        }
        let server = ServerProcess::start_anywhere(LAZULITE, &arguments, &[]);
        assert_eq!(tables_of(&server, "devstoreaccount1", EMULATOR_KEY), 200);
    }
}
