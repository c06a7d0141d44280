//! Encrypted connections to the database: whose certificate is accepted, and what is said of the others.

#![cfg(all(unix, feature = "tls"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use engine::conformance::FAMILIES;
use engine::env::SystemClock;
use engine_postgres::PostgresEngine;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use testkit::{Postgres, TempDir};

use support::Database;

const NAME: &str = "a_certificate_is_checked_against_the_authorities_and_the_name";
/// The authorities come from the environment of a process, so each case has a process for itself: this test again.
const URL_OF_CHILD: &str = "LAZULITE_TEST_TLS_URL";

struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { directory, issuer: Issuer::new(params, key) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Lets the server present a certificate for this name. Some servers are built without TLS.
    fn certify(&self, server: &Postgres, name: &str) -> Result<(), String> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        for (file, text) in [("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())] {
            fs::write(self.path(file), text).unwrap();
            fs::set_permissions(self.path(file), fs::Permissions::from_mode(0o600)).unwrap();
            server.give(&self.path(file)).unwrap();
        }
        for (setting, value) in [
            ("ssl_cert_file", self.path("cert.pem").display().to_string()),
            ("ssl_key_file", self.path("key.pem").display().to_string()),
            ("ssl", "on".to_owned()),
            ("log_connections", "on".to_owned()),
        ] {
            server.sql(&format!("ALTER SYSTEM SET {setting} = '{value}'"))?;
        }
        server.sql("SELECT pg_reload_conf()")?;
        Ok(())
    }
}

/// What an engine says that trusts this authority alone.
fn connect(url: &str, authority: &Authority) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(URL_OF_CHILD, url)
        .env("SSL_CERT_FILE", authority.path("ca.pem"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let text = String::from_utf8(child.stdout).unwrap();
    let said = text.lines().find_map(|line| line.split_once("ENGINE: ").map(|(_, said)| said.to_owned()));
    said.unwrap_or_else(|| panic!("it said nothing: {text} {}", String::from_utf8_lossy(&child.stderr)))
}

async fn connect_in_child(url: String) {
    let database = Database { url, schema: "tls".to_owned() };
    match PostgresEngine::connect(database.options(FAMILIES, Arc::new(SystemClock::new()))).await {
        Ok(_) => println!("ENGINE: connected"),
        Err(error) => println!("ENGINE: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_checked_against_the_authorities_and_the_name() {
    if let Ok(url) = std::env::var(URL_OF_CHILD) {
        return connect_in_child(url).await;
    }
    let (ours, other) = (Authority::new("Our authority"), Authority::new("Another authority"));
    let started = Postgres::start().and_then(|server| ours.certify(&server, "127.0.0.1").map(|()| server));
    let server = match started {
        Ok(server) => server,
        Err(reason) => {
            println!("SKIPPED {NAME}: {reason}");
            return;
        }
    };
    let with = |parameters: &str| format!("{}?{parameters}", server.url());
    let required = with("sslmode=require");

    let encrypted_before = server.log().matches("SSL enabled").count();
    assert_eq!(connect(&required, &ours), "connected");
    assert!(server.log().matches("SSL enabled").count() > encrypted_before, "it was not encrypted");
    // Without a word about it a server with TLS is used with TLS, and then its certificate counts.
    assert_eq!(connect(&server.url(), &ours), "connected");
    for url in [&required, &server.url()] {
        let said = connect(url, &other);
        assert!(said.contains("TLS") && said.contains("UnknownIssuer"), "{said}");
        assert!(!said.contains(server.password()), "{said}");
    }
    let said = connect(&required.replace("127.0.0.1", "localhost"), &ours);
    assert!(said.contains("TLS") && said.contains("not valid for name"), "{said}");
    assert_eq!(connect(&with("sslmode=disable"), &other), "connected");
}
