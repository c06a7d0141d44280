//! The Queue service on a socket, as far as it needs no stored message: who is refused, in which order, and in which words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use engine::env::{Clock, SystemClock};
use engine::memory::MemoryEngine;
use queues::QueueService;
use server::{Accounts, Binding, Current, Front, FrontConfig, Limits, QueueHttp};
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, RawClient, Response};
use tokio::sync::oneshot;

/// The service, until it is dropped.
struct House {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn start() -> House {
    let (address, started) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            let engine = Arc::new(MemoryEngine::new(tables::FAMILIES, clock.clone()));
            let config = FrontConfig {
                accounts: Arc::new(Current::new(Accounts::emulator())),
                tokens: None,
                is_behind_tls_proxy: false,
                limits: Limits::default(),
            };
            let front = Front::new(config, clock.clone());
            let listen = SocketAddr::from(([127, 0, 0, 1], 0));
            let binding = Binding { listen, tls: None, host_suffixes: Vec::new() };
            let service = QueueHttp::new(Arc::new(QueueService::new(engine, clock)));
            let server = server::bind(&front, binding, service).await.unwrap();
            address.send(server.local_addr()).unwrap();
            tokio::select! {
                () = server.run(std::future::pending()) => {}
                _ = stopped => {}
            }
        });
    });
    House { addr: started.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
}

impl Drop for House {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
    }
}

const NEW: &str = "2025-11-05";

impl House {
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let length = match (body, method) {
            ("", "GET" | "HEAD" | "DELETE") => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}{length}\r\n{body}", self.addr);
        let mut client = RawClient::connect(self.addr).unwrap();
        client.send(text.as_bytes()).unwrap();
        client.read_response(method == "HEAD").unwrap()
    }

    /// Signs a request to the account by the published string to sign. Query values hold nothing that is escaped.
    fn signed_as(&self, version: &str, method: &str, target: &str, body: &str) -> Response {
        let path = format!("/{EMULATOR_ACCOUNT}{target}");
        let headers = signature(version, method, &path, body.len());
        self.send(method, &path, &headers, body)
    }

    fn signed(&self, method: &str, target: &str, body: &str) -> Response {
        self.signed_as(NEW, method, target, body)
    }

    /// Signs a request whose body does not matter, and checks how it is refused.
    #[track_caller]
    fn check(&self, method: &str, target: &str, status: u16, code: &str, elements: &str) {
        check_error(&self.signed(method, target, ""), status, code, elements);
    }
}

fn signature(version: &str, method: &str, path: &str, length: usize) -> String {
    let date = testkit::http_date(testkit::system_now());
    let length = if length == 0 { String::new() } else { length.to_string() };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parameters: Vec<String> =
        query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.replacen('=', ":", 1)).collect();
    parameters.sort();
    let resource: String = parameters.iter().map(|line| format!("\n{line}")).collect();
    let text = format!(
        "{method}\n\n\n{length}\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n\
         /{EMULATOR_ACCOUNT}{path}{resource}"
    );
    let signature = testkit::signature(EMULATOR_KEY, &text);
    format!(
        "x-ms-date: {date}\r\nx-ms-version: {version}\r\nAuthorization: SharedKey {EMULATOR_ACCOUNT}:{signature}\r\n"
    )
}

/// The whole answer, with its message in the status line; `elements` are those after the message.
#[track_caller]
fn check_error(response: &Response, status: u16, code: &str, elements: &str) {
    assert_eq!((response.status, response.header("x-ms-error-code")), (status, Some(code)), "{response:?}");
    assert_eq!(response.required("content-type"), "application/xml");
    assert_eq!(response.required("server"), "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0");
    assert_eq!(response.header("cache-control"), None);
    let start = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code><Message>{}\nRequestId:{}\nTime:",
        response.reason,
        response.required("x-ms-request-id"),
    );
    assert!(response.text().starts_with(&start), "{response:?}");
    assert!(response.text().ends_with(&format!("Z</Message>{elements}</Error>")), "{response:?}");
}

fn element(name: &str, value: &str) -> String {
    if value.is_empty() { format!("<{name} />") } else { format!("<{name}>{value}</{name}>") }
}

fn parameter(name: &str, value: &str, reason: &str) -> String {
    element("QueryParameterName", name) + &element("QueryParameterValue", value) + &element("Reason", reason)
}

fn range(name: &str, value: &str, min: &str, max: &str) -> String {
    element("QueryParameterName", name)
        + &element("QueryParameterValue", value)
        + &element("MinimumAllowed", min)
        + &element("MaximumAllowed", max)
}

const MESSAGE: &str = "<QueueMessage><MessageText>a</MessageText></QueueMessage>";

#[test]
fn a_queue_that_does_not_exist_is_told_by_every_operation() {
    let house = start();
    let receipt = "popreceipt=bjoiqbcycpsabwpecydj&visibilitytimeout=0";
    let id = "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab";
    for (method, target, body) in [
        ("DELETE", "/missing", ""),
        ("GET", "/missing?comp=metadata", ""),
        ("PUT", "/missing?comp=metadata", ""),
        ("GET", "/missing?comp=acl", ""),
        ("PUT", "/missing?comp=acl", ""),
        ("POST", "/missing/messages", MESSAGE),
        ("GET", "/missing/messages", ""),
        ("GET", "/missing/messages?peekonly=true&numofmessages=32", ""),
        ("DELETE", "/missing/messages", ""),
        ("PUT", &format!("/missing/messages/{id}?{receipt}"), ""),
        ("PUT", &format!("/missing/messages/{id}?{receipt}"), MESSAGE),
        ("DELETE", &format!("/missing/messages/not-an-id?{receipt}"), ""),
    ] {
        let response = house.signed(method, target, body);
        check_error(&response, 404, "QueueNotFound", "");
        assert_eq!(response.reason, "The specified queue does not exist.", "{method} {target}");
    }
    let head = house.signed("HEAD", "/missing?comp=metadata", "");
    assert_eq!((head.status, head.required("x-ms-error-code")), (404, "QueueNotFound"));
    assert!(head.body.is_empty());
    let old = house.signed_as("2016-05-31", "GET", "/missing?comp=metadata", "");
    assert_eq!((old.status, old.header("x-ms-error-code")), (404, None));
}

