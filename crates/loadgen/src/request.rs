//! Requests, signed and written out beforehand, so that sending one costs only a copy.
//!
//! Shared Key Lite signs only the date and the path. A request whose path stays the same (insert, batch) is therefore
//! signed once, with holes in its body for the row keys. A request with the key in its path is signed per key.
//! Leaves to others: which keys to use, and in which order to send (`sources.rs`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use crate::endpoint::Endpoint;
use crate::{Error, clock};

/// Every row key has this many characters, so that all requests of a template have the same length.
pub const ROW_KEY_LENGTH: usize = 16;
/// Stands for the row key in a template.
pub const HOLE: &str = "################";
pub const BATCH_OPERATION_COUNT: usize = 100;
/// Stands for the entity's group in a template.
const GROUP_HOLE: &str = "@@";
/// The characters of a row key that name its entity's group.
const GROUP_PLACE: std::ops::Range<usize> = 6..8;
/// The name of the partition, in tables that have only one.
pub const PARTITION: &str = "p";

#[derive(Clone)]
pub struct Signer {
    key: hmac::Key,
    date: String,
    account: String,
    host: String,
    base_path: String,
}

impl Signer {
    /// Signs for the development account, whatever the server's address.
    pub fn new() -> Result<Signer, Error> {
        Signer::of(&Endpoint::development(([127, 0, 0, 1], 80).into()))
    }

