//! Handshakes over real sockets, and refusals of every kind of broken file.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::reload::{Looked, Watch};
use crate::*;

const TIME_MAX: Duration = Duration::from_secs(20);
const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn clock() -> WallClock {
    Arc::new(UnixTime::now)
}

/// A clock that moves only when the test moves it. Starts on the first day of 2025.
struct FakeClock {
    seconds: AtomicU64,
}

impl FakeClock {
    fn new() -> Arc<FakeClock> {
        Arc::new(FakeClock { seconds: AtomicU64::new(1_735_689_600) })
    }

    fn advance(&self, by: Duration) {
        self.seconds.fetch_add(by.as_secs(), Ordering::Relaxed);
    }

    fn step_back(&self, by: Duration) {
        self.seconds.fetch_sub(by.as_secs(), Ordering::Relaxed);
    }

    fn reader(self: &Arc<FakeClock>) -> WallClock {
        let clock = self.clone();
        Arc::new(move || {
            UnixTime::since_unix_epoch(Duration::from_secs(clock.seconds.load(Ordering::Relaxed)))
        })
    }
}

/// An authority for tests, and the directory of the files that it issues.
struct Bench {
    directory: TempDir,
    authority: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Bench {
    fn new() -> Bench {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap().der().clone();
        Bench { directory: tempfile::tempdir().unwrap(), authority: Issuer::new(params, key), root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate for `localhost` and its key, as PEM.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.authority).unwrap().pem(), key.serialize_pem())
    }

    fn source(&self) -> TlsSource {
        TlsSource::Pem { cert: self.path("cert.pem"), key: self.path("key.pem") }
    }

    fn write(&self, certificate: &str, key: &str) {
        std::fs::write(self.path("cert.pem"), certificate).unwrap();
        std::fs::write(self.path("key.pem"), key).unwrap();
    }

    fn load(&self) -> Result<Tls, TlsError> {
        Tls::load(self.source(), clock())
    }

    fn issued() -> (Bench, Tls) {
        let bench = Bench::new();
        let (certificate, key) = bench.issue();
        bench.write(&certificate, &key);
        let tls = bench.load().unwrap();
        (bench, tls)
    }
}

/// Accepts connections forever, and echoes everything that they send after the handshake.
async fn serve(tls: Tls, time_max: Duration) -> (std::net::SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream, time_max).await else { return };
                let (mut read, mut write) = tokio::io::split(stream);
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    (address, task)
}

fn client(root: &CertificateDer<'static>, versions: &[&'static SupportedProtocolVersion]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), PROTOCOL.to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Connects once, sends a word and reads its echo. Returns the certificates that the server presented.
async fn talk(
    client: &TlsConnector,
    address: std::net::SocketAddr,
    host: &str,
) -> io::Result<Vec<CertificateDer<'static>>> {
    let stream = TcpStream::connect(address).await?;
    let mut stream = client.connect(ServerName::try_from(host.to_owned()).unwrap(), stream).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(PROTOCOL));
    stream.write_all(b"hello").await?;
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).await?;
    assert_eq!(&heard, b"hello");
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let shown = shown.iter().map(|certificate| certificate.clone().into_owned()).collect();
    stream.shutdown().await?;
    Ok(shown)
}

fn both() -> Vec<&'static SupportedProtocolVersion> {
    vec![&rustls::version::TLS13, &rustls::version::TLS12]
}

#[tokio::test]
async fn a_certificate_from_pem_files_is_shown_in_both_versions_of_tls() {
    let (bench, tls) = Bench::issued();
    assert!(tls.how_to_trust().is_none());
    let (address, _task) = serve(tls, TIME_MAX).await;
    for version in both() {
        talk(&client(&bench.root, &[version]), address, "localhost").await.unwrap();
    }
    // Clients refuse a host that the certificate does not name, and an authority that they do not trust.
    talk(&client(&bench.root, &both()), address, "example.org").await.unwrap_err();
    talk(&client(&Bench::new().root, &both()), address, "localhost").await.unwrap_err();
}

