//! The paths: what clients do most.

use std::future::Future;

use protocol::auth::{AccountKey, Authorization, Connection, SasToken, SignedRequest};
use protocol::model::DateTime;
use testkit::{Batch, Credentials, EMULATOR_KEY, Request, Sas, entity_path};

use crate::client::{Client, HOLE, Template};
use crate::stage::{self, PARTITION, PEER, Stage, TABLE, entity, row_key};

pub struct Path {
    pub name: &'static str,
    pub repetitions: u64,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    Hello,
    ReadHit,
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
    SharedKey,
    Sas,
}

pub const ALL: &[Path] = &[
    Path::new("hello", 400, Action::Hello),
    Path::new("point-read-hit", 400, Action::ReadHit),
    Path::new("point-read-miss", 400, Action::ReadMiss),
    Path::new("point-read-sas", 400, Action::ReadSas),
    Path::new("insert-no-content", 400, Action::InsertNoContent),
    Path::new("insert-content", 400, Action::InsertContent),
    Path::new("upsert", 400, Action::Upsert),
    Path::new("merge", 400, Action::Merge),
    Path::new("batch-100-inserts", 10, Action::Batch),
    Path::new("page-1000", 10, Action::Page),
    Path::new("filter-1000", 20, Action::Filter),
    Path::new("or-20-rows", 100, Action::Or),
    Path::new("shared-key", 400, Action::SharedKey),
    Path::new("sas", 400, Action::Sas),
];

impl Path {
    const fn new(name: &'static str, repetitions: u64, action: Action) -> Path {
        Path { name, repetitions, action }
    }

    pub fn named(name: &str) -> Option<&'static Path> {
        ALL.iter().find(|path| path.name == name)
    }
}

/// Runs a path from a fresh start so many times, and sees that each answer is the right one.
pub fn run(path: &Path, repetitions: u64) {
    match path.action {
        Action::SharedKey => return shared_key(repetitions),
        Action::Sas => return sas(repetitions),
        Action::Hello => {
            return block_on(async {
                let request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:10002\r\n\r\n".to_vec();
                repeat(&mut stage::bare(), Template::new(request), 200, "Hello, World!", repetitions).await;
            });
        }
        _ => {}
    }
    block_on(async {
        let mut stage = Stage::new().await;
        let (request, status, expected) = request(path.action);
        let template = Template::new(stage.bytes_of(&request));
        repeat(&mut stage.client, template, status, expected, repetitions).await;
    });
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(work);
}

async fn repeat(client: &mut Client, mut template: Template, status: u16, expected: &str, repetitions: u64) {
    // Of the first answer more is looked at than its status.
    let answer = client.exchange(template.next(), status).await;
    assert!(
        memchr::memmem::find(answer, expected.as_bytes()).is_some(),
        "{}",
        String::from_utf8_lossy(answer)
    );
    for _ in 0..repetitions {
        client.exchange(template.next(), status).await;
    }
}

/// A request, the status of its answer, and something that must be in it.
fn request(action: Action) -> (Request, u16, &'static str) {
    let one = entity_path(TABLE, PARTITION, &row_key(500));
    let insert = || Request::post(&format!("/{TABLE}")).json(&entity(HOLE, 1));
    match action {
        Action::ReadHit => (Request::get(&one), 200, "Ada Lovelace"),
        Action::ReadMiss => {
            (Request::get(&entity_path(TABLE, PARTITION, "nobody has that")), 404, "ResourceNotFound")
        }
        Action::ReadSas => {
            (Request::get(&one).sas(&table_sas().sign(&Credentials::emulator())), 200, "Ada Lovelace")
        }
        Action::InsertNoContent => {
            (insert().header("Prefer", "return-no-content"), 204, "preference-applied")
        }
        Action::InsertContent => (insert(), 201, "Ada Lovelace"),
        Action::Upsert => (Request::put(&one).json(&entity(&row_key(500), 1)), 204, "etag"),
        Action::Merge => (Request::merge(&one).json("{\"Age\":37}"), 204, "etag"),
        Action::Batch => {
            let batch = (0..100).fold(Batch::new(), |batch, _| batch.insert(TABLE, &entity(HOLE, 1)));
            (batch.request(), 202, "204 No Content")
        }
        Action::Page => {
            let page = Request::get(&format!("/{TABLE}()")).query("$filter", "PartitionKey eq 'p'");
            (page, 200, "\"RowKey\":\"0000000000000999\"")
        }
        Action::Filter => {
            let filter = "PartitionKey eq 'p' and Score eq 42";
            let query = Request::get(&format!("/{TABLE}()")).query("$filter", filter);
            (query, 200, "\"RowKey\":\"0000000000000942\"")
        }
        Action::Or => {
            let rows: Vec<String> = (0..20).map(|row| format!("RowKey eq '{}'", row_key(row * 50))).collect();
            let filter = format!("PartitionKey eq 'p' and ({})", rows.join(" or "));
            let query = Request::get(&format!("/{TABLE}()")).query("$filter", &filter);
            (query, 200, "\"RowKey\":\"0000000000000950\"")
        }
        Action::Hello | Action::SharedKey | Action::Sas => unreachable!("these need no request of ours"),
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
        let request = SignedRequest {
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
        let token =
            SasToken::parse(std::hint::black_box(&query)).ok().flatten().expect("the token is well formed");
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
