//! Requests to the Queue service, signed with Shared Key.
//!
//! Requests that stay the same (put, get, peek) are signed beforehand. A deletion names the message and its receipt,
//! which only the answer to a get knows, so it is signed when it is sent: all that stays the same is hashed beforehand.
//! Leaves to others: in which order to send (`messages.rs`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::endpoint::Endpoint;
use crate::{Error, clock};

const VERSION: &str = "2021-12-02";
/// What a message says: the size of a usual message, a JSON document in Base64.
pub(crate) const MESSAGE_TEXT: &str = "eyJ0eXBlIjoiT3JkZXJQbGFjZWQiLCJvcmRlciI6IjAxSFoyVzNGNFE1UjZTN1Q4VTlWIiwiY3VzdG9tZXIiOiJBZGEgTG92ZWxhY2UiLCJjaXR5IjoiTG9uZG9uIn0=";
/// An HMAC in Base64.
const SIGNATURE_BYTES: usize = 44;

#[derive(Clone)]
pub struct QueueSigner {
    key: hmac::Key,
    date: String,
    account: String,
    host: String,
    base_path: String,
}

impl QueueSigner {
    pub fn of(endpoint: &Endpoint) -> Result<QueueSigner, Error> {
        let key = STANDARD.decode(&endpoint.key).map_err(|_| "the account's key is not Base64")?;
        Ok(QueueSigner {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            date: clock::http_date(),
            account: endpoint.account.clone(),
            host: endpoint.host.clone(),
            base_path: endpoint.base_path.clone(),
        })
    }

    /// Signs with the current date from now on: the server accepts a signature for fifteen minutes only.
    pub fn renew(&mut self) {
        self.date = clock::http_date();
    }

    /// A whole request. `path` starts after the account. The options of the query are sorted by name, and their values
    /// need no escaping.
    pub fn request(&self, method: &str, path: &str, options: &[(&str, &str)], body: &str) -> Vec<u8> {
        let (mut query, mut canonical) = (String::new(), String::new());
        for (name, value) in options {
            query.push_str(&format!("{}{name}={value}", if query.is_empty() { '?' } else { '&' }));
            canonical.push_str(&format!("\n{name}:{value}"));
        }
        let signed = self.to_sign(method, body, path) + &canonical;
        let signature = STANDARD.encode(hmac::sign(&self.key, signed.as_bytes()));
        let (base, headers) = (&self.base_path, self.headers(body));
        format!("{method} {base}{path}{query} HTTP/1.1\r\n{headers}{signature}\r\n\r\n{body}").into_bytes()
    }

    /// The text to sign, without the options of the query.
    fn to_sign(&self, method: &str, body: &str, path: &str) -> String {
        let (length, kind) = match body.len() {
            0 => (String::new(), ""),
            length => (length.to_string(), "application/xml"),
        };
        let (date, account, base) = (&self.date, &self.account, &self.base_path);
        format!(
            "{method}\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{VERSION}\n/{account}{base}{path}"
        )
    }

    /// All headers, up to where the signature goes.
    fn headers(&self, body: &str) -> String {
        let (host, date, account) = (&self.host, &self.date, &self.account);
        let length = match body.len() {
            0 => "Content-Length: 0\r\n".to_owned(),
            length => format!("Content-Type: application/xml\r\nContent-Length: {length}\r\n"),
        };
        format!(
            "Host: {host}\r\nx-ms-date: {date}\r\nx-ms-version: {VERSION}\r\n{length}Authorization: SharedKey {account}:"
        )
    }

    pub fn create_queue(&self, queue: &str) -> Vec<u8> {
        self.request("PUT", &format!("/{queue}"), &[], "")
    }

    pub fn delete_queue(&self, queue: &str) -> Vec<u8> {
        self.request("DELETE", &format!("/{queue}"), &[], "")
    }

    pub fn clear(&self, queue: &str) -> Vec<u8> {
        self.request("DELETE", &messages(queue), &[], "")
    }

    pub fn put(&self, queue: &str, options: &[(&str, &str)]) -> Vec<u8> {
        let body = format!("<QueueMessage><MessageText>{MESSAGE_TEXT}</MessageText></QueueMessage>");
        self.request("POST", &messages(queue), options, &body)
    }

    pub fn get(&self, queue: &str, message_count: u64) -> Vec<u8> {
        self.request("GET", &messages(queue), &[("numofmessages", &message_count.to_string())], "")
    }

    pub fn peek(&self, queue: &str) -> Vec<u8> {
        self.request("GET", &messages(queue), &[("peekonly", "true")], "")
    }

    /// Deletions of messages that are not known yet.
    pub(crate) fn deletions(&self, queue: &str) -> Deletions {
        let path = format!("{}/", messages(queue));
        let mut hashed = hmac::Context::with_key(&self.key);
        hashed.update(self.to_sign("DELETE", "", &path).as_bytes());
        Deletions {
            hashed,
            start: format!("DELETE {}{path}", self.base_path).into_bytes(),
            headers: format!(" HTTP/1.1\r\n{}", self.headers("")).into_bytes(),
        }
    }
}

fn messages(queue: &str) -> String {
    format!("/{queue}/messages")
}

/// All deletions of a queue's messages have in common everything but the message, its receipt and the signature.
pub(crate) struct Deletions {
    /// The text to sign, up to the message's id.
    hashed: hmac::Context,
    start: Vec<u8>,
    headers: Vec<u8>,
}

impl Deletions {
    /// Writes the request that deletes a message, given its id and its receipt as an answer spells them.
    pub(crate) fn write(&self, id: &[u8], receipt: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.start);
        out.extend_from_slice(id);
        out.extend_from_slice(b"?popreceipt=");
        for byte in receipt {
            match byte {
                b'+' => out.extend_from_slice(b"%2B"),
                b'/' => out.extend_from_slice(b"%2F"),
                b'=' => out.extend_from_slice(b"%3D"),
                byte => out.push(*byte),
            }
        }
        out.extend_from_slice(&self.headers);
        let mut hashed = self.hashed.clone();
        hashed.update(id);
        hashed.update(b"\npopreceipt:");
        hashed.update(receipt);
        let mut signature = [0; SIGNATURE_BYTES];
        let written = STANDARD.encode_slice(hashed.sign(), &mut signature);
        assert_eq!(written, Ok(SIGNATURE_BYTES), "an HMAC has one length");
        out.extend_from_slice(&signature);
        out.extend_from_slice(b"\r\n\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(date: &str) -> QueueSigner {
        let endpoint = Endpoint::development(([127, 0, 0, 1], 10001).into());
        QueueSigner { date: date.to_owned(), ..QueueSigner::of(&endpoint).unwrap() }
    }

    #[test]
    fn a_deletion_is_signed_like_any_request() {
        let signer = signer("Fri, 26 Jun 2026 23:39:12 GMT");
        let mut written = Vec::new();
        signer.deletions("q").write(b"7", b"ab12", &mut written);
        let whole = signer.request("DELETE", "/q/messages/7", &[("popreceipt", "ab12")], "");
        assert_eq!(String::from_utf8(written), String::from_utf8(whole));
        let mut escaped = Vec::new();
        signer.deletions("q").write(b"7", b"a+/=", &mut escaped);
        assert!(
            escaped.starts_with(b"DELETE /devstoreaccount1/q/messages/7?popreceipt=a%2B%2F%3D HTTP/1.1\r\n")
        );
    }
}
