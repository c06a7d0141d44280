//! Keys with awkward characters in the places that emulators forget (batches, filters, continuation), and paging while
//! other clients write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::{Batch, Request, Response, TestServer, batch_parts, entity_json, entity_path};

const AWKWARD: [&str; 16] = [
    "",
    " ",
    "'",
    "''",
    "%",
    "%27",
    "%2F",
    "a+b",
    "a b",
    "&",
    "=",
    ",",
    "a,b='c'",
    "日本語",
    "😀",
    "\u{E000}é",
];

type Key = (String, String);

fn keys(response: &Response) -> Vec<Key> {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}")).iter();
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.map(|row| (text(row, "PartitionKey"), text(row, "RowKey"))).collect()
}

/// The request for the next page, if there is one.
fn following(request: &Request, response: &Response) -> Option<Request> {
    let partition = response.header("x-ms-continuation-NextPartitionKey")?;
    let row = response.required("x-ms-continuation-NextRowKey");
    Some(request.clone().query("NextPartitionKey", partition).query("NextRowKey", row))
}

/// All rows of a query, page by page.
fn all(server: &TestServer, request: &Request) -> Vec<Key> {
    let mut response = server.send(request.clone()).expect(200);
    let mut seen = keys(&response);
    while let Some(next) = following(request, &response) {
        response = server.send(next).expect(200);
        seen.extend(keys(&response));
        assert!(seen.len() < 20_000, "the pages do not end");
    }
    seen
}

fn ordinal(keys: &mut [Key]) {
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    keys.sort_by_key(|(partition, row)| (units(partition), units(row)));
}