#[test]
fn what_is_wrong_with_pem_files_is_said_in_a_sentence_that_names_the_file() {
    let bench = Bench::new();
    let (certificate, key) = bench.issue();
    let (_, other_key) = bench.issue();
    let check = |certificate: &str, key: &str, part: &str, file: &str| {
        bench.write(certificate, key);
        let sentence = bench.load().err().unwrap().to_string();
        assert!(sentence.contains(part) && sentence.contains(file), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    };
    let half = &certificate[..certificate.len() / 2];
    let garbled = certificate.replace("MII", "M*I");
    let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let hollow_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let encrypted_as_before = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n\
                               AAAA\n-----END EC PRIVATE KEY-----\n";
    check(&certificate, &other_key, "is not the key of the certificate", "key.pem");
    check("", &key, "no certificate", "cert.pem");
    check("hello", &key, "no certificate", "cert.pem");
    check(&key, &key, "no certificate", "cert.pem");
    check(half, &key, "not in PEM form", "cert.pem");
    check(&garbled, &key, "not in PEM form", "cert.pem");
    check(hollow, &key, "damaged", "cert.pem");
    check(&certificate, "", "no private key", "key.pem");
    check(&certificate, &certificate, "no private key", "key.pem");
    check(&certificate, hollow_key, "damaged", "key.pem");
    check(&certificate, encrypted, "is encrypted", "key.pem");
    check(&certificate, encrypted_as_before, "is encrypted", "key.pem");
    check(&"x".repeat(2 * 1024 * 1024), &key, "too large", "cert.pem");
    std::fs::remove_file(bench.path("cert.pem")).unwrap();
    assert_eq!(
        bench.load().err().unwrap().to_string(),
        format!("there is no file '{}'", bench.path("cert.pem").display())
    );
}

fn pfx(name: &str, password: &str) -> TlsSource {
    TlsSource::Pfx { file: Path::new(TESTDATA).join(name), password: password.to_owned() }
}

#[cfg(feature = "pfx")]
#[tokio::test]
async fn pfx_files_of_every_age_are_read_with_their_chain() {
    let root = CertificateDer::from_pem_file(Path::new(TESTDATA).join("root.pem")).unwrap();
    for (name, password) in
        [("modern.pfx", "pässwörd"), ("legacy.pfx", "pässwörd"), ("mixed.pfx", "x"), ("empty.pfx", "")]
    {
        let tls = Tls::load(pfx(name, password), clock()).unwrap_or_else(|error| panic!("{error}"));
        let (address, task) = serve(tls, TIME_MAX).await;
        // The client knows only the root, so it needs the intermediate certificate, which comes last in the file.
        let shown = talk(&client(&root, &both()), address, "localhost").await;
        assert_eq!(shown.unwrap_or_else(|error| panic!("{name}: {error}")).len(), 2, "{name}");
        task.abort();
    }
    for (name, password) in
        [("tripledes.pfx", "x"), ("java.pfx", "changeit"), ("open.pfx", ""), ("open.pfx", "any")]
    {
        Tls::load(pfx(name, password), clock()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[cfg(feature = "pfx")]
#[test]
fn a_pfx_file_that_does_not_open_says_why() {
    let check = |source: TlsSource, part: &str| {
        let file = source.files()[0].display().to_string();
        assert!(!format!("{source:?}").contains("wrong"), "the password is not for logs");
        let sentence = Tls::load(source, clock()).err().unwrap().to_string();
        assert!(sentence.contains(part) && sentence.contains(&file), "{sentence}");
    };
    for name in ["modern.pfx", "legacy.pfx", "mixed.pfx", "empty.pfx", "java.pfx"] {
        check(pfx(name, "wrong"), "the password does not open");
    }
    check(pfx("modern.pfx", ""), "the password does not open");
    check(pfx("nokey.pfx", "x"), "no private key");
    check(pfx("root.pem", "x"), "not a PFX");
    check(pfx("absent.pfx", "x"), "there is no file");
}

/// The MAC detects changes inside the content. Damage anywhere else must not cause a panic either.
#[cfg(feature = "pfx")]
#[test]
fn no_damage_to_a_pfx_file_makes_the_reader_panic() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.pfx");
    let check = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        // Any result is fine, as long as it is returned.
        let _ = pfx::read(&file, "x", &ring::default_provider());
    };
    // Without a MAC and ciphers, damage reaches every part of the reader, and each attempt is fast.
    let whole = std::fs::read(Path::new(TESTDATA).join("open.pfx")).unwrap();
    for at in 0..whole.len() {
        check(&whole[..at]);
        for flip in [0x01, 0x80, 0xFF] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            check(&damaged);
        }
    }
    let whole = std::fs::read(Path::new(TESTDATA).join("mixed.pfx")).unwrap();
    for at in (0..whole.len()).step_by(29) {
        check(&whole[..at]);
    }
}

#[cfg(not(feature = "pfx"))]
#[test]
fn a_build_without_pfx_says_how_to_get_one_with_it() {
    let sentence = Tls::load(pfx("modern.pfx", "pässwörd"), clock()).err().unwrap().to_string();
    assert!(sentence.contains("modern.pfx") && sentence.contains("--features pfx"), "{sentence}");
    assert!(sentence.contains("openssl"), "{sentence}");
}

fn local_ca(directory: &Path, hosts: &[&str]) -> TlsSource {
    TlsSource::LocalCa {
        directory: directory.to_owned(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
    }
}

fn root_of(directory: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(directory.join("ca.pem")).unwrap()
}

#[tokio::test]
async fn the_local_authority_vouches_for_every_name_of_this_machine_and_those_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().join("tls");
    let hosts = ["tables.example.org", "*.tables.example.org", "192.0.2.7", "2001:db8::7", "LOCALHOST"];
    let tls = Tls::load(local_ca(&directory, &hosts), clock()).unwrap();
    let told = tls.how_to_trust().unwrap();
    let authority = directory.join("ca.pem");
    for part in [authority.to_str().unwrap(), "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
        assert!(told.contains(part), "{told}");
    }
    let (address, _task) = serve(tls, TIME_MAX).await;
    let client = client(&root_of(&directory), &both());
    for host in [
        "localhost",
        "127.0.0.1",
        "::1",
        "devstoreaccount1.table.localhost",
        "tables.example.org",
        "account.tables.example.org",
        "192.0.2.7",
        "2001:db8::7",
    ] {
        talk(&client, address, host).await.unwrap_or_else(|error| panic!("{host}: {error}"));
    }
    talk(&client, address, "example.org").await.unwrap_err();
}

#[cfg(unix)]
#[test]
fn the_keys_of_the_local_authority_are_for_their_owner_alone() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().join("tls");
    Tls::load(local_ca(&directory, &[]), clock()).unwrap();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(directory.join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
    };
    assert_eq!([mode(""), mode("ca.key"), mode("server.key")], [0o700, 0o600, 0o600]);
    let mut names: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["ca.key", "ca.pem", "server.key", "server.pem"]);
}

