//! `--fail-on-scan`: a scan is 400 `ScanRefused`, with the reason and the remedy; everything else is as ever.

use protocol::table::model::TableName;
use server::ScanRule;
use testkit::{Batch, Request, Response, TestServer, batch_parts, entity_path};

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
        "PartitionKey eq 'p' and (RowKey eq 'r' or RowKey eq 's')",
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
