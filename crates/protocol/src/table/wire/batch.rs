//! Entity group transactions: reads the multipart request and writes the multipart answer; for clients, reads that
//! answer.
//!
//! Promises: reads every client's and every server's dialect, including CRLF or LF, delimiters without their final
//! dashes, extra blank lines, header names in any case, and a wrong `Content-Length`. A part's body ends at its
//! delimiter, whatever its headers say.

use super::headers::OperationHeaders;
use crate::common::multipart::{self, boundary, is_multipart, next_line, read_headers, split};
use crate::table::limits::BATCH_OPERATION_COUNT_MAX;
use crate::{ErrorCode, ServiceError};

/// What a batch asks for.
#[derive(Debug)]
pub enum BatchRequest<'a> {
    /// May be empty. Has at most one operation more than allowed: the rest is not read.
    ChangeSet(Vec<BatchPart<'a>>),
    Query(Box<BatchPart<'a>>),
}

/// One request inside a batch.
#[derive(Debug)]
pub struct BatchPart<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub headers: OperationHeaders<'a>,
    /// From the embedded request's headers, not from the MIME headers: this is the one that the answer repeats.
    pub content_id: Option<&'a str>,
    pub body: &'a [u8],
}

pub fn read_batch<'a>(content_type: Option<&str>, body: &'a [u8]) -> Result<BatchRequest<'a>, ServiceError> {
    let boundary = content_type.and_then(boundary).ok_or(ErrorCode::InvalidInput)?;
    let mut queries = Vec::new();
    let mut change_set: Option<Vec<BatchPart<'a>>> = None;
    // A batch is one change set or one query, so this bound already exceeds what it may have.
    for part in split(body, boundary, 3)? {
        let mut content_type = None;
        let content = read_headers(part, |name, value| {
            if name.eq_ignore_ascii_case("content-type") {
                content_type.get_or_insert(value);
            }
        })?;
        let content_type = content_type.unwrap_or_default();
        if is_multipart(content_type) {
            let inner = multipart::boundary(content_type).ok_or(ErrorCode::InvalidInput)?;
            if change_set.is_some() {
                return Err(ErrorCode::InvalidInput.into());
            }
            let parts = split(content, inner, BATCH_OPERATION_COUNT_MAX + 1)?;
            // Python writes an empty change set as one empty part.
            let is_empty = matches!(parts.as_slice(), [part] if part.trim_ascii().is_empty());
            let parts = if is_empty { Vec::new() } else { parts };
            change_set = Some(parts.into_iter().map(read_part).collect::<Result<_, _>>()?);
        } else {
            queries.push(read_part(part)?);
        }
    }
    match (change_set, queries.pop()) {
        (Some(parts), None) => Ok(BatchRequest::ChangeSet(parts)),
        (None, Some(query)) if queries.is_empty() => Ok(BatchRequest::Query(Box::new(query))),
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// One `application/http` part: its MIME headers, then a request.
fn read_part(part: &[u8]) -> Result<BatchPart<'_>, ServiceError> {
    let request = read_headers(part, |_, _| {})?;
    let (line, rest) = next_line(request.trim_ascii_start());
    let line = std::str::from_utf8(line).map_err(|_| ErrorCode::InvalidInput)?.trim();
    let (method, target) = line.split_once(' ').ok_or(ErrorCode::InvalidInput)?;
    // The HTTP version is optional, and a URL contains no spaces.
    let url = target.trim().split(' ').next().unwrap_or_default();
    let (mut headers, mut content_id) = (OperationHeaders::default(), None);
    let body = read_headers(rest, |name, value| {
        headers.take(name, || value);
        if name.eq_ignore_ascii_case("content-id") {
            content_id.get_or_insert(value);
        }
    })?;
    Ok(BatchPart { method, url, headers, content_id, body: body.trim_ascii() })
}

/// What a server answered to one operation of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerPart<'a> {
    pub status: u16,
    pub etag: Option<&'a str>,
    pub body: &'a [u8],
}

/// Reads the answer to a batch: calls `visit` for each part, in the order of the operations. A change set that failed
/// has one part, that of the operation at fault. `None` when this is no such answer.
pub fn read_batch_answer<'a>(
    content_type: &str,
    body: &'a [u8],
    mut visit: impl FnMut(AnswerPart<'a>),
) -> Option<()> {
    for part in split(body, boundary(content_type)?, 1).ok()? {
        let mut content_type = None;
        let content = read_headers(part, |name, value| {
            if name.eq_ignore_ascii_case("content-type") {
                content_type.get_or_insert(value);
            }
        });
        let (content, content_type) = (content.ok()?, content_type.unwrap_or_default());
        match multipart::boundary(content_type) {
            Some(inner) => {
                for part in split(content, inner, BATCH_OPERATION_COUNT_MAX + 1).ok()? {
                    visit(read_answer_part(part)?);
                }
            }
            // Azurite answers some failures without a change set.
            None => visit(read_answer_part(part)?),
        }
    }
    Some(())
}

