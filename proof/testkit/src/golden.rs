//! Golden exchanges: requests and responses as files, replayed against any server that speaks the protocol.
//!
//! The files are written from the protocol reference, not recorded from our server; `tests/golden/README.md` describes
//! their format. Placeholders stand for whatever differs from run to run. Those of a request are filled in; those of a
//! response are matched by their form and, where a name comes twice, by equality.
//!
//! Promises: a replay sends exactly the bytes of the file. After a scenario, whatever happened, its tables, queues and
//! containers are deleted and the account settings it changed are restored.

mod compare;
mod endpoint;
mod file;
mod pattern;
mod tunnel;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

pub use compare::Rules;
pub use endpoint::Endpoint;

use crate::sign::{Scheme, signature, string_to_sign};
use crate::sign_full::full_string_to_sign;
use crate::{RawClient, Response, Stopwatch, http_date, system_now};
use pattern::Values;

/// Twice the time that a change of an account's settings may take to reach every server.
const EVENTUALLY_MAX: Duration = Duration::from_secs(60);
const EVENTUALLY_PAUSE: Duration = Duration::from_secs(1);
/// How often in a row an exchange must match that is repeated until it does.
const EVENTUAL_MATCH_COUNT: usize = 2;

/// The service that a file asks. They sign requests in different ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServiceKind {
    Table,
    Queue,
    Blob,
}

/// One file: exchanges in order, with tables, queues or containers of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The file's name, which names the section of the reference that it covers.
    pub name: String,
    /// It changes the account's service properties, which must be restored.
    pub changes_settings: bool,
    service: ServiceKind,
    exchanges: Vec<Exchange>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Exchange {
    title: String,
    /// The expected answer may take a while to appear.
    is_eventual: bool,
    request: Message,
    response: Message,
}

/// A request or a response as the file has it, with its placeholders.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Message {
    start_line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Message {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(present, _)| present.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The scenarios of a folder, sorted by name.
pub fn read_folder(folder: &Path) -> Result<Vec<Scenario>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "http"));
    paths.sort();
    paths.iter().map(|path| file::read(path)).collect()
}

impl Scenario {
    pub fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    /// Sends every request and compares every answer. `run` makes the names of tables, queues and containers unique:
    /// lower-case letters and digits. Returns the differences, each a few lines of text; none if all answers were as
    /// expected.
    pub fn replay(&self, endpoint: &Endpoint, run: &str, rules: &Rules) -> Vec<String> {
        let stem: String = self.name.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        let mut replay = Replay {
            endpoint,
            service: self.service,
            values: endpoint.values(),
            captured: Values::new(),
            containers: BTreeSet::new(),
        };
        for name in ["table", "queue", "container"] {
            replay.values.insert(name.to_owned(), format!("golden{run}{}", stem.to_ascii_lowercase()));
        }
        let settings = if self.changes_settings { replay.settings() } else { None };
        let mut differences = Vec::new();
        for (number, exchange) in self.exchanges.iter().enumerate() {
            let found = replay.play(exchange, rules);
            if !found.is_empty() {
                differences.push(format!("{}. {}\n{}", number + 1, exchange.title, found.join("\n")));
            }
        }
        replay.clean_up(settings);
        differences
    }
}

/// A replay in progress.
struct Replay<'a> {
    endpoint: &'a Endpoint,
    service: ServiceKind,
    /// The values of placeholders that are known beforehand.
    values: Values,
    /// The values that earlier responses had in place of their placeholders.
    captured: Values,
    /// The tables, queues or containers to delete at the end.
    containers: BTreeSet<String>,
}

