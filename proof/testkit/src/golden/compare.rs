//! Decides what counts as a difference between the expected and the actual response.
//!
//! Ignores the case of header names, the order of headers, and headers that HTTP leaves to the server. CORS headers
//! matter only where a file expects them, because an account may have rules of its own.
//! Leaves to others: placeholders (`pattern.rs`).

use super::Message;
use super::pattern::{Values, matches};
use crate::Response;

/// Headers that HTTP leaves to the server.
const CHOSEN_BY_HTTP: [&str; 4] = ["date", "connection", "keep-alive", "transfer-encoding"];
/// How many bytes of a body are shown from the place where it differs; a third as many are shown before it.
const SHOWN_BYTES: usize = 70;

/// What to leave out of the comparison.
#[derive(Clone, Default, Debug)]
pub struct Rules {
    /// Names of response headers to ignore.
    pub ignored_headers: Vec<String>,
}

impl Rules {
    fn ignores(&self, name: &str) -> bool {
        CHOSEN_BY_HTTP.contains(&name.to_ascii_lowercase().as_str())
            || self.ignored_headers.iter().any(|ignored| ignored.eq_ignore_ascii_case(name))
    }
}

/// The differences, each one or more lines. Adds the values of placeholders to `seen`.
pub fn compare(
    expected: &Message,
    actual: &Response,
    known: &Values,
    seen: &mut Values,
    rules: &Rules,
) -> Vec<String> {
    let mut found = Vec::new();
    let status_line = format!("HTTP/1.1 {} {}", actual.status, actual.reason);
    if matches(&expected.start_line, &status_line, known, seen).is_err() {
        found.push(format!("   expected {}\n   got      {status_line}", expected.start_line));
    }
    for (name, wanted) in &expected.headers {
        if rules.ignores(name) {
            continue;
        }
        match actual.header(name) {
            None if name.eq_ignore_ascii_case("Content-Length") => {}
            None => found.push(format!("   expected {name}: {wanted}\n   got      no {name}")),
            Some(value) => {
                if matches(&blankless(wanted), &blankless(value), known, seen).is_err() {
                    found.push(format!("   expected {name}: {wanted}\n   got      {name}: {value}"));
                }
            }
        }
    }
    for (name, value) in &actual.headers {
        let is_own = name.eq_ignore_ascii_case("Content-Length")
            || name.eq_ignore_ascii_case("Vary")
            || name.to_ascii_lowercase().starts_with("access-control-");
        if expected.header(name).is_none() && !rules.ignores(name) && !is_own {
            found.push(format!("   expected no {name}\n   got      {name}: {value}"));
        }
    }
    let body = String::from_utf8_lossy(&actual.body);
    if let Err(mismatch) = matches(&expected.body, &body, known, seen) {
        let (wanted, got) = (around(&expected.body, mismatch.expected_at), around(&body, mismatch.actual_at));
        found.push(format!("   expected body … {wanted}\n   got      body … {got}"));
    }
    found
}

/// `a; b` and `a;b` are one header value.
fn blankless(value: &str) -> String {
    value.replace("; ", ";")
}

fn around(text: &str, at: usize) -> String {
    let mut start = at.saturating_sub(SHOWN_BYTES / 3);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = text.len().min(at + SHOWN_BYTES);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    text[start..end].escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Message {
        let headers = [("Content-Type", "application/xml; charset=utf-8"), ("Content-Length", "3")];
        Message {
            start_line: "HTTP/1.1 200 OK".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: "abc".to_owned(),
        }
    }

    #[track_caller]
    fn check(status: u16, headers: &[(&str, &str)], body: &str, differences: usize) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let actual = Response {
            status,
            reason: "OK".to_owned(),
            headers,
            body: body.as_bytes().to_vec(),
            is_of_queue: false,
        };
        let rules = Rules { ignored_headers: vec!["Server".to_owned()] };
        let found = compare(&expected(), &actual, &Values::new(), &mut Values::new(), &rules);
        assert_eq!(found.len(), differences, "{found:#?}");
    }

    #[test]
    fn only_what_matters_is_a_difference() {
        let same = ("content-type", "application/xml;charset=utf-8");
        check(200, &[same, ("Content-Length", "3")], "abc", 0);
        check(
            200,
            &[("Transfer-Encoding", "chunked"), ("Date", "x"), ("Connection", "close"), same],
            "abc",
            0,
        );
        check(200, &[same, ("Server", "another"), ("Vary", "Origin")], "abc", 0);
        check(201, &[same], "abc", 1);
        check(200, &[same, ("Content-Length", "4")], "abcd", 2);
        check(200, &[same, ("ETag", "x")], "abc", 1);
        check(200, &[("Content-Type", "text/plain")], "xyz", 2);
        check(200, &[], "abc", 1);
    }
}
