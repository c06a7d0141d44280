//! The documents that the Queue service answers with, read as values.
//!
//! Owns: the bounds of these documents, and what a missing element means.
//! Promises: whatever a server sends is read or refused, and never causes a panic. Elements that are not known are
//! skipped, because services add some. Ids and receipts stay as they are: only the server knows what they mean.

use std::collections::BTreeMap;

use protocol::common::xml::{Element, XmlBounds, read_within};

use crate::queue::{Message, PeekedMessage, SentMessage};
use crate::queue_service::{QueueItem, QueuePage};
use crate::{DateTime, Error};

/// 32 messages of 64 KiB, of which each byte may be escaped with six.
const MESSAGES: XmlBounds = XmlBounds { bytes_max: 16 * 1024 * 1024, element_count_max: 1024 };
/// 5,000 queues with some items of metadata each.
const QUEUES: XmlBounds = XmlBounds { bytes_max: 64 * 1024 * 1024, element_count_max: 1_000_000 };

pub(crate) fn read_taken(body: &[u8]) -> Result<Vec<Message>, Error> {
    read_messages(body, |item| {
        Ok(Message {
            id: text(item, "MessageId")?,
            pop_receipt: text(item, "PopReceipt")?,
            text: text(item, "MessageText")?,
            dequeue_count: count(item)?,
            inserted: time(item, "InsertionTime")?,
            expires: time(item, "ExpirationTime")?,
            next_visible: time(item, "TimeNextVisible")?,
        })
    })
}

pub(crate) fn read_peeked(body: &[u8]) -> Result<Vec<PeekedMessage>, Error> {
    read_messages(body, |item| {
        Ok(PeekedMessage {
            id: text(item, "MessageId")?,
            text: text(item, "MessageText")?,
            dequeue_count: count(item)?,
            inserted: time(item, "InsertionTime")?,
            expires: time(item, "ExpirationTime")?,
        })
    })
}

pub(crate) fn read_sent(body: &[u8]) -> Result<SentMessage, Error> {
    let sent = read_messages(body, |item| {
        Ok(SentMessage {
            id: text(item, "MessageId")?,
            pop_receipt: text(item, "PopReceipt")?,
            inserted: time(item, "InsertionTime")?,
            expires: time(item, "ExpirationTime")?,
            next_visible: time(item, "TimeNextVisible")?,
        })
    })?;
    sent.into_iter().next().ok_or_else(|| unreadable("the list of messages has none"))
}

fn read_messages<T>(body: &[u8], read: impl Fn(&Element) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let root = document(body, "QueueMessagesList", MESSAGES)?;
    root.children.iter().filter(|child| child.name == "QueueMessage").map(read).collect()
}

pub(crate) fn read_queues(body: &[u8]) -> Result<QueuePage, Error> {
    let root = document(body, "EnumerationResults", QUEUES)?;
    let list = root.child("Queues").map_or(&[][..], |list| &list.children);
    let queues =
        list.iter().filter(|child| child.name == "Queue").map(read_queue).collect::<Result<_, _>>()?;
    let marker = root.child("NextMarker").map(|marker| marker.text.clone());
    Ok(QueuePage { queues, next_marker: marker.filter(|marker| !marker.is_empty()) })
}

fn read_queue(element: &Element) -> Result<QueueItem, Error> {
    let items = element.child("Metadata").map_or(&[][..], |metadata| &metadata.children);
    let metadata: BTreeMap<String, String> =
        items.iter().map(|item| (item.name.clone(), item.text.clone())).collect();
    Ok(QueueItem { name: text(element, "Name")?, metadata })
}

fn document(body: &[u8], root: &str, bounds: XmlBounds) -> Result<Element, Error> {
    read_within(body, root, bounds).map_err(|_| unreadable(&format!("it is not a {root} document")))
}

fn text(item: &Element, name: &str) -> Result<String, Error> {
    let field = item.child(name).ok_or_else(|| missing(name))?;
    field.leaf().map(str::to_owned).map_err(|_| unreadable(&format!("{name} has elements instead of a text")))
}

fn count(item: &Element) -> Result<u32, Error> {
    let text = text(item, "DequeueCount")?;
    text.trim().parse().map_err(|_| unreadable("DequeueCount is not a number"))
}

fn time(item: &Element, name: &str) -> Result<DateTime, Error> {
    let text = text(item, name)?;
    DateTime::parse_http(text.trim()).ok_or_else(|| unreadable(&format!("{name} is not a time")))
}

fn missing(name: &str) -> Error {
    unreadable(&format!("{name} is missing"))
}

