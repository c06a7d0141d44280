//! What the Rust client costs, without a server: its requests go over a real socket to a thread that always gives the same
//! answer and allocates nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use lazulite_client::{DateTime, Entity, TableServiceClient};
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY};

/// Nine properties of six types, as in the benchmark.
#[derive(Entity)]
#[entity(rename_all = "PascalCase")]
struct Person {
    #[entity(partition_key)]
    partition: String,
    #[entity(row_key)]
    row: String,
    name: String,
    city: String,
    age: i32,
    score: f64,
    active: bool,
    visits: i64,
    since: DateTime,
    note: String,
    group: String,
}

const BODY: &str = r#"{"odata.metadata":"http://127.0.0.1/devstoreaccount1/$metadata#people/@Element","odata.etag":"W/\"datetime'2026-01-02T03%3A04%3A05.6789012Z'\"","PartitionKey":"p","RowKey":"0000000000000042","Timestamp":"2026-01-02T03:04:05.6789012Z","Name":"Ada Lovelace","City":"London","Age":36,"Score":99.5,"Active":true,"Visits@odata.type":"Edm.Int64","Visits":"1234567890123","Since@odata.type":"Edm.DateTime","Since":"2020-01-02T03:04:05.678Z","Note":"the quick brown fox","Group":"42"}"#;

/// Reads one entity so often.
pub async fn point_reads(repetitions: u64) {
    let address = answer_always();
    let connection = format!(
        "AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};TableEndpoint=http://{address}/{EMULATOR_ACCOUNT}"
    );
    let service = TableServiceClient::from_connection_string(&connection).expect("a connection string");
    let table = service.table("people").expect("a table's name");
    for _ in 0..=repetitions {
        let person: Person = table.get("p", "0000000000000042").await.expect("an entity");
        assert!(person.age == 36 && person.group == "42" && person.visits == 1_234_567_890_123);
    }
}

/// Answers every request on one connection with the same entity. Requests have no body.
fn answer_always() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\
         ETag: W/\"datetime'2026-01-02T03%3A04%3A05.6789012Z'\"\r\nServer: Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0\r\n\
         x-ms-request-id: 12345678-1234-1234-1234-123456789012\r\nx-ms-version: 2019-02-02\r\nX-Content-Type-Options: nosniff\r\n\
         Date: Fri, 02 Jan 2026 03:04:05 GMT\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let (mut request, mut filled) = ([0; 16 * 1024], 0);
        while let Ok(count) = stream.read(&mut request[filled..]) {
            if count == 0 {
                return;
            }
            filled += count;
            if request[..filled].ends_with(b"\r\n\r\n") {
                filled = 0;
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    address
}
