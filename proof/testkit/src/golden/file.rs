//! Reads a golden file: comments and directives, then `>>>` requests and `<<<` responses in turn.
//!
//! Promises: a line that does not belong to the format is an error that quotes it. Leaves to others: placeholders
//! (`pattern.rs`).

use std::path::Path;

use super::{Exchange, Message, Scenario, ServiceKind};

const EVENTUALLY: &str = "eventually: ";
const CHANGES_SETTINGS: &str = "@changes service properties";
const ASKS_QUEUES: &str = "@service queue";
const ASKS_BLOBS: &str = "@service blob";

pub fn read(path: &Path) -> Result<Scenario, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Scenario, String> {
    let mut scenario = Scenario {
        name: name.to_owned(),
        changes_settings: false,
        service: ServiceKind::Table,
        exchanges: Vec::new(),
    };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next_if(|line| !line.starts_with(">>>")) {
        match line {
            CHANGES_SETTINGS => scenario.changes_settings = true,
            ASKS_QUEUES => scenario.service = ServiceKind::Queue,
            ASKS_BLOBS => scenario.service = ServiceKind::Blob,
            line if line.is_empty() || line.starts_with('#') => {}
            line => return Err(format!("{name}: neither comment nor directive: {line}")),
        }
    }
    while let Some(marker) = lines.next() {
        let title = marker.trim_start_matches(">>>").trim();
        let mut take_until = |end: &str| {
            let mut taken = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with(end)) {
                taken.push(line);
            }
            taken
        };
        let request = take_until("<<<");
        if request.is_empty() || lines.next().is_none() {
            return Err(format!("{name}: '{title}' has no request or no response"));
        }
        let mut response = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(">>>")) {
            response.push(line);
        }
        let message = |lines: &[&str]| message(lines).map_err(|why| format!("{name}: '{title}': {why}"));
        scenario.exchanges.push(Exchange {
            is_eventual: title.starts_with(EVENTUALLY),
            title: title.trim_start_matches(EVENTUALLY).to_owned(),
            request: message(&request)?,
            response: message(&response)?,
        });
    }
    if scenario.exchanges.is_empty() { Err(format!("{name}: no exchange")) } else { Ok(scenario) }
}

fn message(lines: &[&str]) -> Result<Message, String> {
    let (start_line, rest) = lines.split_first().ok_or("no first line")?;
    let head_length = rest.iter().position(|line| line.is_empty()).unwrap_or(rest.len());
    let mut headers = Vec::new();
    for line in &rest[..head_length] {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("no header: {line}"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut message = Message { start_line: (*start_line).to_owned(), headers, body: String::new() };
    // Blank lines at the end are only for readability. A MIME body gets its final CRLF below.
    let body = rest.get(head_length + 1..).unwrap_or_default();
    let length = body.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let is_multipart = message.header("Content-Type").is_some_and(|value| value.starts_with("multipart/"));
    message.body = if is_multipart {
        body[..length].iter().map(|line| format!("{line}\r\n")).collect()
    } else {
        body[..length].join("\n")
    };
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# A comment.\n\n@changes service properties\n\n>>> read\nGET {{base}}/ HTTP/1.1\nHost: {{host}}\n\n<<<\n\
                        HTTP/1.1 200 OK\nContent-Type: application/xml\n\n<a>\n</a>\n\n>>> eventually: write\nPUT / HTTP/1.1\n\
                        Content-Type: multipart/mixed; boundary=b\n\n--b\n\n--b--\n\n<<<\nHTTP/1.1 204 No Content\n";

    #[test]
    fn a_file_is_read_as_exchanges() {
        let scenario = parse("x.http", FILE).unwrap();
        assert!(scenario.changes_settings);
        let [read, write] = scenario.exchanges.as_slice() else { panic!("{scenario:?}") };
        assert_eq!((read.title.as_str(), read.is_eventual), ("read", false));
        assert_eq!(read.request.start_line, "GET {{base}}/ HTTP/1.1");
        assert_eq!(read.request.header("host"), Some("{{host}}"));
        assert_eq!((read.request.body.as_str(), read.response.body.as_str()), ("", "<a>\n</a>"));
        assert_eq!((write.title.as_str(), write.is_eventual), ("write", true));
        assert_eq!(write.request.body, "--b\r\n\r\n--b--\r\n", "lines of MIME end with CRLF");
    }

    #[test]
    fn what_is_not_of_the_format_is_refused() {
        for text in
            ["", "# nothing", "stray\n>>> a\nGET / HTTP/1.1\n<<<\nHTTP/1.1 200 OK", ">>> a", ">>> a\n<<<\n"]
        {
            assert!(parse("x.http", text).is_err(), "{text}");
        }
        assert!(parse("x.http", ">>> a\nGET / HTTP/1.1\nnonsense\n<<<\nHTTP/1.1 200 OK").is_err());
        assert!(parse("x.http", ">>> a\nGET / HTTP/1.1\n<<<\n").is_err());
    }
}
