//! The Queue service of a test server, and what most of its tests do with it.

use std::net::SocketAddr;

use crate::request::Dialect;
use crate::server::Connection;
use crate::sign::Credentials;
use crate::{RawClient, Request, Response, TestServer, percent_encode};

/// The Queue service of a [`TestServer`].
#[derive(Clone, Copy)]
pub struct Queues<'s> {
    pub(crate) server: &'s TestServer,
    pub(crate) addr: SocketAddr,
    pub(crate) connection: &'s Connection,
}

/// A message as an answer shows it. What the answer leaves out is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub id: String,
    pub receipt: String,
    pub inserted: String,
    pub expires: String,
    pub visible: String,
    pub dequeue_count: String,
    pub text: String,
}

impl Queues<'_> {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn credentials(&self) -> &Credentials {
        self.server.credentials()
    }

    /// `http://HOST:PORT/ACCOUNT`.
    pub fn base(&self) -> String {
        format!("http://{}/{}", self.addr, self.credentials().account)
    }

    pub fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.in_dialect(Dialect::Queue, self.addr, self.credentials(), self.server.now())
    }

    /// A new connection.
    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.addr).expect("the server accepts a connection")
    }

    /// Sends over a kept-alive connection, or a new one if the server has closed it.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        self.connection.exchange(self.addr, &request, &self.bytes_of(&request)).of_queue()
    }

    /// Deletes all queues and resets the service properties.
    pub(crate) fn empty(&self) {
        for queue in self.send(Request::get("/?comp=list")).expect(200).elements("Name") {
            self.send(Request::delete(&format!("/{queue}"))).expect(204);
        }
        let retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
        let metrics = format!("<Version>1.0</Version><Enabled>false</Enabled>{retention}");
        let nothing = format!(
            "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read>\
             <Write>false</Write>{retention}</Logging><HourMetrics>{metrics}</HourMetrics>\
             <MinuteMetrics>{metrics}</MinuteMetrics><Cors /></StorageServiceProperties>"
        );
        self.send(Request::put("/?restype=service&comp=properties").xml(&nothing)).expect(202);
    }

    #[track_caller]
    pub fn create(&self, queue: &str) {
        self.send(Request::put(&format!("/{queue}"))).expect(201);
    }

    /// Puts a message. The answer must be 201.
    #[track_caller]
    pub fn put(&self, queue: &str, text: &str) -> Message {
        self.put_with(queue, "", text)
    }

    /// Puts a message with these parameters.
    #[track_caller]
    pub fn put_with(&self, queue: &str, query: &str, text: &str) -> Message {
        let request = Request::post(&target(queue, query)).xml(&message_xml(text));
        only(self.send(request).expect(201))
    }

    /// Takes messages with these parameters.
    #[track_caller]
    pub fn get(&self, queue: &str, query: &str) -> Vec<Message> {
        messages(&self.send(Request::get(&target(queue, query))).expect(200))
    }

    /// Takes the only message that there is to take.
    #[track_caller]
    pub fn get_one(&self, queue: &str, query: &str) -> Message {
        only(self.send(Request::get(&target(queue, query))).expect(200))
    }

    #[track_caller]
    pub fn peek(&self, queue: &str) -> Vec<Message> {
        let request = Request::get(&target(queue, "peekonly=true&numofmessages=32"));
        messages(&self.send(request).expect(200))
    }

    /// The texts of the visible messages.
    #[track_caller]
    pub fn texts(&self, queue: &str) -> Vec<String> {
        self.peek(queue).into_iter().map(|message| message.text).collect()
    }

    /// The approximate number of messages.
    #[track_caller]
    pub fn count(&self, queue: &str) -> u64 {
        let response = self.send(Request::get(&format!("/{queue}?comp=metadata"))).expect(200);
        response.required("x-ms-approximate-messages-count").parse().expect("a number")
    }
}

/// `/QUEUE/messages?QUERY`.
fn target(queue: &str, query: &str) -> String {
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/{queue}/messages{mark}{query}")
}

/// The body that puts a message. The text is escaped.
pub fn message_xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// `/QUEUE/messages/ID?popreceipt=RECEIPT`.
pub fn message_path(queue: &str, id: &str, receipt: &str) -> String {
    format!("/{queue}/messages/{}?popreceipt={}", percent_encode(id), percent_encode(receipt))
}

/// The messages of a list.
#[track_caller]
pub fn messages(response: &Response) -> Vec<Message> {
    let pieces = response.text().split("<QueueMessage>").skip(1);
    let read = |piece: &str| {
        let piece = Response { body: piece.as_bytes().to_vec(), ..response.clone() };
        let field = |name: &str| piece.elements(name).into_iter().next().unwrap_or_default();
        Message {
            id: field("MessageId"),
            receipt: field("PopReceipt"),
            inserted: field("InsertionTime"),
            expires: field("ExpirationTime"),
            visible: field("TimeNextVisible"),
            dequeue_count: field("DequeueCount"),
            text: field("MessageText"),
        }
    };
    pieces.map(read).collect()
}

#[track_caller]
fn only(response: Response) -> Message {
    let mut found = messages(&response);
    assert_eq!(found.len(), 1, "one message in\n{response:?}");
    found.remove(0)
}

impl Message {
    /// `/QUEUE/messages/ID?popreceipt=RECEIPT`.
    pub fn path(&self, queue: &str) -> String {
        message_path(queue, &self.id, &self.receipt)
    }

    /// The request that deletes it.
    pub fn delete(&self, queue: &str) -> Request {
        Request::delete(&self.path(queue))
    }

    /// The request that keeps its text and hides it for this many seconds from now.
    pub fn hide(&self, queue: &str, seconds: u32) -> Request {
        Request::put(&format!("{}&visibilitytimeout={seconds}", self.path(queue)))
    }

    /// The same message after an update: its receipt has changed.
    #[track_caller]
    pub fn after(&self, update: &Response) -> Message {
        Message { receipt: update.required("x-ms-popreceipt").to_owned(), ..self.clone() }
    }
}
