//! The measured paths: the requests that clients send most.
//!
//! Promises: every answer is checked while it is measured. Leaves to others: the server (`stage.rs`) and the counting.

use std::future::Future;

use protocol::auth::{AccountKey, Authorization, Connection, SasToken, ShortRequest};
use protocol::common::DateTime;
use protocol::common::query::Query;
use protocol::table::KIND;
use testkit::{Batch, Credentials, EMULATOR_KEY, Request, Sas, entity_path, message_path};

use crate::client::{Client, HOLE, Template};
use crate::client_paths;
use crate::stage::{
    self, PARTITION, PEER, QUEUE, Stage, TABLE, blob_path, entity, put_blob, put_message, row_key,
};

pub struct Path {
    pub name: &'static str,
    pub repetitions: u64,
    kind: PathKind,
}

#[derive(Clone, Copy)]
enum PathKind {
    Hello,
    ReadHit,
    ReadUnadvised,
    ReadMiss,
    ReadSas,
    InsertNoContent,
    InsertContent,
    Upsert,
    Merge,
    Batch,
    Page,
    Filter,
    Or,
    PutMessage,
    PeekMessages,
    TakeAndDelete,
    PutBlob,
    GetBlob,
    SharedKey,
    Sas,
    ClientRead,
}

/// The same read, with the advisor and without it.
pub const ADVISED: &str = "point-read-hit";
pub const UNADVISED: &str = "point-read-unadvised";
/// Starting a server costs a little more or less each time, because hashes are random. It counts for about a tenth of a
/// percent here.
const COMPARED_REPETITIONS: u64 = 3000;

pub const ALL: &[Path] = &[
    Path::new("hello", 400, PathKind::Hello),
    Path::new(ADVISED, COMPARED_REPETITIONS, PathKind::ReadHit),
    Path::new(UNADVISED, COMPARED_REPETITIONS, PathKind::ReadUnadvised),
    Path::new("point-read-miss", 400, PathKind::ReadMiss),
    Path::new("point-read-sas", 400, PathKind::ReadSas),
    Path::new("insert-no-content", 400, PathKind::InsertNoContent),
    Path::new("insert-content", 400, PathKind::InsertContent),
    Path::new("upsert", 400, PathKind::Upsert),
    Path::new("merge", 400, PathKind::Merge),
    Path::new("batch-100-inserts", 10, PathKind::Batch),
    Path::new("page-1000", 10, PathKind::Page),
    Path::new("filter-1000", 20, PathKind::Filter),
    Path::new("or-20-rows", 100, PathKind::Or),
    Path::new("put-message", 400, PathKind::PutMessage),
    Path::new("peek-32-messages", 100, PathKind::PeekMessages),
    Path::new("take-and-delete", 400, PathKind::TakeAndDelete),
    // A put replaces the same blob each time: another name would need another signature.
    Path::new("put-blob-4k", 400, PathKind::PutBlob),
    Path::new("get-blob-4k", 400, PathKind::GetBlob),
    Path::new("shared-key", 400, PathKind::SharedKey),
    Path::new("sas", 400, PathKind::Sas),
    Path::new("client-point-read", 400, PathKind::ClientRead),
];

impl Path {
    const fn new(name: &'static str, repetitions: u64, kind: PathKind) -> Path {
        Path { name, repetitions, kind }
    }

    pub fn named(name: &str) -> Option<&'static Path> {
        ALL.iter().find(|path| path.name == name)
    }
}

