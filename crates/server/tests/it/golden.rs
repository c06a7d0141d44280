//! The golden exchanges of `tests/golden`, replayed byte for byte, with the account in the path and in the host.

use std::path::Path;

use testkit::golden::{Endpoint, Rules, Scenario, read_folder};
use testkit::{Credentials, TestServer};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");

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
    check(&Endpoint::parse(&server.base(), Credentials::emulator()).unwrap());
}

#[test]
fn every_golden_exchange_is_repeated_with_the_account_in_the_host() {
    let server = TestServer::start();
    let url = "http://devstoreaccount1.table.core.windows.net";
    check(&Endpoint::parse(url, Credentials::emulator()).unwrap().connect_to(server.addr()));
}

#[test]
fn each_section_with_examples_has_its_files() {
    let names: Vec<String> = scenarios().into_iter().map(|scenario| scenario.name).collect();
    for section in [
        "02.03", "03.01", "03.03", "03.05", "03.06", "03.07", "03.08", "03.10", "03.11", "03.12", "03.13",
        "03.14", "03.15", "03.16", "03.17", "04.03", "05.04", "05.07", "06.02", "07.03", "07.04", "07.05",
        "08.06", "08.07", "09.01", "09.02", "10.02",
    ] {
        assert!(names.iter().any(|name| name.starts_with(&format!("{section}-"))), "{section} of {names:?}");
    }
}

#[test]
fn an_answer_other_than_the_expected_is_a_difference() {
    // In the second one, exchanges are repeated where a service may take its time. In the first one that would be in
    // vain.
    let [hasty, patient] = [(); 2].map(|()| testkit::TempDir::new().unwrap());
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let entry = entry.unwrap();
        // The exchanges of other services have folders of their own.
        if entry.path().is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap().replace("\nServer: ", "\nServer: not ");
        std::fs::write(hasty.path().join(entry.file_name()), text.replace("eventually: ", "")).unwrap();
        std::fs::write(patient.path().join(entry.file_name()), text).unwrap();
    }
    let server = TestServer::start();
    let endpoint = Endpoint::parse(&server.base(), Credentials::emulator()).unwrap();
    let patient = read_folder(patient.path()).unwrap();
    for (scenario, patient) in read_folder(hasty.path()).unwrap().iter().zip(&patient) {
        let differences = scenario.replay(&endpoint, "", &Rules::default());
        assert_eq!(differences.len(), scenario.exchange_count(), "{}: {differences:#?}", scenario.name);
        let rules = Rules { ignored_headers: vec!["server".to_owned()] };
        assert_eq!(patient.replay(&endpoint, "", &rules), Vec::<String>::new(), "{}", scenario.name);
    }
}

#[test]
fn a_replay_leaves_nothing_behind() {
    let server = TestServer::start();
    let endpoint = Endpoint::parse(&server.base(), Credentials::emulator()).unwrap();
    let properties = || {
        let request =
            testkit::Request::get("/?restype=service&comp=properties").header("Accept", "application/xml");
        server.send(request).expect(200).text().to_owned()
    };
    let before = properties();
    for scenario in scenarios().iter().filter(|scenario| scenario.changes_settings) {
        scenario.replay(&endpoint, "", &Rules::default());
    }
    assert_eq!(properties(), before);
    for scenario in scenarios() {
        scenario.replay(&endpoint, "", &Rules::default());
    }
    let tables = server.send(testkit::Request::get("/Tables")).expect(200).json();
    assert_eq!(tables["value"], serde_json::json!([]));
}
