//! The admin port: health, metrics, the numbers behind charts, findings, the explorer page, and its passage to the
//! services.
//!
//! `guard` decides who may ask, `report` what is told, `page` holds the page's files, `passage` leads to the services.
//! Promises: it has connections of its own, so it answers when the services have none left. Leaves to others: what the
//! numbers mean (`observe`), and where it listens (the program).

mod door;
mod guard;
mod page;
pub(crate) mod passage;
mod report;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::Engine;
use observe::{Advice, LiveSeries};
use protocol::auth::is_same_secret;

use crate::front::Front;
use crate::front::respond;
use crate::front::welcome::ExplorerAddress;
use crate::http::body::AnswerBody;
use crate::http::header_names::{CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use crate::http::listener::Incoming;
use crate::http::parts::RequestParts;
use crate::http::response::Response;
pub use door::{AdminDoor, AdminServer};
use guard::{Area, Refused};
use passage::ServedService;

/// How often the last second is closed and the next one begins.
const TICK: Duration = Duration::from_secs(1);

/// What the admin port needs to know.
pub struct AdminConfig {
    pub door: AdminDoor,
    /// Must be there where others reach the port.
    pub token: Option<String>,
    /// Of the program.
    pub version: &'static str,
    /// Where the data is, for people.
    pub location: String,
    pub engine: Arc<dyn Engine>,
    pub services: Vec<ServedService>,
    pub advice: Option<Arc<dyn Advice>>,
    /// The memory of the process, where the system tells.
    pub resident_bytes: fn() -> Option<u64>,
}

/// The admin port, as a handler of requests.
pub struct Admin {
    front: Arc<Front>,
    engine: Arc<dyn Engine>,
    services: Vec<ServedService>,
    advice: Option<Arc<dyn Advice>>,
    token: Option<String>,
    is_https: bool,
    version: &'static str,
    location: String,
    resident_bytes: fn() -> Option<u64>,
    started: Duration,
    live: Mutex<LiveSeries>,
}

/// The admin port takes over from its door.
pub fn bind_admin(front: &Arc<Front>, config: AdminConfig) -> io::Result<AdminServer> {
    let AdminConfig { door, token, .. } = config;
    let (address, is_https) = (door.local_addr(), door.is_https());
    if token.is_none() && !address.ip().is_loopback() {
        let text = "the admin port needs a token where others can reach it";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let admin = Admin {
        front: front.clone(),
        engine: config.engine,
        services: config.services,
        advice: config.advice,
        token,
        is_https,
        version: config.version,
        location: config.location,
        resident_bytes: config.resident_bytes,
        started: front.clock.monotonic(),
        live: Mutex::default(),
    };
    // Set once: a front has one admin port.
    let _ = front.explorer.set(ExplorerAddress { address, is_https });
    Ok(door.give(admin))
}

impl Admin {
    /// Closes a second of the live numbers every second, for ever.
    pub async fn tick(self: Arc<Admin>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.end_second();
        }
    }

    pub fn end_second(&self) {
        self.live_mut().tick(&self.front.watch.metrics);
    }

    fn live_mut(&self) -> MutexGuard<'_, LiveSeries> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uptime(&self) -> Duration {
        self.front.clock.monotonic().saturating_sub(self.started)
    }

    async fn answer(&self, peer: IpAddr, request: Incoming<'_>) -> Response {
        let parts = request.parts;
        let area = match parts.path() {
            "/healthz" | "/readyz" => Area::Health,
            "/metrics" => Area::Api,
            path if path.starts_with("/api/") => Area::Api,
            path if path.starts_with(passage::PREFIX) => Area::Passage,
            _ => Area::Page,
        };
        if let Some(response) = self.sign_in(parts) {
            return response;
        }
        if let Err(refused) = guard::check(area, parts, self.token.as_deref()) {
            return refusal(refused);
        }
        if area == Area::Passage {
            let Some((service, parts)) = passage::enter(&self.services, parts) else {
                return text(404, "There is no such service here.");
            };
            let request = Incoming { parts: &parts, is_https: Some(self.is_https), ..request };
            return passage::pass(service, peer, request).await;
        }
        match parts.method() {
            "GET" | "HEAD" => self.tell(parts.path()),
            _ => {
                let mut response = text(405, "Only GET and HEAD.");
                response.head.headers_mut().put("allow", "GET, HEAD");
                response
            }
        }
    }

    fn tell(&self, path: &str) -> Response {
        match path {
            "/healthz" => text(200, "ok"),
            "/readyz" => match self.unready() {
                None => text(200, "ready"),
                Some(reason) => text(503, reason),
            },
            "/metrics" => data(observe::CONTENT_TYPE, self.metrics()),
            "/api/status" => data(JSON, self.status().to_string()),
            "/api/live" => data(JSON, self.live_json()),
            "/api/advice" => data(JSON, self.advice_json()),
            _ => match page::find(path) {
                Some(file) => {
                    let body = AnswerBody::Shared(file.content());
                    let mut response = respond::with_body(200, body, Vec::new());
                    file.add_headers(response.head.headers_mut());
                    response
                }
                None => text(404, "There is nothing here."),
            },
        }
    }

    /// `/?token=…` with the right token puts it into a cookie and leads to the page, so that it does not stay in the
    /// address bar.
    fn sign_in(&self, parts: &RequestParts) -> Option<Response> {
        let token = self.token.as_deref()?;
        let sent = parts.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))?;
        if parts.path() != "/" || parts.method() != "GET" || !is_same_secret(sent, token) {
            return None;
        }
        let secure = if self.is_https { "; Secure" } else { "" };
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", guard::COOKIE_NAME);
        let mut response = text(303, "Signed in.");
        let headers = response.head.headers_mut();
        headers.put("set-cookie", &cookie);
        headers.put(LOCATION, "/");
        // A token that no cookie can carry was checked for nothing.
        headers.has("set-cookie").then_some(response)
    }

    /// Never fails: every error becomes a response.
    async fn handle(&self, peer: IpAddr, request: Incoming<'_>) -> Response {
        let mut response = self.answer(peer, request).await;
        respond::add_date(response.head.headers_mut(), self.front.now());
        response
    }
}

const JSON: &str = "application/json";

fn data(content_type: &'static str, content: String) -> Response {
    let mut response = respond::with_body(200, AnswerBody::whole(content.into_bytes()), Vec::new());
    let headers = response.head.headers_mut();
    page::add_data_headers(headers);
    headers.put(CONTENT_TYPE, content_type);
    response
}

fn text(status: u16, line: &'static str) -> Response {
    let body = AnswerBody::whole(format!("{line}\n").into_bytes());
    let mut response = respond::with_body(status, body, Vec::new());
    let headers = response.head.headers_mut();
    page::add_data_headers(headers);
    headers.put(CONTENT_TYPE, "text/plain; charset=utf-8");
    response
}

fn refusal(refused: Refused) -> Response {
    match refused {
        Refused::NoToken => {
            let line = "This needs the admin token that the server printed at its start: open /?token=TOKEN, or send \
                        'Authorization: Bearer TOKEN'.";
            let mut response = text(401, line);
            response.head.headers_mut().put(WWW_AUTHENTICATE, "Bearer");
            response
        }
        Refused::OtherOrigin => text(403, "Pages of other origins may not use this port."),
        Refused::OtherHost => text(403, "This port answers only to the name or address of this machine."),
    }
}