#[test]
fn wrong_requests_are_refused_with_the_elements_of_the_service() {
    let house = start();
    house.check("GET", "/abc", 405, "UnsupportedHttpVerb", "");
    house.check("GET", "/abc/other", 400, "InvalidUri", "");
    house.check("GET", "/abc?comp=x", 400, "InvalidQueryParameterValue", &parameter("comp", "x", ""));
    house.check("PUT", "/Abc", 400, "InvalidResourceName", "");
    house.check("PUT", "/ab", 400, "OutOfRangeInput", "");
    let bad = |name: &str, value: &str| parameter(name, value, "");
    let timeout = bad("timeout", "x");
    house.check("GET", "/abc?comp=metadata&timeout=x", 400, "InvalidQueryParameterValue", &timeout);
    let count = range("numofmessages", "100", "1", "32");
    house.check("GET", "/abc/messages?numofmessages=100", 400, "OutOfRangeQueryParameterValue", &count);
    let missing = element("QueryParameterName", "popreceipt");
    house.check("DELETE", "/abc/messages/1", 400, "MissingRequiredQueryParameter", &missing);
    let receipt = parameter("popreceipt", "invalid", "Invalid pop receipt format");
    let target = "/abc/messages/1?popreceipt=invalid";
    house.check("DELETE", target, 400, "InvalidQueryParameterValue", &receipt);
    let primary = bad("comp", "stats");
    house.check("GET", "?restype=service&comp=stats", 400, "InvalidQueryParameterValue", &primary);
    house.check("GET", "?comp=list&marker=a/b", 400, "InvalidMarker", "");

    let document = element("LineNumber", "0") + &element("LinePosition", "0") + &element("Reason", "");
    let response = house.signed("POST", "/abc/messages", "<QueueMessage/>");
    check_error(&response, 400, "InvalidXmlDocument", &document);
    let limit = element("MaxLimit", "65536");
    for size in [65_537, 600_000, 5_000_000] {
        let text = "x".repeat(size);
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        check_error(&house.signed("POST", "/abc/messages", &body), 413, "RequestBodyTooLarge", &limit);
    }
}

#[test]
fn callers_without_credentials_get_a_challenge_and_wrong_versions_are_named() {
    let house = start();
    let path = format!("/{EMULATOR_ACCOUNT}/abc?comp=metadata");
    let anonymous = house.send("GET", &path, "x-ms-version: 2025-11-05\r\n", "");
    check_error(&anonymous, 401, "NoAuthenticationInformation", "");
    assert!(anonymous.required("www-authenticate").starts_with("Bearer authorization_uri="));
    let version = house.send("GET", &path, "x-ms-version: new\r\n", "");
    let elements = element("HeaderName", "x-ms-version") + &element("HeaderValue", "new");
    check_error(&version, 400, "InvalidHeaderValue", &elements);
    let wrong = signature(NEW, "GET", "/elsewhere", 0);
    check_error(&house.send("GET", &path, &wrong, ""), 403, "AuthenticationFailed", "");
    let unknown = house.send("GET", "/nobody1/abc", "x-ms-version: 2025-11-05\r\n", "");
    check_error(&unknown, 404, "ResourceNotFound", "");
}

#[test]
fn the_secondary_shows_statistics_and_takes_no_messages() {
    let house = start();
    let secondary = |method: &str, target: &str| {
        let path = format!("/{EMULATOR_ACCOUNT}-secondary{target}");
        let headers = signature(NEW, method, &path, 0);
        house.send(method, &path, &headers, "")
    };
    let stats = secondary("GET", "/?restype=service&comp=stats").expect(200);
    assert!(stats.text().starts_with("<?xml"), "{stats:?}");
    assert!(stats.text().contains("<Status>live</Status>"));
    check_error(&secondary("GET", "/abc/messages"), 403, "InsufficientAccountPermissions", "");
    check_error(&secondary("PUT", "/abc"), 403, "InsufficientAccountPermissions", "");
    check_error(&secondary("GET", "/abc/messages?peekonly=true"), 404, "QueueNotFound", "");
}

#[test]
fn service_properties_are_kept_and_shown_without_a_byte_order_mark() {
    let house = start();
    let target = "/?restype=service&comp=properties";
    let cors = "<Cors><CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>*</AllowedOrigins><AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";
    let document = format!("<StorageServiceProperties>{cors}</StorageServiceProperties>");
    let set = house.signed("PUT", target, &document).expect(202);
    assert_eq!((set.required("content-length"), set.header("content-type")), ("0", None));
    let shown = house.signed("GET", target, "").expect(200);
    assert_eq!(shown.required("cache-control"), "no-cache");
    assert_eq!(shown.required("content-type"), "application/xml");
    assert!(shown.text().starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>"));
    assert!(shown.text().ends_with(&format!("{cors}</StorageServiceProperties>")), "{shown:?}");
    let rule = cors.replace("<Cors>", "").replace("</Cors>", "").repeat(6);
    let many = format!("<StorageServiceProperties><Cors>{rule}</Cors></StorageServiceProperties>");
    let elements = element("LineNumber", "0") + &element("LinePosition", "0") + &element("Reason", "");
    check_error(&house.signed("PUT", target, &many), 400, "InvalidXmlDocument", &elements);
}
