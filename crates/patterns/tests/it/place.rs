//! A server inside this process, and what the tests share.

use std::collections::BTreeMap;
use std::future::Future;

use lazulite_client::TableClient;
use lazulite_patterns::RawEntity;
use lazulite_patterns::showcase::{AnyError, Demo, connection_string};
use testkit::TestServer;

/// A demo at a server of its own. The server ends with the first value.
pub fn open() -> (TestServer, Demo) {
    let server = TestServer::start();
    let demo = Demo::at(&connection_to(&server)).expect("a demo");
    (server, demo)
}

pub fn connection_to(server: &TestServer) -> String {
    connection_string(&[format!("http://{}", server.addr()), format!("http://{}", server.queue().addr())])
}

/// Runs a test's work to its end.
#[track_caller]
pub fn run<T>(work: impl Future<Output = Result<T, AnyError>>) -> T {
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
) -> Result<BTreeMap<(String, String), BTreeMap<String, String>>, AnyError> {
    let mut rows = BTreeMap::new();
    for row in table.query::<RawEntity>().all().await? {
        let properties = row
            .properties
            .iter()
            .map(|property| (property.name.to_string(), format!("{:?}", property.value)));
        rows.insert((row.keys.partition_key.to_string(), row.keys.row_key.to_string()), properties.collect());
    }
    Ok(rows)
}