impl Replay<'_> {
    fn play(&mut self, exchange: &Exchange, rules: &Rules) -> Vec<String> {
        let watch = Stopwatch::start();
        // Where a change takes its time, one front end may know of it before the next one does.
        let mut matches_needed = if exchange.is_eventual { EVENTUAL_MATCH_COUNT } else { 1 };
        loop {
            let mut seen = Values::new();
            let found = match self.send(&exchange.request) {
                Ok(response) => {
                    compare::compare(&exchange.response, &response, &self.values, &mut seen, rules)
                }
                Err(error) => vec![format!("   no answer: {error}")],
            };
            if found.is_empty() {
                matches_needed -= 1;
                if matches_needed > 0 {
                    continue;
                }
            }
            if found.is_empty() || !exchange.is_eventual || watch.elapsed() > EVENTUALLY_MAX {
                self.captured.extend(seen);
                return found;
            }
            matches_needed = EVENTUAL_MATCH_COUNT;
            std::thread::sleep(EVENTUALLY_PAUSE);
        }
    }

    fn send(&mut self, message: &Message) -> Result<Response, String> {
        let mut values = self.captured.clone();
        values.extend(self.values.clone());
        values.insert("date".to_owned(), http_date(system_now()));
        let fill = |text: &str, values: &Values| pattern::fill(text, values, &self.endpoint.credentials);
        let body = fill(&message.body, &values)?;
        values.insert("length".to_owned(), body.len().to_string());
        let start_line = fill(&message.start_line, &values)?;
        let signature = self.signature(message, &start_line, &values)?;
        values.insert("signature".to_owned(), signature);
        let mut text = format!("{start_line}\r\n");
        let mut host = String::new();
        for (name, value) in &message.headers {
            let value = fill(value, &values)?;
            if name.eq_ignore_ascii_case("Host") {
                host.clone_from(&value);
            }
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        let addr = self.endpoint.addr(&host)?;
        let response = RawClient::connect(addr).and_then(|mut client| client.exchange(text.as_bytes()));
        let response = response.map_err(|error| error.to_string())?;
        self.note_container(&start_line, &body, &response);
        Ok(response)
    }

    /// The signature for the scheme that the request's `Authorization` header names.
    fn signature(&self, message: &Message, start_line: &str, values: &Values) -> Result<String, String> {
        let credentials = &self.endpoint.credentials;
        let header = |name: &str| {
            let value = message.header(name).unwrap_or_default();
            pattern::fill(value, values, credentials)
        };
        let scheme = match message.header("Authorization") {
            Some(value) if value.starts_with("SharedKeyLite ") => Scheme::SharedKeyLite,
            Some(value) if value.starts_with("SharedKey ") => Scheme::SharedKey,
            _ => return Ok(String::new()),
        };
        let mut words = start_line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let account = &credentials.account;
        let text = match self.service {
            ServiceKind::Table => {
                let (content_type, date) = (header("Content-Type")?, header("x-ms-date")?);
                string_to_sign(scheme, account, method, target, "", &content_type, &date)
            }
            ServiceKind::Queue | ServiceKind::Blob => {
                let signed = message.headers.iter().filter(|(name, _)| name != "Authorization");
                let filled = signed.map(|(name, _)| Ok((name.clone(), header(name)?)));
                full_string_to_sign(
                    scheme,
                    account,
                    method,
                    target,
                    &filled.collect::<Result<Vec<_>, String>>()?,
                )
            }
        };
        Ok(signature(&credentials.key, &text))
    }

    fn note_container(&mut self, start_line: &str, body: &str, response: &Response) {
        let name = match self.service {
            ServiceKind::Table if start_line.starts_with("POST ") && start_line.contains("/Tables") => {
                body.strip_prefix("{\"TableName\":\"").and_then(|rest| rest.split('"').next())
            }
            // Only Create Queue has no word after the name.
            ServiceKind::Queue => {
                let target = start_line.strip_prefix("PUT ").and_then(|rest| rest.split(' ').next());
                target.and_then(|target| target.rsplit('/').next()).filter(|name| !name.contains('?'))
            }
            // Only Create Container has nothing behind this word.
            ServiceKind::Blob => {
                let target = start_line.strip_prefix("PUT ").and_then(|rest| rest.split(' ').next());
                let path = target.and_then(|target| target.strip_suffix("?restype=container"));
                path.and_then(|path| path.rsplit('/').next())
            }
            ServiceKind::Table => None,
        };
        if let Some(name) = name
            && response.status < 300
        {
            self.containers.insert(name.to_owned());
        }
    }

    /// Sends a request of the replay's own, which is in no file.
    fn ask(&mut self, start: &str, headers: &[(&str, &str)], body: &str) -> Result<Response, String> {
        let mut all = vec![
            ("Host", "{{host}}"),
            ("x-ms-date", "{{date}}"),
            ("x-ms-version", "2019-02-02"),
            ("Authorization", "SharedKeyLite {{account}}:{{signature}}"),
        ];
        all.extend_from_slice(headers);
        let headers = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        self.send(&Message { start_line: start.to_owned(), headers, body: body.to_owned() })
    }

    /// The account's service properties, in the form in which they can be set again.
    fn settings(&mut self) -> Option<String> {
        let start = "GET {{base}}/?restype=service&comp=properties HTTP/1.1";
        let response = self.ask(start, &[("Accept", "application/xml")], "").ok()?;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        (response.status == 200).then(|| text.trim_start_matches('\u{FEFF}').to_owned())
    }

    fn clean_up(&mut self, settings: Option<String>) {
        for name in std::mem::take(&mut self.containers) {
            let path = match self.service {
                ServiceKind::Table => format!("Tables('{name}')"),
                ServiceKind::Queue => name.clone(),
                ServiceKind::Blob => format!("{name}?restype=container"),
            };
            let start = format!("DELETE {{{{base}}}}/{path} HTTP/1.1");
            let gone = self.ask(&start, &[("Accept", "application/json")], "");
            // Most scenarios delete what they create themselves, so 404 is fine.
            if !gone.is_ok_and(|response| matches!(response.status, 202 | 204 | 404)) {
                eprintln!("warning: {name} may be left over");
            }
        }
        if let Some(settings) = settings {
            let start = "PUT {{base}}/?restype=service&comp=properties HTTP/1.1";
            let headers = [("Content-Type", "application/xml"), ("Content-Length", "{{length}}")];
            if !self.ask(start, &headers, &settings).is_ok_and(|response| response.status == 202) {
                eprintln!("warning: the account's service properties were not restored:\n{settings}");
            }
        }
    }
}
