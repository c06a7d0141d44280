//! `cargo xtask conformance`: runs every suite and writes the counts to `docs/conformance.md`.
//!
//! The suites are those of the gate, the `az` command line (too heavy for the gate) and the raw HTTP suites of the
//! `server` crate. With `--against azurite` the raw HTTP suites run against Azurite too, and the results are stored.
//! Without it, the document repeats the stored results. The text of the document is the work of `document`.

use std::process::Command;

use crate::azurite;
use crate::cases;
use crate::differences::{Comparison, Difference};
use crate::document::{self, Row};
use crate::process;
use crate::raw_http;
use crate::suites::{self, SetUps};

const RAW_HTTP: &str = "raw-http";

struct Client {
    suite: &'static str,
    name: &'static str,
    client: &'static str,
    /// The file below `tests` that pins the versions of its packages, and the text in front of each version.
    pinned: (&'static str, &'static [&'static str]),
    /// The name of its runtime, and commands that print the version; the first that exists is used.
    runtime: (&'static str, &'static [&'static [&'static str]]),
    behaviours_min: usize,
}

/// In the order in which they run and appear in the document.
const CLIENTS: [Client; 12] = [
    Client {
        suite: RAW_HTTP,
        name: "Raw HTTP",
        client: "raw HTTP",
        pinned: ("", &[]),
        runtime: ("Rust", &[&["cargo", "--version"]]),
        behaviours_min: 500,
    },
    Client {
        suite: "python",
        name: "Python",
        client: "Python `azure-data-tables`, `azure-storage-queue`, `azure-storage-blob`",
        pinned: (
            "sdk/python/requirements.txt",
            &["azure-data-tables==", "azure-storage-queue==", "azure-storage-blob=="],
        ),
        runtime: ("Python", &[&["python3", "--version"], &["python", "--version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "javascript",
        name: "JavaScript",
        client: "JavaScript `@azure/data-tables`, `@azure/storage-queue`, `@azure/storage-blob`",
        pinned: (
            "sdk/javascript/package.json",
            &["\"@azure/data-tables\":", "\"@azure/storage-queue\":", "\"@azure/storage-blob\":"],
        ),
        runtime: ("Node", &[&["node", "--version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "go",
        name: "Go",
        client: "Go `aztables`, `azqueue`, `azblob`",
        pinned: ("sdk/go/go.mod", &["sdk/data/aztables ", "sdk/storage/azqueue ", "sdk/storage/azblob "]),
        runtime: ("Go", &[&["go", "env", "GOVERSION"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "java",
        name: "Java",
        client: "Java `azure-data-tables`, `azure-storage-queue`, `azure-storage-blob`",
        pinned: (
            "sdk/java/pom.xml",
            &[
                "<artifactId>azure-data-tables</artifactId>",
                "<artifactId>azure-storage-queue</artifactId>",
                "<artifactId>azure-storage-blob</artifactId>",
            ],
        ),
        runtime: ("JDK", &[&["javac", "-version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "rust-sdk",
        name: "Rust",
        client: "Rust `azure_data_tables`",
        pinned: ("sdk/rust/Cargo.toml", &["azure_data_tables ="]),
        runtime: ("Rust", &[&["cargo", "--version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "python-old",
        name: "Python, older",
        client: "Python `azure-cosmosdb-table`",
        pinned: ("sdk/python-old/requirements.txt", &["azure-cosmosdb-table=="]),
        runtime: ("Python", &[&["python3", "--version"], &["python", "--version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "javascript-old",
        name: "JavaScript, older",
        client: "JavaScript `azure-storage`",
        pinned: ("sdk/javascript-old/package.json", &["\"azure-storage\":"]),
        runtime: ("Node", &[&["node", "--version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "go-old",
        name: "Go, older",
        client: "Go `azure-sdk-for-go/storage`",
        pinned: ("sdk/go-old/go.mod", &["Azure/azure-sdk-for-go "]),
        runtime: ("Go", &[&["go", "env", "GOVERSION"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "java-old",
        name: "Java, older",
        client: "Java `com.microsoft.azure:azure-storage`",
        pinned: ("sdk/java-old/pom.xml", &["<artifactId>azure-storage</artifactId>"]),
        runtime: ("JDK", &[&["javac", "-version"]]),
        behaviours_min: 40,
    },
    Client {
        suite: "az",
        name: "az",
        client: "`az storage table`, `entity`, `queue`, `message`, `container`, `blob`",
        pinned: ("sdk/az/requirements.txt", &["azure-cli=="]),
        runtime: ("Python", &[&["python3", "--version"], &["python", "--version"]]),
        behaviours_min: 30,
    },
    Client {
        suite: "browser",
        name: "Browser",
        client: "the explorer, and pages of another origin, by `playwright-core`",
        pinned: ("browser/package.json", &["\"playwright-core\":"]),
        runtime: (
            "Chromium",
            &[
                &["chromium", "--version"],
                &["chromium-browser", "--version"],
                &["google-chrome", "--version"],
            ],
        ),
        behaviours_min: 1,
    },
];

struct Choice {
    against_azurite: bool,
    /// Suites named with `--only`; empty means all.
    only: Vec<String>,
}

impl Choice {
    fn read(arguments: &[String]) -> Result<Choice, String> {
        let mut choice = Choice { against_azurite: false, only: Vec::new() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (word.as_str(), words.next().cloned()),
            };
            let value = value.ok_or_else(|| format!("{option} needs a value"))?;
            match option {
                "--against" if value == "azurite" => choice.against_azurite = true,
                "--against" => return Err(format!("cannot compare with '{value}': only azurite is known")),
                "--only" if CLIENTS.iter().any(|client| client.suite == value) => choice.only.push(value),
                "--only" => return Err(format!("unknown suite '{value}'")),
                other => return Err(format!("unknown argument '{other}'")),
            }
        }
        Ok(choice)
    }

    fn includes(&self, suite: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == suite)
    }
}

pub fn run(arguments: &[String]) -> Result<bool, String> {
    let choice = Choice::read(arguments)?;
    let chosen: Vec<&Client> = CLIENTS.iter().filter(|client| choice.includes(client.suite)).collect();
    let is_set_up = |client: &&&Client| client.suite != RAW_HTTP;
    let set_ups =
        SetUps::start(chosen.iter().filter(is_set_up).map(|client| client.suite.to_owned()).collect());
    // The raw HTTP suite runs the server inside its own process.
    if chosen.iter().any(|client| client.suite != RAW_HTTP) {
        println!("==> building the server");
        if !process::build_release_programs()? {
            return Ok(false);
        }
    }

    let mut is_good = true;
    let mut skipped = Vec::new();
    let mut rows = Vec::new();
    for client in chosen {
        println!("\n==> {}: {}", client.suite, client.client);
        match run_client(client, &set_ups)? {
            Ok(row) => {
                is_good &= is_enough(client, &row);
                rows.push(row);
            }
            Err(missing) => {
                println!("SKIPPED {}: {missing}", client.suite);
                skipped.push(client.suite);
            }
        }
    }
    if choice.against_azurite {
        println!("\n==> azurite: the raw HTTP suites against Azurite");
        match azurite::compare(&azurite::RAW_HTTP)? {
            Ok(comparison) => comparison.write()?,
            Err(missing) => {
                println!("SKIPPED azurite: {missing}");
                skipped.push("azurite");
            }
        }
    }
    let (comparison, differences) = (Comparison::read()?, Difference::read_all()?);
    is_good &= comparison.check(&differences);

    println!("\n{}\n{}", document::summary(&rows), document::by_area(&rows));
    if !skipped.is_empty() {
        println!("SKIPPED because a toolchain is missing: {}", skipped.join(", "));
    }
    if !choice.only.is_empty() || !skipped.is_empty() {
        println!("docs/conformance.md was not written, because not every suite ran");
        return Ok(is_good);
    }
    let raw = rows.first().map_or(&[][..], |row| &row.cases);
    let text = document::write(&rows, raw, &comparison, &differences);
    let path = process::root().join("docs").join("conformance.md");
    std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("written: docs/conformance.md");
    Ok(is_good)
}

fn run_client(client: &Client, set_ups: &SetUps) -> Result<Result<Row, String>, String> {
    let (cases, failed) = if client.suite == RAW_HTTP {
        raw_http::run()?
    } else {
        match set_ups.run(client.suite, &process::release_program("lazulite")?)? {
            Ok(ran) => (ran.cases, ran.counts.failed),
            Err(missing) => return Ok(Err(missing)),
        }
    };
    let counts = cases::counts(&cases);
    if counts.skipped > 0 && counts.passed + failed == 0 {
        return Ok(Err("all of its tests were skipped; each says why".to_owned()));
    }
    let failed_besides = failed - counts.failed;
    let (name, client_name) = (client.name, client.client);
    let (version, runtime) = (pinned_versions(client.pinned)?, runtime(client));
    Ok(Ok(Row { name, client: client_name, version, runtime, cases, failed_besides }))
}

/// Whether nothing failed and enough behaviours passed. Prints what is wrong.
fn is_enough(client: &Client, row: &Row) -> bool {
    let (shown, wanted) = (cases::behaviours(&row.cases), client.behaviours_min);
    if shown < wanted {
        println!("{}: {shown} behaviours passed, at least {wanted} are required", client.suite);
    }
    let counts = row.counts();
    if counts.failed > 0 {
        println!("{}: {} failed", client.suite, counts.failed);
    }
    shown >= wanted && counts.failed == 0
}

/// The versions pinned in a file below `tests`, each after its word.
fn pinned_versions((file, words): (&str, &[&str])) -> Result<String, String> {
    if words.is_empty() {
        return Ok("–".to_owned());
    }
    let path = process::root().join("tests").join(file);
    let text = suites::read(&path)?;
    let version = |word: &&str| {
        let found = text.split_once(word).and_then(|(_, rest)| document::first_version(rest));
        found.ok_or_else(|| format!("{} pins no version after '{}'", path.display(), word.trim()))
    };
    Ok(words.iter().map(version).collect::<Result<Vec<_>, _>>()?.join(", "))
}

fn runtime(client: &Client) -> String {
    let (name, commands) = client.runtime;
    let said = commands.iter().find_map(|words| process::answer(Command::new(words[0]).args(&words[1..])));
    let version = said.and_then(|said| document::first_version(&said));
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Case;

    fn choice(words: &str) -> Result<(bool, Vec<String>), String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Choice::read(&words).map(|choice| (choice.against_azurite, choice.only))
    }

    #[test]
    fn the_command_line_is_read() {
        assert_eq!(choice(""), Ok((false, vec![])));
        assert_eq!(choice("--against azurite"), Ok((true, vec![])));
        let two = vec!["az".to_owned(), "raw-http".to_owned()];
        assert_eq!(choice("--only=az --against=azurite --only raw-http"), Ok((true, two)));
        for wrong in ["--against", "--against=other", "--only nothing", "--fast"] {
            assert!(choice(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_client_has_a_pinned_version() {
        for client in CLIENTS.iter().filter(|client| client.suite != RAW_HTTP) {
            let versions = pinned_versions(client.pinned).unwrap();
            assert_eq!(versions.split(", ").count(), client.pinned.1.len());
            assert!(
                versions.split(", ").all(|version| version.contains('.')),
                "{}: {versions}",
                client.suite
            );
        }
    }

    #[test]
    fn too_little_is_not_enough() {
        let row = |count: usize, failed_besides| Row {
            name: "x",
            client: "x",
            version: String::new(),
            runtime: String::new(),
            cases: (0..count).map(|n| Case::new("keys", &format!("t{n}"), cases::Outcome::Passed)).collect(),
            failed_besides,
        };
        let python = &CLIENTS[1];
        assert!(is_enough(python, &row(40, 0)));
        assert!(!is_enough(python, &row(39, 0)));
        assert!(!is_enough(python, &row(40, 1)));
    }
}
