//! The transport against a real socket whose server does what a script says, byte by byte.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

/// What the server does with one request of a connection.
#[derive(Clone, Copy)]
enum Step {
    /// Writes these bytes, and reads the next request.
    Write(&'static str),
    /// Writes these bytes, and closes.
    WriteAndClose(&'static str),
    /// Writes each piece on its own, with a pause between them.
    Pieces(&'static [&'static str]),
    /// Reads the request, and closes without a word.
    Close,
    /// Answers, and closes a little later, when the connection is idle.
    WriteThenCloseIdle(&'static str),
    /// Reads the request, and never answers.
    Silence,
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct Server {
    url: String,
    connection_count: Arc<AtomicUsize>,
    closed_count: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

/// Each connection takes the next script; after the last one, each answers [`OK`] to everything.
async fn serve(scripts: &'static [&'static [Step]]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (connection_count, closed_count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let mut task = JoinSet::new();
    let (counted, closed, kept) = (connection_count.clone(), closed_count.clone(), requests.clone());
    task.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let script = scripts.get(counted.fetch_add(1, Ordering::SeqCst)).copied();
            let (closed, kept) = (closed.clone(), kept.clone());
            connections.spawn(async move {
                answer(socket, script, kept).await;
                closed.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    Server { url, connection_count, closed_count, requests, _task: task }
}

async fn answer(mut socket: TcpStream, script: Option<&'static [Step]>, requests: Arc<Mutex<Vec<String>>>) {
    let mut steps = script.unwrap_or_default().iter();
    while let Some(request) = read_request(&mut socket).await {
        requests.lock().unwrap().push(request);
        let step = match (script, steps.next()) {
            (_, Some(step)) => *step,
            (None, None) => Step::Write(OK),
            (Some(_), None) => return,
        };
        match step {
            Step::Write(text) => socket.write_all(text.as_bytes()).await.unwrap(),
            Step::WriteAndClose(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                return;
            }
            Step::Pieces(pieces) => {
                for piece in pieces {
                    socket.write_all(piece.as_bytes()).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            Step::Close => return,
            Step::WriteThenCloseIdle(text) => {
                socket.write_all(text.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
                return;
            }
            Step::Silence => std::future::pending().await,
        }
    }
}

/// Head and body of a request with a `Content-Length`. `None` when the client has closed.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        if socket.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
        let Some(head) = text.strip_suffix(b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        text.extend(body);
        return Some(String::from_utf8(text).unwrap());
    }
}

fn request(server: &Server, body: &'static str) -> Request<Bytes> {
    Request::post(format!("{}/acc/people?a=1", server.url)).body(Bytes::from_static(body.as_bytes())).unwrap()
}

fn transport() -> HttpTransport {
    HttpTransport::new(HttpOptions::default())
}

async fn text(transport: &HttpTransport, server: &Server) -> Result<String, TransportError> {
    let response = transport.send(request(server, "body")).await?;
    Ok(format!("{} {}", response.status().as_u16(), String::from_utf8_lossy(response.body())))
}

/// Waits until something is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        // The runtime looks at its sockets while this sleeps.
        tokio::time::sleep(Duration::from_millis(2)).await;
        if is_so() {
            return tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    panic!("it never is");
}

#[tokio::test]
async fn requests_are_written_as_http_says_and_share_a_connection() {
    let server = serve(&[]).await;
    let transport = transport();
    for _ in 0..3 {
        assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
    }
    assert_eq!(server.connection_count.load(Ordering::SeqCst), 1);
    let host = server.url.strip_prefix("http://").unwrap();
    let expected = format!("POST /acc/people?a=1 HTTP/1.1\r\nhost: {host}\r\ncontent-length: 4\r\n\r\nbody");
    assert_eq!(*server.requests.lock().unwrap(), [expected.clone(), expected.clone(), expected]);
}

#[tokio::test]
async fn parallel_requests_have_a_connection_each_and_no_more_than_allowed() {
    let server = serve(&[]).await;
    let transport =
        Arc::new(HttpTransport::new(HttpOptions { connections_max: 4, ..HttpOptions::default() }));
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let (transport, request) = (transport.clone(), request(&server, "x"));
        calls.spawn(async move { transport.send(request).await.unwrap().status().as_u16() });
    }
    while let Some(status) = calls.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert!(server.connection_count.load(Ordering::SeqCst) <= 4);
    assert_eq!(server.requests.lock().unwrap().len(), 200);
}

#[tokio::test]
async fn bodies_come_in_every_form() {
    const BIG: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let server = serve(&[&[
        Step::Write("HTTP/1.1 204 No Content\r\n\r\n"),
        Step::Write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        Step::Pieces(&["HTTP/1.1 20", "0 OK\r\nContent-Le", "ngth: 6\r\n\r\na", "bc", "def"]),
        Step::Pieces(&[BIG, "3\r\nabc\r\n", "4\r\ndefg\r\n0\r\n", "\r\n"]),
        Step::Write("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!"),
        Step::WriteAndClose("HTTP/1.1 200 OK\r\n\r\nuntil the end"),
    ]])
    .await;
    let transport = transport();
    for expected in ["204 ", "200 ", "200 abcdef", "200 abcdefg", "404 no!", "200 until the end"] {
        assert_eq!(text(&transport, &server).await.unwrap(), expected);
    }
    assert_eq!(server.connection_count.load(Ordering::SeqCst), 1);
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_without_a_word() {
    let server = serve(&[&[Step::WriteThenCloseIdle(OK)], &[Step::WriteThenCloseIdle(OK)]]).await;
    let transport = transport();
    for connection_count in 1..=3 {
        assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
        assert_eq!(server.connection_count.load(Ordering::SeqCst), connection_count);
        until(|| connection_count == 3 || server.closed_count.load(Ordering::SeqCst) == connection_count)
            .await;
    }
    assert_eq!(server.requests.lock().unwrap().len(), 3, "no request was sent twice");
}

#[tokio::test]
async fn a_connection_that_says_close_is_not_kept() {
    const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok";
    const OLD: &str = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = serve(&[&[Step::Write(LAST)], &[Step::Write(OLD)]]).await;
    let transport = transport();
    for connection_count in 1..=3 {
        assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
        assert_eq!(server.connection_count.load(Ordering::SeqCst), connection_count);
    }
}

#[tokio::test]
async fn cut_answers_are_lost_and_stale_only_if_kept_and_silent() {
    let cases: &'static [&'static [Step]] = &[
        // On a new connection, silence is the server's fault.
        &[Step::Close],
        // On a kept one, it may have been closing anyway.
        &[Step::Write(OK), Step::Close],
        // Not once an answer has begun.
        &[Step::Write(OK), Step::WriteAndClose("HTTP/1.1 20")],
        &[Step::Write(OK), Step::WriteAndClose("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")],
        &[
            Step::Write(OK),
            Step::WriteAndClose("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
        ],
        &[Step::Write(OK), Step::WriteAndClose("nonsense\r\n\r\n")],
    ];
    let server = serve(cases).await;
    let transport = transport();
    for (at, case) in cases.iter().enumerate() {
        if case.len() == 2 {
            assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
        }
        let error = text(&transport, &server).await.unwrap_err();
        assert_eq!((error.is_unsent, error.was_stale), (false, at == 1), "case {at}: {error}");
        assert_eq!(server.connection_count.load(Ordering::SeqCst), at + 1);
    }
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok", "and the pool is well");
}

#[tokio::test]
async fn a_server_that_is_not_there_has_seen_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let send =
        async |url: &str| transport().send(Request::get(url).body(Bytes::new()).unwrap()).await.unwrap_err();
    assert!(send(&url).await.is_unsent);
    assert!(send("http://host.invalid/").await.is_unsent);
    assert!(send("ftp://127.0.0.1/").await.is_unsent);
    assert!(send("/relative").await.is_unsent);
}

#[tokio::test]
async fn connecting_takes_a_bounded_time() {
    // A socket that listens and never completes a TLS handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let options = HttpOptions { connect_timeout: Duration::from_millis(50), ..HttpOptions::default() };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let transport = HttpTransport::new(options.with_tls(Arc::new(config)));
    let error = transport.send(Request::get(url).body(Bytes::new()).unwrap()).await.unwrap_err();
    assert!(error.is_unsent);
    assert_eq!(error.to_string(), "the server could not be reached: connecting took too long");
}

#[tokio::test]
async fn answers_are_bounded() {
    const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890";
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n678901\r\n0\r\n\r\n";
    let server = serve(&[&[Step::Write(LONG)], &[Step::Write(CHUNKED)]]).await;
    let transport = HttpTransport::new(HttpOptions { answer_bytes_max: 10, ..HttpOptions::default() });
    for _ in 0..2 {
        let error = text(&transport, &server).await.unwrap_err();
        assert_eq!(error.to_string(), "the answer was lost: the answer is larger than 10 bytes");
    }
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
    assert_eq!(server.connection_count.load(Ordering::SeqCst), 3, "a half-read answer ends its connection");
}

#[tokio::test]
async fn a_dropped_call_takes_its_connection_with_it() {
    let server = serve(&[&[Step::Write(OK), Step::Silence]]).await;
    let transport = HttpTransport::new(HttpOptions { connections_max: 1, ..HttpOptions::default() });
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
    let given_up = tokio::time::timeout(Duration::from_millis(50), text(&transport, &server)).await;
    assert!(given_up.is_err());
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok", "the permit came back too");
    assert_eq!(server.connection_count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_request_that_waits_for_a_connection_is_unsent() {
    let server = serve(&[&[Step::Silence]]).await;
    let transport =
        Arc::new(HttpTransport::new(HttpOptions { connections_max: 1, ..HttpOptions::default() }));
    let (first, second) = (Progress::default(), Progress::default());
    let mut sending = transport.send_watched(request(&server, "x"), &first);
    let mut waiting = transport.send_watched(request(&server, "y"), &second);
    let both = async { tokio::join!(&mut sending, &mut waiting) };
    let seen = async { until(|| !server.requests.lock().unwrap().is_empty()).await };
    tokio::select! {
        _ = both => panic!("the server never answers"),
        () = seen => {}
    }
    assert_eq!((first.is_unsent(), second.is_unsent()), (false, true));
    // What was written stays written, whatever happens to the connection.
    drop((sending, waiting));
    assert!(!first.is_unsent());
}

#[tokio::test]
async fn an_attempt_that_found_no_free_connection_is_sent_again_even_if_it_must_not_happen_twice() {
    let server = serve(&[&[Step::Silence]]).await;
    let text = format!("AccountName=acc;AccountKey=a2V5;QueueEndpoint={}/acc", server.url);
    let builder = crate::ClientBuilder::from_connection_string(&text).unwrap();
    let retry = crate::RetryPolicy { delay_first: Duration::from_millis(1), ..crate::RetryPolicy::default() };
    let options = HttpOptions { connections_max: 1, ..HttpOptions::default() };
    let queues = builder.http(options).retry(retry).timeout(Duration::from_millis(100)).queues().unwrap();
    let queue = queues.queue("orders").unwrap();
    let put = async || queue.put("x", crate::PutOptions::new()).await.unwrap_err();
    let (first, second) = tokio::join!(put(), put());
    // The first was written to a server that never answers. The second was not, and is tried again: this time the
    // server answers, although not with what a queue says.
    assert!(matches!(first, Error::Timeout), "{first}");
    assert!(matches!(second, Error::Unreadable(_)), "{second}");
    assert_eq!(server.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn dropping_at_any_moment_never_mixes_answers_up() {
    let server = serve(&[]).await;
    let transport =
        Arc::new(HttpTransport::new(HttpOptions { connections_max: 3, ..HttpOptions::default() }));
    let mut calls = JoinSet::new();
    for number in 0..300_u64 {
        let (transport, request) = (transport.clone(), request(&server, "x"));
        calls.spawn(async move {
            let call = transport.send(request);
            match tokio::time::timeout(Duration::from_micros(number * 7 % 900), call).await {
                Ok(answer) => assert_eq!(answer.unwrap().body(), "ok"),
                Err(_elapsed) => {}
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_time() {
    let server = serve(&[]).await;
    let transport =
        HttpTransport::new(HttpOptions { idle_max: Duration::from_millis(20), ..HttpOptions::default() });
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
    let pool = transport.pools.read().unwrap()[0].clone();
    until(|| format!("{pool:?}").contains("idle: 0")).await;
    assert_eq!(text(&transport, &server).await.unwrap(), "200 ok");
    assert_eq!(server.connection_count.load(Ordering::SeqCst), 2);
}

#[test]
fn root_certificates_must_be_some() {
    assert!(HttpOptions::default().with_root_certificates(b"").is_err());
    assert!(HttpOptions::default().with_root_certificates(b"-----BEGIN CERTIFICATE-----\n!").is_err());
}

#[tokio::test]
async fn https_is_spoken_to_whom_is_trusted() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![key.cert.der().clone()],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into()),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                let Ok(mut socket) = acceptor.accept(socket).await else { return };
                let mut request = [0; 1024];
                while socket.read(&mut request).await.is_ok_and(|count| count > 0) {
                    socket.write_all(OK.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let send = async |transport: &HttpTransport| {
        transport.send(Request::get(&url).body(Bytes::new()).unwrap()).await
    };
    let trusting = HttpOptions::default().with_root_certificates(key.cert.pem().as_bytes()).unwrap();
    let trusting = HttpTransport::new(trusting);
    for _ in 0..2 {
        assert_eq!(send(&trusting).await.unwrap().body(), "ok");
    }
    let others = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let strict = HttpOptions::default().with_root_certificates(others.cert.pem().as_bytes()).unwrap();
    let error = send(&HttpTransport::new(strict)).await.unwrap_err();
    assert!(error.is_unsent && error.to_string().contains("certificate"), "{error}");
}
