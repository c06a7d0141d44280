//! Requests, signed and written out beforehand, so that sending one costs a copy.
//!
//! Shared Key Lite signs the date and the path only. A request whose path stays the same (insert, batch) is therefore
//! signed once for all, with holes in its body for the row keys; one with the key in its path is signed per key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::{Error, clock};

const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Row keys have this many characters, so that a request with another key has the same length.
pub const ROW_KEY_LENGTH: usize = 16;
/// What a template has in the place of a row key.
pub const HOLE: &str = "################";
pub const BATCH_OPERATION_COUNT: usize = 100;

pub struct Signer {
    key: Hmac<Sha256>,
    date: String,
}

impl Signer {
    pub fn new() -> Result<Signer, Error> {
        let key = Hmac::new_from_slice(&STANDARD.decode(ACCOUNT_KEY)?)?;
        Ok(Signer { key, date: clock::http_date() })
    }

    /// A whole request. `target` starts after the account, as in `/Tables`; `headers` end with CRLF each.
    pub fn request(&self, method: &str, target: &str, headers: &str, body: &str) -> Vec<u8> {
        let path = target.split('?').next().unwrap_or(target);
        let mut mac = self.key.clone();
        mac.update(format!("{}\n/{ACCOUNT}/{ACCOUNT}{path}", self.date).as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        format!(
            "{method} /{ACCOUNT}{target} HTTP/1.1\r\n\
             Host: 127.0.0.1\r\n\
             x-ms-date: {date}\r\n\
             x-ms-version: 2019-02-02\r\n\
             DataServiceVersion: 3.0\r\n\
             Accept: application/json;odata=minimalmetadata\r\n\
             Authorization: SharedKeyLite {ACCOUNT}:{signature}\r\n\
             {headers}{length}\r\n{body}",
            date = self.date,
        )
        .into_bytes()
    }

    pub fn list_tables(&self) -> Vec<u8> {
        self.request("GET", "/Tables", "", "")
    }

    pub fn create_table(&self, table: &str) -> Vec<u8> {
        let headers = "Content-Type: application/json\r\nPrefer: return-no-content\r\n";
        self.request("POST", "/Tables", headers, &format!(r#"{{"TableName":"{table}"}}"#))
    }

    pub fn get(&self, table: &str, row_key: &str) -> Vec<u8> {
        self.request("GET", &entity_target(table, row_key), "", "")
    }

    pub fn upsert(&self, table: &str, row_key: &str) -> Vec<u8> {
        self.request(
            "PUT",
            &entity_target(table, row_key),
            "Content-Type: application/json\r\n",
            &entity(row_key),
        )
    }

    /// The thousand entities from `row_key` on.
    pub fn page(&self, table: &str, row_key: &str) -> Vec<u8> {
        let filter = format!("PartitionKey%20eq%20'p'%20and%20RowKey%20ge%20'{row_key}'");
        self.request("GET", &format!("/{table}()?$filter={filter}&$top=1000"), "", "")
    }

    /// An insert whose row key is a hole.
    pub fn insert(&self, table: &str) -> Template {
        let headers = "Content-Type: application/json\r\nPrefer: return-no-content\r\n";
        Template::new(self.request("POST", &format!("/{table}"), headers, &entity(HOLE)))
    }

    /// A transaction of so many inserts, each with a hole for its row key.
    pub fn batch(&self, table: &str, operation_count: usize) -> Template {
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        let entity = entity(HOLE);
        for _ in 0..operation_count {
            body.push_str("--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n");
            body.push_str(&format!("POST http://127.0.0.1/{ACCOUNT}/{table} HTTP/1.1\r\n"));
            body.push_str(
                "Accept: application/json;odata=minimalmetadata\r\nContent-Type: application/json\r\n",
            );
            body.push_str("Prefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n");
            body.push_str(&entity);
            body.push_str("\r\n");
        }
        body.push_str("--changeset_c--\r\n\r\n--batch_b--\r\n");
        Template::new(self.request(
            "POST",
            "/$batch",
            "Content-Type: multipart/mixed; boundary=batch_b\r\n",
            &body,
        ))
    }
}

fn entity_target(table: &str, row_key: &str) -> String {
    format!("/{table}(PartitionKey='p',RowKey='{row_key}')")
}

/// A middling entity: eight properties of six types, all in one partition.
fn entity(row_key: &str) -> String {
    format!(
        r#"{{"PartitionKey":"p","RowKey":"{row_key}","Name":"Ada Lovelace","City":"London","Age":36,"Score":99.5,"Active":true,"Visits":"1234567890123","Visits@odata.type":"Edm.Int64","Since":"2020-01-02T03:04:05.678Z","Since@odata.type":"Edm.DateTime","Note":"the quick brown fox"}}"#
    )
}

/// The row key of the `number`th entity, in listing order.
pub fn row_key(number: u64) -> String {
    format!("{number:0ROW_KEY_LENGTH$}")
}

/// A request with holes for row keys.
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    pub fn new(bytes: Vec<u8>) -> Template {
        let holes = memchr::memmem::find_iter(&bytes, HOLE).collect();
        Template { bytes, holes }
    }

    /// Writes the request into `out`, filling each hole with the next of `keys`.
    pub fn fill(&self, out: &mut Vec<u8>, mut key: impl FnMut() -> [u8; ROW_KEY_LENGTH]) {
        out.clear();
        out.extend_from_slice(&self.bytes);
        for hole in &self.holes {
            out[*hole..*hole + ROW_KEY_LENGTH].copy_from_slice(&key());
        }
    }
}

/// A number as the characters of a row key, quicker than formatting.
pub fn row_key_bytes(mut number: u64) -> [u8; ROW_KEY_LENGTH] {
    let mut key = [b'0'; ROW_KEY_LENGTH];
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    key
}

/// A number's hexadecimal digits as the characters of a row key.
pub fn row_key_hex(number: u64) -> [u8; ROW_KEY_LENGTH] {
    let mut key = [0; ROW_KEY_LENGTH];
    for (index, digit) in key.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * index)) as usize & 15];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_published_vector() {
        let mut signer = Signer::new().unwrap();
        signer.date = "Tue, 21 Sep 2021 00:50:22 GMT".to_owned();
        let request = signer.request("GET", "/mytable(PartitionKey='pk',RowKey='a%20b')?$select=x", "", "");
        let text = String::from_utf8(request).unwrap();
        assert!(
            text.contains("SharedKeyLite devstoreaccount1:DPn0krVBDSMD+NXjFWM+StsyYF9YTBmI56mV6QY+MK4=\r\n"),
            "{text}"
        );
    }

    #[test]
    fn row_keys_agree_however_they_are_written() {
        for number in [0, 1, 999_999, 1_234_567_890_123_456] {
            assert_eq!(row_key(number).as_bytes(), row_key_bytes(number));
        }
        assert_eq!(&row_key_hex(0x0123_4567_89ab_cdef), b"0123456789abcdef");
    }

    #[test]
    fn a_batch_has_a_hole_for_every_entity() {
        let template = Signer::new().unwrap().batch("t", BATCH_OPERATION_COUNT);
        assert_eq!(template.holes.len(), BATCH_OPERATION_COUNT);
        let (mut out, mut next) = (Vec::new(), 0);
        template.fill(&mut out, || {
            next += 1;
            row_key_bytes(next)
        });
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains('#'));
        assert!(text.contains(r#""RowKey":"0000000000000100""#));
    }
}
