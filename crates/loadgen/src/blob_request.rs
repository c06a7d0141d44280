//! Requests to the Blob service, signed with Shared Key.
//!
//! Every put has a name of its own, which is part of what is signed, so a put is signed when it is sent: all that stays the
//! same is hashed beforehand. Leaves to others: in which order to send (`blob.rs`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::endpoint::Endpoint;
use crate::{Error, clock};

const VERSION: &str = "2021-12-02";
/// An HMAC in Base64.
const SIGNATURE_BYTES: usize = 44;

#[derive(Clone)]
pub struct BlobSigner {
    key: hmac::Key,
    date: String,
    account: String,
    host: String,
    base_path: String,
}

impl BlobSigner {
    pub fn of(endpoint: &Endpoint) -> Result<BlobSigner, Error> {
        let key = STANDARD.decode(&endpoint.key).map_err(|_| "the account's key is not Base64")?;
        Ok(BlobSigner {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            date: clock::http_date(),
            account: endpoint.account.clone(),
            host: endpoint.host.clone(),
            base_path: endpoint.base_path.clone(),
        })
    }

    /// Signs with the current date from now on: the server accepts a signature for fifteen minutes only.
    pub fn renew(&mut self) {
        self.date = clock::http_date();
    }

    /// A request without a body.
    pub fn request(&self, method: &str, path: &str, options: &[(&str, &str)]) -> Vec<u8> {
        self.head(method, path, options, 0)
    }

    /// The head of a request whose body has this length. `path` starts after the account. The options of the query are
    /// sorted by name, and their values need no escaping.
    fn head(&self, method: &str, path: &str, options: &[(&str, &str)], length: u64) -> Vec<u8> {
        let (mut query, mut canonical) = (String::new(), String::new());
        for (name, value) in options {
            query.push_str(&format!("{}{name}={value}", if query.is_empty() { '?' } else { '&' }));
            canonical.push_str(&format!("\n{name}:{value}"));
        }
        let signed = self.to_sign(method, length, path) + &canonical;
        let signature = STANDARD.encode(hmac::sign(&self.key, signed.as_bytes()));
        let (base, headers) = (&self.base_path, self.headers(method, length));
        format!("{method} {base}{path}{query} HTTP/1.1\r\n{headers}{signature}\r\n\r\n").into_bytes()
    }

    pub fn create_container(&self, container: &str) -> Vec<u8> {
        self.request("PUT", &format!("/{container}"), &[("restype", "container")])
    }

    pub fn get(&self, container: &str, blob: &str) -> Vec<u8> {
        self.request("GET", &format!("/{container}/{blob}"), &[])
    }

    /// The first names that begin like this.
    pub fn list(&self, container: &str, prefix: &str, count_max: u64) -> Vec<u8> {
        let count_max = count_max.to_string();
        let options =
            [("comp", "list"), ("maxresults", &count_max), ("prefix", prefix), ("restype", "container")];
        self.request("GET", &format!("/{container}"), &options)
    }

    /// The head of a request that stages a block. The id is Base64 without characters that need escaping.
    pub fn put_block(&self, container: &str, blob: &str, id: &str, length: u64) -> Vec<u8> {
        self.head("PUT", &format!("/{container}/{blob}"), &[("blockid", id), ("comp", "block")], length)
    }

    /// Makes a blob of staged blocks.
    pub fn put_block_list(&self, container: &str, blob: &str, ids: &[String]) -> Vec<u8> {
        let ids: String = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
        let body = format!("<BlockList>{ids}</BlockList>");
        let path = format!("/{container}/{blob}");
        let mut request = self.head("PUT", &path, &[("comp", "blocklist")], body.len() as u64);
        request.extend_from_slice(body.as_bytes());
        request
    }

    /// Puts of blobs of this length, whose names are not known yet.
    pub fn puts(&self, container: &str, length: u64) -> BlobPuts {
        let path = format!("/{container}/");
        let mut hashed = hmac::Context::with_key(&self.key);
        hashed.update(self.to_sign("PUT", length, &path).as_bytes());
        BlobPuts {
            hashed,
            start: format!("PUT {}{path}", self.base_path).into_bytes(),
            headers: format!(" HTTP/1.1\r\n{}", self.headers("PUT", length)).into_bytes(),
        }
    }

    /// The text to sign, without the options of the query.
    fn to_sign(&self, method: &str, length: u64, path: &str) -> String {
        let sent = if length == 0 { String::new() } else { length.to_string() };
        let (date, account, base) = (&self.date, &self.account, &self.base_path);
        let blob_type = if method == "PUT" { "x-ms-blob-type:BlockBlob\n" } else { "" };
        format!(
            "{method}\n\n\n{sent}\n\n\n\n\n\n\n\n\n{blob_type}x-ms-date:{date}\nx-ms-version:{VERSION}\n/{account}{base}{path}"
        )
    }

    /// All headers, up to where the signature goes.
    fn headers(&self, method: &str, length: u64) -> String {
        let (host, date, account) = (&self.host, &self.date, &self.account);
        let sent = match method {
            "PUT" => format!("x-ms-blob-type: BlockBlob\r\nContent-Length: {length}\r\n"),
            _ => String::new(),
        };
        format!(
            "Host: {host}\r\nx-ms-date: {date}\r\nx-ms-version: {VERSION}\r\n{sent}Authorization: SharedKey {account}:"
        )
    }
}

/// All puts of one length in one container have in common everything but the blob's name and the signature.
pub struct BlobPuts {
    /// The text to sign, up to the name.
    hashed: hmac::Context,
    start: Vec<u8>,
    headers: Vec<u8>,
}

impl BlobPuts {
    /// Writes the head of the request that puts this blob. Its body follows.
    pub fn write(&self, name: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.start);
        out.extend_from_slice(name);
        out.extend_from_slice(&self.headers);
        let mut hashed = self.hashed.clone();
        hashed.update(name);
        let mut signature = [0; SIGNATURE_BYTES];
        let written = STANDARD.encode_slice(hashed.sign(), &mut signature);
        assert_eq!(written, Ok(SIGNATURE_BYTES), "an HMAC has one length");
        out.extend_from_slice(&signature);
        out.extend_from_slice(b"\r\n\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_signed_like_any_request() {
        let signer = BlobSigner::of(&Endpoint::development(([127, 0, 0, 1], 10000).into())).unwrap();
        let mut written = Vec::new();
        signer.puts("c", 0).write(b"name", &mut written);
        let whole = signer.request("PUT", "/c/name", &[]);
        assert_eq!(String::from_utf8(written), String::from_utf8(whole));
    }
}
