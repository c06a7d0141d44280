//! Continuation (§5.8): pages in key order, tokens that outlive their row, and malformed tokens.

use testkit::{Batch, Request, Response, TestServer, batch_parts, entity_json, entity_path};

fn rows(response: &Response) -> Vec<String> {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}")).iter();
    rows.map(|row| format!("{}/{}", row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap()))
        .collect()
}

fn token(response: &Response) -> Option<(String, String)> {
    let partition = response.header("x-ms-continuation-NextPartitionKey")?;
    let row = response.required("x-ms-continuation-NextRowKey");
    for text in [partition, row] {
        assert!(!text.is_empty(), "a token is never empty");
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "a token has no blanks: {text}");
    }
    Some((partition.to_owned(), row.to_owned()))
}

fn next(target: &str, token: &(String, String)) -> Request {
    Request::get(target).query("NextPartitionKey", &token.0).query("NextRowKey", &token.1)
}

/// All pages of a query, each as a list of its rows.
fn pages(server: &TestServer, target: &str) -> Vec<Vec<String>> {
    let mut response = server.send(Request::get(target)).expect(200);
    let mut pages = vec![rows(&response)];
    while let Some(token) = token(&response) {
        response = server.send(next(target, &token)).expect(200);
        pages.push(rows(&response));
        assert!(pages.len() < 3000, "the pages do not end");
    }
    pages
}

/// 2,500 rows in three partitions, and their keys in order.
fn large() -> (TestServer, Vec<String>) {
    let server = TestServer::with_table("mytable");
    let mut expected = Vec::new();
    for (partition, count) in [("a", 800), ("b", 900), ("c", 800)] {
        for start in (0..count).step_by(100) {
            let mut batch = Batch::new();
            for number in start..start + 100 {
                let row = format!("{number:05}");
                batch = batch.insert("mytable", &entity_json(partition, &row, &format!("\"n\":{number}")));
                expected.push(format!("{partition}/{row}"));
            }
            let response = server.send(batch.request());
            assert!(batch_parts(&response).iter().all(|part| part.status == 204), "{response:?}");
        }
    }
    (server, expected)
}

#[test]
fn pages_hold_a_thousand_rows_and_miss_none() {
    let (server, expected) = large();
    let all = pages(&server, "/mytable()");
    assert_eq!(all.iter().map(Vec::len).filter(|length| *length > 0).collect::<Vec<_>>(), [1000, 1000, 500]);
    assert_eq!(all.concat(), expected);
    let all = pages(&server, "/mytable()?$top=700");
    assert!(all.iter().all(|page| page.len() <= 700));
    assert_eq!(all.concat(), expected);
    let all = pages(&server, "/mytable()?$top=1000&$filter=PartitionKey%20eq%20'b'").concat();
    assert_eq!(all, expected[800..1700]);
}

#[test]
fn each_page_may_come_from_another_front_end() {
    let (server, expected) = large();
    let changes = || server.pages_from_another_front_end();
    let before = changes();
    let all = pages(&server, "/mytable()?$top=300");
    assert_eq!(all.concat(), expected);
    if let Some(before) = before {
        assert_eq!(changes(), Some(before + all.len() - 1), "each page but the first");
    }
}

#[test]
fn a_filter_holds_on_every_page() {
    let (server, expected) = large();
    let all = pages(&server, "/mytable()?$top=7&$filter=n%20lt%2010");
    let wanted: Vec<_> = expected.iter().filter(|key| key[2..] < *"00010").cloned().collect();
    assert_eq!(all.concat(), wanted);
    assert!(all.iter().all(|page| page.len() <= 7));
    let all =
        pages(&server, "/mytable()?$top=100&$filter=PartitionKey%20ge%20'b'%20and%20RowKey%20ge%20'00790'");
    let wanted: Vec<_> = expected[800..].iter().filter(|key| key[2..] >= *"00790").cloned().collect();
    assert_eq!(all.concat(), wanted);
}