/// Runs a path this many times on a fresh server, and checks each answer.
pub fn run(path: &Path, repetitions: u64) {
    match path.kind {
        PathKind::SharedKey => return shared_key(repetitions),
        PathKind::Sas => return sas(repetitions),
        PathKind::ClientRead => return block_on(client_paths::point_reads(repetitions)),
        PathKind::Hello => {
            return block_on(async {
                let request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:10002\r\n\r\n".to_vec();
                repeat(&mut stage::bare(), Template::new(request), 200, "Hello, World!", repetitions).await;
            });
        }
        PathKind::TakeAndDelete => return block_on(take_and_delete(repetitions)),
        PathKind::PutBlob | PathKind::GetBlob => {
            return block_on(async {
                let mut stage = Stage::new().await;
                stage.fill_container().await;
                let (request, status, expected) = match path.kind {
                    PathKind::PutBlob => (put_blob(), 201, "x-ms-content-crc64"),
                    _ => (Request::get(&blob_path()), 200, "xxxxxxxxxxxxxxxx"),
                };
                let template = Template::new(stage.blob_bytes_of(&request));
                repeat(&mut stage.blob_client, template, status, expected, repetitions).await;
            });
        }
        PathKind::PutMessage | PathKind::PeekMessages => {
            return block_on(async {
                let mut stage = Stage::new().await;
                let (request, status, expected) = match path.kind {
                    PathKind::PutMessage => (put_message(), 201, "<PopReceipt>"),
                    _ => {
                        let query = "peekonly=true&numofmessages=32";
                        (Request::get(&format!("/{QUEUE}/messages?{query}")), 200, "<DequeueCount>0<")
                    }
                };
                let template = Template::new(stage.queue_bytes_of(&request));
                repeat(&mut stage.queue_client, template, status, expected, repetitions).await;
            });
        }
        _ => {}
    }
    block_on(async {
        let mut stage = match path.kind {
            PathKind::ReadUnadvised => Stage::unadvised().await,
            _ => Stage::new().await,
        };
        let (request, status, expected) = request(path.kind);
        let template = Template::new(stage.bytes_of(&request));
        repeat(&mut stage.client, template, status, expected, repetitions).await;
    });
}

/// Takes one message and deletes it, so often. The deletion cannot be signed in advance, so its signature is part of what
/// is measured: the client's is as costly as the server's.
async fn take_and_delete(repetitions: u64) {
    let mut stage = Stage::new().await;
    let take = stage.queue_bytes_of(&Request::get(&format!("/{QUEUE}/messages")));
    for _ in 0..=repetitions {
        let answer = stage.queue_client.exchange(&take, 200).await;
        let answer = String::from_utf8_lossy(answer);
        let element = |name: &str| {
            let after = answer.split_once(&format!("<{name}>")).map_or("", |(_, after)| after);
            after.split('<').next().unwrap_or_default().to_owned()
        };
        let path = message_path(QUEUE, &element("MessageId"), &element("PopReceipt"));
        let delete = stage.queue_bytes_of(&Request::delete(&path));
        stage.queue_client.exchange(&delete, 204).await;
    }
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(work);
}

async fn repeat(client: &mut Client, template: Template, status: u16, expected: &str, repetitions: u64) {
    // The last answer is checked for its content, the others only for their status.
    let answer = client.repeat(template, status, repetitions + 1).await;
    assert!(
        memchr::memmem::find(answer, expected.as_bytes()).is_some(),
        "{}",
        String::from_utf8_lossy(answer)
    );
}

