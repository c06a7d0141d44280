//! Keys: quoting and encoding in every position (§1.3), forbidden characters (§4.5), order.

use serde_json::json;
use testkit::{Request, Response, TestServer, entity_json, entity_path, percent_encode};

const ODD_KEYS: [&str; 30] = [
    "",
    "O'Brien",
    "'",
    "''",
    "a b",
    " ",
    " lead",
    "trail ",
    "ü",
    "100%",
    "%",
    "%27",
    "%2F",
    "a+b",
    "..",
    ".",
    "\"",
    "&",
    "=",
    "a&b=c",
    ":",
    "日本",
    "😀",
    "a,b",
    "(x)",
    "~!*",
    "PartitionKey='x',RowKey='y'",
    "$batch",
    "{}",
    "a;b@c|d^e`f<g>",
];

fn rows(response: &Response) -> Vec<(String, String)> {
    let body = response.json();
    let rows = body["value"].as_array().unwrap_or_else(|| panic!("not a list:\n{response:?}"));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["PartitionKey"]), text(&row["RowKey"]))).collect()
}

#[test]
fn any_legal_key_works_in_every_operation() {
    let server = TestServer::with_table("mytable");
    for key in ODD_KEYS {
        for (partition, row) in [(key, "r"), ("p", key), (key, key)] {
            let path = entity_path("mytable", partition, row);
            let inserted = server.insert("mytable", partition, row, r#""x":1"#);
            assert_eq!(inserted.json()["PartitionKey"], partition);
            assert_eq!(inserted.json()["RowKey"], row);
            let location = inserted.required("Location").strip_prefix(&server.base()).unwrap().to_owned();
            server.send(Request::get(&location)).expect(200);

            let read = server.send(Request::get(&path)).expect(200);
            assert_eq!(read.json()["RowKey"], row);
            let quoted = |text: &str| text.replace('\'', "''");
            let filter = format!("PartitionKey eq '{}' and RowKey eq '{}'", quoted(partition), quoted(row));
            let list = server.send(Request::get("/mytable()").query("$filter", &filter)).expect(200);
            assert_eq!(rows(&list), [(partition.to_owned(), row.to_owned())], "{filter}");

            server.send(Request::put(&path).header("If-Match", "*").json(r#"{"x":2}"#)).expect(204);
            server.send(Request::merge(&path).header("If-Match", "*").json(r#"{"y":3}"#)).expect(204);
            let body = server.send(Request::get(&path)).expect(200).json();
            assert_eq!((&body["x"], &body["y"]), (&json!(2), &json!(3)));
            server.send(Request::delete(&path).header("If-Match", "*")).expect(204);
            server.send(Request::get(&path)).expect(404);
        }
    }
}

#[test]
fn any_legal_key_survives_continuation() {
    let server = TestServer::with_table("mytable");
    let mut expected = Vec::new();
    for partition in ODD_KEYS {
        for row in ["", "O'Brien %20+", "😀"] {
            server.insert("mytable", partition, row, "");
            expected.push((partition.to_owned(), row.to_owned()));
        }
    }
    let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
    expected.sort_by_key(|(partition, row)| (units(partition), units(row)));
    let mut seen = Vec::new();
    let mut request = Request::get("/mytable()").query("$top", "1");
    loop {
        let response = server.send(request).expect(200);
        seen.extend(rows(&response));
        let Some(partition) = response.header("x-ms-continuation-NextPartitionKey") else { break };
        assert!(partition.bytes().all(|byte| byte.is_ascii_graphic()), "{partition}");
        request = Request::get("/mytable()").query("$top", "1").query("NextPartitionKey", partition);
        request = request.query("NextRowKey", response.required("x-ms-continuation-NextRowKey"));
        assert!(seen.len() <= expected.len(), "the pages do not end");
    }
    assert_eq!(seen, expected);
}

#[test]
fn links_double_quotes_and_encode_the_rest() {
    let server = TestServer::with_table("mytable");
    let check = |partition: &str, written: &str| {
        let response = server.insert("mytable", partition, "row1", "");
        let expected = format!("{}/mytable(PartitionKey='{written}',RowKey='row1')", server.base());
        assert_eq!(response.required("Location"), expected);
        let accept = "application/json;odata=fullmetadata";
        let path = entity_path("mytable", partition, "row1");
        let body = server.send(Request::get(&path).header("Accept", accept)).expect(200).json();
        assert_eq!(body["odata.id"], expected);
        assert_eq!(body["odata.editLink"], format!("mytable(PartitionKey='{written}',RowKey='row1')"));
    };
    check("partition1-ô- -'-\"-%20-%27-pk", "partition1-%C3%B4-%20-''-%22-%2520-%2527-pk");
    check("a:b", "a%3Ab");
    check("-_.~()*!", "-_.~()*!");
    check("", "");
    check("a+b&c=d,e;f@g$", "a%2Bb%26c%3Dd%2Ce%3Bf%40g%24");
    check("日", "%E6%97%A5");
    check("😀", "%F0%9F%98%80");
}

#[test]
fn many_spellings_name_the_same_entity() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "a+b c", "O'B", r#""x":1"#);
    for path in [
        "/mytable(PartitionKey='a+b%20c',RowKey='O''B')",
        "/mytable(PartitionKey='a%2Bb%20c',RowKey='O''B')",
        "/mytable(PartitionKey=%27a%2Bb%20c%27,RowKey=%27O%27%27B%27)",
        "/mytable%28PartitionKey='a+b%20c',RowKey='O''B'%29",
        "/mytable(PartitionKey%3D'a+b%20c'%2CRowKey='O''B')",
        "/mytable(PartitionKey='a+b%20c',%20RowKey='O''B')",
        "/mytable(RowKey='O''B',PartitionKey='a+b%20c')",
        "/m%79table(PartitionKey='%61+b%20c',RowKey='%4F''B')",
    ] {
        let response = server.send(Request::get(path));
        assert_eq!(response.status, 200, "{path}\n{response:?}");
    }
    for path in
        ["/mytable(PartitionKey='a%20b%20c',RowKey='O''B')", "/mytable(PartitionKey='a+b+c',RowKey='O''B')"]
    {
        server.send(Request::get(path)).expect_error(404, "ResourceNotFound");
    }
}

#[test]
fn paths_are_decoded_once() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "%27", "%2F", "");
    server.send(Request::get("/mytable(PartitionKey='%2527',RowKey='%252F')")).expect(200);
    server.send(Request::get("/mytable(PartitionKey='%252527',RowKey='%252F')")).expect(404);
}

#[test]
fn dots_are_keys_not_directories() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "..", ".", "");
    for path in ["/mytable(PartitionKey='..',RowKey='.')", "/mytable(PartitionKey='%2E%2E',RowKey='%2e')"] {
        server.send(Request::get(path)).expect(200);
    }
}

