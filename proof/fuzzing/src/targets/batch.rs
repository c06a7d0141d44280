//! Multipart batches: splits them, reads each part as the server does, writes them and reads them again.
//!
//! An input is the value of `Content-Type` on a line of its own, then the body.

use protocol::common::query::Query;
use protocol::table::limits::BATCH_OPERATION_COUNT_MAX;
use protocol::table::operation::{Component, Operation};
use protocol::table::wire::batch::{BatchAnswer, BatchPart, BatchRequest, read_batch};
use protocol::table::wire::json_read::read_entity;
use protocol::table::wire::options::QueryOptions;
use protocol::table::wire::uri;

use crate::golden::distinct;
use crate::{ACCOUNT, Golden, Outcome, Target, as_text, cut_line};

pub const TARGET: Target = Target {
    name: "batch",
    run,
    input_bytes_max: 4 * 1024 * 1024,
    tokens: &[
        b"multipart/mixed; boundary=b",
        b"boundary=",
        b"\"",
        b";",
        b"--",
        b"--b",
        b"--b--",
        b"--b\r\n",
        b"\r\n--c\r\n",
        b"\r\n--c--\r\n",
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"\r",
        b":",
        b" ",
        b"Content-Type: multipart/mixed; boundary=c\r\n\r\n",
        b"Content-Type: application/http\r\n",
        b"Content-Transfer-Encoding: binary\r\n\r\n",
        b"Content-ID: 1\r\n",
        b"Content-Length: 5\r\n",
        b"If-Match: *\r\n",
        b"Accept: application/json\r\n",
        b"X-HTTP-Method: MERGE\r\n",
        b"POST ",
        b"PUT ",
        b"GET ",
        b"DELETE ",
        b"MERGE ",
        b" HTTP/1.1\r\n",
        b"http://127.0.0.1:10002/devstoreaccount1/People",
        b"People(PartitionKey='p',RowKey='r')",
        b"/People()?$top=1",
        b"{\"a\":1}",
        b"{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}",
        b"\xFF",
        b"\x00",
    ],
    seeds,
};

fn seeds(golden: &Golden) -> Vec<Vec<u8>> {
    let from_messages = golden.messages().filter_map(|message| {
        let content_type = message.header("Content-Type").filter(|value| value.starts_with("multipart/"))?;
        Some(format!("{content_type}\n{}", message.body).into_bytes())
    });
    let by_hand = [
        "multipart/mixed; boundary=b\n--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nPOST People\n\n{\"a\":1}\n--c--\n--b--",
        "multipart/mixed; boundary=\"b\"\n--b\r\nContent-Type: application/http\r\n\r\nGET /People()?$top=1 HTTP/1.1\r\nAccept: */*\r\n\r\n\r\n--b--\r\n",
        "Multipart/Mixed; Boundary=b\n--b\r\ncontent-type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nDELETE People(PartitionKey='p',RowKey='r')\r\nIf-Match: *\r\nContent-ID: 7\r\n\r\n\r\n--c\r\n\r\nPUT /devstoreaccount1/People(PartitionKey='p',RowKey='s') HTTP/1.1\r\n\r\n{}\r\n",
    ];
    distinct(from_messages.chain(by_hand.iter().map(|text| text.as_bytes().to_vec())))
}

pub fn run(input: &[u8]) -> Outcome {
    read(input).unwrap_or_else(|outcome| outcome)
}