/// A request, the status of its answer, and a text that the answer must contain.
fn request(kind: PathKind) -> (Request, u16, &'static str) {
    let one = entity_path(TABLE, PARTITION, &row_key(500));
    let insert = || Request::post(&format!("/{TABLE}")).json(&entity(HOLE, 1));
    match kind {
        PathKind::ReadHit | PathKind::ReadUnadvised => (Request::get(&one), 200, "Ada Lovelace"),
        PathKind::ReadMiss => {
            (Request::get(&entity_path(TABLE, PARTITION, "nobody has that")), 404, "ResourceNotFound")
        }
        PathKind::ReadSas => {
            (Request::get(&one).sas(&table_sas().sign(&Credentials::emulator())), 200, "Ada Lovelace")
        }
        PathKind::InsertNoContent => {
            (insert().header("Prefer", "return-no-content"), 204, "preference-applied")
        }
        PathKind::InsertContent => (insert(), 201, "Ada Lovelace"),
        PathKind::Upsert => (Request::put(&one).json(&entity(&row_key(500), 1)), 204, "etag"),
        PathKind::Merge => (Request::merge(&one).json("{\"Age\":37}"), 204, "etag"),
        PathKind::Batch => {
            let batch = (0..100).fold(Batch::new(), |batch, _| batch.insert(TABLE, &entity(HOLE, 1)));
            (batch.request(), 202, "204 No Content")
        }
        PathKind::Page => {
            let page = Request::get(&format!("/{TABLE}()")).query("$filter", "PartitionKey eq 'p'");
            (page, 200, "\"RowKey\":\"0000000000000999\"")
        }
        PathKind::Filter => {
            let filter = "PartitionKey eq 'p' and Score eq 42";
            let query = Request::get(&format!("/{TABLE}()")).query("$filter", filter);
            (query, 200, "\"RowKey\":\"0000000000000942\"")
        }
        PathKind::Or => {
            let rows: Vec<String> = (0..20).map(|row| format!("RowKey eq '{}'", row_key(row * 50))).collect();
            let filter = format!("PartitionKey eq 'p' and ({})", rows.join(" or "));
            let query = Request::get(&format!("/{TABLE}()")).query("$filter", &filter);
            (query, 200, "\"RowKey\":\"0000000000000950\"")
        }
        PathKind::Hello
        | PathKind::PutMessage
        | PathKind::PeekMessages
        | PathKind::TakeAndDelete
        | PathKind::PutBlob
        | PathKind::GetBlob
        | PathKind::SharedKey
        | PathKind::Sas
        | PathKind::ClientRead => {
            unreachable!("these paths do not use this request")
        }
    }
}

fn table_sas() -> Sas {
    Sas::table("2019-02-02", TABLE)
}

fn shared_key(repetitions: u64) {
    let keys = [AccountKey::from_base64(EMULATOR_KEY).expect("the emulator's key is well formed")];
    let path = entity_path(TABLE, PARTITION, &row_key(500));
    let path = format!("/{}{path}", testkit::EMULATOR_ACCOUNT);
    let date = "Wed, 01 Jan 2025 00:00:00 GMT";
    let text = format!("GET\n\n\n{date}\n/{}{path}", testkit::EMULATOR_ACCOUNT);
    let signature = testkit::signature(&Credentials::emulator().key, &text);
    let header = format!("SharedKey {}:{signature}", testkit::EMULATOR_ACCOUNT);
    for _ in 0..=repetitions {
        let header = std::hint::black_box(&header);
        let Ok(Authorization::Signed { scheme, account, signature }) = Authorization::parse(header) else {
            panic!("the header is well formed");
        };
        assert!(DateTime::parse_http(date).is_some());
        let request = ShortRequest {
            method: "GET",
            content_md5: "",
            content_type: "",
            date,
            account,
            path: &path,
            comp: None,
        };
        assert!(request.is_signed_by(&keys, scheme, signature));
    }
}

fn sas(repetitions: u64) {
    let keys = [AccountKey::from_base64(EMULATOR_KEY).expect("the emulator's key is well formed")];
    let query = table_sas().sign(&Credentials::emulator());
    let connection = Connection { peer: PEER, is_https: false };
    let now = DateTime::parse("2025-01-01T00:00:00Z").expect("this is a time");
    for _ in 0..=repetitions {
        let token = SasToken::read(&Query::split(std::hint::black_box(&query)), "", &KIND).ok().flatten();
        let token = token.expect("the token is well formed");
        assert!(token.verify(testkit::EMULATOR_ACCOUNT, &keys));
        assert!(token.grant(&[], now, &connection).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_gets_the_answer_it_expects() {
        for path in ALL {
            run(path, 2);
        }
    }
}
