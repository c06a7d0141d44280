//! Entity group transactions: writes them in the plainest form, and reads the answers.
//!
//! Promises: a part that is not exactly of the published form fails the test. Leaves to others: signing and sending.

use crate::{EMULATOR_ACCOUNT, Request, Response};

/// The server looks only at its path: it ignores the host of a part.
const HOST: &str = "http://127.0.0.1:10002";
const BATCH: &str = "batch_7b1f4a4e-0000-4000-8000-00000000000a";
const CHANGESET: &str = "changeset_7b1f4a4e-0000-4000-8000-00000000000b";

/// Builds `POST /$batch`. Operation targets are relative to the service root.
#[derive(Clone)]
pub struct Batch {
    account: String,
    operations: Vec<String>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::of_account(EMULATOR_ACCOUNT)
    }
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn of_account(account: &str) -> Batch {
        Batch { account: account.to_owned(), operations: Vec::new() }
    }

    /// Adds an operation. Like most clients it accepts minimal metadata, unless the headers say otherwise.
    pub fn operation(
        mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        json: Option<&str>,
    ) -> Batch {
        let mut text = format!("{method} {HOST}/{}{target} HTTP/1.1\r\n", self.account);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Accept")) {
            text.push_str("Accept: application/json;odata=minimalmetadata\r\n");
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(json) = json {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", json.len()));
        }
        text.push_str("\r\n");
        text.push_str(json.unwrap_or_default());
        self.operations.push(text);
        self
    }

    pub fn insert(self, table: &str, json: &str) -> Batch {
        self.operation("POST", &format!("/{table}"), &[("Prefer", "return-no-content")], Some(json))
    }

    /// All operations in one change set.
    pub fn body(&self) -> String {
        let mut body = format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGESET}\r\n\r\n");
        for operation in &self.operations {
            body.push_str(&format!(
                "--{CHANGESET}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{operation}\r\n"
            ));
        }
        body.push_str(&format!("--{CHANGESET}--\r\n\r\n--{BATCH}--\r\n"));
        body
    }

    pub fn request(&self) -> Request {
        Request::post("/$batch").body(&format!("multipart/mixed; boundary={BATCH}"), self.body())
    }

    /// Puts the operations directly into the batch, without a change set. Queries are sent this way.
    pub fn query_request(&self) -> Request {
        let mut body = String::new();
        for operation in &self.operations {
            body.push_str(&format!(
                "--{BATCH}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{operation}\r\n"
            ));
        }
        body.push_str(&format!("--{BATCH}--\r\n"));
        Request::post("/$batch").body(&format!("multipart/mixed; boundary={BATCH}"), body)
    }
}

/// One answer inside a batch response.
pub type Part = Response;

/// The answers to the operations of a change set, in order, or to a single query.
#[track_caller]
pub fn batch_parts(response: &Response) -> Vec<Part> {
    assert_eq!(response.status, 202, "a batch is answered with 202:\n{response:?}");
    let body = response.text();
    let outer = response.required("Content-Type").split_once("boundary=").expect("a boundary").1;
    let pieces = split_parts(body, outer);
    assert_eq!(pieces.len(), 1, "one change set or one query:\n{response:?}");
    let (head, content) = pieces[0].split_once("\r\n\r\n").expect("a part has a head");
    let answers = match head.split_once("boundary=") {
        Some((_, inner)) => split_parts(content, inner.trim()),
        None => vec![pieces[0]],
    };
    answers.into_iter().map(read_part).collect()
}

fn split_parts<'a>(body: &'a str, boundary: &str) -> Vec<&'a str> {
    let delimiter = format!("--{boundary}");
    let mut pieces: Vec<&str> = body.split(delimiter.as_str()).collect();
    assert!(pieces.len() >= 2, "no delimiter {delimiter} in\n{body}");
    assert_eq!(pieces[0], "", "text before the first delimiter");
    assert_eq!(pieces.pop().map(|end| end.trim_end()), Some("--"), "text after the last delimiter");
    pieces.remove(0);
    pieces.into_iter().map(|piece| piece.strip_prefix("\r\n").expect("CRLF after a delimiter")).collect()
}

fn read_part(piece: &str) -> Part {
    let (mime, http) = piece.split_once("\r\n\r\n").expect("a part has a head");
    assert_eq!(mime, "Content-Type: application/http\r\nContent-Transfer-Encoding: binary");
    let (head, body) = http.split_once("\r\n\r\n").expect("an answer has a head");
    let mut lines = head.split("\r\n");
    let status_line = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line");
    let (status, reason) = status_line.split_once(' ').expect("a reason");
    let headers =
        lines.map(|line| line.split_once(": ").expect("a header")).map(|(n, v)| (n.to_owned(), v.to_owned()));
    Response {
        status: status.parse().expect("a status"),
        reason: reason.to_owned(),
        headers: headers.collect(),
        body: body.trim_end().as_bytes().to_vec(),
        is_of_queue: false,
    }
}
