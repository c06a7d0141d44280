//! Reads the golden files as initial inputs: their requests and responses, with the placeholders filled in.
//!
//! `tests/golden/README.md` describes the format. It is read loosely, because a slightly wrong input is a fine input.

use std::path::Path;

/// The values of the files' placeholders. A name with a number, as in `{{stamp.1}}`, has the value of the name.
const PLACEHOLDERS: [(&str, &str); 17] = [
    ("account", crate::ACCOUNT),
    ("base", "/devstoreaccount1"),
    ("batch", "1a2b3c4d-0000-4000-8000-000000000001"),
    ("bom", "\u{FEFF}"),
    ("changeset", "1a2b3c4d-0000-4000-8000-000000000002"),
    ("date", "Thu, 20 Aug 2020 22:20:23 GMT"),
    ("host", "127.0.0.1:10002"),
    ("http-date", "Thu, 20 Aug 2020 22:20:23 GMT"),
    ("length", "100"),
    ("secondary-base", "/devstoreaccount1-secondary"),
    ("secondary-host", "127.0.0.1:10002"),
    ("signature", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ("stamp", "2020-08-20T22%3A20%3A23.751381Z"),
    ("table", "People"),
    ("timestamp", "2020-08-20T22:20:23.751381Z"),
    ("token", "1!8!U21pdGg-"),
    ("url", "http://127.0.0.1:10002/devstoreaccount1"),
];

/// All exchanges of the golden files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Golden {
    pub exchanges: Vec<Exchange>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    pub request: Message,
    pub response: Message,
}

/// A request or a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    pub start_line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Message {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(present, _)| present.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The path and query of a request.
    pub fn target(&self) -> &str {
        self.start_line.split(' ').nth(1).unwrap_or_default()
    }

    /// The query string of a request's target.
    pub fn query(&self) -> &str {
        self.target().split_once('?').map_or("", |(_, query)| query)
    }
}

impl Golden {
    /// Reads every file of the folder.
    pub fn read(folder: &Path) -> Result<Golden, String> {
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "http"));
        // The order of a directory is undefined, and a run must be repeatable.
        paths.sort();
        let mut golden = Golden::default();
        for path in paths {
            let text =
                std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            golden.add(&text);
        }
        if golden.exchanges.is_empty() {
            return Err(format!("{}: no golden files", folder.display()));
        }
        Ok(golden)
    }

    fn add(&mut self, text: &str) {
        let text = fill_in(text);
        for exchange in text.split("\n>>>").skip(1) {
            let (_title, exchange) = exchange.split_once('\n').unwrap_or_default();
            let (request, response) = exchange.split_once("\n<<<\n").unwrap_or((exchange, ""));
            self.exchanges.push(Exchange { request: message(request), response: message(response) });
        }
    }

    pub fn requests(&self) -> impl Iterator<Item = &Message> {
        self.exchanges.iter().map(|exchange| &exchange.request)
    }

    pub fn responses(&self) -> impl Iterator<Item = &Message> {
        self.exchanges.iter().map(|exchange| &exchange.response)
    }

    /// Requests and responses.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.requests().chain(self.responses())
    }

    /// The distinct bodies with this beginning, ignoring a byte order mark.
    pub fn bodies(&self, beginning: &str) -> Vec<Vec<u8>> {
        let bodies = self.messages().map(|message| message.body.as_str());
        let found = bodies.filter(|body| body.trim_start_matches('\u{FEFF}').starts_with(beginning));
        distinct(found.map(|body| body.as_bytes().to_vec()))
    }
}

/// The inputs without repetitions, in a fixed order.
pub(crate) fn distinct(inputs: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    inputs.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn fill_in(text: &str) -> String {
    let mut pieces = text.split("{{");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").unwrap_or((piece, ""));
        let stem = name.split('.').next().unwrap_or_default();
        let value = PLACEHOLDERS.iter().find(|(known, _)| *known == stem).map_or(name, |(_, value)| *value);
        filled.push_str(value);
        filled.push_str(rest);
    }
    filled
}

fn message(text: &str) -> Message {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let start_line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut message = Message { start_line, headers, body: body.trim_end_matches('\n').to_owned() };
    if message.header("Content-Type").is_some_and(|value| value.starts_with("multipart/")) {
        message.body = message.body.replace('\n', "\r\n") + "\r\n";
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_exchanges_with_values_for_placeholders() {
        let mut golden = Golden::default();
        golden.add(
            "# A comment.\n\n>>> read\nGET {{base}}/{{table}}()?$top=1 HTTP/1.1\nHost: {{host}}\n\n<<<\nHTTP/1.1 200 OK\n\
             ETag: W/\"datetime'{{stamp.1}}'\"\n\n{\"a\":1}\n\n>>> write\nPUT / HTTP/1.1\n\n<<<\nHTTP/1.1 204 No Content\n",
        );
        let [read, write] = golden.exchanges.as_slice() else { panic!("{golden:?}") };
        assert_eq!(read.request.target(), "/devstoreaccount1/People()?$top=1");
        assert_eq!(read.request.query(), "$top=1");
        assert_eq!(read.response.header("etag"), Some("W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\""));
        assert_eq!(read.response.body, "{\"a\":1}");
        assert_eq!(write.request.start_line, "PUT / HTTP/1.1");
        assert_eq!(golden.bodies("{"), [b"{\"a\":1}"]);
    }
}
