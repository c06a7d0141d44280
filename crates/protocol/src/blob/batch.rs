//! Blob Batch: reads the requests inside a multipart body, and writes the multipart answer.
//!
//! Promises: the bounds of a batch are checked while it is read. A batch that was checked has operations of one kind.
//! Leaves to others: authenticating, authorizing and running each part, which has its own headers for that.

use crate::common::multipart::{boundary, next_line, read_headers, split};
use crate::{ErrorCode, ServiceError};

use super::header_list::Headers;
use super::limits::{BATCH_BYTES_MAX, BATCH_REQUEST_COUNT_MAX, body_too_large};
use super::operation::{BlobAction, BlobOperation};

/// One request inside a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobBatchPart<'a> {
    /// From the headers around the request. The answer repeats it.
    pub content_id: Option<&'a str>,
    pub method: &'a str,
    /// As on a request line, with its leading slash.
    pub path: &'a str,
    /// Without the question mark.
    pub query: &'a str,
    pub headers: Headers<'a>,
}

/// Reads the parts of a batch, at least one.
pub fn read_batch<'a>(
    content_type: Option<&str>,
    body: &'a [u8],
) -> Result<Vec<BlobBatchPart<'a>>, ServiceError> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(body_too_large(BATCH_BYTES_MAX as u64));
    }
    let boundary = content_type.and_then(boundary).ok_or(ErrorCode::InvalidInput)?;
    let parts = split(body, boundary, BATCH_REQUEST_COUNT_MAX + 1)?;
    if parts.is_empty() || parts.len() > BATCH_REQUEST_COUNT_MAX {
        return Err(ErrorCode::InvalidInput.into());
    }
    parts.into_iter().map(read_part).collect()
}

fn read_part(part: &[u8]) -> Result<BlobBatchPart<'_>, ServiceError> {
    let mut content_id = None;
    let request = read_headers(part, |name, value| {
        // The answer repeats it, so it must not be able to end its line there.
        if name.eq_ignore_ascii_case("content-id") && value.bytes().all(|byte| byte.is_ascii_graphic()) {
            content_id.get_or_insert(value);
        }
    })?;
    let (line, rest) = next_line(request.trim_ascii_start());
    let line = std::str::from_utf8(line).map_err(|_| ErrorCode::InvalidInput)?.trim();
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(ErrorCode::InvalidInput.into());
    };
    // Some clients name the host all the same.
    let target = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if !path.starts_with('/') {
        return Err(ErrorCode::InvalidInput.into());
    }
    let mut headers = Vec::new();
    read_headers(rest, |name, value| headers.push((name, value)))?;
    Ok(BlobBatchPart { content_id, method, path, query, headers: headers.into_iter().collect() })
}

/// Refuses a batch of other operations than Delete Blob or Set Blob Tier, one of both, and one that leaves the container
/// for which it is.
pub fn check_batch<'o, 'a: 'o>(
    operations: impl IntoIterator<Item = &'o BlobOperation<'a>>,
    container: Option<&str>,
) -> Result<(), ServiceError> {
    let mut deletes = None;
    for operation in operations {
        let BlobOperation::Blob { container: found, action, .. } = operation else {
            return Err(ErrorCode::InvalidInput.into());
        };
        let is_delete = match action {
            BlobAction::Delete(_) => true,
            BlobAction::SetTier => false,
            _ => return Err(ErrorCode::InvalidInput.into()),
        };
        let is_inside = container.is_none_or(|container| container == found);
        if !is_inside || *deletes.get_or_insert(is_delete) != is_delete {
            return Err(ErrorCode::InvalidInput.into());
        }
    }
    Ok(())
}

/// The answer's body, built part by part.
pub struct BlobBatchAnswer {
    body: Vec<u8>,
    boundary: String,
}

impl BlobBatchAnswer {
    /// `id` is a fresh GUID.
    pub fn new(id: &str) -> BlobBatchAnswer {
        BlobBatchAnswer { body: Vec::with_capacity(4096), boundary: format!("batchresponse_{id}") }
    }

    pub fn content_type(&self) -> String {
        format!("multipart/mixed; boundary={}", self.boundary)
    }

    /// Adds the answer to one part. `head` writes its status line and its headers, each line with its end.
    pub fn push(&mut self, content_id: Option<&str>, head: impl FnOnce(&mut Vec<u8>), body: &[u8]) {
        for piece in ["--", &self.boundary, "\r\nContent-Type: application/http\r\n"] {
            self.body.extend_from_slice(piece.as_bytes());
        }
        if let Some(id) = content_id {
            for piece in ["Content-ID: ", id, "\r\n"] {
                self.body.extend_from_slice(piece.as_bytes());
            }
        }
        self.body.extend_from_slice(b"\r\n");
        head(&mut self.body);
        self.body.extend_from_slice(b"\r\n");
        // The empty line before a missing body is also the one before the delimiter.
        if !body.is_empty() {
            self.body.extend_from_slice(body);
            self.body.extend_from_slice(b"\r\n");
        }
    }

