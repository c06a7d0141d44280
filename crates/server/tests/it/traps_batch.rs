//! Batches that emulators get wrong: rollback, the reported status and index, and the spelling of URLs.

use testkit::{Batch, Request, Response, Style, TestServer, batch_parts, entity_json, entity_path};

const ANY: [(&str, &str); 1] = [("If-Match", "*")];
const WRONG: [(&str, &str); 1] = [("If-Match", "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"")];

fn path(row: &str) -> String {
    entity_path("mytable", "p", row)
}

fn with_rows(rows: &[&str]) -> TestServer {
    let server = TestServer::with_table("mytable");
    for row in rows {
        server.insert("mytable", "p", row, r#""x":1,"y":"kept""#);
    }
    server
}

/// Sends a batch that fails and returns its only part.
#[track_caller]
fn failure(server: &TestServer, batch: &Batch) -> Response {
    let response = server.send(batch.request());
    let mut parts = batch_parts(&response);
    assert_eq!(parts.len(), 1, "{response:?}");
    parts.remove(0)
}

#[test]
fn a_failed_batch_undoes_replace_merge_delete_and_upsert() {
    let server = with_rows(&["replaced", "merged", "deleted", "taken"]);
    let all = || server.send(Request::get("/mytable()")).expect(200).text().to_owned();
    let before = all();
    let batch = Batch::new()
        .operation("PUT", &path("replaced"), &ANY, Some(r#"{"x":2}"#))
        .operation("MERGE", &path("merged"), &ANY, Some(r#"{"x":2}"#))
        .operation("DELETE", &path("deleted"), &ANY, None)
        .operation("PUT", &path("new"), &[], Some(r#"{"x":2}"#))
        .operation("PATCH", &path("new too"), &[], Some(r#"{"x":2}"#))
        .insert("mytable", &entity_json("p", "taken", ""));
    let part = failure(&server, &batch);
    part.expect_message(409, "EntityAlreadyExists", "5:The specified entity already exists.");
    // Timestamps and ETags are unchanged, too.
    assert_eq!(all(), before);
}

#[test]
fn the_index_is_that_of_the_failing_operation_for_every_kind_of_failure() {
    let server = with_rows(&["there"]);
    let check = |method: &str,
                 row: &str,
                 headers: &[(&str, &str)],
                 json: Option<&str>,
                 status: u16,
                 text: &str| {
        for index in [0, 1, 4] {
            let mut batch = Batch::new();
            for number in 0..5 {
                batch = match number == index {
                    true if method == "POST" => batch.insert("mytable", &entity_json("p", row, "")),
                    true => batch.operation(method, &path(row), headers, json),
                    false => batch.operation("PUT", &path(&format!("fine{number}")), &[], Some("{}")),
                };
            }
            let part = failure(&server, &batch);
            assert_eq!((part.status, part.error_message()), (status, format!("{index}:{text}")), "{method}");
        }
    };
    let absent = "The specified resource does not exist.";
    let differs = "The update condition specified in the request was not satisfied.";
    check("POST", "there", &[], None, 409, "The specified entity already exists.");
    check("PUT", "absent", &ANY, Some("{}"), 404, absent);
    check("MERGE", "absent", &ANY, Some("{}"), 404, absent);
    check("PATCH", "absent", &ANY, Some("{}"), 404, absent);
    check("DELETE", "absent", &ANY, None, 404, absent);
    check("PUT", "there", &WRONG, Some("{}"), 412, differs);
    check("MERGE", "there", &WRONG, Some("{}"), 412, differs);
    check("DELETE", "there", &WRONG, None, 412, differs);
    assert_eq!(server.send(Request::get("/mytable()")).json()["value"].as_array().unwrap().len(), 1);
}

#[test]
fn if_match_counts_inside_a_batch_for_every_verb() {
    let server = with_rows(&["put", "merge", "patch", "delete"]);
    let etag = |row: &str| server.get("mytable", "p", row).expect(200).required("ETag").to_owned();
    let stale: Vec<String> = ["put", "merge", "patch", "delete"].map(etag).into();
    let batch = |etags: &[String]| {
        let conditions: Vec<[(&str, &str); 1]> =
            etags.iter().map(|etag| [("If-Match", etag.as_str())]).collect();
        Batch::new()
            .operation("PUT", &path("put"), &conditions[0], Some(r#"{"x":2}"#))
            .operation("MERGE", &path("merge"), &conditions[1], Some(r#"{"x":2}"#))
            .operation("PATCH", &path("patch"), &conditions[2], Some(r#"{"x":2}"#))
            .operation("DELETE", &path("delete"), &conditions[3], None)
    };
    server.send(Request::merge(&path("delete")).json(r#"{"x":9}"#)).expect(204);
    failure(&server, &batch(&stale)).expect_error(412, "UpdateConditionNotSatisfied");
    let fresh: Vec<String> = ["put", "merge", "patch", "delete"].map(etag).into();
    let parts = batch_parts(&server.send(batch(&fresh).request()));
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204; 4]);
    for (part, row) in parts.iter().zip(["put", "merge", "patch"]) {
        assert_eq!(part.required("ETag"), etag(row), "{row}");
        assert_ne!(part.required("ETag"), stale[0], "{row}");
    }
    server.get("mytable", "p", "delete").expect(404);
}

#[test]
fn what_exists_is_409_and_what_comes_twice_is_400() {
    let server = with_rows(&["taken"]);
    let insert = |row: &str| entity_json("p", row, "");
    let batch = Batch::new().insert("mytable", &insert("free")).insert("mytable", &insert("taken"));
    failure(&server, &batch).expect_error(409, "EntityAlreadyExists");
    let batch = Batch::new().insert("mytable", &insert("free")).insert("mytable", &insert("free"));
    failure(&server, &batch).expect_error(400, "InvalidDuplicateRow");
    // With both mistakes the duplicate is reported: the whole batch is checked before any of it is carried out.
    let batch = Batch::new().insert("mytable", &insert("taken")).insert("mytable", &insert("taken"));
    failure(&server, &batch).expect_message(
        400,
        "InvalidDuplicateRow",
        "1:The batch request contains multiple changes with same row key. An entity can appear only once in a batch \
         request.",
    );
    server.get("mytable", "p", "free").expect(404);
}

#[test]
fn a_row_that_comes_twice_is_noticed_in_every_spelling() {
    let server = with_rows(&["a b"]);
    let spellings = [
        "/mytable(PartitionKey='p',RowKey='a%20b')",
        "/mytable(PartitionKey=%27p%27,RowKey=%27%61%20%62%27)",
        "/MYTABLE(RowKey='a%20b',PartitionKey='p')",
    ];
    for first in spellings {
        for second in spellings {
            let batch = Batch::new()
                .operation("MERGE", first, &[], Some("{}"))
                .operation("DELETE", second, &ANY, None);
            failure(&server, &batch).expect_error(400, "InvalidDuplicateRow");
        }
    }
    // Row keys that differ only in case name two rows.
    let batch = Batch::new().insert("mytable", &entity_json("p", "A B", "")).operation(
        "DELETE",
        spellings[0],
        &ANY,
        None,
    );
    assert_eq!(batch_parts(&server.send(batch.request())).len(), 2);
}

#[test]
fn partitions_that_differ_in_case_only_are_two() {
    let server = with_rows(&[]);
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "1", ""))
        .insert("mytable", &entity_json("P", "2", ""));
    let part = failure(&server, &batch);
    let message = "1:All commands in a batch must operate on same entity group.";
    part.expect_message(400, "CommandsInBatchActOnDifferentPartitions", message);
    server.get("mytable", "p", "1").expect(404);
}

/// A batch of one insert with this URL.
fn with_url(url: &str, row: &str) -> Request {
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\r\nPOST {url} HTTP/1.1\r\nContent-Type: application/json\r\n\
         Prefer: return-no-content\r\n\r\n{}\r\n--c--\r\n--b--\r\n",
        entity_json("p", row, "")
    );
    Request::post("/$batch").body("multipart/mixed; boundary=b", body)
}

#[test]
fn a_batch_to_a_host_has_urls_of_that_host() {
    let server = with_rows(&[]);
    let host = "devstoreaccount1.table.core.windows.net";
    for (row, url) in [
        "http://devstoreaccount1.table.core.windows.net/mytable",
        "https://devstoreaccount1.table.core.windows.net/mytable",
        "https://devstoreaccount1.table.core.windows.net:443/mytable()",
        "/mytable",
        "mytable",
    ]
    .into_iter()
    .enumerate()
    {
        let request = with_url(url, &row.to_string()).style(Style::Host(host.to_owned()));
        let parts = batch_parts(&server.send(request));
        let location = format!("http://{host}/mytable(PartitionKey='p',RowKey='{row}')");
        assert_eq!((parts[0].status, parts[0].header("Location")), (204, Some(location.as_str())), "{url}");
    }
}

#[test]
fn a_batch_to_a_path_may_have_urls_of_another_host() {
    let server = with_rows(&[]);
    // Such URLs arrive through a proxy that maps its own host name to the emulator's address.
    for (row, url) in [
        "https://devstoreaccount1.table.core.windows.net/devstoreaccount1/mytable",
        "http://azurite:10002/devstoreaccount1/mytable",
        "http://localhost/devstoreaccount1/mytable",
        "http://[::1]:10002/devstoreaccount1/mytable",
    ]
    .into_iter()
    .enumerate()
    {
        let parts = batch_parts(&server.send(with_url(url, &row.to_string())));
        assert_eq!(parts[0].status, 204, "{url}");
        let location = format!("{}/mytable(PartitionKey='p',RowKey='{row}')", server.base());
        assert_eq!(parts[0].header("Location"), Some(location.as_str()), "the outer request's host is told");
    }
}

#[test]
fn a_full_batch_of_large_rows_fits_and_comes_back() {
    let server = with_rows(&[]);
    let large = format!("\"x\":\"{}\"", "x".repeat(32_768));
    let mut batch = Batch::new();
    for row in 0..100 {
        batch = batch.insert("mytable", &entity_json("p", &format!("{row:02}"), &large));
    }
    let parts = batch_parts(&server.send(batch.request()));
    assert_eq!(parts.iter().filter(|part| part.status == 204).count(), 100);
    for row in ["00", "50", "99"] {
        assert_eq!(server.get("mytable", "p", row).json()["x"].as_str().map(str::len), Some(32_768));
    }
}
