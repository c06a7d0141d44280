//! A response as received: status, reason, headers in order, body; and the checks that tests make on it.

use std::fmt;

use serde_json::Value;

#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether errors are in the XML shape of the Queue and Blob services. The Table service has shapes of its own, and an error in
    /// another service's shape must not pass for one of them.
    pub is_of_queue: bool,
}

impl Response {
    /// The same, as an answer of the Queue service: that decides how its errors are read.
    pub fn of_queue(self) -> Response {
        Response { is_of_queue: true, ..self }
    }

    /// The same, as an answer of the Blob service, whose errors have the same shape.
    pub fn of_blob(self) -> Response {
        self.of_queue()
    }

    /// The first header of this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(present, _)| present.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The header of this name. Panics if there is none.
    #[track_caller]
    pub fn required(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name} in\n{self:?}"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}):\n{self:?}"))
    }

    /// Panics, showing the response, unless the status is the expected one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Response {
        assert_eq!(self.status, status, "unexpected status in\n{self:?}");
        self
    }

    /// The code of a JSON or XML error body; empty if there is none.
    pub fn error_code(&self) -> String {
        let text = self.text();
        if text.starts_with('{') {
            return self.json()["odata.error"]["code"].as_str().unwrap_or_default().to_owned();
        }
        if self.is_of_queue {
            return between(text, "<Code>", "</Code>").unwrap_or_default();
        }
        between(text, "<m:code>", "</m:code>")
            .or_else(|| between(text, "<code>", "</code>"))
            .unwrap_or_default()
    }

    /// The error's message, without the lines for request id and time.
    pub fn error_message(&self) -> String {
        let text = self.text();
        let value = if text.starts_with('{') {
            self.json()["odata.error"]["message"]["value"].as_str().unwrap_or_default().to_owned()
        } else if self.is_of_queue {
            between(text, "<Message>", "</Message>").unwrap_or_default()
        } else {
            let inner =
                text.split_once("message xml:lang=\"en-US\">").map(|(_, rest)| rest).unwrap_or_default();
            inner.split_once("</").map(|(inner, _)| inner).unwrap_or_default().to_owned()
        };
        match value.split_once("\nRequestId:") {
            Some((message, _)) => message.to_owned(),
            None => value,
        }
    }

    /// The texts of all elements of this name in an XML body, unescaped. They have neither attributes nor children.
    pub fn elements(&self, name: &str) -> Vec<String> {
        let (start, end) = (format!("<{name}"), format!("</{name}>"));
        let mut found = Vec::new();
        for piece in self.text().split(&start).skip(1) {
            let (text, is_here) = match piece.trim_start_matches(' ') {
                empty if empty.starts_with("/>") => ("", true),
                _ if piece.starts_with('>') => {
                    piece[1..].split_once(&end).map_or(("", false), |(text, _)| (text, true))
                }
                // A longer name.
                _ => ("", false),
            };
            if is_here {
                found.push(unescape(text));
            }
        }
        found
    }

    /// The text of the only element of this name.
    #[track_caller]
    pub fn element(&self, name: &str) -> String {
        let mut found = self.elements(name);
        assert_eq!(found.len(), 1, "the elements {name} in\n{self:?}");
        found.remove(0)
    }

    /// Panics unless this is the error with this status and code.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Response {
        assert!(
            self.status == status && self.error_code() == code,
            "expected {status} {code}, got {} {} in\n{self:?}",
            self.status,
            self.error_code()
        );
        self
    }

    /// Panics unless this is the error with this status, code and text.
    #[track_caller]
    pub fn expect_message(self, status: u16, code: &str, message: &str) -> Response {
        let response = self.expect_error(status, code);
        assert_eq!(response.error_message(), message, "the text of {code}");
        response
    }
}

fn unescape(text: &str) -> String {
    let replaced = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#xD;", "\r")];
    let plain = replaced.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain));
    plain.replace("&amp;", "&")
}

fn between(text: &str, start: &str, end: &str) -> Option<String> {
    Some(text.split_once(start)?.1.split_once(end)?.0.to_owned())
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "HTTP/1.1 {} {}", self.status, self.reason)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(4000).collect();
        write!(f, "\n{shown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_the_shape_of_another_service_has_no_code() {
        let body =
            b"<?xml version=\"1.0\"?><Error><Code>X</Code><Message>m\nRequestId:1</Message></Error>".to_vec();
        let of = |is_of_queue| Response {
            status: 400,
            reason: String::new(),
            headers: Vec::new(),
            body: body.clone(),
            is_of_queue,
        };
        assert_eq!((of(true).error_code(), of(true).error_message()), ("X".to_owned(), "m".to_owned()));
        assert_eq!(of(false).error_code(), "");
    }
}
