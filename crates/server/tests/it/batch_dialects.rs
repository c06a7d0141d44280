//! How clients write batches (§7.1, §7.2, §7.5): each dialect byte by byte, and the lenient parsing it needs.

use testkit::{Request, Response, TestServer, batch_parts, entity_json};

fn send(server: &TestServer, boundary: &str, body: &str) -> Response {
    server.send(Request::post("/$batch").body(&format!("multipart/mixed; boundary={boundary}"), body))
}

fn with_rows(rows: &[&str]) -> TestServer {
    let server = TestServer::with_table("mytable");
    for row in rows {
        server.insert("mytable", "001", row, r#""age":1"#);
    }
    server
}

#[track_caller]
fn check_statuses(response: &Response, expected: &[u16]) {
    let statuses: Vec<u16> = batch_parts(response).iter().map(|part| part.status).collect();
    assert_eq!(statuses, expected, "{response:?}");
}

#[test]
fn dotnet_writes_absolute_urls_with_a_format() {
    let server = with_rows(&["r1", "r2"]);
    let body = "--batch_616548b3-821e-469b-ad66-3992afec6273\r\n\
        Content-Type: multipart/mixed; boundary=changeset_53128ca5-30e7-4efd-b1b7-cbb545032d84\r\n\
        \r\n\
        --changeset_53128ca5-30e7-4efd-b1b7-cbb545032d84\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        PATCH http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='001',RowKey='r1')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n\
        Host: 127.0.0.1\r\n\
        x-ms-version: 2019-02-02\r\n\
        DataServiceVersion: 3.0\r\n\
        If-Match: *\r\n\
        Accept: application/json\r\n\
        Content-Type: application/json\r\n\
        Content-Length: 46\r\n\
        \r\n\
        {\"PartitionKey\":\"001\",\"RowKey\":\"r1\",\"age\":40}\r\n\
        --changeset_53128ca5-30e7-4efd-b1b7-cbb545032d84\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        DELETE http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='001',RowKey='r2')?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n\
        Host: 127.0.0.1\r\n\
        If-Match: *\r\n\
        Accept: application/json;odata=minimalmetadata\r\n\
        \r\n\
        \r\n\
        --changeset_53128ca5-30e7-4efd-b1b7-cbb545032d84\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        POST http://127.0.0.1:10002/devstoreaccount1/mytable?$format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n\
        Prefer: return-no-content\r\n\
        Content-Type: application/json;odata=nometadata\r\n\
        \r\n\
        {\"PartitionKey\":\"001\",\"RowKey\":\"r3\",\"n\":\"5\",\"n@odata.type\":\"Edm.Int64\"}\r\n\
        --changeset_53128ca5-30e7-4efd-b1b7-cbb545032d84--\r\n\
        \r\n\
        --batch_616548b3-821e-469b-ad66-3992afec6273--\r\n";
    let response = send(&server, "batch_616548b3-821e-469b-ad66-3992afec6273", body);
    check_statuses(&response, &[204, 204, 204]);
    assert_eq!(server.get("mytable", "001", "r1").json()["age"], 40);
    server.get("mytable", "001", "r2").expect(404);
    assert_eq!(server.get("mytable", "001", "r3").json()["n"], "5");
}

#[test]
fn python_numbers_its_parts_outside_the_request() {
    let server = with_rows(&["r1"]);
    let body = "--batch_b1\r\n\
        Content-Type: multipart/mixed; boundary=changeset_c1\r\n\
        \r\n\
        --changeset_c1\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        Content-ID: 0\r\n\
        \r\n\
        PATCH http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='001',RowKey='r1') HTTP/1.1\r\n\
        x-ms-version: 2019-02-02\r\n\
        DataServiceVersion: 3.0\r\n\
        If-Match: *\r\n\
        Content-Type: application/json\r\n\
        Accept: application/json\r\n\
        Content-Length: 81\r\n\
        x-ms-date: Fri, 02 Oct 2020 22:48:03 GMT\r\n\
        Date: Fri, 02 Oct 2020 22:48:03 GMT\r\n\
        x-ms-client-request-id: aaaaaaaa\r\n\
        \r\n\
        {\"PartitionKey\": \"001\", \"PartitionKey@odata.type\": \"Edm.String\", \"RowKey\": \"r1\", \"RowKey@odata.type\": \"Edm.String\", \"age\": 41}\r\n\
        --changeset_c1\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        Content-ID: 1\r\n\
        \r\n\
        POST http://127.0.0.1:10002/devstoreaccount1/mytable HTTP/1.1\r\n\
        Prefer: return-no-content\r\n\
        Content-Type: application/json;odata=nometadata\r\n\
        Content-Length: 1\r\n\
        \r\n\
        {\"PartitionKey\": \"001\", \"RowKey\": \"r2\"}\r\n\
        --changeset_c1--\r\n\
        \r\n\
        --batch_b1--\r\n";
    let response = send(&server, "batch_b1", body);
    // Content-Length is wrong in both parts and is ignored: a part's body ends at the delimiter.
    check_statuses(&response, &[204, 204]);
    assert_eq!(server.get("mytable", "001", "r1").json()["age"], 41);
    server.get("mytable", "001", "r2").expect(200);
}

#[test]
fn javascript_writes_lower_case_headers_and_more_blank_lines() {
    let server = TestServer::with_table("mytable");
    server.insert("mytable", "", "", r#""value":"old""#);
    let body = "--batch_fakeId\r\n\
        content-type: multipart/mixed; boundary=changeset_fakeId\r\n\
        \r\n\
        \r\n\
        --changeset_fakeId\r\n\
        content-type: application/http\r\n\
        content-transfer-encoding: binary\r\n\
        \r\n\
        PATCH http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='',RowKey='') HTTP/1.1\r\n\
        Content-Type: application/json\r\n\
        DataServiceVersion: 3.0\r\n\
        Accept: application/json\r\n\
        If-Match: *\r\n\
        \r\n\
        \r\n\
        {\"PartitionKey\":\"\",\"RowKey\":\"\",\"value\":\"updated\"}\r\n\
        --changeset_fakeId\r\n\
        content-type: application/http\r\n\
        content-transfer-encoding: binary\r\n\
        \r\n\
        DELETE http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='',RowKey='absent') HTTP/1.1\r\n\
        If-Match: *\r\n\
        \r\n\
        \r\n\
        \r\n\
        --changeset_fakeId--\r\n\
        --batch_fakeId--\r\n";
    let response = send(&server, "batch_fakeId", body);
    let parts = batch_parts(&response);
    parts[0].clone().expect_message(404, "ResourceNotFound", "1:The specified resource does not exist.");
    let without_delete = format!(
        "{}--changeset_fakeId--\r\n--batch_fakeId--\r\n",
        &body[..body.rfind("--changeset_fakeId\r\n").unwrap()]
    );
    check_statuses(&send(&server, "batch_fakeId", &without_delete), &[204]);
    assert_eq!(server.get("mytable", "", "").json()["value"], "updated");
}

#[test]
fn go_orders_part_headers_by_name_and_escapes_paths() {
    let server = with_rows(&["r 1"]);
    let body = "--batch_g1\r\n\
        Content-Type: multipart/mixed; boundary=changeset_g1\r\n\
        \r\n\
        --changeset_g1\r\n\
        Content-Transfer-Encoding: binary\r\n\
        Content-Type: application/http\r\n\
        \r\n\
        PATCH http://127.0.0.1:10002/devstoreaccount1/mytable%28PartitionKey=%27001%27,RowKey=%27r%201%27%29?%24format=application%2Fjson%3Bodata%3Dminimalmetadata HTTP/1.1\r\n\
        Accept: application/json;odata=minimalmetadata\r\n\
        Content-Length: 10\r\n\
        Content-Type: application/json\r\n\
        Dataserviceversion: 3.0\r\n\
        If-Match: *\r\n\
        X-Ms-Version: 2019-02-02\r\n\
        \r\n\
        {\"age\":42}\r\n\
        --changeset_g1--\r\n\
        \r\n\
        --batch_g1--\r\n";
    check_statuses(&send(&server, "batch_g1", body), &[204]);
    assert_eq!(server.get("mytable", "001", "r 1").json()["age"], 42);
}

#[test]
fn java_leaves_out_the_version_and_sends_a_charset() {
    let server = with_rows(&["r1"]);
    let body = "--batch_j1\r\n\
        Content-Type: multipart/mixed; boundary=changeset_j1\r\n\
        \r\n\
        --changeset_j1\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        MERGE http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='001',RowKey='r1')\r\n\
        Accept: application/json;odata=minimalmetadata\r\n\
        Content-Type: application/json; charset=utf-8\r\n\
        If-Match: *\r\n\
        \r\n\
        {\"age\":43}\r\n\
        --changeset_j1--\r\n\
        --batch_j1--";
    check_statuses(&send(&server, "batch_j1", body), &[204]);
    assert_eq!(server.get("mytable", "001", "r1").json()["age"], 43);
}

#[test]
fn old_node_ends_lines_with_lf_and_embeds_content_ids() {
    let server = with_rows(&["r1"]);
    let body = "--batch_n1\n\
        content-type: multipart/mixed;charset=\"utf-8\";boundary=changeset_n1\n\
        \n\
        --changeset_n1\n\
        content-type: application/http\n\
        content-transfer-encoding: binary\n\
        \n\
        POST http://127.0.0.1:10002/devstoreaccount1/mytable HTTP/1.1\n\
        Prefer: return-no-content\n\
        Content-ID: 1\n\
        Content-Type: application/json;odata=nometadata\n\
        \n\
        {\"PartitionKey\":\"001\",\"RowKey\":\"r2\"}\n\
        --changeset_n1\n\
        content-type: application/http\n\
        content-transfer-encoding: binary\n\
        \n\
        PUT http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey=%27001%27,RowKey=%27r1%27) HTTP/1.1\n\
        Content-ID: 7\n\
        if-match: *\n\
        \n\
        {\"age\":44}\n\
        --changeset_n1--\n\
        --batch_n1--";
    let response = send(&server, "batch_n1", body);
    let parts = batch_parts(&response);
    for (part, id) in parts.iter().zip(["1", "7"]) {
        assert_eq!(part.status, 204);
        assert_eq!(part.headers[0], ("Content-ID".to_owned(), id.to_owned()), "first after the status line");
    }
    assert_eq!(server.get("mytable", "001", "r1").json()["age"], 44);
}

#[test]
fn content_ids_are_echoed_on_failures_too() {
    let server = with_rows(&["r1"]);
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n\
         POST /devstoreaccount1/mytable HTTP/1.1\r\nContent-ID: 12\r\nPrefer: return-no-content\r\n\r\n{}\r\n--c--\r\n--b--\r\n",
        entity_json("001", "r1", "")
    );
    let response = send(&server, "b", &body);
    let part = &batch_parts(&response)[0];
    assert_eq!((part.status, part.header("Content-ID")), (409, Some("12")));
}

/// A batch with one insert of `row`, written with the given pieces.
fn insert_with(url: &str, row: &str, end: &str) -> String {
    format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\
         Content-Transfer-Encoding: binary\r\n\r\nPOST {url} HTTP/1.1\r\nContent-Type: application/json\r\n\
         Prefer: return-no-content\r\n\r\n{}{end}",
        entity_json("001", row, "")
    )
}