#[test]
fn the_token_of_a_deleted_row_goes_on_with_its_successor() {
    let server = TestServer::with_table("mytable");
    for row in ["1", "2", "3", "4"] {
        server.insert("mytable", "p", row, "");
    }
    let response = server.send(Request::get("/mytable()?$top=1")).expect(200);
    let token = token(&response).unwrap();
    for row in ["2", "3"] {
        server.send(Request::delete(&entity_path("mytable", "p", row)).header("If-Match", "*")).expect(204);
    }
    assert_eq!(rows(&server.send(next("/mytable()", &token))), ["p/4"]);
    server.send(Request::delete(&entity_path("mytable", "p", "4")).header("If-Match", "*")).expect(204);
    let response = server.send(next("/mytable()", &token)).expect(200);
    assert_eq!(rows(&response), Vec::<String>::new());
}

#[test]
fn rows_written_between_pages_are_seen_by_position() {
    let server = TestServer::with_table("mytable");
    for row in ["b", "d", "f"] {
        server.insert("mytable", "p", row, "");
    }
    let response = server.send(Request::get("/mytable()?$top=2")).expect(200);
    assert_eq!(rows(&response), ["p/b", "p/d"]);
    for row in ["a", "c", "e", "g"] {
        server.insert("mytable", "p", row, "");
    }
    let rest = rows(&server.send(next("/mytable()", &token(&response).unwrap())));
    assert!(rest.contains(&"p/f".to_owned()) && rest.contains(&"p/g".to_owned()), "{rest:?}");
    assert!(!rest.contains(&"p/a".to_owned()) && !rest.contains(&"p/c".to_owned()), "{rest:?}");
}

#[test]
fn a_partition_token_alone_starts_at_that_partition() {
    let server = TestServer::with_table("mytable");
    for partition in ["a", "b", "c"] {
        server.insert("mytable", partition, "1", "");
        server.insert("mytable", partition, "2", "");
    }
    // The token after three rows names the second row of partition b.
    let response = server.send(Request::get("/mytable()?$top=3")).expect(200);
    let (partition, _) = token(&response).unwrap();
    let response = server.send(Request::get("/mytable()").query("NextPartitionKey", &partition)).expect(200);
    assert_eq!(rows(&response), ["b/1", "b/2", "c/1", "c/2"]);
}

#[test]
fn malformed_tokens_are_refused() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "1", "");
    server.insert("mytable", "p", "2", "");
    let good = token(&server.send(Request::get("/mytable()?$top=1"))).unwrap();
    let message = "One of the request inputs is not valid.";
    for bad in ["", "x", "1!4!", "1!", "!", "7!8!U21pdGg-", "1!8!????????", "%", "1!x!U21pdGg-", "ü"] {
        let request = next("/mytable()", &(good.0.clone(), bad.to_owned()));
        let response = server.send(request);
        assert_eq!(response.status, 400, "NextRowKey={bad}\n{response:?}");
        response.expect_message(400, "InvalidInput", message);
        let request = next("/mytable()", &(bad.to_owned(), good.1.clone()));
        server.send(request).expect_message(400, "InvalidInput", message);
    }
}

#[test]
fn a_page_that_ends_the_data_has_no_token_or_one_to_an_empty_page() {
    let server = TestServer::with_table("mytable");
    for row in ["1", "2"] {
        server.insert("mytable", "p", row, "");
    }
    assert_eq!(pages(&server, "/mytable()?$top=2").concat(), ["p/1", "p/2"]);
    assert_eq!(token(&server.send(Request::get("/mytable()?$top=3"))), None);
}

#[test]
fn one_entity_never_has_a_continuation() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "1", "");
    server.insert("mytable", "p", "2", "");
    assert_eq!(token(&server.get("mytable", "p", "1")), None);
}

#[test]
fn a_page_is_bounded_in_bytes_too() {
    let server = TestServer::with_table("mytable");
    let big: String = (0..15).map(|number| format!(",\"p{number}\":\"{}\"", "x".repeat(30_000))).collect();
    let members = big.trim_start_matches(',');
    for row in 0..20 {
        server.insert("mytable", "p", &format!("{row:02}"), members);
    }
    // 20 entities of 450 KB exceed a page of 4 MiB, although they are far fewer than a thousand.
    let all = pages(&server, "/mytable()");
    assert!(all.len() > 1, "everything came in one page");
    assert_eq!(all.concat().len(), 20);
}