    pub fn len(&self) -> usize {
        self.body.len()
    }

    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    pub fn finish(mut self) -> Vec<u8> {
        for piece in ["--", &self.boundary, "--"] {
            self.body.extend_from_slice(piece.as_bytes());
        }
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::query::Query;

    const TYPE: &str = "multipart/mixed; boundary=batch_357de4f7";

    /// The example of section 21.6.
    fn example() -> String {
        let part = |id: usize, blob: &str| {
            format!(
                "--batch_357de4f7\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\nDELETE /devstoreaccount1/container0/{blob} HTTP/1.1\r\nx-ms-date: Thu, 14 Jun 2018 16:46:54 GMT\r\nAuthorization: SharedKey devstoreaccount1:x=\r\nContent-Length: 0\r\n\r\n"
            )
        };
        format!("{}{}--batch_357de4f7--\r\n", part(0, "blob0"), part(1, "nope?"))
    }

    #[track_caller]
    fn check_example(body: &str) {
        let parts = read_batch(Some(TYPE), body.as_bytes()).unwrap();
        let found: Vec<_> =
            parts.iter().map(|part| (part.content_id, part.method, part.path, part.query)).collect();
        assert_eq!(
            found,
            [
                (Some("0"), "DELETE", "/devstoreaccount1/container0/blob0", ""),
                (Some("1"), "DELETE", "/devstoreaccount1/container0/nope", ""),
            ]
        );
        assert_eq!(parts[0].headers.get("x-ms-date"), Some("Thu, 14 Jun 2018 16:46:54 GMT"));
        assert_eq!(parts[1].headers.get("authorization"), Some("SharedKey devstoreaccount1:x="));
    }

    #[test]
    fn requests_are_read_in_every_dialect() {
        check_example(&example());
        check_example(&example().replace("\r\n", "\n"));
        check_example(&example().replace("Content-Length: 0\r\n\r\n--", "Content-Length: 0\r\n\r\n\r\n--"));
        check_example(example().trim_end());
        check_example(&example().replace("DELETE /", "DELETE http://127.0.0.1:10000/"));
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let code = |content_type: Option<&str>, body: &str| {
            read_batch(content_type, body.as_bytes()).map(|parts| parts.len()).map_err(|error| error.code)
        };
        let text = example();
        assert_eq!(code(Some(TYPE), &text), Ok(2));
        for (content_type, body) in [
            (None, &*text),
            (Some("application/json"), &text),
            (Some("multipart/mixed"), &text),
            (Some("multipart/mixed; boundary=other"), &text),
            (Some(TYPE), ""),
            (Some(TYPE), "--batch_357de4f7--\r\n"),
            (Some(TYPE), "--batch_357de4f7\r\n\r\n\r\n--batch_357de4f7--\r\n"),
            (Some(TYPE), "--batch_357de4f7\r\n\r\nDELETE a\r\n--batch_357de4f7--\r\n"),
        ] {
            assert_eq!(code(content_type, body), Err(ErrorCode::InvalidInput), "{body}");
        }
        let many = |count: usize| {
            let parts = "--batch_357de4f7\r\n\r\nDELETE /c/b HTTP/1.1\r\n\r\n".repeat(count);
            code(Some(TYPE), &format!("{parts}--batch_357de4f7--"))
        };
        assert_eq!((many(256), many(257)), (Ok(256), Err(ErrorCode::InvalidInput)));
        let error = read_batch(Some(TYPE), &vec![b'x'; BATCH_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(error.code, ErrorCode::RequestBodyTooLarge);
    }

    #[test]
    fn a_batch_is_of_one_kind_and_in_one_container() {
        let check = |requests: &[&str], container: Option<&str>| {
            let read = |request: &&str| {
                let (method, url) = request.split_once(' ').unwrap();
                let (path, query) = url.split_once('?').unwrap_or((url, ""));
                let operation = BlobOperation::read(method, path, &Query::split(query), &Headers::default());
                match operation.unwrap() {
                    BlobOperation::Blob { container, blob, revision, action } => BlobOperation::Blob {
                        container: container.into_owned().into(),
                        blob: blob.into_owned().into(),
                        revision,
                        action,
                    },
                    _ => BlobOperation::Account(super::super::operation::AccountAction::Batch),
                }
            };
            let operations: Vec<BlobOperation<'static>> = requests.iter().map(read).collect();
            check_batch(&operations, container).is_ok()
        };
        assert!(check(&["DELETE c/a", "DELETE d/b"], None));
        assert!(check(&["PUT c/a?comp=tier", "PUT c/b?comp=tier"], Some("c")));
        assert!(!check(&["DELETE c/a", "DELETE d/b"], Some("c")));
        assert!(!check(&["DELETE c/a", "PUT c/b?comp=tier"], None));
        assert!(!check(&["GET c/a"], None));
        assert!(!check(&["GET ?comp=list"], None));
    }

    /// The example of section 21.6, with the declaration on the line of the document.
    #[test]
    fn the_answer_is_that_of_the_service() {
        let mut answer = BlobBatchAnswer::new("1c6a2ff3");
        assert_eq!(answer.content_type(), "multipart/mixed; boundary=batchresponse_1c6a2ff3");
        answer.push(
            Some("0"),
            |out| out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\n"),
            b"",
        );
        answer.push(
            Some("1"),
            |out| {
                out.extend_from_slice(
                    b"HTTP/1.1 404 The specified blob does not exist.\r\nContent-Length: 8\r\n",
                )
            },
            b"<Error/>",
        );
        assert_eq!(
            String::from_utf8(answer.finish()).unwrap(),
            "--batchresponse_1c6a2ff3\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\n\r\n--batchresponse_1c6a2ff3\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\nHTTP/1.1 404 The specified blob does not exist.\r\nContent-Length: 8\r\n\r\n<Error/>\r\n--batchresponse_1c6a2ff3--"
        );
    }
}
