//! `--fail-on-scan`: a scan is 400 `ScanRefused`, with the reason and the remedy; everything else is as ever.

use protocol::table::model::TableName;
use server::ScanRule;
use testkit::{Batch, Credentials, Request, Response, Sas, TestServer, batch_parts, entity_path};

fn server(rule: ScanRule) -> TestServer {
    let server = TestServer::options().scan_rule(rule).start();
    for table in ["people", "orders"] {
        server.create_table(table);
        server.insert(table, "p", "r", r#""Age":7"#);
    }
    server
}

fn list(server: &TestServer, table: &str, filter: &str) -> Response {
    let request = Request::get(&format!("/{table}()"));
    server.send(if filter.is_empty() { request } else { request.query("$filter", filter) })
}

#[test]
fn scans_are_refused_with_their_reason_and_a_remedy() {
    let server = server(ScanRule::for_all());
    for (filter, parts) in [
        ("", ["table scan", "no filter", "PartitionKey eq"]),
        ("Age gt 7", ["table scan", "Age gt Int32", "index_entities.md"]),
        ("RowKey eq 'secret'", ["table scan", "RowKey eq String", "PartitionKey eq"]),
        ("PartitionKey ge 'p'", ["partition range", "every partition of a range", "with eq"]),
        ("PartitionKey eq 'p' and Age gt 7", ["partition scan", "a whole partition", "RowKey"]),
        (
            "PartitionKey eq 'p' or PartitionKey eq 'q'",
            ["on the real service", "several keys", "one query for each"],
        ),
        ("PartitionKey eq 'p' and RowKey ne 'r'", ["on the real service", "several keys", "neighbours"]),
        (
            "PartitionKey eq 'p' and (RowKey eq 'r' or RowKey eq 's')",
            ["on the real service", "several keys", "compound_key.md"],
        ),
    ] {
        let response = list(&server, "people", filter).expect_error(400, "ScanRefused");
        let message = response.error_message();
        for part in parts.into_iter().chain(["'people'", "--fail-on-scan"]) {
            assert!(message.contains(part), "{filter}: {message}");
        }
        assert!(!message.contains("secret"), "values stay with the caller: {message}");
    }
}

#[test]
fn points_ranges_and_whole_partitions_are_answered() {
    let server = server(ScanRule::for_all());
    server.send(Request::get(&entity_path("people", "p", "r"))).expect(200);
    for filter in [
        "PartitionKey eq 'p' and RowKey eq 'r'",
        "PartitionKey eq 'p' and RowKey ge 'r'",
        "PartitionKey eq 'p' and RowKey ge 'r' and Age gt 1",
        "PartitionKey eq 'p'",
    ] {
        let found = list(&server, "people", filter).expect(200).json();
        assert_eq!(found["value"].as_array().map(Vec::len), Some(1), "{filter}");
    }
    server.send(Request::get("/Tables")).expect(200);
}

#[test]
fn a_list_of_tables_leaves_the_others_alone() {
    let people = TableName::parse("People").unwrap();
    let server = server(ScanRule::for_tables(&[people]));
    list(&server, "people", "").expect_error(400, "ScanRefused");
    list(&server, "orders", "").expect(200);
}

#[test]
fn a_missing_table_is_missed_first() {
    list(&server(ScanRule::for_all()), "nobody", "").expect_error(404, "TableNotFound");
}

#[test]
fn a_query_in_a_batch_is_refused_there() {
    let server = server(ScanRule::for_all());
    let batch = Batch::new().operation("GET", "/people()", &[], None);
    let response = server.send(batch.query_request()).expect(202);
    let part = batch_parts(&response).into_iter().next().unwrap();
    assert!(part.text().contains("ScanRefused"), "{}", part.text());
}

#[test]
fn a_signature_for_one_partition_scans_no_more_than_that() {
    let server = server(ScanRule::for_all());
    let sas = |range: &[(&str, &str)]| {
        let mut sas = Sas::table("2019-02-02", "people");
        for (name, value) in range {
            sas = sas.set(name, value);
        }
        sas.sign(&Credentials::emulator())
    };
    let ask = |token: &str| server.send(Request::get("/people()").sas(token));
    ask(&sas(&[("spk", "p"), ("epk", "p")])).expect(200);
    ask(&sas(&[("spk", "p"), ("epk", "q")])).expect_error(400, "ScanRefused");
    ask(&sas(&[])).expect_error(400, "ScanRefused");
}
