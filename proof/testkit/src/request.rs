//! A request as a test builds it: signed and with the headers of a common client, each of which can be replaced.

use std::net::SocketAddr;
use std::time::SystemTime;

use crate::sign::{Credentials, Scheme, signature, string_to_sign};
use crate::sign_full::full_string_to_sign;
use crate::time::http_date;

/// The service that a request goes to: it decides the usual headers and what is signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    Table,
    Queue,
    Blob,
}

/// How the account is named: in the path (emulator) or in the host (production).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Style {
    Path,
    Host(String),
    /// The request line has the target as given, without the account in front.
    Bare,
}

#[derive(Clone, Debug)]
enum Change {
    Set(String, String),
    Add(String, String),
    Remove(String),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Relative to the service root. In path style the account goes in front of it.
    pub target: String,
    pub body: Option<Vec<u8>>,
    changes: Vec<Change>,
    scheme: Option<Scheme>,
    credentials: Option<Credentials>,
    style: Style,
    path_account: Option<String>,
    signed_target: Option<String>,
}

impl Request {
    pub fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            body: None,
            changes: Vec::new(),
            scheme: Some(Scheme::SharedKey),
            credentials: None,
            style: Style::Path,
            path_account: None,
            signed_target: None,
        }
    }

    pub fn get(target: &str) -> Request {
        Request::new("GET", target)
    }

    pub fn post(target: &str) -> Request {
        Request::new("POST", target)
    }

    pub fn put(target: &str) -> Request {
        Request::new("PUT", target)
    }

    pub fn merge(target: &str) -> Request {
        Request::new("MERGE", target)
    }

    pub fn head(target: &str) -> Request {
        Request::new("HEAD", target)
    }

    pub fn patch(target: &str) -> Request {
        Request::new("PATCH", target)
    }

    pub fn delete(target: &str) -> Request {
        Request::new("DELETE", target)
    }

    /// Appends `name=value` to the query, the value percent-encoded.
    pub fn query(mut self, name: &str, value: &str) -> Request {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(name);
        self.target.push('=');
        self.target.push_str(&percent_encode(value));
        self
    }

    /// Replaces the header of this name, or adds it.
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.changes.push(Change::Set(name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header even if there is one of this name.
    pub fn another_header(mut self, name: &str, value: &str) -> Request {
        self.changes.push(Change::Add(name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Request {
        self.changes.push(Change::Remove(name.to_owned()));
        self
    }

    /// The version of the protocol.
    pub fn version(self, version: &str) -> Request {
        self.header("x-ms-version", version)
    }

    pub fn json(mut self, body: &str) -> Request {
        self.body = Some(body.as_bytes().to_vec());
        self
    }

    /// A body with the content type that is usual for the service.
    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// A body with its own content type.
    pub fn body(self, content_type: &str, body: impl Into<Vec<u8>>) -> Request {
        let mut request = self.header("Content-Type", content_type);
        request.body = Some(body.into());
        request
    }

    pub fn xml(self, body: &str) -> Request {
        self.body("application/xml", body)
    }

    pub fn scheme(mut self, scheme: Scheme) -> Request {
        self.scheme = Some(scheme);
        self
    }

    pub fn unsigned(mut self) -> Request {
        self.scheme = None;
        self
    }

    pub fn credentials(mut self, account: &str, key: &str) -> Request {
        self.credentials = Some(Credentials::new(account, key));
        self
    }

    pub fn style(mut self, style: Style) -> Request {
        self.style = style;
        self
    }

    /// Names this account in the path, while another one signs.
    pub fn path_account(mut self, account: &str) -> Request {
        self.path_account = Some(account.to_owned());
        self
    }

    /// Signs this target instead of the one on the request line.
    pub fn signed_target(mut self, target: &str) -> Request {
        self.signed_target = Some(target.to_owned());
        self
    }

    /// The bytes on the wire, for the Table service.
    pub fn to_bytes(&self, addr: SocketAddr, credentials: &Credentials, now: SystemTime) -> Vec<u8> {
        self.in_dialect(Dialect::Table, addr, credentials, now)
    }

    /// The bytes on the wire, for the Queue service.
    pub fn to_queue_bytes(&self, addr: SocketAddr, credentials: &Credentials, now: SystemTime) -> Vec<u8> {
        self.in_dialect(Dialect::Queue, addr, credentials, now)
    }

    /// The bytes on the wire, for the Blob service.
    pub fn to_blob_bytes(&self, addr: SocketAddr, credentials: &Credentials, now: SystemTime) -> Vec<u8> {
        self.in_dialect(Dialect::Blob, addr, credentials, now)
    }

    pub(crate) fn in_dialect(
        &self,
        dialect: Dialect,
        addr: SocketAddr,
        credentials: &Credentials,
        now: SystemTime,
    ) -> Vec<u8> {
        let credentials = self.credentials.as_ref().unwrap_or(credentials);
        let (target, host) = match &self.style {
            Style::Path => {
                let account = self.path_account.as_deref().unwrap_or(&credentials.account);
                (format!("/{account}{}", self.target), addr.to_string())
            }
            Style::Host(host) => (self.target.clone(), host.clone()),
            Style::Bare => (self.target.clone(), addr.to_string()),
        };
        let (version, accept, content_type) = match dialect {
            Dialect::Table => ("2019-02-02", "application/json;odata=minimalmetadata", "application/json"),
            Dialect::Queue => ("2025-11-05", "application/xml", "application/xml"),
            Dialect::Blob => ("2025-11-05", "*/*", "application/octet-stream"),
        };
        let mut headers = vec![
            ("Host".to_owned(), host),
            ("x-ms-version".to_owned(), version.to_owned()),
            ("x-ms-date".to_owned(), http_date(now)),
            ("Accept".to_owned(), accept.to_owned()),
        ];
        if dialect == Dialect::Table {
            headers.push(("DataServiceVersion".to_owned(), "3.0".to_owned()));
        }
        if let Some(body) = &self.body {
            headers.push(("Content-Type".to_owned(), content_type.to_owned()));
            headers.push(("Content-Length".to_owned(), body.len().to_string()));
        } else if self.method != "GET" && self.method != "HEAD" && self.method != "DELETE" {
            headers.push(("Content-Length".to_owned(), "0".to_owned()));
        }
        self.change(&mut headers);
        let has_authorization = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Authorization"));
        let removes_authorization = self.changes.iter().any(
            |change| matches!(change, Change::Remove(name) if name.eq_ignore_ascii_case("Authorization")),
        );
        if let Some(scheme) = self.scheme
            && !has_authorization
            && !removes_authorization
        {
            let signed_target = self.signed_target.as_deref().unwrap_or(&target);
            let text = match dialect {
                Dialect::Table => {
                    self.table_string_to_sign(scheme, &credentials.account, signed_target, &headers)
                }
                Dialect::Queue | Dialect::Blob => {
                    full_string_to_sign(scheme, &credentials.account, &self.method, signed_target, &headers)
                }
            };
            let header =
                format!("{} {}:{}", scheme.name(), credentials.account, signature(&credentials.key, &text));
            headers.push(("Authorization".to_owned(), header));
        }
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, target).into_bytes();
        for (name, value) in &headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    fn table_string_to_sign(
        &self,
        scheme: Scheme,
        account: &str,
        target: &str,
        headers: &[(String, String)],
    ) -> String {
        let value = |wanted: &str| {
            headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map_or("", |(_, value)| value.as_str())
        };
        let date = if value("x-ms-date").is_empty() { value("Date") } else { value("x-ms-date") };
        let (md5, content_type) = (value("Content-MD5"), value("Content-Type"));
        string_to_sign(scheme, account, &self.method, target, md5, content_type, date)
    }

    fn change(&self, headers: &mut Vec<(String, String)>) {
        for change in &self.changes {
            match change {
                Change::Set(name, value) => {
                    let place = headers.iter_mut().find(|(present, _)| present.eq_ignore_ascii_case(name));
                    match place {
                        Some(header) => *header = (name.clone(), value.clone()),
                        None => headers.push((name.clone(), value.clone())),
                    }
                }
                Change::Add(name, value) => headers.push((name.clone(), value.clone())),
                Change::Remove(name) => headers.retain(|(present, _)| !present.eq_ignore_ascii_case(name)),
            }
        }
    }
}

/// Writes every byte of a character that is not unreserved as %XX.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
