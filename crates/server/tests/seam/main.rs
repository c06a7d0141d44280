//! The seam holds a second service: an echo service beside the Table service, on a port of its own, over the same engine,
//! with its own error shape, permission letters, form of Shared Key and container names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod echo;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use echo::Echo;
use engine::env::{Clock, SystemClock};
use engine::memory::MemoryEngine;
use protocol::auth::{AccountKey, AccountScope, SasScope, SasTerms, ServiceScope};
use server::{Accounts, Binding, Current, Front, FrontConfig, Limits, TableHttp};
use tables::TableService;
use testkit::{Credentials, EMULATOR_ACCOUNT, EMULATOR_KEY, RawClient, Request, Response, Style};
use tokio::sync::oneshot;

/// Both services, until it is dropped.
struct House {
    echo: SocketAddr,
    table: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn start() -> House {
    let (addresses, started) = mpsc::channel();
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
                targets: None,
            };
            let front = Front::new(config, clock.clone());
            let binding = || Binding {
                listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                tls: None,
                host_suffixes: Vec::new(),
            };
            let echo = Echo::new(engine.clone(), clock.clone());
            let echo = server::bind(&front, binding(), echo).await.unwrap();
            let table = TableHttp::new(TableService::new(engine, clock));
            let table = server::bind(&front, binding(), table).await.unwrap();
            addresses.send((echo.local_addr(), table.local_addr())).unwrap();
            tokio::select! {
                () = echo.run(std::future::pending()) => {}
                () = table.run(std::future::pending()) => {}
                _ = stopped => {}
            }
        });
    });
    let (echo, table) = started.recv().unwrap();
    House { echo, table, stop: Some(stop), thread: Some(thread) }
}

impl Drop for House {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().unwrap().join();
    }
}

const DATE: &str = "x-ms-date";
const VERSION: &str = "2020-12-06";

impl House {
    /// Sends a request to the echo service, as it is.
    fn send(&self, method: &str, target: &str, headers: &str, body: &str) -> Response {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let text = format!(
            "{method} /{EMULATOR_ACCOUNT}{target} HTTP/1.1\r\nHost: {}\r\n{headers}{length}\r\n{body}",
            self.echo
        );
        let mut client = RawClient::connect(self.echo).unwrap();
        client.exchange(text.as_bytes()).unwrap()
    }

    /// Signs in the full form, which the echo service uses, by its published string to sign.
    fn signed(&self, method: &str, target: &str, body: &str) -> Response {
        let headers = signature(method, target, body.len());
        self.send(method, target, &headers, body)
    }
}

fn signature(method: &str, target: &str, length: usize) -> String {
    let date = testkit::http_date(testkit::system_now());
    let length = if length == 0 { String::new() } else { length.to_string() };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parameters: Vec<String> =
        query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.replace('=', ":")).collect();
    parameters.sort();
    let resource: String = parameters.iter().map(|line| format!("\n{line}")).collect();
    let text = format!(
        "{method}\n\n\n{length}\n\n\n\n\n\n\n\n\n{DATE}:{date}\nx-ms-version:{VERSION}\n\
         /{EMULATOR_ACCOUNT}/{EMULATOR_ACCOUNT}{path}{resource}"
    );
    let signature = testkit::signature(EMULATOR_KEY, &text);
    format!(
        "{DATE}: {date}\r\nx-ms-version: {VERSION}\r\nAuthorization: SharedKey {EMULATOR_ACCOUNT}:{signature}\r\n"
    )
}

#[track_caller]
fn check(response: Response, status: u16, text: &str) {
    assert_eq!((response.status, response.text()), (status, text));
    assert_eq!(response.required("server"), "Echo/1.0");
}

#[test]
fn a_service_has_its_own_form_of_shared_key_and_shape_of_errors() {
    let house = start();
    check(house.signed("PUT", "/shelf", ""), 201, "");
    let url = format!("http://{}/{EMULATOR_ACCOUNT}/shelf", house.echo);
    check(house.signed("GET", "/shelf", ""), 200, &url);
    check(house.signed("GET", "/other", ""), 404, "Service: ResourceNotFound");
    check(house.signed("PATCH", "/shelf", ""), 405, "Service: UnsupportedHttpVerb");
    check(house.send("GET", "/shelf", "", ""), 404, "Authentication: ResourceNotFound");
    let challenged = house.send("GET", "/shelf", "x-ms-version: 2020-12-06\r\n", "");
    check(challenged, 401, "Authentication: NoAuthenticationInformation");
    let wrong = signature("GET", "/other", 0);
    check(house.send("GET", "/shelf", &wrong, ""), 403, "Authentication: AuthenticationFailed");
    check(house.send("GET", "/shelf", "x-ms-version: new\r\n", ""), 400, "Front: InvalidHeaderValue");
    // The Table service's form of a signature opens nothing here.
    let table_form =
        Request::get("/shelf").to_bytes(house.echo, &Credentials::emulator(), testkit::system_now());
    let mut client = RawClient::connect(house.echo).unwrap();
    check(client.exchange(&table_form).unwrap(), 403, "Authentication: AuthenticationFailed");
}

