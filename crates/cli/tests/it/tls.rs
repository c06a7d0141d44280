//! TLS: the local authority, PEM and PFX files, plain HTTP refused, and a certificate replaced under load.
//!
//! The Python SDK over TLS, with its authority set, is in `tests/sdk`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use testkit::{Credentials, RawClient, Request, Sas, TempDir};

use crate::refusal;
use crate::running::{Running, TlsClient, assert_private, within};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/testdata");
/// A running server checks its files once a second.
const NOTICED_WITHIN: Duration = Duration::from_secs(8);

/// An authority, and the files that it issues.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority for tests");
        let key = KeyPair::generate().unwrap();
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        let authority = Authority { directory, issuer: Issuer::new(params, key) };
        authority.issue();
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a new certificate and key into the same files, one after the other, as renewal scripts do.
    fn issue(&self) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path("cert.pem"), certificate.pem()).unwrap();
        std::fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
    }

    fn serve(&self) -> Running {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let files = ["--cert", cert.to_str().unwrap(), "--key", key.to_str().unwrap()];
        Running::start(
            &[&["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &files[..]]
                .concat(),
            &[],
        )
    }
}

fn tables() -> Request {
    Request::get("/Tables")
}

#[test]
fn a_local_authority_is_made_once_and_kept() {
    let data = TempDir::new().unwrap();
    let server = Running::over(data.path(), &["--https"]);
    assert!(server.is_https);
    let authority = data.path().join("tls/ca.pem");
    server.line_with(authority.to_str().unwrap());
    server.line_with("DefaultEndpointsProtocol=https;");
    assert_private(&data.path().join("tls"), 0o700);
    for secret in ["ca.key", "server.key"] {
        assert_private(&data.path().join("tls").join(secret), 0o600);
    }
    for host in ["localhost", "127.0.0.1", "account.table.localhost"] {
        let mut client = TlsClient::connect(server.addr(), &authority, host).unwrap();
        assert_eq!(client.exchange(&server.bytes_of(&tables())).unwrap().status, 200, "{host}");
    }
    assert!(TlsClient::connect(server.addr(), &authority, "example.org").is_err(), "not our name");
    let create = Request::post("/Tables").json(r#"{"TableName":"mytable"}"#);
    let response = server.send_over_tls(&authority, create).expect(201);
    assert!(response.required("Location").starts_with("https://"), "{response:?}");
    let first = std::fs::read(&authority).unwrap();
    let said = server.stop();
    assert!(!said.contains("PRIVATE KEY"), "{said}");
    let server = Running::over(data.path(), &["--https"]);
    assert_eq!(std::fs::read(&authority).unwrap(), first, "trusting it once is enough");
    server.send_over_tls(&authority, tables()).expect(200);
}

#[test]
fn pem_files_serve() {
    let authority = Authority::new();
    let server = authority.serve();
    server.send_over_tls(&authority.path("ca.pem"), tables()).expect(200);
    let stranger = Authority::new();
    assert!(TlsClient::connect(server.addr(), &stranger.path("ca.pem"), "localhost").is_err());
    // A token that demands HTTPS is accepted over TLS.
    let sas = Sas::account("2019-02-02").set("spr", "https").sign(&Credentials::emulator());
    server.send_over_tls(&authority.path("ca.pem"), tables().sas(&sas)).expect(200);
}

#[cfg(feature = "pfx")]
#[test]
fn a_pfx_file_serves_with_its_password() {
    let root = Path::new(TESTDATA).join("root.pem");
    for (file, password) in [("modern.pfx", "pässwörd"), ("legacy.pfx", "pässwörd"), ("mixed.pfx", "x")] {
        let path = format!("{TESTDATA}/{file}");
        let arguments = [
            "--in-memory",
            "--table-port",
            "0",
            "--queue-port",
            "0",
            "--blob-port",
            "0",
            "--cert",
            &path,
            "--pwd",
            password,
        ];
        let server = Running::start(&arguments, &[]);
        server.send_over_tls(&root, tables()).expect(200);
        assert!(!server.stop().contains("pässwörd"));
    }
}

#[test]
fn a_plain_request_to_a_tls_port_is_told_so() {
    let authority = Authority::new();
    let server = authority.serve();
    let long = Request::post("/mytable").json(&" ".repeat(1 << 20));
    for bytes in [server.bytes_of(&tables()), server.bytes_of(&long), b"nonsense\r\n\r\n".to_vec()] {
        let response = RawClient::connect(server.addr()).unwrap().exchange(&bytes).unwrap().expect(400);
        assert!(response.text().contains("HTTPS"), "{response:?}");
        assert!(!response.text().contains("odata"), "nothing behind the door has spoken");
    }
    server.send_over_tls(&authority.path("ca.pem"), tables()).expect(200);
    // A TLS handshake with a plain HTTP port fails, too.
    let plain =
        Running::start(&["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], &[]);
    assert!(TlsClient::connect(plain.addr(), &authority.path("ca.pem"), "localhost").is_err());
    plain.send(tables()).expect(200);
}

#[test]
fn openssl_speaks_with_us() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("SKIPPED: openssl is not on the PATH");
        return;
    }
    let data = TempDir::new().unwrap();
    let (local, issued) = (Running::over(data.path(), &["--https"]), Authority::new());
    check_openssl(&local, &data.path().join("tls/ca.pem"));
    check_openssl(&issued.serve(), &issued.path("ca.pem"));
}

fn check_openssl(server: &Running, authority: &Path) {
    let request = server.bytes_of(&tables().header("Connection", "close"));
    let talk = |options: &[&str]| {
        let mut child = Command::new("openssl")
            .args(["s_client", "-connect", &server.addr().to_string(), "-servername", "localhost"])
            .args(["-verify_hostname", "localhost", "-verify_return_error", "-ign_eof"])
            .args(["-CAfile", authority.to_str().unwrap()])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A client that failed the handshake may exit before it reads this.
        let _ = child.stdin.take().unwrap().write_all(&request);
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    };
    for options in [&["-tls1_2"][..], &["-tls1_3"], &["-alpn", "h2,http/1.1"], &[]] {
        let said = talk(options);
        assert!(said.contains("HTTP/1.1 200 OK"), "{options:?}:\n{said}");
        assert!(said.contains("Verify return code: 0 (ok)") || said.contains("Verification: OK"), "{said}");
    }
    let said = talk(&["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]);
    assert!(!said.contains("HTTP/1.1"), "an old version:\n{said}");
}

#[test]
fn a_certificate_is_swapped_under_load_without_a_failed_request() {
    let authority = Authority::new();
    let server = authority.serve();
    let root = authority.path("ca.pem");
    let (is_over, answered, connected) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let shown = || TlsClient::connect(server.addr(), &root, "localhost").unwrap().certificate();
    std::thread::scope(|scope| {
        let ask = |client: &mut TlsClient| {
            let response = client.exchange(&server.bytes_of(&tables())).expect("an answer");
            assert_eq!(response.status, 200);
            answered.fetch_add(1, Ordering::Relaxed);
        };
        // One connection for all requests, one per request, and one per five requests.
        for requests_per_connection in [usize::MAX, 1, 5] {
            let (is_over, connected, server, root) = (&is_over, &connected, &server, &root);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client =
                        TlsClient::connect(server.addr(), root, "localhost").expect("a handshake");
                    connected.fetch_add(1, Ordering::Relaxed);
                    let mut sent = 0;
                    while sent < requests_per_connection && !is_over.load(Ordering::Relaxed) {
                        ask(&mut client);
                        sent += 1;
                    }
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..3 {
                let before = shown();
                authority.issue();
                assert!(within(NOTICED_WITHIN, || shown() != before), "the new certificate is not shown");
            }
            // An unusable certificate does not replace a good one.
            let good = shown();
            std::fs::write(authority.path("cert.pem"), "nonsense").unwrap();
            server.line_with("the certificate stays as it was");
            assert_eq!(shown(), good);
            authority.issue();
            assert!(within(NOTICED_WITHIN, || shown() != good), "a good one comes again");
        }));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let (answered, connected) = (answered.into_inner(), connected.into_inner());
    println!("{answered} requests over {connected} connections, none failed");
    assert!(answered > 100 && connected > 20, "{answered} requests over {connected} connections");
    assert!(!server.stop().contains("PRIVATE KEY"));
}

#[test]
fn mistakes_get_one_sentence_each() {
    let authority = Authority::new();
    let other = Authority::new();
    let path = |name: &str| authority.path(name).to_str().unwrap().to_owned();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let other_key = other.path("key.pem").to_str().unwrap().to_owned();
    let nonsense = path("nonsense");
    std::fs::write(&nonsense, "nonsense").unwrap();
    let pfx = format!("{TESTDATA}/modern.pfx");
    let check = |options: &[&str], part: &str| {
        let sentence = refusal(
            &[&["--in-memory", "--table-port", "0", "--queue-port", "0", "--blob-port", "0"], options]
                .concat(),
            &[],
        );
        assert!(sentence.contains(part), "{options:?}: {sentence}");
        assert!(!sentence.contains("secretpass"), "{sentence}");
    };
    check(&["--cert", &cert], "--key");
    check(&["--cert", &cert, "--key", &key, "--pwd", "secretpass"], "--pwd");
    check(&["--cert", "absent.pem", "--key", &key], "absent.pem");
    check(&["--cert", &cert, "--key", "absent.key"], "absent.key");
    check(&["--cert", &nonsense, "--key", &key], "nonsense");
    check(&["--cert", &cert, "--key", &nonsense], "nonsense");
    check(&["--cert", &cert, "--key", &other_key], &other_key);
    check(&["--cert", &pfx, "--pwd", "secretpass"], "modern.pfx");
    check(&["--cert", &nonsense, "--pwd", "secretpass"], "nonsense");
    check(&["--cert", &cert, "--key", &key, "--https"], "--https");
    check(&["--https"], "--in-memory");
}