#[test]
fn key_predicates_that_cannot_be_read_are_refused() {
    let server = TestServer::with_table("mytable");
    for path in [
        "/mytable(PartitionKey='a,RowKey='b')",
        "/mytable(PartitionKey='a',RowKey='b'",
        "/mytable(PartitionKey='a',RowKey=b)",
        "/mytable(PartitionKey=a,RowKey=b)",
        "/mytable(PartitionKey=\"a\",RowKey=\"b\")",
        "/mytable(partitionkey='a',rowkey='b')",
        "/mytable(PartitionKey='a',PartitionKey='b')",
        "/mytable(PartitionKey='a',RowKey='b',x='c')",
        "/mytable(PartitionKey='a',RowKey='b')x",
        "/mytable(PartitionKey='a'RowKey='b')",
        "/mytable('a','b')",
        "/mytable('a')",
        "/mytable(PartitionKey='a')",
        "/mytable(RowKey='a')",
        "/mytable(PartitionKey='a%zz',RowKey='b')",
        "/mytable(PartitionKey='a%',RowKey='b')",
        "/mytable(PartitionKey='%FF',RowKey='b')",
    ] {
        let response = server.send(Request::get(path));
        assert_eq!(response.status, 400, "{path}\n{response:?}");
    }
    let message = "The number of keys specified in the URI does not match number of key properties for the resource \
                   'devstoreaccount1.mytable'.";
    for path in ["/mytable(PartitionKey='a')", "/mytable('a')"] {
        server.send(Request::get(path)).expect_message(400, "InvalidInput", message);
    }
}

fn forbidden() -> Vec<char> {
    let mut all = vec!['/', '\\', '#', '?'];
    all.extend((0..0x20).chain(0x7f..0xa0).map(|code| char::from_u32(code).unwrap()));
    all
}

#[test]
fn forbidden_characters_in_a_body_are_out_of_range() {
    let server = TestServer::with_table("mytable");
    for forbidden in forbidden() {
        let key = format!("a{forbidden}b");
        for (name, partition, row) in [("PartitionKey", key.as_str(), "r"), ("RowKey", "p", key.as_str())] {
            let response = server.send(Request::post("/mytable").json(&entity_json(partition, row, "")));
            let message = format!("The '{name}' parameter of value '{key}' is out of range.");
            response.expect_message(400, "OutOfRangeInput", &message);
        }
    }
    for allowed in ['\u{a0}', '~', '!', '\u{e000}', '\u{ffff}', '\u{10ffff}'] {
        server.insert("mytable", &format!("a{allowed}b"), "r", "");
    }
}

