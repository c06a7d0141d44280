//! The configuration file: its settings take effect, flags and environment win over them, and every mistake gets one
//! sentence.

use std::path::PathBuf;

use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, Request, TempDir};

use crate::refusal;
use crate::running::{Running, status};

const KEY: &str = "bXkgb3duIGtleSBteSBvd24ga2V5IG15IG93biBrZXk=";
const OTHER: &str = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXk=";

/// A configuration file in a temporary directory.
struct File(TempDir);

impl File {
    fn new(text: &str) -> File {
        let file = File(TempDir::new().unwrap());
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("lazulite.toml")
    }

    fn start(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let path = self.path();
        Running::start(&[&["--config", path.to_str().unwrap()], arguments].concat(), environment)
    }
}

#[test]
fn a_file_says_where_and_for_whom() {
    let data = TempDir::new().unwrap();
    let location = data.path().join("store");
    let file = File::new(&format!(
        "location = {location:?}\ntable-host = \"127.0.0.1\"\ntable-port = 0\nqueue-port = 0\nhost-suffixes = [\"table.example.org\"]\n\
         [[account]]\nname = \"mine\"\nkey1 = \"{KEY}\"\nkey2 = \"{OTHER}\"\n[[account]]\nname = \"second\"\nkey1 = \"{OTHER}\"\n"
    ));
    let server = file.start(&[], &[]);
    assert_eq!(status(&server, "mine", KEY), 200);
    assert_eq!(status(&server, "mine", OTHER), 200);
    assert_eq!(status(&server, "second", OTHER), 200);
    assert_eq!(status(&server, "second", KEY), 403);
    assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 404, "named accounts replace the default");
    let host = testkit::Style::Host("mine.table.example.org".to_owned());
    server.send(Request::get("/Tables").credentials("mine", KEY).style(host)).expect(200);
    assert!(location.join("LAZULITE").exists());
    let said = server.stop();
    assert!(!said.contains(KEY) && !said.contains(OTHER), "{said}");
}

#[test]
fn flags_win_over_the_file() {
    let data = TempDir::new().unwrap();
    let (named, chosen) = (data.path().join("named"), data.path().join("chosen"));
    // The file's address and port cannot be listened on, so the server starts only if the flags win.
    let file = File::new(&format!(
        "location = {named:?}\ntable-host = \"no.such.host.invalid\"\ntable-port = 1\nprofile = \"server\"\n"
    ));
    let chosen_text = chosen.to_str().unwrap();
    let arguments = [
        "--table-host",
        "127.0.0.1",
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--profile",
        "emulator",
        "--location",
        chosen_text,
    ];
    let server = file.start(&arguments, &[]);
    assert_eq!(status(&server, EMULATOR_ACCOUNT, EMULATOR_KEY), 200);
    assert!(chosen.join("LAZULITE").exists() && !named.exists());
    let arguments = [
        "--table-host",
        "127.0.0.1",
        "--table-port",
        "0",
        "--queue-port",
        "0",
        "--blob-port",
        "0",
        "--profile",
        "emulator",
        "--in-memory",
    ];
    file.start(&arguments, &[]);
    assert!(!named.exists(), "in memory there is no location");
}

#[test]
fn the_environment_wins_over_the_file() {
    let file = File::new(&format!(
        "table-port = 0\nqueue-port = 0\n[[account]]\nname = \"mine\"\nkey1 = \"{KEY}\"\n[[account]]\nname = \"filed\"\nkey1 = \"{KEY}\"\n"
    ));
    let accounts = format!("mine:{OTHER};environ:{OTHER}");
    let server = file.start(&["--in-memory"], &[("LAZULITE_ACCOUNTS", &accounts)]);
    assert_eq!(status(&server, "environ", OTHER), 200);
    assert_eq!(status(&server, "mine", OTHER), 200, "the environment's key counts");
    assert_eq!(status(&server, "mine", KEY), 403, "the file's does not");
    assert_eq!(status(&server, "filed", KEY), 200, "what only the file names stays");
}

#[test]
fn the_accounts_of_the_command_join_those_of_the_file() {
    let data = TempDir::new().unwrap();
    let location = data.path().to_str().unwrap();
    let (added, _) = crate::running::run(&["account", "add", "added", "-l", location], &[]);
    let key1 = added.lines().find_map(|line| line.strip_prefix("key1: ")).unwrap();
    let file = File::new(&format!(
        "table-port = 0\nqueue-port = 0\n[[account]]\nname = \"filed\"\nkey1 = \"{KEY}\"\n"
    ));
    let server = file.start(&["--location", location], &[]);
    assert_eq!(status(&server, "filed", KEY), 200);
    assert_eq!(status(&server, "added", key1), 200);
}

#[test]
fn mistakes_in_the_file_get_one_sentence_without_keys() {
    let check = |text: &str, part: &str| {
        let file = File::new(text);
        let path = file.path();
        let sentence = refusal(&["--config", path.to_str().unwrap(), "--in-memory"], &[]);
        assert!(sentence.contains(part), "{text}: {sentence}");
        assert!(!sentence.contains("c2VjcmV0"), "{sentence}");
    };
    check("bogus = 1\n", "bogus");
    check("table-port = \"x\"\n", "");
    check("table-port = 70000\n", "");
    check("tablePort = 1\n", "tablePort");
    check("table-host = \"no.such.host.invalid\"\n", "no.such.host.invalid");
    check("profile = \"other\"\n", "other");
    check("= 1\n", "");
    check("[[account]]\nname = \"mine\"\n", "key1");
    check("[[account]]\nname = \"UPPER\"\nkey1 = \"c2VjcmV0\"\n", "UPPER");
    check("[[account]]\nname = \"mine\"\nkey1 = \"c2VjcmV0!\"\n", "mine");
    check("[[account]]\nname = \"mine\"\nkey1 = \"c2VjcmV0\"\nkey3 = \"c2VjcmV0\"\n", "key3");
    check("[[account]]\nname = \"mine\"\nkey1 = \"c2VjcmV0\n", "");
    check("[tls]\nkey = \"c2VjcmV0\"\n", "cert");
    check("[tls]\ncert = \"absent.pem\"\n", "");
    check("[tls]\ncert = \"absent.pem\"\nkey = \"absent.key\"\n", "absent.pem");
    check("[oauth]\nissuer = \"https://issuer.example/\"\n", "jwks");
    check("[oauth]\nissuer = \"https://issuer.example/\"\njwks = \"absent.json\"\n", "absent.json");
    refusal(&["--config", "absent.toml", "--in-memory"], &[]);
    refusal(&["--config"], &[]);
}