    pub fn of(endpoint: &Endpoint) -> Result<Signer, Error> {
        let key = STANDARD.decode(&endpoint.key).map_err(|_| "the account's key is not Base64")?;
        Ok(Signer {
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

    /// A whole request. `target` starts after the account, as in `/Tables`; each of the `headers` ends with CRLF.
    pub fn request(&self, method: &str, target: &str, headers: &str, body: &str) -> Vec<u8> {
        let path = target.split('?').next().unwrap_or(target);
        let signed = format!("{}\n/{}{}{path}", self.date, self.account, self.base_path);
        let signature = STANDARD.encode(hmac::sign(&self.key, signed.as_bytes()));
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        format!(
            "{method} {base}{target} HTTP/1.1\r\n\
             Host: {host}\r\n\
             x-ms-date: {date}\r\n\
             x-ms-version: 2019-02-02\r\n\
             DataServiceVersion: 3.0\r\n\
             Accept: application/json;odata=minimalmetadata\r\n\
             Authorization: SharedKeyLite {account}:{signature}\r\n\
             {headers}{length}\r\n{body}",
            base = self.base_path,
            host = self.host,
            date = self.date,
            account = self.account,
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

    pub fn delete_table(&self, table: &str) -> Vec<u8> {
        self.request("DELETE", &format!("/Tables('{table}')"), "", "")
    }

    pub fn get(&self, table: &str, row_key: &str) -> Vec<u8> {
        self.get_in(table, PARTITION, row_key)
    }

    pub(crate) fn get_in(&self, table: &str, partition: &str, row_key: &str) -> Vec<u8> {
        self.request("GET", &entity_target(table, partition, row_key), "", "")
    }

    pub fn upsert(&self, table: &str, partition: &str, row_key: &str) -> Vec<u8> {
        let body = entity(partition, row_key).replace(GROUP_HOLE, &row_key[GROUP_PLACE]);
        self.request(
            "PUT",
            &entity_target(table, partition, row_key),
            "Content-Type: application/json\r\n",
            &body,
        )
    }

    /// A merge of one property, cut in two where the ETag of its condition goes.
    pub fn merge(&self, table: &str, partition: &str, row_key: &str) -> (Vec<u8>, Vec<u8>) {
        let headers = format!("Content-Type: application/json\r\nIf-Match: {HOLE}\r\n");
        let request =
            self.request("PATCH", &entity_target(table, partition, row_key), &headers, r#"{"Age":37}"#);
        let hole = memchr::memmem::find(&request, HOLE.as_bytes()).unwrap_or(request.len());
        let rest = request.get(hole + HOLE.len()..).unwrap_or_default().to_vec();
        (request[..hole].to_vec(), rest)
    }

    /// The thousand entities from `row_key` on.
    pub fn page(&self, table: &str, partition: &str, row_key: &str) -> Vec<u8> {
        let filter = format!("PartitionKey%20eq%20'{partition}'%20and%20RowKey%20ge%20'{row_key}'");
        self.query(table, &format!("$filter={filter}&$top=1000"))
    }

    /// One query for the entities with these row keys.
    pub fn any_of(&self, table: &str, partition: &str, row_keys: &[String]) -> Vec<u8> {
        let keys: Vec<String> = row_keys.iter().map(|key| format!("RowKey%20eq%20'{key}'")).collect();
        let keys = keys.join("%20or%20");
        self.query(table, &format!("$filter=PartitionKey%20eq%20'{partition}'%20and%20({keys})"))
    }

    /// A filter for one group: every hundredth entity of a partition.
    pub(crate) fn group_filter(partition: &str, group: &str) -> String {
        format!("$filter=PartitionKey%20eq%20'{partition}'%20and%20Group%20eq%20'{group}'")
    }

    /// A query with these options. The signature does not cover them, so a continuation can be added later.
    pub fn query(&self, table: &str, options: &str) -> Vec<u8> {
        self.request("GET", &format!("/{table}()?{options}"), "", "")
    }

    /// An insert with a hole for its row key.
    pub fn insert(&self, table: &str) -> Template {
        let headers = "Content-Type: application/json\r\nPrefer: return-no-content\r\n";
        Template::new(self.request("POST", &format!("/{table}"), headers, &entity(PARTITION, HOLE)))
    }

    /// A transaction of inserts, each with a hole for its row key.
    pub fn batch(&self, table: &str, operation_count: usize) -> Template {
        self.batch_in(table, PARTITION, operation_count)
    }

    pub(crate) fn batch_in(&self, table: &str, partition: &str, operation_count: usize) -> Template {
        let mut body =
            String::from("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n");
        let entity = entity(partition, HOLE);
        let (host, base) = (&self.host, &self.base_path);
        for _ in 0..operation_count {
            body.push_str("--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n");
            body.push_str(&format!("POST http://{host}{base}/{table} HTTP/1.1\r\n"));
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

fn entity_target(table: &str, partition: &str, row_key: &str) -> String {
    format!("/{table}(PartitionKey='{partition}',RowKey='{row_key}')")
}

/// A medium-sized entity: nine properties of six types. Its group comes from its row key, so that every hundredth
/// entity of a table is in the same group.
fn entity(partition: &str, row_key: &str) -> String {
    format!(
        r#"{{"PartitionKey":"{partition}","RowKey":"{row_key}","Name":"Ada Lovelace","City":"London","Age":36,"Score":99.5,"Active":true,"Visits":"1234567890123","Visits@odata.type":"Edm.Int64","Since":"2020-01-02T03:04:05.678Z","Since@odata.type":"Edm.DateTime","Note":"the quick brown fox","Group":"{GROUP_HOLE}"}}"#
    )
}

/// The size of an entity on the wire, for measurements that write rows without a server.
pub fn entity_bytes() -> usize {
    entity(PARTITION, HOLE).len()
}

/// The row key of the `number`th entity, in listing order.
pub fn row_key(number: u64) -> String {
    format!("{number:0ROW_KEY_LENGTH$}")
}

/// A request with holes for row keys.
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<usize>,
    /// Where each entity's group goes: one place per hole, or none at all.
    groups: Vec<usize>,
}

impl Template {
    pub fn new(bytes: Vec<u8>) -> Template {
        let holes: Vec<usize> = memchr::memmem::find_iter(&bytes, HOLE).collect();
        let mut groups: Vec<usize> =
            memchr::memmem::find_iter(&bytes, &format!(":\"{GROUP_HOLE}\"")).map(|place| place + 2).collect();
        if groups.len() != holes.len() {
            groups.clear();
        }
        Template { bytes, holes, groups }
    }

    /// Writes the request into `out`. Fills each hole with the next key, and each group from that key.
    pub fn fill(&self, out: &mut Vec<u8>, mut key: impl FnMut() -> [u8; ROW_KEY_LENGTH]) {
        out.clear();
        out.extend_from_slice(&self.bytes);
        for (index, hole) in self.holes.iter().enumerate() {
            let key = key();
            out[*hole..*hole + ROW_KEY_LENGTH].copy_from_slice(&key);
            if let Some(group) = self.groups.get(index) {
                out[*group..*group + GROUP_HOLE.len()].copy_from_slice(&key[GROUP_PLACE]);
            }
        }
    }
}

/// A number as the characters of a row key, faster than `format!`.
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
    fn a_merge_has_one_place_for_its_etag() {
        let (head, rest) = Signer::new().unwrap().merge("t", "p", "k");
        assert!(head.ends_with(b"If-Match: ") && rest.starts_with(b"\r\n"));
    }

    #[test]
    fn requests_name_the_endpoint_that_they_are_for() {
        let endpoint = Endpoint::from_url("http://127.0.0.1:81", "acme", "a2V5").unwrap();
        let request = Signer::of(&endpoint).unwrap().get("t", "k");
        let text = String::from_utf8(request).unwrap();
        assert!(
            text.starts_with("GET /t(PartitionKey='p',RowKey='k') HTTP/1.1\r\nHost: 127.0.0.1:81\r\n"),
            "{text}"
        );
        assert!(text.contains("SharedKeyLite acme:"));
    }

    #[test]
    fn a_batch_has_a_hole_for_every_entity() {
        let template = Signer::new().unwrap().batch("t", BATCH_OPERATION_COUNT);
        assert_eq!(template.holes.len(), BATCH_OPERATION_COUNT);
        let (mut out, mut next) = (Vec::new(), 0);
        template.fill(&mut out, || {
            next += 1;
            row_key_bytes(next * 100_000_000)
        });
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains('#') && !text.contains(GROUP_HOLE));
        assert!(text.contains(r#""RowKey":"0000004200000000""#));
        assert_eq!(text.matches(r#""Group":"42""#).count(), 1);
    }
}