/// The contents of the four files.
fn contents(directory: &Path) -> [Vec<u8>; 4] {
    ["ca.pem", "ca.key", "server.pem", "server.key"].map(|name| std::fs::read(directory.join(name)).unwrap())
}

#[test]
fn files_are_reused_while_they_serve_and_only_the_certificate_is_issued_anew() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path();
    let clock = FakeClock::new();
    let load = |hosts: &[&str]| {
        Tls::load(local_ca(directory, hosts), clock.reader()).unwrap_or_else(|error| panic!("{error}"));
        contents(directory)
    };
    let first = load(&[]);
    let days = |count: u64| Duration::from_secs(count * 24 * 60 * 60);
    clock.advance(days(365));
    assert_eq!(load(&[]), first, "more than thirty days are left");

    clock.advance(days(2));
    let renewed = load(&[]);
    assert_eq!(renewed[..2], first[..2], "the authority stays");
    assert_ne!(renewed[2], first[2]);
    assert_ne!(renewed[3], first[3]);

    let other_host = load(&["tables.example.org"]);
    assert_ne!(other_host[2], renewed[2], "the certificate did not name the host");
    assert_eq!(load(&[]), other_host, "one that names more serves too");

    // A crash between two writes leaves a key that does not belong to the certificate.
    std::fs::write(directory.join("server.key"), &renewed[3]).unwrap();
    let mended = load(&[]);
    assert_eq!(mended[..2], first[..2]);
    assert_ne!(mended[2], other_host[2]);

    // A clock far in the past: nothing is valid yet.
    clock.step_back(days(400));
    assert_ne!(load(&[])[2], mended[2]);
    clock.advance(days(400));

    clock.advance(days(3650));
    let aged = load(&[]);
    assert_eq!(aged[1], first[1], "an authority keeps its key when its certificate is renewed");
    assert_ne!(aged[0], first[0]);
}

