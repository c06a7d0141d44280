//! Retries: the client's own policy copes with a busy server, and a retry sees what it would see with the live service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use azure_core::{FixedRetryOptions, RetryOptions};
use azure_data_tables::clients::TableServiceClientBuilder;
use azure_data_tables::prelude::*;
use azure_storage::CloudLocation;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

const BUSY: &str =
    r#"{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy."}}}"#;

/// The table behind a proxy that answers 503 on the first `times` connections. With `lost`, the proxy passes the
/// request on first: the server does the work, but the client does not learn of it.
async fn behind_busy_server(
    table: &TableClient,
    times: usize,
    lost: bool,
) -> (TableClient, Arc<AtomicUsize>) {
    let endpoint = setting("TableEndpoint");
    let authority = endpoint.split('/').nth(2).unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = endpoint.replace(&authority, &listener.local_addr().unwrap().to_string());
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let busy = counter.fetch_add(1, Ordering::SeqCst) < times;
            tokio::spawn(serve(client, authority.clone(), busy, lost));
        }
    });
    let location = CloudLocation::Custom { account: account(), uri };
    let retry = FixedRetryOptions::default().max_retries(2_u32).delay(Duration::from_millis(1));
    let client = TableServiceClientBuilder::with_location(location, account_key())
        .retry(RetryOptions::fixed(retry))
        .build();
    (client.table_client(table.table_name()), connections)
}

async fn serve(mut client: TcpStream, authority: String, busy: bool, lost: bool) {
    if !busy {
        let mut server = TcpStream::connect(authority).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return;
    }
    let request = read_request(&mut client).await;
    if lost {
        let mut server = TcpStream::connect(authority).await.unwrap();
        server.write_all(&request).await.unwrap();
        let _ = server.read_u8().await; // The answer begins: the work is done.
    }
    let length = BUSY.len();
    let answer = format!(
        "HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{BUSY}"
    );
    let _ = client.write_all(answer.as_bytes()).await;
    let _ = client.shutdown().await;
}

/// Reads a request with its body, whose size `Content-Length` gives.
async fn read_request(client: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        assert!(client.read_buf(&mut request).await.unwrap() > 0, "the client went away");
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if request.len() >= head.len() + 4 + length.unwrap_or(0) {
            return request;
        }
    }
}

#[tokio::test]
async fn an_insert_is_retried_when_the_server_is_busy() {
    let table = new_table().await;
    let (client, connections) = behind_busy_server(&table, 1, false).await;
    insert(&client, entity("r", json!({"n": 1}))).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    assert_eq!(stored(&table).await, json!({"n": 1}));
}

#[tokio::test]
async fn a_transaction_is_retried_when_the_server_is_busy() {
    let table = new_table().await;
    let (client, connections) = behind_busy_server(&table, 2, false).await;
    let both = client.partition_key_client("p").transaction().insert(entity("a", json!({}))).unwrap();
    both.insert(entity("b", json!({}))).unwrap().await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 3);
    assert_eq!(rows(&list(&table).await), ["a", "b"]);
}

#[tokio::test]
async fn a_server_that_stays_busy_is_reported() {
    let table = new_table().await;
    let (client, connections) = behind_busy_server(&table, 100, false).await;
    assert_refused(one(&client).get::<Value>().await, 503, "ServerBusy");
    assert_eq!(connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_retried_insert_whose_first_answer_was_lost_is_a_conflict() {
    let table = new_table().await;
    let (client, _) = behind_busy_server(&table, 1, true).await;
    assert_refused(insert(&client, entity("r", json!({"n": 1}))).await, 409, "EntityAlreadyExists");
    assert_eq!(stored(&table).await, json!({"n": 1}));
}

#[tokio::test]
async fn a_refusal_is_not_retried() {
    let table = new_table().await;
    let (client, connections) = behind_busy_server(&table, 0, false).await;
    assert_not_found(one(&client).get::<Value>().await);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