fn read(input: &[u8]) -> Result<Outcome, Outcome> {
    let (content_type, body) = cut_line(input);
    let content_type = as_text(content_type)?;
    match read_batch(Some(content_type), body)? {
        BatchRequest::ChangeSet(parts) if parts.is_empty() => Ok(Outcome::Accepted("empty change set")),
        BatchRequest::ChangeSet(parts) => {
            assert!((1..=BATCH_OPERATION_COUNT_MAX + 1).contains(&parts.len()));
            let operation_count = parts.iter().filter(|part| read_part(part)).count();
            let boundary = boundary_for(&parts);
            let written = write_change_set(&parts, &boundary);
            let content_type = format!("multipart/mixed; boundary={boundary}-outer");
            let Ok(BatchRequest::ChangeSet(again)) = read_batch(Some(&content_type), &written) else {
                panic!("a written change set is not read as one: {}", written.escape_ascii());
            };
            assert_eq!(parts.len(), again.len(), "{}", written.escape_ascii());
            for (part, again) in parts.iter().zip(&again) {
                check_same(part, again);
            }
            Ok(Outcome::Accepted(match (parts.len(), operation_count) {
                (_, 0) => "change set of no operation",
                (1, _) => "change set of one part",
                (parts, operations) if parts == operations => "change set of operations",
                _ => "change set with an operation",
            }))
        }
        BatchRequest::Query(part) => {
            Ok(Outcome::Accepted(if read_part(&part) { "query" } else { "query of no operation" }))
        }
    }
}

/// Whether the part is an operation, with a valid payload if it has one.
fn read_part(part: &BatchPart<'_>) -> bool {
    let (url, query) = part.url.split_once('?').unwrap_or((part.url, ""));
    let path =
        url.split_once("://").map_or(url, |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]));
    let path = path.strip_prefix("/devstoreaccount1").unwrap_or(path);
    let Ok(resource) = uri::parse_path(path) else { return false };
    if QueryOptions::read(&Query::split(query)).is_err() {
        return false;
    }
    let operation = Operation::read(ACCOUNT, part.method, resource, Component::default(), &part.headers);
    operation.is_ok() && (part.body.is_empty() || read_entity(part.body).is_ok())
}

/// A boundary that occurs in none of the parts.
fn boundary_for(parts: &[BatchPart<'_>]) -> String {
    let is_free = |boundary: &str| {
        parts.iter().all(|part| {
            let texts = [
                part.method,
                part.url,
                part.content_id.unwrap_or_default(),
                part.headers.accept.unwrap_or_default(),
            ];
            let is_in =
                |text: &[u8]| text.windows(boundary.len()).any(|window| window == boundary.as_bytes());
            !is_in(part.body) && !texts.iter().any(|text| is_in(text.as_bytes()))
        })
    };
    let mut boundaries = (0..).map(|number| format!("changeset_{number}"));
    boundaries.find(|boundary| is_free(boundary)).expect("a finite input cannot hold every boundary")
}

fn write_change_set(parts: &[BatchPart<'_>], boundary: &str) -> Vec<u8> {
    let mut out = format!("--{boundary}-outer\r\nContent-Type: multipart/mixed; boundary={boundary}\r\n\r\n")
        .into_bytes();
    for part in parts {
        let opening = format!(
            "--{boundary}\r\nContent-Type: application/http\r\n\r\n{} {} HTTP/1.1\r\n",
            part.method, part.url
        );
        out.extend_from_slice(opening.as_bytes());
        let headers = [
            ("Accept", part.headers.accept),
            ("If-Match", part.headers.if_match),
            ("Content-ID", part.content_id),
        ];
        for (name, value) in headers {
            if let Some(value) = value {
                out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(part.body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n--{boundary}-outer--\r\n").as_bytes());
    // An answer is written the same way and must also be valid multipart.
    let mut answer = BatchAnswer::new("1", Some("2"));
    parts.iter().for_each(|part| answer.push(|out| out.extend_from_slice(part.method.as_bytes())));
    assert!(answer.finish().ends_with(b"--changesetresponse_2--\r\n--batchresponse_1--\r\n"));
    out
}

fn check_same(part: &BatchPart<'_>, again: &BatchPart<'_>) {
    assert_eq!(part.method, again.method);
    assert_eq!(part.url, again.url);
    assert_eq!(part.content_id, again.content_id);
    assert_eq!(part.headers.accept, again.headers.accept);
    assert_eq!(part.headers.if_match, again.headers.if_match);
    assert!(
        part.body == again.body,
        "bodies differ: {} {}",
        part.body.escape_ascii(),
        again.body.escape_ascii()
    );
}
