//! The golden exchanges of `tests/golden/queue`, replayed byte for byte, with the account in the path and in the host.

use std::path::Path;

use testkit::golden::{Endpoint, Rules, Scenario, read_folder};
use testkit::{Credentials, Request, TestServer};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/queue");

fn scenarios() -> Vec<Scenario> {
    read_folder(Path::new(FOLDER)).unwrap()
}

#[track_caller]
fn check(endpoint: &Endpoint) {
    let mut found = Vec::new();
    for scenario in scenarios() {
        for difference in scenario.replay(endpoint, "", &Rules::default()) {
            found.push(format!("{}: {difference}", scenario.name));
        }
    }
    assert!(found.is_empty(), "{} exchanges differ:\n\n{}", found.len(), found.join("\n\n"));
}

#[test]
fn every_golden_exchange_is_repeated_with_the_account_in_the_path() {
    let server = TestServer::start();
    check(&Endpoint::parse(&server.queue().base(), Credentials::emulator()).unwrap());
    let left = server.queue().send(Request::get("/?comp=list")).expect(200);
    assert!(left.text().contains("<Queues />"), "{}", left.text());
}

#[test]
fn every_golden_exchange_is_repeated_with_the_account_in_the_host() {
    let server = TestServer::start();
    let url = "http://devstoreaccount1.queue.core.windows.net";
    check(&Endpoint::parse(url, Credentials::emulator()).unwrap().connect_to(server.queue().addr()));
}

#[test]
fn each_operation_has_its_files() {
    let names: Vec<String> = scenarios().into_iter().map(|scenario| scenario.name).collect();
    for section in [
        "02.03", "02.06", "03.05", "04.01", "04.02", "04.03", "04.04", "04.06", "05.02", "05.03", "05.04",
        "05.05", "05.06", "05.07", "06.01", "06.03", "07",
    ] {
        assert!(names.iter().any(|name| name.starts_with(&format!("{section}-"))), "{section} of {names:?}");
    }
}