#[test]
fn awkward_keys_work_in_every_verb_of_a_batch() {
    let server = TestServer::with_table("mytable");
    let any = [("If-Match", "*")];
    for key in AWKWARD {
        let path = |row: &str| entity_path("mytable", key, row);
        let batch = Batch::new()
            .insert("mytable", &entity_json(key, key, r#""x":1"#))
            .operation("PUT", &path("put"), &[], Some(r#"{"x":1}"#))
            .operation("MERGE", &path("merge"), &[], Some(r#"{"x":1}"#));
        let parts = batch_parts(&server.send(batch.request()));
        assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204; 3], "{key}");
        let location = parts[0].required("Location").strip_prefix(&server.base()).unwrap().to_owned();
        assert_eq!(server.send(Request::get(&location)).expect(200).json()["RowKey"], key);
        let batch = Batch::new()
            .operation("MERGE", &path(key), &any, Some(r#"{"y":2}"#))
            .operation("DELETE", &path("put"), &any, None)
            .operation("PATCH", &path("merge"), &any, Some(r#"{"y":2}"#));
        let parts = batch_parts(&server.send(batch.request()));
        assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204; 3], "{key}");
        let row = server.get("mytable", key, key).expect(200).json();
        assert_eq!((row["x"].as_i64(), row["y"].as_i64()), (Some(1), Some(2)), "{key}");
        let query = Batch::new().operation("GET", &path(key), &[], None);
        assert_eq!(batch_parts(&server.send(query.query_request()))[0].json()["RowKey"], key);
    }
}

#[test]
fn awkward_keys_work_in_every_comparison_of_a_filter() {
    let server = TestServer::with_table("mytable");
    let mut rows: Vec<Key> = AWKWARD.iter().map(|row| ("p".to_owned(), (*row).to_owned())).collect();
    for (partition, row) in &rows {
        server.insert("mytable", partition, row, "");
    }
    ordinal(&mut rows);
    for (at, (_, row)) in rows.iter().enumerate() {
        let quoted = row.replace('\'', "''");
        for (operator, expected) in [
            ("eq", &rows[at..=at]),
            ("lt", &rows[..at]),
            ("le", &rows[..=at]),
            ("gt", &rows[at + 1..]),
            ("ge", &rows[at..]),
        ] {
            let filter = format!("PartitionKey eq 'p' and RowKey {operator} '{quoted}'");
            let request = Request::get("/mytable()").query("$filter", &filter);
            assert_eq!(all(&server, &request), expected, "{filter}");
        }
    }
}

#[test]
fn awkward_keys_are_neither_skipped_nor_repeated_at_any_page_size() {
    let server = TestServer::with_table("mytable");
    let mut expected = Vec::new();
    for partition in AWKWARD {
        for row in AWKWARD {
            server.insert("mytable", partition, row, "");
            expected.push((partition.to_owned(), row.to_owned()));
        }
    }
    ordinal(&mut expected);
    for top in ["1", "3", "16", "17", "255", "256"] {
        assert_eq!(all(&server, &Request::get("/mytable()").query("$top", top)), expected, "$top={top}");
    }
    let request =
        Request::get("/mytable()").query("$top", "5").query("$filter", "RowKey ge 'a' and RowKey lt '日'");
    let wanted: Vec<Key> = expected
        .iter()
        .filter(|(_, row)| ["a b", "a+b", "a,b='c'"].contains(&row.as_str()))
        .cloned()
        .collect();
    assert_eq!(all(&server, &request), wanted);
}

#[test]
fn an_empty_key_is_a_key_like_any_other() {
    let server = TestServer::with_table("mytable");
    for (partition, row) in [("", ""), ("", "r"), ("p", ""), ("p", "r")] {
        server.insert("mytable", partition, row, "");
    }
    let check = |filter: &str, expected: &[(&str, &str)]| {
        let request = Request::get("/mytable()").query("$top", "1").query("$filter", filter);
        let expected: Vec<Key> = expected.iter().map(|(p, r)| ((*p).to_owned(), (*r).to_owned())).collect();
        assert_eq!(all(&server, &request), expected, "{filter}");
    };
    check("PartitionKey eq '' and RowKey eq ''", &[("", "")]);
    check("PartitionKey eq ''", &[("", ""), ("", "r")]);
    check("RowKey eq ''", &[("", ""), ("p", "")]);
    check("PartitionKey gt ''", &[("p", ""), ("p", "r")]);
    check("RowKey ne ''", &[("", "r"), ("p", "r")]);
    check("PartitionKey le ''", &[("", ""), ("", "r")]);
    let path = "/mytable(PartitionKey='',RowKey='')";
    server.send(Request::merge(path).header("If-Match", "*").json(r#"{"x":1}"#)).expect(204);
    assert_eq!(server.send(Request::get(path)).expect(200).json()["x"], 1);
    server.send(Request::delete(path).header("If-Match", "*")).expect(204);
    check("PartitionKey eq ''", &[("", "r")]);
}

#[test]
fn forbidden_characters_are_refused_on_the_way_in_and_harmless_in_a_filter() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "p", "r", "");
    for forbidden in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\nb", "a\u{7f}b", "a\u{9f}b"] {
        let batch = Batch::new()
            .insert("mytable", &entity_json("p", "fine", ""))
            .insert("mytable", &entity_json("p", forbidden, ""));
        let part = batch_parts(&server.send(batch.request())).remove(0);
        let message = format!("1:The 'RowKey' parameter of value '{forbidden}' is out of range.");
        part.expect_message(400, "OutOfRangeInput", &message);
        // No such key can exist, but a filter may ask for it.
        let filter = format!("RowKey eq '{forbidden}' or RowKey eq 'r'");
        let request = Request::get("/mytable()").query("$filter", &filter);
        assert_eq!(keys(&server.send(request).expect(200)).len(), 1, "{forbidden:?}");
    }
    server.get("mytable", "p", "fine").expect(404);
}

/// The rows `k…` stay while others appear and disappear around them.
#[test]
fn pages_skip_and_repeat_nothing_while_others_insert_and_delete() {
    let server = TestServer::with_table("mytable");
    let mut kept = Vec::new();
    for partition in ["a", "é", "日"] {
        let mut batch = Batch::new();
        for row in 0..50 {
            kept.push((partition.to_owned(), format!("k{row:03}")));
            batch = batch.insert("mytable", &entity_json(partition, &format!("k{row:03}"), ""));
        }
        assert_eq!(batch_parts(&server.send(batch.request())).len(), 50);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (writer, partition) in ["a", "é", "日"].into_iter().enumerate() {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.connect();
                for number in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    // Between the rows that stay, before all of them and after all of them.
                    let row = format!("{}x{writer}", ["k0", "k024", "", "z"][number % 4]);
                    let path = entity_path("mytable", partition, &row);
                    let write = match number % 8 {
                        0..4 => Request::put(&path).json("{}"),
                        _ => Request::delete(&path).header("If-Match", "*"),
                    };
                    let status = client.exchange(&server.bytes_of(&write)).unwrap().status;
                    assert_eq!(status, 204, "{number}");
                }
            });
        }
        let reader = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for top in ["1", "2", "7", "49", "50", "51"] {
                let seen = all(&server, &Request::get("/mytable()").query("$top", top));
                let distinct: BTreeSet<&Key> = seen.iter().collect();
                assert_eq!(distinct.len(), seen.len(), "$top={top}: a row came twice");
                let mut sorted = seen.clone();
                ordinal(&mut sorted);
                assert_eq!(sorted, seen, "$top={top}: out of order");
                let stayed: Vec<Key> = seen.into_iter().filter(|(_, row)| !row.contains('x')).collect();
                assert_eq!(stayed, kept, "$top={top}: a row was skipped");
            }
        }));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = reader {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_token_is_good_over_another_connection_and_after_every_row_of_its_page_is_gone() {
    let server = TestServer::with_table("mytable");
    for row in 0..10 {
        server.insert("mytable", "O'Brien & 日", &format!("{row} +%"), "");
    }
    let request =
        Request::get("/mytable()").query("$top", "4").query("$filter", "PartitionKey eq 'O''Brien & 日'");
    let first = server.send(request.clone()).expect(200);
    let next = following(&request, &first).unwrap();
    for row in 0..6 {
        let path = entity_path("mytable", "O'Brien & 日", &format!("{row} +%"));
        server.send(Request::delete(&path).header("If-Match", "*")).expect(204);
    }
    let response = server.connect().exchange(&server.bytes_of(&next)).unwrap();
    let rows: Vec<String> = keys(&response).into_iter().map(|(_, row)| row).collect();
    assert_eq!(rows, ["6 +%", "7 +%", "8 +%", "9 +%"]);
}
