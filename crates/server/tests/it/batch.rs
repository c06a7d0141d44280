//! Entity group transactions: exact answers (§7.3 to §7.5), atomicity, and the headers of each operation.

use testkit::{Batch, Request, TestServer, batch_parts, entity_json, entity_path, mask};

const NO_CONTENT: [(&str, &str); 1] = [("Prefer", "return-no-content")];

fn with_rows(rows: &[&str]) -> TestServer {
    let server = TestServer::with_table("mytable");
    for row in rows {
        server.insert("mytable", "p", row, r#""x":1"#);
    }
    server
}

#[test]
fn a_successful_change_set_is_answered_byte_by_byte() {
    let server = with_rows(&["01", "02"]);
    let batch = Batch::new()
        .operation("POST", "/mytable", &NO_CONTENT, Some(&entity_json("p", "03", "")))
        .operation("PUT", &entity_path("mytable", "p", "01"), &[("If-Match", "*")], Some(r#"{"x":2}"#))
        .operation("DELETE", &entity_path("mytable", "p", "02"), &[("If-Match", "*")], None);
    let response = server.send(batch.request()).expect(202);
    assert_eq!(response.reason, "Accepted");
    assert_eq!(mask(response.required("Content-Type")), "multipart/mixed; boundary=batchresponse_GUID");
    assert_eq!(response.header("Cache-Control"), Some("no-cache"));
    assert_eq!(response.header("X-Content-Type-Options"), Some("nosniff"));
    let expected = "--batchresponse_GUID\r\n\
        Content-Type: multipart/mixed; boundary=changesetresponse_GUID\r\n\
        \r\n\
        --changesetresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 204 No Content\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        Preference-Applied: return-no-content\r\n\
        DataServiceVersion: 3.0;\r\n\
        Location: http://HOST/devstoreaccount1/mytable(PartitionKey='p',RowKey='03')\r\n\
        DataServiceId: http://HOST/devstoreaccount1/mytable(PartitionKey='p',RowKey='03')\r\n\
        ETag: W/\"datetime'TIME'\"\r\n\
        \r\n\
        \r\n\
        --changesetresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 204 No Content\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        DataServiceVersion: 1.0;\r\n\
        ETag: W/\"datetime'TIME'\"\r\n\
        \r\n\
        \r\n\
        --changesetresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 204 No Content\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        DataServiceVersion: 1.0;\r\n\
        \r\n\
        \r\n\
        --changesetresponse_GUID--\r\n\
        --batchresponse_GUID--\r\n";
    assert_eq!(mask(response.text()), expected);
    assert_eq!(server.get("mytable", "p", "01").json()["x"], 2);
    server.get("mytable", "p", "02").expect(404);
    let location = batch_parts(&response)[0].required("Location").to_owned();
    assert!(location.starts_with(&server.base()), "the host is that of the request: {location}");
}

#[test]
fn boundaries_are_used_consistently() {
    let server = with_rows(&[]);
    let response = server.send(Batch::new().insert("mytable", &entity_json("p", "r", "")).request());
    let outer = response.required("Content-Type").split_once("boundary=").unwrap().1.to_owned();
    assert!(response.text().starts_with(&format!("--{outer}\r\n")), "{response:?}");
    assert!(response.text().ends_with(&format!("\r\n--{outer}--\r\n")), "{response:?}");
    let inner = response.text().split_once("boundary=").unwrap().1.split_once("\r\n").unwrap().0;
    assert_eq!(response.text().matches(&format!("--{inner}")).count(), 2);
    assert_ne!(&outer["batchresponse_".len()..], &inner["changesetresponse_".len()..]);
}

#[test]
fn an_insert_that_returns_content_is_answered_byte_by_byte() {
    let server = with_rows(&[]);
    let check = |headers: &[(&str, &str)], row: &str, preference: &str| {
        let batch =
            Batch::new().operation("POST", "/mytable", headers, Some(&entity_json("p", row, r#""x":1"#)));
        let response = server.send(batch.request()).expect(202);
        let expected = format!(
            "--batchresponse_GUID\r\n\
             Content-Type: multipart/mixed; boundary=changesetresponse_GUID\r\n\
             \r\n\
             --changesetresponse_GUID\r\n\
             Content-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\
             \r\n\
             HTTP/1.1 201 Created\r\n\
             DataServiceVersion: 3.0;\r\n\
             Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Cache-Control: no-cache\r\n\
             {preference}\
             Location: http://HOST/devstoreaccount1/mytable(PartitionKey='p',RowKey='{row}')\r\n\
             ETag: W/\"datetime'TIME'\"\r\n\
             \r\n\
             {{\"odata.metadata\":\"http://HOST/devstoreaccount1/$metadata#mytable/@Element\",\"odata.etag\":\"W/\\\"datetime'TIME'\\\"\",\"PartitionKey\":\"p\",\"RowKey\":\"{row}\",\"Timestamp\":\"TIME\",\"x\":1}}\r\n\
             --changesetresponse_GUID--\r\n\
             --batchresponse_GUID--\r\n"
        );
        assert_eq!(mask(response.text()), expected);
    };
    let accept = ("Accept", "application/json;odata=minimalmetadata");
    check(&[accept, ("Prefer", "return-content")], "1", "Preference-Applied: return-content\r\n");
    check(&[accept], "2", "");
}

#[test]
fn a_failed_change_set_has_one_part_answered_byte_by_byte() {
    let server = with_rows(&["taken"]);
    let mut batch = Batch::new();
    for row in ["a", "b", "c", "taken", "d"] {
        batch = batch.insert("mytable", &entity_json("p", row, ""));
    }
    let response = server.send(batch.request()).expect(202);
    let expected = "--batchresponse_GUID\r\n\
        Content-Type: multipart/mixed; boundary=changesetresponse_GUID\r\n\
        \r\n\
        --changesetresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 409 Conflict\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        Preference-Applied: return-no-content\r\n\
        DataServiceVersion: 3.0;\r\n\
        Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\
        \r\n\
        {\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":\"3:The specified entity already exists.\\nRequestId:GUID\\nTime:TIME\"}}}\r\n\
        --changesetresponse_GUID--\r\n\
        --batchresponse_GUID--\r\n";
    assert_eq!(mask(response.text()), expected);
    let id = response.required("x-ms-request-id");
    assert!(response.text().contains(&format!("RequestId:{id}\\n")), "the id is that of the outer request");
}

#[test]
fn a_lone_query_is_answered_byte_by_byte() {
    let server = with_rows(&["r"]);
    let accept = [("Accept", "application/json;odata=minimalmetadata")];
    let query = |row: &str| Batch::new().operation("GET", &entity_path("mytable", "p", row), &accept, None);
    let response = server.send(query("r").query_request()).expect(202);
    let expected = "--batchresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 200 OK\r\n\
        DataServiceVersion: 3.0;\r\n\
        Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        ETag: W/\"datetime'TIME'\"\r\n\
        \r\n\
        {\"odata.metadata\":\"http://HOST/devstoreaccount1/$metadata#mytable/@Element\",\"odata.etag\":\"W/\\\"datetime'TIME'\\\"\",\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":\"TIME\",\"x\":1}\r\n\
        --batchresponse_GUID--\r\n";
    assert_eq!(mask(response.text()), expected);

    let response = server.send(query("absent").query_request()).expect(202);
    let expected = "--batchresponse_GUID\r\n\
        Content-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\
        \r\n\
        HTTP/1.1 404 Not Found\r\n\
        X-Content-Type-Options: nosniff\r\n\
        Cache-Control: no-cache\r\n\
        DataServiceVersion: 3.0;\r\n\
        Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\
        \r\n\
        {\"odata.error\":{\"code\":\"ResourceNotFound\",\"message\":{\"lang\":\"en-US\",\"value\":\"0:The specified resource does not exist.\\nRequestId:GUID\\nTime:TIME\"}}}\r\n\
        --batchresponse_GUID--\r\n";
    assert_eq!(mask(response.text()), expected);
}

#[test]
fn a_lone_query_may_ask_for_a_set() {
    let server = with_rows(&["1", "2", "3"]);
    let accept = [("Accept", "application/json;odata=nometadata")];
    let target = "/mytable()?$filter=RowKey%20ge%20'2'&$select=RowKey";
    let response = server.send(Batch::new().operation("GET", target, &accept, None).query_request());
    let parts = batch_parts(&response);
    assert_eq!(parts[0].status, 200);
    assert_eq!(parts[0].text(), r#"{"value":[{"RowKey":"2"},{"RowKey":"3"}]}"#);
    let response =
        server.send(Batch::new().operation("GET", "/mytable()?$top=1", &accept, None).query_request());
    let part = &batch_parts(&response)[0];
    assert!(part.header("x-ms-continuation-NextRowKey").is_some(), "{response:?}");
}

#[test]
fn every_verb_works_in_a_change_set() {
    let server = with_rows(&["put", "merge", "patch", "delete", "tunnel"]);
    let any = [("If-Match", "*")];
    let path = |row: &str| entity_path("mytable", "p", row);
    let batch = Batch::new()
        .operation("POST", "/mytable", &NO_CONTENT, Some(&entity_json("p", "post", r#""y":2"#)))
        .operation("PUT", &path("put"), &any, Some(r#"{"y":2}"#))
        .operation("MERGE", &path("merge"), &any, Some(r#"{"y":2}"#))
        .operation("PATCH", &path("patch"), &any, Some(r#"{"y":2}"#))
        .operation("DELETE", &path("delete"), &any, None)
        .operation("PUT", &path("upsert-put"), &[], Some(r#"{"y":2}"#))
        .operation("MERGE", &path("upsert-merge"), &[], Some(r#"{"y":2}"#))
        .operation("PATCH", &path("upsert-patch"), &[], Some(r#"{"y":2}"#))
        .operation("POST", &path("tunnel"), &[("X-HTTP-Method", "MERGE"), any[0]], Some(r#"{"y":2}"#));
    let response = server.send(batch.request());
    let parts = batch_parts(&response);
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [204; 9], "{response:?}");
    let check = |row: &str, x: Option<i64>, y: Option<i64>| {
        let body = server.get("mytable", "p", row).expect(200).json();
        let number = |name: &str| body.get(name).and_then(|value| value.as_i64());
        assert_eq!((number("x"), number("y")), (x, y), "{row}");
    };
    check("post", None, Some(2));
    check("put", None, Some(2));
    check("merge", Some(1), Some(2));
    check("patch", Some(1), Some(2));
    check("tunnel", Some(1), Some(2));
    for row in ["upsert-put", "upsert-merge", "upsert-patch"] {
        check(row, None, Some(2));
    }
    server.get("mytable", "p", "delete").expect(404);
    for (part, row) in parts.iter().zip(["post", "put", "merge", "patch"]) {
        assert_eq!(part.required("ETag"), server.get("mytable", "p", row).required("ETag"), "{row}");
    }
    assert_eq!(parts[4].header("ETag"), None);
}

#[test]
fn each_part_has_its_own_prefer_and_accept() {
    let server = with_rows(&[]);
    let none = ("Accept", "application/json;odata=nometadata");
    let batch = Batch::new()
        .operation("POST", "/mytable", &[none], Some(&entity_json("p", "1", "")))
        .operation("POST", "/mytable", &NO_CONTENT, Some(&entity_json("p", "2", "")))
        .operation(
            "POST",
            "/mytable",
            &[("Prefer", "return-content"), none],
            Some(&entity_json("p", "3", "")),
        );
    // The preference of the outer request does not apply to the parts.
    let response = server.send(batch.request().header("Prefer", "return-no-content"));
    let parts = batch_parts(&response);
    assert_eq!(parts.iter().map(|part| part.status).collect::<Vec<_>>(), [201, 204, 201]);
    assert_eq!(mask(parts[0].text()), r#"{"PartitionKey":"p","RowKey":"1","Timestamp":"TIME"}"#);
    assert_eq!(parts[0].header("Preference-Applied"), None);
    assert_eq!(parts[2].header("Preference-Applied"), Some("return-content"));
    let content_type = "application/json;odata=nometadata;streaming=true;charset=utf-8";
    assert_eq!(parts[2].header("Content-Type"), Some(content_type));
}

#[test]
fn a_failure_anywhere_undoes_everything() {
    for failing in [0, 7, 99] {
        let server = with_rows(&["kept"]);
        let mut batch = Batch::new();
        for number in 0..100 {
            batch = match number == failing {
                true => batch.insert("mytable", &entity_json("p", "kept", r#""x":9"#)),
                false => batch.insert("mytable", &entity_json("p", &format!("{number:03}"), "")),
            };
        }
        let response = server.send(batch.request());
        let parts = batch_parts(&response);
        assert_eq!(parts.len(), 1, "exactly one part");
        let message = format!("{failing}:The specified entity already exists.");
        parts[0].clone().expect_message(409, "EntityAlreadyExists", &message);
        let rows = server.send(Request::get("/mytable()")).json();
        assert_eq!(rows["value"].as_array().unwrap().len(), 1);
        assert_eq!(rows["value"][0]["x"], 1);
    }
}

#[test]
fn the_first_failing_operation_is_the_one_reported() {
    let server = with_rows(&["a", "b"]);
    let wrong = [("If-Match", "W/\"datetime'2020-08-20T22%3A20%3A23.751381Z'\"")];
    let batch = Batch::new()
        .insert("mytable", &entity_json("p", "fresh", ""))
        .operation("PUT", &entity_path("mytable", "p", "a"), &wrong, Some("{}"))
        .insert("mytable", &entity_json("p", "b", ""));
    let parts = batch_parts(&server.send(batch.request()));
    let message = "1:The update condition specified in the request was not satisfied.";
    parts[0].clone().expect_message(412, "UpdateConditionNotSatisfied", message);
    assert_eq!(parts[0].reason, "Precondition Failed");
    server.get("mytable", "p", "fresh").expect(404);
}

#[test]
fn a_batch_can_hold_a_hundred_operations() {
    let server = with_rows(&[]);
    let mut batch = Batch::new();
    for number in 0..100 {
        batch = batch.insert("mytable", &entity_json("p", &number.to_string(), ""));
    }
    let parts = batch_parts(&server.send(batch.request()));
    assert_eq!(parts.len(), 100);
    for (number, part) in parts.iter().enumerate() {
        assert_eq!(part.status, 204);
        assert!(part.required("Location").ends_with(&format!("RowKey='{number}')")), "answers come in order");
    }
}

#[test]
fn readers_see_all_of_a_batch_or_nothing() {
    let server = with_rows(&["1", "2"]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut client = server.connect();
            for number in 2..150 {
                let json = format!("{{\"x\":{number}}}");
                let batch = Batch::new()
                    .operation("PUT", &entity_path("mytable", "p", "1"), &[("If-Match", "*")], Some(&json))
                    .operation("PUT", &entity_path("mytable", "p", "2"), &[("If-Match", "*")], Some(&json));
                let response = client.exchange(&server.bytes_of(&batch.request())).unwrap();
                assert_eq!(batch_parts(&response).len(), 2);
            }
        });
        let mut client = server.connect();
        while !writer.is_finished() {
            let response = client.exchange(&server.bytes_of(&Request::get("/mytable()"))).unwrap();
            let rows = response.json();
            assert_eq!(rows["value"][0]["x"], rows["value"][1]["x"], "{response:?}");
        }
    });
}
