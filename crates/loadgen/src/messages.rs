//! Sources of requests to a queue: putting messages, and taking them.

use std::ops::Range;
use std::time::Instant;

use memchr::memmem;

use crate::clock;
use crate::generator::Requests;
use crate::queue_request::{Deletions, QueueSigner};
use crate::sources::SIGNATURE_AGE_MAX;

/// So many messages, put one by one.
pub(crate) struct Puts {
    signer: QueueSigner,
    signed: Instant,
    queue: String,
    options: Vec<(String, String)>,
    request: Vec<u8>,
    left: u64,
}

impl Puts {
    pub(crate) fn new(signer: QueueSigner, queue: &str, options: &[(&str, &str)], count: u64) -> Puts {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (queue, signed) = (queue.to_owned(), clock::now());
        let mut puts = Puts { signer, signed, queue, options, request: Vec::new(), left: count };
        puts.sign();
        puts
    }

    fn sign(&mut self) {
        let options: Vec<(&str, &str)> =
            self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.request = self.signer.put(&self.queue, &options);
    }
}

impl Requests for Puts {
    fn next(&mut self, _connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let now = clock::now();
        if now.duration_since(self.signed) > SIGNATURE_AGE_MAX {
            self.signer.renew();
            self.signed = now;
            self.sign();
        }
        out.clear();
        out.extend_from_slice(&self.request);
        Some(0)
    }
}

/// Takes some messages and deletes each of them: together one operation.
pub(crate) struct Takes {
    /// Operations that are still to begin.
    left: u64,
    get: Vec<u8>,
    deletions: Deletions,
    connections: Vec<Taken>,
}

/// The messages that a connection has taken and not deleted yet.
#[derive(Default)]
struct Taken {
    /// The answer that lists them.
    answer: Vec<u8>,
    /// The places of ids and receipts in it, the last message first.
    messages: Vec<(Range<usize>, Range<usize>)>,
}

impl Takes {
    pub(crate) fn new(signer: &QueueSigner, queue: &str, message_count: u64) -> Box<Takes> {
        let (get, deletions) = (signer.get(queue, message_count), signer.deletions(queue));
        Box::new(Takes { left: u64::MAX, get, deletions, connections: Vec::new() })
    }

    /// Ends after so many operations.
    pub(crate) fn at_most(mut self: Box<Takes>, count: u64) -> Box<Takes> {
        self.left = count;
        self
    }
}

impl Requests for Takes {
    fn next(&mut self, connection: usize, out: &mut Vec<u8>) -> Option<usize> {
        if self.connections.len() <= connection {
            self.connections.resize_with(connection + 1, Taken::default);
        }
        let taken = &mut self.connections[connection];
        match taken.messages.pop() {
            Some((id, receipt)) => self.deletions.write(&taken.answer[id], &taken.answer[receipt], out),
            None => {
                self.left = self.left.checked_sub(1)?;
                out.clear();
                out.extend_from_slice(&self.get);
            }
        }
        Some(0)
    }

    /// A get that finds nothing would count as an operation that cost next to nothing.
    fn accepts_answer(&self, status: u16, answer: &[u8]) -> bool {
        match status {
            200 => memmem::find(answer, b"<MessageId>").is_some(),
            status => status == 204,
        }
    }

    fn answered(&mut self, connection: usize, answer: &[u8]) -> bool {
        let Some(taken) = self.connections.get_mut(connection) else { return true };
        // A deletion has no answer to speak of.
        if answer.starts_with(b"HTTP/1.1 200") {
            taken.answer.clear();
            taken.answer.extend_from_slice(answer);
            taken.messages.clear();
            find_messages(answer, &mut taken.messages);
            taken.messages.reverse();
        }
        taken.messages.is_empty()
    }
}

/// Where an answer has the ids and receipts of its messages.
fn find_messages(answer: &[u8], messages: &mut Vec<(Range<usize>, Range<usize>)>) {
    let mut from = 0;
    while let Some(id) = element(answer, from, b"<MessageId>") {
        let Some(receipt) = element(answer, id.end, b"<PopReceipt>") else { return };
        from = receipt.end;
        messages.push((id, receipt));
    }
}

/// The content of the next element that begins with this tag.
fn element(answer: &[u8], from: usize, tag: &[u8]) -> Option<Range<usize>> {
    let start = from + memmem::find(&answer[from..], tag)? + tag.len();
    Some(start..start + memchr::memchr(b'<', &answer[start..])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    const LIST: &str = "HTTP/1.1 200 OK\r\n\r\n<QueueMessagesList><QueueMessage><MessageId>id-1</MessageId><PopReceipt>r1==</PopReceipt><MessageText>a</MessageText></QueueMessage><QueueMessage><MessageId>id-2</MessageId><PopReceipt>r2</PopReceipt></QueueMessage></QueueMessagesList>";

    fn signer() -> QueueSigner {
        QueueSigner::of(&Endpoint::development(([127, 0, 0, 1], 1).into())).unwrap()
    }

    fn next(requests: &mut dyn Requests, connection: usize) -> String {
        let mut out = Vec::new();
        assert!(requests.next(connection, &mut out).is_some());
        String::from_utf8(out).unwrap().lines().next().unwrap().replace("/devstoreaccount1/q/messages", "")
    }

    #[test]
    fn every_message_that_was_taken_is_deleted_before_the_next_are_taken() {
        let mut takes = Takes::new(&signer(), "q", 32);
        for _ in 0..2 {
            assert_eq!(next(&mut *takes, 1), "GET ?numofmessages=32 HTTP/1.1");
            assert!(!takes.answered(1, LIST.as_bytes()));
            assert_eq!(next(&mut *takes, 1), "DELETE /id-1?popreceipt=r1%3D%3D HTTP/1.1");
            assert!(!takes.answered(1, b"HTTP/1.1 204 No Content\r\n\r\n"));
            assert_eq!(next(&mut *takes, 0), "GET ?numofmessages=32 HTTP/1.1", "another connection");
            assert_eq!(next(&mut *takes, 1), "DELETE /id-2?popreceipt=r2 HTTP/1.1");
            assert!(takes.answered(1, b"HTTP/1.1 204 No Content\r\n\r\n"));
        }
        assert!(takes.accepts_answer(200, LIST.as_bytes()));
        assert!(!takes.accepts_answer(200, b"<QueueMessagesList />"), "the queue has run empty");
    }

    #[test]
    fn the_last_message_taken_is_deleted_too() {
        let mut takes = Takes::new(&signer(), "q", 32).at_most(1);
        next(&mut *takes, 0);
        takes.answered(0, LIST.as_bytes());
        assert_eq!(takes.next(1, &mut Vec::new()), None);
        assert_eq!(next(&mut *takes, 0), "DELETE /id-1?popreceipt=r1%3D%3D HTTP/1.1");
    }

    #[test]
    fn so_many_messages_are_put_and_no_more() {
        let mut puts = Puts::new(signer(), "q", &[], 2);
        for _ in 0..2 {
            assert_eq!(next(&mut puts, 0), "POST  HTTP/1.1");
        }
        assert_eq!(puts.next(0, &mut Vec::new()), None);
    }
}
