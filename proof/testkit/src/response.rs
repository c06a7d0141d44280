//! A response as received: status, reason, headers in order, body; and the checks that tests make on it.

use std::fmt;

use serde_json::Value;

#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
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
        between(text, "<m:code>", "</m:code>")
            .or_else(|| between(text, "<code>", "</code>"))
            .or_else(|| between(text, "<Code>", "</Code>"))
            .unwrap_or_default()
    }

    /// The error's message, without the lines for request id and time.
    pub fn error_message(&self) -> String {
        let text = self.text();
        let value = if text.starts_with('{') {
            self.json()["odata.error"]["message"]["value"].as_str().unwrap_or_default().to_owned()
        } else if let Some(message) = between(text, "<Message>", "</Message>") {
            message
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
        let (start, end, empty) = (format!("<{name}>"), format!("</{name}>"), format!("<{name} />"));
        let mut found = Vec::new();
        let mut rest = self.text();
        while let Some(at) = [rest.find(&start), rest.find(&empty)].into_iter().flatten().min() {
            rest = &rest[at..];
            match rest.strip_prefix(&empty) {
                Some(after) => {
                    found.push(String::new());
                    rest = after;
                }
                None => {
                    let inner = &rest[start.len()..];
                    let (text, after) = inner.split_once(&end).expect("elements are closed");
                    found.push(unescape(text));
                    rest = after;
                }
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
