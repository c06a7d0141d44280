//! Transactions on the wire: the multipart body of `POST /$batch`, and the answers to its operations.
//!
//! Owns: [`Batch`], which writes every operation straight into the one buffer that is sent, and [`Sealed`], which can
//! be sent. Promises: a batch never grows above the service's limits, and an operation that does not fit leaves it as
//! it was. Leaves to others: which operations belong together (`transaction`, `bulk`), and sending.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use protocol::table::wire::batch::read_batch_answer;
use protocol::table::wire::headers::{ENQUEUE, MESSAGE};

use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_OPERATION_COUNT_MAX};
use crate::path::write_entity_path;
use crate::table::JSON;
use crate::write::{ANY, RETURN_NO_CONTENT, Verb};
use crate::{Error, Keys};

/// `batch_` and `changeset_` with a GUID, and what stands around them. Kept free for the end of the body.
const END_BYTES: usize = 2 * (36 + 32);

/// A GUID, of which the boundaries are made.
pub(crate) type BatchId = [u8; 36];

/// The operations of a transaction, written as they will be sent.
#[derive(Clone)]
pub(crate) struct Batch {
    body: Vec<u8>,
    id: BatchId,
    /// `http://host/account/table`: parts have absolute addresses, as all official clients write them.
    address: Box<str>,
    pub(crate) parts: Vec<Part>,
}

/// A batch that can be sent, as often as needed.
pub(crate) struct Sealed {
    pub(crate) body: Bytes,
    pub(crate) parts: Vec<Part>,
    id: BatchId,
}

/// One operation of a batch, and where it stands in the body.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) verb: Verb,
    pub(crate) row_key: Box<str>,
    /// `None` means `*`, or an operation without a condition.
    pub(crate) etag: Option<Box<str>>,
    pub(crate) has_message: bool,
    /// From its delimiter to the next one.
    whole: Range<usize>,
    /// Where another header of the operation can be inserted.
    head_end: usize,
    json: Range<usize>,
}

impl Part {
    /// Whether the service refuses the operation when it has happened already.
    pub(crate) fn is_guard(&self) -> bool {
        matches!(self.verb, Verb::Insert | Verb::Delete) || self.etag.is_some()
    }

    /// The condition of the operation, as [`crate::lost::settle`] takes it.
    pub(crate) fn if_match(&self) -> Option<&str> {
        match self.verb {
            Verb::Replace | Verb::Merge | Verb::Delete => Some(self.etag.as_deref().unwrap_or(ANY)),
            Verb::Insert | Verb::UpsertReplace | Verb::UpsertMerge => None,
        }
    }
}

impl Batch {
    /// `address` is that of the table. `capacity` is a guess of the body's length.
    pub(crate) fn new(address: &str, id: BatchId, capacity: usize) -> Batch {
        let mut body = Vec::with_capacity(capacity);
        write_start(&id, &mut body);
        Batch { body, id, address: address.into(), parts: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.parts.len() == TRANSACTION_OPERATION_COUNT_MAX
    }

    /// The length of the body when it is sent now.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len() + END_BYTES
    }