fn unreadable(reason: &str) -> Error {
    Error::Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage><MessageId>a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab</MessageId><InsertionTime>Thu, 27 Oct 2022 22:04:57 GMT</InsertionTime><ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime><PopReceipt>AgAAAAMAAAAAAAAAHFrsOFDq2AE=</PopReceipt><TimeNextVisible>Thu, 27 Oct 2022 22:05:28 GMT</TimeNextVisible><DequeueCount>1</DequeueCount><MessageText>&lt;a&gt;&#xD;\n </MessageText><Later>x</Later></QueueMessage></QueueMessagesList>";
    const LIST: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://a.queue.core.windows.net/\"><Prefix>q</Prefix><MaxResults>2</MaxResults><Queues><Queue><Name>q1</Name><Metadata><color>red</color><Size>1</Size></Metadata></Queue><Queue><Name>q2</Name><Metadata /></Queue></Queues><NextMarker>/a/q3</NextMarker></EnumerationResults>";

    #[test]
    fn messages_are_read_as_the_service_writes_them() {
        let taken = read_taken(TAKEN.as_bytes()).unwrap();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].id, "a638c367-b0f4-4c76-9e4d-d22dc8a9f5ab");
        assert_eq!(taken[0].pop_receipt, "AgAAAAMAAAAAAAAAHFrsOFDq2AE=");
        assert_eq!(taken[0].text, "<a>\r\n ");
        assert_eq!(taken[0].dequeue_count, 1);
        assert_eq!(taken[0].expires.whole_seconds(), DateTime::MAX.whole_seconds());
        assert_eq!(read_peeked(TAKEN.as_bytes()).unwrap()[0].text, taken[0].text);
        assert_eq!(read_sent(TAKEN.as_bytes()).unwrap().id, taken[0].id);
        assert_eq!(read_taken(b"<QueueMessagesList />").unwrap(), []);
        assert!(read_sent(b"<QueueMessagesList />").is_err());
    }

    #[test]
    fn what_a_message_needs_must_be_there() {
        for name in
            ["MessageId", "InsertionTime", "PopReceipt", "TimeNextVisible", "DequeueCount", "MessageText"]
        {
            let without = TAKEN.replace(name, "Other");
            let Err(Error::Unreadable(reason)) = read_taken(without.as_bytes()) else { panic!("{name}") };
            assert!(reason.contains(name), "{reason}");
        }
        for (from, to) in
            [("<DequeueCount>1", "<DequeueCount>-1"), ("22:04:57 GMT", "soon"), ("<Later>x", "<Later>")]
        {
            let _ = read_taken(TAKEN.replace(from, to).as_bytes());
        }
        for broken in ["", "<html/>", "{}", "<QueueMessagesList>", "\u{0}"] {
            assert!(matches!(read_taken(broken.as_bytes()), Err(Error::Unreadable(_))), "{broken}");
        }
    }

    #[test]
    fn lists_end_with_an_empty_marker() {
        let page = read_queues(LIST.as_bytes()).unwrap();
        assert_eq!(page.next_marker.as_deref(), Some("/a/q3"));
        assert_eq!(page.queues[0].metadata["color"], "red");
        assert_eq!((page.queues.len(), page.queues[1].metadata.len()), (2, 0));
        let last = LIST.replace("<NextMarker>/a/q3</NextMarker>", "<NextMarker />");
        assert_eq!(read_queues(last.as_bytes()).unwrap().next_marker, None);
        let many = "<Queue><Name>qqq</Name></Queue>".repeat(5000);
        let many = format!("<EnumerationResults><Queues>{many}</Queues><NextMarker/></EnumerationResults>");
        assert_eq!(read_queues(many.as_bytes()).unwrap().queues.len(), 5000);
    }

    #[test]
    fn cut_and_changed_documents_never_panic() {
        let mut random = fastrand::Rng::with_seed(7);
        for document in [TAKEN, LIST] {
            for len in 0..document.len() {
                let _ = read_taken(&document.as_bytes()[..len]);
                let _ = read_queues(&document.as_bytes()[..len]);
            }
            for _ in 0..5_000 {
                let mut bytes = document.as_bytes().to_vec();
                for _ in 0..random.u8(1..4) {
                    let at = random.usize(..bytes.len());
                    bytes[at] = *random.choice(b"<>/&;\"x0 \xff").unwrap();
                }
                let _ = (read_taken(&bytes), read_peeked(&bytes), read_sent(&bytes));
                let _ = read_queues(&bytes);
            }
        }
    }
}