#[test]
fn a_broken_local_authority_is_reported_and_never_replaced() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path();
    let path = |name| directory.join(name);
    let load = || Tls::load(local_ca(directory, &[]), clock());
    load().unwrap();
    let whole = contents(directory);

    // A user who hides the authority's key can still serve the certificate that it has issued.
    std::fs::remove_file(path("ca.key")).unwrap();
    load().unwrap();
    std::fs::remove_file(path("server.pem")).unwrap();
    let sentence = load().err().unwrap().to_string();
    assert!(sentence.contains("ca.key") && sentence.contains("missing"), "{sentence}");

    std::fs::write(path("ca.key"), "nonsense").unwrap();
    let sentence = load().err().unwrap().to_string();
    assert!(sentence.contains("ca.key"), "{sentence}");

    // Another authority's key.
    std::fs::write(path("ca.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let sentence = load().err().unwrap().to_string();
    assert!(sentence.contains("is not the key of the certificate"), "{sentence}");

    // A certificate for our key, but made by somebody else and with another name.
    let key = KeyPair::from_pem(std::str::from_utf8(&whole[1]).unwrap()).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(path("ca.key"), &whole[1]).unwrap();
    std::fs::write(path("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let sentence = load().err().unwrap().to_string();
    assert!(sentence.contains("ca.pem") && sentence.contains("vouch"), "{sentence}");

    // A key alone gets its certificate back.
    std::fs::remove_file(path("ca.pem")).unwrap();
    load().unwrap();

    let sentence = Tls::load(local_ca(directory, &["a b"]), clock()).err().unwrap().to_string();
    assert!(sentence.contains("'a b'"), "{sentence}");
    let taken = path("taken");
    std::fs::write(&taken, "").unwrap();
    let sentence = Tls::load(local_ca(&taken, &[]), clock()).err().unwrap().to_string();
    assert!(sentence.contains("taken"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_certificate_is_shown_without_a_failed_connection() {
    const CLIENT_COUNT: usize = 4;
    const SWAP_COUNT: usize = 10;
    let (bench, tls) = Bench::issued();
    let mut watch = Watch::new(tls.clone());
    let (address, _task) = serve(tls, TIME_MAX).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let talk_count = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENT_COUNT)
        .map(|_| {
            let (root, is_done, talk_count) = (bench.root.clone(), is_done.clone(), talk_count.clone());
            tokio::spawn(async move {
                // This client resumes its sessions, as real clients do.
                let client = client(&root, &both());
                while !is_done.load(Ordering::Relaxed) {
                    talk(&client, address, "localhost").await.unwrap();
                    talk_count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..SWAP_COUNT {
        let (certificate, key) = bench.issue();
        // Write one file after the other, and look while each is only half written.
        std::fs::write(bench.path("cert.pem"), &certificate[..100]).unwrap();
        assert!(matches!(watch.look(), Looked::Kept));
        std::fs::write(bench.path("cert.pem"), &certificate).unwrap();
        assert!(matches!(watch.look(), Looked::Kept));
        let before = talk_count.load(Ordering::Relaxed);
        while talk_count.load(Ordering::Relaxed) < before + 2 * CLIENT_COUNT {
            tokio::task::yield_now().await;
        }
        replace(&bench.path("key.pem"), &key);
        assert!(matches!(watch.look(), Looked::Swapped));
        let shown = talk(&client(&bench.root, &both()), address, "localhost").await.unwrap();
        assert_eq!(shown, [CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()]);
    }
    is_done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}

/// Replaces the file in one step, as careful programs do. Each call writes a different length, so that the stamp changes
/// however coarse the clock of the file system is.
fn replace(path: &Path, text: &str) {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text.to_owned() + &"\n".repeat(fresh())).unwrap();
    std::fs::rename(&temporary, path).unwrap();
}

fn fresh() -> usize {
    static COUNTER: AtomicUsize = AtomicUsize::new(1);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn files_that_cannot_be_used_change_nothing_until_they_can() {
    let (bench, tls) = Bench::issued();
    let before = tls.current();
    let mut watch = Watch::new(tls.clone());
    assert!(matches!(watch.look(), Looked::Same));
    std::fs::remove_file(bench.path("key.pem")).unwrap();
    assert!(matches!(watch.look(), Looked::Kept), "tried at once");
    assert!(matches!(watch.look(), Looked::Kept), "and once more, with a complaint");
    for _ in 2..60 {
        assert!(matches!(watch.look(), Looked::Same), "left alone while nothing changes");
    }
    assert!(matches!(watch.look(), Looked::Kept), "tried again after a minute");
    assert!(Arc::ptr_eq(&before, &tls.current()));
    let (certificate, key) = bench.issue();
    replace(&bench.path("cert.pem"), &certificate);
    assert!(matches!(watch.look(), Looked::Kept));
    replace(&bench.path("key.pem"), &key);
    assert!(matches!(watch.look(), Looked::Swapped));
    assert!(matches!(watch.look(), Looked::Same));
    assert!(!Arc::ptr_eq(&before, &tls.current()));
}

#[test]
fn a_server_that_runs_for_a_year_renews_its_certificate() {
    let data = tempfile::tempdir().unwrap();
    let clock = FakeClock::new();
    let tls = Tls::load(local_ca(data.path(), &[]), clock.reader()).unwrap();
    let first = contents(data.path());
    let mut watch = Watch::new(tls);
    assert!(matches!(watch.look(), Looked::Same), "what was just made is not new");
    clock.advance(Duration::from_secs(380 * 24 * 60 * 60));
    let swapped = (0..3600).filter(|_| matches!(watch.look(), Looked::Swapped)).count();
    assert_eq!(swapped, 1);
    assert_ne!(contents(data.path())[2], first[2]);
}

#[tokio::test]
async fn the_watch_finds_a_new_certificate_by_itself() {
    let (bench, tls) = Bench::issued();
    let before = tls.current();
    let (certificate, key) = bench.issue();
    replace(&bench.path("cert.pem"), &certificate);
    replace(&bench.path("key.pem"), &key);
    let watch = tokio::spawn(tls.clone().watch());
    let swapped = async {
        while Arc::ptr_eq(&before, &tls.current()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIME_MAX, swapped).await.unwrap();
    watch.abort();
}

/// Starts one handshake. Returns the client's socket and a handle to the server's result.
async fn accept_one(tls: Tls, time_max: Duration) -> (TcpStream, JoinHandle<Result<TlsStream, TlsRefusal>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    (stream, tokio::spawn(async move { tls.accept(accepted, time_max).await }))
}

#[tokio::test]
async fn plain_http_is_told_that_this_port_speaks_https() {
    let (_bench, tls) = Bench::issued();
    let large =
        [&b"POST /t HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n"[..], &vec![b'x'; 4_000_000]].concat();
    for request in [&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], b"\x00", &large] {
        let (stream, server) = accept_one(tls.clone(), TIME_MAX).await;
        let (mut read, mut write) = stream.into_split();
        let mut answer = String::new();
        // Sends everything before it reads, as many clients do.
        write.write_all(request).await.unwrap();
        read.read_to_string(&mut answer).await.unwrap();
        drop((read, write));
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(body.contains("This port speaks HTTPS"), "{answer}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{answer}");
        assert!(head.contains("Connection: close"), "{answer}");
        assert!(matches!(server.await.unwrap(), Err(TlsRefusal::Plain)));
    }
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_cut_off() {
    let (_bench, tls) = Bench::issued();
    // The client sends nothing; the start of a hello; a plain request that it never finishes.
    for sent in [&b""[..], &[HANDSHAKE_RECORD, 3, 1, 2, 0, 1], b"GET / HTTP/1.1\r\n"] {
        let (mut stream, server) = accept_one(tls.clone(), Duration::from_millis(50)).await;
        stream.write_all(sent).await.unwrap();
        assert!(matches!(server.await.unwrap(), Err(TlsRefusal::TooSlow)));
        let mut rest = Vec::new();
        // The server closes the connection, with or without a reset, so this ends.
        let _ = tokio::time::timeout(TIME_MAX, stream.read_to_end(&mut rest)).await.unwrap();
    }
}

#[tokio::test]
async fn nonsense_and_silence_are_failures_with_a_reason() {
    let (_bench, tls) = Bench::issued();
    for sent in [&b""[..], &[HANDSHAKE_RECORD; 64], &[HANDSHAKE_RECORD, 3, 1, 0xFF, 0xFF, 0]] {
        let (mut stream, server) = accept_one(tls.clone(), TIME_MAX).await;
        stream.write_all(sent).await.unwrap();
        stream.shutdown().await.unwrap();
        let refusal = server.await.unwrap().err().unwrap();
        assert!(matches!(refusal, TlsRefusal::Failed(_)), "{refusal}");
        assert!(refusal.to_string().starts_with("the TLS handshake failed"), "{refusal}");
    }
}