    /// Adds an operation. `write` appends the entity's JSON. `Ok(false)` when it does not fit beside the others.
    pub(crate) fn push(
        &mut self,
        verb: Verb,
        keys: &Keys<'_>,
        etag: Option<&str>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let start = self.body.len();
        let out = &mut self.body;
        out.extend_from_slice(b"--changeset_");
        out.extend_from_slice(&self.id);
        out.extend_from_slice(
            b"\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n",
        );
        out.extend_from_slice(verb.method().as_str().as_bytes());
        out.push(b' ');
        match verb {
            Verb::Insert => out.extend_from_slice(self.address.as_bytes()),
            _ => write_entity_path(&self.address, keys, out),
        }
        out.extend_from_slice(
            b" HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n",
        );
        match verb {
            Verb::Insert => {
                out.extend_from_slice(b"Prefer: ");
                out.extend_from_slice(RETURN_NO_CONTENT.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Verb::Replace | Verb::Merge | Verb::Delete => {
                out.extend_from_slice(b"If-Match: ");
                out.extend_from_slice(etag.unwrap_or(ANY).as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Verb::UpsertReplace | Verb::UpsertMerge => {}
        }
        if verb != Verb::Delete {
            out.extend_from_slice(b"Content-Type: ");
            out.extend_from_slice(JSON.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let head_end = out.len();
        out.extend_from_slice(b"\r\n");
        let json_start = out.len();
        let written = write(out);
        let json = json_start..out.len();
        out.extend_from_slice(b"\r\n");
        if written.is_err() || self.body_bytes() > TRANSACTION_BYTES_MAX {
            self.body.truncate(start);
            return written.map(|()| false);
        }
        self.parts.push(Part {
            verb,
            row_key: (&*keys.row_key).into(),
            etag: etag.map(Into::into),
            has_message: false,
            whole: start..self.body.len(),
            head_end,
            json,
        });
        Ok(true)
    }

    /// Gives the last operation a message for a queue of the same account, which Lazulite puts when it commits.
    /// `false` when it does not fit.
    pub(crate) fn enqueue(&mut self, queue: &str, text: &str) -> bool {
        let Some(part) = self.parts.last_mut() else { return false };
        let headers = format!("{ENQUEUE}: {queue}\r\n{MESSAGE}: {}\r\n", STANDARD.encode(text));
        if self.body.len() + headers.len() + END_BYTES > TRANSACTION_BYTES_MAX {
            return false;
        }
        self.body.splice(part.head_end..part.head_end, headers.bytes());
        part.whole.end += headers.len();
        part.json.start += headers.len();
        part.json.end += headers.len();
        part.head_end += headers.len();
        part.has_message = true;
        true
    }

    /// Puts the JSON into an operation that was added without. `false` when it does not fit.
    pub(crate) fn fill(&mut self, index: usize, json: &[u8]) -> bool {
        if self.body_bytes() + json.len() > TRANSACTION_BYTES_MAX {
            return false;
        }
        let at = self.parts[index].json.start;
        self.body.splice(at..at, json.iter().copied());
        let part = &mut self.parts[index];
        part.json.end += json.len();
        part.whole.end += json.len();
        for part in &mut self.parts[index + 1..] {
            for place in [
                &mut part.whole.start,
                &mut part.whole.end,
                &mut part.head_end,
                &mut part.json.start,
                &mut part.json.end,
            ] {
                *place += json.len();
            }
        }
        true
    }

    /// Ends the body.
    pub(crate) fn seal(mut self) -> Sealed {
        write_end(&self.id, &mut self.body);
        Sealed { body: self.body.into(), parts: self.parts, id: self.id }
    }
}

impl Sealed {
    pub(crate) fn content_type(&self) -> String {
        format!("multipart/mixed; boundary=batch_{}", String::from_utf8_lossy(&self.id))
    }

    /// The JSON that an operation sends.
    pub(crate) fn json(&self, index: usize) -> &[u8] {
        &self.body[self.parts[index].json.clone()]
    }

    /// A batch of these operations of this one, in this order, without encoding them again.
    pub(crate) fn subset(&self, indexes: impl ExactSizeIterator<Item = usize> + Clone) -> Sealed {
        let bytes: usize = indexes.clone().map(|index| self.parts[index].whole.len()).sum();
        let mut body = Vec::with_capacity(bytes + 2 * END_BYTES);
        let mut parts = Vec::with_capacity(indexes.len());
        write_start(&self.id, &mut body);
        for index in indexes {
            let part = &self.parts[index];
            let (from, to) = (part.whole.start, body.len());
            let moved = |at: usize| at - from + to;
            body.extend_from_slice(&self.body[part.whole.clone()]);
            parts.push(Part {
                whole: moved(part.whole.start)..moved(part.whole.end),
                head_end: moved(part.head_end),
                json: moved(part.json.start)..moved(part.json.end),
                ..part.clone()
            });
        }
        write_end(&self.id, &mut body);
        Sealed { body: body.into(), parts, id: self.id }
    }
}

fn write_start(id: &BatchId, body: &mut Vec<u8>) {
    for piece in [&b"--batch_"[..], id, b"\r\nContent-Type: multipart/mixed; boundary=changeset_", id] {
        body.extend_from_slice(piece);
    }
    body.extend_from_slice(b"\r\n\r\n");
}

fn write_end(id: &BatchId, body: &mut Vec<u8>) {
    for piece in [&b"--changeset_"[..], id, b"--\r\n\r\n--batch_", id, b"--\r\n"] {
        body.extend_from_slice(piece);
    }
}

/// What the service answered to a whole batch.
pub(crate) enum BatchOutcome<'a> {
    /// One ETag per operation, `None` for a delete.
    Done(Vec<Option<&'a str>>),
    /// The operation at fault: its status and its body, which names its index.
    Failed { status: u16, body: &'a [u8] },
}

/// Reads the answer to a batch of this many operations.
pub(crate) fn read_outcome<'a>(
    content_type: &str,
    body: &'a [u8],
    operation_count: usize,
) -> Result<BatchOutcome<'a>, Error> {
    let mut etags = Vec::with_capacity(operation_count);
    let mut failed = None;
    let read = read_batch_answer(content_type, body, |part| {
        if !(200..300).contains(&part.status) && failed.is_none() {
            failed = Some((part.status, part.body));
        }
        etags.push(part.etag);
    });
    if read.is_none() {
        return Err(Error::Unreadable("the answer to a transaction is not a multipart body".to_owned()));
    }
    match failed {
        Some((status, body)) => Ok(BatchOutcome::Failed { status, body }),
        None if etags.len() == operation_count => Ok(BatchOutcome::Done(etags)),
        None => Err(Error::Unreadable(format!(
            "{} answers came to a transaction of {operation_count} operations",
            etags.len()
        ))),
    }
}

/// The index at the beginning of a message, `3:The specified entity already exists.`, and the rest.
pub(crate) fn split_index(message: &str) -> (Option<usize>, &str) {
    match message.split_once(':') {
        Some((digits, rest)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            (digits.parse().ok(), rest)
        }
        _ => (None, message),
    }
}

#[cfg(test)]
mod tests {
    use protocol::table::wire::batch::{BatchRequest, read_batch};

    use super::*;

    const ADDRESS: &str = "http://127.0.0.1:10002/devstoreaccount1/people";

    fn keys(row_key: &str) -> Keys<'_> {
        Keys { partition_key: "p".into(), row_key: row_key.into() }
    }

    fn push(batch: &mut Batch, verb: Verb, row_key: &str, etag: Option<&str>, json: &[u8]) -> bool {
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(json);
            Ok(())
        };
        batch.push(verb, &keys(row_key), etag, write).unwrap()
    }

    fn batch() -> Batch {
        let mut batch = Batch::new(ADDRESS, *b"01234567-89ab-4def-8123-456789abcdef", 0);
        assert!(push(&mut batch, Verb::Insert, "a", None, b"{\"RowKey\":\"a\"}"));
        assert!(push(&mut batch, Verb::Merge, "b'", Some("W/\"x\""), b"{}"));
        assert!(push(&mut batch, Verb::Delete, "c", None, b""));
        assert!(push(&mut batch, Verb::UpsertReplace, "d", None, b"{\"x\":1}"));
        batch
    }

    fn read(batch: &Sealed) -> Vec<String> {
        let BatchRequest::ChangeSet(parts) = read_batch(Some(&batch.content_type()), &batch.body).unwrap()
        else {
            panic!("a change set was expected")
        };
        let line = |part: &protocol::table::wire::batch::BatchPart<'_>| {
            format!(
                "{} {} {} {} {} {}",
                part.method,
                part.url.strip_prefix(ADDRESS).unwrap(),
                part.headers.if_match.unwrap_or("-"),
                part.headers.prefer.unwrap_or("-"),
                part.headers.outbox.message.unwrap_or("-"),
                String::from_utf8_lossy(part.body)
            )
        };
        parts.iter().map(line).collect()
    }

    #[test]
    fn the_server_reads_what_is_written() {
        let lines = [
            "POST  - return-no-content - {\"RowKey\":\"a\"}",
            "PATCH (PartitionKey='p',RowKey='b%27%27') W/\"x\" - - {}",
            "DELETE (PartitionKey='p',RowKey='c') * - - ",
            "PUT (PartitionKey='p',RowKey='d') - - - {\"x\":1}",
        ];
        let sealed = batch().seal();
        assert_eq!(read(&sealed), lines);
        assert_eq!(read(&sealed.subset([3, 1].into_iter())), [lines[3], lines[1]]);
    }

    #[test]
    fn a_message_goes_with_the_last_operation() {
        let mut batch = batch();
        assert!(batch.enqueue("jobs", "hello"));
        assert!(push(&mut batch, Verb::Insert, "e", None, b"{\"y\":2}"));
        let whole = batch.seal();
        assert_eq!(read(&whole)[3], "PUT (PartitionKey='p',RowKey='d') - - aGVsbG8= {\"x\":1}");
        assert_eq!(whole.json(3), b"{\"x\":1}");
        let cut = whole.subset([3, 4].into_iter());
        assert_eq!((cut.json(0), cut.json(1)), (&b"{\"x\":1}"[..], &b"{\"y\":2}"[..]));
        assert_eq!(read(&cut)[0], read(&whole)[3]);
    }

    #[test]
    fn an_operation_can_get_its_json_later() {
        let mut batch = Batch::new(ADDRESS, *b"01234567-89ab-4def-8123-456789abcdef", 0);
        assert!(push(&mut batch, Verb::UpsertReplace, "a", None, b""));
        assert!(push(&mut batch, Verb::UpsertReplace, "b", None, b"{\"y\":2}"));
        assert!(batch.enqueue("jobs", "hello"));
        assert!(batch.fill(0, b"{\"x\":1}"));
        assert!(!batch.fill(0, &vec![b'x'; TRANSACTION_BYTES_MAX]));
        let sealed = batch.seal();
        assert_eq!((sealed.json(0), sealed.json(1)), (&b"{\"x\":1}"[..], &b"{\"y\":2}"[..]));
        assert_eq!(read(&sealed.subset([1].into_iter())), read(&sealed)[1..]);
    }

    #[test]
    fn a_batch_stays_below_the_limit() {
        let mut batch = batch();
        let json = vec![b'x'; TRANSACTION_BYTES_MAX / 4];
        while push(&mut batch, Verb::Insert, "x", None, &json) {}
        assert_eq!(batch.len(), 4 + 3);
        let rest = TRANSACTION_BYTES_MAX - batch.body_bytes();
        assert!(!batch.enqueue("jobs", &"x".repeat(rest)));
        let refused = batch.push(Verb::Insert, &keys("y"), None, |_| Err(Error::Refused("no".to_owned())));
        assert!(refused.is_err());
        let sealed = batch.seal();
        assert!(sealed.body.len() <= TRANSACTION_BYTES_MAX);
        assert_eq!(read(&sealed).len(), 7);
    }

    #[test]
    fn the_index_stands_before_the_message() {
        assert_eq!(split_index("3:It exists."), (Some(3), "It exists."));
        assert_eq!(split_index("It exists: yes."), (None, "It exists: yes."));
        assert_eq!(split_index(":x"), (None, ":x"));
        assert_eq!(split_index("99999999999999999999999:x"), (None, "x"));
    }
}
