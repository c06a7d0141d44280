//! The queue client against a real server: every operation, its receipts and its errors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod administration;
mod faults;
mod messages;

use std::time::Duration;

use lazulite_client::{QueueClient, QueueServiceClient};
use testkit::{EMULATOR_ACCOUNT, EMULATOR_KEY, TestServer};

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

fn connection_string(server: &TestServer) -> String {
    let endpoint = server.queue().base();
    format!(
        "DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};QueueEndpoint={endpoint};"
    )
}

fn service(server: &TestServer) -> QueueServiceClient {
    QueueServiceClient::from_connection_string(&connection_string(server)).unwrap()
}

/// A queue that exists.
async fn queue(server: &TestServer) -> QueueClient {
    let queue = service(server).queue("orders").unwrap();
    assert!(queue.create().await.unwrap());
    queue
}