/// One `application/http` part: its MIME headers, then a response.
fn read_answer_part(part: &[u8]) -> Option<AnswerPart<'_>> {
    let response = read_headers(part, |_, _| {}).ok()?;
    let (line, rest) = next_line(response.trim_ascii_start());
    let status = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/")?.split_ascii_whitespace().nth(1)?;
    let status = status.parse().ok()?;
    let mut etag = None;
    let body = read_headers(rest, |name, value| {
        if name.len() == 4 && name.eq_ignore_ascii_case("etag") {
            etag.get_or_insert(value);
        }
    });
    Some(AnswerPart { status, etag, body: body.ok()?.trim_ascii() })
}

/// The answer's body, built part by part. It has exactly the bytes that clients look for: boundaries that begin with
/// `changesetresponse_`, no preamble, no blank line between the two closing delimiters.
pub struct BatchAnswer {
    body: Vec<u8>,
    batch_boundary: String,
    change_set_boundary: Option<String>,
}

impl BatchAnswer {
    /// `batch_id` and `change_set_id` are fresh GUIDs; a lone query has no change set.
    pub fn new(batch_id: &str, change_set_id: Option<&str>) -> BatchAnswer {
        let batch_boundary = format!("batchresponse_{batch_id}");
        let change_set_boundary = change_set_id.map(|id| format!("changesetresponse_{id}"));
        let mut body = Vec::with_capacity(4096);
        if let Some(inner) = &change_set_boundary {
            let opening =
                format!("--{batch_boundary}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n");
            body.extend_from_slice(opening.as_bytes());
        }
        BatchAnswer { body, batch_boundary, change_set_boundary }
    }

    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.batch_boundary)
    }

    /// Adds one embedded response. `write` writes its status line, headers, blank line and body.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let boundary = self.change_set_boundary.as_ref().unwrap_or(&self.batch_boundary);
        self.body.extend_from_slice(b"--");
        self.body.extend_from_slice(boundary.as_bytes());
        self.body.extend_from_slice(
            b"\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        );
        write(&mut self.body);
        self.body.extend_from_slice(b"\r\n");
    }

    pub fn finish(mut self) -> Vec<u8> {
        if let Some(inner) = &self.change_set_boundary {
            self.body.extend_from_slice(format!("--{inner}--\r\n").as_bytes());
        }
        self.body.extend_from_slice(format!("--{}--\r\n", self.batch_boundary).as_bytes());
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOT_NET: &str = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n\
        --changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n\
        PATCH https://a/t(PartitionKey='001',RowKey='r1') HTTP/1.1\r\nIf-Match: *\r\nContent-Type: application/json\r\n\r\n\
        {\"age\":\"abc\"}\r\n--changeset_1\r\nContent-Type: application/http\r\n\r\n\
        DELETE https://a/t(PartitionKey='001',RowKey='r2') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n\
        --changeset_1--\r\n\r\n--batch_1--\r\n";

    #[test]
    fn a_line_of_nothing_but_delimiters_is_read_once() {
        // Searching for the end of the line at each of them would take minutes.
        let body = "--b".repeat(4 * 1024 * 1024 / 3);
        let refused = read_batch(Some("multipart/mixed; boundary=b"), body.as_bytes());
        assert_eq!(refused.map(|_| ()).map_err(|error| error.code), Err(ErrorCode::InvalidInput));
    }

    fn change_set<'a>(content_type: &str, body: &'a str) -> Vec<BatchPart<'a>> {
        match read_batch(Some(content_type), body.as_bytes()).unwrap() {
            BatchRequest::ChangeSet(parts) => parts,
            BatchRequest::Query(_) => panic!("a change set was expected"),
        }
    }

    #[track_caller]
    fn check_two_operations(body: &str) {
        let parts = change_set("multipart/mixed; boundary=\"batch_1\"", body);
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].method, parts[0].url), ("PATCH", "https://a/t(PartitionKey='001',RowKey='r1')"));
        assert_eq!(parts[0].headers.if_match, Some("*"));
        assert_eq!(parts[0].body, b"{\"age\":\"abc\"}");
        assert_eq!((parts[1].method, parts[1].body), ("DELETE", &b""[..]));
    }

    #[test]
    fn every_dialect_is_read() {
        check_two_operations(DOT_NET);
        check_two_operations(&DOT_NET.replace("\r\n", "\n"));
        check_two_operations(
            &DOT_NET.replace("--changeset_1--\r\n\r\n--batch_1--\r\n", "--changeset_1--\r\n--batch_1--"),
        );
        check_two_operations(DOT_NET.trim_end_matches("--batch_1--\r\n"));
        check_two_operations(DOT_NET.trim_end_matches("--changeset_1--\r\n\r\n--batch_1--\r\n"));
        // The JavaScript client doubles the blank lines and writes lower-case part headers.
        let javascript = DOT_NET
            .replace(
                "Content-Type: multipart/mixed; boundary=changeset_1\r\n\r\n",
                "content-type: multipart/mixed; boundary=changeset_1\r\n\r\n\r\n",
            )
            .replace("application/json\r\n\r\n", "application/json\r\n\r\n\r\n");
        check_two_operations(&javascript);
    }

    #[test]
    fn a_content_id_counts_only_among_the_embedded_headers() {
        assert_eq!(change_set("multipart/mixed;boundary=batch_1", DOT_NET)[0].content_id, None);
        let node =
            DOT_NET.replace("If-Match: *\r\nContent-Type", "Content-ID: 7\r\nIf-Match: *\r\nContent-Type");
        assert_eq!(change_set("multipart/mixed;boundary=batch_1", &node)[0].content_id, Some("7"));
    }

    #[test]
    fn a_query_stands_alone() {
        let query = "--b\r\nContent-Type: application/http\r\n\r\nGET https://a/t() HTTP/1.1\r\nAccept: application/json\r\n\r\n--b--\r\n";
        let BatchRequest::Query(part) =
            read_batch(Some("multipart/mixed; boundary=b"), query.as_bytes()).unwrap()
        else {
            panic!("a query was expected")
        };
        assert_eq!((part.method, part.headers.accept), ("GET", Some("application/json")));
        let two = query.replace("--b--", &query.replace("--b--\r\n", "--b--"));
        assert!(read_batch(Some("multipart/mixed; boundary=b"), two.as_bytes()).is_err());
    }

    #[test]
    fn a_change_set_may_be_empty() {
        for inner in ["--c--\r\n", "--c\r\n\r\n--c--\r\n", "\r\n--c\r\n--c--\r\n", "--c\n"] {
            let body =
                format!("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{inner}\r\n--b--\r\n");
            assert!(change_set("multipart/mixed; boundary=b", &body).is_empty(), "{body}");
        }
    }

    #[test]
    fn what_the_server_writes_is_read_by_the_client() {
        let mut answer = BatchAnswer::new("1", Some("2"));
        answer.push(|out| {
            out.extend_from_slice(b"HTTP/1.1 204 No Content\r\nX-Other: 1\r\nETag: W/\"x\"\r\n\r\n")
        });
        answer.push(|out| out.extend_from_slice(b"HTTP/1.1 201 Created\r\n\r\n{\"a\":1}"));
        let content_type = answer.content_type();
        let body = String::from_utf8(answer.finish()).unwrap();
        let expected = [
            AnswerPart { status: 204, etag: Some("W/\"x\""), body: b"" },
            AnswerPart { status: 201, etag: None, body: b"{\"a\":1}" },
        ];
        let check = |body: &str| {
            let mut parts = Vec::new();
            read_batch_answer(&content_type, body.as_bytes(), |part| parts.push(part)).unwrap();
            assert_eq!(parts, expected, "{body}");
        };
        check(&body);
        check(&body.replace("\r\n", "\n"));
        check(&body.replace("ETag", "etag"));
        check(&body.replace("--changesetresponse_2--\r\n--batchresponse_1--\r\n", ""));
    }

    #[test]
    fn what_is_not_an_answer_is_none() {
        let read = |content_type: &str, body: &str| {
            let mut count = 0;
            read_batch_answer(content_type, body.as_bytes(), |_| count += 1).map(|()| count)
        };
        assert_eq!(
            read("multipart/mixed; boundary=b", "--b\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n{}\r\n--b--"),
            Some(1)
        );
        for (content_type, body) in [
            ("application/json", "{}"),
            ("multipart/mixed", ""),
            ("multipart/mixed; boundary=b", ""),
            ("multipart/mixed; boundary=b", "--b\r\n\r\nnonsense\r\n--b--"),
            ("multipart/mixed; boundary=b", "--b\r\n\r\nHTTP/1.1\r\n--b--"),
            ("multipart/mixed; boundary=b", "--b\r\n\r\nHTTP/1.1 99999999 X\r\n--b--"),
            (
                "multipart/mixed; boundary=b",
                "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--d\r\n--b--",
            ),
        ] {
            assert_eq!(read(content_type, body), None, "{body}");
        }
    }

    #[test]
    fn what_is_not_a_batch_is_refused() {
        for (content_type, body) in [
            (None, DOT_NET),
            (Some("application/json"), DOT_NET),
            (Some("multipart/mixed"), DOT_NET),
            (Some("multipart/mixed; boundary=other"), DOT_NET),
            (Some("multipart/mixed; boundary=batch_1"), ""),
            (Some("multipart/mixed; boundary=batch_1"), "--batch_1--\r\n"),
            (Some("multipart/mixed; boundary=batch_1"), "--batch_1\r\nnonsense\r\n--batch_1--\r\n"),
            (
                Some("multipart/mixed; boundary=batch_1"),
                "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\r\n--batch_1--\r\n",
            ),
        ] {
            let error = read_batch(content_type, body.as_bytes()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput, "{content_type:?} {body}");
        }
    }
}
