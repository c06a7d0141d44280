//! The Blob service of a test server, and what most of its tests do with it.

use std::net::SocketAddr;

use crate::request::Dialect;
use crate::server::Connection;
use crate::sign::Credentials;
use crate::{RawClient, Request, Response, TestServer};

/// The Blob service of a [`TestServer`].
#[derive(Clone, Copy)]
pub struct Blobs<'s> {
    pub(crate) server: &'s TestServer,
    pub(crate) addr: SocketAddr,
    pub(crate) connection: &'s Connection,
}

impl Blobs<'_> {
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
        request.in_dialect(Dialect::Blob, self.addr, self.credentials(), self.server.now())
    }

    /// A new connection.
    pub fn connect(&self) -> RawClient {
        RawClient::connect(self.addr).expect("the server accepts a connection")
    }

    /// Sends over a kept-alive connection, or a new one if the server has closed it.
    #[track_caller]
    pub fn send(&self, request: Request) -> Response {
        self.connection.exchange(self.addr, &request, &self.bytes_of(&request)).of_blob()
    }

    /// Deletes all containers, leased or not, and resets the service properties.
    pub(crate) fn empty(&self) {
        for container in self.send(Request::get("/?comp=list")).expect(200).elements("Name") {
            let broken = Request::put(&format!("/{container}?restype=container&comp=lease"));
            self.send(broken.header("x-ms-lease-action", "break").header("x-ms-lease-break-period", "0"));
            self.send(Request::delete(&format!("/{container}?restype=container"))).expect(202);
        }
        let nothing = "<StorageServiceProperties><Cors /><DeleteRetentionPolicy><Enabled>false</Enabled>\
             </DeleteRetentionPolicy></StorageServiceProperties>";
        self.send(Request::put("/?restype=service&comp=properties").xml(nothing)).expect(202);
    }

    #[track_caller]
    pub fn create(&self, container: &str) -> Response {
        self.send(Request::put(&format!("/{container}?restype=container"))).expect(201)
    }

    /// A request that puts a block blob. The path is that of the blob within the account.
    pub fn put_request(path: &str, content: impl Into<Vec<u8>>) -> Request {
        Request::put(path).header("x-ms-blob-type", "BlockBlob").bytes(content)
    }

    /// Puts a block blob.
    #[track_caller]
    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> Response {
        self.send(Blobs::put_request(path, content)).expect(201)
    }

    /// The content of a blob.
    #[track_caller]
    pub fn content(&self, path: &str) -> Vec<u8> {
        self.send(Request::get(path)).expect(200).body
    }

    #[track_caller]
    pub fn head(&self, path: &str) -> Response {
        self.send(Request::head(path))
    }

    /// The request of a batch with these parts, each signed by the account.
    pub fn batch(&self, path: &str, parts: &[BlobPart]) -> Request {
        const BOUNDARY: &str = "batch_357de4f7";
        let mut body = Vec::new();
        for (id, part) in parts.iter().enumerate() {
            let head = format!(
                "--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
                 Content-ID: {id}\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            let request = part.0.clone().without("Host").without("x-ms-version").without("Accept");
            body.extend_from_slice(&self.bytes_of(&request));
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        Request::post(path).body(&format!("multipart/mixed; boundary={BOUNDARY}"), body)
    }
}

/// A request inside a batch.
#[derive(Clone, Debug)]
pub struct BlobPart(pub Request);
