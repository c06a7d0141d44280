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

use bytes::Bytes;
use engine::Engine;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE, WWW_AUTHENTICATE};
use http::{Request, Response};
use hyper::body::Incoming;
use observe::{Advice, LiveSeries};
use protocol::auth::is_same_secret;

use crate::front::Front;
use crate::front::respond;
use crate::front::welcome::ExplorerAddress;
use crate::http::body::{self, ResponseBody};
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

    async fn answer(&self, peer: IpAddr, request: Request<Incoming>) -> Response<ResponseBody> {
        let path = request.uri().path();
        let area = match path {
            "/healthz" | "/readyz" => Area::Health,
            "/metrics" => Area::Api,
            path if path.starts_with("/api/") => Area::Api,
            path if path.starts_with(passage::PREFIX) => Area::Passage,
            _ => Area::Page,
        };
        let method = request.method().as_str();
        if let Some(response) = self.sign_in(&request) {
            return response;
        }
        if let Err(refused) = guard::check(area, method, request.headers(), self.token.as_deref()) {
            let response = refusal(refused);
            return self.without_body(request, response);
        }
        if area == Area::Passage {
            return match passage::enter(&self.services, self.is_https, request) {
                Some((service, request)) => passage::pass(service, peer, request).await,
                None => text(404, "There is no such service here."),
            };
        }
        let response = match method {
            "GET" | "HEAD" => self.tell(path),
            _ => {
                let mut response = text(405, "Only GET and HEAD.");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
        };
        self.without_body(request, response)
    }

    fn tell(&self, path: &str) -> Response<ResponseBody> {
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
                    let mut response = respond::with_body(200, file.content());
                    file.add_headers(response.headers_mut());
                    response
                }
                None => text(404, "There is nothing here."),
            },
        }
    }

    /// `/?token=…` with the right token puts it into a cookie and leads to the page, so that it does not stay in the
    /// address bar.
    fn sign_in(&self, request: &Request<Incoming>) -> Option<Response<ResponseBody>> {
        let token = self.token.as_deref()?;
        let uri = request.uri();
        let sent = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))?;
        if uri.path() != "/" || request.method() != http::Method::GET || !is_same_secret(sent, token) {
            return None;
        }
        let secure = if self.is_https { "; Secure" } else { "" };
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict{secure}", guard::COOKIE_NAME);
        let mut response = text(303, "Signed in.");
        response.headers_mut().insert(SET_COOKIE, HeaderValue::try_from(cookie).ok()?);
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        Some(response)
    }

    /// Lets a sender that nobody listens to hear the answer.
    fn without_body(
        &self,
        request: Request<Incoming>,
        response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        let (parts, rest) = request.into_parts();
        body::discard(Some(rest), &parts.headers, &self.front.limits);
        response
    }
}

impl Admin {
    /// Never fails: every error becomes a response.
    async fn handle(&self, peer: IpAddr, request: Request<Incoming>) -> Response<ResponseBody> {
        let mut response = self.answer(peer, request).await;
        respond::add_date(response.headers_mut(), self.front.now());
        response
    }
}

const JSON: &str = "application/json";

fn data(content_type: &'static str, content: String) -> Response<ResponseBody> {
    let mut response = respond::with_body(200, Bytes::from(content));
    page::add_data_headers(response.headers_mut());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn text(status: u16, line: &'static str) -> Response<ResponseBody> {
    let mut response = respond::with_body(status, Bytes::from(format!("{line}\n")));
    page::add_data_headers(response.headers_mut());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn refusal(refused: Refused) -> Response<ResponseBody> {
    match refused {
        Refused::NoToken => {
            let line = "This needs the admin token that the server printed at its start: open /?token=TOKEN, or send \
                        'Authorization: Bearer TOKEN'.";
            let mut response = text(401, line);
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
        Refused::OtherOrigin => text(403, "Pages of other origins may not use this port."),
        Refused::OtherHost => text(403, "This port answers only to the name or address of this machine."),
    }
}
