//! The golden exchanges of `tests/golden/blob`, replayed byte for byte, with the account in the path and in the host.

use std::path::Path;

use testkit::golden::{Endpoint, Rules, Scenario, read_folder};
use testkit::{Credentials, Request, TestServer};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/blob");

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
    check(&Endpoint::parse(&server.blob().base(), Credentials::emulator()).unwrap());
    let left = server.blob().send(Request::get("/?comp=list")).expect(200);
    assert!(left.text().contains("<Containers />"), "{}", left.text());
}

#[test]
fn every_golden_exchange_is_repeated_with_the_account_in_the_host() {
    let server = TestServer::start();
    let url = "http://devstoreaccount1.blob.core.windows.net";
    check(&Endpoint::parse(url, Credentials::emulator()).unwrap().connect_to(server.blob().addr()));
}

#[test]
fn each_operation_has_its_files() {
    let names: Vec<String> = scenarios().into_iter().map(|scenario| scenario.name).collect();
    for section in [
        "03", "11.1", "11.2", "13.1", "13.2", "13.4", "13.5", "14.1", "14.4", "15", "16.2", "16.3", "16.4",
        "16.6", "17.1", "17.2", "17.6", "18", "19", "20", "21.1", "21.2", "21.5",
    ] {
        assert!(names.iter().any(|name| name.starts_with(&format!("{section}-"))), "{section} of {names:?}");
    }
}