#[test]
fn slashes_in_a_url_key_are_syntax_errors() {
    let server = TestServer::with_table("mytable");
    let message = "Bad Request - Error in query syntax.";
    for key in ["a%2Fb", "a%5Cb", "a/b", "a%2fb"] {
        for path in [
            format!("/mytable(PartitionKey='{key}',RowKey='r')"),
            format!("/mytable(PartitionKey='p',RowKey='{key}')"),
        ] {
            server.send(Request::get(&path)).expect_message(400, "InvalidInput", message);
            server.send(Request::put(&path).json("{}")).expect_message(400, "InvalidInput", message);
            server.send(Request::delete(&path).header("If-Match", "*")).expect_message(
                400,
                "InvalidInput",
                message,
            );
        }
    }
}

#[test]
fn other_forbidden_characters_in_a_url_key_are_refused_on_writes_and_absent_on_reads() {
    let server = TestServer::with_table("mytable");
    let message = "One of the request inputs is out of range.";
    for key in ["a%23b", "a%3Fb", "a%C2%80b", "a%C2%9Fb"] {
        let path = format!("/mytable(PartitionKey='{key}',RowKey='r')");
        server.send(Request::get(&path)).expect_error(404, "ResourceNotFound");
        for request in [
            Request::put(&path).json("{}"),
            Request::put(&path).json("{}").header("If-Match", "*"),
            Request::merge(&path).json("{}"),
            Request::patch(&path).json("{}"),
            Request::delete(&path).header("If-Match", "*"),
        ] {
            server.send(request).expect_message(400, "OutOfRangeInput", message);
        }
    }
}

#[test]
fn control_characters_in_a_url_are_refused() {
    let server = TestServer::with_table("mytable");
    for code in (0..0x20).chain([0x7f]) {
        let path = format!("/mytable(PartitionKey='a%{code:02X}b',RowKey='r')");
        assert_eq!(server.send(Request::put(&path).json("{}")).status, 400, "{path}");
    }
}

#[test]
fn a_bad_key_in_the_body_is_noticed_before_a_missing_table() {
    let server = TestServer::start();
    let request = Request::post("/absent").json(&entity_json("a/b", "r", ""));
    server.send(request).expect_error(400, "OutOfRangeInput");
}

#[test]
fn rows_come_in_ordinal_order_of_utf16_units() {
    let server = TestServer::with_table("mytable");
    let sorted = [
        "",
        "10",
        "2",
        "B",
        "a",
        "b",
        "bB",
        "partition-1",
        "partition-10",
        "partition-2",
        "é",
        "日",
        "\u{D7FF}",
        "\u{1F600}",
        "\u{10FFFF}",
        "\u{E000}",
        "\u{FFFD}",
    ];
    for key in sorted.iter().rev() {
        server.insert("mytable", key, "r", "");
        server.insert("mytable", "p", key, "");
    }
    let all = rows(&server.send(Request::get("/mytable()")).expect(200));
    let partitions: Vec<&str> =
        all.iter().filter(|(p, r)| r == "r" && p != "p").map(|(partition, _)| partition.as_str()).collect();
    assert_eq!(partitions, sorted);
    let in_partition = all.iter().filter(|(p, _)| p == "p").map(|(_, row)| row.as_str()).collect::<Vec<_>>();
    assert_eq!(in_partition, sorted);
    for (at, key) in sorted.iter().enumerate() {
        let filter = format!("PartitionKey eq 'p' and RowKey gt '{key}'");
        let response = server.send(Request::get(&format!("/mytable()?$filter={}", percent_encode(&filter))));
        let after: Vec<String> = rows(&response).into_iter().map(|(_, row)| row).collect();
        assert_eq!(after, sorted[at + 1..], "{filter}");
    }
}

#[test]
fn partitions_come_before_rows_in_the_order() {
    let server = TestServer::with_table("mytable");
    for (partition, row) in [("b", "1"), ("a", "2"), ("ab", "0"), ("a", "10"), ("", "9")] {
        server.insert("mytable", partition, row, "");
    }
    let seen = rows(&server.send(Request::get("/mytable()")));
    let expected = [("", "9"), ("a", "10"), ("a", "2"), ("ab", "0"), ("b", "1")];
    assert_eq!(seen, expected.map(|(partition, row)| (partition.to_owned(), row.to_owned())));
}