#[test]
fn urls_may_be_absolute_or_path_absolute_or_relative() {
    let server = with_rows(&[]);
    let end = "\r\n--c--\r\n--b--\r\n";
    for (row, url) in [
        "http://127.0.0.1:10002/devstoreaccount1/mytable",
        "https://devstoreaccount1.table.core.windows.net/devstoreaccount1/mytable",
        "/devstoreaccount1/mytable",
        "mytable",
        "http://whatever:1/devstoreaccount1/mytable()",
        "http://127.0.0.1:10002/devstoreaccount1/mytable?sv=2019-02-02&sig=ignored",
        "http://127.0.0.1:10002/devstoreaccount1/MYTABLE",
    ]
    .into_iter()
    .enumerate()
    {
        let response = send(&server, "b", &insert_with(url, &row.to_string(), end));
        assert_eq!(response.status, 202, "{url}\n{response:?}");
        check_statuses(&response, &[204]);
        server.get("mytable", "001", &row.to_string()).expect(200);
    }
}

#[test]
fn final_delimiters_may_be_short_or_missing() {
    let server = with_rows(&[]);
    for (row, end) in [
        "\r\n--c--\r\n\r\n--b--\r\n",
        "\r\n--c--\r\n--b--\r\n",
        "\r\n--c--\r\n--b--",
        "\r\n--c--\r\n--b\r\n",
        "\r\n--c--\r\n\r\n",
        "\r\n--c--",
        "\r\n\r\n--c--\r\n\r\n\r\n--b--\r\n\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        let body = insert_with("/devstoreaccount1/mytable", &row.to_string(), end);
        let response = send(&server, "b", &body);
        assert_eq!(response.status, 202, "{end:?}\n{response:?}");
        check_statuses(&response, &[204]);
    }
}

