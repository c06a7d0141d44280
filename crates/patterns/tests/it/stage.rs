//! A server inside this process, and what the tests share.

use std::collections::BTreeMap;
use std::future::Future;

use lazulite_client::TableClient;
use lazulite_patterns::Raw;
use lazulite_patterns::showcase::{Failure, Stage, connection_string};
use testkit::TestServer;

/// A stage at a server of its own. The server ends with the first value.
pub fn open() -> (TestServer, Stage) {
    let server = TestServer::start();
    let stage = Stage::at(&connection_to(&server)).expect("a stage");
    (server, stage)
}

pub fn connection_to(server: &TestServer) -> String {
    connection_string(&[format!("http://{}", server.addr()), format!("http://{}", server.queue().addr())])
}

/// Runs a test's work to its end.
#[track_caller]
pub fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(work).expect("the work succeeds")
}

/// Everything in a table: for each pair of keys the properties, by name.
pub async fn contents(
    table: &TableClient,
) -> Result<BTreeMap<(String, String), BTreeMap<String, String>>, Failure> {
    let mut rows = BTreeMap::new();
    for row in table.query::<Raw>().all().await? {
        let properties = row
            .properties
            .iter()
            .map(|property| (property.name.to_string(), format!("{:?}", property.value)));
        rows.insert((row.keys.partition_key.to_string(), row.keys.row_key.to_string()), properties.collect());
    }
    Ok(rows)
}
