//! A connection to the Blob service, and its requests.
//!
//! Promises: nothing that the server does causes a panic here. After an error the connection is made anew.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use testkit::{Credentials, RawClient, Request, Response, percent_encode, system_now};

pub struct BlobDoor {
    addr: SocketAddr,
    credentials: Credentials,
    client: Option<RawClient>,
}

impl BlobDoor {
    pub fn new(addr: SocketAddr) -> BlobDoor {
        BlobDoor { addr, credentials: Credentials::emulator(), client: None }
    }

    pub fn ask(&mut self, request: &Request) -> io::Result<Response> {
        self.ask_slowly(request, Duration::ZERO)
    }

    /// Waits between sending the request and reading the answer, so that a long answer fills the buffers.
    pub fn ask_slowly(&mut self, request: &Request, pause: Duration) -> io::Result<Response> {
        let bytes = self.bytes_of(request);
        let mut client = self.connected()?;
        let response = match pause.is_zero() {
            true => client.exchange(&bytes)?,
            false => {
                client.send(&bytes)?;
                std::thread::sleep(pause);
                client.read_response(bytes.starts_with(b"HEAD "))?
            }
        };
        if !response.header("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.client = Some(client);
        }
        Ok(response.of_blob())
    }

    /// Connects now, instead of with the first request.
    pub fn connect(&mut self) -> io::Result<()> {
        self.client = Some(self.connected()?);
        Ok(())
    }

    /// Sends a request over a connection of its own and gives up after this time, without the answer.
    pub fn abandon(&mut self, request: &Request, after: Duration) -> io::Result<()> {
        let mut client = RawClient::connect(self.addr)?;
        client.send(&self.bytes_of(request))?;
        std::thread::sleep(after);
        Ok(())
    }

    /// The URL of a blob, for copies.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{}{path}", self.addr, self.credentials.account)
    }

    fn bytes_of(&self, request: &Request) -> Vec<u8> {
        request.to_blob_bytes(self.addr, &self.credentials, system_now())
    }

    fn connected(&mut self) -> io::Result<RawClient> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => RawClient::connect(self.addr),
        }
    }
}

pub fn create_container(container: &str) -> Request {
    Request::put(&format!("/{container}?restype=container"))
}

pub fn delete_container(container: &str) -> Request {
    Request::delete(&format!("/{container}?restype=container"))
}

pub fn put(path: &str, bytes: &[u8]) -> Request {
    Request::put(path).header("x-ms-blob-type", "BlockBlob").bytes(bytes)
}

pub fn create_append(path: &str) -> Request {
    Request::put(path).header("x-ms-blob-type", "AppendBlob")
}

pub fn append(path: &str, bytes: &[u8]) -> Request {
    Request::put(&format!("{path}?comp=appendblock")).bytes(bytes)
}

pub fn create_pages(path: &str, length: usize) -> Request {
    Request::put(path)
        .header("x-ms-blob-type", "PageBlob")
        .header("x-ms-blob-content-length", &length.to_string())
}

/// Writes pages, or clears as many if there are no bytes.
pub fn put_pages(path: &str, offset: usize, length: usize, bytes: Option<&[u8]>) -> Request {
    let range = format!("bytes={offset}-{}", offset + length - 1);
    let request = Request::put(&format!("{path}?comp=page")).header("x-ms-range", &range);
    match bytes {
        Some(bytes) => request.header("x-ms-page-write", "update").bytes(bytes),
        None => request.header("x-ms-page-write", "clear"),
    }
}

pub fn stage(path: &str, id: &str, bytes: &[u8]) -> Request {
    Request::put(&format!("{path}?comp=block")).query("blockid", id).bytes(bytes)
}

/// Each block with the list in which to look for it: `Committed`, `Uncommitted` or `Latest`.
pub fn commit_list(path: &str, blocks: &[(&str, String)]) -> Request {
    let inside: String = blocks.iter().map(|(list, id)| format!("<{list}>{id}</{list}>")).collect();
    let list = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{inside}</BlockList>");
    Request::put(&format!("{path}?comp=blocklist")).xml(&list)
}

/// The path may be that of a snapshot.
pub fn block_list(path: &str) -> Request {
    Request::get(path).query("comp", "blocklist").query("blocklisttype", "all")
}

pub fn snapshot(path: &str) -> Request {
    Request::put(&format!("{path}?comp=snapshot"))
}

/// The path of a snapshot.
pub fn snapshot_path(path: &str, moment: &str) -> String {
    format!("{path}?snapshot={}", percent_encode(moment))
}

pub fn copy(path: &str, source: &str) -> Request {
    Request::put(path).header("x-ms-copy-source", source)
}

/// With all snapshots.
pub fn delete(path: &str) -> Request {
    Request::delete(path).header("x-ms-delete-snapshots", "include")
}

/// Everything in a container: blobs, snapshots, and blobs that have only staged blocks.
pub fn list(container: &str) -> Request {
    Request::get(&format!("/{container}?restype=container&comp=list&include=snapshots,uncommittedblobs"))
}