#[test]
fn a_boundary_may_be_quoted() {
    let server = with_rows(&[]);
    let body = insert_with("/devstoreaccount1/mytable", "r", "\r\n--c--\r\n--b--\r\n");
    let body = body.replace("boundary=c", "boundary=\"c\"");
    for content_type in
        ["multipart/mixed; boundary=\"b\"", "Multipart/Mixed;BOUNDARY=b", "multipart/mixed;boundary=b; x=y"]
    {
        let response = server.send(Request::post("/$batch").body(content_type, body.clone()));
        assert_eq!(response.status, 202, "{content_type}\n{response:?}");
        assert_eq!(batch_parts(&response).len(), 1);
    }
}

#[test]
fn a_query_may_lack_everything_but_its_request_line() {
    let server = with_rows(&["r1"]);
    for (number, body) in [
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET http://127.0.0.1:10002/devstoreaccount1/mytable(PartitionKey='001',RowKey='r1') HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n--b--\r\n",
        "--b\r\nContent-Type: application/http\r\n\r\nGET /devstoreaccount1/mytable(PartitionKey='001',RowKey='r1') HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n",
        "--b\nContent-Type: application/http\n\nGET mytable(PartitionKey='001',RowKey='r1')\nAccept: application/json\n\n--b--",
    ]
    .into_iter()
    .enumerate()
    {
        let response = send(&server, "b", body);
        assert_eq!(response.status, 202, "{number}\n{response:?}");
        check_statuses(&response, &[200]);
    }
}

#[test]
fn the_dollar_of_batch_may_be_escaped() {
    let server = with_rows(&[]);
    let body = insert_with("/devstoreaccount1/mytable", "r", "\r\n--c--\r\n--b--\r\n");
    let response = server.send(Request::post("/%24batch").body("multipart/mixed; boundary=b", body));
    check_statuses(&response, &[204]);
}

#[test]
fn a_delimiter_inside_a_value_is_data() {
    let server = with_rows(&[]);
    let json = entity_json("001", "r", r#""x":"--c and \r\n--c-- and --b--""#);
    let body = format!(
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n\
         POST /devstoreaccount1/mytable HTTP/1.1\r\nPrefer: return-no-content\r\n\r\n{json}\r\n--c--\r\n--b--\r\n"
    );
    check_statuses(&send(&server, "b", &body), &[204]);
    assert_eq!(server.get("mytable", "001", "r").json()["x"], "--c and \r\n--c-- and --b--");
}
