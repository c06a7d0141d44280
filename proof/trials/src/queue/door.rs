//! A connection to the Queue service, and one to the Table service beside it.
//!
//! Promises: nothing that the server does causes a panic here. After an error the connection is made anew.

use std::io;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use testkit::{Credentials, RawClient, Request, Response, message_path, message_xml, system_now};

use super::event::Handle;

/// Where a server listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    pub table: SocketAddr,
    pub queue: SocketAddr,
}

pub struct Door {
    addresses: Addresses,
    credentials: Credentials,
    table: Option<RawClient>,
    queue: Option<RawClient>,
}

impl Door {
    pub fn new(addresses: Addresses) -> Door {
        Door { addresses, credentials: Credentials::emulator(), table: None, queue: None }
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Sends a request to the Queue service.
    pub fn queue(&mut self, request: &Request) -> io::Result<Response> {
        let addr = self.addresses.queue;
        let bytes = request.to_queue_bytes(addr, &self.credentials, system_now());
        exchange(&mut self.queue, addr, &bytes)
    }

    /// Sends a request to the Table service.
    pub fn table(&mut self, request: &Request) -> io::Result<Response> {
        let addr = self.addresses.table;
        let bytes = request.to_bytes(addr, &self.credentials, system_now());
        exchange(&mut self.table, addr, &bytes)
    }

    /// Sends a request to the Queue service and does not wait for the answer.
    pub fn abandon(&mut self, request: &Request) -> io::Result<()> {
        let addr = self.addresses.queue;
        let mut client = RawClient::connect(addr)?;
        client.send(&request.to_queue_bytes(addr, &self.credentials, system_now()))
    }
}

fn exchange(kept: &mut Option<RawClient>, addr: SocketAddr, bytes: &[u8]) -> io::Result<Response> {
    let mut client = match kept.take() {
        Some(client) => client,
        None => RawClient::connect(addr)?,
    };
    let response = client.exchange(bytes)?;
    if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
        *kept = Some(client);
    }
    Ok(response)
}

/// `live_s`: -1 for ever.
pub fn put(queue: &str, text: &str, hide_s: u64, live_s: Option<u64>) -> Request {
    let live = live_s.map_or_else(|| "-1".to_owned(), |seconds| seconds.to_string());
    Request::post(&format!("/{queue}/messages?visibilitytimeout={hide_s}&messagettl={live}"))
        .xml(&message_xml(text))
}

pub fn get(queue: &str, count_max: usize, hide_s: u64) -> Request {
    Request::get(&format!("/{queue}/messages?numofmessages={count_max}&visibilitytimeout={hide_s}"))
}

pub fn peek(queue: &str, count_max: usize) -> Request {
    Request::get(&format!("/{queue}/messages?peekonly=true&numofmessages={count_max}"))
}

pub fn update(queue: &str, used: &Handle, text: Option<&str>, hide_s: u64) -> Request {
    let path = message_path(queue, &used.id, &used.receipt);
    let request = Request::put(&format!("{path}&visibilitytimeout={hide_s}"));
    match text {
        Some(text) => request.xml(&message_xml(text)),
        None => request,
    }
}

pub fn delete(queue: &str, used: &Handle) -> Request {
    Request::delete(&message_path(queue, &used.id, &used.receipt))
}

pub fn clear(queue: &str) -> Request {
    Request::delete(&format!("/{queue}/messages"))
}

pub fn count(queue: &str) -> Request {
    Request::get(&format!("/{queue}?comp=metadata"))
}

/// The count in the answer to [`count`].
pub fn count_in(response: &Response) -> Option<usize> {
    response.header("x-ms-approximate-messages-count")?.parse().ok()
}

/// A write of an entity that also puts a message.
pub fn outbox(request: Request, queue: &str, text: &str) -> Request {
    let with = |request: Request, (name, value): (&str, String)| request.header(name, &value);
    outbox_headers(queue, text).into_iter().fold(request, with)
}

/// The headers of such a write.
pub fn outbox_headers(queue: &str, text: &str) -> [(&'static str, String); 2] {
    [("x-lazulite-enqueue", queue.to_owned()), ("x-lazulite-message", STANDARD.encode(text))]
}