#[test]
fn a_service_has_its_own_letters_in_signatures() {
    let house = start();
    check(house.signed("PUT", "/shelf", ""), 201, "");
    let key = AccountKey::from_base64(EMULATOR_KEY).unwrap();
    let account = |services: &'static str, permissions: &'static str| {
        let scope =
            AccountScope { services: services.into(), resource_types: "c".into(), ..Default::default() };
        let terms = SasTerms {
            permissions: permissions.into(),
            expiry: "2099-01-01".into(),
            ..SasTerms::new(VERSION, SasScope::Account(scope))
        };
        format!("/shelf?{}", terms.mint(EMULATOR_ACCOUNT, &key).unwrap())
    };
    let status = |target: &str| house.send("GET", target, "", "").status;
    let refusal = |target: &str| house.send("GET", target, "", "").text().to_owned();
    assert_eq!(status(&account("te", "gp")), 200);
    assert_eq!(refusal(&account("t", "gp")), "Service: AuthorizationServiceMismatch");
    assert_eq!(refusal(&account("e", "p")), "Service: AuthorizationPermissionMismatch");

    let service = |shelf: &str, permissions: &'static str| {
        let scope = ServiceScope {
            label: "echo",
            resource: shelf.to_owned(),
            policy: String::new(),
            parameters: Vec::new(),
            bounds: Default::default(),
        };
        let terms = SasTerms {
            permissions: permissions.into(),
            expiry: "2099-01-01".into(),
            ..SasTerms::new(VERSION, SasScope::Service(scope))
        };
        format!("/shelf?{}", terms.mint(EMULATOR_ACCOUNT, &key).unwrap())
    };
    assert_eq!(status(&service("shelf", "g")), 200);
    assert_eq!(refusal(&service("shelf", "p")), "Service: AuthorizationPermissionMismatch");
    assert_eq!(refusal(&service("other", "g")), "Authentication: AuthenticationFailed");
}

#[test]
fn two_services_keep_names_and_properties_apart() {
    let house = start();
    let table = |request: Request| {
        let bytes =
            request.style(Style::Path).to_bytes(house.table, &Credentials::emulator(), testkit::system_now());
        RawClient::connect(house.table).unwrap().exchange(&bytes).unwrap()
    };
    let create = || Request::post("/Tables").json("{\"TableName\":\"shelf\"}");
    check(house.signed("PUT", "/shelf", ""), 201, "");
    table(create()).expect(201);
    check(house.signed("PUT", "/shelf", ""), 400, "Service: InvalidInput");
    table(create()).expect_error(409, "TableAlreadyExists");
    table(Request::delete("/Tables('shelf')")).expect(204);
    assert_eq!(house.signed("GET", "/shelf", "").status, 200);

    let rules = "<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a.example</AllowedOrigins>\
                 <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>7</MaxAgeInSeconds><ExposedHeaders>\
                 </ExposedHeaders><AllowedHeaders></AllowedHeaders></CorsRule></Cors></StorageServiceProperties>";
    let properties = "/?comp=properties&restype=service";
    assert_eq!(house.signed("PUT", properties, rules).status, 202);
    assert!(house.signed("GET", properties, "").text().contains("http://a.example"));
    let preflight = "Origin: http://a.example\r\nAccess-Control-Request-Method: GET\r\n";
    let allowed = house.send("OPTIONS", "/shelf", preflight, "");
    assert_eq!((allowed.status, allowed.required("access-control-max-age")), (200, "7"));
    let of_tables = table(Request::get("/").query("restype", "service").query("comp", "properties"));
    assert!(!of_tables.expect(200).text().contains("http://a.example"));
}

#[test]
fn bodies_are_streams_in_both_directions() {
    const PIECE: &str = "0123456789abcdef";
    let house = start();
    let headers = signature("POST", "/shelf", 3 * PIECE.len());
    let head = format!(
        "POST /{EMULATOR_ACCOUNT}/shelf HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n",
        house.echo,
        3 * PIECE.len()
    );
    // Each piece comes back before the next one is sent, so the server cannot be waiting for the whole.
    let mut client = RawClient::connect(house.echo).unwrap();
    client.send(head.as_bytes()).unwrap();
    let mut received = String::new();
    for count in 1..=3 {
        client.send(PIECE.as_bytes()).unwrap();
        while received.matches(PIECE).count() < count {
            received.push_str(&String::from_utf8(client.read_next().unwrap()).unwrap());
        }
    }
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    assert!(received.to_ascii_lowercase().contains("content-length: 48\r\n"), "{received}");
}
